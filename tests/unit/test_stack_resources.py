"""A resource of another team's stack is a typed value: its text is understood as a whole, or not at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.common.errors import InvalidRequest
from orchestrator.tenants.stack_resources import StackResource
from tests.fakes import a_resource

STACK = "arn:aws:cloudformation:eu-west-1:000000000000:stack/billing/1"


def test_a_resource_has_a_stack_and_a_logical_id() -> None:
    resource = StackResource.parse(STACK, "Queue")
    assert (str(resource.stack), resource.logical_id) == (STACK, "Queue")


@pytest.mark.parametrize("stack_id", ["", "billing", f"{STACK}/Queue", f"{STACK}\n", STACK.replace("stack/", "stack")])
def test_only_a_stack_has_resources(stack_id: str) -> None:
    with pytest.raises(InvalidRequest, match="StackId"):
        StackResource.parse(stack_id, "Queue")


@pytest.mark.parametrize("logical_id", ["", "1/Queue", "Queue\n", "Qu-eue", "Qu.eue", "Warteschl\u00e4nge", "q" * 256])
def test_a_logical_id_is_alphanumeric(logical_id: str) -> None:
    with pytest.raises(InvalidRequest, match="LogicalResourceId"):
        StackResource.parse(STACK, logical_id)


# Before, a stack's id and a logical id were joined: one resource could be given the text of another.
@given(st.text("ab/1", max_size=12), st.text("ab/1", max_size=12))
def test_no_two_resources_have_the_same_text(stack: str, logical_id: str) -> None:
    try:
        resource = StackResource.parse(f"arn:aws:cloudformation:eu-west-1:000000000000:stack/{stack}", logical_id)
    except InvalidRequest:
        return
    assert StackResource.parse(*str(resource).rsplit("/", 1)) == resource


def test_a_stack_that_is_deployed_again_has_another_id_and_the_same_resources() -> None:
    assert a_resource() != a_resource(number=2)
    assert a_resource().stands_for(a_resource(number=2))


@pytest.mark.parametrize(
    "other",
    [
        a_resource("Queue2"),
        a_resource(stack="billing-2"),
        StackResource.parse(STACK.replace("eu-west-1", "eu-west-2"), "Queue"),
        StackResource.parse(STACK.replace("000000000000", "000000000001"), "Queue"),
        StackResource.parse(STACK.replace("arn:aws:", "arn:aws-cn:"), "Queue"),
    ],
    ids=str,
)
def test_nothing_else_stands_for_a_resource(other: StackResource) -> None:
    assert not a_resource().stands_for(other)
