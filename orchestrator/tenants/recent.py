"""The newest operations of the whole fleet. Step Functions lists them, so no index has to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import Clock
from orchestrator.tenants.records import Attempt, Operation

if TYPE_CHECKING:
    from orchestrator.tenants.ports import Executions

MAX_RECENT = 100
"""The maximum number of operations in a list. Step Functions keeps executions for 90 days."""
REMEMBERED_FOR = timedelta(seconds=5)
"""How long a list is used again. Every open overview of a console asks for one each time that it updates itself, and
Step Functions allows few lists per second in an account."""
_RELEASE = re.compile(r"-([0-9]+\.[0-9]+\.[0-9]+)-[0-9]+\Z")


class ExecutionStatus(StrEnum):
    """The statuses of an execution."""

    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    TIMED_OUT = "TIMED_OUT"
    ABORTED = "ABORTED"
    PENDING_REDRIVE = "PENDING_REDRIVE"


@dataclass(frozen=True, slots=True)
class RecentExecution:
    name: str
    execution: str
    status: ExecutionStatus
    started_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class RecentOperation:
    operation: Operation
    ran: RecentExecution

    @property
    def tenant(self) -> TenantId | None:
        """``None`` if somebody has started the execution by hand, with another name."""
        return Attempt.tenant_of(self.ran.name.replace(".", "-"))

    @property
    def release(self) -> str | None:
        found = _RELEASE.search(self.ran.name)
        return found[1] if found else None


class RecentOperations:
    """The newest operations of all kinds, the newest first, as they were at most :data:`REMEMBERED_FOR` ago."""

    def __init__(self, executions: Executions, clock: Clock) -> None:
        self._executions = executions
        self._clock = clock
        self._listed: _List | None = None

    def newest(self, *, limit: int) -> Sequence[RecentOperation]:
        now = self._clock.now()
        if self._listed is None or not self._listed.answers(limit, now):
            self._listed = _List(now, limit, self._list(limit))
        return self._listed.operations[:limit]

    def _list(self, limit: int) -> Sequence[RecentOperation]:
        found = [
            RecentOperation(operation, each)
            for operation in Operation
            for each in self._executions.recent(operation, limit=limit)
        ]
        return sorted(found, key=lambda each: each.ran.started_at, reverse=True)[:limit]


@dataclass(frozen=True, slots=True)
class _List:
    at: datetime
    limit: int
    operations: Sequence[RecentOperation]

    def answers(self, limit: int, now: datetime) -> bool:
        """True if the list is long enough and recent. A clock that was set back says nothing about its age."""
        return limit <= self.limit and timedelta(0) <= now - self.at < REMEMBERED_FOR
