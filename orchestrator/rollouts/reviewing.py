"""A dry run's look at one tenant: what CloudFormation says that the update would change. Nothing is changed by it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from orchestrator.common.errors import Conflict, StackNotOurs, Throttled
from orchestrator.releases.published import fingerprint
from orchestrator.releases.records import Release
from orchestrator.rollouts.gate import Gate, Settled, TryAgain
from orchestrator.rollouts.records import Result, TenantOutcome, Turn
from orchestrator.tenants.deadlines import DEADLINE
from orchestrator.tenants.operations import bounded
from orchestrator.tenants.own_stack import own_stack
from orchestrator.tenants.ports import Change, ChangeSet, ChangeSetState, Stack
from orchestrator.tenants.records import RootCause
from orchestrator.tenants.stack_status import StackCondition, condition
from orchestrator.tenants.updating import has_another_key, losses, not_asked_for

if TYPE_CHECKING:
    from orchestrator.common.times import Clock
    from orchestrator.releases.ports import Parameters, Releases
    from orchestrator.rollouts.ports import RolloutLedger
    from orchestrator.tenants.ports import Queues, Stacks, TenantReader


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
        """Take the next step towards knowing. ``fault`` is what went wrong on the way, if something did."""
        before = self.ledger.tenant_outcome(turn.rollout, turn.item.tenant)
        rollout = self.ledger.rollout(turn.rollout)
        if before is None or before.result.settled or rollout is None:
            return Settled(before.result if before else Result.SKIPPED)
        try:
            found = self._failed(before, fault) if fault else self._look(before, allowed=rollout.wish.allow_replacement)
        except (Conflict, Throttled) as not_now:
            found = None  # What was drawn up has gone meanwhile, or AWS has no time.
            fault = str(not_now)
        if found is None and self.clock.now() - before.updated_at > DEADLINE:
            found = self._failed(before, fault or "CloudFormation did not draw up the changes in time.")
        if found is None:
            return TryAgain()
        return self.gate.settle(turn, replace(found, updated_at=self.clock.now()))

    def _look(self, before: TenantOutcome, *, allowed: bool) -> TenantOutcome | None:
        """What would become of the tenant; ``None`` while that is not known."""
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
        drawn_up = self.stacks.changes(stack.stack_id, name)
        if drawn_up is None:
            self.stacks.draw_up_changes(tenant, stack.stack_id, release=release, name=name)
            return None
        if drawn_up.state is ChangeSetState.PENDING:
            return None
        strange = None
        if drawn_up.state is ChangeSetState.READY:
            parameters = self.parameters(tenant, release)
            if has_another_key(drawn_up, parameters):
                self.stacks.forget_changes(stack.stack_id, drawn_up.id)
                return None
            strange = not_asked_for(drawn_up, stack, release, parameters=parameters, stacks=self.stacks)
        self.stacks.forget_changes(stack.stack_id, drawn_up.id)
        return self._failed(before, strange) if strange else self._told(before, stack, drawn_up, allowed=allowed)

    def _told(self, before: TenantOutcome, stack: Stack, drawn_up: ChangeSet, *, allowed: bool) -> TenantOutcome | None:
        match drawn_up.state:
            case ChangeSetState.EMPTY:
                return replace(before, result=Result.UNCHANGED)
            case ChangeSetState.READY:
                changes = tuple(_told_change(change) for change in drawn_up.changes)
                metadata = self.tenants.metadata(before.item.tenant)
                served = metadata.queue if metadata else None
                lost = None if allowed else losses(stack, drawn_up.changes, self.queues, served=served)
                if lost:
                    return replace(self._failed(before, lost), changes=changes)
                return replace(before, result=Result.SUCCEEDED, changes=changes)
            case ChangeSetState.FAILED:
                return self._failed(before, f"CloudFormation could not draw up the changes: {drawn_up.reason}")
            case _:
                return None  # The stack has changed since: drawn up anew.

    def _failed(self, before: TenantOutcome, reason: str) -> TenantOutcome:
        name = self.stacks.names.stack_of(before.item.tenant)
        cause = RootCause(name, "AWS::CloudFormation::Stack", reason)
        return replace(before, result=Result.FAILED, root_cause=bounded(cause))


def _change_set(before: TenantOutcome) -> str:
    """The name of what is drawn up for the tenant's turn: the same each time, and nobody can guess it before.

    Step Functions makes up the name of each child of a map.
    """
    return f"plan-{hashlib.sha256(before.execution.encode()).hexdigest()[:32]}"


def _told_change(change: Change) -> str:
    verb = "may replace or remove" if change.removes else "changes"
    return f"{verb} {change.resource} ({change.resource_type})"
