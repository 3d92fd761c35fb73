"""History is append-only: no role may change it, and the table's policy denies changes even to administrators."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any

import pytest

from orchestrator.adapters.dynamodb.keys import (
    history_pk,
    registry_key,
    release_key,
    rollout_history_pk,
    rollout_pk,
    tenant_pk,
)
from orchestrator.common.tenant_ids import TenantId
from tests.stacks.conftest import ADOPTER
from tests.stacks.policies import Grants, listed, on_partition, spelled

Json = dict[str, Any]

TENANT, ROLLOUT = TenantId.parse("acme"), "20261116-083000-1a2b"
HISTORY, ROWS, RELEASE = history_pk(TENANT), tenant_pk(TENANT), release_key("1.2.3")["pk"]["S"]
OF_A_ROLLOUT, ROLLOUT_ROWS, REGISTRY = rollout_history_pk(ROLLOUT), rollout_pk(ROLLOUT), registry_key()["pk"]["S"]
HISTORIES = (HISTORY, OF_A_ROLLOUT)

WRITES = ("PutItem", "UpdateItem", "DeleteItem")
IN_BULK = ("BatchWriteItem", "PartiQLInsert", "PartiQLUpdate", "PartiQLDelete")

APPENDING = {
    *("begin", "finish", "record_failure", "close_execution", "reconcile"),
    *("operators", "settle_tenant_queue", "tenant_metadata"),
}
ADMINISTRATOR = "arn:aws:iam::000000000000:role/administrator"
"""A role whose own policies allow everything."""

Write = tuple[str, str]
"""An action, and the partition that it writes to."""

TRANSACTIONS: dict[str, list[list[Write]]] = {
    "begin": [[("PutItem", ROWS), ("PutItem", ROWS), ("PutItem", HISTORY), ("UpdateItem", ROWS)]],
    "finish": [
        [("UpdateItem", ROWS), ("PutItem", ROWS), ("PutItem", HISTORY), ("DeleteItem", ROWS)],
        [("DeleteItem", ROWS), ("PutItem", ROWS), ("PutItem", HISTORY), ("DeleteItem", ROWS)],
    ],
    "record_failure": [
        [("PutItem", ROWS), ("DeleteItem", ROWS), ("UpdateItem", ROWS), ("PutItem", HISTORY)],
        [("PutItem", ROWS), ("ConditionCheckItem", ROWS), ("UpdateItem", ROWS), ("PutItem", HISTORY)],
    ],
    "reconcile": [[("ConditionCheckItem", ROWS), ("UpdateItem", ROWS), ("PutItem", HISTORY)]],
    "operators": [
        [("UpdateItem", ROWS), ("PutItem", HISTORY)],
        [("PutItem", ROLLOUT_ROWS), ("PutItem", ROLLOUT_ROWS), ("UpdateItem", REGISTRY), ("PutItem", OF_A_ROLLOUT)],
    ],
    "settle_tenant_queue": [[("UpdateItem", ROWS), ("PutItem", HISTORY)]],
    "tenant_metadata": [[("UpdateItem", ROWS), ("PutItem", HISTORY)]],
    "await_stack": [[("UpdateItem", ROWS)]],
    "admit_tenant": [[("ConditionCheckItem", ROLLOUT_ROWS), ("PutItem", ROLLOUT_ROWS), ("PutItem", ROLLOUT_ROWS)]],
}
"""The transactions of each function."""


def each_by_itself(transaction: Sequence[Write]) -> Iterator[tuple[str, set[str]]]:
    return ((action, {partition}) for action, partition in transaction)


def all_of_a_kind(transaction: Sequence[Write]) -> Iterator[tuple[str, set[str]]]:
    kinds = {action for action, _ in transaction}
    return ((kind, {partition for action, partition in transaction if action == kind}) for kind in kinds)


def all_at_once(transaction: Sequence[Write]) -> Iterator[tuple[str, set[str]]]:
    return ((action, {partition for _, partition in transaction}) for action, _ in transaction)


EVALUATIONS = (each_by_itself, all_of_a_kind, all_at_once)
"""The ways in which AWS may evaluate the keys of a transaction. AWS does not document which it uses."""


class TablePolicy:
    """A small evaluation of the table's own policy."""

    def __init__(self, statements: Sequence[Json]) -> None:
        self.statements = statements

    def denies(self, principal: str, action: str, partitions: set[str]) -> bool:
        return any(
            f"dynamodb:{action}" in listed(statement["Action"])
            and all(
                self._holds(operator, key, listed(values), principal, partitions)
                for operator, keys in statement["Condition"].items()
                for key, values in keys.items()
            )
            for statement in self.statements
        )

    def _holds(self, operator: str, key: str, values: list[Any], principal: str, partitions: set[str]) -> bool:
        match operator, key:
            case "ForAnyValue:StringLike", "dynamodb:LeadingKeys":
                return any(fnmatchcase(each, pattern) for each in partitions for pattern in values)
            case "ForAllValues:StringLike", "dynamodb:LeadingKeys":
                return all(any(fnmatchcase(each, pattern) for pattern in values) for each in partitions)
            case "Null", "dynamodb:LeadingKeys":
                return (values == ["true"] and not partitions) or (values == ["false"] and bool(partitions))
            case "ArnEquals", "aws:PrincipalArn":
                return principal in map(spelled, values)
            case "ArnNotEquals", "aws:PrincipalArn":
                return principal not in map(spelled, values)
        raise AssertionError(f"This evaluation does not support {operator} of {key}.")


@pytest.fixture(scope="session")
def roles(control_plane: Json, function_ids: dict[str, str]) -> dict[str, str]:
    """The role of every function, by the name of the function."""
    return {
        name: control_plane["Resources"][logical_id]["Properties"]["Role"]["Fn::GetAtt"][0]
        for name, logical_id in function_ids.items()
    }


@pytest.fixture
def policy(control_plane: Json, the_only: Callable[[str], str]) -> TablePolicy:
    table = control_plane["Resources"][the_only("AWS::DynamoDB::Table")]["Properties"]
    statements = table["ResourcePolicy"]["PolicyDocument"]["Statement"]
    assert {statement["Effect"] for statement in statements} == {"Deny"}
    assert [statement["Principal"] for statement in statements] == [{"AWS": "*"}] * len(statements)
    assert {statement["Resource"] for statement in statements} == {"*"}
    return TablePolicy(statements)


def may_on(template: Json, partition: str, roles: dict[str, str]) -> Grants:
    names = {role: name for name, role in roles.items()}
    return {names[role]: actions for role, actions in on_partition(template, partition).items()}


@pytest.mark.parametrize("history", HISTORIES)
def test_roles_may_only_append_to_history_and_only_operators_may_query_it(
    control_plane: Json, roles: dict[str, str], history: str
) -> None:
    appends = {name: {"dynamodb:PutItem"} for name in APPENDING}
    also = {"operators": {"dynamodb:PutItem", "dynamodb:Query"}}
    assert may_on(control_plane, history, roles) == appends | also


def test_roles_may_change_other_rows(control_plane: Json, roles: dict[str, str]) -> None:
    allowed = may_on(control_plane, ROWS, roles)
    deleting = {name for name, actions in allowed.items() if "dynamodb:DeleteItem" in actions}
    updating = {name for name, actions in allowed.items() if "dynamodb:UpdateItem" in actions}
    assert deleting == {"finish", "record_failure", "close_execution", "reconcile"}
    assert {"begin", "finish", "record_failure", "operators", "tenant_metadata"} <= updating


# The table's own policy


@pytest.mark.parametrize("history", HISTORIES)
def test_the_role_that_adopts_tenants_may_append_to_history_but_not_change_it(
    with_legacy_stacks: Json, history: str
) -> None:
    (table,) = (each for each in with_legacy_stacks["Resources"].values() if each["Type"] == "AWS::DynamoDB::Table")
    policy = TablePolicy(table["Properties"]["ResourcePolicy"]["PolicyDocument"]["Statement"])
    assert not policy.denies(ADOPTER, "PutItem", {history, ROWS})
    assert policy.denies(ADMINISTRATOR, "PutItem", {history, ROWS})
    for action in ("UpdateItem", "DeleteItem"):
        assert policy.denies(ADOPTER, action, {history})


@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize("action", [*WRITES, *IN_BULK])
def test_an_administrator_can_neither_append_to_history_nor_change_nor_delete_it(
    policy: TablePolicy, action: str, history: str
) -> None:
    assert policy.denies(ADMINISTRATOR, action, {history})
    assert policy.denies(ADMINISTRATOR, action, {history, ROWS}), "hidden among other rows"


@pytest.mark.parametrize("history", HISTORIES)
def test_a_role_of_the_control_plane_can_append_at_most(
    policy: TablePolicy, roles: dict[str, str], history: str
) -> None:
    """This holds even if somebody gave the role more permissions."""
    may = {
        name: {action for action in (*WRITES, *IN_BULK) if not policy.denies(f"<{role}.Arn>", action, {history})}
        for name, role in roles.items()
    }
    assert may == {name: {"PutItem"} if name in APPENDING else set() for name in roles}


@pytest.mark.parametrize("action", IN_BULK)
def test_history_cannot_be_written_in_a_batch_with_other_rows(
    policy: TablePolicy, roles: dict[str, str], action: str
) -> None:
    assert all(policy.denies(f"<{role}.Arn>", action, {ROWS, HISTORY}) for role in roles.values())


@pytest.mark.parametrize("evaluation", EVALUATIONS)
@pytest.mark.parametrize("name", TRANSACTIONS)
def test_every_transaction_of_the_control_plane_is_allowed_however_aws_evaluates_its_keys(
    policy: TablePolicy,
    roles: dict[str, str],
    name: str,
    evaluation: Callable[[Sequence[Write]], Iterator[tuple[str, set[str]]]],
) -> None:
    principal = f"<{roles[name]}.Arn>"
    for transaction in TRANSACTIONS[name]:
        assert not [write for write in evaluation(transaction) if policy.denies(principal, *write)]


@pytest.mark.parametrize("partition", [ROWS, RELEASE, ROLLOUT_ROWS, REGISTRY])
@pytest.mark.parametrize("action", [*WRITES, *IN_BULK, "GetItem", "Query", "Scan", "ConditionCheckItem"])
def test_the_table_denies_nothing_else(policy: TablePolicy, roles: dict[str, str], action: str, partition: str) -> None:
    everybody = [ADMINISTRATOR, *(f"<{role}.Arn>" for role in roles.values())]
    assert not [each for each in everybody if policy.denies(each, action, {partition})]


@pytest.mark.parametrize("action", ["GetItem", "Query", "Scan", "ConditionCheckItem"])
def test_history_can_be_read(policy: TablePolicy, action: str) -> None:
    assert not policy.denies(ADMINISTRATOR, action, {HISTORY})


def test_the_function_that_starts_automatic_rollouts_can_append_too(
    with_everything: Json, the_only: Callable[[str], str]
) -> None:
    resources = with_everything["Resources"]
    (function,) = (
        each["Properties"]
        for each in resources.values()
        if each["Properties"].get("Handler") == "lambdas.rollouts.start_rollout.handler"
    )
    table = resources[the_only("AWS::DynamoDB::Table")]["Properties"]
    policy = TablePolicy(table["ResourcePolicy"]["PolicyDocument"]["Statement"])
    assert not policy.denies(spelled(function["Role"]), "PutItem", {ROLLOUT_ROWS, OF_A_ROLLOUT})
