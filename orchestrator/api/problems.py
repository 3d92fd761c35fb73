"""Kinds of problems (RFC 9457), each declared once with its type, status, title and members.

This module has the problems that getQueue's function answers with. The others are declared beside their routes. It
loads no wire models: a problem lists the names of its members, and :mod:`orchestrator.api.fields` defines their types.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

TYPE_PREFIX = "urn:berth:problem:"


@dataclass(frozen=True, slots=True)
class Problem:
    kind: str
    status: int
    title: str
    description: str
    """The description in the OpenAPI document. The detail of each answer says what happened, and to which tenant."""
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The allowed values of members that allow only some."""
    comes_with: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Members that require other members to be present."""
    retry: bool = False
    """True if the answer may have the header Retry-After."""
    model: str = ""
    """The name in the OpenAPI document. By default, it is derived from the kind."""

    @property
    def type(self) -> str:
        return TYPE_PREFIX + self.kind

    @property
    def name(self) -> str:
        return self.model or "".join(part.capitalize() for part in self.kind.split("-"))

    def without_tenant(self, model: str, description: str) -> Problem:
        """The same problem for a request that names no tenant."""
        return replace(self, model=model, description=description, required=(), optional=())


INVALID_REQUEST = Problem(
    "invalid-request",
    400,
    "The request is not valid",
    "The request is not valid. The detail says why. Nothing was written or started.",
)
NOT_THROUGH_THE_API = Problem(
    "not-through-the-api",
    403,
    "The request did not come through the API",
    "The function was invoked without API Gateway, so the caller is unknown.",
)
TRY_AGAIN = Problem(
    "try-again",
    503,
    "The request cannot be answered now",
    "The request cannot be answered now. Try again after Retry-After seconds.",
    retry=True,
)
CREDENTIALS_NOT_ENABLED = Problem(
    "credentials-not-enabled",
    403,
    "Temporary credentials are not enabled",
    "The control plane was deployed without temporary credentials.",
)
PROVISIONING_FAILED = Problem(
    "provisioning-failed",
    424,
    "Provisioning failed",
    "The tenant has no queue, because its create or delete failed. rootCause says why.",
    required=("tenantId", "tenantState", "operation", "version", "attempt", "execution", "rootCause"),
    values={"tenantState": ("FAILED",), "operation": ("CREATE", "DELETE")},
)
TENANT_BEING_DELETED = Problem(
    "tenant-being-deleted",
    409,
    "The tenant is being deleted",
    "The tenant is being deleted. Its queue can no longer be used.",
    required=("tenantId", "tenantState", "execution"),
    values={"tenantState": ("DELETING",)},
)
TENANT_DELETED = Problem(
    "tenant-deleted",
    410,
    "The tenant was deleted",
    "The tenant was deleted. Only an explicit create brings it back.",
    required=("tenantId",),
    optional=("tenantState", "execution"),
    values={"tenantState": ("DELETED",)},
)
UNKNOWN_TENANT = Problem(
    "unknown-tenant",
    404,
    "There is no such tenant",
    "There is no such tenant. getQueue answers with this problem only if it does not create tenants.",
    required=("tenantId",),
)
NOT_PROVISIONED = Problem(
    "not-provisioned",
    409,
    "The tenant has no queue",
    "The tenant has no queue in service.",
    required=("tenantId",),
)
NO_RELEASE = Problem(
    "tier-without-release",
    409,
    "The tier has no release",
    "The tier in which the tenant would be created has no release, or all of them were withdrawn. Nothing was started.",
    required=("tenantId",),
)
FLEET_FULL = Problem(
    "tenant-limit-reached",
    409,
    "The tenant limit is reached",
    "The control plane has reached its limit of tenants, so the tenant was not created. Operators also get the number "
    "of tenants and the limit.",
    required=("tenantId",),
    optional=("tenants", "maxTenants"),
)
TOO_MANY_CREATES = Problem(
    "too-many-creates",
    429,
    "Too many creates",
    "The caller has reached its limit of creates per minute. Nothing was started.",
    required=("tenantId", "retryAfterSeconds"),
    retry=True,
)
