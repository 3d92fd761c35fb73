"""The newest operations of the whole fleet. Step Functions lists them, so no index has to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.records import Attempt, Operation

if TYPE_CHECKING:
    from orchestrator.tenants.ports import Executions

MAX_RECENT = 100
"""The maximum number of operations in a list. Step Functions keeps executions for 90 days."""
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


def recent_operations(executions: Executions, *, limit: int) -> Sequence[RecentOperation]:
    """The newest operations of all kinds, the newest first."""
    found = [
        RecentOperation(operation, each)
        for operation in Operation
        for each in executions.recent(operation, limit=limit)
    ]
    return sorted(found, key=lambda each: each.ran.started_at, reverse=True)[:limit]
