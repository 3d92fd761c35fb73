"""What the client raises.

BerthError
└── ApiError
    ├── RequestRefused     the API understood, and will not: a problem with a stable kind
    ├── ApiUnavailable     the API was too busy to answer for as long as the client asked
    ├── StillProvisioning  the queue was not ready in time; its provisioning goes on
    └── UnexpectedAnswer   what answered is not Berth's API, or of a version that this client cannot read
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.common.errors import BerthError


class ApiError(BerthError):
    """``kind`` is the last part of a problem's type, such as ``tenant-deleted``; empty if it was no problem."""

    def __init__(self, message: str, *, status: int, body: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.status = status
        self.body = body
        self.kind = str(body.get("type", "")).rpartition(":")[2]


class RequestRefused(ApiError):
    """The API understood, and will not. The message says why, and what to do."""


class ApiUnavailable(ApiError):
    """The API was too busy to answer for as long as the client asked. Ask again later."""


class StillProvisioning(ApiError):
    """The tenant's queue was not ready in time. Its provisioning goes on."""


class UnexpectedAnswer(ApiError):
    """An answer that this client cannot read."""
