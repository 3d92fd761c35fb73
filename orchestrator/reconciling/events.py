"""The events that schedules and queues send to the reconciling functions, validated and parsed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime

from orchestrator.common.errors import InvalidRequest
from orchestrator.common.times import timestamp
from orchestrator.common.validation import SORTED_ID, TEXT, Schema, object_of, valid
from orchestrator.reconciling.records import POOL, SETTLING, SURVEY
from orchestrator.tenants.records import Run
from orchestrator.tenants.schemas import parse_run

_TO_RUN = Schema(object_of({"reconciliationId": {"anyOf": [{"enum": [SETTLING, SURVEY, POOL]}, SORTED_ID]}}))


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


def parse_to_run(event: object) -> str:
    """The id of the reconciliation to run, from a schedule's event or from a request's."""
    reconciliation: str = valid(_TO_RUN, event)["reconciliationId"]
    return reconciliation


def parse_messages(event: object) -> list[Message]:
    """The messages of an SQS event."""
    return [Message(record["messageId"], record["body"]) for record in valid(_MESSAGES, event)["Records"]]


def parse_execution_ended(text: object) -> Run:
    """The run of an execution that has ended, from Step Functions' event that EventBridge has put into a queue."""
    try:
        event = json.loads(text) if isinstance(text, str) else None
        detail = valid(_ENDED, event)["detail"]
        given = json.loads(detail["input"])
        started_at = timestamp(datetime.fromtimestamp(detail["startDate"] / 1000, UTC))
    except (ValueError, OverflowError, OSError, RecursionError):
        raise InvalidRequest("The message is not an event about an execution that has ended.") from None
    return parse_run({"execution": {"Id": detail["executionArn"], "StartTime": started_at, "Input": given}})
