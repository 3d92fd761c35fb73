"""HTTP answers to operators about tenants and releases. The command line shows the same documents."""

from __future__ import annotations

from datetime import datetime

from orchestrator.api.queueless_answers import root_cause_document
from orchestrator.api.responses import RETRY_AFTER_SECONDS, Response, json_response, problem
from orchestrator.api.routes import PROBLEMS
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import timestamp
from orchestrator.tenants.admission import Refusal, Refused, unknown_tenant
from orchestrator.tenants.execution_input import request_document
from orchestrator.tenants.fleet import Page, TenantDetail
from orchestrator.tenants.history import HistoryEntry, RecordedChange, UnreadableEntry
from orchestrator.tenants.listings import ListedTenant
from orchestrator.tenants.order_results import Accepted, Changed, OrderResult, Unchanged
from orchestrator.tenants.records import STATE_DURING, Audit, Lock, Request, TenantState, release_of


def order_response(tenant: TenantId, ordered: OrderResult) -> Response:
    match ordered:
        case Accepted(attempt, execution):
            response = json_response(
                202,
                {
                    "tenantId": tenant.value,
                    "state": STATE_DURING[attempt.operation].value,
                    "operation": attempt.operation.value,
                    "version": attempt.release,
                    "attempt": attempt.number,
                    "execution": execution,
                    "retryAfterSeconds": RETRY_AFTER_SECONDS,
                },
            )
            response.headers.update({"Retry-After": str(RETRY_AFTER_SECONDS), "Location": f"/tenants/{tenant}"})
            return response
        case Changed(reason, before, after):
            return json_response(
                200,
                {
                    "tenantId": tenant.value,
                    "status": "CHANGED",
                    "detail": reason,
                    "before": dict(before),
                    "after": dict(after),
                },
            )
        case Unchanged(reason):
            return json_response(200, {"tenantId": tenant.value, "status": "UNCHANGED", "detail": reason})
        case Refused():
            return refuse_order(tenant, ordered)


def refuse_order(tenant: TenantId, refused: Refused) -> Response:
    return refuse(refused, tenantId=tenant.value)


def refuse(refused: Refused, **more: str) -> Response:
    response = problem(PROBLEMS[refused.kind], refused.reason, **more, **refused.details)
    if refused.kind is Refusal.BUSY:
        response.headers["Retry-After"] = str(RETRY_AFTER_SECONDS)
    return response


def tenant_response(detail: TenantDetail) -> Response:
    if not detail.known:
        return refuse_order(detail.tenant, unknown_tenant(detail.tenant))
    metadata = detail.metadata
    return json_response(
        200,
        {
            "tenantId": detail.tenant.value,
            "state": detail.state.value,
            "version": detail.version,
            "pinnedVersion": metadata.pinned_version if metadata else None,
            "tier": metadata.tier if metadata and detail.state is not TenantState.DELETED else None,
            "labels": dict(detail.labels),
            "updatedAt": _time(detail.updated_at),
            "createdAt": _time(metadata.created_at if metadata else None),
            "queueUrl": detail.queue.url if detail.queue else None,
            "queueArn": detail.queue.arn if detail.queue else None,
            "stackId": metadata.stack_id if metadata else None,
            "resources": dict(metadata.resources) if metadata else {},
            "rootCause": root_cause_document(detail.root_cause),
            "currentOperation": _lock_document(detail.lock) if detail.lock else None,
            "audits": [_audit_document(audit) for audit in detail.audits],
            "history": [_history_document(entry) for entry in detail.history],
            "earlierThan": _time(detail.earlier_than),
        },
    )


def tenants_response(page: Page) -> Response:
    return json_response(
        200,
        {"tenants": [_listed_document(listed) for listed in page.tenants], "cursor": page.cursor},
    )


def _listed_document(listed: ListedTenant) -> dict[str, object]:
    return {
        "tenantId": listed.tenant.value,
        "state": listed.state.value,
        "version": listed.version,
        "pinnedVersion": listed.pinned_version,
        "tier": listed.tier,
        "labels": dict(listed.labels),
        "updatedAt": _time(listed.updated_at),
        "queueUrl": listed.queue.url if listed.queue else None,
        "queueArn": listed.queue.arn if listed.queue else None,
        "rootCause": root_cause_document(listed.root_cause),
    }


def _lock_document(lock: Lock) -> dict[str, object]:
    # The task token is left out: its holder could resume the execution.
    attempt = lock.run.attempt
    return {
        "operation": attempt.operation.value,
        "version": attempt.release,
        "attempt": attempt.number,
        "execution": lock.run.execution,
        "startedAt": timestamp(lock.run.started_at),
        **_requester_document(lock.run.request),
    }


def _audit_document(audit: Audit) -> dict[str, object]:
    return {
        **_outcome_document(audit),
        "updatedAt": timestamp(audit.updated_at),
        **_requester_document(audit.request),
        **({"expectedAt": timestamp(audit.expected_at)} if audit.is_waiting and audit.expected_at else {}),
    }


def _history_document(entry: HistoryEntry | RecordedChange | UnreadableEntry) -> dict[str, object]:
    """All entries have the same fields. Fields that do not apply are null."""
    if isinstance(entry, UnreadableEntry):
        return {
            **dict.fromkeys(("operation", "version", "attempt", "status", "execution", "rootCause")),
            "at": timestamp(entry.at) if entry.at else None,
            **dict.fromkeys(("requestedBy", "reason", "request", "before", "after")),
            "altered": True,
        }
    if isinstance(entry, RecordedChange):
        return {
            "operation": entry.kind.value,
            **dict.fromkeys(("version", "attempt", "status", "execution", "rootCause")),
            "at": timestamp(entry.at),
            **_requester_document(entry.request),
            "request": _request_document(entry.request),
            "before": entry.before,
            "after": entry.after,
            "altered": entry.altered,
        }
    return {
        **_outcome_document(entry),
        "at": timestamp(entry.at),
        **_requester_document(entry.request),
        "request": _request_document(entry.request),
        "before": None,
        "after": None,
        "altered": entry.altered,
    }


def _requester_document(request: Request) -> dict[str, object]:
    return {"requestedBy": request.by or None, "reason": request.reason or None}


def _request_document(request: Request) -> dict[str, object]:
    """The options of a request, without caller and reason, which the entry has itself."""
    return {name: value for name, value in request_document(request).items() if name not in ("by", "reason")}


def _outcome_document(record: Audit | HistoryEntry) -> dict[str, object]:
    return {
        "operation": record.operation.value,
        "version": release_of(record.operation, record.version),
        "attempt": record.attempt,
        "status": record.status.value,
        "execution": record.execution,
        "rootCause": root_cause_document(record.root_cause),
    }


def _time(moment: datetime | None) -> str | None:
    return timestamp(moment) if moment else None
