"""Reconciliations and the control plane's health, as HTTP sees them."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from orchestrator.api.reconciliation_answers import (
    health_response,
    reconciliation_response,
    reconciliation_start_response,
)
from orchestrator.api.responses import RETRY_AFTER_SECONDS, Response
from orchestrator.reconciling.health import Check, Verdict
from orchestrator.reconciling.records import Coverage, Kind, ReconciliationStatus, Remedy, Spec
from orchestrator.tenants.admission import Refusal, Refused
from tests.fakes import VERSION
from tests.unit.reconciling.world import ADA, RECONCILIATION, a_finding, asked_for


def body(response: Response) -> Any:
    return json.loads(json.dumps(response.body))


def test_a_started_reconciliation_is_found_at_its_location() -> None:
    response = reconciliation_start_response(asked_for())
    assert response.status == 202
    assert response.headers["Location"] == f"/reconciliations/{RECONCILIATION}"
    assert response.headers["Retry-After"] == str(RETRY_AFTER_SECONDS)
    assert body(response)["status"] == "PENDING"


def test_the_response_has_all_details_of_a_reconciliation() -> None:
    findings = (
        a_finding(Kind.MISSING_STACK, Remedy.CREATE, result="CREATE 0.2.0: arn", ordered=True),
        a_finding(Kind.FOREIGN_STACK, advice="Look."),
    )
    reconciliation = asked_for(
        Spec(detect_drift=True, reason="Ticket 4711"),
        status=ReconciliationStatus.INCOMPLETE,
        reason="no time",
        coverage=Coverage(1, 2, 3, 4, 5),
        counts={**Counter(finding.kind for finding in findings), Kind.DRIFTED: 3},
        findings=findings,
        repaired=3,
        ordered=1,
        stuck=2,
    )
    assert body(reconciliation_response(reconciliation)) == {
        "reconciliationId": RECONCILIATION,
        "status": "INCOMPLETE",
        "reason": "no time",
        "requestedBy": ADA,
        "requestedBecause": "Ticket 4711",
        "dryRun": False,
        "detectDrift": True,
        "startedAt": "2026-11-16T12:00:00.000Z",
        "updatedAt": "2026-11-16T12:00:00.000Z",
        "lookedAt": {"operations": 1, "tenants": 2, "stacks": 3, "allStacks": 4, "drift": 5},
        "total": 5,
        "repaired": 3,
        "ordered": 1,
        "stuck": 2,
        "counts": {"foreign-stack": 1, "missing-stack": 1, "stack-drifted": 3},
        "findings": [
            {
                "kind": "missing-stack",
                "subject": "acme",
                "detail": "something differs",
                "remedy": "create",
                "advice": None,
                "result": "CREATE 0.2.0: arn",
                "repaired": False,
                "ordered": True,
            },
            {
                "kind": "foreign-stack",
                "subject": "acme",
                "detail": "something differs",
                "remedy": "none",
                "advice": "Look.",
                "result": None,
                "repaired": False,
                "ordered": False,
            },
        ],
    }


@pytest.mark.parametrize("status", list(ReconciliationStatus))
def test_only_the_response_of_an_unfinished_reconciliation_has_retry_after(status: ReconciliationStatus) -> None:
    response = reconciliation_response(asked_for(status=status))
    assert response.status == 200
    over = status in (ReconciliationStatus.DONE, ReconciliationStatus.INCOMPLETE)
    assert ("Retry-After" in response.headers) is not over


def test_unknown_values_are_null() -> None:
    answered = body(reconciliation_response(asked_for(by="")))
    assert [name for name, value in answered.items() if value is None] == ["reason", "requestedBy", "requestedBecause"]
    assert answered["lookedAt"]["allStacks"] is None


def test_an_unknown_reconciliation_is_a_problem() -> None:
    response = reconciliation_response(Refused(Refusal.UNKNOWN_RECONCILIATION, "There is none."))
    assert response.status == 404
    assert response.body["type"] == "urn:berth:problem:unknown-reconciliation"
    assert response.body["detail"] == "There is none."


# Health


def a_check(verdict: Verdict) -> Check:
    return Check("stacks", verdict, "7 of 8", "" if verdict is Verdict.OK else "Look.")


def test_the_response_has_every_check() -> None:
    assert body(health_response("0.10.0.dev0", VERSION, [a_check(Verdict.OK), a_check(Verdict.WARNING)])) == {
        "version": "0.10.0.dev0",
        "templateVersion": VERSION,
        "verdict": "warning",
        "checks": [
            {"name": "stacks", "verdict": "ok", "detail": "7 of 8", "advice": None},
            {"name": "stacks", "verdict": "warning", "detail": "7 of 8", "advice": "Look."},
        ],
    }


@pytest.mark.parametrize(
    ("verdicts", "worst"),
    [
        ([], "ok"),
        (["ok"], "ok"),
        (["unknown", "ok"], "unknown"),
        (["ok", "warning", "unknown"], "warning"),
        (["problem", "warning", "unknown", "ok"], "problem"),
    ],
)
def test_the_overall_verdict_is_the_worst_one(verdicts: list[str], worst: str) -> None:
    response = health_response("0.10.0.dev0", VERSION, [a_check(Verdict(verdict)) for verdict in verdicts])
    assert response.status == 200
    assert response.body["verdict"] == worst
