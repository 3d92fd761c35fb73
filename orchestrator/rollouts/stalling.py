"""Finding rollouts whose execution has died. Only an operator can let such a rollout continue, or abort it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from orchestrator.rollouts.records import Rollout

if TYPE_CHECKING:
    from orchestrator.rollouts.ports import RolloutExecutions, RolloutLedger

START_GRACE_PERIOD = timedelta(minutes=2)
"""The time within which an execution that was requested records that it runs, and Step Functions shows it. It takes
seconds."""


def may_run(rollout: Rollout, executions: RolloutExecutions, now: datetime) -> bool:
    """True if the execution that the rollout has recorded runs, or is too new for Step Functions to show it.

    A second execution beside it would run a second map over the same tenants.
    """
    if rollout.execution is None:
        return False
    running = executions.is_running(rollout.execution)
    return _is_new(rollout, now) if running is None else running


def _is_new(rollout: Rollout, now: datetime) -> bool:
    return now - (rollout.attempted_at or rollout.created_at) <= START_GRACE_PERIOD


def stalled_rollouts(ledger: RolloutLedger, executions: RolloutExecutions, now: datetime) -> list[Rollout]:
    """The active rollouts whose execution has died, or never began."""
    found = (ledger.rollout(name) for name in sorted(ledger.registry().active))
    return [each for each in found if each is not None and _has_stalled(each, ledger, executions, now)]


def _has_stalled(rollout: Rollout, ledger: RolloutLedger, executions: RolloutExecutions, now: datetime) -> bool:
    if not rollout.status.active:
        return False
    if rollout.execution is None:
        return not _is_new(rollout, now)
    if may_run(rollout, executions, now):
        return False
    # The execution may have recorded the rollout's end, or been replaced, since the rollout was read.
    again = ledger.rollout(rollout.id)
    return again is not None and again.status.active and again.execution == rollout.execution
