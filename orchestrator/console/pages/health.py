"""The health of the control plane, and reconciliations: what differs between the records and AWS, and its repair."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response
from starlette.routing import Route

from orchestrator.api.reconciliation_routes import (
    GET_DIAGNOSIS,
    GET_RECONCILIATION,
    LIST_RECONCILIATIONS,
    START_RECONCILIATION,
)
from orchestrator.cli import render
from orchestrator.cli.api import Document
from orchestrator.cli.next_step import NextStep
from orchestrator.common.errors import InvalidTenantId
from orchestrator.common.tenant_ids import TenantId
from orchestrator.console.actions import REASON, Action, Done, Field, checked, reason_in
from orchestrator.console.actions import routes as action_routes
from orchestrator.console.page import page
from orchestrator.console.view import segment
from orchestrator.console.visit import Console, NotThere, Visit
from orchestrator.reconciling.records import Kind, ReconciliationStatus, Remedy

_OVER = (ReconciliationStatus.DONE, ReconciliationStatus.INCOMPLETE)
_ABOUT_OTHERS = (Kind.FOREIGN_STACK, Kind.STALLED_ROLLOUT)
"""Findings whose subject is a stack's name or a rollout's id, which look like tenants' ids."""


def health(visit: Visit) -> Response:
    found = visit.ask(GET_DIAGNOSIS)
    listed = visit.ask(LIST_RECONCILIATIONS)
    survey = listed["survey"]
    return visit.show(
        "health.html",
        health=found,
        reconciliations=listed["reconciliations"],
        survey=survey,
        findings=_findings(survey) if survey else [],
    )


def reconciliation(visit: Visit) -> Response:
    found = _find(visit)
    return visit.show(
        "reconciliation.html",
        found=found,
        over=found["status"] in _OVER,
        findings=_findings(found),
        steps=[_repair_step(found)],
        base=f"/health/{found['reconciliationId']}",
    )


def _find(visit: Visit) -> Document:
    return visit.ask(GET_RECONCILIATION, reconciliationId=visit.name("reconciliation"))


def _findings(found: Document) -> list[dict[str, object]]:
    return [
        {
            **each,
            "tenant": tenant,
            "link": _link(each, tenant),
            "can_be_repaired": tenant is not None
            and each["remedy"] != Remedy.NONE
            and not (each["repaired"] or each["ordered"]),
        }
        for each in found["findings"]
        for tenant in [None if each["kind"] in _ABOUT_OTHERS else _tenant(each["subject"])]
    ]


def _link(finding: Document, tenant: str | None) -> str | None:
    """The page of what the finding is about. Stacks of others have none."""
    if finding["kind"] == Kind.STALLED_ROLLOUT:
        return f"/rollouts/{segment(finding['subject'])}"
    return f"/tenants/{segment(tenant)}" if tenant else None


def _tenant(subject: str) -> str | None:
    try:
        return TenantId.parse(subject).value
    except InvalidTenantId:
        return None


def _repair_step(found: Document) -> NextStep:
    refusal = None
    if found["status"] not in _OVER:
        refusal = "The reconciliation has not ended."
    elif not found["dryRun"]:
        refusal = "This one has repaired what it could."
    elif not found["total"]:
        refusal = "There is nothing to repair."
    return NextStep("repair", "Repair all findings", "berth reconcile", refusal)


# Actions


def _examine(_visit: Visit) -> Action:
    def send(visit: Visit, fields: Mapping[str, str]) -> Done:
        answer = visit.ask(
            START_RECONCILIATION,
            dryRun=True,
            detectDrift=checked(fields, "drift") or None,
            reason=reason_in(fields),
        )
        return Done("The comparison has begun. It changes nothing.", f"/health/{answer['reconciliationId']}")

    return Action(
        "Compare the records with AWS",
        NextStep("examine", "Compare the records with AWS", "berth reconcile --dry-run"),
        "Every tenant is compared with its stack. Nothing is changed: the result says what could be repaired.",
        send,
        "/health",
        fields=(Field("drift", "Let CloudFormation compare every stack with its resources (slow)", "check"), REASON),
    )


def _repair(visit: Visit) -> Action:
    found = _find(visit)
    number = found["total"]

    def send(visit: Visit, fields: Mapping[str, str]) -> Done:
        answer = visit.ask(START_RECONCILIATION, detectDrift=found["detectDrift"] or None, reason=reason_in(fields))
        return Done("The reconciliation has begun.", f"/health/{answer['reconciliationId']}")

    return Action(
        "Repair all findings",
        _repair_step(found),
        f"The dry run has found {render.counted(number, 'difference')}. The reconciliation looks at all tenants again, "
        "and repairs what it finds then. It forces nothing, so no message is lost.",
        send,
        f"/health/{found['reconciliationId']}",
        [each["subject"] for each in found["findings"]],
        typed=str(number),
        typed_is="the number of findings",
    )


def _repair_one(visit: Visit) -> Action:
    """The repair of one tenant. The finding may be of the scheduled survey or of a dry run."""
    tenant = _tenant(visit.name("tenant"))
    if tenant is None:
        raise NotThere("There is no such tenant")

    def send(visit: Visit, fields: Mapping[str, str]) -> Done:
        answer = visit.ask(START_RECONCILIATION, only=[tenant], reason=reason_in(fields))
        return Done(f"The repair of {tenant} has begun.", f"/health/{answer['reconciliationId']}")

    return Action(
        f"Repair {tenant}",
        NextStep("repair", f"Repair {tenant}", f"berth reconcile --only {tenant}"),
        f"Tenant {tenant} is compared with its stack again, and what differs is repaired. It forces nothing, so no "
        "message is lost. Findings about other tenants are only reported.",
        send,
        f"/tenants/{segment(tenant)}",
        [tenant],
    )


def routes(console: Console) -> list[Route]:
    return [
        page(console, "/health", health),
        *action_routes(console, "/health/compare", _examine),
        *action_routes(console, "/health/repair/{tenant}", _repair_one),
        page(console, "/health/{reconciliation}", reconciliation),
        *action_routes(console, "/health/{reconciliation}/do/repair", _repair),
    ]
