"""The input of an execution, as JSON: the attempt and the request. Requests are stored in the same format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.common.times import parse_timestamp, timestamp
from orchestrator.tenants.records import Attempt, Request
from orchestrator.tenants.stack_resources import StackResource


def machine_input(attempt: Attempt, request: Request) -> dict[str, Any]:
    """The input. It is the same for equal attempts and requests, so that simultaneous callers start one execution."""
    return {
        "tenantId": attempt.tenant.value,
        "operation": attempt.operation.value,
        "version": attempt.version,
        "attempt": attempt.number,
        "request": request_document(request),
    }


def is_input_of(given: object, attempt: Attempt, request: Request) -> bool:
    """True if this input is that of the attempt and the request."""
    if not isinstance(given, dict):
        return False
    expected = machine_input(attempt, request)
    expected_request = expected.pop("request")
    same_attempt = all(given.get(name) == value for name, value in expected.items())
    return same_attempt and request_from(given.get("request", {})) == request_from(expected_request)


def request_document(request: Request) -> dict[str, object]:
    """The request as JSON. Default values are left out."""
    fields: dict[str, object] = {
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
        "tier": request.tier,
        "reason": request.reason,
    }
    return {name: value for name, value in fields.items() if value or (name == "labels" and value is not None)}


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
        tier=document.get("tier"),
        reason=document.get("reason", ""),
    )


def _resource_document(resource: StackResource) -> dict[str, str]:
    return {"stackId": str(resource.stack), "logicalId": resource.logical_id}


def _resource_from(document: Mapping[str, Any]) -> StackResource | None:
    resource = document.get("resource")
    return None if resource is None else StackResource.parse(resource["stackId"], resource["logicalId"])
