"""Who asks, from what API Gateway says, and who asks when it says nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.callers import NOBODY_KNOWN, caller, role_of

ADA = "arn:aws:sts::000000000000:assumed-role/operator/ada"


def an_event(user_arn: object) -> dict[str, object]:
    return {"requestContext": {"authorizer": {"iam": {"userArn": user_arn, "accountId": "000000000000"}}}}


def test_the_caller_is_whom_api_gateway_has_authenticated() -> None:
    assert caller(an_event(ADA)) == ADA


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"requestContext": None},
        {"requestContext": {}},
        {"requestContext": {"authorizer": None}},
        {"requestContext": {"authorizer": {"iam": None}}},
        {"requestContext": {"authorizer": {"iam": "arn"}}},
        {"requestContext": "arn"},
        an_event(None),
        an_event(""),
        an_event(["arn"]),
        an_event("arn\n"),
        an_event("arn\ud800"),
        an_event("a" * 2_049),
        {"userArn": ADA, "by": ADA, "requestContext": {"userArn": ADA}},
    ],
)
def test_a_caller_whom_nobody_has_authenticated_is_not_made_up(event: dict[str, object]) -> None:
    assert caller(event) == NOBODY_KNOWN


@given(
    st.dictionaries(
        st.sampled_from(["requestContext", "authorizer", "iam", "userArn"]),
        st.recursive(
            st.none() | st.text() | st.integers() | st.lists(st.text()),
            lambda inner: st.dictionaries(st.sampled_from(["authorizer", "iam", "userArn"]), inner),
        ),
    )
)
def test_there_is_always_an_answer(event: dict[str, object]) -> None:
    assert caller(event)


@pytest.mark.parametrize(
    ("arn", "role"),
    [
        (ADA, "arn:aws:sts::000000000000:assumed-role/operator"),
        ("arn:aws:sts::000000000000:assumed-role/operator", "arn:aws:sts::000000000000:assumed-role/operator"),
        ("arn:aws-cn:sts::000000000000:assumed-role/a/b/c", "arn:aws-cn:sts::000000000000:assumed-role/a"),
        ("arn:aws:iam::000000000000:user/ada", "arn:aws:iam::000000000000:user/ada"),
        ("arn:aws:iam::000000000000:user/division/ada", "arn:aws:iam::000000000000:user/division/ada"),
        ("arn:aws:iam::000000000000:root", "arn:aws:iam::000000000000:root"),
        ("arn:aws:sts::000000000000:federated-user/ada", "arn:aws:sts::000000000000:federated-user/ada"),
        ("arn:aws:sts::000000000000:assumed-role", "arn:aws:sts::000000000000:assumed-role"),
        (NOBODY_KNOWN, NOBODY_KNOWN),
        ("", ""),
    ],
)
def test_a_role_is_told_without_its_session_and_everybody_else_as_they_are(arn: str, role: str) -> None:
    assert role_of(arn) == role


def test_all_sessions_of_a_role_are_one_caller_and_two_roles_are_two() -> None:
    sessions = {role_of(f"arn:aws:sts::000000000000:assumed-role/platform/i-{number}") for number in range(5)}
    assert len(sessions) == 1
    assert role_of("arn:aws:sts::000000000000:assumed-role/platform2/i-0") not in sessions
    assert role_of("arn:aws:sts::000000000001:assumed-role/platform/i-0") not in sessions
