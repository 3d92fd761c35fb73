"""The caller of a request, with and without API Gateway's proof."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.common.callers import (
    NOBODY_KNOWN,
    ApiGateway,
    caller,
    counted_as,
    digest_of,
    role_of,
    source_identity,
)

ADA = "arn:aws:sts::000000000000:assumed-role/operator/ada"


def an_event(user_arn: object) -> dict[str, object]:
    return {"requestContext": {"authorizer": {"iam": {"userArn": user_arn, "accountId": "000000000000"}}}}


def test_the_caller_is_the_arn_that_api_gateway_has_authenticated() -> None:
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
def test_without_an_authenticated_arn_the_caller_is_a_direct_invocation(event: dict[str, object]) -> None:
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
def test_every_event_has_a_caller(event: dict[str, object]) -> None:
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
def test_the_session_name_of_a_role_is_removed_and_other_arns_stay(arn: str, role: str) -> None:
    assert role_of(arn) == role


def test_all_sessions_of_a_role_are_one_caller_and_roles_are_different_callers() -> None:
    sessions = {role_of(f"arn:aws:sts::000000000000:assumed-role/platform/i-{number}") for number in range(5)}
    assert len(sessions) == 1
    assert role_of("arn:aws:sts::000000000000:assumed-role/platform2/i-0") not in sessions
    assert role_of("arn:aws:sts::000000000001:assumed-role/platform/i-0") not in sessions


@pytest.mark.parametrize(
    ("callers", "counted"),
    [
        ([ADA, f"{ADA}-2", role_of(ADA)], "arn:aws:sts::000000000000:assumed-role/operator"),
        (
            ["arn:aws:sts::000000000000:federated-user/a", "arn:aws:sts::000000000000:federated-user/b"],
            "arn:aws:sts::000000000000:federated-user",
        ),
        (["arn:aws:iam::000000000000:user/team/ada"], "arn:aws:iam::000000000000:user/team/ada"),
        (["arn:aws:iam::000000000000:root"], "arn:aws:iam::000000000000:root"),
        ([NOBODY_KNOWN], NOBODY_KNOWN),
    ],
)
def test_creates_are_counted_under_a_name_that_the_caller_cannot_choose(callers: list[str], counted: str) -> None:
    assert {counted_as(each) for each in callers} == {counted}


# Whether it was API Gateway that said so


PROOF = "what only API Gateway knows"
GATEWAY = ApiGateway(digest_of(PROOF))


def proven(event: dict[str, object], proof: object = PROOF) -> dict[str, object]:
    return {**event, "stageVariables": {"proof": proof}}


def test_the_caller_of_an_event_with_the_proof_is_accepted() -> None:
    event = proven(an_event(ADA))
    assert GATEWAY.sent(event)
    assert GATEWAY.caller(event) == ADA


@pytest.mark.parametrize(
    "event",
    [
        {},
        an_event(ADA),
        {**an_event(ADA), "stageVariables": None},
        {**an_event(ADA), "stageVariables": {}},
        {**an_event(ADA), "stageVariables": PROOF},
        {**an_event(ADA), "stageVariables": [PROOF]},
        {**an_event(ADA), "proof": PROOF},
        {**an_event(ADA), "headers": {"proof": PROOF}},
        *(
            proven(an_event(ADA), wrong)
            for wrong in (None, "", PROOF[:-1], f"{PROOF} ", PROOF.upper(), digest_of(PROOF), [PROOF], 7, "\ud800")
        ),
    ],
)
def test_the_caller_of_an_event_without_the_proof_is_not_accepted(event: dict[str, object]) -> None:
    assert not GATEWAY.sent(event)
    assert GATEWAY.caller(event) == NOBODY_KNOWN


@pytest.mark.parametrize("digest", [None, ""])
@pytest.mark.parametrize("proof", [PROOF, "", None])
def test_without_a_digest_no_proof_is_accepted(digest: str | None, proof: object) -> None:
    assert not ApiGateway(digest).sent(proven(an_event(ADA), proof))


def test_the_digest_does_not_contain_the_proof() -> None:
    assert re.fullmatch("[0-9a-f]{64}", digest_of(PROOF))
    assert PROOF not in repr(GATEWAY)


# As STS and CloudTrail take it


@pytest.mark.parametrize(
    ("arn", "readable"),
    [
        (ADA, "operator=ada"),
        ("arn:aws:sts::000000000000:assumed-role/platform/ada@example.com", "platform=ada@example.com"),
        ("arn:aws:iam::000000000000:user/division/ada", "division=ada"),
        ("arn:aws:iam::000000000000:root", "root"),
        ("arn:aws:sts::000000000000:federated-user/ada", "ada"),
        ("arn:aws:sts::000000000000:assumed-role/platform/a+b c", "platform=a-b-c"),
        (NOBODY_KNOWN, "direct-invocation"),
    ],
)
def test_a_source_identity_contains_a_readable_name(arn: str, readable: str) -> None:
    assert re.fullmatch(f"{re.escape(readable)}-[0-9a-f]{{12}}", source_identity(arn))


@given(st.text(max_size=2_100))
def test_every_caller_has_a_source_identity_that_sts_accepts(arn: str) -> None:
    assert re.fullmatch("[A-Za-z0-9_=,.@-]{2,64}", source_identity(arn))


def test_callers_with_the_same_name_have_different_source_identities() -> None:
    alike = [
        "arn:aws:sts::000000000000:assumed-role/operator/ada",
        "arn:aws:sts::000000000001:assumed-role/operator/ada",
        "arn:aws:iam::000000000000:user/operator/ada",
        "arn:aws:sts::000000000000:assumed-role/operator=ada",
        f"arn:aws:sts::000000000000:assumed-role/{'x' * 64}/1",
        f"arn:aws:sts::000000000000:assumed-role/{'x' * 64}/2",
    ]
    assert len({source_identity(arn) for arn in alike}) == len(alike)
    assert source_identity(ADA) == source_identity(ADA)
