"""HTTP answers about deliveries, resends and replays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from orchestrator.api.event_change_answers import shown_caller
from orchestrator.api.event_configuration_answers import refusal_response
from orchestrator.api.responses import Response, json_response
from orchestrator.events.delivery.history import DeliveryPage, EventDeliveries, ShownDelivery
from orchestrator.events.delivery.records import Attempt
from orchestrator.events.delivery.replays import Replay
from orchestrator.events.delivery.rounds import ResendResult
from orchestrator.events.documents import event_fields
from orchestrator.events.event_ids import event_timestamp
from orchestrator.events.records import TenantEpoch
from orchestrator.events.refusals import Refused

ACCEPTED = 202


def attempts_response(found: EventDeliveries | Refused) -> Response:
    if isinstance(found, Refused):
        return refusal_response(found)
    event = event_fields(found.event)
    return json_response(
        200,
        {
            **{name: event[name] for name in ("tenant_id", "event_id", "status")},
            "deliveries": [_delivery(each, found.names) for each in found.deliveries],
            "attempts": [_attempt(each, found.names) for each in found.attempts],
            "attempts_omitted": found.omitted,
        },
    )


def deliveries_response(page: DeliveryPage | Refused) -> Response:
    if isinstance(page, Refused):
        return refusal_response(page)
    deliveries = [_delivery(each, {each.ref.connection_id: page.connection_name}) for each in page.deliveries]
    return json_response(200, {"deliveries": deliveries, "cursor": page.cursor})


def resent_response(life: TenantEpoch, event_id: str, results: Mapping[str, ResendResult] | Refused) -> Response:
    if isinstance(results, Refused):
        return refusal_response(results)
    return json_response(
        ACCEPTED,
        {
            "tenant_id": life.tenant.value,
            "event_id": event_id,
            "results": [{"connection_id": name, "result": result.value} for name, result in results.items()],
        },
    )


def replay_response(replay: Replay | Refused, *, asked_by: str, status: int = 200) -> Response:
    if isinstance(replay, Refused):
        return refusal_response(replay)
    return json_response(status, _replay(replay, asked_by))


def replays_response(replays: Sequence[Replay], cursor: str | None, *, asked_by: str) -> Response:
    return json_response(200, {"replays": [_replay(each, asked_by) for each in replays], "cursor": cursor})


def _delivery(delivery: ShownDelivery, names: Mapping[str, str]) -> dict[str, object]:
    return {
        "event_id": delivery.ref.event_id,
        "connection_id": delivery.ref.connection_id,
        "connection_name": names.get(delivery.ref.connection_id),
        "status": delivery.state.value,
        "tries": delivery.tries,
        "at": _time(delivery.at),
        "due_at": _time(delivery.due),
        "code": delivery.code,
        "reason": delivery.reason or None,
        "resend": delivery.resend,
    }


def _attempt(attempt: Attempt, names: Mapping[str, str]) -> dict[str, object]:
    return {
        "connection_id": attempt.ref.connection_id,
        "connection_name": names.get(attempt.ref.connection_id),
        "number": attempt.number,
        "at": event_timestamp(attempt.at),
        "delivered": attempt.delivered,
        "code": attempt.code,
        "milliseconds": attempt.milliseconds,
        "answer": attempt.text,
        "resend": attempt.resend,
    }


def _replay(replay: Replay, asked_by: str) -> dict[str, object]:
    return {
        "tenant_id": replay.life.tenant.value,
        "replay_id": replay.replay_id,
        "connection_id": replay.connection_id,
        "origin": replay.origin,
        "since": event_timestamp(replay.since),
        "until": event_timestamp(replay.until),
        "include_delivered": replay.include_delivered,
        "only_failed": replay.only_failed,
        "status": replay.status.value,
        "reason": replay.reason or None,
        "created_at": event_timestamp(replay.created_at),
        "created_by": shown_caller(replay.created_by, asked_by=asked_by),
        "ended_at": _time(replay.ended_at),
        "percent": replay.percent,
        "looked_at": replay.looked_at,
        "sent": replay.sent,
        "skipped": replay.skipped,
    }


def _time(moment: datetime | None) -> str | None:
    return event_timestamp(moment) if moment else None
