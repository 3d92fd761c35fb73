"""Converts rollouts' records to rows and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from orchestrator.adapters.dynamodb import keys
from orchestrator.adapters.dynamodb.rows import UNREADABLE
from orchestrator.adapters.dynamodb.tenant_values import root_cause_from, root_cause_value
from orchestrator.adapters.dynamodb.values import Item, expiry, moment, n, number, s, text, time
from orchestrator.adapters.dynamodb.writes import listing
from orchestrator.common.times import parse_timestamp
from orchestrator.rollouts.counting import Count, Reviews, move_of
from orchestrator.rollouts.documents import spec_document, spec_from, stage_document
from orchestrator.rollouts.pacing import Pace
from orchestrator.rollouts.ports import Registry
from orchestrator.rollouts.records import Item as Move
from orchestrator.rollouts.records import (
    Order,
    RecordedOrder,
    Repairs,
    Result,
    Rollout,
    RolloutStatus,
    Skip,
    Skipped,
    Spec,
    Stage,
    StageSpec,
    StageStatus,
    TenantOutcome,
)
from orchestrator.tenants.history import UnreadableEntry

KEPT_FOR = timedelta(days=400)
"""The time for which the outcomes of tenants are kept: as long as changes of the event plane. A rollout can be undone,
and its failed tenants retried, while they are there. The rollout, its stages and its orders are kept for ever."""

_RESULT, _CHANGE, _MOVE = "Result#", "Change#", "Move#"


def plan_row(rollout: Rollout) -> Item:
    return {
        **keys.plan_key(rollout.id),
        **listing(keys.listed_rollout(rollout.id)),
        # Stored as JSON, because the spec and the skipped tenants are always read as a whole.
        "Spec": s(json.dumps(spec_document(rollout.spec), sort_keys=True)),
        "Skipped": s(json.dumps(_skipped_document(rollout.skipped))),
        "RequestedBy": s(rollout.by),
        "CreatedAt": time(rollout.created_at),
        "Planned": {"L": [n(count) for count in rollout.planned]},
        "Total": n(rollout.total),
        "Status": s(rollout.status),
        "Reason": s(rollout.reason),
        "CurrentStage": n(rollout.current_stage),
        "Attempt": n(rollout.attempt),
        "Revision": n(rollout.revision),
        **_without_none(
            AttemptedAt=time(rollout.attempted_at) if rollout.attempted_at else None,
            Execution=s(rollout.execution) if rollout.execution else None,
            TaskToken=s(rollout.task_token) if rollout.task_token else None,
            EndedAt=time(rollout.ended_at) if rollout.ended_at else None,
            Repairs=s(json.dumps([repairs.count, *repairs.tenants])) if (repairs := rollout.repairs) else None,
            StartReason=s(rollout.start_reason) if rollout.start_reason else None,
        ),
    }


def rollout_from(item: Mapping[str, Any]) -> Rollout:
    return Rollout(
        id=keys.rollout_of(item["pk"]["S"]),
        spec=_spec_from(json.loads(item["Spec"]["S"])),
        by=item["RequestedBy"]["S"],
        created_at=parse_timestamp(item["CreatedAt"]["S"]),
        planned=tuple(int(count["N"]) for count in item["Planned"]["L"]),
        total=int(item["Total"]["N"]),
        skipped=_skipped_from(json.loads(item["Skipped"]["S"])),
        status=RolloutStatus(item["Status"]["S"]),
        reason=item["Reason"]["S"],
        current_stage=int(item["CurrentStage"]["N"]),
        attempt=int(item["Attempt"]["N"]),
        attempted_at=moment(item, "AttemptedAt"),
        execution=text(item, "Execution"),
        task_token=text(item, "TaskToken"),
        ended_at=moment(item, "EndedAt"),
        repairs=_repairs_from(item),
        start_reason=text(item, "StartReason") or "",
        revision=int(item["Revision"]["N"]),
    )


def order_row(order: RecordedOrder) -> Item:
    fields: Item = {
        "At": time(order.at),
        "Order": s(order.order),
        "RequestedBy": s(order.by),
        **_without_none(
            RequestedBecause=s(order.reason) if order.reason else None,
            Stage=n(order.stage) if order.stage else None,
            OtherRollout=s(order.other) if order.other else None,
            Detail=s(order.detail) if order.detail else None,
        ),
    }
    return keys.rollout_history_key(order.rollout, order.at, order.order, fields) | fields


def order_from(item: Mapping[str, Any]) -> RecordedOrder | UnreadableEntry:
    """An unreadable row must not hide the rollout's other orders."""
    try:
        return _order_from(item)
    except UNREADABLE:
        return UnreadableEntry(keys.moment_of_history(item["sk"]["S"]))


def _order_from(item: Mapping[str, Any]) -> RecordedOrder:
    return RecordedOrder(
        rollout=keys.rollout_of_history(item["pk"]["S"]),
        at=parse_timestamp(item["At"]["S"]),
        order=Order(item["Order"]["S"]),
        by=item["RequestedBy"]["S"],
        reason=text(item, "RequestedBecause") or "",
        stage=number(item, "Stage", 0) or None,
        other=text(item, "OtherRollout"),
        detail=text(item, "Detail") or "",
        altered=keys.is_altered(item),
    )


def stage_row(stage: Stage) -> Item:
    return {
        **keys.stage_key(stage.rollout, stage.number),
        "Spec": s(json.dumps(stage_document(stage.spec), sort_keys=True)),
        "Total": n(stage.total),
        "Tolerated": n(stage.tolerated),
        "Manifest": s(stage.manifest),
        "Pace": pace_value(stage.pace),
        "Status": s(stage.status),
        "Succeeded": n(stage.succeeded),
        "Failed": n(stage.failed),
        "Skipped": n(stage.skipped),
        "InFlight": n(stage.in_flight),
        "Forgiven": n(stage.forgiven),
        "SettledBefore": n(stage.settled_before),
        "IdleRounds": n(stage.idle_rounds),
        "Revision": n(stage.revision),
        **_without_none(
            MapConcurrency=n(stage.map_concurrency) if stage.map_concurrency else None,
            ApprovedBy=s(stage.approved_by) if stage.approved_by else None,
            StartedAt=time(stage.started_at) if stage.started_at else None,
            BakedUntil=time(stage.baked_until) if stage.baked_until else None,
            EndedAt=time(stage.ended_at) if stage.ended_at else None,
            ResumedAt=time(stage.resumed_at) if stage.resumed_at else None,
            MovedAt=time(stage.moved_at) if stage.moved_at else None,
        ),
    }


def stage_from(item: Mapping[str, Any]) -> Stage:
    return Stage(
        rollout=keys.rollout_of(item["pk"]["S"]),
        number=keys.stage_of(item["sk"]["S"]),
        spec=_stage_spec_from(json.loads(item["Spec"]["S"])),
        total=int(item["Total"]["N"]),
        tolerated=int(item["Tolerated"]["N"]),
        manifest=item["Manifest"]["S"],
        pace=pace_from(item["Pace"]["M"]),
        status=StageStatus(item["Status"]["S"]),
        succeeded=int(item["Succeeded"]["N"]),
        failed=int(item["Failed"]["N"]),
        skipped=int(item["Skipped"]["N"]),
        in_flight=int(item["InFlight"]["N"]),
        forgiven=int(item["Forgiven"]["N"]),
        settled_before=int(item["SettledBefore"]["N"]),
        idle_rounds=int(item["IdleRounds"]["N"]),
        map_concurrency=number(item, "MapConcurrency", 0) or None,
        approved_by=text(item, "ApprovedBy"),
        started_at=moment(item, "StartedAt"),
        baked_until=moment(item, "BakedUntil"),
        ended_at=moment(item, "EndedAt"),
        resumed_at=moment(item, "ResumedAt"),
        moved_at=moment(item, "MovedAt"),
        revision=int(item["Revision"]["N"]),
    )


def counted(count: Count) -> Item:
    """The update of a stage's row that adds the count, and the condition under which it may."""
    added = {
        "InFlight": n(count.in_flight),
        "Succeeded": n(count.succeeded),
        "Failed": n(count.failed),
        "Skipped": n(count.skipped),
        "Revision": n(1),
    }
    names = {f"#{name}": name for name in (*added, "MovedAt")}
    values = {f":{name}": value for name, value in added.items()} | {":at": time(count.at)}
    conditions = ["#InFlight >= :ended"]
    values[":ended"] = n(max(0, -count.in_flight))
    if count.max_in_flight is not None:
        conditions.append("#InFlight < :max_in_flight")
        values[":max_in_flight"] = n(count.max_in_flight)
    if count.max_failed is not None:
        conditions.append("#Failed <= :max_failed")
        values[":max_failed"] = n(count.max_failed)
    changes = "#MovedAt = :at"
    if count.limit:
        # An action ADD takes no nested attributes.
        changes += ", #pace.#limit = #pace.#limit + :more"
        names |= {"#pace": "Pace", "#limit": "Limit"}
        values[":more"] = {"N": repr(count.limit)}
    return {
        "UpdateExpression": f"SET {changes} ADD " + ", ".join(f"#{name} :{name}" for name in added),
        "ConditionExpression": " AND ".join(conditions),
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": values,
    }


def reviewed(outcome: TenantOutcome) -> Item:
    """The update of the row of a dry run's findings that adds the outcome. Every count is an attribute of its own."""
    found = [
        f"{_RESULT}{outcome.result}",
        *(f"{_CHANGE}{change}" for change in dict.fromkeys(outcome.changes)),
        *(f"{_MOVE}{origin}#{target}" for origin, target in move_of(outcome)),
    ]
    return {
        "UpdateExpression": "SET #ttl = :ttl ADD " + ", ".join(f"#n{number} :one" for number in range(len(found))),
        "ExpressionAttributeNames": {f"#n{number}": name for number, name in enumerate(found)} | {"#ttl": keys.EXPIRY},
        "ExpressionAttributeValues": {":one": n(1), ":ttl": expiry(outcome.updated_at + KEPT_FOR)},
    }


def reviews_from(item: Mapping[str, Any]) -> Reviews:
    counts = {name: int(value["N"]) for name, value in item.items() if "N" in value}
    return Reviews(
        {Result(name.removeprefix(_RESULT)): count for name, count in counts.items() if name.startswith(_RESULT)},
        {name.removeprefix(_CHANGE): count for name, count in counts.items() if name.startswith(_CHANGE)},
        {_move(name): count for name, count in counts.items() if name.startswith(_MOVE)},
    )


def _move(name: str) -> tuple[str, str]:
    origin, _, target = name.removeprefix(_MOVE).partition("#")
    return origin, target


def slower(pace: Pace) -> Item:
    """The update of a stage's row that stores the pace, unless as many throttles were seen before.

    It is :meth:`Pace.slowed_to`: the ceiling stays as it is in the row.
    """
    stored = {name: value for name, value in pace_value(pace)["M"].items() if name != "Ceiling"}
    return {
        "UpdateExpression": f"SET {', '.join(f'#pace.#{name} = :{name}' for name in stored)} ADD #Revision :one",
        "ConditionExpression": "#pace.#ThrottlesSeen < :ThrottlesSeen",
        "ExpressionAttributeNames": {"#pace": "Pace", **{f"#{name}": name for name in (*stored, "Revision")}},
        "ExpressionAttributeValues": {":one": n(1), **{f":{name}": value for name, value in stored.items()}},
    }


def outcome_row(outcome: TenantOutcome) -> Item:
    tenant = outcome.item.tenant
    failed = outcome.result is Result.FAILED
    return {
        **keys.outcome_key(outcome.rollout, tenant),
        **(listing(keys.listed_failure(outcome.rollout, tenant)) if failed else {}),
        "Stage": n(outcome.stage),
        "Version": s(outcome.item.version),
        "Result": s(outcome.result),
        "UpdatedAt": time(outcome.updated_at),
        keys.EXPIRY: expiry(outcome.updated_at + KEPT_FOR),
        "Execution": s(outcome.execution),
        **_without_none(
            OperationAttempt=n(outcome.operation_attempt) if outcome.operation_attempt else None,
            FromVersion=s(outcome.from_version) if outcome.from_version else None,
            Skip=s(outcome.skip) if outcome.skip else None,
            RootCause=root_cause_value(outcome.root_cause) if outcome.root_cause else None,
            Changes={"L": [s(change) for change in outcome.changes]} if outcome.changes else None,
            Interruptions=n(outcome.interruptions) if outcome.interruptions else None,
        ),
    }


def same_turn(before: TenantOutcome) -> dict[str, Any]:
    """The condition that no other turn has replaced the outcome that was read, and that it is not settled.

    One child may have several turns, each with another attempt of the tenant's update.
    """
    condition = "#result = :running AND #execution = :before"
    values = {":running": s(Result.RUNNING), ":before": s(before.execution)}
    if before.operation_attempt:
        condition += " AND #attempt = :attempt"
        values[":attempt"] = n(before.operation_attempt)
    else:
        condition += " AND attribute_not_exists(#attempt)"
    names = {"#result": "Result", "#execution": "Execution", "#attempt": "OperationAttempt"}
    return {"condition": condition, "values": values, "names": names}


def outcome_from(item: Mapping[str, Any]) -> TenantOutcome:
    skip = text(item, "Skip")
    return TenantOutcome(
        rollout=keys.rollout_of(item["pk"]["S"]),
        stage=int(item["Stage"]["N"]),
        item=Move(keys.tenant_of_outcome(item["sk"]["S"]), item["Version"]["S"]),
        result=Result(item["Result"]["S"]),
        updated_at=parse_timestamp(item["UpdatedAt"]["S"]),
        execution=item["Execution"]["S"],
        operation_attempt=number(item, "OperationAttempt", 0) or None,
        from_version=text(item, "FromVersion"),
        skip=Skip(skip) if skip else None,
        root_cause=root_cause_from(item),
        changes=tuple(change["S"] for change in item.get("Changes", {"L": []})["L"]),
        interruptions=number(item, "Interruptions", 0),
    )


def registry_from(item: Mapping[str, Any]) -> Registry:
    return Registry(frozenset(item.get("Active", {"SS": []})["SS"]), number(item, "Revision", 0))


def pace_value(pace: Pace) -> Item:
    fields: Item = {
        "Limit": {"N": repr(pace.limit)},
        "Ceiling": n(pace.ceiling),
        "FeelingForIt": {"BOOL": pace.slow_start},
        "ThrottlesSeen": n(pace.throttles_seen),
        **_without_none(SlowedAt=time(pace.slowed_at) if pace.slowed_at else None),
    }
    return {"M": fields}


def pace_from(fields: Mapping[str, Any]) -> Pace:
    return Pace(
        limit=min(float(fields["Limit"]["N"]), float(fields["Ceiling"]["N"])),
        ceiling=int(fields["Ceiling"]["N"]),
        slow_start=fields["FeelingForIt"]["BOOL"],
        throttles_seen=int(fields["ThrottlesSeen"]["N"]),
        slowed_at=moment(fields, "SlowedAt"),
    )


def _spec_from(document: Mapping[str, Any]) -> Spec:
    # Every stored stage has its own concurrency, so this default is never used.
    return spec_from(document, max_concurrency=1)


def _stage_spec_from(document: Mapping[str, Any]) -> StageSpec:
    return _spec_from({"stages": [document]}).stages[0]


def _skipped_document(skipped: Mapping[Skip, Skipped]) -> dict[str, object]:
    return {skip.value: {"count": each.count, "tenants": list(each.tenants)} for skip, each in skipped.items()}


def _skipped_from(document: Mapping[str, Any]) -> dict[Skip, Skipped]:
    return {Skip(name): Skipped(each["count"], tuple(each["tenants"])) for name, each in document.items()}


def _repairs_from(item: Mapping[str, Any]) -> Repairs | None:
    if (stored := text(item, "Repairs")) is None:
        return None
    count, *tenants = json.loads(stored)
    return Repairs(count, tuple(tenants))


def _without_none(**values: Item | None) -> Item:
    return {name: value for name, value in values.items() if value is not None}
