"""What a step of an operation may come to. The Choice after it reads the ``outcome``; errors are faults."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from orchestrator.tenants.records import Queue


@dataclass(frozen=True, slots=True)
class Begun:
    outcome = "begun"


@dataclass(frozen=True, slots=True)
class Busy:
    """Another operation owns the tenant. It is waited for."""

    holder: str
    outcome = "busy"


@dataclass(frozen=True, slots=True)
class GaveUp:
    """The operation cannot succeed any more. ``failed_stack`` when it is the stack that failed."""

    reason: str
    failed_stack: str | None = None
    throttled: bool = False
    """Nothing is wrong: AWS just never had the time."""
    outcome = "failed"


@dataclass(frozen=True, slots=True)
class Empty:
    """Nothing is lost if the queue goes."""

    empty_since: datetime | None
    looked_at: datetime
    outcome = "empty"


@dataclass(frozen=True, slots=True)
class Draining:
    """There are messages, and someone may still receive them; or it has yet to be seen that there are none."""

    messages: str
    empty_since: datetime | None
    """When the first of the latest looks was that saw none."""
    seconds: int
    """How long to wait before the next look."""
    outcome = "draining"


@dataclass(frozen=True, slots=True)
class Reviewing:
    """CloudFormation is working out what an update would change."""

    outcome = "reviewing"


@dataclass(frozen=True, slots=True)
class Started:
    """CloudFormation is at the stack, or the stack that was found needs nothing done to it."""

    stack_id: str
    outcome = "started"


@dataclass(frozen=True, slots=True)
class Clearing:
    """Something has to end before the stack can be started: remains being deleted, a failed update being undone."""

    stack_id: str
    outcome = "clearing"


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The stack is already what was asked for, by CloudFormation's own word."""

    stack_id: str
    outcome = "unchanged"


@dataclass(frozen=True, slots=True)
class Again:
    """Nothing came of it this time, for this reason. The stack is started again."""

    reason: str
    throttled: bool = False
    outcome = "again"


@dataclass(frozen=True, slots=True)
class Gone:
    """There is no stack (any more)."""

    outcome = "gone"


Start = Started | Clearing | Unchanged | Draining | Gone | Again | GaveUp
"""What starting a stack may come to. Whatever it is, inspecting the stack comes next and has the last word."""


@dataclass(frozen=True, slots=True)
class Working:
    """CloudFormation is at it."""

    outcome = "working"


@dataclass(frozen=True, slots=True)
class NotReady:
    """The stack is done, but its queue cannot be served yet, for this reason. The stack is looked at again."""

    reason: str = "its queue does not answer"
    outcome = "notReady"


@dataclass(frozen=True, slots=True)
class Done:
    """The stack stands, at this version."""

    stack_id: str
    queue: Queue
    version: str
    outcome = "done"


@dataclass(frozen=True, slots=True)
class Published:
    """The tenant is served."""

    outcome = "published"


@dataclass(frozen=True, slots=True)
class Removed:
    """The tenant is no more."""

    outcome = "removed"
