"""docs/costs.md has the number of requests of each operation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from orchestrator.client.transport import ApiAnswer
from orchestrator.common.tenant_ids import TenantId
from orchestrator.local.releases import Template
from orchestrator.tenants.names import Names
from tests.costs_page import table
from tests.e2e.deployed import eventually
from tests.e2e.enforced.control_plane import Enforced
from tests.e2e.enforced.counting import Counting, transitions
from tests.e2e.fleet import over, stages, started
from tests.e2e.operators import a_release, call, create, delete, upgrade

TENANT, FIRST = TenantId("counted"), TenantId("first")
FLEET = "counted"
EVENT = "CloudFormation's event about a stack"
TURN, FRAME = "turn in a rollout, without the update", "rollout of one stage, without turns"


def _slower(template: Template) -> None:
    template["Resources"]["InboundQueue"]["Properties"]["VisibilityTimeout"] = 79


@pytest.fixture(scope="module")
def unscheduled(enforced: Enforced) -> Iterator[Enforced]:
    """The control plane without schedules and without the event plane's rules, whose requests would be counted, too."""
    events = enforced.root.client("events")
    rules = [
        each["Name"]
        for each in events.list_rules()["Rules"]
        if each.get("ScheduleExpression") or each["Name"].startswith(f"{Names().events}-")
    ]
    for rule in rules:
        events.disable_rule(Name=rule)
    yield enforced
    for rule in rules:
        events.enable_rule(Name=rule)


@pytest.fixture(scope="module")
def counted(unscheduled: Enforced) -> dict[str, Counter[str]]:
    """The requests of every operation on a tenant."""
    enforced, root, operator = unscheduled, unscheduled.root, unscheduled.operator
    found: dict[str, Counter[str]] = {}

    def operation(name: str, ask: Callable[[], ApiAnswer]) -> None:
        counting, accepted = Counting.begin(enforced), ask()
        assert accepted.status == 202, accepted.body
        execution = accepted.body["execution"]
        assert root.ended(execution)["status"] == "SUCCEEDED"
        found[name] = counting.of() + Counter({"state transitions": transitions(enforced, execution)})

    def survey() -> Counter[str]:
        counting = Counting.begin(enforced)
        asked = call(operator, "POST", "/reconciliations", body={}).body["reconciliationId"]

        def is_over() -> bool | None:
            status = call(operator, "GET", f"/reconciliations/{asked}").body["status"]
            return True if status not in ("PENDING", "RUNNING") else None

        assert eventually(is_over, what="the survey has ended")
        return counting.of("reconcile")

    versions = [a_release(root, version, _slower) for version in ("0.91.0", "0.92.0", "0.93.0")]
    assert root.ended(create(operator, FIRST).body["execution"])["status"] == "SUCCEEDED"
    before = survey()
    operation("create", lambda: create(operator, TENANT))
    assert create(operator, TENANT, labels={"fleet": FLEET}).status == 200
    after = survey()
    # All other requests are made per page or once per survey.
    found["survey, per tenant"] = Counter(SQS=after["SQS"] - before["SQS"])

    counting = Counting.begin(enforced)
    root.invoke(root.function("reconcile"), {"reconciliationId": "settling"})
    found["settling"] = counting.of("reconcile") + Counter({"function calls": 1})

    # The first update to a release is reviewed by a change set. Those of other tenants are not.
    assert root.ended(upgrade(operator, FIRST, versions[0]).body["execution"])["status"] == "SUCCEEDED"
    operation("update that changes the stack", lambda: upgrade(operator, TENANT, versions[0]))
    operation("update that only records", lambda: upgrade(operator, TENANT, versions[1]))

    counting = Counting.begin(enforced)
    stack = {"stack-id": root.stack(TENANT)["StackId"], "status-details": {"status": "UPDATE_COMPLETE"}}
    event = {"source": "aws.cloudformation", "detail-type": "CloudFormation Stack Status Change", "detail": stack}
    root.invoke(root.function("stack_event"), event)
    found[EVENT] = counting.of("stack_event") + Counter({"function calls": 1})

    counting = Counting.begin(enforced)
    rollout = over(root, started(operator, FLEET, version=versions[2], stages=stages("rest")))
    assert (rollout["status"], rollout["succeeded"]) == ("SUCCEEDED", 1)
    found[TURN] = counting.of("admit_tenant", "record_outcome")
    # The emulator keeps no history of a map's child executions. This is their straight path, which the bench counts.
    found[TURN]["state transitions"] = 7
    found[FRAME] = counting.of("advance_rollout")
    found[FRAME]["state transitions"] = transitions(enforced, rollout["execution"])

    operation("delete", lambda: delete(operator, TENANT))
    # On AWS, an event resumes the operation that waits for its stack.
    for name in ("create", "update that changes the stack", "delete"):
        found[name] += found[EVENT]
    return found


@pytest.mark.parametrize("name", table("Counted"))
def test_the_page_has_the_number_of_requests(name: str, counted: dict[str, Counter[str]]) -> None:
    documented = {column: int(cell) for column, cell in table("Counted")[name].items() if cell}
    assert {column: times for column, times in counted[name].items() if times} == documented


def test_the_page_lists_every_counted_operation(counted: dict[str, Counter[str]]) -> None:
    assert set(counted) == set(table("Counted"))
