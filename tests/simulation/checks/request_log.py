"""The requests for one tenant: when each was made and accepted, and who owns the tenant.

A request is accepted when its execution starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from orchestrator.tenants.stack_resources import Requester, StackResource

LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Create:
    """An explicit create: somebody requested the tenant itself."""

    asked_at: datetime
    """The time is earlier than the start of the execution if the caller had to wait, or for a retry."""
    accepted_at: datetime
    """The start of its execution. Others may send the same request later."""


@dataclass(frozen=True)
class Description:
    """Labels and a pin that were accepted together with a create, and not changed since."""

    labels: Mapping[str, str] | None
    pin: str | None
    number: int


@dataclass
class RequestLog:
    creates: dict[str, Create] = field(default_factory=dict)
    """The explicit creates, by their executions."""
    deletes: dict[str, datetime] = field(default_factory=dict)
    """When each delete was asked for, by their executions."""
    described: dict[str, Description] = field(default_factory=dict)
    """Labels and pins, by the executions that their creates were answered with."""
    answered_deletes: dict[str, datetime] = field(default_factory=dict)
    """When each delete was last requested and accepted, by execution."""
    owner: Requester | None = None
    """The requester whose create succeeded first since the tenant was last deleted."""
    first: Requester | None = None
    """The requester whose create began first since the tenant was last deleted, until one succeeds."""
    sayings: int = 0
    """How often somebody began to set labels or a pin."""
    saying: int = 0
    """How many callers are about to set labels or a pin."""

    def says(self) -> int | None:
        """Somebody is about to set labels or a pin. Return the number of that call, if it is the only one."""
        self.sayings += 1
        self.saying += 1
        return self.sayings if self.saying == 1 else None

    def has_said(self) -> None:
        self.saying -= 1

    def create(self, execution: str, *, asked_at: datetime, at: datetime) -> None:
        before = self.creates.get(execution, Create(asked_at, at))
        self.creates[execution] = Create(max(asked_at, before.asked_at), before.accepted_at)

    def delete(self, execution: str, at: datetime) -> None:
        self.deletes.setdefault(execution, at)

    @property
    def latest(self) -> datetime | None:
        """The time of the latest request for the tenant itself."""
        return max((create.asked_at for create in self.creates.values()), default=None)

    def latest_delete(self) -> str | None:
        """The delete that somebody asked for after the last create of the tenant had been accepted."""
        execution = max(self.answered_deletes, key=lambda each: self.answered_deletes[each], default=None)
        creates = [max(create.asked_at, create.accepted_at) for create in self.creates.values()]
        latest = max(creates, default=LONG_AGO)
        if execution is None or self.answered_deletes[execution] < latest:
            return None
        return execution

    def may_bring_back(self, create: str, delete: str | None) -> bool:
        """True if that create was requested after the delete was."""
        if create not in self.creates:
            return False
        return self.creates[create].asked_at > self.deletes.get(delete or "", LONG_AGO)

    def not_deleted_since(self) -> list[str]:
        """Explicit creates after which no delete has been accepted."""
        latest_delete = max(self.deletes.values(), default=LONG_AGO)
        return [execution for execution, create in self.creates.items() if create.accepted_at > latest_delete]

    def begins(self, by: Requester, *, by_name: bool) -> None:
        """A create has begun. Until one succeeds, an operator who asks ``by_name`` comes before all others."""
        operator = by_name and isinstance(by, str)
        if self.owner is None and (self.first is None or operator or self.again(by)):
            self.first = by

    def again(self, by: Requester | None) -> bool:
        """True for the resource that asked first, in a stack that was deployed again."""
        return isinstance(by, StackResource) and isinstance(self.first, StackResource) and by.stands_for(self.first)

    def is_there(self, by: Requester) -> None:
        """A create has succeeded."""
        self.owner = next(each for each in (self.owner, self.first, by) if each is not None)
        self.first = None

    def is_gone(self) -> None:
        self.owner = self.first = None
