"""Executions are aborted at every state, functions are killed during a step, and the emulator is killed.

Without a retry by an operator, the tenant ends provisioned, or failed with a reason, and getQueue says so.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from orchestrator.adapters.dynamodb import keys
from orchestrator.adapters.dynamodb.applying import key_of
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import timestamp
from orchestrator.tenants.history import HistoryEntry
from orchestrator.tenants.records import Attempt, Audit, Operation, Request, Status
from orchestrator.tenants.writes import AuditKey
from tests.e2e.deployed import Deployed, eventually
from tests.e2e.operators import EARLIER, call, create, delete, ended, tenant_of, upgrade
from tests.e2e.turns import every_turn_taken, turns_of
from tests.machines.files import machine
from tests.present import present

BY = Request(by="a test", explicit=True, force=True)

TWICE = """
import boto3, json

def handler(event, _context):
    lambdas = boto3.client("lambda")
    for _ in range(2):
        lambdas.invoke(FunctionName="{function}", Payload=json.dumps(event))
"""

SERVED_OR_NOT = {
    # Nothing was recorded yet, so the tenant is unknown.
    (Operation.CREATE, "Begin"): None,
    (Operation.CREATE, "StartStack"): (424, "FAILED"),
    (Operation.CREATE, "AwaitStack"): (200, "READY"),
    (Operation.CREATE, "InspectStack"): (200, "READY"),
    (Operation.CREATE, "Finish"): (200, "READY"),
    (Operation.UPDATE, "Begin"): (200, "READY"),
    (Operation.UPDATE, "StartStack"): (200, "UPDATE_FAILED"),
    (Operation.UPDATE, "AwaitStack"): (200, "READY"),
    (Operation.UPDATE, "InspectStack"): (200, "READY"),
    (Operation.UPDATE, "Finish"): (200, "READY"),
    # Nothing was deleted yet, so the tenant is served again.
    (Operation.DELETE, "Begin"): (200, "READY"),
    (Operation.DELETE, "StartStack"): (200, "READY"),
    (Operation.DELETE, "AwaitStack"): (410, "DELETED"),
    (Operation.DELETE, "InspectStack"): (410, "DELETED"),
    (Operation.DELETE, "Finish"): (410, "DELETED"),
}
"""getQueue's status and the tenant's state, by the state at which an operation was aborted."""

IN_ORDER = ("Begin", "StartStack", "AwaitStack", "InspectStack", "Finish")


def test_an_operation_that_is_aborted_at_any_state_is_settled_by_the_actual_state(berth: Deployed) -> None:
    steps = {(operation, state) for operation in Operation for state in _steps_of(operation)}
    assert steps == SERVED_OR_NOT.keys()
    tenants = {step: TenantId(f"cut-{step[0].lower()}-{step[1].lower()}") for step in steps}
    _create_all(berth, [tenant for (operation, _), tenant in tenants.items() if operation is not Operation.CREATE])

    with ExitStack() as held_up:
        # From the last state to the first, each of which stays throttled: an operation needs only the states before it.
        # On AWS an aborted execution makes no further calls; the emulator continues its retries. AwaitStack ends after
        # a moment, and InspectStack is throttled by then.
        for state in reversed(IN_ORDER):
            held_up.enter_context(berth.held_up(_function_of(state)))
            there = [operation for operation, at in steps if at == state]
            executions = [
                berth.start(Attempt(tenants[operation, state], operation, berth.release, 1), BY) for operation in there
            ]
            for execution in executions:
                # The emulator may be done with the stack before StartStack looks at it. Then there is nothing to await
                # or to inspect, and the operation comes to Finish at once.
                _has_entered(berth, execution, *IN_ORDER[IN_ORDER.index(state) :])
                _abort(berth, execution)
        for step in sorted(steps):
            _is_settled(berth, tenants[step])
            assert (step, _told_of(berth, tenants[step])) == (step, SERVED_OR_NOT[step])
            for audit in berth.table.audits(tenants[step]):
                if audit.status is Status.FAILURE:
                    assert "was aborted (Operator: just like that)" in str(audit.root_cause)


def test_a_create_that_is_aborted_while_it_waits_for_its_turn_is_settled_and_the_next_one_has_its_turn(
    berth: Deployed,
) -> None:
    aborted, after = TenantId("cut-in-line"), TenantId("after-the-cut")
    with every_turn_taken(berth):
        execution = str(create(berth, aborted).body["execution"])
        eventually(lambda: _ticket_of(berth, aborted), what="the create waits for its turn")
        eventually(lambda: turns_of(berth).first_ticket(), what="its ticket is in the line")
        _abort(berth, execution)
        _is_settled(berth, aborted)
        assert _told_of(berth, aborted) == (424, "FAILED")
        (audit,) = berth.table.audits(aborted)
        assert "was aborted (Operator: just like that)" in str(audit.root_cause)

    # Nobody waits with the ticket any more, so the next in the line is served.
    assert ended(berth, create(berth, after)) == "SUCCEEDED"
    assert turns_of(berth).first_ticket() is None
    # AWS refuses the token of an aborted execution. The emulator accepts it, so the dead create may have got a turn,
    # which is given back minutes later, because it has no lock.
    assert set(present(turns_of(berth).turns()).holders) <= {execution}


def test_functions_that_are_killed_during_a_step_are_called_again(berth: Deployed) -> None:
    moved, gone, come = TenantId("kill-update"), TenantId("kill-delete"), TenantId("kill-create")
    _create_all(berth, [moved, gone])
    orders = [upgrade(berth, moved, berth.release), delete(berth, gone), create(berth, come)]
    executions = [str(order.body["execution"]) for order in orders]

    killed = 0
    for entered in (1, 2, 3):
        # One after the other, so that each kill hits another step.
        for execution in executions:
            eventually(
                lambda execution=execution, entered=entered: True if _is_past(berth, execution, entered) else None,  # type: ignore[misc]
                what="the next step has begun",
            )
        killed += _kill_workers(berth)

    assert killed
    for execution in executions:
        berth.ended(execution)
    for tenant, status, state in ((moved, 200, "READY"), (gone, 410, "DELETED"), (come, 200, "READY")):
        _is_settled(berth, tenant)
        assert (berth.settled(tenant).status, tenant_of(berth, tenant)["state"]) == (status, state)


def test_every_event_may_arrive_twice(berth: Deployed) -> None:
    tenant = TenantId("all-twice")
    with _every_rule_twice(berth), _custom_resource_twice(berth):
        assert ended(berth, create(berth, tenant, version=EARLIER)) == "SUCCEEDED"
        assert create(berth, tenant, version=None).status == 200
        assert ended(berth, upgrade(berth, tenant, berth.release)) == "SUCCEEDED"
        with berth.held_up("start_stack"):
            aborted = berth.start(Attempt(tenant, Operation.DELETE, berth.release, 1), BY)
            _has_entered(berth, aborted, "StartStack")
            _abort(berth, aborted)
            _is_settled(berth, tenant)
        deleted = delete(berth, tenant, force="true")
        assert deleted.status == 200 or ended(berth, deleted) == "SUCCEEDED"

    history = berth.table.history(tenant)
    entries = [(entry.execution, entry.status) for entry in history if isinstance(entry, HistoryEntry)]
    assert len(entries) == len(set(entries)), "something was recorded twice"
    assert berth.ask(tenant).status == 410
    eventually(lambda: True if _waiting(berth) == 0 else None, what="all events are taken care of")


def test_operations_that_ran_when_the_emulator_stopped_are_settled_after_its_restart(berth: Deployed) -> None:
    tenants = [TenantId(f"restart-{number}") for number in range(4)]
    with berth.held_up("finish"):
        executions = [str(create(berth, tenant).body["execution"]) for tenant in tenants]
        for execution in executions:
            _has_entered(berth, execution, "Finish")

        berth.emulator.stop()
        berth.emulator.start()

    # Running executions have ended with the emulator, without a result.
    assert [berth.ended(execution)["status"] for execution in executions] == ["FAILED"] * len(executions)
    for audit in berth.table.unfinished_operations():
        _a_while_ago(berth, audit)
    asked = call(berth, "POST", "/reconciliations", body={})
    assert asked.status == 202
    came = _is_over(berth, asked.body["reconciliationId"])
    assert came["status"] == "DONE"
    settled = {finding["subject"] for finding in came["findings"] if finding["kind"] == "unfinished-operation"}
    assert settled >= {tenant.value for tenant in tenants}
    for tenant in tenants:
        _is_settled(berth, tenant)
        assert berth.ask(tenant).status == 200


def _told_of(berth: Deployed, tenant: TenantId) -> tuple[int, str] | None:
    """getQueue's status and the tenant's state; None for an unknown tenant."""
    known = tenant_of(berth, tenant)
    return (berth.ask(tenant).status, known["state"]) if "state" in known else None


def _ticket_of(berth: Deployed, tenant: TenantId) -> int | None:
    return next((audit.ticket for audit in berth.table.audits(tenant) if audit.is_waiting), None)


# Faults


def _create_all(berth: Deployed, tenants: list[TenantId]) -> None:
    accepted = [create(berth, tenant, version=EARLIER) for tenant in tenants]
    for tenant, each in zip(tenants, accepted, strict=True):
        assert ended(berth, each) == "SUCCEEDED"
        assert create(berth, tenant, version=None).status == 200


def _steps_of(operation: Operation) -> list[str]:
    """The states that every operation of this kind enters. A create comes to AwaitAdmission only if it has to wait."""
    states = machine(f"{operation.lower()}_tenant")["States"]
    others = ("RecordFailure", "AwaitAdmission")
    return [name for name, state in states.items() if state["Type"] == "Task" and name not in others]


def _function_of(state: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in state).lstrip("_")


def _entered(berth: Deployed, execution: str) -> list[str]:
    pages = berth.client("stepfunctions").get_paginator("get_execution_history").paginate(executionArn=execution)
    events = [event for page in pages for event in page["events"]]
    return [event["stateEnteredEventDetails"]["name"] for event in events if event["type"].endswith("TaskStateEntered")]


def _has_entered(berth: Deployed, execution: str, *states: str) -> None:
    """Wait until the execution has come to one of these states."""
    eventually(
        lambda: True if {*states} & {*_entered(berth, execution)} else None,
        what=f"{execution} has come to {' or '.join(states)}",
    )


def _is_past(berth: Deployed, execution: str, steps: int) -> bool:
    described = berth.client("stepfunctions").describe_execution(executionArn=execution)
    return described["status"] != "RUNNING" or len(_entered(berth, execution)) >= steps


def _abort(berth: Deployed, execution: str) -> None:
    berth.client("stepfunctions").stop_execution(executionArn=execution, error="Operator", cause="just like that")


def _is_settled(berth: Deployed, tenant: TenantId) -> None:
    def look() -> bool | None:
        started = [audit for audit in berth.table.audits(tenant) if audit.status is Status.STARTED]
        return True if not started and berth.table.lock(tenant) is None else None

    eventually(look, what=f"{tenant} is settled")


def _waiting(berth: Deployed) -> int:
    """The number of events about executions that are not handled yet."""
    counts = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
    shown = berth.client("sqs").get_queue_attributes(
        QueueUrl=berth.outputs["EndedExecutionsQueueUrl"], AttributeNames=list(counts)
    )["Attributes"]
    return sum(int(shown[count]) for count in counts)


def _is_over(berth: Deployed, reconciliation: str) -> dict[str, Any]:
    def look() -> dict[str, Any] | None:
        shown = call(berth, "GET", f"/reconciliations/{reconciliation}").body
        return dict(shown) if shown["status"] in ("DONE", "INCOMPLETE") else None

    return eventually(look, what=f"reconciliation {reconciliation} is over")


def _a_while_ago(berth: Deployed, audit: Audit) -> None:
    """Change the row so that the operation began ten minutes ago, because a test cannot wait that long."""
    at = audit.updated_at.replace(year=audit.updated_at.year - 1)
    attempt = Attempt(audit.tenant, audit.operation, audit.version or "", audit.attempt)
    _, sort = keys.unfinished_operation(audit.tenant, at)
    berth.client("dynamodb").update_item(
        TableName=berth.outputs["TableName"],
        Key=key_of(AuditKey.of(attempt)),
        UpdateExpression="SET UpdatedAt = :at, ListingSort = :sort",
        ExpressionAttributeValues={":at": {"S": timestamp(at)}, ":sort": {"S": sort}},
    )


def _kill_workers(berth: Deployed) -> int:
    """Kill the processes of every function that is a step, and return their number.

    The function of tenants' stacks is left out: on AWS the call by CloudFormation would be repeated, here it is lost.
    """
    return berth.kill_processes_of(lambda name: name.startswith("Berth-Machines"))


@contextmanager
def _every_rule_twice(berth: Deployed) -> Iterator[None]:
    """Add a copy of each event rule, so that every event is delivered twice."""
    events = berth.client("events")
    rules = [rule for rule in events.list_rules()["Rules"] if "EventPattern" in rule]
    assert rules
    for rule in rules:
        again = f"again-{rule['Name']}"[:64]
        events.put_rule(Name=again, EventPattern=rule["EventPattern"])
        events.put_targets(Rule=again, Targets=events.list_targets_by_rule(Rule=rule["Name"])["Targets"])
    yield
    for rule in rules:
        again = f"again-{rule['Name']}"[:64]
        targets = events.list_targets_by_rule(Rule=again)["Targets"]
        events.remove_targets(Rule=again, Ids=[target["Id"] for target in targets])
        events.delete_rule(Name=again)


@contextmanager
def _custom_resource_twice(berth: Deployed) -> Iterator[None]:
    """Let the custom resources of created and updated stacks receive every event twice."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as code:
        code.writestr("twice.py", TWICE.format(function="berth-tenant-metadata"))
    functions = berth.client("lambda")
    twice = functions.create_function(
        FunctionName="twice",
        Runtime="python3.13",
        Role="arn:aws:iam::000000000000:role/twice",
        Handler="twice.handler",
        Timeout=60,
        Code={"ZipFile": archive.getvalue()},
    )["FunctionArn"]
    shown = "BERTH_METADATA_SERVICE_TOKEN"
    before = {}
    for name in ("begin", "start_stack", "finish"):
        function = berth.function(name)
        before[function] = functions.get_function_configuration(FunctionName=function)["Environment"]["Variables"]
        functions.update_function_configuration(
            FunctionName=function, Environment={"Variables": before[function] | {shown: twice}}
        )
    yield
    for function, variables in before.items():
        functions.update_function_configuration(FunctionName=function, Environment={"Variables": variables})
