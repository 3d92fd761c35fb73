"""A fleet and all that a rollout needs, over the fakes; and a watch over what rollouts write down."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import timedelta

from orchestrator.queue_metadata import record_queue
from orchestrator.records import Status
from orchestrator.releases import fingerprint
from orchestrator.rollouts.advancing import Advancing
from orchestrator.rollouts.control import Rollouts
from orchestrator.rollouts.gate import Gate
from orchestrator.rollouts.records import Result, Rollout, RolloutStatus, Stage, TenantOutcome
from orchestrator.rollouts.reviewing import Reviewing
from orchestrator.tenant_stack import stack_settled
from orchestrator.tenants import TenantId
from tests.fakes import (
    NEXT_VERSION,
    VERSION,
    FakeAlarms,
    FakeRolloutExecutions,
    FakeStacks,
    FakeThrottling,
    InMemoryManifests,
    InMemoryRollouts,
    a_release,
    an_audit,
    parameters_of,
    some_metadata,
)
from tests.simulation.world import Around, World, a_queue, undisturbed, watched

A_SHORT_MOMENT = timedelta(seconds=2)
"""Many take part, and whenever one of them waits, time passes for all."""

ALARM = "too-many-errors"


class WatchedRollouts(InMemoryRollouts):
    """The rows of rollouts, and what ought to be true whenever one is written."""

    def admit(self, stage: Stage, outcome: TenantOutcome) -> bool:
        rollout, before = self._rollouts[stage.rollout], self._stages[stage.rollout, stage.number]
        admitted = super().admit(stage, outcome)
        if admitted:
            assert rollout.status is RolloutStatus.RUNNING, f"{outcome.item.tenant} starts, but it is {rollout.status}"
            tolerated = before.tolerated + before.forgiven
            assert before.failed <= tolerated, f"{outcome.item.tenant} starts after {before.failed} have failed"
            assert stage.in_flight <= int(stage.pace.limit), f"{stage.in_flight} in flight, with {stage.pace}"
        return admitted

    def change(self, rollout: Rollout, *, revision: int | None = None) -> bool:
        before = self._rollouts[rollout.id].status
        changed = super().change(rollout, revision=revision)
        if changed and not before.active:
            reopened = before is RolloutStatus.HALTED and rollout.status is RolloutStatus.PENDING
            assert reopened or rollout.status is before, f"it was {before}, and is {rollout.status}"
        return changed

    def counted(self, rollout: str, number: int) -> tuple[int, int, int]:
        """From the tenants' rows: how many have succeeded, failed, and were skipped."""
        results = Counter(each.result for each in self.outcomes(rollout) if each.stage == number)
        return results[Result.SUCCEEDED] + results[Result.UNCHANGED], results[Result.FAILED], results[Result.SKIPPED]


class FleetStacks(FakeStacks):
    """CloudFormation, which cannot update some stacks, and counts what it has updated and refused."""

    def __init__(self, throttling: FakeThrottling) -> None:
        super().__init__()
        self.doomed: set[str] = set()
        self.updated: Counter[str] = Counter()
        self._throttling = throttling

    def change(self, stack_id: str, status: str, reason: str = "", **changes: object) -> None:
        super().change(stack_id, status, reason, **changes)
        self.updated[stack_id] += status == "UPDATE_COMPLETE"

    def _end_update(self, stack_id: str) -> None:
        if stack_id in self.doomed:
            self.failures.append("Access denied.")
        super()._end_update(stack_id)

    def _called(self, method: str) -> None:
        self._throttling.count += bool(self.throttled_calls)
        super()._called(method)


@dataclass
class Fleet(World):
    ledger: WatchedRollouts = field(default_factory=WatchedRollouts)
    manifests: InMemoryManifests = field(default_factory=InMemoryManifests)
    throttling: FakeThrottling = field(default_factory=FakeThrottling)
    alarms: FakeAlarms = field(default_factory=lambda: FakeAlarms(**{ALARM: None}))
    rollout_executions: FakeRolloutExecutions = field(default_factory=FakeRolloutExecutions)
    tenants: list[TenantId] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.fleet_stacks = FleetStacks(self.throttling)
        self.stacks = self.fleet_stacks

    def populate(self, size: int, chance: random.Random) -> None:
        """Tenants that are served. Some cannot be updated, some need not be, and some are there already."""
        for number in range(1, size + 1):
            tenant = TenantId.parse(f"tenant-{number}")
            version = NEXT_VERSION if chance.random() < 0.05 else VERSION
            url = a_release(version).template_url
            stack = self.stacks.plant_done(tenant, version=version, template_url=url, queue=a_queue(number))
            metadata = replace(
                some_metadata(tenant=tenant, version=version, queue=stack.queue), stack_id=stack.stack_id
            )
            if chance.random() < 0.15:
                made_from_the_same = fingerprint(a_release(NEXT_VERSION), parameters_of(tenant))
                metadata = replace(metadata, deployed=made_from_the_same)
            elif chance.random() < 0.2:
                self.fleet_stacks.doomed.add(stack.stack_id)
            self.table.plant_metadata(metadata)
            self.table.plant_audit(an_audit(Status.SUCCESS, tenant=tenant, version=version))
            self.tenants.append(tenant)

    # What functions and operators call

    def gate(self, around: Around = undisturbed) -> Gate:
        return Gate(
            watched("rollouts", self.ledger, around),
            watched("table", self.table, around),
            watched("throttling", self.throttling, around),
            self.clock,
        )

    def advancing(self, around: Around = undisturbed) -> Advancing:
        return Advancing(
            ledger=watched("rollouts", self.ledger, around),
            tenants=watched("table", self.table, around),
            manifests=watched("manifests", self.manifests, around),
            alarms=self.alarms,
            throttling=self.throttling,
            executions=watched("rolloutExecutions", self.rollout_executions, around),
            clock=self.clock,
        )

    def reviewing(self, around: Around = undisturbed) -> Reviewing:
        return Reviewing(
            gate=self.gate(around),
            ledger=watched("rollouts", self.ledger, around),
            tenants=watched("table", self.table, around),
            releases=self.table,
            stacks=watched("stacks", self.stacks, around),
            queues=self.queues,
            parameters=parameters_of,
            clock=self.clock,
        )

    def rollouts(self, around: Around = undisturbed) -> Rollouts:
        table = watched("table", self.table, around)
        return Rollouts(
            ledger=watched("rollouts", self.ledger, around),
            tenants=table,
            fleet=table,
            releases=self.table,
            manifests=watched("manifests", self.manifests, around),
            alarms=self.alarms,
            executions=watched("rolloutExecutions", self.rollout_executions, around),
            clock=self.clock,
            version=NEXT_VERSION,
        )

    # What happens by itself

    def let_time_pass(self, moment: timedelta = A_SHORT_MOMENT) -> None:
        super().let_time_pass(moment)

    def _settle_stacks(self) -> None:
        before = {stack.stack_id: stack.status for stack in self.stacks.living}
        self.stacks.settle()
        for stack_id, status in before.items():
            stack = self.stacks.all[stack_id].stack
            if stack.status != status:
                assert stack.tenant_id
                assert stack.queue
                tenant = TenantId.parse(stack.tenant_id)
                record_queue(tenant, stack_id=stack_id, queue=stack.queue, ledger=self.table, clock=self.clock)
                stack_settled(stack_id, reader=self.table, executions=self.executions)
