"""A dry run's review of one tenant: a change set shows what the update would change. The stack is not changed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from orchestrator.common.errors import Conflict, StackNotOurs, Throttled
from orchestrator.releases.published import fingerprint
from orchestrator.releases.records import Release
from orchestrator.rollouts.gate import Gate, Settled, TryAgain
from orchestrator.rollouts.records import Result, TenantOutcome, Turn
from orchestrator.rollouts.resource_changes import ResourceChange
from orchestrator.tenants.deadlines import DEADLINE
from orchestrator.tenants.operations import bounded
from orchestrator.tenants.own_stack import own_stack
from orchestrator.tenants.records import RootCause
from orchestrator.tenants.stack_ports import ChangeSet, ChangeSetState, Stack
from orchestrator.tenants.stack_status import StackCondition, condition
from orchestrator.tenants.updating import has_another_key, losses, not_asked_for

if TYPE_CHECKING:
    from orchestrator.common.times import Clock
    from orchestrator.releases.ports import Parameters, Releases
    from orchestrator.rollouts.ports import RolloutLedger
    from orchestrator.tenants.ports import Queues, TenantReader
    from orchestrator.tenants.stack_ports import Stacks


@dataclass(frozen=True, slots=True)
class Reviewing:
    gate: Gate
    ledger: RolloutLedger
    tenants: TenantReader
    releases: Releases
    stacks: Stacks
    queues: Queues
    parameters: Parameters
    clock: Clock

    def review(self, turn: Turn, fault: str | None = None) -> Settled | TryAgain:
        """Take the next step of the review. ``fault`` is the error that ended the turn, if there is one."""
        before = self.ledger.tenant_outcome(turn.rollout, turn.item.tenant)
        rollout = self.ledger.rollout(turn.rollout)
        if before is None or before.result.settled or rollout is None:
            return Settled(before.result if before else Result.SKIPPED)
        try:
            found = (
                self._failed(before, fault) if fault else self._inspect(before, allowed=rollout.spec.allow_replacement)
            )
        except (Conflict, Throttled) as temporary:
            found = None  # The change set was deleted meanwhile, or AWS throttled the call.
            fault = str(temporary)
        if found is None and self.clock.now() - before.updated_at > DEADLINE:
            found = self._failed(before, fault or "CloudFormation did not create the change set in time.")
        if found is None:
            return TryAgain()
        return self.gate.settle(turn, replace(found, updated_at=self.clock.now()))

    def _inspect(self, before: TenantOutcome, *, allowed: bool) -> TenantOutcome | None:
        """The outcome that the update would have; ``None`` while it is not known."""
        tenant, release = before.item.tenant, self.releases.release(before.item.version)
        if release is None:
            return self._failed(before, f"Version {before.item.version} was never published.")
        metadata = self.tenants.metadata(tenant)
        if (
            metadata
            and metadata.deployed
            and metadata.deployed == fingerprint(release, self.parameters(tenant, release))
        ):
            return replace(before, result=Result.UNCHANGED)
        try:
            stack = own_stack(tenant, reader=self.tenants, stacks=self.stacks)
        except StackNotOurs as not_ours:
            return self._failed(before, str(not_ours))
        if stack is None:
            return self._failed(before, f"The tenant has no stack named {self.stacks.names.stack_of(tenant)}.")
        match condition(stack.status):
            case StackCondition.WORKING:
                return None
            case StackCondition.NEEDS_ROLLBACK | StackCondition.NEEDS_ROLLBACK_CONTINUED:
                return replace(before, result=Result.SUCCEEDED, changes=(f"the stack, which is {stack.status}",))
            case StackCondition.DONE | StackCondition.DONE_AT_OLD_VERSION:
                return self._compare(before, stack, release, allowed=allowed)
            case _:
                return self._failed(before, f"The stack is {stack.status}: {stack.status_reason}")

    def _compare(self, before: TenantOutcome, stack: Stack, release: Release, *, allowed: bool) -> TenantOutcome | None:
        name, tenant = _change_set(before), before.item.tenant
        change_set = self.stacks.find_change_set(stack.stack_id, name)
        if change_set is None:
            self.stacks.create_change_set(tenant, stack.stack_id, release=release, name=name)
            return None
        if change_set.state is ChangeSetState.PENDING:
            return None
        mismatch = None
        if change_set.state is ChangeSetState.READY:
            parameters = self.parameters(tenant, release)
            if has_another_key(change_set, parameters):
                self.stacks.delete_change_set(stack.stack_id, change_set.id)
                return None
            mismatch = not_asked_for(change_set, stack, release, parameters=parameters, stacks=self.stacks)
        self.stacks.delete_change_set(stack.stack_id, change_set.id)
        return self._failed(before, mismatch) if mismatch else self._outcome(before, stack, change_set, allowed=allowed)

    def _outcome(
        self, before: TenantOutcome, stack: Stack, change_set: ChangeSet, *, allowed: bool
    ) -> TenantOutcome | None:
        match change_set.state:
            case ChangeSetState.EMPTY:
                return replace(before, result=Result.UNCHANGED)
            case ChangeSetState.READY:
                changes = tuple(
                    str(ResourceChange(change.effect, change.resource, change.resource_type))
                    for change in change_set.changes
                )
                metadata = self.tenants.metadata(before.item.tenant)
                served = metadata.queue if metadata else None
                lost = None if allowed else losses(stack, change_set.changes, self.queues, served=served)
                if lost:
                    return replace(self._failed(before, lost), changes=changes)
                return replace(before, result=Result.SUCCEEDED, changes=changes)
            case ChangeSetState.FAILED:
                return self._failed(before, f"CloudFormation could not create the change set: {change_set.reason}")
            case _:
                return None  # The stack has changed since, so the next step creates another change set.

    def _failed(self, before: TenantOutcome, reason: str) -> TenantOutcome:
        name = self.stacks.names.stack_of(before.item.tenant)
        cause = RootCause(name, "AWS::CloudFormation::Stack", reason)
        return replace(before, result=Result.FAILED, root_cause=bounded(cause))


def _change_set(before: TenantOutcome) -> str:
    """The name of the change set for the tenant's turn: the same in each step, but not predictable.

    The name is derived from the ARN of the map's child execution, which Step Functions generates.
    """
    return f"plan-{hashlib.sha256(before.execution.encode()).hexdigest()[:32]}"
