"""A control plane that keeps stacks ready, on the emulator, with its permissions enforced.

It has a deployment of its own: with the setting, functions have permissions that they otherwise lack, and every other
test would find stacks that it does not expect.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from orchestrator.adapters.dynamodb.pool import PoolTable
from orchestrator.common.tenant_ids import WARM_PREFIX, TenantId
from orchestrator.pool.records import MemberState, Pool
from orchestrator.reconciling.records import POOL
from tests.costs import OPERATIONS
from tests.e2e.deployed import Deployed, eventually
from tests.e2e.enforced.control_plane import Enforced
from tests.e2e.enforced.counting import Counting
from tests.e2e.enforced.running import running
from tests.e2e.operators import call, delete, ended

SIZE = 2
ASKED, ORDERED = TenantId("asked-for"), TenantId("ordered")


@pytest.fixture(scope="module")
def kept_ready(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Enforced]:
    home = tmp_path_factory.mktemp("kept-ready")
    settings = {"warmPool": f"standard={SIZE}", "credentialsSeconds": "900", "events": "false"}
    with running(home, lambda _: settings) as enforced:
        yield enforced
        assert enforced.denials() == []


def _pool(berth: Deployed) -> Pool:
    return PoolTable(berth.client("dynamodb"), berth.outputs["TableName"]).pool()


def _refilled(berth: Deployed) -> Pool | None:
    """The pool, once all of its stacks are ready and no stack has a tenant to learn. The schedule is not waited for."""
    berth.invoke(berth.function("reconcile"), {"reconciliationId": POOL})
    pool = _pool(berth)
    ready = [member for member in pool.members.values() if member.state is MemberState.READY]
    return pool if len(ready) == len(pool.members) == SIZE else None


def _tenant_of(berth: Deployed, stack_id: str) -> str:
    (stack,) = berth.client("cloudformation").describe_stacks(StackName=stack_id)["Stacks"]
    return {each["ParameterKey"]: each["ParameterValue"] for each in stack["Parameters"]}["TenantId"]


def test_new_tenants_have_their_queues_at_once_and_the_pool_is_refilled(kept_ready: Enforced) -> None:
    root, platform, operator = kept_ready.root, kept_ready.platform, kept_ready.operator
    first = eventually(lambda: _refilled(root), what="the pool is filled")

    answer = platform.ask(ASKED)
    assert answer.status == 200, answer.body
    url = answer.body["queueUrl"]
    # The queue's tag still names the stack that was kept ready.
    kept_ready.with_credentials(ASKED, "send").send_message(QueueUrl=url, MessageBody="the first")
    receiver = kept_ready.with_credentials(ASKED, "receive")
    (message,) = receiver.receive_message(QueueUrl=url, WaitTimeSeconds=1)["Messages"]
    assert message["Body"] == "the first"
    receiver.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])

    ordered = call(operator, "PUT", f"/tenants/{ORDERED}", body={"labels": {"plan": "best"}})
    assert (ordered.status, ordered.body["status"]) == (200, "CHANGED"), ordered.body
    shown = call(operator, "GET", f"/tenants/{ORDERED}").body
    assert (shown["state"], shown["labels"]) == ("READY", {"plan": "best"})
    assert shown["queueUrl"] == ordered.body["after"]["queueUrl"] != url
    assert not root.executions(ASKED), "nothing was started"
    assert not root.executions(ORDERED), "nothing was started"

    refilled = eventually(lambda: _refilled(root), what="the stacks have learned their tenants, and the pool is full")
    assert refilled.members.keys().isdisjoint(first.members), "Both stacks were taken."
    for tenant, queue in ((ASKED, url), (ORDERED, shown["queueUrl"])):
        found = call(operator, "GET", f"/tenants/{tenant}").body
        assert (found["state"], found["queueUrl"]) == ("READY", queue)
        assert _tenant_of(root, found["stackId"]) == tenant.value

    listed = call(operator, "GET", "/tenants").body["tenants"]
    assert {each["tenantId"] for each in listed} == {ASKED.value, ORDERED.value}
    kept = call(operator, "GET", "/tenants", query={"prefix": WARM_PREFIX}).body["tenants"]
    assert {each["tenantId"] for each in kept} == refilled.members.keys()
    (check,) = [each for each in call(operator, "GET", "/diagnosis").body["checks"] if each["name"] == "warm pool"]
    assert (check["verdict"], check["detail"]) == ("ok", f"standard: {SIZE} of {SIZE} ready")

    assert ended(root, delete(operator, ASKED)) == "SUCCEEDED"
    assert platform.ask(ASKED).status == 410
    assert kept_ready.denials() == []


def test_a_full_pool_is_looked_at_with_the_reads_that_the_page_has(kept_ready: Enforced) -> None:
    root = kept_ready.root
    events = root.client("events")
    for rule in events.list_rules()["Rules"]:
        if rule.get("ScheduleExpression"):
            events.disable_rule(Name=rule["Name"])  # Its requests would be counted, too.
    eventually(lambda: _refilled(root), what="the pool is full")
    counting = Counting.begin(kept_ready)
    root.invoke(root.function("reconcile"), {"reconciliationId": POOL})
    counted = counting.of("reconcile") + Counter({"function calls": 1})
    assert dict(counted) == OPERATIONS["look at full warm stacks"]


def test_a_stack_that_is_kept_ready_is_no_tenant(kept_ready: Enforced) -> None:
    root, operator = kept_ready.root, kept_ready.operator
    warm = next(iter(eventually(lambda: _refilled(root), what="the pool is full").members))
    assert kept_ready.platform.ask(TenantId(warm)).status == 404
    refused = call(operator, "POST", f"/tenants/{warm}/upgrade")
    assert refused.status == 400
    assert "kept ready" in refused.body["detail"]
    deleted = ended(root, delete(operator, TenantId(warm)))
    assert deleted == "SUCCEEDED"
    assert warm not in eventually(lambda: _refilled(root), what="the deleted stack is replaced").members
    assert kept_ready.denials() == []
