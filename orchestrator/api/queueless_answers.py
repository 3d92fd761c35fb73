"""HTTP answers of getQueue about tenants that have no queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.api.problems import (
    FLEET_FULL,
    NO_RELEASE,
    NOT_PROVISIONED,
    PROVISIONING_FAILED,
    TENANT_BEING_DELETED,
    TENANT_DELETED,
    TOO_MANY_CREATES,
    UNKNOWN_TENANT,
)
from orchestrator.api.responses import Response, json_response, problem
from orchestrator.common.tenant_ids import WARM_PREFIX
from orchestrator.tenants.decisions import (
    BeingDeleted,
    Deleted,
    Failed,
    FleetFull,
    Limited,
    NoRelease,
    NotProvisioned,
    TooManyCreates,
    Unknown,
)
from orchestrator.tenants.provisioning import Provisioning, Queueless
from orchestrator.tenants.records import RootCause, release_of

if TYPE_CHECKING:
    from orchestrator.common.tenant_ids import TenantId


MAX_RETRY_AFTER_SECONDS = 900
"""The longest time after which a caller is told to ask again. A create may wait for its turn for longer."""


def queueless_answer(tenant: TenantId, given: Queueless, retry_after: int) -> Response:
    match given:
        case Provisioning():
            return _provisioning(tenant, given, retry_after)
        case Failed(audit):
            cause = audit.root_cause
            return problem(
                PROVISIONING_FAILED,
                f"Tenant {tenant} has no queue, because its {audit.operation.lower()} failed"
                + (f": {cause}" if cause else ". No root cause was recorded."),
                tenantId=tenant.value,
                tenantState="FAILED",
                operation=audit.operation.value,
                version=release_of(audit.operation, audit.version),
                attempt=audit.attempt,
                execution=audit.execution,
                rootCause=root_cause_document(cause),
            )
        case BeingDeleted(audit):
            return problem(
                TENANT_BEING_DELETED,
                f"Tenant {tenant} is being deleted. Its queue can no longer be used.",
                tenantId=tenant.value,
                tenantState="DELETING",
                execution=audit.execution,
            )
        case Deleted(audit):
            return problem(
                TENANT_DELETED,
                f"Tenant {tenant} was deleted. To use it again, create it explicitly.",
                tenantId=tenant.value,
                tenantState="DELETED",
                execution=audit.execution,
            )
        case NotProvisioned() | Unknown() | NoRelease() | FleetFull() | TooManyCreates():
            return _not_started(tenant, given)


def _provisioning(tenant: TenantId, given: Provisioning, retry_after: int) -> Response:
    waits = given.wait_seconds
    # The estimate may change. A create that has its turn takes about a minute more, so the caller asks again then.
    seconds = retry_after if waits is None else min(waits + retry_after, MAX_RETRY_AFTER_SECONDS)
    body: dict[str, object] = {
        "tenantId": tenant.value,
        "state": "PROVISIONING",
        "execution": given.execution,
        "retryAfterSeconds": seconds,
    }
    response = json_response(202, body if waits is None else {**body, "waitSeconds": waits})
    response.headers["Retry-After"] = str(seconds)
    return response


def _not_started(tenant: TenantId, given: NotProvisioned | Unknown | NoRelease | Limited) -> Response:
    """The answer if the tenant has no queue and none is being provisioned."""
    match given:
        case Unknown() if tenant.is_warm:
            return problem(
                UNKNOWN_TENANT,
                f"There is no tenant {tenant}, and there cannot be one: ids that begin with {WARM_PREFIX} are reserved "
                "for stacks that are kept ready for new tenants. Use another id.",
                tenantId=tenant.value,
            )
        case Unknown():
            return problem(
                UNKNOWN_TENANT,
                f"There is no tenant {tenant}, and this control plane does not create tenants on getQueue. Ask an "
                f"operator to create it: berth create {tenant}",
                tenantId=tenant.value,
            )
        case NotProvisioned(withdrawn=str() as version):
            return problem(
                NOT_PROVISIONED,
                f"Tenant {tenant} has no queue, and is pinned to release {version}, which was withdrawn. Nothing was "
                f"started. Ask an operator to change its pin: berth pin {tenant} VERSION, or berth unpin {tenant}. "
                "Then ask again.",
                tenantId=tenant.value,
            )
        case NotProvisioned(asking_provisions):
            detail = (
                f"Tenant {tenant} has no queue yet. To provision it, call GET /tenants/{tenant}/queue first."
                if asking_provisions
                else f"Tenant {tenant} has no queue, and this control plane does not create queues on getQueue. Ask an "
                f"operator to create it: berth create {tenant}"
            )
            return problem(NOT_PROVISIONED, detail, tenantId=tenant.value)
        case NoRelease(tier):
            return problem(
                NO_RELEASE,
                f"Tenant {tenant} was not created: its tier {tier} has no release, or all of them were withdrawn. "
                "Nothing was started. Ask an operator to publish or to reinstate a release: berth releases",
                tenantId=tenant.value,
            )
        case FleetFull():
            # The detail leaves out the number of tenants: platforms may not see the fleet.
            return problem(
                FLEET_FULL,
                f"Tenant {tenant} was not created: this control plane has reached its limit of tenants "
                "(berth:maxTenants). Nothing was started. Ask an operator to delete unused tenants or to "
                "raise the limit: berth doctor",
                tenantId=tenant.value,
            )
        case TooManyCreates(limit, seconds):
            response = problem(
                TOO_MANY_CREATES,
                f"Tenant {tenant} was not created: you have reached the limit of {limit} creates per minute "
                f"(berth:createsPerMinute). Nothing was started. Try again in {seconds} seconds.",
                tenantId=tenant.value,
                retryAfterSeconds=seconds,
            )
            response.headers["Retry-After"] = str(seconds)
            return response


def root_cause_document(cause: RootCause | None) -> dict[str, object] | None:
    return {"resource": cause.resource, "type": cause.resource_type, "reason": cause.reason} if cause else None
