"""A stack's ARN is parsed as a whole, or refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.common.errors import InvalidRequest
from orchestrator.common.stack_arns import Location, StackArn
from tests.fakes import ACME, NAMES

UUID = "a1b2c3d4-5678-90ab-cdef-0123456789ab"
ARN = f"arn:aws:cloudformation:eu-west-1:123456789012:stack/{NAMES.stack_of(ACME)}/{UUID}"


def test_a_stack_arn_is_parsed_into_its_parts() -> None:
    assert StackArn.parse(ARN) == StackArn("aws", "eu-west-1", "123456789012", NAMES.stack_of(ACME), UUID)


def test_a_stack_arn_contains_the_location() -> None:
    assert StackArn.parse(ARN).location == Location("aws", "eu-west-1", "123456789012")


@pytest.mark.parametrize("partition", ["aws", "aws-cn", "aws-us-gov", "aws-iso-b"])
def test_every_partition_is_accepted(partition: str) -> None:
    assert StackArn.parse(ARN.replace("arn:aws:", f"arn:{partition}:")).partition == partition


@pytest.mark.parametrize(
    "text",
    [
        "",
        "stack-1",
        NAMES.stack_of(ACME),
        f"{ARN}\n",
        f" {ARN}",
        f"{ARN}/",
        f"{ARN}/{UUID}",
        f"x{ARN}",
        ARN.removesuffix(f"/{UUID}"),
        ARN.removesuffix(UUID),
        ARN.replace(":stack/", ":changeSet/"),
        ARN.replace(":stack/", ":stack/evil/x:stack/"),
        ARN.replace("cloudformation", "s3"),
        ARN.replace("123456789012", ""),
        ARN.replace("123456789012", "12345678901"),
        ARN.replace("123456789012", "\u0661" * 12),
        ARN.replace("eu-west-1", ""),
        ARN.replace("eu-west-1", "eu-west-1:eu-west-1"),
        ARN.replace("arn:aws:", "arn::"),
        ARN.replace("arn:aws:", "arn:evil:"),
        ARN.replace(NAMES.stack_of(ACME), f"{NAMES.stack_of(ACME)}*"),
        ARN.replace(NAMES.stack_of(ACME), ""),
        ARN.replace(UUID, "*"),
        ARN.replace(UUID, "\ud800"),
        ARN + "a" * 10_000,
    ],
    ids=range(25),
)
def test_anything_else_is_refused_as_a_stack_arn(text: str) -> None:
    with pytest.raises(InvalidRequest, match="is not the ARN of a stack"):
        StackArn.parse(text)


@given(st.text() | st.from_regex(r"arn:aws:cloudformation:[a-z0-9:/-]+", fullmatch=True))
def test_a_parsed_arn_is_written_as_it_was_given(text: str) -> None:
    try:
        parsed = StackArn.parse(text)
    except InvalidRequest:
        return
    assert str(parsed) == text


def test_a_parsed_location_is_written_as_it_was_given() -> None:
    assert str(Location.parse("aws-cn:cn-north-1:123456789012")) == "aws-cn:cn-north-1:123456789012"


@pytest.mark.parametrize("text", ["", "aws", "aws:eu-west-1", "aws:eu-west-1:12", "aws:eu-west-1:123456789012:x"])
def test_anything_else_is_refused_as_a_location(text: str) -> None:
    with pytest.raises(InvalidRequest, match="does not have the form partition:region:account"):
        Location.parse(text)
