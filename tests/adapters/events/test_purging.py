"""Everything that a deleted tenant has left behind is deleted, in steps that can be interrupted, and nothing else."""

from __future__ import annotations

import importlib
import json
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.adapters.dynamodb import event_keys
from orchestrator.adapters.dynamodb.deliveries import DynamoDeliveries
from orchestrator.adapters.dynamodb.event_purges import DynamoRemains
from orchestrator.adapters.stepfunctions import StepFunctionsPurges
from orchestrator.common.errors import InvalidRequest
from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.authorising import Standing
from orchestrator.events.delivery import transitions
from orchestrator.events.delivery.records import (
    API_ORIGIN,
    Attempt,
    Delivery,
    DeliveryEntry,
    DeliveryRef,
    DeliveryState,
)
from orchestrator.events.plans import Plan
from orchestrator.events.purging import (
    ListingPurges,
    LookAgain,
    MoreToPurge,
    NotToPurge,
    Purged,
    PurgeStatus,
    is_stuck,
    status_of,
)
from orchestrator.events.records import Deleted, EventSettings, Purge, TenantEpoch, Used
from stacks.common.function_code import module_of
from tests.adapters.conftest import TABLE, client
from tests.adapters.events.functions import EventFunctions
from tests.adapters.events.lives import BUCKET, EVENTS_TABLE, LARGE, SETTLE, SMALL, Lives
from tests.fakes import ACME, NOON
from tests.fakes.events import ACME_LIFE, NEXT_INCARNATION
from tests.present import present

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions import SFNClient

MINUTE = timedelta(minutes=1)
AARON = TenantId.parse("aaron")


def ended(lives: Lives) -> EventSettings:
    """A tenant that has used everything, and was deleted."""
    settings = lives.settings()
    lives.key(settings)
    source, form = lives.source(settings), lives.form(settings)
    standing = Standing(settings, 0, "2026-11")
    for event in (SMALL, LARGE, replace(SMALL, source_id=source), replace(SMALL, form_id=form)):
        for _ in range(10):
            lives.accept(standing, event)
    for origin in (API_ORIGIN, source, form):
        lives.connection(settings, origin=origin)
    deleted = lives.connection(settings, origin=source)
    lives.connections.delete(settings.life, deleted.connection_id)
    lives.usage.add(settings.life, "2026-11", Used(40), b"a batch", NOON)
    lives.usage.set_hour(settings.life, NOON, 40, NOON)
    lives.usage.set_billed_until(settings.life, NOON)
    lives.delete()
    lives.finding.find()
    return settings


class TestFinding:
    def test_a_living_tenant_is_left_alone(self, lives: Lives) -> None:
        lives.settings()
        found = lives.finding.find()
        assert (found.ended, found.started) == ([], [])

    def test_a_withdrawn_tenant_is_left_alone_because_its_delete_may_be_refused(self, lives: Lives) -> None:
        settings = lives.settings()
        lives.tenants.withdrawn.add(ACME)
        assert lives.finding.find().ended == []
        lives.tenants.withdrawn.clear()
        assert lives.configuring.settings_of(ACME) == settings

    @pytest.mark.parametrize("damage", [{"plan": {"S": "gold"}}, {"shards": {"S": "many"}}, {"created_at": {"N": "1"}}])
    def test_settings_that_cannot_be_read_are_reported_and_stop_no_other_purge(
        self, lives: Lives, damage: dict[str, Any]
    ) -> None:
        settings = lives.settings()
        row = lives.table._get(event_keys.settings_key(ACME))
        assert row
        # The damaged row is listed first.
        place = {**event_keys.settings_key(AARON), "ListingSort": {"S": AARON.value}}
        lives.dynamodb.put_item(TableName=TABLE, Item={**row, **place, **damage})
        lives.delete()
        found = lives.finding.find()
        assert found.ended == found.started == [settings.life]
        assert [each.row for each in found.unreadable] == ["EVENTS#aaron / CONFIG#main"]

    def test_a_purge_that_cannot_be_read_is_reported_and_stops_no_other_purge(self, lives: Lives) -> None:
        settings = ended(lives)
        (row,) = (row for row in lives.rows() if row["sk"]["S"].startswith("PURGE#"))
        bad = {"sk": {"S": "PURGE#0"}, "requested_at": {"S": "yesterday"}, "ListingSort": {"S": "0"}}
        lives.dynamodb.put_item(TableName=TABLE, Item={**row, **bad})
        found = lives.finding.find()
        assert [each.row for each in found.unreadable] == ["EVENTS#acme / PURGE#0"]
        assert [each.life for each in ListingPurges(purges=lives.purges).purges()] == [settings.life]

    def test_a_deleted_tenant_is_purged(self, lives: Lives) -> None:
        settings = lives.settings()
        lives.delete()
        found = lives.finding.find()
        assert found.ended == found.started == [settings.life]
        assert lives.table.settings(ACME) is None

    def test_a_tenant_that_was_created_again_is_purged_of_its_predecessor(self, lives: Lives) -> None:
        settings = lives.settings()
        lives.delete()
        lives.create(NEXT_INCARNATION)
        assert lives.finding.find().ended == [settings.life]

    def test_new_settings_of_a_successor_request_the_purge_too(self, lives: Lives) -> None:
        settings = lives.settings()
        lives.delete()
        lives.create(NEXT_INCARNATION)
        successor = lives.settings()
        found = lives.finding.find()
        assert (found.ended, found.started) == ([], [settings.life])
        assert lives.table.settings(ACME) == successor

    def test_settings_that_are_replaced_in_between_stay(self, lives: Lives) -> None:
        settings = lives.settings()
        lives.delete()
        lives.create(NEXT_INCARNATION)
        successor = lives.settings()
        assert not lives.purges.end(settings.life, NOON)
        assert lives.table.settings(ACME) == successor

    def test_only_the_tenant_that_was_just_deleted_is_looked_at(self, lives: Lives) -> None:
        settings = lives.settings()
        lives.delete()
        assert lives.finding.find(ACME).started == [settings.life]
        assert lives.finding.find(ACME).started == []

    def test_a_purge_that_is_worked_on_is_not_started_again(self, lives: Lives) -> None:
        settings = ended(lives)
        lives.step(settings.life)
        lives.wait(29 * MINUTE)
        assert lives.finding.find().started == []

    def test_a_purge_that_nobody_works_on_is_started_again_in_the_next_hour(self, lives: Lives) -> None:
        settings = ended(lives)
        lives.step(settings.life)
        lives.wait(31 * MINUTE)
        assert lives.finding.find().started == []
        lives.wait(30 * MINUTE)
        assert lives.finding.find().started == [settings.life]

    def test_a_purge_that_failed_is_started_again_in_the_next_hour(self, lives: Lives) -> None:
        settings = ended(lives)
        lives.step(settings.life)
        lives.wait(59 * MINUTE)
        lives.purges.begin_step(settings.life, lives.clock.now())
        lives.purging().record_failure(settings.life, "AccessDenied")
        lives.wait(MINUTE)
        assert lives.finding.find().started == [settings.life]

    def test_a_purge_that_is_old_is_stuck(self, lives: Lives) -> None:
        ended(lives)
        lives.wait(timedelta(hours=6))
        assert lives.finding.find().stuck == 1


class TestPurging:
    def test_nothing_is_left_and_the_record_says_how_much_there_was(self, lives: Lives) -> None:
        settings = ended(lives)
        assert lives.traces(settings.life.epoch)
        began = lives.clock.now()
        lives.purge(settings.life)
        assert lives.traces(settings.life.epoch) == []
        purge = present(lives.purges.purge(settings.life))
        # A key, a source and a form have two rows each, of which the listed one is counted. Their creation, and that of
        # the settings, is on record.
        assert purge.deleted == Deleted(events=40, objects=10, rows=19)
        assert present(purge.finished_at) - began >= SETTLE

    def test_deliveries_and_attempts_go_with_their_events(self, lives: Lives) -> None:
        settings = lives.settings()
        standing, now = Standing(settings, 0, "2026-11"), lives.clock.now()
        deliveries = DynamoDeliveries(lives.dynamodb, EVENTS_TABLE)
        parked, failed, resent = (DeliveryRef(settings.life, lives.accept(standing, SMALL), "conn_1") for _ in range(3))
        assert deliveries.apply(transitions.changed(None, Delivery(parked, DeliveryState.PARKED, 0, now, now)))
        ended = Delivery(failed, DeliveryState.FAILED, 1, now, now, ended_at=now)
        attempt = Attempt(failed, 1, now, delivered=False, code=500, milliseconds=1, text="no", expires_at=now)
        event = present(deliveries.event(settings.life, failed.event_id))
        assert deliveries.apply(transitions.tried(event, None, ended, attempt))
        event = present(deliveries.event(settings.life, resent.event_id))
        entry = DeliveryEntry(DeliveryState.DELIVERED, 1, now)
        assert deliveries.apply(transitions.delivered_at_first(event, "conn_1", entry))
        again = Delivery(resent, DeliveryState.RETRYING, 1, now, now, due=now, resend=True)
        assert deliveries.apply(transitions.changed(None, again))
        lives.delete()
        lives.finding.find()
        lives.purge(settings.life)
        assert lives.traces(settings.life.epoch) == []

    def test_a_delivery_that_is_written_before_a_step_dies_is_deleted_although_its_event_is_gone(
        self, lives: Lives, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings = lives.settings()
        now, deliveries = lives.clock.now(), DynamoDeliveries(lives.dynamodb, EVENTS_TABLE)
        late = DeliveryRef(settings.life, lives.accept(Standing(settings, 0, "2026-11"), SMALL), "conn_1")
        lives.delete()
        lives.finding.find()
        delete_events = DynamoRemains.delete_events

        def written_late(remains: DynamoRemains, *which: Any) -> int:
            assert deliveries.apply(transitions.changed(None, Delivery(late, DeliveryState.PARKED, 0, now, now)))
            delete_events(remains, *which)
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(DynamoRemains, "delete_events", written_late)
            with pytest.raises(KeyboardInterrupt):
                lives.step(settings.life)
        lives.purge(settings.life)
        assert lives.traces(settings.life.epoch) == []
        assert present(lives.purges.purge(settings.life)).last_events == ()

    def test_a_purge_is_finished_only_when_nothing_was_found_for_a_quarter_of_an_hour(self, lives: Lives) -> None:
        settings = ended(lives)
        assert lives.step(settings.life) == LookAgain(900)
        lives.wait(10 * MINUTE)
        assert lives.step(settings.life) == LookAgain(300)
        lives.accept(Standing(settings, 0, "2026-11"))
        lives.wait(5 * MINUTE)
        assert lives.step(settings.life) == LookAgain(900)
        lives.wait(15 * MINUTE)
        assert lives.step(settings.life) == Purged()
        assert lives.traces(settings.life.epoch) == []

    def test_a_step_ends_when_its_time_is_over_and_the_next_goes_on(self, lives: Lives) -> None:
        settings = ended(lives)
        outcomes = []
        while isinstance(outcome := lives.step(settings.life, pages=1), MoreToPurge):
            outcomes.append(outcome)
        assert len(outcomes) > 3
        assert lives.traces(settings.life.epoch) == []
        assert present(lives.purges.purge(settings.life)).deleted == Deleted(events=40, objects=10, rows=19)

    def test_a_purge_that_was_interrupted_after_it_was_clean_is_not_finished_too_early(self, lives: Lives) -> None:
        settings = ended(lives)
        assert lives.step(settings.life) == LookAgain(900)
        for _ in range(2):
            for _ in range(30):
                lives.accept(Standing(settings, 0, "2026-11"))
            lives.wait(15 * MINUTE)
            assert isinstance(lives.step(settings.life, pages=1), MoreToPurge)
        assert lives.step(settings.life) == LookAgain(900)

    def test_a_finished_purge_stays_as_it_is(self, lives: Lives) -> None:
        settings = ended(lives)
        lives.purge(settings.life)
        finished = lives.purges.purge(settings.life)
        lives.wait(MINUTE)
        assert lives.step(settings.life) == Purged()
        lives.purging().record_failure(settings.life, "too late")
        assert lives.purges.purge(settings.life) == finished

    def test_the_current_epoch_of_a_tenant_is_never_purged(self, lives: Lives) -> None:
        settings = lives.settings()
        lives.key(settings)
        lives.accept(Standing(settings, 0, "2026-11"))
        before = lives.traces(settings.life.epoch)
        assert isinstance(lives.step(settings.life), NotToPurge)
        # Not even with a forged request.
        row = {**event_keys.purge_key(settings.life), "tenant_id": {"S": "acme"}, "epoch": {"S": settings.life.epoch}}
        lives.dynamodb.put_item(TableName=TABLE, Item=row | {"requested_at": {"S": "2026-11-16T12:00:00.000Z"}})
        assert isinstance(lives.step(settings.life), NotToPurge)
        assert lives.traces(settings.life.epoch) == before

    def test_an_epoch_that_begins_like_another_one_is_not_touched(self, lives: Lives) -> None:
        settings = ended(lives)
        longer = TenantEpoch(ACME, settings.life.epoch + "0")
        lives.accept(Standing(replace(settings, life=longer), 0, "2026-11"), LARGE)
        before = lives.traces(longer.epoch)
        assert len(before) == 2
        lives.purge(settings.life)
        assert lives.traces(longer.epoch) == before

    def test_a_source_that_a_listing_names_wrongly_is_not_touched(self, lives: Lives) -> None:
        settings = ended(lives)
        lives.create(NEXT_INCARNATION)
        successor = lives.settings()
        source = lives.source(successor)
        key = event_keys.listed_source_key(settings.life, source)
        lives.dynamodb.put_item(TableName=TABLE, Item=key)
        lives.purge(settings.life)
        assert lives.table.source(source)

    def test_a_connection_whose_pointer_is_lost_is_purged_and_a_successors_is_not(self, lives: Lives) -> None:
        settings = lives.settings()
        lost = lives.connection(settings)
        lives.dynamodb.delete_item(TableName=TABLE, Key=event_keys.pointer_key(settings.life, lost.connection_id))
        lives.delete()
        lives.create(NEXT_INCARNATION)
        successor = lives.settings()
        kept = lives.connection(successor)
        lives.purge(settings.life)
        assert lives.traces(settings.life.epoch) == []
        assert lives.connections.list(successor.life) == [kept]

    def test_a_failure_is_on_record_until_the_purge_goes_on(self, lives: Lives) -> None:
        settings = ended(lives)
        lives.purging().record_failure(settings.life, "AccessDenied: no")
        purge = present(lives.purges.purge(settings.life))
        assert (purge.failure, status_of(purge, lives.clock.now())) == ("AccessDenied: no", PurgeStatus.FAILED)
        lives.step(settings.life)
        assert present(lives.purges.purge(settings.life)).failure is None

    def test_open_purges_are_listed_before_those_that_are_finished(self, lives: Lives) -> None:
        first = ended(lives)
        lives.purge(first.life)
        lives.create(NEXT_INCARNATION)
        second = lives.settings()
        lives.delete()
        lives.finding.find()
        assert [each.life for each in lives.purges.open_purges()] == [second.life]
        assert [each.life for each in lives.purges.finished_purges(5)] == [first.life]


@pytest.mark.parametrize(
    ("purge", "status", "stuck"),
    [
        (Purge(ACME_LIFE, NOON), PurgeStatus.WAITING, False),
        (Purge(ACME_LIFE, NOON, heartbeat_at=NOON), PurgeStatus.RUNNING, False),
        (Purge(ACME_LIFE, NOON, heartbeat_at=NOON - 30 * MINUTE), PurgeStatus.WAITING, False),
        (Purge(ACME_LIFE, NOON, heartbeat_at=NOON, failed_at=NOON), PurgeStatus.FAILED, False),
        (Purge(ACME_LIFE, NOON - timedelta(hours=6), heartbeat_at=NOON), PurgeStatus.RUNNING, True),
        (Purge(ACME_LIFE, NOON - timedelta(hours=6), finished_at=NOON), PurgeStatus.DONE, False),
    ],
)
def test_the_status_of_a_purge(purge: Purge, status: PurgeStatus, stuck: bool) -> None:
    assert (status_of(purge, NOON), is_stuck(purge, NOON)) == (status, stuck)


# The functions


class FakeContext:
    def get_remaining_time_in_millis(self) -> int:
        return 300_000


class TestTheFunctions:
    @pytest.fixture
    def machine(self, event_functions: EventFunctions, monkeypatch: pytest.MonkeyPatch) -> str:
        assert event_functions
        sfn: SFNClient = client("stepfunctions")
        definition = json.dumps({"StartAt": "Done", "States": {"Done": {"Type": "Succeed"}}})
        role = "arn:aws:iam::123456789012:role/machine"
        arn = sfn.create_state_machine(name="purge", definition=definition, roleArn=role)["stateMachineArn"]
        monkeypatch.setenv("BERTH_PURGE_MACHINE", arn)
        monkeypatch.setenv("BERTH_PURGE_SETTLE_SECONDS", "900")
        return arn

    def call(self, name: str, event: object) -> Any:
        return importlib.import_module(module_of(name)).handler(event, FakeContext())

    @pytest.mark.parametrize(
        "event",
        [
            {"detail": {"input": '{"tenantId": "acme"}'}},
            {"detail": {"input": "not JSON"}},
            {"detail": {"input": '{"tenantId": 7}'}},
            {"detail": {}},
            {"source": "aws.events"},
            None,
        ],
    )
    def test_find_purges_starts_the_machine_of_a_deleted_tenant(
        self, event_functions: EventFunctions, machine: str, event: object
    ) -> None:
        event_functions.key()
        key = {"pk": {"S": "TENANT_ID#acme"}, "sk": {"S": "METADATA"}}
        event_functions.dynamodb.delete_item(TableName=TABLE, Key=key)
        self.call("find_purges", event)
        (execution,) = client("stepfunctions").list_executions(stateMachineArn=machine)["executions"]
        (row,) = (row for row in event_functions.rows if row["sk"]["S"].startswith("PURGE#"))
        assert execution["name"] == f"acme-{row['epoch']['S']}-20261116T12"

    def test_purge_events_returns_the_outcome(self, event_functions: EventFunctions, machine: str) -> None:
        assert machine
        event_functions.key()
        event_functions.dynamodb.delete_item(
            TableName=TABLE, Key={"pk": {"S": "TENANT_ID#acme"}, "sk": {"S": "METADATA"}}
        )
        self.call("find_purges", None)
        (row,) = (row for row in event_functions.rows if row["sk"]["S"].startswith("PURGE#"))
        given = {"tenantId": "acme", "epoch": row["epoch"]["S"], "execution": "arn"}
        assert self.call("purge_events", given) == {"outcome": "lookAgain", "seconds": 900}
        assert self.call("purge_events", {**given, "failure": {"Error": "E"}}) == {"outcome": "recorded"}
        event_functions.clock.advance(SETTLE)
        assert self.call("purge_events", given) == {"outcome": "purged"}
        assert event_functions.key_rows == []

    @pytest.mark.parametrize("event", [None, {}, {"tenantId": "acme"}, {"tenantId": "a b", "epoch": "e"}])
    def test_purge_events_refuses_an_event_that_is_not_the_machines(
        self, event_functions: EventFunctions, machine: str, event: object
    ) -> None:
        assert event_functions
        assert machine
        with pytest.raises(InvalidRequest):
            self.call("purge_events", event)

    def test_the_machine_is_started_once_per_hour(self, event_functions: EventFunctions, machine: str) -> None:
        assert event_functions
        executions = StepFunctionsPurges(lambda: client("stepfunctions"), machine)
        client("stepfunctions").start_execution(stateMachineArn=machine, name=f"acme-{ACME_LIFE.epoch}-20261116T12")
        assert not executions.start(ACME_LIFE, NOON)
        assert executions.start(ACME_LIFE, NOON + timedelta(hours=1))


def test_objects_of_every_plan_that_the_tenant_had_are_purged(lives: Lives) -> None:
    for plan in Plan:
        settings = lives.settings(plan=plan)
        lives.accept(Standing(settings, 0, "2026-11"), LARGE)
    assert [key.partition("/")[0] for key in lives.objects()] == ["30d", "8d", "8d", "90d"]
    lives.delete()
    lives.finding.find()
    lives.purge(settings.life)
    assert lives.objects() == []


def test_objects_of_a_prefix_are_deleted_page_by_page(lives: Lives) -> None:
    for number in range(1005):
        lives.s3.put_object(Bucket=BUCKET, Key=f"acme/e1/{number}", Body=b"")
    lives.s3.put_object(Bucket=BUCKET, Key="acme/e10/1", Body=b"")
    assert [lives.contents.delete_some("acme/e1/") for _ in range(3)] == [1000, 5, 0]
    assert lives.objects() == ["acme/e10/1"]
