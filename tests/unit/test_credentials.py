"""Temporary credentials: exactly these actions on exactly this queue, by IAM's own way of reading a policy."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from typing import Any

import pytest

from orchestrator.tenants.credentials import ACTIONS, Access, Credentials, session_policy
from orchestrator.tenants.records import Queue
from tests.fakes import A_KEY, NOON, OTHER_QUEUE, QUEUE

SQS_ACTIONS = [
    "sqs:AddPermission",
    "sqs:CancelMessageMoveTask",
    "sqs:ChangeMessageVisibility",
    "sqs:CreateQueue",
    "sqs:DeleteMessage",
    "sqs:DeleteQueue",
    "sqs:GetQueueAttributes",
    "sqs:GetQueueUrl",
    "sqs:ListDeadLetterSourceQueues",
    "sqs:ListMessageMoveTasks",
    "sqs:ListQueueTags",
    "sqs:ListQueues",
    "sqs:PurgeQueue",
    "sqs:ReceiveMessage",
    "sqs:RemovePermission",
    "sqs:SendMessage",
    "sqs:SetQueueAttributes",
    "sqs:StartMessageMoveTask",
    "sqs:TagQueue",
    "sqs:UntagQueue",
]
KMS_ACTIONS = ["kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey", "kms:ReEncryptFrom", "kms:CreateGrant"]
OTHER_ACTIONS = ["sts:AssumeRole", "s3:GetObject", "kms:Decrypt", "sns:Publish", "iam:PassRole"]

OTHER_QUEUES = [
    pytest.param(OTHER_QUEUE.arn, id="another tenant's"),
    pytest.param(f"{QUEUE.arn}-dead-letters", id="the tenant's dead-letter queue"),
    pytest.param(QUEUE.arn.replace("inbound", "outbound"), id="the tenant's outbound queue"),
    pytest.param(QUEUE.arn.replace("acme", "Acme"), id="another case"),
    pytest.param(QUEUE.arn[:-1], id="a shorter name"),
    pytest.param(f"{QUEUE.arn}2", id="a longer name"),
    pytest.param(f"{QUEUE.arn}.fifo", id="a queue of another kind"),
    pytest.param(QUEUE.arn.replace("eu-west-1", "eu-west-2"), id="another region"),
    pytest.param(QUEUE.arn.replace("000000000000", "000000000001"), id="another account"),
    pytest.param(QUEUE.arn.replace(":sqs:", ":sns:"), id="another service"),
    pytest.param("*", id="all"),
]

MAY = {
    Access.SEND: {"sqs:SendMessage"},
    Access.RECEIVE: {"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility"},
}


# A small IAM: what a policy allows, deny first, wildcards and all.


def matches(pattern: str, value: str, *, ignore_case: bool = False) -> bool:
    expression = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
    return re.fullmatch(expression, value, re.IGNORECASE if ignore_case else 0) is not None


def as_list(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def allows(policy: dict[str, Any], action: str, resource: str) -> bool:
    effects = set()
    for statement in policy["Statement"]:
        assert statement.keys() == {"Effect", "Action", "Resource"}, "This IAM knows no other elements"
        acts = any(matches(each, action, ignore_case=True) for each in as_list(statement["Action"]))
        if acts and any(matches(each, resource) for each in as_list(statement["Resource"])):
            effects.add(statement["Effect"])
    return effects == {"Allow"}


@pytest.mark.parametrize(
    ("statement", "allowed"),
    [
        ({"Effect": "Allow", "Action": "sqs:*", "Resource": "*"}, True),
        ({"Effect": "Allow", "Action": ["sqs:send*"], "Resource": [QUEUE.arn]}, True),
        ({"Effect": "Allow", "Action": "sqs:SendMessag?", "Resource": f"{QUEUE.arn[:-3]}*"}, True),
        ({"Effect": "Allow", "Action": "sqs:Send", "Resource": "*"}, False),
        ({"Effect": "Allow", "Action": "*", "Resource": OTHER_QUEUE.arn}, False),
        ({"Effect": "Deny", "Action": "*", "Resource": "*"}, False),
    ],
)
def test_the_small_iam_sees_a_policy_that_is_too_wide(statement: dict[str, object], allowed: bool) -> None:
    assert allows({"Statement": [statement]}, "sqs:SendMessage", QUEUE.arn) is allowed


def test_the_small_iam_denies_what_is_denied_anywhere() -> None:
    allow: dict[str, object] = {"Effect": "Allow", "Action": "*", "Resource": "*"}
    assert not allows({"Statement": [allow, {**allow, "Effect": "Deny"}]}, "sqs:SendMessage", QUEUE.arn)


@pytest.mark.parametrize("access", list(Access))
def test_a_session_may_do_exactly_what_it_is_for(access: Access) -> None:
    policy = session_policy(QUEUE, access)
    allowed = {action for action in SQS_ACTIONS + OTHER_ACTIONS if allows(policy, action, QUEUE.arn)}
    assert allowed == MAY[access]


@pytest.mark.parametrize("access", list(Access))
def test_a_session_may_use_the_key_of_an_encrypted_queue_as_sqs_needs_it(access: Access) -> None:
    former = A_KEY.replace("1234abcd", "12341234")
    policy = session_policy(QUEUE, access, kms_keys=[A_KEY, former])
    assert {action for action in SQS_ACTIONS + OTHER_ACTIONS if allows(policy, action, QUEUE.arn)} == MAY[access]
    for key in (A_KEY, former):
        allowed = {action for action in SQS_ACTIONS + OTHER_ACTIONS + KMS_ACTIONS if allows(policy, action, key)}
        assert allowed == {"kms:Decrypt", *(["kms:GenerateDataKey"] if access is Access.SEND else [])}
    assert not [action for action in KMS_ACTIONS if allows(policy, action, A_KEY.replace("1234abcd", "abcd1234"))]


def test_no_action_is_for_two_kinds_of_access() -> None:
    assert not set(ACTIONS[Access.SEND]) & set(ACTIONS[Access.RECEIVE])
    assert ACTIONS.keys() == set(Access)


@pytest.mark.parametrize("resource", OTHER_QUEUES)
@pytest.mark.parametrize("access", list(Access))
def test_a_session_may_do_nothing_with_any_other_queue(access: Access, resource: str) -> None:
    policy = session_policy(QUEUE, access)
    assert not [action for action in SQS_ACTIONS + OTHER_ACTIONS if allows(policy, action, resource)]


@pytest.mark.parametrize("access", list(Access))
def test_the_longest_queue_name_still_fits_a_session_policy(access: Access) -> None:
    """STS takes 2,048 characters."""
    longest = Queue(f"arn:aws-us-gov:sqs:ap-southeast-4:000000000000:{'q' * 80}", "https://...")
    assert len(json.dumps(session_policy(longest, access))) < 1_024


@pytest.mark.parametrize("access", list(Access))
def test_a_policy_is_of_the_language_in_force(access: Access) -> None:
    assert session_policy(QUEUE, access)["Version"] == "2012-10-17"


# Secrets


CREDENTIALS = Credentials(Access.SEND, "ASIAEXAMPLE", "a secret key", "a session token", NOON)


@pytest.mark.parametrize("shown", [repr(CREDENTIALS), str(CREDENTIALS), f"{CREDENTIALS}", f"{[CREDENTIALS]!r}"])
def test_credentials_are_not_printed_by_accident(shown: str) -> None:
    assert "ASIAEXAMPLE" in shown
    assert "a secret key" not in shown
    assert "a session token" not in shown


def test_credentials_have_all_their_parts() -> None:
    assert asdict(CREDENTIALS) == {
        "access": Access.SEND,
        "access_key_id": "ASIAEXAMPLE",
        "secret_access_key": "a secret key",
        "session_token": "a session token",
        "expires_at": NOON,
    }
