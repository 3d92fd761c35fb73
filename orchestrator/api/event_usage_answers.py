"""HTTP answers about usage and purges. The command line shows the same documents."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from orchestrator.api.responses import Response, json_response
from orchestrator.common.times import timestamp
from orchestrator.events.purging import is_stuck, status_of
from orchestrator.events.records import EventSettings, Purge
from orchestrator.events.usage import MonthlyUsage


def usage_response(settings: EventSettings, usage: MonthlyUsage) -> Response:
    return json_response(
        200,
        {
            "tenant_id": settings.life.tenant.value,
            "month": usage.month,
            "plan": settings.plan.value,
            "events": usage.counted,
            "events_per_month": usage.limit,
            "billed": usage.billed,
            "billed_until": _moment(usage.billed_until),
        },
    )


def purges_response(purges: Sequence[Purge], now: datetime) -> Response:
    return json_response(200, {"purges": [_purge(purge, now) for purge in purges]})


def _purge(purge: Purge, now: datetime) -> dict[str, object]:
    return {
        "tenant_id": purge.life.tenant.value,
        "epoch": purge.life.epoch,
        "status": status_of(purge, now).value,
        "stuck": is_stuck(purge, now),
        "requested_at": timestamp(purge.requested_at),
        "worked_on_at": _moment(purge.heartbeat_at),
        "finished_at": _moment(purge.finished_at),
        "failure": purge.failure,
        "deleted_events": purge.deleted.events,
        "deleted_objects": purge.deleted.objects,
        "deleted_rows": purge.deleted.rows,
    }


def _moment(at: datetime | None) -> str | None:
    return timestamp(at) if at else None
