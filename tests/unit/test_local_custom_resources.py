"""While a custom resource's function runs, the emulator's record of the stack is as AWS describes it."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from orchestrator.local.custom_resources import Call, as_on_aws

STACK_ID = "arn:aws:cloudformation:us-east-1:000000000000:stack/billing/1"
QUEUE = {
    "LogicalResourceId": "Queue",
    "ResourceType": "Custom::TenantQueue",
    "PhysicalResourceId": "acme",
    "ResourceStatus": "CREATE_COMPLETE",
    "Properties": {"TenantId": "acme"},
}


def a_stack(status: str, *resources: dict[str, Any]) -> dict[str, Any]:
    return {
        "StackId": STACK_ID,
        "StackStatus": status,
        "_resources": {each["LogicalResourceId"]: each for each in resources},
    }


def a_call(request_type: str, physical_id: str = "acme") -> Call:
    return Call(STACK_ID, request_type, "Queue", "Custom::TenantQueue", physical_id)


def described(stack: dict[str, Any], call: Call) -> tuple[str, str, str]:
    """The stack's status, the resource's status and its physical id. Also checks that the record is restored."""
    before = copy.deepcopy(stack)
    with as_on_aws(stack, [call]):
        resource = stack["_resources"]["Queue"]
        shown = stack["StackStatus"], resource["ResourceStatus"], resource["PhysicalResourceId"]
    assert stack == before
    return shown


@pytest.mark.parametrize(
    ("stack", "call", "expected"),
    [
        pytest.param(
            a_stack("CREATE_IN_PROGRESS"),
            a_call("Create", ""),
            ("CREATE_IN_PROGRESS", "CREATE_IN_PROGRESS", ""),
            id="create",
        ),
        pytest.param(
            a_stack("UPDATE_IN_PROGRESS", QUEUE),
            a_call("Update"),
            ("UPDATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "acme"),
            id="update",
        ),
        pytest.param(
            a_stack("UPDATE_ROLLBACK_IN_PROGRESS", QUEUE),
            a_call("Update"),
            ("UPDATE_ROLLBACK_IN_PROGRESS", "UPDATE_IN_PROGRESS", "acme"),
            id="an update is undone",
        ),
        pytest.param(
            a_stack("ROLLBACK_IN_PROGRESS", QUEUE),
            a_call("Delete"),
            ("ROLLBACK_IN_PROGRESS", "DELETE_IN_PROGRESS", "acme"),
            id="a create is undone",
        ),
        pytest.param(
            a_stack("DELETE_IN_PROGRESS", QUEUE),
            a_call("Delete"),
            ("DELETE_IN_PROGRESS", "DELETE_IN_PROGRESS", "acme"),
            id="delete",
        ),
        pytest.param(
            a_stack("UPDATE_IN_PROGRESS", QUEUE),
            a_call("Delete"),
            ("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "DELETE_IN_PROGRESS", "acme"),
            id="removed by an update",
        ),
        pytest.param(
            a_stack("UPDATE_IN_PROGRESS", QUEUE),
            a_call("Delete", "other"),
            ("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "CREATE_COMPLETE", "acme"),
            id="the old one of a replacement",
        ),
    ],
)
def test_a_custom_resource_is_described_as_on_aws(
    stack: dict[str, Any], call: Call, expected: tuple[str, str, str]
) -> None:
    assert described(stack, call) == expected


def test_other_attributes_of_the_resource_are_kept() -> None:
    stack = a_stack("UPDATE_IN_PROGRESS", QUEUE)
    with as_on_aws(stack, [a_call("Update")]):
        assert stack["_resources"]["Queue"]["Properties"] == {"TenantId": "acme"}


def test_calls_of_other_stacks_and_no_stack_at_all_change_nothing() -> None:
    stack: dict[str, Any] = a_stack("CREATE_COMPLETE", QUEUE)
    for each in (stack, {}):
        before = copy.deepcopy(each)
        with as_on_aws(each, [Call(f"{STACK_ID}2", "Delete", "Queue", "Custom::TenantQueue", "acme")]):
            assert each == before
