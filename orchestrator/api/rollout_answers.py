"""HTTP answers to operators about rollouts. The command line shows the same documents."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from orchestrator.api.operator_answers import refuse
from orchestrator.api.responses import RETRY_AFTER_SECONDS, Response, json_response
from orchestrator.api.rollout_models import MAX_CAUSES, MAX_TENANTS_PER_CAUSE
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import timestamp
from orchestrator.rollouts.control import NothingToDo, RolloutWithStages, awaiting_approval
from orchestrator.rollouts.counting import Reviews
from orchestrator.rollouts.documents import spec_document, stage_document
from orchestrator.rollouts.records import (
    RecordedOrder,
    Repairs,
    Result,
    Rollout,
    Skip,
    Skipped,
    Stage,
    StageStatus,
    TenantOutcome,
)
from orchestrator.rollouts.resource_changes import ResourceChange
from orchestrator.tenants.admission import Refused
from orchestrator.tenants.history import UnreadableEntry
from orchestrator.tenants.order_results import Unchanged
from orchestrator.tenants.records import RootCause

_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_HASH = re.compile(r"\b(?=[A-Za-z]*[0-9])[A-Za-z0-9]{12,}\b")
"""Ids, including the suffixes of names that CloudFormation generates."""


def rollout_start_response(started: RolloutWithStages | NothingToDo | Refused) -> Response:
    if isinstance(started, NothingToDo):
        skipped = _skipped_document(started.selected.skipped)
        return json_response(200, {"status": "UNCHANGED", "detail": started.reason, "skipped": skipped})
    return rollout_order_response(started)


def rollout_order_response(changed: RolloutWithStages | Unchanged | Refused) -> Response:
    match changed:
        case RolloutWithStages(rollout, stages):
            response = json_response(
                202, {**rollout_document(rollout, stages), "retryAfterSeconds": RETRY_AFTER_SECONDS}
            )
            response.headers.update({"Retry-After": str(RETRY_AFTER_SECONDS), "Location": f"/rollouts/{rollout.id}"})
            return response
        case Unchanged(reason):
            return json_response(200, {"status": "UNCHANGED", "detail": reason})
        case Refused():
            return refuse(changed)


def rollout_response(
    rollout: Rollout,
    stages: Sequence[Stage],
    failures: Sequence[TenantOutcome],
    reviews: Reviews,
    orders: Iterable[RecordedOrder | UnreadableEntry],
) -> Response:
    """``reviews`` is what a dry run has found; other rollouts have none."""
    document = {
        **rollout_document(rollout, stages),
        "failures": group_by_cause(failures),
        "failuresCounted": len(failures),
        "history": [_order_document(order) for order in orders],
    }
    if rollout.spec.dry_run:
        document["changes"] = _changes_document(reviews, in_flight=sum(stage.in_flight for stage in stages))
    return json_response(200, document)


def rollouts_response(rollouts: Sequence[RolloutWithStages], limit: int) -> Response:
    documents = [_summary(each.rollout, each.stages) for each in rollouts]
    cursor = rollouts[-1].rollout.id if len(rollouts) == limit else None
    return json_response(200, {"rollouts": documents, "cursor": cursor})


def open_rollouts_response(rollouts: Sequence[RolloutWithStages]) -> Response:
    """All of them: an operator has a few rollouts open at most."""
    return json_response(200, {"rollouts": [_summary(each.rollout, each.stages) for each in rollouts], "cursor": None})


def rollout_document(rollout: Rollout, stages: Sequence[Stage]) -> dict[str, object]:
    return {
        **_summary(rollout, stages),
        "execution": rollout.execution,
        "selected": sum(rollout.planned),
        "planned": list(rollout.planned),
        "spec": spec_document(rollout.spec),
        "skipped": _skipped_document(rollout.skipped),
        "repairs": _repairs_document(rollout.repairs),
        "stages": [_stage(stage) for stage in stages],
    }


def group_by_cause(failures: Iterable[TenantOutcome]) -> list[dict[str, object]]:
    """Failed tenants by cause. Causes that differ only in the names and ids of tenants are the same cause."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for failure in failures:
        cause = failure.root_cause or RootCause("", "", "No reason was recorded.")
        resource, reason = (_without_the_tenant(text, failure.item.tenant) for text in (cause.resource, cause.reason))
        key = (resource, cause.resource_type, reason)
        groups.setdefault(key, []).append(failure.item.tenant.value)
    by_frequency = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    return [
        {
            "rootCause": {"resource": resource, "type": kind, "reason": reason},
            "count": len(tenants),
            "tenants": sorted(tenants)[:MAX_TENANTS_PER_CAUSE],
        }
        for (resource, kind, reason), tenants in by_frequency[:MAX_CAUSES]
    ]


def _without_the_tenant(text: str, tenant: TenantId) -> str:
    for name in (tenant.slug, tenant.value):
        text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", "…", text)
    return _HASH.sub("…", _UUID.sub("…", text))


def _summary(rollout: Rollout, stages: Sequence[Stage]) -> dict[str, object]:
    current = stages[rollout.current_stage - 1]
    awaiting = awaiting_approval(rollout, stages)
    return {
        "rolloutId": rollout.id,
        "status": rollout.status.value,
        "reason": rollout.reason or None,
        "dryRun": rollout.spec.dry_run,
        "version": rollout.spec.version,
        "undo": rollout.spec.undo,
        "retry": rollout.spec.retry,
        "requestedBy": rollout.by,
        "createdAt": timestamp(rollout.created_at),
        "endedAt": _time(rollout.ended_at),
        "total": rollout.total,
        "succeeded": sum(stage.succeeded for stage in stages),
        "failed": sum(stage.failed for stage in stages),
        "skippedSince": sum(stage.skipped for stage in stages),
        "inFlight": sum(stage.in_flight for stage in stages),
        "currentStage": current.number,
        "stageCount": len(stages),
        "stageStatus": current.status.value,
        "bakedUntil": _time(current.baked_until) if current.status is StageStatus.BAKING else None,
        "awaitingStage": awaiting.number if awaiting else None,
    }


def _stage(stage: Stage) -> dict[str, object]:
    return {
        "number": stage.number,
        "status": stage.status.value,
        "spec": stage_document(stage.spec),
        "total": stage.total,
        "tolerated": stage.tolerated + stage.forgiven,
        "succeeded": stage.succeeded,
        "failed": stage.failed,
        "skipped": stage.skipped,
        "inFlight": stage.in_flight,
        "concurrency": int(stage.pace.limit),
        "approvedBy": stage.approved_by,
        "startedAt": _time(stage.started_at),
        "endedAt": _time(stage.ended_at),
        "bakedUntil": _time(stage.baked_until),
    }


def _order_document(order: RecordedOrder | UnreadableEntry) -> dict[str, object]:
    if isinstance(order, UnreadableEntry):
        nothing = dict.fromkeys(("order", "requestedBy", "reason", "stage", "rolloutId", "detail"))
        return {"at": _time(order.at), **nothing, "altered": True}
    return {
        "at": timestamp(order.at),
        "order": order.order.value,
        "requestedBy": order.by or None,
        "reason": order.reason or None,
        "stage": order.stage,
        "rolloutId": order.other,
        "detail": order.detail or None,
        "altered": order.altered,
    }


def _skipped_document(skipped: Mapping[Skip, Skipped]) -> dict[str, object]:
    return {why.value: {"count": each.count, "tenants": list(each.tenants)} for why, each in skipped.items()}


def _repairs_document(repairs: Repairs | None) -> dict[str, object] | None:
    return {"count": repairs.count, "tenants": list(repairs.tenants)} if repairs else None


def _changes_document(reviews: Reviews, *, in_flight: int) -> dict[str, object]:
    results = {result.value: count for result, count in reviews.results.items()}
    if in_flight:
        results[Result.RUNNING.value] = in_flight
    most_frequent = sorted(reviews.changes.items(), key=lambda change: (-change[1], change[0]))
    return {
        "tenants": dict(sorted(results.items())),
        "resources": [_resource_change(change, count) for change, count in most_frequent[:MAX_CAUSES]],
        "moves": [
            {"fromVersion": origin, "version": target, "count": count}
            for (origin, target), count in sorted(reviews.moves.items(), key=lambda move: (-move[1], move[0]))
        ][:MAX_CAUSES],
    }


def _resource_change(text: str, count: int) -> dict[str, object]:
    change = ResourceChange.parse(text)
    return {
        "change": text,
        "effect": change.effect.value if change else None,
        "resource": change.resource if change else None,
        "resourceType": change.resource_type if change else None,
        "count": count,
    }


def _time(moment: datetime | None) -> str | None:
    return timestamp(moment) if moment else None
