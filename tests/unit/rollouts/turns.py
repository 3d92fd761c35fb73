"""Tenants' turns in tests of rollouts, and changes of a tenant during its turn."""

from __future__ import annotations

from orchestrator.rollouts.gate import Admitted, Replaced, Settled, TryAgain
from orchestrator.rollouts.pacing import Pace
from orchestrator.rollouts.records import Result, Spec, TenantOutcome, Turn
from orchestrator.tenants.records import Operation, Status
from tests.fakes import NEXT_VERSION, VERSION, an_audit
from tests.unit.rollouts.world import LAST_VERSION, Fleet, tenant, tenants

INITIAL_LIMIT = Pace.initial(50).at_once
"""The limit at the start of the rollout of :class:`Turns`."""


class Turns:
    """A rollout whose first stage is running."""

    def __init__(self, count: int = 1, spec: Spec | None = None, *, version: str = VERSION) -> None:
        self.world = Fleet(count, version=version)
        self.rollout = self.world.start(spec)
        self.world.advance(self.rollout)

    def turn(self, number: int = 1, *, child: str = "child") -> Turn:
        who = tenants(self.world.count)[number - 1]
        item = next(item for item in self.world.items(self.rollout) if item.tenant == who)
        return Turn(self.rollout, 1, item, f"{child}/{who}")

    def admit(self, number: int = 1, *, child: str = "child") -> object:
        return self.world.gate.admit(self.turn(number, child=child))

    def admitted(self, number: int = 1, *, child: str = "child") -> Admitted:
        admission = self.admit(number, child=child)
        assert isinstance(admission, Admitted), admission
        return admission

    def record(
        self, number: int = 1, fault: str | None = None, *, child: str = "child"
    ) -> Settled | TryAgain | Replaced:
        return self.world.gate.record(self.turn(number, child=child), fault)

    def succeed(self, number: int = 1) -> None:
        self.world.update(self.admitted(number))
        assert self.record(number) == Settled(Result.SUCCEEDED)

    def outcome(self, number: int = 1) -> TenantOutcome:
        return self.world.outcome(self.rollout, tenants(self.world.count)[number - 1])

    @property
    def in_flight(self) -> int:
        return self.world.stage(self.rollout).in_flight

    @property
    def pace(self) -> Pace:
        return self.world.stage(self.rollout).pace


T1 = tenant("t001")


def delete(world: Fleet) -> None:
    world.delete(T1)


def pin(world: Fleet) -> None:
    world.change(T1, pinned_version=VERSION)


def move_there(world: Fleet) -> None:
    world.change(T1, version=NEXT_VERSION)


def move_further(world: Fleet) -> None:
    world.change(T1, version=LAST_VERSION)


def begin_to_delete(world: Fleet) -> None:
    world.table.plant_audit(an_audit(Status.STARTED, Operation.DELETE, tenant=T1, version=None))


def lose_the_queue(world: Fleet) -> None:
    world.change(T1, queue=None, version=None)
