"""Answering CloudFormation for a custom resource: always, also when the work failed.

A custom resource that never answers holds its stack up until the service timeout, and again on rollback.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

from orchestrator.errors import InvalidRequest

# CloudFormation takes an answer of at most 4,096 bytes; the ids around the reason need their share.
_REASON_BYTES = 1_024

# An answer that is lost costs the service timeout. All tries together end before the function's own timeout.
_TRIES = 3
_SECONDS_A_TRY = 7


def respond(event: Mapping[str, Any], work: Callable[[], Mapping[str, str]], *, physical_id: str) -> str | None:
    """Do the work and tell CloudFormation how it went. Returns the reason if it failed."""
    reason = None
    data: Mapping[str, str] = {}
    try:
        data = work()
    except Exception as error:  # noqa: BLE001 - whatever went wrong, CloudFormation must hear of it
        reason = f"{type(error).__name__}: {error}"
    # Never a new id: CloudFormation would take the old one for replaced and ask to delete it.
    answer_resource(event, physical_id=event.get("PhysicalResourceId") or physical_id, data=data, reason=reason)
    return reason


def answer_resource(
    event: Mapping[str, Any], *, physical_id: str, data: Mapping[str, str] | None = None, reason: str | None = None
) -> None:
    """Tell CloudFormation how it went: well, unless there is a reason."""
    body = json.dumps(
        {
            "Status": "FAILED" if reason else "SUCCESS",
            "Reason": bounded_reason(reason or ""),
            "PhysicalResourceId": physical_id,
            **{name: event.get(name, "") for name in ("StackId", "RequestId", "LogicalResourceId")},
            "Data": dict(data or {}),
        },
        ensure_ascii=False,
    ).encode()
    try:
        _put(event["ResponseURL"], body)
    except ValueError as error:
        raise InvalidRequest(f"ResponseURL: there can be nobody: {error}") from None


def bounded_reason(told: str) -> str:
    """What went wrong, in printable text: anything else would be spelled out six times as long on the way."""
    printable = "".join(letter if letter.isprintable() else " " for letter in told)
    return printable.encode()[:_REASON_BYTES].decode(errors="ignore")


def _put(url: str, body: bytes) -> None:
    # The empty content type is part of what CloudFormation's signed address was signed for.
    request = urllib.request.Request(url, data=body, method="PUT", headers={"Content-Type": ""})  # noqa: S310
    for tries_left in reversed(range(_TRIES)):
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS_A_TRY):  # noqa: S310 - CloudFormation's own address
                return
        except OSError:
            if not tries_left:
                raise
