"""Finding rollouts whose execution has died. Only an operator can let such a rollout continue, or abort it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from orchestrator.rollouts.records import Rollout

if TYPE_CHECKING:
    from orchestrator.rollouts.ports import RolloutExecutions, RolloutLedger

START_GRACE_PERIOD = timedelta(minutes=2)
"""The time within which an execution that was requested records that it runs. It takes seconds."""


def stalled_rollouts(ledger: RolloutLedger, executions: RolloutExecutions, now: datetime) -> list[Rollout]:
    """The active rollouts whose execution has died, or never began."""
    found = (ledger.rollout(name) for name in sorted(ledger.registry().active))
    return [each for each in found if each is not None and _has_stalled(each, ledger, executions, now)]


def _has_stalled(rollout: Rollout, ledger: RolloutLedger, executions: RolloutExecutions, now: datetime) -> bool:
    if not rollout.status.active:
        return False
    if rollout.execution is None:
        return now - (rollout.attempted_at or rollout.created_at) > START_GRACE_PERIOD
    if executions.is_running(rollout.execution):
        return False
    # The execution may have recorded the rollout's end, or been replaced, since the rollout was read.
    again = ledger.rollout(rollout.id)
    return again is not None and again.status.active and again.execution == rollout.execution
