"""An operation whose execution died: it is given the end that is true, or the reason why it has none.

An execution that is aborted or times out runs none of its states any more, so nobody says how the operation ended. What
is true then is what CloudFormation says: if the stack stands as it was asked for, the operation has succeeded; if
not, it has failed. While CloudFormation is still at it the operation is left open, until its deadline.
"""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.common.errors import Conflict, LostOwnership, StackNotOurs, Throttled
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import Clock
from orchestrator.releases.ports import Parameters, Releases
from orchestrator.tenants.deleting import why_not_adopted
from orchestrator.tenants.operations import finish, write_failure
from orchestrator.tenants.outcomes import Again, Done, GaveUp, Gone, NotReady, Started, Working
from orchestrator.tenants.own_stack import own_stack
from orchestrator.tenants.ports import Executions, OperationLedger, Queues, Stacks, TenantReader
from orchestrator.tenants.records import Attempt, Audit, Operation, RootCause, Run, Status
from orchestrator.tenants.state import delete_counts
from orchestrator.tenants.tenant_stack import inspect_stack


def run_of(audit: Audit) -> Run:
    """The run as its audit row tells of it. When it began is not in there; when it was recorded is close to it."""
    attempt = Attempt(audit.tenant, audit.operation, audit.version or "", audit.attempt)
    return Run(attempt, audit.execution, audit.updated_at, audit.request)


@dataclass(frozen=True, slots=True)
class Settled:
    """The operation has its end. In a dry run: it would have it."""

    status: Status
    reason: str
    outcome = "settled"


@dataclass(frozen=True, slots=True)
class StillOpen:
    """Something may still come of it."""

    reason: str
    outcome = "open"


@dataclass(frozen=True, slots=True)
class NothingToSettle:
    """It has said how it ended, or somebody else has taken its place."""

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
    clock: Clock

    def settle(self, given: Run, *, dry_run: bool = False) -> Settlement:
        """``given`` is the run as whoever reports it knows it. The lock knows it better, and so does its audit row."""
        lock = self.reader.lock(given.tenant)
        owns = lock is not None and lock.run.execution == given.execution
        run = lock.run if lock and owns else self._begun(given.tenant, given.execution)
        if run is None:
            return NothingToSettle()
        if not self.executions.is_over(run.execution):
            return StillOpen("its execution is running, or has only just ended")
        truth = self._truth(run) if owns else Again("it had lost its lock")
        if isinstance(truth, Working | NotReady):
            return StillOpen("its execution has ended, and CloudFormation is still at the stack")
        settled = self._settled(run, truth)
        if dry_run:
            return settled
        try:
            return self._record(run, truth, settled)
        except LostOwnership:
            return NothingToSettle()
        except (Conflict, StackNotOurs) as changed:
            return StillOpen(f"its stack has changed while the operation was being settled: {changed}")

    def _begun(self, tenant: TenantId, execution: str) -> Run | None:
        """The run of that execution, if its audit row says Started."""
        started = (
            run_of(audit)
            for audit in self.reader.audits(tenant)
            if audit.execution == execution and audit.status is Status.STARTED
        )
        return next(started, None)

    def _truth(self, run: Run) -> Done | Gone | Working | NotReady | Again | GaveUp:
        try:
            stack = own_stack(run.tenant, reader=self.reader, stacks=self.stacks)
        except StackNotOurs as not_ours:
            return GaveUp(str(not_ours))
        if stack is None and run.attempt.operation is Operation.DELETE:
            reason = why_not_adopted(self.reader.metadata(run.tenant), self.stacks.names, self.queues)
            return GaveUp(reason) if reason else Gone()
        if stack is None:
            return Again("there is no stack")
        started = Started(stack.stack_id)
        inspected = inspect_stack(
            run, started=started, reader=self.reader, stacks=self.stacks, queues=self.queues, clock=self.clock
        )
        if isinstance(inspected, GaveUp) and inspected.throttled:
            raise Throttled(inspected.reason)  # It was not looked at, so nothing is known. Here there is no hurry.
        if isinstance(inspected, Done) and not self._may_be_served(run):
            return Again("it died before it was seen whether it may serve the tenant")
        return inspected

    def _may_be_served(self, run: Run) -> bool:
        """Whether publishing brings nobody back who was deleted: of that only the first step is the judge."""
        if run.attempt.operation is Operation.CREATE:
            return not delete_counts(self.reader.audits(run.tenant))
        metadata = self.reader.metadata(run.tenant)
        return metadata is not None and metadata.published

    def _settled(self, run: Run, truth: Done | Gone | Again | GaveUp) -> Settled:
        if isinstance(truth, Done | Gone):
            return Settled(Status.SUCCESS, "the stack is what was asked for")
        how = self.executions.how_it_ended(run.execution)
        return Settled(Status.FAILURE, f"The execution {how}, and did not say how the operation ended: {truth.reason}")

    def _record(self, run: Run, truth: Done | Gone | Again | GaveUp, settled: Settled) -> Settled:
        if isinstance(truth, Done | Gone):
            stack = truth if isinstance(truth, Done) else None
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
            failed_stack=truth.failed_stack if isinstance(truth, GaveUp) else None,
            reader=self.reader,
            ledger=self.ledger,
            stacks=self.stacks,
            clock=self.clock,
        )
        return Settled(Status.FAILURE, str(cause))
