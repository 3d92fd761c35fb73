"""Converts values of tenants' rows to DynamoDB's typed attribute values and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from orchestrator.adapters.dynamodb.values import Item, s, text
from orchestrator.tenants.execution_input import request_document, request_from
from orchestrator.tenants.records import Request, RootCause
from orchestrator.tenants.stack_resources import Requester, StackResource


def requester_value(requester: Requester) -> Item:
    if isinstance(requester, str):
        return s(requester)
    return {"M": {"StackId": s(str(requester.stack)), "LogicalId": s(requester.logical_id)}}


def requester_from(item: Mapping[str, Any], name: str) -> Requester | None:
    if "M" in item.get(name, {}):
        resource = item[name]["M"]
        return StackResource.parse(resource["StackId"]["S"], resource["LogicalId"]["S"])
    return text(item, name)


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
