"""Temporary credentials for queues: a role for one tenant's session at a time, only where they are switched on."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.tenants.credentials import ACTIONS, TENANT_TAG
from tests.stacks.policies import grants, statements, trusts

Json = dict[str, Any]

TOLD = {"BERTH_QUEUE_ACCESS_ROLE", "BERTH_CREDENTIALS_SECONDS"}


@pytest.fixture(scope="module")
def role(with_credentials: Json, function_ids: dict[str, str]) -> str:
    """The role that getQueue is told of."""
    logical_id: str = _told(with_credentials, function_ids)["BERTH_QUEUE_ACCESS_ROLE"]["Fn::GetAtt"][0]
    return logical_id


@pytest.fixture(scope="module")
def get_queue_role(control_plane: Json, function_ids: dict[str, str]) -> str:
    logical_id: str = control_plane["Resources"][function_ids["get_queue"]]["Properties"]["Role"]["Fn::GetAtt"][0]
    return logical_id


def test_only_get_queue_may_take_on_the_role_and_only_for_one_named_tenant_and_a_named_caller(
    with_credentials: Json, role: str, get_queue_role: str
) -> None:
    only_the_tenants_tag = {"ForAllValues:StringEquals": {"aws:TagKeys": [TENANT_TAG]}}
    tenant, caller = {f"aws:RequestTag/{TENANT_TAG}": "?*"}, {"sts:SourceIdentity": "?*"}
    conditions = {
        "sts:AssumeRole": {**only_the_tenants_tag, "StringLike": tenant | caller},
        "sts:TagSession": {**only_the_tenants_tag, "StringLike": tenant},
        "sts:SetSourceIdentity": {"StringLike": caller},
    }
    assert trusts(with_credentials["Resources"][role]) == [
        {
            "Effect": "Allow",
            "Principal": {"AWS": {"Fn::GetAtt": [get_queue_role, "Arn"]}},
            "Action": action,
            "Condition": condition,
        }
        for action, condition in conditions.items()
    ]


def test_a_session_may_send_and_receive_on_queues_with_its_own_tag_and_nothing_else(
    with_credentials: Json, role: str, names: dict[str, str]
) -> None:
    its_own = {"StringEquals": {f"aws:ResourceTag/{TENANT_TAG}": "${aws:PrincipalTag/berth:tenant-id}"}}
    assert grants(with_credentials, role, names) == {
        f"tenant queues, if {its_own}": {action for actions in ACTIONS.values() for action in actions}
    }


def test_the_tag_is_the_one_that_tenants_queues_have(tenant: Json) -> None:
    queue = tenant["Resources"]["InboundQueue"]["Properties"]
    assert {"Key": TENANT_TAG, "Value": {"Ref": "TenantId"}} in queue["Tags"]


def test_get_queue_may_take_on_that_role_and_no_other(
    with_credentials: Json, control_plane: Json, role: str, get_queue_role: str, names: dict[str, str]
) -> None:
    before = grants(control_plane, get_queue_role, names)
    now = grants(with_credentials, get_queue_role, names)
    assert now == before | {f"<{role}.Arn>": {"sts:AssumeRole", "sts:TagSession", "sts:SetSourceIdentity"}}


def test_nobody_else_may_take_on_a_role(with_credentials: Json, get_queue_role: str) -> None:
    assert {holder for holder, statement in statements(with_credentials) if "sts:" in str(statement["Action"])} == {
        get_queue_role
    }


def test_get_queue_is_told_how_long_credentials_last_which_the_role_allows(
    with_credentials: Json, function_ids: dict[str, str], role: str
) -> None:
    assert _told(with_credentials, function_ids)["BERTH_CREDENTIALS_SECONDS"] == "1800"
    assert with_credentials["Resources"][role]["Properties"]["MaxSessionDuration"] == 3600


def test_unless_switched_on_there_is_no_such_role_and_nobody_is_told_or_allowed(
    control_plane: Json, with_credentials: Json, function_ids: dict[str, str], role: str
) -> None:
    assert role not in control_plane["Resources"]
    assert not TOLD & set(_told(control_plane, function_ids))
    assert not [statement for _, statement in statements(control_plane) if "sts:" in str(statement["Action"])]
    assert not _roles_for_roles(control_plane)
    assert _roles_for_roles(with_credentials) == {role}


def _roles_for_roles(template: Json) -> set[str]:
    """Roles that are taken on by something else than an AWS service."""
    return {
        logical_id
        for logical_id, resource in template["Resources"].items()
        if resource["Type"] == "AWS::IAM::Role"
        and any("Service" not in statement["Principal"] for statement in trusts(resource))
    }


def _told(template: Json, function_ids: dict[str, str]) -> Json:
    variables: Json = template["Resources"][function_ids["get_queue"]]["Properties"]["Environment"]["Variables"]
    return variables
