"""HTTP answers of getQueue."""

from __future__ import annotations

from orchestrator.api.problems import (
    FLEET_FULL,
    NOT_PROVISIONED,
    PROVISIONING_FAILED,
    TENANT_BEING_DELETED,
    TENANT_DELETED,
    TOO_MANY_CREATES,
    UNKNOWN_TENANT,
)
from orchestrator.api.responses import RETRY_AFTER_SECONDS, Response, json_response, problem
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import timestamp
from orchestrator.tenants.credentials import Credentials
from orchestrator.tenants.decisions import (
    BeingDeleted,
    Deleted,
    Failed,
    FleetFull,
    Limited,
    NotProvisioned,
    Ready,
    TooManyCreates,
    Unknown,
)
from orchestrator.tenants.get_queue import Answer, Provisioning
from orchestrator.tenants.records import RootCause, release_of


def answer(tenant: TenantId, given: Answer, credentials: Credentials | None = None) -> Response:
    match given:
        case Ready(queue, version):
            response = json_response(
                200,
                {
                    "tenantId": tenant.value,
                    "state": "READY",
                    "status": "READY",
                    "queueUrl": queue.url,
                    "queueArn": queue.arn,
                    "version": version,
                },
            )
            if credentials:
                response.headers["Cache-Control"] = "no-store"
                response.body["credentials"] = _credentials_document(credentials)
            return response
        case Provisioning(execution):
            response = json_response(
                202,
                {
                    "tenantId": tenant.value,
                    "state": "PROVISIONING",
                    "status": "PROVISIONING",
                    "execution": execution,
                    "retryAfterSeconds": RETRY_AFTER_SECONDS,
                },
            )
            response.headers["Retry-After"] = str(RETRY_AFTER_SECONDS)
            return response
        case Failed(audit):
            cause = audit.root_cause
            return problem(
                PROVISIONING_FAILED,
                f"Tenant {tenant} has no queue, because its {audit.operation.lower()} failed"
                + (f": {cause}" if cause else ". No root cause was recorded."),
                tenantId=tenant.value,
                tenantState="FAILED",
                tenantStatus="FAILED",
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
                tenantStatus="DELETING",
                execution=audit.execution,
            )
        case Deleted(audit):
            return problem(
                TENANT_DELETED,
                f"Tenant {tenant} was deleted. To use it again, create it explicitly.",
                tenantId=tenant.value,
                tenantState="DELETED",
                tenantStatus="DELETED",
                execution=audit.execution,
            )
        case NotProvisioned() | Unknown() | FleetFull() | TooManyCreates():
            return _not_started(tenant, given)


def _not_started(tenant: TenantId, given: NotProvisioned | Unknown | Limited) -> Response:
    """The answer if the tenant has no queue and none is being provisioned."""
    match given:
        case Unknown():
            return problem(
                UNKNOWN_TENANT,
                f"There is no tenant {tenant}, and this control plane does not create tenants on getQueue. Ask an "
                f"operator to create it: berth create {tenant}",
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


def _credentials_document(credentials: Credentials) -> dict[str, object]:
    return {
        "access": credentials.access.value,
        "accessKeyId": credentials.access_key_id,
        "secretAccessKey": credentials.secret_access_key,
        "sessionToken": credentials.session_token,
        "expiresAt": timestamp(credentials.expires_at),
    }
