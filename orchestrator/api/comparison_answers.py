"""The HTTP answer to operators that compares a tenant's records with its stack."""

from __future__ import annotations

from orchestrator.api.operator_answers import refuse_order
from orchestrator.api.reconciliation_answers import finding_document
from orchestrator.api.responses import Response, json_response
from orchestrator.common.times import timestamp
from orchestrator.reconciling.comparing import Comparison
from orchestrator.tenants.admission import unknown_tenant
from orchestrator.tenants.stack_ports import Stack


def comparison_response(comparison: Comparison) -> Response:
    if not comparison.known:
        return refuse_order(comparison.tenant, unknown_tenant(comparison.tenant))
    return json_response(
        200,
        {
            "tenantId": comparison.tenant.value,
            "agreement": comparison.agreement.value,
            "comparedAt": timestamp(comparison.at),
            "stack": _stack_document(comparison.stack) if comparison.stack else None,
            "finding": finding_document(comparison.finding) if comparison.finding else None,
        },
    )


def _stack_document(stack: Stack) -> dict[str, object]:
    return {
        "stackId": stack.stack_id,
        "status": stack.status,
        "statusReason": stack.status_reason or None,
        "version": stack.version or None,
        "queueUrl": stack.queue.url if stack.queue else None,
        "queueArn": stack.queue.arn if stack.queue else None,
        "resources": stack.resources,
        "changedAt": timestamp(stack.changed_at) if stack.changed_at else None,
    }
