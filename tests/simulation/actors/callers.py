"""The callers of functions, which the checks have to tell apart."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.stack_resources import StackResource


class Role(Enum):
    RUN = "a function of an execution"
    SETTLER = "the function that settles an execution that has ended"
    RECONCILER = "a reconciliation"
    RESOURCE = "the custom resource of a stack"
    EVENT = "the function that hears of stacks"
    PERSON = "an operator or a platform"
    ADVERSARY = "somebody who forges events"
    TEAM = "a Custom::TenantQueue in the stack of another team"
    FORGER = "somebody who pretends to be such a resource"


@dataclass(frozen=True)
class Caller:
    role: Role
    tenant: TenantId | None
    """The tenant that the call is about. A reconciliation is about all tenants."""
    execution: str = ""
    wants_it: bool = False
    """True if the caller asks for the tenant itself, and not only for its queue."""
    asked_at: datetime | None = None
    """When the caller asked, if that was before this call."""
    resource: StackResource | None = None
    """The resource of another team that asks."""

    def __str__(self) -> str:
        return self.execution.rpartition(":")[2] or self.role.value
