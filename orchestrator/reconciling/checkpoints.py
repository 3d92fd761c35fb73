"""How far a survey has come, so that another function continues it when the time of the first one runs out."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from orchestrator.reconciling.records import Reconciliation
from orchestrator.tenants.records import TenantState

CLAIM = timedelta(minutes=15)
"""A function that has saved its progress may continue for this long: it is the maximum time of a function. Only
afterwards another function assumes that it has died."""

MAX_DURATION = timedelta(days=1)
"""A survey that has not ended after this time is given up."""


class Phase(StrEnum):
    """The parts of a survey, in order."""

    STACKS = "stacks"
    """All stacks are listed."""
    TENANTS = "tenants"
    """All tenants in the index are compared with their stacks."""
    OTHERS = "others"
    """The stacks are checked that no tenant in the index has."""
    DRIFT = "drift"
    """CloudFormation detects the drift of the tenants' stacks, if that was requested."""


def new_list_id() -> str:
    return secrets.token_hex(8)


@dataclass(frozen=True, slots=True)
class Position:
    phase: Phase = Phase.STACKS
    after: str | None = None
    """The end of what was checked in this phase: CloudFormation's token, a tenant's position in the index, or the
    number of stacks. ``None`` at the beginning of the phase."""
    state: TenantState | None = None
    """The state whose tenants are being checked."""
    list_id: str = field(default_factory=new_list_id)
    """The id of the list of stacks. If a survey is invoked twice, each function has a list of its own."""
    restarts: int = 0
    """How often the list was begun again."""
    chunks: int = 0
    """The number of parts of the list that are stored."""
    marks: bytes = b""
    """One byte per listed stack: see :class:`orchestrator.reconciling.surveying.Mark`."""
    detections: Mapping[str, str] = field(default_factory=dict)
    """The drift detections that were started and not seen to end: their stacks' ids."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    reconciliation: Reconciliation
    """The results so far."""
    position: Position
    claimed_until: datetime
    """Until then the function that saved this may still be running."""
    revision: int = 0
    """The revision that was read. It is 0 for a survey that was never saved."""
