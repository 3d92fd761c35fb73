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


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]


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
