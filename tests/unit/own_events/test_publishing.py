"""Events go to the bus, and to the operators' own tenant, which never receives events about its own deliveries."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import pytest

from orchestrator.common.errors import Throttled
from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.accepting import Accepting
from orchestrator.events.content import MAX_BODY_BYTES, Packed
from orchestrator.events.plans import Plan
from orchestrator.events.records import Event, Repetition, TenantEpoch
from orchestrator.own_events.kinds import Kind, OwnEvent
from orchestrator.own_events.operators import NoQuotas, OperatorsTenant
from orchestrator.own_events.ports import Put
from orchestrator.own_events.publishing import Published, Publishing
from tests.fakes import ACME, NOON, FakeClock
from tests.fakes.events import INCARNATION, FakeConfiguration, FakeTenants, event_settings

OPERATORS = TenantId.parse("operators")
LIFE = TenantEpoch(OPERATORS, "e1")
EVENT = OwnEvent("a" * 32, Kind.TENANT_PROVISIONED, NOON, {"tenant_id": "acme"}, ACME)


@dataclass
class FakeBus:
    answer: Put = field(default_factory=Put)
    taken: list[OwnEvent] = field(default_factory=list)

    def put(self, events: Sequence[OwnEvent]) -> Put:
        self.taken += events
        return self.answer


@dataclass
class FakeEvents:
    """Keeps events in memory, by id, and marks of repetitions."""

    kept: dict[str, Event] = field(default_factory=dict)
    marks: dict[str, Repetition] = field(default_factory=dict)

    def put(self, event: Event, _packed: Packed, *, type_index: bool) -> None:  # noqa: ARG002 - as the table does
        self.kept.setdefault(event.event_id, event)

    def mark(self, repetition: Repetition, _at: datetime) -> Repetition:
        return self.marks.setdefault(repetition.key, repetition)


class NoContents:
    """Own events are small, so none is stored in S3."""

    def put_once(self, key: str, data: bytes) -> None:
        raise AssertionError(f"{key} has {len(data)} bytes")

    def get(self, key: str) -> bytes:
        raise AssertionError(key)


class World:
    def __init__(self, plan: Plan = Plan.PRO) -> None:
        self.bus, self.events = FakeBus(), FakeEvents()
        self.configuration, self.tenants = FakeConfiguration(), FakeTenants()
        self.configuration.all_settings[OPERATORS] = event_settings(LIFE, plan=plan)
        self.tenants.incarnations[OPERATORS] = INCARNATION
        operators = OperatorsTenant(
            OPERATORS,
            control_plane="Berth",
            configuration=self.configuration,
            tenants=self.tenants,
            accepting=Accepting(events=self.events, contents=NoContents(), quotas=NoQuotas(), clock=FakeClock()),
        )
        self.publishing = Publishing(bus=self.bus, operators=operators)

    def received(self) -> list[str]:
        return [each.event_type for each in self.events.kept.values()]


@pytest.fixture
def world() -> World:
    return World()


def test_an_event_is_on_the_bus_and_among_the_events_of_the_operators_tenant(world: World) -> None:
    assert world.publishing.publish([EVENT]) == Published()
    assert world.bus.taken == [EVENT]
    (event,) = world.events.kept.values()
    assert (event.life, event.event_type) == (LIFE, "tenant.provisioned")
    assert event.content is not None
    assert json.loads(event.content.body) == EVENT.detail("Berth")


def test_a_repetition_is_the_same_event_of_the_operators_tenant(world: World) -> None:
    for _ in range(3):
        world.publishing.publish([EVENT])
    assert world.received() == ["tenant.provisioned"]


def test_an_event_that_could_not_be_written_is_written_by_the_next_version_which_knows_more_of_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_args: object, **_options: object) -> None:
        raise Throttled("Rate exceeded")

    with monkeypatch.context() as patch:
        patch.setattr(world.events, "put", busy)
        with pytest.raises(Throttled):
            world.publishing.publish([EVENT])
    newer = replace(EVENT, data={**EVENT.data, "tier": "standard"})
    assert world.publishing.publish([newer]) == Published()
    assert world.received() == ["tenant.provisioned"]


@pytest.mark.parametrize("kind", [Kind.CONNECTION_DISABLED, Kind.DELIVERY_EXHAUSTED])
def test_an_event_about_deliveries_of_the_operators_tenant_is_on_the_bus_only(world: World, kind: Kind) -> None:
    """Otherwise a receiver that fails would make events for ever."""
    own, others = replace(EVENT, kind=kind, tenant=OPERATORS), replace(EVENT, id="b" * 32, kind=kind)
    world.publishing.publish([own])
    assert (world.bus.taken, world.received()) == ([own], [])
    world.publishing.publish([others])
    assert world.received() == [kind]


def test_an_operation_on_the_operators_tenant_is_among_its_events(world: World) -> None:
    world.publishing.publish([replace(EVENT, kind=Kind.TENANT_UPDATED, tenant=OPERATORS)])
    assert world.received() == ["tenant.updated"]


def test_the_plan_of_the_operators_tenant_limits_no_own_event() -> None:
    world = World(Plan.FREE)
    events = [replace(EVENT, id=f"{number:032x}") for number in range(100)]
    assert world.publishing.publish(events) == Published()
    assert len(world.received()) == 100


@pytest.mark.parametrize("why", ["no settings", "deleted", "created again"])
def test_without_the_operators_tenant_events_are_on_the_bus_only_and_that_is_reported(world: World, why: str) -> None:
    if why == "no settings":
        world.configuration.all_settings.clear()
    elif why == "deleted":
        world.tenants.incarnations.clear()
    else:
        world.tenants.incarnations[OPERATORS] = "another creation"
    assert world.publishing.publish([EVENT]) == Published(operators_missing=True)
    assert (world.bus.taken, world.received()) == ([EVENT], [])


def test_events_that_the_bus_does_not_take_are_reported_and_the_others_are_received(world: World) -> None:
    refused, failed = replace(EVENT, id="b" * 32), replace(EVENT, id="c" * 32)
    world.bus.answer = Put(rejected=(refused,), failed=(failed,))
    assert world.publishing.publish([EVENT, refused, failed]) == Published(rejected=(refused,), failed=(failed,))
    assert len(world.received()) == 3


def test_an_event_that_is_too_large_for_the_operators_tenant_is_rejected(world: World) -> None:
    large = replace(EVENT, data={"reason": "x" * MAX_BODY_BYTES})
    assert world.publishing.publish([large]).rejected == (large,)


def test_without_the_setting_there_is_only_the_bus() -> None:
    bus = FakeBus()
    assert Publishing(bus=bus, operators=None).publish([EVENT]) == Published()
    assert bus.taken == [EVENT]


def test_nothing_is_put_for_no_events(world: World) -> None:
    assert world.publishing.publish([]) == Published()
    assert world.bus.taken == []
