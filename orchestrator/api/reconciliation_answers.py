"""HTTP answers to operators about reconciliations and the control plane's health."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.api.operator_answers import refuse
from orchestrator.api.responses import RETRY_AFTER_SECONDS, Response, json_response
from orchestrator.common.times import timestamp
from orchestrator.reconciling.health import Check, Verdict
from orchestrator.reconciling.records import Finding, Reconciliation
from orchestrator.tenants.admission import Refused


def reconciliation_start_response(reconciliation: Reconciliation) -> Response:
    response = json_response(202, _document(reconciliation))
    response.headers.update(
        {"Retry-After": str(RETRY_AFTER_SECONDS), "Location": f"/reconciliations/{reconciliation.id}"}
    )
    return response


def reconciliation_response(reconciliation: Reconciliation | Refused) -> Response:
    if isinstance(reconciliation, Refused):
        return refuse(reconciliation)
    response = json_response(200, _document(reconciliation))
    if not reconciliation.over:
        response.headers["Retry-After"] = str(RETRY_AFTER_SECONDS)
    return response


def reconciliations_response(newest: Sequence[Reconciliation], survey: Reconciliation | None) -> Response:
    return json_response(
        200,
        {
            "reconciliations": [
                {"reconciliationId": each.id, **_brief(each), "repaired": each.repaired, "ordered": each.ordered}
                | {
                    "requestedBy": each.by or None,
                    "dryRun": each.spec.dry_run,
                    "detectDrift": each.spec.detect_drift,
                }
                for each in newest
            ],
            "survey": {
                **_brief(survey),
                "counts": {kind.value: count for kind, count in survey.counts.items()},
                "findings": [finding_document(finding) for finding in survey.findings],
            }
            if survey
            else None,
        },
    )


def _brief(reconciliation: Reconciliation) -> dict[str, object]:
    return {
        "status": reconciliation.status.value,
        "startedAt": timestamp(reconciliation.started_at),
        "updatedAt": timestamp(reconciliation.updated_at),
        "total": reconciliation.total,
    }


def health_response(version: str, template_version: str, checks: Sequence[Check]) -> Response:
    return json_response(200, {"version": version, "templateVersion": template_version, **health_document(checks)})


def health_document(checks: Sequence[Check]) -> dict[str, object]:
    worst = max((check.verdict for check in checks), key=list(Verdict).index, default=Verdict.OK)
    return {
        "verdict": worst.value,
        "checks": [
            {
                "name": check.name,
                "verdict": check.verdict.value,
                "detail": check.detail,
                "advice": check.advice or None,
            }
            for check in checks
        ],
    }


def _document(reconciliation: Reconciliation) -> dict[str, object]:
    coverage = reconciliation.coverage
    return {
        "reconciliationId": reconciliation.id,
        "status": reconciliation.status.value,
        "reason": reconciliation.reason or None,
        "requestedBy": reconciliation.by or None,
        "requestedBecause": reconciliation.spec.reason or None,
        "dryRun": reconciliation.spec.dry_run,
        "detectDrift": reconciliation.spec.detect_drift,
        "startedAt": timestamp(reconciliation.started_at),
        "updatedAt": timestamp(reconciliation.updated_at),
        "lookedAt": {
            "operations": coverage.operations,
            "tenants": coverage.tenants,
            "stacks": coverage.stacks,
            "allStacks": coverage.all_stacks,
            "drift": coverage.drift,
        },
        "total": reconciliation.total,
        "repaired": reconciliation.repaired,
        "ordered": reconciliation.ordered,
        "stuck": reconciliation.stuck,
        "counts": {kind.value: count for kind, count in sorted(reconciliation.counts.items())},
        "findings": [finding_document(finding) for finding in reconciliation.findings],
    }


def finding_document(finding: Finding) -> dict[str, object]:
    return {
        "kind": finding.kind.value,
        "subject": finding.subject,
        "detail": finding.detail,
        "remedy": finding.remedy.value,
        "advice": finding.advice or None,
        "result": finding.result or None,
        "repaired": finding.repaired,
        "ordered": finding.ordered,
    }
