"""Converts values to DynamoDB's typed attribute values and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from orchestrator.common.times import parse_timestamp, timestamp
from orchestrator.tenants.execution_input import request_document, request_from
from orchestrator.tenants.records import Request, RootCause
from orchestrator.tenants.stack_resources import Requester, StackResource

Item = dict[str, Any]
"""A row or a value in DynamoDB's format, in which every value has its type."""


def s(value: str) -> dict[str, str]:
    return {"S": value}


def n(value: int) -> dict[str, str]:
    return {"N": str(value)}


def time(value: datetime) -> dict[str, str]:
    return {"S": timestamp(value)}


def text(item: Mapping[str, Any], name: str) -> str | None:
    value = item.get(name)
    return value["S"] if value and "S" in value else None


def moment(item: Mapping[str, Any], name: str) -> datetime | None:
    found = text(item, name)
    return parse_timestamp(found) if found else None


def number(item: Mapping[str, Any], name: str, default: int) -> int:
    return int(item[name]["N"]) if name in item else default


def labels_value(labels: Mapping[str, str]) -> Item:
    return {"M": {name: s(value) for name, value in labels.items()}}


def requester_value(requester: Requester) -> Item:
    if isinstance(requester, str):
        return s(requester)
    return {"M": {"StackId": s(str(requester.stack)), "LogicalId": s(requester.logical_id)}}


def requester_from(item: Mapping[str, Any], name: str) -> Requester | None:
    if "M" in item.get(name, {}):
        resource = item[name]["M"]
        return StackResource.parse(resource["StackId"]["S"], resource["LogicalId"]["S"])
    found = text(item, name)
    # 0.5.0 stored a resource as text.
    return found and (StackResource.from_text(found) or found)


def request_value(request: Request) -> dict[str, str]:
    """Stored as JSON, because a request is always read as a whole."""
    return s(json.dumps(request_document(request), sort_keys=True))


def stored_request(item: Mapping[str, Any]) -> Request:
    return request_from(json.loads(text(item, "Request") or "{}"))


def root_cause_value(cause: RootCause) -> Item:
    return {"M": {"Resource": s(cause.resource), "Type": s(cause.resource_type), "Reason": s(cause.reason)}}


def root_cause_from(item: Mapping[str, Any]) -> RootCause | None:
    if "RootCause" not in item:
        return None
    cause = item["RootCause"]["M"]
    return RootCause(cause["Resource"]["S"], cause["Type"]["S"], cause["Reason"]["S"])
