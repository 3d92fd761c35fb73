"""The turns of creates: which creates may change stacks now, and how long the others wait.

Creates are paced as the tenants of a rollout are (:mod:`orchestrator.rollouts.pacing`), by a limit of their own that
reacts to the same throttles. So rollouts and creates share CloudFormation's rate, and neither starves the other.
These are pure functions on one record. :mod:`orchestrator.rollouts.create_gate` reads and writes it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from orchestrator.common.tenant_ids import TenantId
from orchestrator.rollouts.pacing import Pace

MAX_CREATES_AT_ONCE = 50
"""The ceiling of the pace, as high as the default of a rollout's (``berth:rolloutConcurrency``)."""

_USUAL_SECONDS = 70.0
"""How long a create is assumed to take until some were measured: the stack of a queue with its dead-letter queue takes
about 64 seconds."""
_USUAL_SECONDS_PER_TURN = 2 / 3
"""The shortest time between two turns that is assumed until CloudFormation has throttled for the first time.
CloudFormation is said to allow one or two mutating calls per second. The limit is still growing then, and says nothing
about the pace of a long line."""
_WEIGHT_OF_LATEST = 0.1
"""The weight of the latest create in the average of their durations."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A create that has its turn."""

    tenant: TenantId
    since: datetime
    waited: bool = False
    """True if the create was in the line before."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """The place of a waiting create in the line."""

    number: int
    """Tickets are numbered in the order of the first requests. The lowest number is next."""
    tenant: TenantId
    execution: str
    task_token: str
    """The execution waits with this token."""


@dataclass(frozen=True, slots=True)
class CreateTurns:
    """The turns that are taken now. There is one such record, which is written as a whole."""

    pace: Pace
    holders: Mapping[str, Holder] = field(default_factory=dict)
    """The creates that have a turn, by their executions."""
    tickets_left: int = 0
    """The highest number of a ticket that has left the line. They leave it in the order of their numbers. It is not a
    count, because some numbers never get into the line: a create may die after it has drawn one."""
    seconds_per_create: float = _USUAL_SECONDS
    """The average time from a create's turn to its success."""
    moved_at: datetime | None = None
    """The time when a turn was last taken or given back."""
    revision: int = 0

    @classmethod
    def initial(cls, throttles: int, now: datetime) -> CreateTurns:
        """The turns before the first create. Earlier throttles do not count."""
        return cls(replace(Pace.initial(MAX_CREATES_AT_ONCE), throttles_seen=throttles, slowed_at=now))

    @property
    def has_room(self) -> bool:
        return self.pace.has_room(len(self.holders))

    def with_throttles(self, throttles: int, now: datetime) -> CreateTurns:
        return replace(self, pace=self.pace.with_throttles(throttles, now))

    def taken(self, execution: str, tenant: TenantId, now: datetime, *, waited: bool = False) -> CreateTurns:
        return replace(self, holders={**self.holders, execution: Holder(tenant, now, waited)}, moved_at=now)

    def taken_by(self, ticket: Ticket, now: datetime) -> CreateTurns:
        """The first in the line has its turn."""
        taken = self.taken(ticket.execution, ticket.tenant, now, waited=True)
        return replace(taken, tickets_left=max(self.tickets_left, ticket.number))

    def given_back(self, execution: str, now: datetime, *, succeeded: bool) -> CreateTurns:
        """The create has ended. A success raises the limit, if it was fully used."""
        holder = self.holders.get(execution)
        if holder is None:
            return self
        left = {name: each for name, each in self.holders.items() if name != execution}
        after = replace(self, holders=left, moved_at=now)
        if not succeeded:
            return after
        seconds = (now - holder.since).total_seconds()
        average = self.seconds_per_create + _WEIGHT_OF_LATEST * (seconds - self.seconds_per_create)
        growth = self.pace.growth(len(self.holders))
        return replace(after, pace=self.pace.grown_by(growth), seconds_per_create=max(1.0, average))

    def wait_seconds(self, number: int) -> int:
        """About how long the holder of this ticket waits: the number of creates before it, at the present pace."""
        place = max(1, number - self.tickets_left)
        return math.ceil(place * self._seconds_per_turn)

    @property
    def _seconds_per_turn(self) -> float:
        at_present = self.seconds_per_create / max(1, self.pace.at_once)
        if not self.pace.slow_start:
            return at_present
        fastest = self.seconds_per_create / self.pace.ceiling
        return min(at_present, max(fastest, _USUAL_SECONDS_PER_TURN))

    def held_since_before(self, moment: datetime) -> Mapping[str, Holder]:
        return {execution: holder for execution, holder in self.holders.items() if holder.since < moment}


AWAIT_ADMISSION = timedelta(hours=1)
"""How long the state AwaitAdmission waits. A create that has its turn is woken; the timeout only heals a lost call."""
