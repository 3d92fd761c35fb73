"""HTTP answers to operators about the newest operations of all tenants."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.api.responses import Response, json_response
from orchestrator.common.times import timestamp
from orchestrator.tenants.recent import RecentOperation


def operations_response(operations: Sequence[RecentOperation]) -> Response:
    return json_response(
        200,
        {
            "operations": [
                {
                    "tenantId": each.tenant.value if each.tenant else None,
                    "operation": each.operation.value,
                    "version": each.release,
                    "status": each.ran.status.value,
                    "execution": each.ran.execution,
                    "startedAt": timestamp(each.ran.started_at),
                    "endedAt": timestamp(each.ran.ended_at) if each.ran.ended_at else None,
                }
                for each in operations
            ]
        },
    )
