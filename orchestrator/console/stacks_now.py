"""Tenants' stacks as they are now, for pages that ask for themselves every few seconds.

CloudFormation describes only a few stacks per second, for the whole account, and operations and rollouts need most of
that. So an open page asks for its tenant's stack at most every :data:`KEPT`, and again as soon as the tenant's records
have changed. A person who opens or reloads the page sees the stack as it is now.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Lock
from typing import TYPE_CHECKING

from orchestrator.api.comparison_routes import COMPARE_TENANT
from orchestrator.cli.api import Document
from orchestrator.cli.errors import ApiProblem

if TYPE_CHECKING:
    from orchestrator.console.visit import Visit

KEPT = timedelta(seconds=30)
MAX_KEPT = 200


@dataclass(frozen=True, slots=True)
class StackLook:
    """The result of asking for one tenant's stack."""

    at: datetime
    records: object
    """The tenant's records at that time. If they have changed since, the result is too old."""
    compared: Document | None
    """The API's answer; ``None`` if there was none."""
    why_not: str | None = None


class StacksNow:
    def __init__(self) -> None:
        self._looks: OrderedDict[str, StackLook] = OrderedDict()
        self._lock = Lock()

    def of(self, visit: Visit, tenant: Document) -> StackLook:
        name, now = tenant["tenantId"], visit.console.clock()
        records = (tenant["state"], tenant["updatedAt"], tenant["currentOperation"])
        with self._lock:
            kept = self._looks.get(name)
        if kept and visit.is_update and kept.records == records and now - kept.at < KEPT:
            return kept
        look = _look(visit, name, now, records)
        with self._lock:
            self._looks[name] = look
            self._looks.move_to_end(name)
            while len(self._looks) > MAX_KEPT:
                self._looks.popitem(last=False)
        return look


def _look(visit: Visit, tenant: str, now: datetime, records: object) -> StackLook:
    from orchestrator.console.visit import Away, CredentialsRefused

    try:
        return StackLook(now, records, visit.ask(COMPARE_TENANT, tenantId=tenant))
    except (Away, CredentialsRefused, ApiProblem) as error:
        return StackLook(now, records, None, str(error))
