"""What an execution is started with, as JSON: the attempt, and what was asked for. Also how requests are stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.common.times import parse_timestamp, timestamp
from orchestrator.tenants.records import Attempt, Request
from orchestrator.tenants.stack_resources import StackResource


def machine_input(attempt: Attempt, request: Request) -> dict[str, Any]:
    """Nothing that differs between two who ask for the same: equal attempts, equal input."""
    return {
        "tenantId": attempt.tenant.value,
        "operation": attempt.operation.value,
        "version": attempt.version,
        "attempt": attempt.number,
        "request": request_document(request),
    }


def is_input_of(given: object, attempt: Attempt, request: Request) -> bool:
    """True if an execution that was given this input makes that attempt, for that request."""
    if not isinstance(given, dict):
        return False
    expected = machine_input(attempt, request)
    asked = expected.pop("request")
    same_attempt = all(given.get(name) == value for name, value in expected.items())
    return same_attempt and request_from(given.get("request", {})) == request_from(asked)


def request_document(request: Request) -> dict[str, object]:
    """Only what was asked for: what is left out is as ever."""
    said: dict[str, object] = {
        "by": request.by,
        "resource": _resource_document(request.resource) if request.resource else None,
        "explicit": request.explicit,
        "labels": None if request.labels is None else dict(request.labels),
        "pin": request.pin,
        "version": request.version,
        "allowDowngrade": request.allow_downgrade,
        "allowReplacement": request.allow_replacement,
        "force": request.force,
        "drainSeconds": request.drain_seconds,
        "askedAt": timestamp(request.asked_at) if request.asked_at else None,
        "own": request.own,
        "unserved": request.unserved,
        "reason": request.reason,
    }
    return {name: value for name, value in said.items() if value or (name == "labels" and value is not None)}


def request_from(document: Mapping[str, Any]) -> Request:
    asked_at = document.get("askedAt")
    return Request(
        by=document.get("by", ""),
        resource=_resource_from(document),
        explicit=document.get("explicit", False),
        labels=document.get("labels"),
        pin=document.get("pin"),
        version=document.get("version"),
        allow_downgrade=document.get("allowDowngrade", False),
        allow_replacement=document.get("allowReplacement", False),
        force=document.get("force", False),
        drain_seconds=int(document.get("drainSeconds", 0)),
        asked_at=parse_timestamp(asked_at) if asked_at else None,
        own=document.get("own", False),
        unserved=document.get("unserved", False),
        reason=document.get("reason", ""),
    )


def _resource_document(resource: StackResource) -> dict[str, str]:
    return {"stackId": str(resource.stack), "logicalId": resource.logical_id}


def _resource_from(document: Mapping[str, Any]) -> StackResource | None:
    told = document.get("resource")
    if told is None:
        # 0.5.0 knew a resource only by the text of who asks. Callers of the API have IAM ARNs, which are no stacks'.
        return StackResource.from_text(document.get("by", ""))
    return StackResource.parse(told["stackId"], told["logicalId"])
