"""A fleet and everything that a rollout needs, over the fakes, with checks of every row that rollouts write."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from orchestrator.common.errors import Throttled
from orchestrator.common.tenant_ids import TenantId
from orchestrator.releases.published import fingerprint
from orchestrator.rollouts.counting import Count
from orchestrator.rollouts.records import (
    RecordedOrder,
    Result,
    Rollout,
    RolloutStatus,
    Stage,
    StageStatus,
    TenantOutcome,
)
from orchestrator.tenants.messages import Messages
from orchestrator.tenants.records import Status
from orchestrator.tenants.stack_ports import ChangeSetState
from tests.fakes import (
    NEXT_VERSION,
    VERSION,
    FakeAlarms,
    FakeRolloutExecutions,
    FakeStacks,
    FakeThrottling,
    InMemoryManifests,
    InMemoryRollouts,
    InMemoryTable,
    a_release,
    an_audit,
    parameters_of,
    some_metadata,
)
from tests.fakes.stacks import version_of
from tests.simulation.world import Around, World, a_queue, watched

A_SHORT_MOMENT = timedelta(seconds=2)
"""Many take part, and whenever one of them waits, time passes for all."""

ALARM = "too-many-errors"


EQUAL_VERSION = "0.1.1"
"""A release with the content of the first."""


class RememberedAlarms(FakeAlarms):
    """Alarms, and how much of what they did was to be seen when somebody last looked."""

    def __init__(self, **alarms: str | None) -> None:
        super().__init__(**alarms)
        self.soundings: list[datetime] = []
        self._seen = 0

    def sound(self, name: str, reason: str, *, at: datetime) -> None:
        super().sound(name, reason, at=at)
        self.soundings.append(at)

    def went_off(self, name: str, *, since: datetime) -> str | None:
        self._seen = len(self.soundings)
        return super().went_off(name, since=since)

    def to_be_seen_since(self, moment: datetime) -> bool:
        return any(at >= moment for at in self.soundings[: self._seen])


class CheckedRollouts(InMemoryRollouts):
    """The rows of rollouts, which checks every write."""

    def __init__(self) -> None:
        super().__init__()
        self.alarms = RememberedAlarms(**{ALARM: None})
        self.when_over: Callable[[Rollout], None] = lambda _: None

    def change_stage(self, stage: Stage, *, order: RecordedOrder | None = None) -> bool:
        before = self._stages[stage.rollout, stage.number]
        changed = super().change_stage(stage, order=order)
        if changed:
            self._check_change(before, stage)
        return changed

    def change_stages(self, stages: Sequence[Stage], *, order: RecordedOrder) -> bool:
        before = [self._stages[stage.rollout, stage.number] for stage in stages]
        changed = super().change_stages(stages, order=order)
        if changed:
            for was, stage in zip(before, stages, strict=True):
                self._check_change(was, stage)
        return changed

    def _check_change(self, before: Stage, stage: Stage) -> None:
        if stage.approved_by and not before.approved_by:
            meant = f"stage {stage.number}"
            assert stage.approved_by.endswith(meant), f"{stage.approved_by!r} was taken for an approval of {meant}"
        if stage.status is StageStatus.DONE is not before.status and stage.spec.alarm:
            since = max(filter(None, (before.ended_at, before.resumed_at)))
            assert not self.alarms.to_be_seen_since(since), f"stage {stage.number} goes on after its alarm went off"

    def admit(self, count: Count, outcome: TenantOutcome, *, before: TenantOutcome | None) -> bool:
        rollout, stage = self._rollouts[count.rollout], self._stages[count.rollout, count.stage]
        admitted = super().admit(count, outcome, before=before)
        if admitted:
            assert rollout.status is RolloutStatus.RUNNING, f"{outcome.item.tenant} starts, but it is {rollout.status}"
            tolerated = stage.tolerated + stage.forgiven
            assert stage.failed <= tolerated, f"{outcome.item.tenant} starts after {stage.failed} have failed"
            assert stage.in_flight < int(stage.pace.limit), f"{stage.in_flight + 1} in flight, with {stage.pace}"
        return admitted

    def change(
        self,
        rollout: Rollout,
        *,
        revision: int | None = None,
        order: RecordedOrder | None = None,
        stage: Stage | None = None,
    ) -> bool:
        before = self._rollouts[rollout.id].status
        stage_before = self._stages[stage.rollout, stage.number] if stage else None
        changed = super().change(rollout, revision=revision, order=order, stage=stage)
        if changed and stage and stage_before:
            self._check_change(stage_before, stage)
        if changed and not before.active:
            reopened = before is RolloutStatus.HALTED and rollout.status is RolloutStatus.PENDING
            closed = before is RolloutStatus.HALTED and rollout.status is RolloutStatus.ABORTED
            assert reopened or closed or rollout.status is before, f"it was {before}, and is {rollout.status}"
            assert not (reopened and self._is_undone(rollout)), (
                f"{rollout.id} goes on after its tenants were moved back"
            )
        if changed and before.active and not rollout.status.active:
            self.when_over(rollout)
        return changed

    def _is_undone(self, rollout: Rollout) -> bool:
        """From the tenants' rows of its undos: some had their turn."""
        undos = [each for each in self._rollouts.values() if each.spec.undo == rollout.id and not each.spec.dry_run]
        return any(outcome.operation_attempt for undo in undos for outcome in self.outcomes(undo.id))

    def counted(self, rollout: str, number: int) -> tuple[int, int, int]:
        """From the tenants' rows: how many have succeeded, failed, and were skipped."""
        results = Counter(each.result for each in self.outcomes(rollout) if each.stage == number)
        return results[Result.SUCCEEDED] + results[Result.UNCHANGED], results[Result.FAILED], results[Result.SKIPPED]


class FleetStacks(FakeStacks):
    """CloudFormation, which cannot update some stacks, and counts what it has updated and refused."""

    def __init__(self, throttling: FakeThrottling) -> None:
        super().__init__()
        self.doomed: set[str] = set()
        self.updated_in_vain: list[str] = []
        """Stacks that were at the version already which they were moved to."""
        self._throttling = throttling

    def change(self, stack_id: str, status: str, reason: str = "", **changes: object) -> None:
        if status == "UPDATE_COMPLETE" and changes.get("version") == self.all[stack_id].stack.version:
            self.updated_in_vain.append(stack_id)
        super().change(stack_id, status, reason, **changes)

    def settle(self, **_: object) -> None:
        """A new stack has a queue of its own, and the version of its template."""
        for stack in self.living:
            if stack.status == "CREATE_IN_PROGRESS" and not self.failures:
                version = version_of(self.all[stack.stack_id].template_url)
                queue = a_queue(list(self.all).index(stack.stack_id) + 1)
                self.change(stack.stack_id, "CREATE_COMPLETE", queue=queue, version=version)
        super().settle()

    def _end_update(self, stack_id: str) -> None:
        # A change set that was drawn up while the stack was being updated is about a stack that is no more.
        fake = self.all[stack_id]
        fake.change_sets = {
            name: drawn_up
            for name, drawn_up in fake.change_sets.items()
            if drawn_up[0].state is ChangeSetState.EXECUTED
        }
        if stack_id in self.doomed:
            self.failures.append("Access denied.")
        super()._end_update(stack_id)

    def _called(self, method: str) -> None:
        self._throttling.count += bool(self.throttled_calls)
        super()._called(method)


@dataclass
class Fleet(World):
    ledger: CheckedRollouts = field(default_factory=CheckedRollouts)
    manifests: InMemoryManifests = field(default_factory=InMemoryManifests)
    throttling: FakeThrottling = field(default_factory=FakeThrottling)
    rollout_executions: FakeRolloutExecutions = field(default_factory=FakeRolloutExecutions)
    tenants: list[TenantId] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.fleet_stacks = FleetStacks(self.throttling)
        self.stacks = self.fleet_stacks
        self.table.record_release(a_release(EQUAL_VERSION, content=a_release(VERSION).content))
        self.listing: InMemoryTable = self.table
        """The index, which may lag."""

    @property
    def alarms(self) -> RememberedAlarms:
        return self.ledger.alarms

    def populate(self, size: int, rng: random.Random) -> None:
        """Tenants that are served. Some cannot be updated, some need not be, and some are there already."""
        for number in range(1, size + 1):
            tenant = TenantId.parse(f"tenant-{number}")
            version = rng.choice([VERSION] * 18 + [NEXT_VERSION, EQUAL_VERSION])
            url = a_release(version).template_url
            stack = self.stacks.plant_done(tenant, version=version, template_url=url, queue=a_queue(number))
            metadata = replace(
                some_metadata(tenant=tenant, version=version, queue=stack.queue), stack_id=stack.stack_id
            )
            if rng.random() < 0.15:
                made_from_the_same = fingerprint(a_release(NEXT_VERSION), parameters_of(tenant))
                metadata = replace(metadata, deployed=made_from_the_same)
            elif rng.random() < 0.2:
                self.fleet_stacks.doomed.add(stack.stack_id)
            elif rng.random() < 0.3:
                metadata = replace(metadata, deployed=fingerprint(a_release(VERSION), parameters_of(tenant)))
            if rng.random() < 0.1:
                metadata = replace(metadata, pinned_version=version)
            if stack.queue and rng.random() < 0.5:
                self.queues.held[stack.queue.url] = Messages(1, 0, 0)
            self.table.plant_metadata(metadata)
            self.table.plant_audit(an_audit(Status.SUCCESS, tenant=tenant, version=version))
            self.tenants.append(tenant)

    # Use cases

    def ports(self, around: Around) -> dict[str, Any]:
        return super().ports(around) | {
            "index": watched("listing", self.listing, around),
            "rollout_table": watched("rollouts", self.ledger, around),
            "manifests": watched("manifests", self.manifests, around),
            "alarms": self.alarms,
            "throttling": watched("throttling", self.throttling, around),
            "rollout_executions": watched("rolloutExecutions", self.rollout_executions, around),
        }

    # Time

    def let_time_pass(self, moment: timedelta = A_SHORT_MOMENT) -> None:
        super().let_time_pass(moment)

    def settle_the_dead(self) -> None:
        """Settle operations whose execution died, as the reconciler does."""
        settling = self.use_cases().settling
        for tenant in self.tenants:
            lock = self.table.lock(tenant)
            if lock is not None:
                with suppress(Throttled):
                    settling.settle(lock.run)

    def _custom_resource(self, stack_id: str, *, had_one: bool) -> None:  # noqa: ARG002 - every stack here has one
        stack = self.stacks.all[stack_id].stack
        assert stack.tenant_id
        tenant = TenantId.parse(stack.tenant_id)
        if stack.status.startswith(("DELETE_", "ROLLBACK_")):
            throttled, self.stacks.throttled_calls = self.stacks.throttled_calls, 0
            self.use_cases().forget_queue(tenant, stack_id=stack_id)
            self.stacks.throttled_calls = throttled
        elif stack.queue:
            self.use_cases().record_queue(tenant, stack_id=stack_id, reported=stack.queue)
