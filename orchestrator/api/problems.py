"""Kinds of problems (RFC 9457), each declared once: its type, status and title, and what else it says.

Here are those that getQueue's function knows. The others stand beside the routes that answer with them. This module
loads no wire models: the members of a problem are named, and :mod:`orchestrator.api.fields` says what each name holds.
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
    """For the document. What happened to which tenant is in the detail of each answer."""
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Members that hold only these."""
    comes_with: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Members that do not come without others."""
    retry: bool = False
    """Whether the header Retry-After may say when to ask again."""
    model: str = ""
    """The name in the document, if it is not that of the kind."""

    @property
    def type(self) -> str:
        return TYPE_PREFIX + self.kind

    @property
    def name(self) -> str:
        return self.model or "".join(part.capitalize() for part in self.kind.split("-"))

    def without_tenant(self, model: str, description: str) -> Problem:
        """The same problem, of a request that names no tenant."""
        return replace(self, model=model, description=description, required=(), optional=())


INVALID_REQUEST = Problem(
    "invalid-request",
    400,
    "The request is not valid",
    "The request cannot be understood, and why. Nothing was written or started.",
)
NOT_THROUGH_THE_API = Problem(
    "not-through-the-api",
    403,
    "The request did not come through the API",
    "The function was invoked without API Gateway, which says who is asking.",
)
TRY_AGAIN = Problem(
    "try-again",
    503,
    "The request could not be answered now",
    "The request could not be answered now. Ask again after Retry-After seconds.",
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
    "The tenant has no queue, because its create or delete failed, and why.",
    required=("tenantId", "tenantState", "tenantStatus", "operation", "version", "attempt", "execution", "rootCause"),
    values={"tenantState": ("FAILED",), "tenantStatus": ("FAILED",), "operation": ("CREATE", "DELETE")},
)
TENANT_BEING_DELETED = Problem(
    "tenant-being-deleted",
    409,
    "The tenant is being deleted",
    "The tenant is being deleted. Its queue can no longer be used.",
    required=("tenantId", "tenantState", "tenantStatus", "execution"),
    values={"tenantState": ("DELETING",), "tenantStatus": ("DELETING",)},
)
TENANT_DELETED = Problem(
    "tenant-deleted",
    410,
    "The tenant was deleted",
    "The tenant was deleted. Only an explicit create brings it back.",
    required=("tenantId",),
    optional=("tenantState", "tenantStatus", "execution"),
    values={"tenantState": ("DELETED",), "tenantStatus": ("DELETED",)},
)
UNKNOWN_TENANT = Problem(
    "unknown-tenant",
    404,
    "There is no such tenant",
    "There is no such tenant. Where getQueue does not create tenants, asking for the queue does not help.",
    required=("tenantId",),
)
NOT_PROVISIONED = Problem(
    "not-provisioned",
    409,
    "The tenant has no queue",
    "The tenant has no queue in service.",
    required=("tenantId",),
)
FLEET_FULL = Problem(
    "tenant-limit-reached",
    409,
    "There are as many tenants as there may be",
    "There are as many tenants as there may be, so no other is created. Operators are told how many.",
    required=("tenantId",),
    optional=("tenants", "maxTenants"),
)
TOO_MANY_CREATES = Problem(
    "too-many-creates",
    429,
    "Too many creates",
    "The caller has started as many creates within a minute as it may. Nothing was started.",
    required=("tenantId", "retryAfterSeconds"),
    retry=True,
)
