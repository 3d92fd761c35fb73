"""The errors that the client raises.

BerthError
└── ApiError
    ├── RequestRefused     the API refused the request: a problem with a stable kind
    ├── ApiUnavailable     the API was too busy for the whole time that the client tried
    ├── StillProvisioning  the queue was not ready in time; its provisioning continues
    └── UnexpectedAnswer   the answer is not from Berth's API, or from an incompatible version
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.common.errors import BerthError


class ApiError(BerthError):
    """``kind`` is the last part of a problem's type, such as ``tenant-deleted``; empty without a problem."""

    def __init__(self, message: str, *, status: int, body: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.status = status
        self.body = body
        self.kind = str(body.get("type", "")).rpartition(":")[2]


class RequestRefused(ApiError):
    """The API refused the request. The message says why, and what to do."""


class ApiUnavailable(ApiError):
    """The API was too busy for the whole time that the client tried. Try again later."""


class StillProvisioning(ApiError):
    """The tenant's queue was not ready in time. Its provisioning continues."""


class UnexpectedAnswer(ApiError):
    """An answer that this client cannot read."""
