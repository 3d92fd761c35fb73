"""How long an operation may take. This is a module of its own because some functions that need it must start fast."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestrator.common.times import Clock
    from orchestrator.tenants.records import Run

DEADLINE = timedelta(minutes=30)
"""How long an operation may take before it fails. The timeout of the state machines is longer."""

MAX_WAIT_FOR_TURN = timedelta(hours=20)
"""How long a create may wait for its turn before it fails. The timeout of its state machine is longer than this wait
and the operation together. If 50 creates run at once and each takes 70 seconds, 51,000 have had their turn by then."""

MAX_DRAIN_SECONDS = 1_200
"""How long a delete may wait for messages to be received. It is well below the deadline of the operation."""


LEGACY_MAX_RUN_TIME = timedelta(hours=1)
"""How long an operation of an earlier system may run. Berth cannot see the executions of that system's machines."""


def overdue(run: Run, clock: Clock) -> bool:
    return clock.now() - run.started_at > DEADLINE


def is_past_any_deadline(run: Run, clock: Clock) -> bool:
    """The same for a run as its execution describes it: a create may have waited for its turn since its start."""
    # Imported here, because getQueue's function must start fast, and has no runs.
    from orchestrator.tenants.records import Operation

    waited = MAX_WAIT_FOR_TURN if run.attempt.operation is Operation.CREATE else timedelta()
    return clock.now() - run.started_at > DEADLINE + waited


DRAIN_SECONDS = {"type": "integer", "minimum": 0, "maximum": MAX_DRAIN_SECONDS}
