"""The interfaces that adapters implement for rollouts, besides those of :mod:`orchestrator.tenants.ports`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from orchestrator.common.tenant_ids import TenantId
from orchestrator.rollouts.counting import Count, Reviews
from orchestrator.rollouts.create_turns import CreateTurns, Ticket
from orchestrator.rollouts.pacing import Pace
from orchestrator.rollouts.records import Item, RecordedOrder, Rollout, Stage, TenantOutcome
from orchestrator.tenants.history import UnreadableEntry


@dataclass(frozen=True, slots=True)
class Registry:
    """The active rollouts, which have a claim on their tenants."""

    active: frozenset[str]
    revision: int


class RolloutLedger(Protocol):
    """The rows of rollouts. Every write is one transaction with optimistic locking.

    A write returns ``False`` if its rows have changed since they were read: read them again. The ``revision`` of a
    written value is the revision that was read. The counters of a stage are added to: their writes depend on no
    revision, but change it.
    """

    def rollout(self, rollout: str) -> Rollout | None: ...

    def stages(self, rollout: str) -> Sequence[Stage]:
        """All stages, in order."""

    def stage(self, rollout: str, number: int) -> Stage | None: ...

    def rollouts(self, *, limit: int, after: str | None = None) -> Sequence[Rollout]:
        """The newest rollouts first, starting after ``after`` if it is given. They are read from the index."""

    def registry(self) -> Registry: ...

    def orders(self, rollout: str) -> Sequence[RecordedOrder | UnreadableEntry]:
        """The rollout's history, oldest first."""

    def register(
        self, rollout: Rollout, stages: Sequence[Stage], *, revision: int, orders: Sequence[RecordedOrder] = ()
    ) -> bool:
        """Record the rollout and its stages. Unless it is a dry run, the rollout then has a claim on its tenants.

        ``revision`` is the registry's revision. The orders are appended to the histories of their rollouts.
        """

    def change(
        self,
        rollout: Rollout,
        *,
        revision: int | None = None,
        order: RecordedOrder | None = None,
        stage: Stage | None = None,
    ) -> bool:
        """Write the rollout. A rollout that is no longer active loses the claim on its tenants.

        To claim the tenants again, pass the registry's ``revision``. The order is appended to the rollout's history. If
        ``stage`` is given, it is written as well, or nothing is.
        """

    def change_stage(self, stage: Stage, *, order: RecordedOrder | None = None) -> bool: ...

    def change_stages(self, stages: Sequence[Stage], *, order: RecordedOrder) -> bool:
        """Write several stages of a rollout at once, or none of them. The order is appended to its history."""

    def tenant_outcome(self, rollout: str, tenant: TenantId) -> TenantOutcome | None: ...

    def outcomes(self, rollout: str) -> Iterable[TenantOutcome]:
        """The outcomes of all tenants that had their turn or have it now."""

    def reviews(self, rollout: str) -> Reviews | None:
        """The results of a dry run so far; ``None`` if no tenant was reviewed yet."""

    def failures(self, rollout: str, *, limit: int) -> Sequence[TenantOutcome]:
        """The outcomes of tenants that failed, at most ``limit``, by tenant id. They are read from the index."""

    def admit(self, count: Count, outcome: TenantOutcome, *, before: TenantOutcome | None) -> bool:
        """Record that the tenant has its turn, if the rollout is running and the count is allowed.

        ``before`` is the tenant's outcome that was read. Nothing is written if another turn has replaced it: another
        child's, or one with another attempt of the tenant's update.
        """

    def record(self, count: Count, outcome: TenantOutcome, *, before: TenantOutcome | None) -> bool:
        """Record the tenant's outcome, whether or not the rollout is running."""

    def slow_down(self, stage: Stage, pace: Pace) -> bool:
        """Slow the stage down to the pace, unless as many throttles were seen by another turn. Its ceiling stays."""


class Throttling(Protocol):
    def throttles(self) -> int:
        """The number of times that CloudFormation has ever throttled Berth."""


class CreateTurnRows(Protocol):
    """The turns of creates, and the tickets of those that wait."""

    def turns(self) -> CreateTurns | None:
        """``None`` before the first create."""

    def store(self, turns: CreateTurns) -> bool:
        """Write the turns, unless they have changed: their ``revision`` is the one that was read."""

    def draw_number(self) -> int:
        """The number of a new ticket. Numbers rise."""

    def put_ticket(self, ticket: Ticket) -> None:
        """Put the ticket into the line, in place of one with the same number."""

    def first_ticket(self) -> Ticket | None:
        """The ticket with the lowest number."""

    def remove_ticket(self, ticket: Ticket) -> None:
        """Remove the ticket, unless another one has replaced it."""


class Manifests(Protocol):
    """Lists of tenants, in the format that the state machine's map reads."""

    def write(self, name: str, items: Sequence[Item]) -> str:
        """Store the list, and return its location."""

    def read(self, manifest: str) -> Sequence[Item]: ...

    def remove(self, manifest: str) -> None:
        """Delete a list that no rollout needs."""


class Alarms(Protocol):
    def unknown(self, names: Iterable[str]) -> Sequence[str]:
        """The alarms among these that do not exist."""

    def went_off(self, name: str, *, since: datetime) -> str | None:
        """The reason if the alarm is in state ALARM, was set to it since then, or does not exist; else ``None``."""


class RolloutExecutions(Protocol):
    def start_rollout(self, rollout: Rollout) -> str | None:
        """Start the rollout's execution unless it is already running. Return its ARN, or ``None`` if it has ended."""

    def is_running(self, execution: str) -> bool | None:
        """``None`` if Step Functions does not show the execution: it began a moment ago, or ended long ago."""

    def wake(self, task_token: str) -> bool: ...
