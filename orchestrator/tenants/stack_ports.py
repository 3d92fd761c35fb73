"""The interface to CloudFormation. ``adapters/`` implements it for AWS, ``tests/fakes`` in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, StrEnum, auto
from typing import TYPE_CHECKING, Protocol

from orchestrator.common.stack_arns import StackArn
from orchestrator.common.tenant_ids import TenantId
from orchestrator.releases.records import Release
from orchestrator.releases.template_contract import OWN_OUTPUTS
from orchestrator.tenants.records import (
    Queue,
)
from orchestrator.tenants.stack_resources import StackResource

if TYPE_CHECKING:
    from orchestrator.tenants.names import Names


@dataclass(frozen=True, slots=True)
class Stack:
    """A tenant's stack as CloudFormation describes it."""

    stack_id: str
    status: str
    status_reason: str
    tenant_id: str | None
    queue: Queue | None
    """The queue in the stack's outputs. The author of the template chose them, so this queue is never served: see
    :meth:`Stacks.queue`."""
    version: str | None
    ours: bool
    """True if the stack has the service role of this deployment. Nobody else may pass that role."""
    attached: frozenset[str] = frozenset()
    """The notification topics and rollback alarms that somebody has attached to the stack."""
    parameters: Mapping[str, str] = field(default_factory=dict, hash=False)
    """The values of all the parameters of the stack's template."""
    changed_at: datetime | None = None
    """When CloudFormation last created or updated the stack, by Berth or anyone else."""
    outputs: Mapping[str, str] = field(default_factory=dict, hash=False)
    """All outputs of the stack, by name."""

    @property
    def resources(self) -> dict[str, str]:
        """The outputs that are not fields of the tenant's record already, such as the name of a bucket."""
        return {name: value for name, value in self.outputs.items() if name not in OWN_OUTPUTS}


@dataclass(frozen=True, slots=True)
class ResourceEvent:
    """One of a stack's events."""

    at: datetime
    resource: str
    resource_type: str
    status: str
    reason: str
    is_stack: bool
    cancelled: bool
    """CloudFormation cancelled this resource because another one had failed."""
    client_token: str = ""
    """The client token of the request that caused the event."""


class ChangeSetState(Enum):
    PENDING = auto()
    READY = auto()
    EMPTY = auto()
    """There is nothing to change."""
    EXECUTED = auto()
    STALE = auto()
    """The stack has changed since the change set was created."""
    FAILED = auto()


class Effect(StrEnum):
    """The effect of a change on a resource, as a change set says."""

    ADD = "ADD"
    CHANGE = "CHANGE"
    MAY_REPLACE = "MAY_REPLACE"
    """CloudFormation knows only while it updates the stack whether it has to replace the resource."""
    REPLACE = "REPLACE"
    REMOVE = "REMOVE"

    @property
    def removes(self) -> bool:
        """True if the resource is removed or replaced, or might be."""
        return self in (Effect.MAY_REPLACE, Effect.REPLACE, Effect.REMOVE)


@dataclass(frozen=True, slots=True)
class Change:
    """The change of one resource in a change set."""

    resource: str
    resource_type: str
    physical_id: str
    effect: Effect


@dataclass(frozen=True, slots=True)
class ChangeSet:
    id: str
    stack_id: str
    state: ChangeSetState
    reason: str = ""
    changes: Sequence[Change] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)
    extras: Sequence[str] = ()
    """Options of the change set other than template, role and parameters. Berth uses no others."""
    attached: frozenset[str] = frozenset()
    """The topics and alarms that the stack would have afterwards. Berth keeps those that the stack has."""


class Stacks(Protocol):
    """CloudFormation. Every method may raise :class:`orchestrator.common.errors.Throttled`."""

    @property
    def names(self) -> Names:
        """The names of the control plane that owns these stacks."""

    def find(self, name_or_id: str) -> Stack | None: ...

    def queue(self, stack_id: str) -> Queue | None:
        """The tenant's queue among the stack's resources, as CloudFormation lists them now."""

    def queues(self, stack_id: str) -> Mapping[str, Queue]:
        """All queues among the stack's resources, by logical id.

        They include FIFO queues, from which no tenant is served, and queues that are being deleted, or that could not
        be deleted.
        """

    def create(self, tenant: TenantId, *, release: Release, client_token: str) -> str | None:
        """Create the tenant's stack and return its id. ``None`` if a stack of that name exists already."""

    def delete(self, stack_id: str, *, client_token: str) -> None: ...

    def update(self, tenant: TenantId, stack_id: str, *, release: Release, template: str, client_token: str) -> bool:
        """Update the stack to the release without a change set. ``False`` if CloudFormation has nothing to change.

        Raises :class:`orchestrator.common.errors.Conflict` if the stack cannot be updated now, or does not exist.
        """

    def create_change_set(self, tenant: TenantId, stack_id: str, *, release: Release, name: str) -> str | None:
        """Create a change set with this name that updates the stack to the release, and return its id.

        ``None`` if the stack already has a change set of that name, from any requester, or if there is no such stack:
        somebody may have deleted it since it was described.
        """

    def find_change_set(self, stack_id: str, change_set: str) -> ChangeSet | None:
        """The change set with this id or name."""

    def template_digest(self, stack_id: str, change_set: str) -> str | None:
        """The digest of the change set's template; ``None`` if the template cannot be a release's.

        Raises :class:`orchestrator.common.errors.Conflict` if the change set no longer exists.
        """

    def execute_change_set(self, stack_id: str, change_set: str, *, client_token: str) -> None:
        """Execute the change set with this id. A name would not do: it may be another change set's by now."""

    def delete_change_set(self, stack_id: str, change_set: str) -> None: ...

    def roll_back(self, stack_id: str, *, client_token: str) -> None:
        """Roll back a failed update that was not rolled back."""

    def continue_rollback(self, stack_id: str, *, client_token: str) -> None:
        """Continue the rollback of an update after the rollback had failed."""

    def events(self, stack_id: str) -> Iterable[ResourceEvent]:
        """The stack's events, the newest first."""


@dataclass(frozen=True, slots=True)
class ResourceState:
    """A resource of a stack as CloudFormation describes it."""

    resource_type: str
    status: str
    physical_id: str
    """Empty while the resource has no physical id."""
    changed_at: datetime | None
    """When the status last changed, if CloudFormation reports it."""


class StackResources(Protocol):
    """The custom resources that Berth's functions handle, in the control plane's stack and in other teams' stacks.

    Every method may raise :class:`orchestrator.common.errors.Throttled`.
    """

    def resource(self, resource: StackResource) -> ResourceState | None: ...

    def stack_output(self, stack: StackArn, name: str) -> str | None:
        """The value of one of the stack's outputs, if it has that output."""

    def stack_status(self, stack: StackArn) -> str | None: ...
