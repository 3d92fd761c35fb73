"""The name of a control plane, and every name in AWS that is derived from it.

An account and region may have several control planes. IAM policies, event rules and surveys recognise the stacks and
queues of a control plane by the prefix of their names. So no such prefix may begin with another control plane's prefix.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.common.errors import InvalidName, InvalidTenantId, StackNotOurs
from orchestrator.common.stack_arns import StackArn, name_of
from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.records import Queue

DEFAULT_NAME = "Berth"

LEGACY_PREFIXES_SETTING = "berth:legacyStackPrefixes"
"""The setting with :attr:`Names.legacy_prefixes`."""

NAME_MAX_LENGTH = 24
"""CloudFormation begins a queue's name with the name of its stack, and shortens that to fit into 80 characters. The
prefix by which policies recognise a queue must stay whole. With this limit, it has at most 32 characters."""

_SERVICE_TOKEN_EXPORT = "TenantQueueServiceToken"  # noqa: S105 - the end of an export's name
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)*", re.ASCII)
_LEGACY_PREFIX = re.compile(r"[A-Za-z][A-Za-z0-9-]{2,63}", re.ASCII)
_TENANT = "tenant"
_EVENTS = "Events"
_FIFO = ".fifo"
"""The end of the name of every FIFO queue."""
_QUEUE_URL = re.compile(
    r"https?://[A-Za-z0-9.:-]{1,255}/(?P<account>\d{12})/(?P<name>[A-Za-z0-9_-]{1,80}(?:\.fifo)?)", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Names:
    """The names of one control plane. Those of :data:`DEFAULT_NAME` are the same as before there could be several.

    Names that policies compare are in lower case. Two control planes whose names differ only by case therefore have
    functions of the same name, and CloudFormation refuses to deploy the second.
    """

    control_plane: str = DEFAULT_NAME
    legacy_prefixes: tuple[str, ...] = ()
    """The prefixes of the names of the stacks and queues that an earlier system has created for tenants."""

    @classmethod
    def parse(cls, value: object, legacy_prefixes: Sequence[str] = ()) -> Names:
        if not isinstance(value, str) or not _NAME.fullmatch(value) or len(value) > NAME_MAX_LENGTH:
            raise InvalidName(
                f"{str(value)[:100]!a} cannot be the name of a control plane: use a letter and then letters, digits "
                f"and single inner hyphens, at most {NAME_MAX_LENGTH} characters."
            )
        # Otherwise a name with the prefix berth-tenant- could also belong to a control plane named berth-tenant-dev.
        if _TENANT in value.lower().split("-"):
            raise InvalidName(f"{value!a} cannot be the name of a control plane: no part of it may be {_TENANT!r}.")
        for prefix in legacy_prefixes:
            _check_legacy_prefix(prefix, value)
        return cls(value, tuple(legacy_prefixes))

    def __str__(self) -> str:
        return self.control_plane

    @property
    def tenant_prefix(self) -> str:
        """The prefix by which IAM policies and event rules recognise tenants' stacks and queues."""
        return f"{self.control_plane.lower()}-{_TENANT}-"

    @property
    def prefixes(self) -> tuple[str, ...]:
        """All prefixes of the names of tenants' stacks and queues."""
        return self.tenant_prefix, *self.legacy_prefixes

    def reaches(self, name: str) -> bool:
        """True for the name of a stack or a queue that the control plane may change."""
        return name.startswith(self.prefixes)

    def is_legacy(self, name: str) -> bool:
        """True for the name of an earlier system's stack that Berth derives for no tenant."""
        try:
            self.tenant_of(name)
        except StackNotOurs:
            return name.startswith(self.legacy_prefixes)
        return False

    def is_warm(self, name: str) -> bool:
        """True for the name of a stack that was made to be kept ready. A tenant may have taken it since."""
        try:
            return self.tenant_of(name).is_warm
        except StackNotOurs:
            return False

    @property
    def api(self) -> str:
        return self.control_plane.lower()

    @property
    def events(self) -> str:
        """The stack of the event plane, which is beside the control plane's own."""
        return f"{self.control_plane}{_EVENTS}"

    @property
    def is_event_plane_of(self) -> str | None:
        """The control plane whose event plane has a stack of this control plane's name, if there can be one."""
        other = self.control_plane.removesuffix(_EVENTS)
        return other if other not in ("", self.control_plane) and _NAME.fullmatch(other) else None

    @property
    def events_api(self) -> str:
        return f"{self.api}-events"

    @property
    def own_events_bus(self) -> str:
        """The EventBridge bus of Berth's own events. The rules of other systems name it, so it must never change."""
        return self.control_plane

    @property
    def metrics(self) -> str:
        """The namespace of the functions' metrics."""
        return self.control_plane

    @property
    def tenant_metadata_function(self) -> str:
        """The function's ARN is a ServiceToken, which must never change. So CloudFormation does not choose the name."""
        return f"{self.tenant_prefix}metadata"

    @property
    def tenant_queue_function(self) -> str:
        """The same applies to this name: its ServiceToken is in other teams' stacks."""
        return f"{self.tenant_prefix}queue"

    @property
    def unfinished_work_function(self) -> str:
        """The function that is asked before a tenant is deleted. Another stack may provide it: the event plane does.

        The control plane knows only this name, so that the other stack can be added and removed without a change of the
        control plane.
        """
        return f"{self.control_plane.lower()}-unfinished-work"

    @property
    def service_token_export(self) -> str:
        """The name of the export from which other teams' stacks import the ServiceToken of Custom::TenantQueue."""
        return f"{self.control_plane}{_SERVICE_TOKEN_EXPORT}"

    @classmethod
    def exporting(cls, export: str, stack_id: str) -> Names | None:
        """The names of the control plane whose stack exports this; ``None`` if it is not a control plane's export."""
        try:
            names = cls.parse(stack_id.split("/")[1])
        except (IndexError, InvalidName):
            return None
        return names if names.service_token_export == export else None

    def stack_of(self, tenant: TenantId) -> str:
        return f"{self.tenant_prefix}{tenant.slug}"

    def tenant_of(self, stack_id: str) -> TenantId:
        """The tenant of the stack with this ARN or name.

        The digest in the name must match the tenant's id, so a stack with a similar name is never mistaken for a
        tenant's.
        """
        name = name_of(stack_id)
        try:
            tenant = TenantId.of_slug(name.removeprefix(self.tenant_prefix))
        except InvalidTenantId:
            tenant = None
        if tenant is None or self.stack_of(tenant) != name:
            raise StackNotOurs(f"Stack {name!a} does not have the name of a tenant's stack.")
        return tenant

    def is_stack_of(self, tenant: TenantId, stack_id: str) -> bool:
        """True if the stack has the tenant's stack name. Anybody may have created a stack with that name."""
        try:
            return self.tenant_of(stack_id) == tenant
        except StackNotOurs:
            return False

    def is_own_service_token(self, service_token: str) -> bool:
        """True if this ServiceToken is this control plane's function for tenants' metadata."""
        return service_token.rpartition(":")[2] == self.tenant_metadata_function

    def queue_in(self, stack: StackArn, url: str, *, fifo: bool = False) -> Queue | None:
        """The tenant's queue that CloudFormation lists in the stack with this URL, and its ARN. ``fifo``: also a FIFO
        queue, which no tenant is served from.

        ``None`` if the queue cannot be a tenant's: CloudFormation names a tenant's queues after its stack, in the same
        account. The service role and the session policies allow only queues with such names.
        """
        match = _QUEUE_URL.fullmatch(url)
        if match is None or match["account"] != stack.account or not self.reaches(match["name"]):
            return None
        if match["name"].endswith(_FIFO) and not fifo:
            return None
        return Queue(f"arn:{stack.partition}:sqs:{stack.region}:{stack.account}:{match['name']}", url)


def _check_legacy_prefix(prefix: str, control_plane: str) -> None:
    if not _LEGACY_PREFIX.fullmatch(prefix):
        raise InvalidName(
            f"{prefix[:100]!a} cannot be a prefix of an earlier system's names: use a letter, and then letters, digits "
            "and hyphens, 3 to 64 characters."
        )
    # Functions that may change tenants' stacks could otherwise change Berth's own.
    for own in (control_plane, Names(control_plane).events):
        if own.startswith(prefix):
            raise InvalidName(
                f"{prefix!a} cannot be a prefix of an earlier system's names: the name of Berth's own stack {own} has "
                "this prefix."
            )
    # Names with this control plane's own prefix for tenants belong to nobody else.
    if prefix.startswith(Names(control_plane).tenant_prefix):
        return
    for family in {_family(control_plane), _family(DEFAULT_NAME)}:
        if prefix.lower().startswith(family) or family.startswith(prefix.lower()):
            raise InvalidName(
                f"{prefix!a} cannot be a prefix of an earlier system's names: names of control planes begin with "
                f"{family}, and this control plane must not be able to change other control planes' stacks."
            )


def _family(control_plane: str) -> str:
    """The common prefix of the control planes that are likely to be deployed together, such as Berth and Berth-dev."""
    return f"{control_plane.lower().partition('-')[0]}-"
