"""How long an operation may take. By itself, because every function asks and some must start fast."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestrator.common.times import Clock
    from orchestrator.tenants.records import Run

DEADLINE = timedelta(minutes=30)
"""How long an operation may take before it is called failed. The machines' own timeout lies beyond it."""

MAX_DRAIN_SECONDS = 1_200
"""How long a delete may wait for messages to be received: well within the time that an operation has."""


MAY_STILL_RUN = timedelta(hours=1)
"""An operation of an earlier system that began more recently than this may still run. Berth cannot ask its machines."""


def overdue(run: Run, clock: Clock) -> bool:
    return clock.now() - run.started_at > DEADLINE


DRAIN_SECONDS = {"type": "integer", "minimum": 0, "maximum": MAX_DRAIN_SECONDS}
