"""Connections as dispatch, deliveries and the sweep read and change them, on DynamoDB by moto."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.adapters.dynamodb import event_keys
from orchestrator.adapters.dynamodb.connection_rows import connection_from, connection_row, key_of, pointer_row
from orchestrator.adapters.dynamodb.connections import DynamoConnectionChanges, DynamoConnections
from orchestrator.adapters.dynamodb.event_changes import DynamoChanges
from orchestrator.adapters.dynamodb.keys import LISTING_INDEX
from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.changes import BERTH, Recorder
from orchestrator.events.delivery import troubles as troubles_module
from orchestrator.events.delivery.records import (
    API_ORIGIN,
    Connection,
    ConnectionStatus,
    Destination,
    DestinationKind,
    Health,
)
from orchestrator.events.delivery.retries import RetrySchedule
from orchestrator.events.delivery.troubles import ListingTroubles, Trouble, Troubles
from orchestrator.events.records import TenantEpoch, UnreadableRow
from tests.adapters.conftest import TABLE
from tests.adapters.events.lives import EVENTS_TABLE
from tests.fakes import NOON, FakeClock
from tests.fakes.events import ACME_LIFE, connection
from tests.present import present

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

SOURCE = "src_" + "1" * 24
FORM = "form_" + "2" * 24
GLOBEX_LIFE = TenantEpoch(TenantId.parse("globex"), "77aa0123")
SUCCESSOR = replace(ACME_LIFE, epoch="88bb4567")
MINUTE = timedelta(minutes=1)
WEBHOOK = Destination(DestinationKind.WEBHOOK, "https://hooks.example.com/in")


class World:
    def __init__(self, dynamodb: DynamoDBClient) -> None:
        self.dynamodb = dynamodb
        self.unreadable: list[UnreadableRow] = []
        self.connections = DynamoConnections(dynamodb, TABLE, report=self.unreadable.append)
        self.changes = DynamoConnectionChanges(
            dynamodb, TABLE, events_table=EVENTS_TABLE, recorder=Recorder(BERTH, FakeClock())
        )

    def put(self, **changes: Any) -> Connection:
        record = connection(**changes)
        self.dynamodb.put_item(TableName=TABLE, Item={**key_of(record), **connection_row(record)})
        pointer = event_keys.pointer_key(record.life, record.connection_id)
        self.dynamodb.put_item(TableName=TABLE, Item={**pointer, **pointer_row(record)})
        return record

    def read(self, record: Connection) -> Connection:
        return present(self.connections.connection(record.life, record.origin, record.connection_id))

    def ids(self, life: TenantEpoch, origin: str) -> set[str]:
        return {each.connection_id for each in self.connections.of_origin(life, origin)}

    def care(self) -> set[str]:
        found = list(self.connections.needing_care(lambda _each: True))
        return {each.connection_id for each in found if isinstance(each, Connection)}

    def damage(self, record: Connection) -> None:
        self.dynamodb.update_item(
            TableName=TABLE,
            Key=key_of(record),
            UpdateExpression="SET destination = :nonsense",
            ExpressionAttributeValues={":nonsense": {"S": "pigeon"}},
        )


@pytest.fixture
def world(events_table: DynamoDBClient) -> World:
    return World(events_table)


FULL = {
    "origin": SOURCE,
    "destination": WEBHOOK,
    "filter": {"payload": {"total": {"$gte": 99.5}}},
    "transform": {"set": {"rate": 0.1}},
    "retry": RetrySchedule((timedelta(seconds=7), timedelta(hours=1))),
    "secret": b"\x00secret",
    "former_secret": b"\xffold",
    "former_secret_until": NOON + timedelta(hours=24),
    "status": ConnectionStatus.DISABLED,
    "reason": "410",
    "revision": 7,
    "health": Health(NOON, NOON + MINUTE, NOON + 2 * MINUTE, 3),
    "draining": True,
    "found_empty_at": NOON + 3 * MINUTE,
    "enabled_at": NOON + 4 * MINUTE,
}


@pytest.mark.parametrize("changes", [{}, FULL], ids=["default", "everything set"])
def test_a_row_reads_as_the_record_that_was_written(changes: dict[str, Any]) -> None:
    record = connection(**changes)
    assert connection_from(connection_row(record)) == record


def test_connections_of_an_origin_are_found_by_one_request(world: World) -> None:
    ids = {world.put(origin=SOURCE, connection_id=f"conn_{number:024x}").connection_id for number in range(20)}
    world.put(origin=API_ORIGIN)
    world.put(origin=FORM)
    requests: list[str] = []
    world.dynamodb.meta.events.register("before-call.dynamodb", lambda model, **_: requests.append(model.name))
    assert world.ids(ACME_LIFE, SOURCE) == ids
    assert requests == ["Query"]


def test_each_origin_has_its_own_connections(world: World) -> None:
    for number, origin in enumerate((API_ORIGIN, SOURCE, FORM)):
        world.put(origin=origin, connection_id=f"conn_{number:024x}")
    for number, origin in enumerate((API_ORIGIN, SOURCE, FORM)):
        assert world.ids(ACME_LIFE, origin) == {f"conn_{number:024x}"}


@pytest.mark.parametrize("origin", [API_ORIGIN, SOURCE, FORM])
@pytest.mark.parametrize("stranger", [GLOBEX_LIFE, SUCCESSOR], ids=["another tenant", "a successor"])
def test_another_tenants_origin_has_no_connections(world: World, origin: str, stranger: TenantEpoch) -> None:
    record = world.put(origin=origin)
    assert world.connections.of_origin(stranger, origin) == []
    assert world.connections.connection(stranger, origin, record.connection_id) is None


def test_a_source_row_is_no_connection(world: World) -> None:
    world.dynamodb.put_item(TableName=TABLE, Item=event_keys.source_key(SOURCE))
    record = world.put(origin=SOURCE)
    assert world.ids(ACME_LIFE, SOURCE) == {record.connection_id}


def test_a_deleted_connection_is_found_while_its_row_is_there(world: World) -> None:
    record = world.put(status=ConnectionStatus.DELETED, draining=True)
    assert world.read(record).status is ConnectionStatus.DELETED
    assert world.ids(ACME_LIFE, API_ORIGIN) == {record.connection_id}


def test_a_damaged_row_stops_nobody_else_and_is_reported(world: World) -> None:
    broken = world.put(connection_id="conn_" + "b" * 24, status=ConnectionStatus.PAUSED)
    healthy = world.put(status=ConnectionStatus.PAUSED)
    world.damage(broken)
    row = UnreadableRow(f"SRC#api#{ACME_LIFE} / CONN#{broken.connection_id}")
    assert set(world.connections.of_origin(ACME_LIFE, API_ORIGIN)) - {row} == {world.read(healthy)}
    assert world.connections.connection(ACME_LIFE, API_ORIGIN, broken.connection_id) == row
    assert world.unreadable == [row] * 2
    assert world.care() == {healthy.connection_id}
    assert len(list(world.connections.needing_care(lambda _each: True))) == 2


@pytest.mark.parametrize(
    "changes",
    [
        {"status": ConnectionStatus.PAUSED},
        {"status": ConnectionStatus.DISABLED, "draining": True},
        {"status": ConnectionStatus.DELETED},
        {"draining": True},
        {"health": Health(failing_since=NOON, open_until=NOON + MINUTE, opened=1)},
    ],
    ids=["paused", "disabled and draining", "deleted", "draining", "breaker open"],
)
def test_a_connection_with_parked_deliveries_is_looked_after(world: World, changes: dict[str, Any]) -> None:
    record = world.put(**changes)
    assert world.care() == {record.connection_id}


@pytest.mark.parametrize(
    "changes",
    [{}, {"health": Health(failing_since=NOON, opened=1)}, {"status": ConnectionStatus.DISABLED}],
    ids=["healthy", "failing", "disabled and drained"],
)
def test_all_others_are_not_listed(world: World, changes: dict[str, Any]) -> None:
    record = world.put(**changes)
    assert not record.needs_care
    listed = world.dynamodb.query(
        TableName=TABLE,
        IndexName=LISTING_INDEX,
        KeyConditionExpression="ListingKey = :key",
        ExpressionAttributeValues={":key": {"S": event_keys.LISTED_CARE}},
    )
    assert listed["Items"] == []


def test_a_disabled_connection_stays_listed_after_the_sweep_is_done_with_it(world: World) -> None:
    record = world.put()
    assert world.changes.disable(record, "410", NOON)
    disabled = world.read(record)
    assert (world.care(), list(world.connections.disabled(5))) == ({record.connection_id}, [])
    assert list(world.connections.cared_for(5)) == [disabled]
    assert world.changes.set_drained(disabled, found_empty_at=None, draining=False)
    drained = world.read(record)
    assert (world.care(), list(world.connections.disabled(5))) == (set(), [drained])
    assert list(world.connections.cared_for(5)) == []


def test_troubles_are_listed_with_the_damaged_and_the_disabled_first(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    paused = world.put(connection_id="conn_" + "1" * 24, status=ConnectionStatus.PAUSED)
    failing = world.put(connection_id="conn_" + "2" * 24, health=Health(failing_since=NOON, open_until=NOON, opened=1))
    draining = world.put(connection_id="conn_" + "3" * 24, status=ConnectionStatus.DISABLED, draining=True)
    disabled = world.put(connection_id="conn_" + "4" * 24, status=ConnectionStatus.DISABLED)
    world.put(connection_id="conn_" + "5" * 24, draining=True)
    world.put(connection_id="conn_" + "6" * 24, status=ConnectionStatus.DELETED, draining=True)
    damaged = world.put(connection_id="conn_" + "7" * 24, status=ConnectionStatus.DISABLED)
    world.damage(damaged)
    listing = ListingTroubles(connections=world.connections)
    troubles = listing.list()
    assert troubles.more is False
    assert {(each.connection_id, trouble) for each, trouble in troubles.connections} == {
        (damaged.connection_id, Trouble.DAMAGED),
        (disabled.connection_id, Trouble.DISABLED),
        (draining.connection_id, Trouble.DISABLED),
        (failing.connection_id, Trouble.FAILING),
        (paused.connection_id, Trouble.PAUSED),
    }
    in_order = [trouble for _, trouble in troubles.connections]
    assert in_order == [Trouble.DAMAGED, Trouble.DISABLED, Trouble.DISABLED, Trouble.FAILING, Trouble.PAUSED]
    monkeypatch.setattr(troubles_module, "MAX_SHOWN", 3)
    some = listing.list()
    assert (len(some.connections), some.more) == (3, True)


@pytest.mark.parametrize("status", [ConnectionStatus.PAUSED, ConnectionStatus.DISABLED])
def test_a_damaged_connection_is_shown_however_many_others_are_listed_before_it(
    world: World, monkeypatch: pytest.MonkeyPatch, status: ConnectionStatus
) -> None:
    for number in range(8):
        world.put(connection_id=f"conn_{number:024}", status=status)
    damaged = world.put(connection_id="conn_" + "9" * 24, status=status)
    world.damage(damaged)
    monkeypatch.setattr(troubles_module, "MAX_SHOWN", 2)
    troubles = ListingTroubles(connections=world.connections).list()
    assert (troubles.connections[0][0].connection_id, troubles.connections[0][1]) == (
        damaged.connection_id,
        Trouble.DAMAGED,
    )
    assert (len(troubles.connections), troubles.more) == (2, True)


def test_a_bounded_number_of_connections_is_read_for_troubles(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        world.put(connection_id=f"conn_{number:024}", draining=True)
    monkeypatch.setattr(troubles_module, "MAX_READ", 3)
    assert ListingTroubles(connections=world.connections).list() == Troubles([], more=True)
    monkeypatch.setattr(troubles_module, "MAX_READ", 4)
    assert ListingTroubles(connections=world.connections).list() == Troubles([], more=False)


def test_entries_of_the_index_are_checked_against_their_rows(world: World) -> None:
    record = world.put()
    listed = {"ListingKey": {"S": event_keys.LISTED_CARE}, "ListingSort": {"S": "late"}}
    world.dynamodb.put_item(TableName=TABLE, Item={**key_of(record), **connection_row(record), **listed})
    assert world.care() == set()


def test_health_is_written_and_lists_the_connection_while_its_breaker_is_open(world: World) -> None:
    record = world.put()
    opened = Health(failing_since=NOON, open_until=NOON + MINUTE, opened=1)
    assert world.changes.set_health(record, opened, draining=False)
    broken = world.read(record)
    assert (broken.health, broken.revision, world.care()) == (opened, 0, {record.connection_id})
    assert world.changes.set_health(broken, Health(), draining=True)
    closed = world.read(record)
    assert (closed.health, closed.draining, world.care()) == (Health(), True, {record.connection_id})
    assert world.changes.set_drained(closed, found_empty_at=NOON, draining=True)
    assert world.changes.set_drained(world.read(record), found_empty_at=None, draining=False)
    assert world.read(record) == record
    assert world.care() == set()


def test_a_write_of_what_is_there_already_costs_nothing(world: World) -> None:
    record = world.put()
    requests: list[str] = []
    world.dynamodb.meta.events.register("before-call.dynamodb", lambda model, **_: requests.append(model.name))
    assert world.changes.set_health(record, record.health, draining=False)
    assert requests == []


def test_health_makes_the_sweep_look_twice_again(world: World) -> None:
    record = world.put(draining=True, found_empty_at=NOON)
    assert world.changes.set_health(record, Health(slow_since=NOON), draining=True)
    assert world.read(record).found_empty_at is None


def write(world: World, record: Connection, name: str) -> bool:
    match name:
        case "health":
            return world.changes.set_health(record, Health(slow_since=NOON), draining=False)
        case "disable":
            return world.changes.disable(record, "410", NOON)
        case "drained":
            return world.changes.set_drained(record, found_empty_at=NOON, draining=True)
        case _:
            return world.changes.remove(record)


@pytest.mark.parametrize("name", ["health", "disable", "drained", "remove"])
def test_a_write_is_refused_if_somebody_configured_the_connection_meanwhile(world: World, name: str) -> None:
    record = world.put()
    configured = world.put(name="other", revision=1)
    assert not write(world, record, name)
    assert world.read(record) == configured


@pytest.mark.parametrize("name", ["health", "disable", "drained"])
def test_a_write_is_refused_if_another_delivery_changed_the_health_meanwhile(world: World, name: str) -> None:
    record = world.put()
    failing = world.put(health=Health(failing_since=NOON))
    assert not write(world, record, name)
    assert world.read(record) == failing


@pytest.mark.parametrize("name", ["health", "disable", "drained", "remove"])
def test_a_write_makes_no_row_of_a_connection_that_is_gone(world: World, name: str) -> None:
    assert not write(world, connection(), name)
    assert world.dynamodb.scan(TableName=TABLE)["Items"] == []


def test_a_disabled_connection_says_why_drains_and_is_on_record(world: World) -> None:
    record = world.put(health=Health(NOON, None, NOON + MINUTE, 4), destination=WEBHOOK)
    at = NOON + 2 * MINUTE
    assert world.changes.disable(record, "The receiver answered 410 Gone.", at)
    disabled = world.read(record)
    assert (disabled.status, disabled.reason) == (ConnectionStatus.DISABLED, "The receiver answered 410 Gone.")
    assert (disabled.draining, disabled.revision, disabled.health.open_until) == (True, 1, None)
    (change,), _ = DynamoChanges(world.dynamodb, EVENTS_TABLE).changes(ACME_LIFE, after=None, limit=10)
    assert (change.kind, change.by, change.at, change.subject) == (
        "connection-disabled",
        "berth",
        at,
        record.connection_id,
    )
    assert (change.before["status"], change.after["status"]) == ("active", "disabled")
    assert change.after["reason"] == "The receiver answered 410 Gone."


def test_a_removed_connection_leaves_no_row(world: World) -> None:
    record = world.put(status=ConnectionStatus.DELETED)
    assert world.changes.remove(record)
    assert world.dynamodb.scan(TableName=TABLE)["Items"] == []
