"""docs/costs.json has the number of requests of each operation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from bench.stack_events import StackEvents
from orchestrator.client.transport import ApiAnswer
from orchestrator.common.tenant_ids import TenantId
from orchestrator.local.home import polls
from orchestrator.local.releases import Template
from orchestrator.tenants.names import Names
from tests.costs import OPERATIONS
from tests.e2e.deployed import Deployed, eventually
from tests.e2e.enforced.control_plane import Enforced
from tests.e2e.enforced.counting import Counting, transitions
from tests.e2e.fleet import over, stages, started
from tests.e2e.operators import a_release, call, create, delete, upgrade

TENANT, FIRST = TenantId("counted"), TenantId("first")
FLEET = "counted"
_LONGEST_SECONDS = 120
TURN, FRAME = "turn in a rollout, without the update", "rollout of one stage, without turns"


def _slower(template: Template) -> None:
    template["Resources"]["InboundQueue"]["Properties"]["VisibilityTimeout"] = 79


@pytest.fixture(scope="module")
def unscheduled(enforced: Enforced) -> Iterator[Enforced]:
    """The control plane without schedules and without the event plane's rules, whose requests would be counted, too.

    As on AWS, StartStack waits for events about stacks. The emulator sends none, so the test does.
    """
    events = enforced.root.client("events")
    rules = [
        each["Name"]
        for each in events.list_rules()["Rules"]
        if each.get("ScheduleExpression") or each["Name"].startswith(f"{Names().events}-")
    ]
    for rule in rules:
        events.disable_rule(Name=rule)
    _wait_for_events(enforced.root, wait="true")
    yield enforced
    _wait_for_events(enforced.root, wait="false")
    for rule in rules:
        events.enable_rule(Name=rule)


def _wait_for_events(root: Deployed, *, wait: str) -> None:
    functions, name = root.client("lambda"), root.function("start_stack")
    variables = functions.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
    functions.update_function_configuration(
        FunctionName=name, Environment={"Variables": {**variables, "BERTH_STACK_EVENTS": wait}}
    )


@pytest.fixture(scope="module")
def counted(unscheduled: Enforced) -> dict[str, Counter[str]]:
    """The requests of every operation on a tenant."""
    enforced, root, operator = unscheduled, unscheduled.root, unscheduled.operator
    found: dict[str, Counter[str]] = {}
    events = StackEvents(root.client, root.outputs["TableName"], root.function("stack_event"))

    def succeeds(tenant: TenantId, accepted: ApiAnswer) -> int:
        """Send the events that the operation waits for until it has succeeded, and return their number."""
        assert accepted.status == 202, accepted.body
        sent = 0
        for _ in polls(_LONGEST_SECONDS):
            sent += events.send(tenant)
            execution = root.client("stepfunctions").describe_execution(executionArn=accepted.body["execution"])
            if execution["status"] != "RUNNING":
                break
        assert execution["status"] == "SUCCEEDED"
        return sent

    def operation(name: str, ask: Callable[[], ApiAnswer]) -> None:
        counting, accepted = Counting.begin(enforced), ask()
        sent = succeeds(TENANT, accepted)
        found[name] = counting.of() + Counter({"function calls": sent})
        found[name]["state transitions"] = transitions(enforced, accepted.body["execution"])

    def survey() -> Counter[str]:
        counting = Counting.begin(enforced)
        asked = call(operator, "POST", "/reconciliations", body={}).body["reconciliationId"]

        def is_over() -> bool | None:
            status = call(operator, "GET", f"/reconciliations/{asked}").body["status"]
            return True if status not in ("PENDING", "RUNNING") else None

        assert eventually(is_over, what="the survey has ended")
        return counting.of("reconcile")

    versions = [a_release(root, version, _slower) for version in ("1.91.0", "1.92.0", "1.93.0")]
    succeeds(FIRST, create(operator, FIRST))
    before = survey()
    operation("create", lambda: create(operator, TENANT))
    assert create(operator, TENANT, labels={"fleet": FLEET}).status == 200
    after = survey()
    # All other requests are made per page or once per survey.
    found["survey, per tenant"] = Counter(SQS=after["SQS"] - before["SQS"])

    counting = Counting.begin(enforced)
    root.invoke(root.function("reconcile"), {"reconciliationId": "settling"})
    found["settling"] = counting.of("reconcile") + Counter({"function calls": 1})

    # The first update to a release is reviewed by a change set, and its functions read the release. Others do neither.
    for version in versions[:2]:
        succeeds(FIRST, upgrade(operator, FIRST, version))
    operation("update that changes the stack", lambda: upgrade(operator, TENANT, versions[0]))
    operation("update that only records", lambda: upgrade(operator, TENANT, versions[1]))

    counting = Counting.begin(enforced)
    rollout = over(root, started(operator, FLEET, version=versions[2], stages=stages("rest")))
    assert (rollout["status"], rollout["succeeded"]) == ("SUCCEEDED", 1)
    found[TURN] = counting.of("admit_tenant", "record_outcome")
    # The emulator keeps no history of a map's child executions. This is their straight path, which the bench counts.
    found[TURN]["state transitions"] = 7
    found[FRAME] = counting.of("advance_rollout")
    found[FRAME]["state transitions"] = transitions(enforced, rollout["execution"])

    operation("delete", lambda: delete(operator, TENANT))
    return found


OTHERS = {"turn in a rollout with 50 in flight", "wait for a turn", "look at full warm stacks"}
"""Operations that are counted elsewhere."""


@pytest.mark.parametrize("name", OPERATIONS.keys() - OTHERS)
def test_the_number_of_requests(name: str, counted: dict[str, Counter[str]]) -> None:
    assert {column: times for column, times in counted[name].items() if times} == OPERATIONS[name]
