"""Temporary credentials for events: a role whose sessions are for one tenant each, if credentials are switched on."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.adapters.event_access import TENANT_TAG
from orchestrator.tenants.credentials import TENANT_TAG as TAG_OF_QUEUES
from tests.stacks.policies import grants, trust_for_sessions_of_one_tenant, trusts

Json = dict[str, Any]

VARIABLES = {"BERTH_EVENT_ACCESS_ROLE", "BERTH_EVENTS_TABLE_ARN", "BERTH_CREDENTIALS_SECONDS"}


def variables_of_operators(template: Json, event_function_ids: dict[str, str]) -> Json:
    function = template["Resources"][event_function_ids["event_operators"]]["Properties"]
    found: Json = function["Environment"]["Variables"]
    return found


@pytest.fixture(scope="module")
def role(events_with_everything: Json, event_function_ids: dict[str, str]) -> str:
    variables = variables_of_operators(events_with_everything, event_function_ids)
    logical_id: str = variables["BERTH_EVENT_ACCESS_ROLE"]["Fn::GetAtt"][0]
    return logical_id


@pytest.fixture(scope="module")
def operators_role(event_plane: Json, event_function_ids: dict[str, str]) -> str:
    function = event_plane["Resources"][event_function_ids["event_operators"]]["Properties"]
    logical_id: str = function["Role"]["Fn::GetAtt"][0]
    return logical_id


def test_only_the_operators_function_may_assume_the_role_and_only_with_a_tenant_tag_and_a_source_identity(
    events_with_everything: Json, role: str, operators_role: str
) -> None:
    expected = trust_for_sessions_of_one_tenant(operators_role, TENANT_TAG)
    assert trusts(events_with_everything["Resources"][role]) == expected


def test_a_session_may_only_read_rows_of_the_tenant_that_it_is_tagged_with(
    events_with_everything: Json, role: str, event_names: dict[str, str]
) -> None:
    tenant = "${aws:PrincipalTag/berth:tenant-id}"
    assert grants(events_with_everything, role, event_names) == {
        f"the events' table, rows TENANT_ID#{tenant}#*": {
            "dynamodb:GetItem",
            "dynamodb:BatchGetItem",
            "dynamodb:Query",
        },
        f"the index by status, rows {tenant}#*": {"dynamodb:Query"},
        f"the index by type, rows {tenant}#*": {"dynamodb:Query"},
    }


def test_the_operators_function_gains_only_the_right_to_assume_the_role(
    event_plane: Json,
    events_with_everything: Json,
    role: str,
    operators_role: str,
    event_names: dict[str, str],
) -> None:
    before = grants(event_plane, operators_role, event_names)
    assert grants(events_with_everything, operators_role, event_names) == {
        **before,
        f"<{role}.Arn>": {"sts:AssumeRole", "sts:TagSession", "sts:SetSourceIdentity"},
    }


def test_without_the_setting_there_is_no_role(event_plane: Json, event_function_ids: dict[str, str]) -> None:
    assert not VARIABLES & set(variables_of_operators(event_plane, event_function_ids))


def test_with_the_setting_the_function_knows_role_table_and_duration(
    events_with_everything: Json, event_function_ids: dict[str, str]
) -> None:
    assert set(variables_of_operators(events_with_everything, event_function_ids)) >= VARIABLES


def test_sessions_have_the_same_tag_as_those_for_queues() -> None:
    assert TENANT_TAG == TAG_OF_QUEUES
