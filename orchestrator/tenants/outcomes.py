"""The possible outcomes of an operation's steps. The Choice state after a step reads ``outcome``; errors are faults."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from orchestrator.tenants.records import Queue


@dataclass(frozen=True, slots=True)
class Begun:
    outcome = "begun"


@dataclass(frozen=True, slots=True)
class Busy:
    """Another operation owns the tenant. The execution waits and begins again."""

    holder: str
    outcome = "busy"


@dataclass(frozen=True, slots=True)
class Queued:
    """The maximum number of creates have their turn, or others come first. The execution waits for its own turn."""

    outcome = "queued"


@dataclass(frozen=True, slots=True)
class GaveUp:
    """The operation cannot succeed. ``failed_stack`` is given if the stack itself failed."""

    reason: str
    failed_stack: str | None = None
    throttled: bool = False
    """True if nothing is broken, and AWS only throttled the requests until the deadline."""
    outcome = "failed"


@dataclass(frozen=True, slots=True)
class Draining:
    """The queues hold messages that may still be received, or have not been empty for long enough."""

    messages: str
    empty_since: datetime | None
    """Since when every count has found the queues empty; ``None`` if they hold messages."""
    seconds: int
    """How long to wait before the next count."""
    outcome = "draining"


@dataclass(frozen=True, slots=True)
class Reviewing:
    """CloudFormation is creating the change set of an update, which is read after a wait."""

    outcome = "reviewing"


@dataclass(frozen=True, slots=True)
class Started:
    """CloudFormation is changing the stack, or the existing stack needs no change."""

    stack_id: str
    requested: bool = field(default=False, compare=False)
    """True if this step has requested the change. Otherwise it may have ended already."""
    outcome = "started"


@dataclass(frozen=True, slots=True)
class Clearing:
    """The stack must first be deleted after a failed creation, or roll back a failed update."""

    stack_id: str
    requested: bool = field(default=False, compare=False)
    """As for :class:`Started`."""
    outcome = "clearing"


@dataclass(frozen=True, slots=True)
class Unchanged:
    """CloudFormation reports that the stack needs no change."""

    stack_id: str
    outcome = "unchanged"


@dataclass(frozen=True, slots=True)
class Again:
    """The step had no effect, for this reason. StartStack is called again."""

    reason: str
    throttled: bool = False
    outcome = "again"


@dataclass(frozen=True, slots=True)
class Gone:
    """There is no stack, or it was deleted."""

    outcome = "gone"


Start = Started | Clearing | Unchanged | Reviewing | Draining | Gone | Again | GaveUp
"""The outcomes of starting a stack. In every case, the stack is inspected next, and that outcome decides."""


@dataclass(frozen=True, slots=True)
class Working:
    """CloudFormation is changing the stack."""

    outcome = "working"


@dataclass(frozen=True, slots=True)
class NotReady:
    """The stack is done, but its queue cannot be served yet, for this reason. The stack is inspected again."""

    reason: str = "its queue cannot be used yet"
    outcome = "notReady"


@dataclass(frozen=True, slots=True)
class Done:
    """The stack is complete, at this version."""

    stack_id: str
    queue: Queue
    version: str
    changed_at: datetime | None = field(default=None, compare=False)
    """When CloudFormation last created or updated the stack, if known."""
    outcome = "done"


@dataclass(frozen=True, slots=True)
class Waiting:
    """The execution waits with its task token for CloudFormation's event. No Choice reads this outcome."""

    outcome = "waiting"


@dataclass(frozen=True, slots=True)
class Settled:
    """CloudFormation is not changing the stack, so there is nothing to wait for. The stack is inspected next."""

    outcome = "settled"


Inspection = Done | Gone | NotReady | Working | Reviewing | Again | GaveUp
"""The outcomes of inspecting a stack."""


@dataclass(frozen=True, slots=True)
class Published:
    """The tenant is served."""

    outcome = "published"


@dataclass(frozen=True, slots=True)
class Removed:
    """The tenant is deleted."""

    outcome = "removed"
