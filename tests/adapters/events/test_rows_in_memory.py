"""Replays and connections in memory and in DynamoDB: whatever is done, both say the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.adapters.dynamodb.connections import DynamoConnectionChanges
from orchestrator.adapters.dynamodb.replays import DynamoReplays
from orchestrator.events.changes import BERTH, Recorder
from orchestrator.events.delivery.records import API_ORIGIN, Connection, ConnectionStatus, Health
from orchestrator.events.delivery.replays import Replay, ReplayStatus, changed
from orchestrator.events.records import TenantEpoch
from tests.adapters.conftest import TABLE
from tests.adapters.events.lives import EVENTS_TABLE, Lives
from tests.fakes import NOON
from tests.fakes.connections import InMemoryConfiguration, InMemoryConnections
from tests.fakes.events import ACME_LIFE, OPERATOR, connection
from tests.fakes.replays import InMemoryReplays
from tests.present import present

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

SUCCESSOR = TenantEpoch(ACME_LIFE.tenant, "77aa0123")
HOUR = timedelta(hours=1)


@dataclass
class Both:
    """Every call goes to both, and they have to agree."""

    dynamodb: Any
    memory: Any

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            stored = getattr(self.dynamodb, name)(*args, **named)
            assert stored == getattr(self.memory, name)(*args, **named)
            return stored

        return call


@pytest.fixture
def replays(events_table: DynamoDBClient) -> Both:
    return Both(DynamoReplays(events_table, EVENTS_TABLE), InMemoryReplays())


@pytest.fixture
def configuration(lives: Lives) -> Both:
    """The configuration of connections, of a tenant that has none."""
    return Both(lives.table, InMemoryConfiguration(InMemoryConnections(), lives.settings()))


@pytest.fixture
def changes(lives: Lives, configuration: Both) -> Both:
    """The changes that deliveries make to the same connections."""
    recorder = Recorder(BERTH, lives.clock)
    stored = DynamoConnectionChanges(lives.dynamodb, TABLE, events_table=EVENTS_TABLE, recorder=recorder)
    return Both(stored, configuration.memory.rows)


def _replay(number: int, life: TenantEpoch = ACME_LIFE) -> Replay:
    replay_id = f"rpl_{number:024x}"
    return Replay(life, replay_id, API_ORIGIN, NOON - HOUR, NOON, NOON, OPERATOR, shards=1, revision=1)


def _running(replays: Both) -> list[Replay]:
    stored, remembered = list(replays.dynamodb.running()), list(replays.memory.running())
    assert stored == remembered
    return stored


def test_a_replay_is_written_only_over_what_was_read(replays: Both) -> None:
    first = _replay(1)
    moved = replace(first, looked_at=3, revision=2)
    paused = changed(moved, ReplayStatus.PAUSED, NOON)
    assert replays.write(None, first)
    assert not replays.write(None, first)
    assert replays.write(first, moved)
    assert not replays.write(first, changed(first, ReplayStatus.CANCELLED, NOON))
    assert _running(replays) == [moved]
    assert replays.write(moved, paused)
    assert replays.replay(ACME_LIFE, first.replay_id) == paused
    assert replays.replay(SUCCESSOR, first.replay_id) is None
    assert not replays.write(_replay(2), _replay(2))
    assert _running(replays) == []


def test_replays_are_listed_and_counted_by_tenant(replays: Both) -> None:
    mine = [_replay(number) for number in range(3)]
    for each in (*mine, _replay(7, SUCCESSOR)):
        replays.write(None, each)
    replays.write(mine[0], changed(mine[0], ReplayStatus.CANCELLED, NOON))
    assert replays.count_running(ACME_LIFE) == 2
    assert replays.count_since(ACME_LIFE, mine[1].replay_id) == 2
    page, cursor = replays.of_tenant(ACME_LIFE, after=None, limit=2)
    assert page == [mine[2], mine[1]]
    left, _ = replays.of_tenant(ACME_LIFE, after=cursor, limit=5)
    assert [each.replay_id for each in left] == [mine[0].replay_id]


def test_a_connection_is_added_only_to_the_settings_that_were_read(lives: Lives, configuration: Both) -> None:
    before = lives.settings()
    first, second = _connection(before.life, "1"), _connection(before.life, "2")
    assert configuration.add_connection(first, before)
    assert not configuration.add_connection(second, before)
    assert configuration.add_connection(second, present(configuration.settings(before.life.tenant)))
    assert [each.connection_id for each in configuration.connections(before.life)] == [
        first.connection_id,
        second.connection_id,
    ]
    assert configuration.connection(before.life, second.connection_id) == second
    assert configuration.connection(SUCCESSOR, second.connection_id) is None


def test_a_connection_is_changed_only_if_it_is_still_as_it_was_read(
    lives: Lives, configuration: Both, changes: Both
) -> None:
    settings = lives.settings()
    there = _connection(settings.life, "1")
    configuration.add_connection(there, settings)
    failing = Health(failing_since=NOON)
    assert changes.set_health(there, failing, draining=False)
    paused = replace(there, status=ConnectionStatus.PAUSED, revision=1)
    assert not configuration.change_connection(there, paused)
    there = replace(there, health=failing)
    paused = replace(paused, health=failing)
    assert configuration.change_connection(there, paused)
    assert not changes.disable(there, "gone", NOON)
    assert not changes.set_drained(there, found_empty_at=NOON, draining=False)
    assert configuration.connection(settings.life, there.connection_id) == paused
    deleted = replace(paused, status=ConnectionStatus.DELETED, draining=True, revision=2)
    assert configuration.change_connection(paused, deleted)
    assert not changes.remove(paused)
    assert changes.remove(deleted)
    assert configuration.connection(settings.life, there.connection_id) is None
    assert not configuration.change_connection(deleted, replace(deleted, draining=False, revision=3))


def _connection(life: TenantEpoch, digit: str) -> Connection:
    return connection(life=life, connection_id="conn_" + digit * 24)
