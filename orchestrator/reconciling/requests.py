"""What asks for a reconciliation, and what says that an execution has ended, checked and in the domain's words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from orchestrator.callers import caller
from orchestrator.errors import InvalidRequest
from orchestrator.operator_requests import body_of, parse_nothing, path_parameter
from orchestrator.reconciling.records import SETTLING, SURVEY, Wish
from orchestrator.records import Run, timestamp
from orchestrator.rollouts.requests import ROLLOUT_ID_PATTERN
from orchestrator.schemas import parse_run
from orchestrator.validation import REASON, TEXT, Schema, object_of, valid

CURSOR_PATTERN = r"^[A-Za-z0-9_-]{1,2000}$"
"""As adoptions return it."""

_FLAG = {"type": "boolean"}
_ID = {"type": "string", "pattern": ROLLOUT_ID_PATTERN}
_WISH = Schema(object_of({}, {"dryRun": _FLAG, "detectDrift": _FLAG, "reason": REASON}, closed=True))
_CURSOR = {"type": "string", "pattern": CURSOR_PATTERN}
_ADOPTION_WISH = Schema(object_of({}, {"dryRun": _FLAG, "cursor": _CURSOR, "reason": REASON}, closed=True))
_ADOPTION = Schema(object_of({"adoptionId": _ID}))
_RECONCILIATION = Schema(object_of({"reconciliationId": _ID}))
_TO_RUN = Schema(object_of({"reconciliationId": {"anyOf": [{"enum": [SETTLING, SURVEY]}, _ID]}}))
_ENDED = Schema(
    object_of(
        {
            "detail": object_of(
                {"executionArn": TEXT, "startDate": {"type": "integer", "minimum": 0}, "input": {"type": "string"}}
            )
        }
    )
)


_MESSAGES = Schema(
    object_of({"Records": {"type": "array", "items": object_of({"messageId": TEXT, "body": {"type": "string"}})}})
)


@dataclass(frozen=True, slots=True)
class Message:
    id: str
    body: str


@dataclass(frozen=True, slots=True)
class ReconciliationOrder:
    wish: Wish
    by: str


def parse_reconcile(event: Mapping[str, Any]) -> ReconciliationOrder:
    parse_nothing(event)
    body = body_of(event, _WISH)
    wish = Wish(
        detect_drift=body.get("detectDrift", False), dry_run=body.get("dryRun", False), reason=body.get("reason", "")
    )
    return ReconciliationOrder(wish, caller(event))


def parse_reconciliation(event: Mapping[str, Any]) -> str:
    """The id in the path."""
    parse_nothing(event)
    given = {"reconciliationId": path_parameter(event, "reconciliationId")}
    reconciliation: str = valid(_RECONCILIATION, given, what="the path")["reconciliationId"]
    return reconciliation


def parse_adopt(event: Mapping[str, Any]) -> ReconciliationOrder:
    parse_nothing(event)
    body = body_of(event, _ADOPTION_WISH)
    wish = Wish(
        survey=False,
        adopt=True,
        dry_run=body.get("dryRun", False),
        cursor=body.get("cursor"),
        reason=body.get("reason", ""),
    )
    return ReconciliationOrder(wish, caller(event))


def parse_adoption(event: Mapping[str, Any]) -> str:
    """The id in the path."""
    parse_nothing(event)
    adoption: str = valid(_ADOPTION, {"adoptionId": path_parameter(event, "adoptionId")}, what="the path")["adoptionId"]
    return adoption


def parse_to_run(event: object) -> str:
    """What the function is started with: by a schedule, or because somebody asked for it."""
    reconciliation: str = valid(_TO_RUN, event)["reconciliationId"]
    return reconciliation


def parse_messages(event: object) -> list[Message]:
    """What SQS hands to a function."""
    return [Message(record["messageId"], record["body"]) for record in valid(_MESSAGES, event)["Records"]]


def parse_execution_ended(text: object) -> Run:
    """Step Functions' event about an execution that has ended, as EventBridge puts it into a queue."""
    try:
        event = json.loads(text) if isinstance(text, str) else None
        detail = valid(_ENDED, event)["detail"]
        given = json.loads(detail["input"])
        started_at = timestamp(datetime.fromtimestamp(detail["startDate"] / 1000, UTC))
    except (ValueError, OverflowError, OSError, RecursionError):
        raise InvalidRequest("That is no event about an execution.") from None
    return parse_run({"execution": {"Id": detail["executionArn"], "StartTime": started_at, "Input": given}})
