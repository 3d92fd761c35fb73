"""Settling an operation whose execution died: recording how the operation ended.

An execution that is aborted or times out runs no further states, so it does not record how its operation ended. Then
the stack decides: if it is as requested, the operation has succeeded, otherwise it has failed. While CloudFormation is
still changing the stack, the operation stays unfinished until its deadline.
"""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.common.errors import Conflict, LostOwnership, StackNotOurs, Throttled
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import Clock
from orchestrator.releases.ports import Parameters, Releases
from orchestrator.tenants.deadlines import overdue
from orchestrator.tenants.deleting import why_not_adopted
from orchestrator.tenants.operations import finish, why_not_of_tier, write_failure
from orchestrator.tenants.outcomes import Again, Done, GaveUp, Gone, Inspection, NotReady, Reviewing, Started, Working
from orchestrator.tenants.own_stack import own_stack
from orchestrator.tenants.ports import Executions, OperationLedger, Queues, TenantReader
from orchestrator.tenants.records import Metadata, Operation, RootCause, Run, Status
from orchestrator.tenants.stack_ports import Stacks
from orchestrator.tenants.state import is_delete_in_effect, run_of
from orchestrator.tenants.tenant_stack import inspect_stack
from orchestrator.tenants.turns import Turns


@dataclass(frozen=True, slots=True)
class Settled:
    """The operation's end is recorded, or would be recorded except in a dry run."""

    status: Status
    reason: str
    outcome = "settled"


@dataclass(frozen=True, slots=True)
class StillOpen:
    """The operation may still end by itself."""

    reason: str
    outcome = "open"


@dataclass(frozen=True, slots=True)
class NothingToSettle:
    """The operation has recorded its end, or another run owns the tenant."""

    outcome = "nothing"


Settlement = Settled | StillOpen | NothingToSettle


@dataclass(frozen=True, slots=True)
class Settling:
    reader: TenantReader
    ledger: OperationLedger
    releases: Releases
    stacks: Stacks
    queues: Queues
    executions: Executions
    parameters: Parameters
    turns: Turns
    clock: Clock

    def settle(self, given: Run, *, dry_run: bool = False) -> Settlement:
        """Settle the reported run ``given``. The run's details are read from the lock, or from the audit."""
        settlement = self._settle(given, dry_run=dry_run)
        is_create = given.attempt.operation is Operation.CREATE
        if is_create and not dry_run and not isinstance(settlement, StillOpen):
            self.turns.leave(given.execution)
        return settlement

    def _settle(self, given: Run, *, dry_run: bool) -> Settlement:
        lock = self.reader.lock(given.tenant)
        owns = lock is not None and lock.run.execution == given.execution
        run = lock.run if lock and owns else self._begun(given.tenant, given.execution)
        if run is None:
            return NothingToSettle()
        if not self.executions.is_over(run.execution):
            return StillOpen("its execution is running, or has only just ended")
        outcome = self._inspect(run) if owns else Again("it no longer held the tenant's lock")
        if isinstance(outcome, Working | NotReady | Reviewing):
            return StillOpen("its execution has ended, but CloudFormation is still changing the stack")
        settled = self._settled(run, outcome)
        if dry_run:
            return settled
        try:
            return self._record(run, outcome, settled)
        except LostOwnership:
            return NothingToSettle()
        except (Conflict, StackNotOurs) as changed:
            reason = f"its stack changed while the operation was being settled: {changed}"
            if not overdue(run, self.clock):
                return StillOpen(reason)
            return self._fail(run, Again(reason))  # Otherwise the tenant might be locked for ever.

    def _fail(self, run: Run, outcome: Again) -> Settled | NothingToSettle:
        try:
            return self._record(run, outcome, self._settled(run, outcome))
        except LostOwnership:
            return NothingToSettle()

    def _begun(self, tenant: TenantId, execution: str) -> Run | None:
        """The run of that execution, if its audit has the status Started."""
        started = (
            run_of(audit)
            for audit in self.reader.audits(tenant)
            if audit.execution == execution and audit.status is Status.STARTED
        )
        return next(started, None)

    def _inspect(self, run: Run) -> Inspection:
        try:
            stack = own_stack(run.tenant, reader=self.reader, stacks=self.stacks)
        except StackNotOurs as not_ours:
            return GaveUp(str(not_ours))
        if stack is None and run.attempt.operation is Operation.DELETE:
            metadata = self.reader.metadata(run.tenant)
            reason = why_not_adopted(metadata, self.stacks.names, self.queues)
            return GaveUp(reason) if reason else Gone()
        if stack is None:
            return Again("there is no stack")
        started = Started(stack.stack_id)
        inspected = inspect_stack(
            run, started=started, reader=self.reader, stacks=self.stacks, queues=self.queues, clock=self.clock
        )
        if isinstance(inspected, GaveUp) and inspected.throttled:
            raise Throttled(inspected.reason)  # The stack was not inspected. A later reconciliation can do that.
        return self._checked(run, inspected) if isinstance(inspected, Done) else inspected

    def _checked(self, run: Run, done: Done) -> Done | Again:
        """The stack, unless it must not be published for this operation."""
        metadata = self.reader.metadata(run.tenant)
        if not self._may_be_served(run, metadata):
            return Again("its execution died before it was checked whether the operation may run")
        not_of_tier = why_not_of_tier(run, done.stack_id, done.version, metadata, self.releases)
        return Again(not_of_tier) if not_of_tier else done

    def _may_be_served(self, run: Run, metadata: Metadata | None) -> bool:
        """False if publishing would restore a deleted tenant. Only the first step of an operation decides on that."""
        if run.attempt.operation is not Operation.CREATE:
            return metadata is not None and metadata.published
        return not is_delete_in_effect(self.reader.audits(run.tenant))

    def _settled(self, run: Run, outcome: Done | Gone | Again | GaveUp) -> Settled:
        if isinstance(outcome, Done | Gone):
            return Settled(Status.SUCCESS, "the stack is as requested")
        how = self.executions.how_it_ended(run.execution)
        return Settled(
            Status.FAILURE, f"The execution {how} and did not record how the operation ended: {outcome.reason}"
        )

    def _record(self, run: Run, outcome: Done | Gone | Again | GaveUp, settled: Settled) -> Settled:
        if isinstance(outcome, Done | Gone):
            stack = outcome if isinstance(outcome, Done) else None
            finish(
                run,
                stack=stack,
                reader=self.reader,
                ledger=self.ledger,
                releases=self.releases,
                stacks=self.stacks,
                parameters=self.parameters,
                clock=self.clock,
            )
            return settled
        cause = write_failure(
            run,
            failure=RootCause(run.attempt.name, "AWS::StepFunctions::Execution", settled.reason),
            failed_stack=outcome.failed_stack if isinstance(outcome, GaveUp) else None,
            reader=self.reader,
            ledger=self.ledger,
            stacks=self.stacks,
            clock=self.clock,
        )
        return Settled(Status.FAILURE, str(cause))
