"""Runs a reconciliation of all tenants: settles dead operations, finds differences, and repairs them if requested.

Two reconciliations at once do no harm: every write is fenced or conditional, and the names of executions are
deterministic.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta

from orchestrator.common.errors import Throttled, UnreadableRows
from orchestrator.common.times import Clock
from orchestrator.pool.maintaining import Maintaining
from orchestrator.reconciling.checking import TenantChecks
from orchestrator.reconciling.checkpoints import CLAIM, MAX_DURATION, Checkpoint
from orchestrator.reconciling.fleet_counts import FleetCounter
from orchestrator.reconciling.ports import (
    ReconciliationLedger,
    StackSurvey,
    SurveyedQueues,
)
from orchestrator.reconciling.progress import OutOfTime, Progress
from orchestrator.reconciling.records import (
    Finding,
    Kind,
    Reconciliation,
    ReconciliationStatus,
    Remedy,
)
from orchestrator.reconciling.repairing import Repairing
from orchestrator.reconciling.settling import Settled, Settling, StillOpen
from orchestrator.reconciling.surveying import Superseded, Surveying
from orchestrator.releases.ports import Releases
from orchestrator.rollouts.ports import RolloutExecutions, RolloutLedger
from orchestrator.rollouts.stalling import stalled_rollouts
from orchestrator.tenants.deadlines import DEADLINE
from orchestrator.tenants.operations import CHECK_HOLDER_AFTER
from orchestrator.tenants.ports import FleetReader, TenantReader
from orchestrator.tenants.records import Audit
from orchestrator.tenants.stack_ports import Stacks
from orchestrator.tenants.state import run_of

STUCK_AFTER = DEADLINE + timedelta(minutes=10)
"""An operation that has been Started for longer than this has exceeded its deadline."""

_MAX_REASON = 1_000
"""The maximum length of an error that is recorded as the reason of an incomplete reconciliation."""


@dataclass
class Reconciler:
    """Runs one reconciliation. ``has_time`` returns False when the time has run out; ``pause`` sleeps."""

    tenants: TenantReader
    fleet: FleetReader
    releases: Releases
    stacks: Stacks
    survey: StackSurvey
    queues: SurveyedQueues
    settling: Settling
    repairing: Repairing
    ledger: ReconciliationLedger
    counter: FleetCounter
    rollouts: RolloutLedger
    rollout_executions: RolloutExecutions
    pool: Maintaining
    clock: Clock
    has_time: Callable[[], bool] = lambda: True
    pause: Callable[[float], None] = lambda _seconds: None

    def run(self, requested: Reconciliation) -> Reconciliation:
        """Run the requested reconciliation, or continue it, and record its result.

        If the time of a survey runs out, its position is saved, and the result is RUNNING: the next scheduled
        reconciliation continues it. The result is also RUNNING if another function is at work on it.
        """
        progress = Progress(requested, self.ledger, self.clock, self.has_time, self.pause)
        saved = self._saved_survey(requested)
        if saved is None:
            progress.show()
            return self._run(progress, None)
        if (claimed := self._claim(saved)) is None:
            return saved.reconciliation
        progress.resume(claimed.reconciliation)
        if self.clock.now() - claimed.reconciliation.started_at > MAX_DURATION:
            reason = f"It has not ended within {MAX_DURATION.total_seconds() / 3600:.0f} hours."
            return self._end(progress, ReconciliationStatus.INCOMPLETE, reason)
        return self._run(progress, claimed)

    def _run(self, progress: Progress, saved: Checkpoint | None) -> Reconciliation:
        surveying: Surveying | None = None
        try:
            if saved is None:
                self._settle_unfinished(progress)
                self._check_rollouts(progress)
                self.counter.renew()
                if not progress.requested.spec.dry_run:
                    self.pool.maintain()
            if progress.requested.spec.survey:
                surveying = self._surveying(progress, saved)
                surveying.run()
        except (OutOfTime, Throttled) as stopped:
            return self._stop(progress, surveying, stopped)
        except Superseded:
            return progress.so_far()
        except Exception as error:
            # The end is recorded, because the requester waits for it. The function fails all the same, so that the
            # error is logged and raises the alarm.
            self._end(progress, ReconciliationStatus.INCOMPLETE, f"{type(error).__name__}: {error}"[:_MAX_REASON])
            raise
        return self._end(progress, ReconciliationStatus.DONE)

    def _stop(self, progress: Progress, surveying: Surveying | None, stopped: OutOfTime | Throttled) -> Reconciliation:
        """Save the position of a survey, or else record what was found so far.

        A survey that has been saved before is long, so it is continued also if AWS throttles. A short one is repeated.
        """
        out_of_time = isinstance(stopped, OutOfTime)
        if surveying is not None and (out_of_time or surveying.saved is not None):
            with suppress(Superseded):
                surveying.save()
            return progress.so_far()
        reason = "The time ran out before everything was checked."
        return self._end(
            progress,
            ReconciliationStatus.INCOMPLETE,
            reason if out_of_time else f"AWS throttled the requests: {stopped}",
        )

    def _end(self, progress: Progress, status: ReconciliationStatus, reason: str = "") -> Reconciliation:
        ended = progress.so_far(status, reason)
        self.ledger.record_reconciliation(ended)
        if ended.spec.survey and ended.id in self.ledger.unfinished_surveys():
            self.ledger.end_survey(ended.id)
        return ended

    # Surveys

    def _saved_survey(self, requested: Reconciliation) -> Checkpoint | None:
        if requested.spec.survey and requested.id in self.ledger.unfinished_surveys():
            return self.ledger.checkpoint(requested.id)
        return None

    def _claim(self, saved: Checkpoint) -> Checkpoint | None:
        """``None`` if another function is at work on the survey."""
        now = self.clock.now()
        claimed = replace(saved, claimed_until=now + CLAIM)
        if saved.claimed_until > now or not self.ledger.save_checkpoint(claimed):
            return None
        return replace(claimed, revision=claimed.revision + 1)

    def _surveying(self, progress: Progress, saved: Checkpoint | None) -> Surveying:
        releases = {release.version: release for release in self.releases.releases()}
        checks = TenantChecks(self.tenants, self.stacks, self.queues, self.repairing, releases, progress)
        return Surveying(self.survey, self.fleet, self.stacks.names, checks, progress, saved)

    # Dead operations and rollouts

    def _settle_unfinished(self, progress: Progress) -> None:
        """Settle old unfinished operations. The index may lag, so settling reads the rows themselves."""
        now = self.clock.now()
        for audit in self.fleet.unfinished_operations():
            if now - audit.updated_at < CHECK_HOLDER_AFTER:
                break  # The oldest come first.
            if now - audit.seen_alive_at < CHECK_HOLDER_AFTER:
                continue  # A create that waits for its turn. There may be thousands of them.
            progress.check_time()
            progress.coverage = replace(progress.coverage, operations=progress.coverage.operations + 1)
            self._settle(audit, progress)
        if not progress.requested.spec.dry_run:
            self.settling.turns.settle()

    def _settle(self, audit: Audit, progress: Progress) -> None:
        run, requested = run_of(audit), progress.requested
        operation = f"{audit.operation} {audit.version or ''}, attempt {audit.attempt}"
        # Operations whose executions died are settled also by a survey that repairs nothing else.
        only = requested.spec.only
        repairs = not requested.spec.dry_run and (only is None or audit.tenant.value in only)
        try:
            settlement = self.settling.settle(run, dry_run=not repairs)
        except (Throttled, UnreadableRows) as error:
            settlement = StillOpen(str(error))
        match settlement:
            case Settled(status, reason):
                progress.found(
                    Finding(
                        Kind.UNFINISHED,
                        audit.tenant.value,
                        f"{operation} never ended: {audit.execution}",
                        Remedy.SETTLE,
                        result=f"{status}: {reason}" if repairs else "",
                        repaired=repairs,
                    )
                )
            case StillOpen(reason) if self.clock.now() - audit.seen_alive_at > STUCK_AFTER:
                progress.stuck += 1
                progress.found(
                    Finding(
                        Kind.UNFINISHED,
                        audit.tenant.value,
                        f"{operation} is past its deadline: {reason}",
                        Remedy.NONE,
                        f"Check the execution {audit.execution}. If it hangs, stop it: then the operation is settled.",
                    )
                )
            case _:
                pass

    def _check_rollouts(self, progress: Progress) -> None:
        for rollout in stalled_rollouts(self.rollouts, self.rollout_executions, self.clock.now()):
            name = rollout.id
            progress.found(
                Finding(
                    Kind.STALLED_ROLLOUT,
                    name,
                    f"it is {rollout.status}, but its execution is not running",
                    Remedy.NONE,
                    f"Resume it: berth rollout resume {name}, or abort it: berth rollout abort {name}",
                )
            )
