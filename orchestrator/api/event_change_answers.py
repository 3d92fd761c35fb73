"""HTTP answers about changes of a tenant's event configuration."""

from __future__ import annotations

from orchestrator.api.responses import Response, json_response
from orchestrator.events.changes import BERTH, ChangePage
from orchestrator.events.event_ids import event_timestamp
from orchestrator.events.records import Change
from orchestrator.events.resource_ids import IdPrefix

OPERATOR = "operator"
"""The name of every operator for tenants: an operator's ARN would name an account and a person."""


def changes_response(page: ChangePage, *, asked_by: str) -> Response:
    changes = [_change(each, asked_by) for each in page.changes]
    return json_response(200, {"changes": changes, "cursor": page.cursor})


def shown_caller(by: str, *, asked_by: str) -> str:
    """The name under which the requester sees another caller. Operators see the real name of everybody."""
    return by if by == BERTH or _is_key(by) or not _is_key(asked_by) else OPERATOR


def _change(change: Change, asked_by: str) -> dict[str, object]:
    return {
        "changed_at": event_timestamp(change.at),
        "changed_by": shown_caller(change.by, asked_by=asked_by),
        "kind": change.kind.value,
        "subject": change.subject or None,
        "before": dict(change.before),
        "after": dict(change.after),
    }


def _is_key(by: str) -> bool:
    """True for the id of a tenant's API key. Everybody else is an operator."""
    return by.startswith(f"{IdPrefix.KEY}_")
