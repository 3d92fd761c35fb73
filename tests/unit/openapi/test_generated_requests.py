"""Requests made from the OpenAPI document, valid and invalid ones, are answered as it says."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.core.failures import FailureGroup

from orchestrator.api.tenant_models import MAX_PAGE_SIZE
from tests.openapi import CHECKS, DOCUMENT, AtHand, cover, drive, operations
from tests.unit.openapi.world import (
    BASE_URL,
    NO_RECONCILIATION,
    NO_ROLLOUT,
    OPERATIONS,
    PROBLEM,
    RECONCILIATIONS,
    ROLLOUTS,
    STATES,
    Api,
    InProcess,
    world,
)

MADE_UP = [
    name
    for name, operation in OPERATIONS.items()
    # All that is asked of one tenant, rollout or reconciliation, with no word more, is parsed by one function each.
    if name in ("getTenant", "getRollout", "getReconciliation") or operation.query or operation.body
]
AT_HAND = AtHand(
    tenants=list(STATES),
    rollouts=[*ROLLOUTS.values(), NO_ROLLOUT],
    reconciliations=[*RECONCILIATIONS.values(), NO_RECONCILIATION],
)


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("operation_id", MADE_UP)
def test_requests_made_from_the_document_are_answered_as_it_says(
    session: requests.Session, operation_id: str, mode: GenerationMode
) -> None:
    seen = drive(OPERATIONS[operation_id], mode, session, BASE_URL, at_hand=AT_HAND, max_examples=20)
    assert seen.total() >= 10


def test_permission_for_dry_runs_alone_starts_nothing_else(gateway: InProcess, session: requests.Session) -> None:
    """As the end-to-end tests ask: on the deployed API other tests have tenants, too."""
    worlds: list[Api] = []

    def remembered(only: str | None) -> Api:
        worlds.append(world(only))
        return worlds[-1]

    gateway.use(remembered)
    at_hand = AtHand(["outdated", "ready"], [NO_ROLLOUT], [NO_RECONCILIATION], most_at_once=8, only_dry_runs=True)
    start = OPERATIONS["startRollout"]
    for mode in GenerationMode:
        drive(start, mode, session, BASE_URL, at_hand=at_hand, max_examples=8)
    cover(start, session, BASE_URL, at_hand=at_hand)

    before = set(ROLLOUTS.values())
    started = [
        (rollout, made.manifests.read(stage.manifest))
        for made in worlds
        for rollout in made.rollout_table.rollouts(limit=MAX_PAGE_SIZE)
        for stage in made.rollout_table.stages(rollout.id)
        if rollout.id not in before
    ]
    assert started
    assert all(rollout.spec.dry_run for rollout, _ in started)
    assert {item.tenant.value for _, items in started for item in items} == {"outdated"}


@pytest.mark.parametrize("operation_id", OPERATIONS)
def test_requests_at_the_documents_boundaries_are_answered_as_it_says(
    session: requests.Session, operation_id: str
) -> None:
    seen = cover(OPERATIONS[operation_id], session, BASE_URL, at_hand=AT_HAND)
    assert seen.total() > 1


def responses_of_get_queue(document: dict[str, Any]) -> dict[str, Any]:
    responses: dict[str, Any] = document["paths"]["/tenants/{tenantId}/queue"]["get"]["responses"]
    return responses


def drain_seconds(document: dict[str, Any]) -> dict[str, Any]:
    schemas: list[dict[str, Any]] = [
        each["schema"]
        for each in document["paths"]["/tenants/{tenantId}"]["delete"]["parameters"]
        if each.get("name") == "drainSeconds"
    ]
    (found,) = schemas
    return found


def _a_status_is_left_out(document: dict[str, Any]) -> None:
    del responses_of_get_queue(document)["424"]


def _errors_are_plain_json(document: dict[str, Any]) -> None:
    content = document["components"]["responses"]["InvalidRequest"]["content"]
    content["application/json"] = content.pop(PROBLEM)


def _a_header_is_promised(document: dict[str, Any]) -> None:
    headers = document["components"]["responses"]["Provisioning"]["headers"]
    headers["Location"] = {"required": True, "schema": {"type": "string"}}


def _a_field_is_promised(document: dict[str, Any]) -> None:
    document["components"]["schemas"]["Queue"]["required"].append("region")


def _a_field_is_left_out(document: dict[str, Any]) -> None:
    document["components"]["schemas"]["Provisioning"]["required"].remove("execution")
    del document["components"]["schemas"]["Provisioning"]["properties"]["execution"]


def _a_field_deep_inside_is_left_out(document: dict[str, Any]) -> None:
    for name in ("Stage", "RolloutInBrief"):
        document["components"]["schemas"][name]["required"].remove("endedAt")
        del document["components"]["schemas"][name]["properties"]["endedAt"]


def _a_problem_is_left_out(document: dict[str, Any]) -> None:
    document["components"]["schemas"]["TenantDeleted"]["properties"]["type"]["const"] += "-for-ever"


def _more_is_taken(document: dict[str, Any]) -> None:
    drain_seconds(document)["maximum"] += 1


def _less_is_taken(document: dict[str, Any]) -> None:
    drain_seconds(document)["maximum"] -= 1


@pytest.mark.parametrize(
    ("lie", "operation_id", "tenant", "found_by"),
    [
        (_a_status_is_left_out, "getQueue", "create-failed", "status_code_conformance"),
        (_errors_are_plain_json, "getQueue", "ready", "content_type_conformance"),
        (_a_header_is_promised, "getQueue", "provisioning", "response_headers_conformance"),
        (_a_field_is_promised, "getQueue", "ready", "response_schema_conformance"),
        (_a_field_is_left_out, "getQueue", "provisioning", "response_schema_conformance"),
        (_a_field_deep_inside_is_left_out, "getRollout", "ready", "response_schema_conformance"),
        (_a_field_deep_inside_is_left_out, "listRollouts", "ready", "response_schema_conformance"),
        (_a_problem_is_left_out, "getQueue", "deleted", "response_schema_conformance"),
        (_more_is_taken, "deleteTenant", "ready", "positive_data_acceptance"),
        (_less_is_taken, "deleteTenant", "ready", "negative_data_rejection"),
    ],
)
def test_the_check_finds_a_document_that_differs_from_the_answers(
    session: requests.Session, lie: Callable[[dict[str, Any]], None], operation_id: str, tenant: str, found_by: str
) -> None:
    document = copy.deepcopy(DOCUMENT)
    lie(document)
    asked = operations(document)[operation_id]
    (check,) = (check for check in CHECKS if check.__name__ == found_by)
    with pytest.raises(FailureGroup):
        cover(asked, session, BASE_URL, at_hand=replace(AT_HAND, tenants=[tenant]), checks=[check])


def test_property_tests_still_show_the_failing_example() -> None:
    @given(number=st.integers())
    def fails(number: int) -> None:
        assert number < 5

    with pytest.raises(AssertionError) as failure:
        fails()
    assert "number=5" in "".join(failure.value.__notes__)
