"""What rollouts need from the outside, beyond :mod:`orchestrator.tenants.ports`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from orchestrator.common.tenant_ids import TenantId
from orchestrator.rollouts.records import Item, RecordedOrder, Rollout, Stage, TenantOutcome
from orchestrator.tenants.records import UnreadableEntry


@dataclass(frozen=True, slots=True)
class Registry:
    """The rollouts that have a claim on tenants now."""

    active: frozenset[str]
    revision: int


class RolloutLedger(Protocol):
    """The table. Every write is one transaction, and goes through only if what it changes is as it was read.

    ``False`` says that it was not: read again. What is written has the revision of what was read.
    """

    def rollout(self, rollout: str) -> Rollout | None: ...

    def stages(self, rollout: str) -> Sequence[Stage]:
        """In order."""

    def stage(self, rollout: str, number: int) -> Stage | None: ...

    def rollouts(self, *, limit: int, after: str | None = None) -> Sequence[Rollout]:
        """The newest first; after that one if given. Read from the index."""

    def registry(self) -> Registry: ...

    def orders(self, rollout: str) -> Sequence[RecordedOrder | UnreadableEntry]:
        """What was ever ordered, in order."""

    def register(
        self, rollout: Rollout, stages: Sequence[Stage], *, revision: int, orders: Sequence[RecordedOrder] = ()
    ) -> bool:
        """Write it down, with its stages. Unless it is a dry run, it has a claim on its tenants from now on.

        ``revision`` is that of the registry. The orders are appended to the histories of their rollouts.
        """

    def change(self, rollout: Rollout, *, revision: int | None = None, order: RecordedOrder | None = None) -> bool:
        """Once it has ended, it loses its claim. ``revision`` is that of the registry, to claim them again.

        The order, if it is one that changes it, is appended to its history.
        """

    def change_stage(self, stage: Stage, *, order: RecordedOrder | None = None) -> bool: ...

    def tenant_outcome(self, rollout: str, tenant: TenantId) -> TenantOutcome | None: ...

    def outcomes(self, rollout: str) -> Iterable[TenantOutcome]:
        """Of all tenants that had their turn, or have it now."""

    def failures(self, rollout: str) -> Iterable[TenantOutcome]:
        """Of those that failed. Read from the index."""

    def admit(self, stage: Stage, outcome: TenantOutcome) -> bool:
        """It is the tenant's turn, if the rollout is running and the tenant is not settled."""

    def record(self, stage: Stage, outcome: TenantOutcome) -> bool:
        """What became of the tenant, unless that was settled before."""


class Throttling(Protocol):
    def throttles(self) -> int:
        """How often CloudFormation has throttled Berth, ever."""


class Manifests(Protocol):
    """Lists of tenants, as the map reads them."""

    def write(self, name: str, items: Sequence[Item]) -> str:
        """Store the list, and return where."""

    def read(self, manifest: str) -> Sequence[Item]: ...

    def remove(self, manifest: str) -> None:
        """Remove a list that no rollout needs."""


class Alarms(Protocol):
    def unknown(self, names: Iterable[str]) -> Sequence[str]:
        """Which of these alarms do not exist."""

    def went_off(self, name: str, *, since: datetime) -> str | None:
        """Why the alarm is on, or was at some time since then; ``None`` when it was not."""


class RolloutExecutions(Protocol):
    def start_rollout(self, rollout: Rollout) -> str | None:
        """Start its execution, and return it, also when it is running already. ``None`` when it has ended."""

    def is_running(self, execution: str) -> bool: ...

    def wake(self, task_token: str) -> bool: ...
