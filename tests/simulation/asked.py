"""What was asked for a tenant, and in which order it was accepted: by whom it may be brought back, and deleted.

An order is accepted in the moment in which its execution starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Create:
    """A create by way of which somebody asked for the tenant itself."""

    asked_at: datetime
    """Not when its execution started, if whoever asked has been waiting since, or it is tried again."""
    accepted_at: datetime
    """When its execution started. Others may ask for the same later."""


@dataclass(frozen=True)
class Description:
    """Labels and a pin that were accepted together with a create, and nothing else was said since."""

    labels: Mapping[str, str] | None
    pin: str | None
    number: int


@dataclass
class Asked:
    creates: dict[str, Create] = field(default_factory=dict)
    """Explicit ones, by their executions."""
    deletes: dict[str, datetime] = field(default_factory=dict)
    """When which was accepted, by their executions."""
    described: dict[str, Description] = field(default_factory=dict)
    """What was said by which create, by the executions that were answered with."""
    creators: set[str] = field(default_factory=set)
    """Who brought the tenant into being since it was last deleted: more than one if its stack vanished meanwhile."""
    sayings: int = 0
    """How often anybody was about to say something about the tenant: labels or a pin."""
    saying: int = 0
    """How many are about to."""

    def says(self) -> int | None:
        """Somebody is about to say something about the tenant. Its number, unless others are at it, too."""
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
        """When somebody last asked for the tenant itself."""
        return max((create.asked_at for create in self.creates.values()), default=None)

    def may_bring_back(self, create: str, delete: str | None) -> bool:
        """Whether somebody asked for the tenant, by that create, after the delete had been accepted."""
        if create not in self.creates:
            return False
        return self.creates[create].asked_at > self.deletes.get(delete or "", LONG_AGO)

    def not_deleted_since(self) -> list[str]:
        """Explicit creates after which no delete has been accepted."""
        latest_delete = max(self.deletes.values(), default=LONG_AGO)
        return [execution for execution, create in self.creates.items() if create.accepted_at > latest_delete]

    def is_there(self, by: str, *, anew: bool) -> None:
        """A create has succeeded. ``anew`` when the tenant was not there before."""
        if anew:
            self.creators.add(by)

    def is_gone(self) -> None:
        self.creators.clear()
