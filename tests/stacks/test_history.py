"""History is append-only: no role may change it, and the table refuses those who may change anything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from orchestrator.adapters.keys import history_pk, release_key, tenant_pk
from orchestrator.tenants import TenantId
from tests.stacks.policies import Grants, on_partition, reaches

Json = dict[str, Any]

TENANT = TenantId.parse("acme")
HISTORY, ROWS, RELEASE = history_pk(TENANT), tenant_pk(TENANT), release_key("1.2.3")["pk"]["S"]

CHANGES = ("UpdateItem", "DeleteItem", "BatchWriteItem", "PartiQLUpdate", "PartiQLDelete")


@pytest.fixture(scope="session")
def names_of_roles(control_plane: Json, function_ids: dict[str, str]) -> dict[str, str]:
    return {
        control_plane["Resources"][logical_id]["Properties"]["Role"]["Fn::GetAtt"][0]: name
        for name, logical_id in function_ids.items()
    }


def may_on(template: Json, partition: str, names: dict[str, str]) -> Grants:
    return {names[role]: actions for role, actions in on_partition(template, partition).items()}


def test_history_is_appended_by_the_steps_that_record_and_read_by_operators_and_nobody_may_do_more(
    control_plane: Json, names_of_roles: dict[str, str]
) -> None:
    assert may_on(control_plane, HISTORY, names_of_roles) == {
        "begin": {"dynamodb:PutItem"},
        "finish": {"dynamodb:PutItem"},
        "record_failure": {"dynamodb:PutItem"},
        "close_execution": {"dynamodb:PutItem"},
        "reconcile": {"dynamodb:PutItem"},
        "operators": {"dynamodb:Query"},
    }


def test_the_same_look_at_other_rows_finds_those_who_change_them(
    control_plane: Json, names_of_roles: dict[str, str]
) -> None:
    allowed = may_on(control_plane, ROWS, names_of_roles)
    deleting = {name for name, actions in allowed.items() if "dynamodb:DeleteItem" in actions}
    updating = {name for name, actions in allowed.items() if "dynamodb:UpdateItem" in actions}
    assert deleting == {"finish", "record_failure", "close_execution", "reconcile"}
    assert {"begin", "finish", "record_failure", "operators", "tenant_metadata"} <= updating


def test_the_table_itself_refuses_changes_of_history_whatever_a_policy_allows(
    control_plane: Json, the_only: Callable[[str], str]
) -> None:
    (refusal,) = _policy(control_plane, the_only)
    assert refusal["Effect"] == "Deny"
    assert refusal["Principal"] == {"AWS": "*"}
    assert refusal["Resource"] == "*"
    assert set(refusal["Action"]) == {f"dynamodb:{change}" for change in CHANGES}
    assert reaches(refusal["Condition"], "ForAnyValue:StringLike", HISTORY)


def test_the_table_refuses_nothing_else(control_plane: Json, the_only: Callable[[str], str]) -> None:
    (refusal,) = _policy(control_plane, the_only)
    assert set(refusal["Condition"]) == {"ForAnyValue:StringLike"}
    for partition in (ROWS, RELEASE):
        assert not reaches(refusal["Condition"], "ForAnyValue:StringLike", partition)


def _policy(template: Json, the_only: Callable[[str], str]) -> list[Json]:
    table = template["Resources"][the_only("AWS::DynamoDB::Table")]["Properties"]
    statements: list[Json] = table["ResourcePolicy"]["PolicyDocument"]["Statement"]
    return statements
