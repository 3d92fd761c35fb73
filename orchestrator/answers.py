"""getQueue's answers as HTTP sees them. Errors are problem details (RFC 9457) with a stable type."""

from __future__ import annotations

import json
from dataclasses import dataclass

from orchestrator.decisions import BeingDeleted, Deleted, Failed, Ready
from orchestrator.errors import InvalidRequest
from orchestrator.get_queue import Answer, Provisioning
from orchestrator.tenants import TenantId

RETRY_AFTER_SECONDS = 2
"""When to ask again. The ready path is one cheap read, so asking often is no burden."""

_PROBLEM_TYPE = "urn:berth:problem:"


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    headers: dict[str, str]
    body: dict[str, object]

    def as_proxy_result(self) -> dict[str, object]:
        """The shape that API Gateway takes; direct callers of the function get the same."""
        return {"statusCode": self.status, "headers": self.headers, "body": json.dumps(self.body)}


def answer(tenant: TenantId, given: Answer) -> Response:
    match given:
        case Ready(queue, version):
            return Response(
                200,
                {"Content-Type": "application/json"},
                {
                    "tenantId": tenant.value,
                    "status": "READY",
                    "queueUrl": queue.url,
                    "queueArn": queue.arn,
                    "version": version,
                },
            )
        case Provisioning(execution):
            return Response(
                202,
                {"Content-Type": "application/json", "Retry-After": str(RETRY_AFTER_SECONDS)},
                {
                    "tenantId": tenant.value,
                    "status": "PROVISIONING",
                    "execution": execution,
                    "retryAfterSeconds": RETRY_AFTER_SECONDS,
                },
            )
        case Failed(audit):
            cause = audit.root_cause
            return _problem(
                424,
                "provisioning-failed",
                "Provisioning failed",
                f"Tenant {tenant} has no queue, because its {audit.operation.lower()} failed"
                + (f": {cause}" if cause else ". No root cause was recorded."),
                tenantId=tenant.value,
                tenantStatus="FAILED",
                operation=audit.operation.value,
                version=audit.version,
                attempt=audit.attempt,
                execution=audit.execution,
                rootCause={"resource": cause.resource, "type": cause.resource_type, "reason": cause.reason}
                if cause
                else None,
            )
        case BeingDeleted(audit):
            return _problem(
                409,
                "tenant-being-deleted",
                "The tenant is being deleted",
                f"Tenant {tenant} is being deleted. Its queue can no longer be used.",
                tenantId=tenant.value,
                tenantStatus="DELETING",
                execution=audit.execution,
            )
        case Deleted(audit):
            return _problem(
                410,
                "tenant-deleted",
                "The tenant was deleted",
                f"Tenant {tenant} was deleted. Only creating it explicitly brings it back.",
                tenantId=tenant.value,
                tenantStatus="DELETED",
                execution=audit.execution,
            )


def refuse(error: InvalidRequest) -> Response:
    return _problem(400, "invalid-request", "The request is not valid", str(error))


def come_back_later(detail: str) -> Response:
    response = _problem(503, "try-again", "The request could not be answered now", detail)
    response.headers["Retry-After"] = str(RETRY_AFTER_SECONDS)
    return response


def _problem(status: int, kind: str, title: str, detail: str, **more: object) -> Response:
    """Problem details. Their `status` is HTTP's; the tenant's own is `tenantStatus`."""
    return Response(
        status,
        {"Content-Type": "application/problem+json"},
        {"type": _PROBLEM_TYPE + kind, "title": title, "status": status, "detail": detail, **more},
    )
