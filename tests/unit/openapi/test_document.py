"""The OpenAPI document itself, and the requests in it: it allows those that the functions accept, and no others."""

from __future__ import annotations

import copy
import json
from datetime import datetime
from typing import Any

import jsonschema_rs
import pytest

from orchestrator.api import operator_answers, rollout_answers
from orchestrator.api.reading import read
from orchestrator.api.rollout_models import MAX_CONCURRENCY
from orchestrator.api.rollout_routes import START_ROLLOUT
from orchestrator.api.route import AnyRoute
from orchestrator.api.tenant_models import MAX_PAGE_SIZE
from orchestrator.common import validation
from orchestrator.common.errors import InvalidRequest
from orchestrator.common.own_versions import berth_version
from orchestrator.common.times import ID_PATTERN
from orchestrator.reconciling.health import Verdict
from orchestrator.reconciling.records import MAX_FINDINGS, Kind, ReconciliationStatus, Remedy
from orchestrator.rollouts.documents import spec_document, spec_from
from orchestrator.rollouts.records import Order, Result, RolloutStatus, Skip, StageStatus
from orchestrator.tenants import deadlines
from orchestrator.tenants.credentials import Access
from orchestrator.tenants.fleet import PAGE_SIZE
from orchestrator.tenants.history import ChangeKind, UnreadableEntry
from orchestrator.tenants.records import Operation, Status, TenantState
from tests.documents import CONTROL_PLANE
from tests.fakes import NOON, VERSION
from tests.openapi import DOCUMENT, load
from tests.unit.openapi.world import NO_ROLLOUT, OPERATIONS, ROLLOUTS, InProcess, schema

# The document itself


def test_the_check_finds_an_invalid_openapi_document() -> None:
    broken = copy.deepcopy(DOCUMENT)
    del broken["paths"]["/releases"]["get"]["responses"]["200"]["description"]
    with pytest.raises(jsonschema_rs.ValidationError):
        load(broken).validate()


def test_the_document_has_the_current_version() -> None:
    assert DOCUMENT["info"]["version"] == berth_version()


def test_the_document_has_the_routes_of_the_functions(gateway: InProcess) -> None:
    assert {operation.label for operation in OPERATIONS.values()} == set(gateway.routes())


def test_every_request_is_signed() -> None:
    assert DOCUMENT["security"] == [{"sigv4": []}]
    assert DOCUMENT["components"]["securitySchemes"]["sigv4"]["x-amazon-apigateway-authtype"] == "awsSigv4"
    assert not [name for name, operation in OPERATIONS.items() if "security" in operation.definition.raw]


@pytest.mark.parametrize("at", [None, NOON])
def test_the_schema_allows_an_unreadable_row_of_history(at: datetime | None) -> None:
    unreadable = UnreadableEntry(at)
    entry, order = operator_answers._history_document(unreadable), rollout_answers._order_document(unreadable)
    CONTROL_PLANE.validator(schema("Tenant")["properties"]["history"]).validate([entry])
    CONTROL_PLANE.validator(schema("Rollout")["properties"]["history"]).validate([order])


# Requests in the document


def rules(name: str) -> dict[str, Any]:
    """A schema without what it tells people."""
    return {key: value for key, value in schema(name).items() if key not in ("description", "examples")}


def parameter(operation_id: str, name: str) -> dict[str, Any]:
    parameters = OPERATIONS[operation_id].definition.raw["parameters"]
    (found,) = (each for each in parameters if each.get("name") == name)
    return dict(found["schema"])


def test_ids_versions_and_labels_are_those_that_requests_are_checked_for() -> None:
    assert rules("TenantId") == validation.TENANT_ID
    assert rules("Version") == validation.VERSION
    assert rules("Labels") == validation.LABELS
    assert rules("Reason") == validation.REASON
    for name in ("RolloutId", "ReconciliationId"):
        assert rules(name) == {"type": "string", "pattern": ID_PATTERN}
    assert schema("Reconciliation")["properties"]["findings"]["maxItems"] == MAX_FINDINGS
    assert parameter("deleteTenant", "drainSeconds") == {**deadlines.DRAIN_SECONDS, "default": 0}
    for operation_id in ("listTenants", "listRollouts"):
        assert parameter(operation_id, "limit") == {
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_PAGE_SIZE,
            "default": PAGE_SIZE,
        }


def test_states_operations_and_accesses_are_all_there() -> None:
    assert schema("TenantState")["enum"] == list(TenantState)
    assert schema("Operation")["enum"] == list(Operation)
    assert schema("OperationStatus")["enum"] == list(Status)
    assert schema("Access")["enum"] == list(Access)
    assert schema("RolloutStatus")["enum"] == list(RolloutStatus)
    assert schema("StageStatus")["enum"] == list(StageStatus)
    assert schema("SkipReason")["enum"] == list(Skip)
    assert schema("TenantResult")["enum"] == list(Result)
    assert schema("ReconciliationStatus")["enum"] == list(ReconciliationStatus)
    assert schema("FindingKind")["enum"] == list(Kind)
    assert schema("Remedy")["enum"] == list(Remedy)
    assert schema("Verdict")["enum"] == list(Verdict)
    assert schema("Order")["enum"] == list(Order)
    of_operations, of_changes, _ = (entry["properties"]["operation"] for entry in schema("HistoryEntry")["oneOf"])
    assert of_operations == {"enum": list(Operation)}
    assert of_changes == {"enum": list(ChangeKind)}


def understood(route: AnyRoute, **event: Any) -> bool:
    try:
        asked = read(route, {"pathParameters": {"tenantId": "acme"}, **event})
        if route is START_ROLLOUT:
            asked.spec(max_concurrency=MAX_CONCURRENCY)
    except InvalidRequest:
        return False
    return True


RUN_ID = ROLLOUTS["running"]


@pytest.mark.parametrize(
    "body",
    [
        {"sample": "1"},
        {"sample": "1", "dryRun": False},
        {"sample": "1", "dryRun": True},
        {"undo": RUN_ID, "version": "0.1.0"},
        {"undo": RUN_ID, "tenants": ["acme"]},
        {"retry": RUN_ID},
        {"stages": [{}]},
        {"stages": [{"size": "rest", "more": 1}]},
        {"stages": [{"size": "0"}, {"size": "rest"}]},
        {"stages": [*[{"size": "1"}] * 9, {"size": "rest"}]},
        {"stages": [*[{"size": "1"}] * 10, {"size": "rest"}]},
    ],
    ids=lambda body: json.dumps(body)[:60],
)
def test_the_schema_allows_a_combination_of_fields_if_and_only_if_the_function_accepts_it(body: object) -> None:
    allowed = CONTROL_PLANE.validator({"$ref": "#/components/schemas/StartRollout"}).is_valid(body)
    assert allowed == understood(START_ROLLOUT, body=json.dumps(body))


@pytest.mark.parametrize("sizes", [["1"], ["rest", "rest"], ["rest", "1"]])
def test_only_the_description_says_that_the_last_stage_takes_the_rest(sizes: list[str]) -> None:
    body = {"stages": [{"size": size} for size in sizes]}
    assert CONTROL_PLANE.validator({"$ref": "#/components/schemas/StartRollout"}).is_valid(body)
    with pytest.raises(InvalidRequest, match="rest"):
        read(START_ROLLOUT, {"body": json.dumps(body)}).spec(max_concurrency=MAX_CONCURRENCY)
    description = schema("StageSpec")["properties"]["size"]["description"]
    assert "The last stage, and only the last, must be" in description


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"version": VERSION, "tenants": ["acme"], "labels": {"plan": "gold"}, "share": "10%"},
        {"allowDowngrade": True, "allowReplacement": True, "dryRun": True, "sample": "1%"},
        {"undo": RUN_ID, "retry": NO_ROLLOUT, "stages": [{"size": "rest", "alarm": "quiet", "approval": True}]},
    ],
    ids=json.dumps,
)
def test_the_spec_in_an_answer_equals_the_request(body: dict[str, Any]) -> None:
    answered = spec_document(spec_from(body, max_concurrency=5))
    CONTROL_PLANE.validator({"$ref": "#/components/schemas/RolloutSpec"}).validate(answered)
    for name in body.keys() - {"stages"}:
        assert answered[name] == body[name]
