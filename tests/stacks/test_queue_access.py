"""Temporary credentials for queues: a role whose sessions are for one tenant each, if credentials are switched on."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.tenants.credentials import ACTIONS, TENANT_TAG
from tests.stacks.policies import grants, statements, trust_for_sessions_of_one_tenant, trusts

Json = dict[str, Any]

VARIABLES = {"BERTH_QUEUE_ACCESS_ROLE", "BERTH_CREDENTIALS_SECONDS"}


@pytest.fixture(scope="module")
def role(with_everything: Json, function_ids: dict[str, str]) -> str:
    """The role that getQueue assumes."""
    logical_id: str = _variables_of_get_queue(with_everything, function_ids)["BERTH_QUEUE_ACCESS_ROLE"]["Fn::GetAtt"][0]
    return logical_id


@pytest.fixture(scope="module")
def get_queue_role(control_plane: Json, function_ids: dict[str, str]) -> str:
    logical_id: str = control_plane["Resources"][function_ids["get_queue"]]["Properties"]["Role"]["Fn::GetAtt"][0]
    return logical_id


def test_only_get_queue_may_assume_the_role_and_only_with_a_tenant_tag_and_a_source_identity(
    with_everything: Json, role: str, get_queue_role: str
) -> None:
    expected = trust_for_sessions_of_one_tenant(get_queue_role, TENANT_TAG)
    assert trusts(with_everything["Resources"][role]) == expected


def test_a_session_may_only_send_and_receive_on_queues_with_its_own_tag_or_that_were_kept_ready(
    with_everything: Json, role: str, names: dict[str, str]
) -> None:
    """A tenant has the queue of a stack that was kept ready some minutes before the queue has the tenant's tag."""
    tags = {"StringLike": {f"aws:ResourceTag/{TENANT_TAG}": ["${aws:PrincipalTag/berth:tenant-id}", "berth-warm-*"]}}
    assert grants(with_everything, role, names) == {
        f"tenant queues, if {tags}": {action for actions in ACTIONS.values() for action in actions}
    }


def test_tenants_queues_have_the_tag(tenant: Json) -> None:
    queue = tenant["Resources"]["InboundQueue"]["Properties"]
    assert {"Key": TENANT_TAG, "Value": {"Ref": "TenantId"}} in queue["Tags"]


def test_get_queue_may_assume_only_this_role(
    with_everything: Json, control_plane: Json, role: str, get_queue_role: str, names: dict[str, str]
) -> None:
    before = grants(control_plane, get_queue_role, names)
    now = grants(with_everything, get_queue_role, names)
    assert now == before | {f"<{role}.Arn>": {"sts:AssumeRole", "sts:TagSession", "sts:SetSourceIdentity"}}


def test_no_other_role_may_assume_a_role(with_everything: Json, get_queue_role: str) -> None:
    assert {holder for holder, statement in statements(with_everything) if "sts:" in str(statement["Action"])} == {
        get_queue_role
    }


def test_get_queue_knows_how_long_credentials_last_and_the_role_allows_it(
    with_everything: Json, function_ids: dict[str, str], role: str
) -> None:
    assert _variables_of_get_queue(with_everything, function_ids)["BERTH_CREDENTIALS_SECONDS"] == "1800"
    assert with_everything["Resources"][role]["Properties"]["MaxSessionDuration"] == 3600


def test_without_credentials_there_is_no_such_role_variable_or_permission(
    control_plane: Json, with_everything: Json, function_ids: dict[str, str], role: str
) -> None:
    assert role not in control_plane["Resources"]
    assert not VARIABLES & set(_variables_of_get_queue(control_plane, function_ids))
    assert not [statement for _, statement in statements(control_plane) if "sts:" in str(statement["Action"])]
    assert not _roles_for_roles(control_plane)
    assert _roles_for_roles(with_everything) == {role}


def _roles_for_roles(template: Json) -> set[str]:
    """Roles that something other than an AWS service may assume."""
    return {
        logical_id
        for logical_id, resource in template["Resources"].items()
        if resource["Type"] == "AWS::IAM::Role"
        and any("Service" not in statement["Principal"] for statement in trusts(resource))
    }


def _variables_of_get_queue(template: Json, function_ids: dict[str, str]) -> Json:
    variables: Json = template["Resources"][function_ids["get_queue"]]["Properties"]["Environment"]["Variables"]
    return variables
