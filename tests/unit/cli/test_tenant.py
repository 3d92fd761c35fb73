"""`berth tenant`: one tenant in full."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

from orchestrator.cli.errors import ExitCode
from orchestrator.tenants.fleet import HISTORY_PAGE_SIZE
from orchestrator.tenants.history import ChangeKind, RecordedChange, UnreadableEntry
from orchestrator.tenants.records import Metadata, Operation, Request, Status
from orchestrator.tenants.stack_ports import Stack
from orchestrator.tenants.writes import Append
from tests.fakes import ACME, NEXT_VERSION, NOON, QUEUE, QUEUE_TABOO, VERSION, an_audit, some_metadata, stack_arn
from tests.unit.cli.conftest import Scene
from tests.unit.cli.fake_api import ADA

CAUSE = {"resource": "InboundQueue", "type": "AWS::SQS::Queue", "reason": "Access to the resource is denied."}


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]


def test_a_ready_tenant(scene: Scene) -> None:
    scene.api.create(ACME, pin="0.1.0", labels={"tier": "gold", "team": "blue"})
    scene.api.begin()
    scene.api.succeed()
    result = scene.berth("tenant", "acme", exits=ExitCode.OK)
    assert lines(result.stdout) == [
        "tenant:     acme",
        "state:      READY",
        "version:    0.1.0",
        "tier:       standard",
        "pinned to:  0.1.0",
        "labels:     team=blue, tier=gold",
        "updated:    2026-11-16 12:00:10 UTC",
        f"queue url:  {QUEUE.url}",
        f"queue arn:  {QUEUE.arn}",
        "",
        "CREATE 0.1.0",
        "status:     Success",
        "attempt:    1",
        "updated:    2026-11-16 12:00:10 UTC",
        f"asked by:   {ADA}",
        f"execution:  {scene.api.run.execution}",
        "",
        "History",
        "Time (UTC)          Operation Version Try Status  Asked by Details",
        "2026-11-16 12:00:00 DESCRIBE                      ada      labels: none ->",
        "                                                           team=blue, tier=gold,",
        "                                                           pin: none -> 0.1.0",
        "2026-11-16 12:00:00 CREATE    0.1.0   1   Started ada",
        "2026-11-16 12:00:10 CREATE    0.1.0   1   Success ada",
    ]


def test_the_current_operation(scene: Scene) -> None:
    scene.has()
    scene.api.upgrade(ACME, "0.2.0")
    scene.api.begin()
    scene.api.table.remember_token(scene.api.run, "the-token")
    output = scene.berth("tenant", "acme")
    assert lines(output.stdout.partition("Current operation\n")[2])[:4] == [
        "operation:  UPDATE 0.2.0, attempt 1",
        "since:      2026-11-16 12:00:10 UTC",
        f"asked by:   {ADA}",
        f"execution:  {scene.api.run.execution}",
    ]
    result = scene.berth("tenant", "acme", "--json")
    assert json.loads(result.stdout)["currentOperation"] == {
        "operation": "UPDATE",
        "version": "0.2.0",
        "attempt": 1,
        "execution": scene.api.run.execution,
        "startedAt": "2026-11-16T12:00:10.000Z",
        "requestedBy": ADA,
        "reason": None,
    }
    assert "the-token" not in output.stdout + result.stdout


def test_a_failed_tenant_is_shown_with_its_root_cause_whatever_it_contains(scene: Scene) -> None:
    cause = replace(QUEUE_TABOO, reason="Failed [red]to[/red] create: [InboundQueue]. " + "Because. " * 40)
    scene.api.create(ACME)
    scene.api.begin()
    scene.api.fail(cause)
    result = scene.berth("tenant", "acme", exits=ExitCode.OK)
    assert f"root cause: {cause}\n" in result.stdout
    history = result.stdout.partition("History\n")[2].splitlines()
    assert max(map(len, history)) <= 80
    assert "[red]to[/red]" in " ".join(history)


def test_json_is_the_apis_response(scene: Scene) -> None:
    scene.api.create(ACME, labels={"team": "blue"})
    scene.api.begin()
    scene.api.fail()
    result = scene.berth("tenant", "acme", "--json")
    outcome = {
        "operation": "CREATE",
        "version": "0.2.0",
        "attempt": 1,
        "execution": scene.api.run.execution,
        "requestedBy": ADA,
        "reason": None,
    }
    asked = {"request": {"explicit": True, "labels": {"team": "blue"}}, "before": None, "after": None, "altered": False}
    described = {
        "operation": "DESCRIBE",
        **dict.fromkeys(("version", "attempt", "status", "execution", "rootCause")),
        "before": {"labels": {}, "pinnedVersion": None},
        "after": {"labels": {"team": "blue"}, "pinnedVersion": None},
    }
    assert json.loads(result.stdout) == {
        "tenantId": "acme",
        "state": "FAILED",
        "version": None,
        "pinnedVersion": None,
        "tier": "standard",
        "labels": {"team": "blue"},
        "createdAt": None,
        "updatedAt": "2026-11-16T12:00:10.000Z",
        "queueUrl": None,
        "queueArn": None,
        "stackId": None,
        "resources": {},
        "rootCause": CAUSE,
        "currentOperation": None,
        "audits": [outcome | {"status": "Failure", "rootCause": CAUSE, "updatedAt": "2026-11-16T12:00:10.000Z"}],
        "history": [
            outcome | asked | described | {"at": "2026-11-16T12:00:00.000Z"},
            outcome | asked | {"status": "Started", "rootCause": None, "at": "2026-11-16T12:00:00.000Z"},
            outcome | asked | {"status": "Failure", "rootCause": CAUSE, "at": "2026-11-16T12:00:10.000Z"},
        ],
        "earlierThan": None,
    }


def test_the_full_history_with_requesters(scene: Scene) -> None:
    scene.has()
    scene.api.delete(ACME, force=True, reason="Ticket 4711")
    scene.api.begin()
    scene.api.succeed()
    result = scene.berth("tenant", "acme")
    assert "state:      DELETED\n" in result.stdout
    # A delete has no version.
    assert "\nDELETE\n" in result.stdout
    assert "reason:     Ticket 4711\n" in result.stdout
    assert lines(result.stdout.partition("History\n")[2])[1:] == [
        "2026-11-16 12:00:00 DESCRIBE                      ada      pin: none -> 0.1.0",
        "2026-11-16 12:00:00 CREATE    0.1.0   1   Started ada",
        # Both have the same time here.
        "2026-11-16 12:00:10 DESCRIBE                      ada      pin: 0.1.0 -> none",
        "2026-11-16 12:00:10 CREATE    0.1.0   1   Success ada",
        "2026-11-16 12:00:10 DELETE            1   Started ada      forced",
        "                                                           Ticket 4711",
        "2026-11-16 12:00:20 DELETE            1   Success ada",
    ]


def test_the_history_has_options_changes_and_reasons(scene: Scene) -> None:
    scene.has()
    scene.berth("pin", "acme", "0.1.0", "--reason", "until the audit is over")
    scene.berth("unpin", "acme", "--reason", "the audit is over")
    scene.berth("upgrade", "acme", "--allow-downgrade", "--allow-replacement", "--yes", "--reason", "at last")
    scene.api.begin()
    scene.environment |= {"COLUMNS": "200"}
    output = [line[42:] for line in lines(scene.berth("tenant", "acme").stdout.partition("History\n")[2])]
    for line in (
        "ada      pin: none -> 0.1.0",
        "         until the audit is over",
        "         the audit is over",
        "         at last",
    ):
        assert any(each.endswith(line) for each in output), (line, output)
    assert any(each.endswith("downgrade allowed, replacement allowed") for each in output)


def test_an_overwritten_row_is_shown_as_altered(scene: Scene) -> None:
    scene.has()
    history = scene.api.table.histories[ACME]
    for key, entry in history.items():
        history[key] = replace(entry, altered=True)
    scene.environment |= {"COLUMNS": "200"}
    assert scene.berth("tenant", "acme").stdout.count("ALTERED") == len(history)


def test_an_unreadable_row_is_shown_as_altered_among_the_others(scene: Scene) -> None:
    scene.has()
    history = scene.api.table.histories[ACME]
    history["by somebody",] = UnreadableEntry(None)
    history["over another",] = UnreadableEntry(NOON)
    scene.environment |= {"COLUMNS": "200"}

    shown = scene.berth("tenant", "acme")
    assert shown.exit_code == ExitCode.OK
    output = [line.split() for line in shown.stdout.splitlines() if "ALTERED" in line]
    assert [line[:2] for line in output] == [["ALTERED:", "somebody"], ["2026-11-16", "12:00:00"]]

    entries = json.loads(scene.berth("tenant", "acme", "--json").stdout)["history"]
    assert [entry["altered"] for entry in entries] == [*[False] * (len(entries) - 2), True, True]
    assert [entry["at"] for entry in entries[-2:]] == [None, "2026-11-16T12:00:00.000Z"]
    assert {value for entry in entries[-2:] for name, value in entry.items() if name not in ("at", "altered")} == {None}
    assert len({frozenset(entry) for entry in entries}) == 1


def test_a_tenant_without_audit_rows(scene: Scene) -> None:
    scene.api.table.plant_metadata(Metadata(ACME, QUEUE, stack_arn(), "0.0.9", None, None))
    result = scene.berth("tenant", "acme", exits=ExitCode.OK)
    assert "version:    0.0.9" in result.stdout
    assert "updated" not in result.stdout


def test_audit_rows_without_version_and_requester(scene: Scene) -> None:
    scene.api.table.plant_audit(an_audit(Status.SUCCESS, Operation.CREATE, version=None))
    result = scene.berth("tenant", "acme")
    assert "\nCREATE\n" in result.stdout
    assert "asked by" not in result.stdout


def test_an_unknown_tenant(scene: Scene) -> None:
    result = scene.berth("tenant", "nobody", "--json", exits=ExitCode.GONE)
    problem = json.loads(result.stdout)
    assert problem["type"] == "urn:berth:problem:unknown-tenant"
    assert result.stderr == f"Error: {problem['detail']}\n"


def test_a_long_history_is_shown_in_pages(scene: Scene) -> None:
    for number in range(HISTORY_PAGE_SIZE + 1):
        change = RecordedChange(
            ACME,
            NOON + timedelta(minutes=number),
            ChangeKind.DESCRIBE,
            Request(by="ada", reason=f"No. {number}"),
            {},
            {},
        )
        assert scene.api.table.apply((Append(change),))
    scene.api.table.plant_metadata(some_metadata())

    newest = scene.berth("tenant", "acme", exits=ExitCode.OK)
    assert "No. 0" not in newest.stdout
    assert "There are earlier events: berth tenant acme --before 2026-11-16T12:01:00.000Z" in newest.stderr

    oldest = scene.berth("tenant", "acme", "--before", "2026-11-16T12:01:00.000Z", exits=ExitCode.OK)
    assert "No. 0" in oldest.stdout
    assert "earlier events" not in oldest.stderr


def test_another_time_than_the_apis_is_refused(scene: Scene) -> None:
    scene.berth("tenant", "acme", "--before", "yesterday", exits=ExitCode.BAD_USAGE)


def test_the_next_commands_for_a_tenant_whose_create_failed(scene: Scene) -> None:
    scene.api.create(ACME)
    scene.api.begin()
    scene.api.fail()
    result = scene.berth("tenant", "acme", exits=ExitCode.OK)
    assert result.stderr == "Retry: berth retry acme\nOr give it up: berth delete acme\n"


def test_the_next_commands_for_a_tenant_whose_update_failed(scene: Scene) -> None:
    scene.has()
    scene.api.upgrade(ACME, "0.2.0")
    scene.api.begin()
    scene.api.fail()
    result = scene.berth("tenant", "acme", exits=ExitCode.OK)
    assert result.stderr == "Retry: berth retry acme\nOr leave it at 0.1.0: berth upgrade acme --to 0.1.0\n"
    scene.berth("upgrade", "acme", "--to", "0.1.0", exits=ExitCode.OK)
    assert scene.api.run.attempt.version == "0.1.0"


def test_the_next_command_for_a_tenant_whose_delete_failed_half_way(scene: Scene) -> None:
    scene.has()
    scene.api.delete(ACME)
    scene.api.begin()
    scene.api.fail_half_way()
    assert scene.berth("tenant", "acme", exits=ExitCode.OK).stderr == "Retry: berth retry acme\n"
    scene.berth("retry", "acme", exits=ExitCode.OK)
    assert scene.api.run.attempt.operation is Operation.DELETE


def test_the_other_outputs_of_its_stack_are_shown(scene: Scene) -> None:
    scene.api.table.plant_metadata(some_metadata(resources={"OrdersTable": "orders-1", "FilesBucket": "files-1"}))
    lines = scene.berth("tenant", "acme", exits=ExitCode.OK).stdout.splitlines()
    heading = lines.index("Other outputs of its stack")
    assert lines[heading + 1 : heading + 3] == ["FilesBucket: files-1", "OrdersTable: orders-1"]


class TestLive:
    """The records, compared with the stack as it is now."""

    @staticmethod
    def has_stack(scene: Scene, **changes: Any) -> None:
        scene.has()
        stack = Stack(stack_arn(), "UPDATE_COMPLETE", "", ACME.value, QUEUE, VERSION, ours=True, changed_at=NOON)
        scene.api.world.stacks.plant(replace(stack, **changes))

    def test_a_stack_that_is_as_recorded(self, scene: Scene) -> None:
        self.has_stack(scene)
        shown = lines(scene.berth("tenant", "acme", "--live", exits=ExitCode.OK).stdout)
        assert shown[shown.index("Stack now") :] == [
            "Stack now",
            "status:     UPDATE_COMPLETE",
            "changed:    2026-11-16 12:00:00 UTC",
            "The records and the stack agree.",
        ]

    def test_a_difference_is_shown_with_both_values_and_its_repair(self, scene: Scene) -> None:
        self.has_stack(scene, version=NEXT_VERSION)
        result = scene.berth("tenant", "acme", "--live", exits=ExitCode.OK)
        assert f"release:    {NEXT_VERSION}, recorded: {VERSION}\n" in result.stdout
        assert lines(result.stdout)[-1] == (
            f"The records and the stack differ: the metadata differs from the stack: version {VERSION} / {NEXT_VERSION}"
        )
        assert result.stderr.endswith("Repair it: berth reconcile --only acme\n")

    def test_a_stack_that_is_gone(self, scene: Scene) -> None:
        scene.has()
        result = scene.berth("tenant", "acme", "--live", exits=ExitCode.OK)
        assert "does not exist" in lines(result.stdout)[-1]
        assert "Receive the messages that are left in the queue" in result.stderr

    def test_a_deleted_tenant_has_no_stack(self, scene: Scene) -> None:
        scene.has()
        scene.api.delete(ACME)
        scene.api.begin()
        scene.api.succeed()
        shown = lines(scene.berth("tenant", "acme", "--live", exits=ExitCode.OK).stdout)
        assert shown[-1] == "The tenant has no stack, and its records say so, too."

    def test_while_an_operation_runs(self, scene: Scene) -> None:
        self.has_stack(scene)
        scene.api.upgrade(ACME, NEXT_VERSION)
        scene.api.begin()
        shown = lines(scene.berth("tenant", "acme", "--live", exits=ExitCode.OK).stdout)
        assert shown[-1] == "The tenant is being changed. Until that has ended, its records and its stack may differ."

    def test_the_records_are_shown_even_if_cloudformation_throttles(self, scene: Scene) -> None:
        self.has_stack(scene)
        scene.api.world.stacks.throttled_calls = 1_000
        result = scene.berth("tenant", "acme", "--live", exits=ExitCode.NOT_READY)
        assert "state:      READY\n" in result.stdout
        assert "Rate exceeded" in result.stderr
