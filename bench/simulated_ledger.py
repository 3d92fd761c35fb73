"""An in-memory table of one rollout and its tenants. It is minimal, because it must hold a hundred thousand tenants."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from orchestrator.common.tenant_ids import TenantId
from orchestrator.releases.records import RecordedReleaseChange, Release, ReleaseState
from orchestrator.rollouts.counting import Count, Reviews
from orchestrator.rollouts.pacing import Pace
from orchestrator.rollouts.ports import Registry
from orchestrator.rollouts.records import Item, RecordedOrder, Result, Rollout, RolloutStatus, Stage, TenantOutcome
from orchestrator.tenants.history import HistoryEntry
from orchestrator.tenants.names import Names
from orchestrator.tenants.records import Audit, Lock, Metadata, Operation, Queue, RootCause, Status, TenantRecords

OLD, NEW = "1.0.0", "2.0.0"

_BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
_QUEUE = Queue("arn:aws:sqs:us-east-1:000000000000:q", "https://sqs.us-east-1.amazonaws.com/000000000000/q")


class VirtualClock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return _BEGINNING + timedelta(seconds=self.seconds)


class SimulatedTenants:
    """The tenants. At first all are in service, at the old release."""

    def __init__(self, tenants: Iterable[TenantId], clock: VirtualClock) -> None:
        self._clock = clock
        self._metadata = {
            tenant: Metadata(tenant, _QUEUE, Names().stack_of(tenant), OLD, _BEGINNING, _BEGINNING)
            for tenant in tenants
        }
        self._updates: dict[TenantId, Audit] = {}
        self.reviewed = False
        """True once a review of the move from the old to the new release is kept. All tenants make the same move."""

    def metadata(self, tenant: TenantId) -> Metadata | None:
        return self._metadata.get(tenant)

    def audits(self, tenant: TenantId) -> Sequence[Audit]:
        update = self._updates.get(tenant)
        return [update] if update else []

    def history(
        self,
        _tenant: TenantId,
        *,
        before: str | None = None,  # noqa: ARG002 - there is none
        limit: int | None = None,  # noqa: ARG002
    ) -> Sequence[HistoryEntry]:
        return []

    def lock(self, _tenant: TenantId) -> Lock | None:
        return None

    def records(self, tenant: TenantId) -> TenantRecords:
        return TenantRecords(self.metadata(tenant), self.audits(tenant), self.lock(tenant))

    def begin(self, tenant: TenantId, attempt: int) -> None:
        self._write(tenant, attempt, Status.STARTED)

    def finish(self, tenant: TenantId, attempt: int) -> None:
        self._metadata[tenant] = replace(self._metadata[tenant], version=NEW)
        self._write(tenant, attempt, Status.SUCCESS)

    def fail(self, tenant: TenantId, attempt: int, cause: RootCause) -> None:
        self._write(tenant, attempt, Status.FAILURE, cause)

    def _write(self, tenant: TenantId, attempt: int, status: Status, cause: RootCause | None = None) -> None:
        at = self._clock.now()
        self._updates[tenant] = Audit(tenant, Operation.UPDATE, NEW, status, "", at, attempt, cause)


class SimulatedRollouts:
    """One rollout. Some writes fail because another came first, as happens when many tenants have their turns."""

    def __init__(self, rollout: Rollout, stages: Sequence[Stage], chance: random.Random, overtaken: float) -> None:
        self._rollout = rollout
        self._stages = {stage.number: stage for stage in stages}
        self._outcomes: dict[TenantId, TenantOutcome] = {}
        self._chance = chance
        self._overtaken = overtaken

    def rollout(self, _rollout: str) -> Rollout | None:
        return self._rollout

    def stages(self, _rollout: str) -> Sequence[Stage]:
        return list(self._stages.values())

    def stage(self, _rollout: str, number: int) -> Stage | None:
        return self._stages.get(number)

    def rollouts(self, *, limit: int, after: str | None = None) -> Sequence[Rollout]:
        return [self._rollout][:limit] if after is None else []

    def registry(self) -> Registry:
        return Registry(frozenset({self._rollout.id}), 1)

    def orders(self, _rollout: str) -> Sequence[RecordedOrder]:
        return ()

    def register(
        self,
        _rollout: Rollout,
        _stages: Sequence[Stage],
        *,
        revision: int,
        orders: Sequence[RecordedOrder] = (),
    ) -> bool:
        raise NotImplementedError(f"The one rollout is registered, at revision {revision}.")

    def change(
        self,
        rollout: Rollout,
        *,
        revision: int | None = None,  # noqa: ARG002 - there is no other rollout
        order: RecordedOrder | None = None,  # noqa: ARG002 - there are no operators' orders
        stage: Stage | None = None,
    ) -> bool:
        if rollout.revision != self._rollout.revision or (stage and not self.change_stage(stage)):
            return False
        self._rollout = replace(rollout, revision=rollout.revision + 1)
        return True

    def change_stage(self, stage: Stage, *, order: RecordedOrder | None = None) -> bool:  # noqa: ARG002
        if stage.revision != self._stages[stage.number].revision:
            return False
        self._stages[stage.number] = replace(stage, revision=stage.revision + 1)
        return True

    def change_stages(self, stages: Sequence[Stage], *, order: RecordedOrder) -> bool:
        raise NotImplementedError(f"There are no operators' orders, so {order.order} changes none of {len(stages)}.")

    def tenant_outcome(self, _rollout: str, tenant: TenantId) -> TenantOutcome | None:
        return self._outcomes.get(tenant)

    def outcomes(self, _rollout: str) -> Iterable[TenantOutcome]:
        return list(self._outcomes.values())

    def reviews(self, _rollout: str) -> Reviews | None:
        return None

    def failures(self, _rollout: str, *, limit: int) -> Sequence[TenantOutcome]:
        return [each for each in self._outcomes.values() if each.result is Result.FAILED][:limit]

    def admit(self, count: Count, outcome: TenantOutcome, *, before: TenantOutcome | None) -> bool:
        return self._rollout.status is RolloutStatus.RUNNING and self.record(count, outcome, before=before)

    def record(self, count: Count, outcome: TenantOutcome, *, before: TenantOutcome | None) -> bool:
        now, stage = self._outcomes.get(outcome.item.tenant), self._stages[count.stage]
        if now != before or not count.is_allowed(stage) or self._chance.random() < self._overtaken:
            return False
        self._stages[count.stage] = count.added_to(stage)
        self._outcomes[outcome.item.tenant] = outcome
        return True

    def slow_down(self, stage: Stage, pace: Pace) -> bool:
        now = self._stages[stage.number]
        if now.pace.throttles_seen >= pace.throttles_seen:
            return False
        self._stages[stage.number] = replace(now, pace=now.pace.slowed_to(pace), revision=now.revision + 1)
        return True


class SimulatedManifests:
    def __init__(self) -> None:
        self._written: dict[str, Sequence[Item]] = {}

    def write(self, name: str, items: Sequence[Item]) -> str:
        manifest = f"rollouts/{name}.json"
        self._written[manifest] = list(items)
        return manifest

    def read(self, manifest: str) -> Sequence[Item]:
        return self._written[manifest]

    def remove(self, manifest: str) -> None:
        del self._written[manifest]


class NoAlarms:
    def unknown(self, names: Iterable[str]) -> Sequence[str]:
        return sorted(names)

    def went_off(self, _name: str, *, since: datetime) -> str | None:  # noqa: ARG002 - there are none
        return None


class NothingWithdrawn:
    """No release is promoted or withdrawn while a rollout is measured, and none has to be looked up."""

    def state(self) -> ReleaseState:
        return ReleaseState()

    def change(self, _state: ReleaseState, _change: RecordedReleaseChange) -> bool:
        raise NotImplementedError

    def changes(self, *, limit: int) -> Sequence[RecordedReleaseChange]:
        raise NotImplementedError

    def release(self, _version: str) -> Release | None:
        raise NotImplementedError

    def releases(self) -> Sequence[Release]:
        raise NotImplementedError

    def record_release(self, release: Release) -> Release:
        raise NotImplementedError


class NoOperator:
    """There are no pauses and no approvals, so the rollout's execution is always running."""

    def start_rollout(self, rollout: Rollout) -> str | None:
        return rollout.name

    def is_running(self, _execution: str) -> bool:
        return True

    def wake(self, _task_token: str) -> bool:
        return False
