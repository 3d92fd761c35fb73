"""The name of a control plane, and every name in AWS that is derived from it.

An account and region may have several control planes. IAM policies, event rules and surveys recognise what belongs to
a control plane by how its name begins. So no such beginning may itself be the beginning of another control plane's.
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
"""The setting that has :attr:`Names.legacy_prefixes`."""

NAME_MAX_LENGTH = 24
"""CloudFormation shortens the names of stacks in the names of their queues, which have at most 80 characters. What
policies recognise a queue by is at its beginning, 32 characters at most, and has to stay."""

_SERVICE_TOKEN_EXPORT = "TenantQueueServiceToken"  # noqa: S105 - the end of an export's name
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)*", re.ASCII)
_LEGACY_PREFIX = re.compile(r"[A-Za-z][A-Za-z0-9-]{2,63}", re.ASCII)
_TENANT = "tenant"
_QUEUE_URL = re.compile(r"https?://[A-Za-z0-9.:-]{1,255}/(?P<account>\d{12})/(?P<name>[A-Za-z0-9_-]{1,80})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Names:
    """Names of one control plane. Those of :data:`DEFAULT_NAME` are the names that there were before there were more.

    Names that others compare are in lower case. Two control planes whose names differ only by case therefore have
    functions of the same name, and CloudFormation refuses to deploy the second.
    """

    control_plane: str = DEFAULT_NAME
    legacy_prefixes: tuple[str, ...] = ()
    """How the names of stacks, and of their queues, begin that an earlier system has made for tenants."""

    @classmethod
    def parse(cls, value: object, legacy_prefixes: Sequence[str] = ()) -> Names:
        if not isinstance(value, str) or not _NAME.fullmatch(value) or len(value) > NAME_MAX_LENGTH:
            raise InvalidName(
                f"{str(value)[:100]!a} cannot be the name of a control plane: use a letter and then letters, digits "
                f"and single inner hyphens, at most {NAME_MAX_LENGTH} characters."
            )
        # Otherwise what begins with berth-tenant- could be Berth's, or that of a control plane named berth-tenant-dev.
        if _TENANT in value.lower().split("-"):
            raise InvalidName(f"{value!a} cannot be the name of a control plane: no part of it may be {_TENANT!r}.")
        for prefix in legacy_prefixes:
            _check_legacy_prefix(prefix, value)
        return cls(value, tuple(legacy_prefixes))

    def __str__(self) -> str:
        return self.control_plane

    @property
    def tenant_prefix(self) -> str:
        """What IAM policies and event rules recognise tenants' stacks and their queues by."""
        return f"{self.control_plane.lower()}-{_TENANT}-"

    @property
    def prefixes(self) -> tuple[str, ...]:
        """All that tenants' stacks and their queues are recognised by."""
        return self.tenant_prefix, *self.legacy_prefixes

    def reaches(self, name: str) -> bool:
        """True for the name of a stack or a queue that the control plane may change."""
        return name.startswith(self.prefixes)

    def is_legacy(self, name: str) -> bool:
        """True for a name that stacks of an earlier system have, and that Berth derives for no tenant."""
        try:
            self.tenant_of(name)
        except StackNotOurs:
            return name.startswith(self.legacy_prefixes)
        return False

    @property
    def api(self) -> str:
        return self.control_plane.lower()

    @property
    def events(self) -> str:
        """The stack of the event plane, which is beside the control plane's own."""
        return f"{self.control_plane}Events"

    @property
    def events_api(self) -> str:
        return f"{self.api}-events"

    @property
    def metrics(self) -> str:
        """The namespace of what the functions count."""
        return self.control_plane

    @property
    def tenant_metadata_function(self) -> str:
        """Its ARN is a ServiceToken, which must never change. So the name is not left to CloudFormation."""
        return f"{self.tenant_prefix}metadata"

    @property
    def tenant_queue_function(self) -> str:
        """As above: this ServiceToken is in the stacks of other teams."""
        return f"{self.tenant_prefix}queue"

    @property
    def service_token_export(self) -> str:
        """What other teams' stacks import the ServiceToken of Custom::TenantQueue by."""
        return f"{self.control_plane}{_SERVICE_TOKEN_EXPORT}"

    @classmethod
    def exporting(cls, export: str, stack_id: str) -> Names | None:
        """The names of the control plane whose stack exports this, if it is a control plane's ServiceToken."""
        try:
            names = cls.parse(stack_id.split("/")[1])
        except (IndexError, InvalidName):
            return None
        return names if names.service_token_export == export else None

    def stack_of(self, tenant: TenantId) -> str:
        return f"{self.tenant_prefix}{tenant.slug}"

    def tenant_of(self, stack_id: str) -> TenantId:
        """The tenant whose stack this is, from the stack's ARN or name.

        The digest must fit the id, so a stack that merely has a similar name is never taken for a tenant's.
        """
        name = name_of(stack_id)
        try:
            tenant = TenantId.of_slug(name.removeprefix(self.tenant_prefix))
        except InvalidTenantId:
            tenant = None
        if tenant is None or self.stack_of(tenant) != name:
            raise StackNotOurs(f"Stack {name!a} does not bear the name of a tenant's stack.")
        return tenant

    def is_stack_of(self, tenant: TenantId, stack_id: str) -> bool:
        """True if the stack bears the tenant's stack name. CloudFormation knows who made it."""
        try:
            return self.tenant_of(stack_id) == tenant
        except StackNotOurs:
            return False

    def is_own_service_token(self, service_token: str) -> bool:
        """True if this control plane's function keeps the metadata of a stack with this ServiceToken."""
        return service_token.rpartition(":")[2] == self.tenant_metadata_function

    def queue_in(self, stack: StackArn, url: str) -> Queue | None:
        """The tenant's queue that CloudFormation lists in the stack by this URL, with the ARN that belongs to the URL.

        ``None`` if it cannot be a tenant's queue: CloudFormation names a tenant's queues after its stack, in the same
        account. The service role and the policies that Berth gives out reach queues of such names and no others.
        """
        match = _QUEUE_URL.fullmatch(url)
        if match is None or match["account"] != stack.account or not self.reaches(match["name"]):
            return None
        return Queue(f"arn:{stack.partition}:sqs:{stack.region}:{stack.account}:{match['name']}", url)


def _check_legacy_prefix(prefix: str, control_plane: str) -> None:
    if not _LEGACY_PREFIX.fullmatch(prefix):
        raise InvalidName(
            f"{prefix[:100]!a} cannot be how names of an earlier system begin: use a letter, and then letters, digits "
            "and hyphens, 3 to 64 characters."
        )
    # Functions that may change tenants' stacks could otherwise change Berth's own.
    for own in (control_plane, Names(control_plane).events):
        if own.startswith(prefix):
            raise InvalidName(
                f"{prefix!a} cannot be how names of an earlier system begin: Berth's own stack {own} has such a name."
            )
    # Nobody else's names begin as this control plane's tenants' do.
    if prefix.startswith(Names(control_plane).tenant_prefix):
        return
    for family in {_family(control_plane), _family(DEFAULT_NAME)}:
        if prefix.lower().startswith(family) or family.startswith(prefix.lower()):
            raise InvalidName(
                f"{prefix!a} cannot be how names of an earlier system begin: names of control planes begin with "
                f"{family}, and stacks of other control planes must stay out of reach."
            )


def _family(control_plane: str) -> str:
    """How the names of control planes begin that are likely to be deployed beside this one: Berth-dev beside Berth."""
    return f"{control_plane.lower().partition('-')[0]}-"
