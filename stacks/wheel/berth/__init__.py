"""Berth, for programs that call it: ``from berth import Client``. CDK apps have :mod:`berth.cdk` besides.

These names, and those of :mod:`berth.cdk`, are what other programs can rely on. Everything else in the package is the
product itself, and changes without notice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestrator.api.queue_routes import Provisioning, Queue, QueueWithCredentials
    from orchestrator.client.client import Client
    from orchestrator.client.errors import (
        ApiError,
        ApiUnavailable,
        RequestRefused,
        StillProvisioning,
        UnexpectedAnswer,
    )
    from orchestrator.common.errors import BerthError
    from orchestrator.tenants.credentials import Access

__all__ = [
    "Access",
    "ApiError",
    "ApiUnavailable",
    "BerthError",
    "Client",
    "Provisioning",
    "Queue",
    "QueueWithCredentials",
    "RequestRefused",
    "StillProvisioning",
    "UnexpectedAnswer",
]


def __getattr__(name: str) -> object:
    """Load the client when it is used. The command starts by this package, too, and its help needs no SDK."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from orchestrator.api import queue_routes
    from orchestrator.client import client, errors
    from orchestrator.common import errors as all_errors
    from orchestrator.tenants import credentials

    queues = dict.fromkeys(("Provisioning", "Queue", "QueueWithCredentials"), queue_routes)
    others = {"Access": credentials, "BerthError": all_errors, "Client": client, **queues}
    return getattr(others.get(name, errors), name)
