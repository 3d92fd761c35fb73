"""`berth events usage`, `berth events purges` and `berth doctor`, and their routes, against the functions."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from orchestrator.adapters.dynamodb.event_purges import DynamoPurges
from orchestrator.adapters.dynamodb.event_usage_writes import DynamoUsageWrites
from orchestrator.cli.errors import ExitCode
from orchestrator.events.records import Deleted, TenantEpoch, Used
from tests.adapters.conftest import TABLE
from tests.adapters.events.functions import ADA, EventFunctions, http_event
from tests.adapters.events.test_configuration_commands import Commands, lines
from tests.fakes import ACME, NOON
from tests.unit.cli.conftest import FakeControlPlane


@pytest.fixture
def commands(event_functions: EventFunctions) -> Commands:
    event_functions.key()
    return Commands(event_functions)


def life_of(functions: EventFunctions) -> TenantEpoch:
    (row,) = (row for row in functions.rows if row["sk"]["S"] == "CONFIG#main")
    return TenantEpoch(ACME, row["epoch"]["S"])


class TestUsage:
    def test_the_count_the_limit_and_the_bill_are_shown(
        self, commands: Commands, event_functions: EventFunctions
    ) -> None:
        usage, life = DynamoUsageWrites(event_functions.dynamodb, TABLE), life_of(event_functions)
        usage.add(life, "2026-11", Used(1234), b"a batch", NOON)
        usage.set_hour(life, NOON, 1200, NOON)
        usage.set_billed_until(life, NOON + timedelta(hours=1))
        assert lines(commands.berth("events", "usage", "acme").stdout) == [
            "tenant:     acme",
            "month:      2026-11",
            "events:     1,234 of 10,000 (plan free)",
            "billed:     1,200, counted until 2026-11-16 13:00:00 UTC",
        ]
        assert commands.json("events", "usage", "acme", "--month", "2026-10")["events"] == 0

    def test_a_bill_that_nothing_was_counted_for_says_so(self, commands: Commands) -> None:
        assert "billed:     0, no hour is counted yet\n" in commands.berth("events", "usage", "acme").stdout

    def test_a_wrong_month_is_answered_with_an_example(self, commands: Commands) -> None:
        result = commands.berth("events", "usage", "acme", "--month", "november")
        assert result.stderr == "Error: --month: 'november' is not valid. An example: 2026-11\n"

    @pytest.mark.parametrize("month", ["2026-13", "0000-01", "2026-1", "november", "2026-11\n"])
    def test_a_month_that_does_not_exist_is_refused(self, event_functions: EventFunctions, month: str) -> None:
        event_functions.key()
        assert event_functions.operate("GET /usage", query={"month": month}).status == 400

    def test_a_tenant_reads_its_own_usage(self, event_functions: EventFunctions) -> None:
        key = event_functions.key("read")
        answer = event_functions.ask("GET /usage", key)
        assert (answer.status, answer.body["tenant_id"], answer.body["billed_until"]) == (200, "acme", None)

    def test_a_key_that_only_writes_may_not(self, event_functions: EventFunctions) -> None:
        assert event_functions.ask("GET /usage", event_functions.key("write")).status == 403


class TestPurges:
    @pytest.fixture
    def purges(self, event_functions: EventFunctions, commands: Commands) -> DynamoPurges:
        """The tenant acme has ended."""
        assert commands
        purges = DynamoPurges(event_functions.dynamodb, TABLE)
        purges.end(life_of(event_functions), NOON)
        return purges

    def test_a_purge_is_shown_with_its_progress_and_its_failure(self, commands: Commands, purges: DynamoPurges) -> None:
        (purge,) = purges.open_purges()
        purges.record_step(purge.life, Deleted(events=1500, rows=7), None, NOON)
        purges.fail(purge.life, "AccessDenied: s3:DeleteObject", NOON)
        assert lines(commands.berth("events", "purges").stdout) == [
            "acme  failed  requested 2026-11-16 12:00:00 UTC  deleted 1,500 events, 7 rows",
            "  AccessDenied: s3:DeleteObject",
        ]
        (shown,) = commands.json("events", "purges")["purges"]
        assert (shown["status"], shown["stuck"], shown["epoch"]) == ("failed", False, purge.life.epoch)

    def test_a_finished_purge_stays_on_the_list(self, commands: Commands, purges: DynamoPurges) -> None:
        (purge,) = purges.open_purges()
        purges.record_step(purge.life, Deleted(), NOON, NOON)
        (purge,) = purges.open_purges()
        assert purges.finish(purge, NOON)
        (shown,) = commands.json("events", "purges")["purges"]
        assert (shown["status"], shown["finished_at"]) == ("done", "2026-11-16T12:00:00.000Z")
        result = commands.berth("events", "purges")
        assert lines(result.stdout) == [
            "acme  done  requested 2026-11-16 12:00:00 UTC  finished 2026-11-16 12:00:00 UTC  deleted nothing"
        ]
        assert result.stderr == ""

    def test_a_running_purge_says_how_long_it_takes(self, commands: Commands, purges: DynamoPurges) -> None:
        (purge,) = purges.open_purges()
        purges.record_step(purge.life, Deleted(rows=7), None, NOON)
        result = commands.berth("events", "purges")
        assert "acme  running  requested" in result.stdout
        assert "nothing more was found for 15 minutes" in result.stderr

    def test_the_list_is_for_operators(self, event_functions: EventFunctions, purges: DynamoPurges) -> None:
        assert purges
        assert event_functions.call("event_operators", http_event("GET /purges", by=ADA)).status == 200
        assert event_functions.ask("GET /purges", event_functions.key()).status == 400


class TestDoctor:
    def purges_of(self, commands: Commands) -> tuple[str, str, str | None]:
        return self.check(commands, "purges")

    def check(self, commands: Commands, name: str) -> tuple[str, str, str | None]:
        commands.scene.control_plane = FakeControlPlane(
            commands.scene.api, events=commands.api, events_status="UPDATE_COMPLETE"
        )
        shown = commands.scene.berth("doctor", "--json")
        (check,) = (each for each in json.loads(shown.stdout)["checks"] if each["name"] == name)
        return check["verdict"], check["detail"], check["advice"]

    def test_a_purge_in_time_is_no_problem(self, commands: Commands, event_functions: EventFunctions) -> None:
        DynamoPurges(event_functions.dynamodb, TABLE).end(life_of(event_functions), NOON)
        verdict, detail, _ = self.purges_of(commands)
        assert (verdict, detail) == ("ok", "1 purges of deleted tenants' events are open, none is stuck")

    def test_a_purge_that_is_stuck_is_a_problem(self, commands: Commands, event_functions: EventFunctions) -> None:
        DynamoPurges(event_functions.dynamodb, TABLE).end(life_of(event_functions), NOON)
        event_functions.clock.advance(timedelta(hours=6))
        verdict, detail, advice = self.purges_of(commands)
        assert verdict == "problem"
        assert detail.endswith("6 hours after the delete: acme")
        assert advice == "See why: berth events purges. docs/runbook.md has the entry PurgesStuck."

    def test_troubled_connections_are_shown_and_are_no_problem(self, commands: Commands) -> None:
        verdict, detail, _ = self.check(commands, "connections")
        assert (verdict, detail) == ("ok", "none is disabled, failing or paused")
        paused = commands.json("connections", "create", "acme", "--name", "Shop")["connection_id"]
        assert commands.berth("connections", "pause", "acme", paused).exit_code == ExitCode.OK
        verdict, detail, advice = self.check(commands, "connections")
        assert (verdict, detail) == ("ok", f"1 paused: acme {paused} (paused)")
        assert advice == "Tell the tenants. Why: berth connections show TENANT CONNECTION_ID"
        result = commands.scene.berth("doctor")
        assert result.exit_code == ExitCode.OK
        (line,) = (each for each in result.stdout.splitlines() if "1 paused" in each)
        assert line.startswith("ok ")

    def test_a_damaged_connection_is_a_problem_with_advice(
        self, commands: Commands, event_functions: EventFunctions
    ) -> None:
        damaged = commands.json("connections", "create", "acme", "--name", "Shop")["connection_id"]
        assert commands.berth("connections", "pause", "acme", damaged).exit_code == ExitCode.OK
        (row,) = (each for each in event_functions.rows if each["sk"]["S"] == f"CONN#{damaged}")
        event_functions.dynamodb.put_item(TableName=TABLE, Item={**row, "status": {"S": "odd"}})
        verdict, detail, advice = self.check(commands, "connections")
        assert (verdict, detail) == ("problem", f"1 damaged: acme {damaged} (damaged)")
        assert "UnreadableRows" in str(advice)

    def test_the_list_of_troubled_connections_is_for_operators(self, event_functions: EventFunctions) -> None:
        key = event_functions.key()
        assert event_functions.call("event_operators", http_event("GET /troubled-connections", by=ADA)).status == 200
        assert event_functions.ask("GET /troubled-connections", key).status == 400

    def test_an_events_api_that_does_not_answer_is_not_a_problem_of_purges(self, commands: Commands) -> None:
        commands.scene.control_plane = FakeControlPlane(commands.scene.api, events_status="UPDATE_COMPLETE")
        assert commands.scene.berth("doctor").exit_code == ExitCode.OK
