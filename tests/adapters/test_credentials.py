"""Temporary credentials: what is asked of STS. What such a session may then do is in test_session_policy.py."""

from __future__ import annotations

import json
import re

import pytest
from botocore.exceptions import ClientError
from botocore.stub import ANY, Stubber

from orchestrator.adapters.sts import StsCredentials
from orchestrator.common.callers import source_identity
from orchestrator.common.errors import Throttled
from orchestrator.common.tenant_ids import TENANT_ID_MAX_LENGTH, TenantId
from orchestrator.tenants.credentials import Access, Credentials
from tests.adapters.conftest import client
from tests.fakes import ACME, NOON, QUEUE

ROLE = "arn:aws:iam::000000000000:role/queue-access"
SECONDS = 900
ADA = source_identity("arn:aws:sts::000000000000:assumed-role/platform/ada")
GIVEN = {
    "Credentials": {
        "AccessKeyId": "ASIA0000000000000000",
        "SecretAccessKey": "the-secret",
        "SessionToken": "the-token",
        "Expiration": NOON,
    }
}
ALLOWED = {
    Access.SEND: ["sqs:SendMessage"],
    Access.RECEIVE: ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility"],
}


@pytest.fixture
def credentials() -> StsCredentials:
    return StsCredentials(lambda: client("sts"), ROLE, SECONDS)


@pytest.mark.parametrize("access", Access)
def test_a_session_is_limited_to_one_queue_one_access_and_one_tenant(
    credentials: StsCredentials, sts: Stubber, access: Access
) -> None:
    policy = {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": ALLOWED[access], "Resource": QUEUE.arn}],
    }
    sent = {
        "RoleArn": ROLE,
        "RoleSessionName": f"berth-{access}-acme",
        "SourceIdentity": ADA,
        "Policy": json.dumps(policy),
        "Tags": [{"Key": "berth:tenant-id", "Value": "acme"}],
        "DurationSeconds": SECONDS,
    }
    sts.add_response("assume_role", GIVEN, sent)
    issued = credentials.issue(ACME, QUEUE, access, source_identity=ADA)
    assert issued == Credentials(access, "ASIA0000000000000000", "the-secret", "the-token", NOON)


@pytest.mark.parametrize("access", Access)
def test_sts_accepts_the_session_name_of_the_longest_tenant_id(
    credentials: StsCredentials, sts: Stubber, access: Access
) -> None:
    # The stub checks names against the model of STS: 64 characters at most, of a narrow alphabet.
    tenant = TenantId.parse("x" * TENANT_ID_MAX_LENGTH)
    name = f"berth-{access}-{tenant}"
    sts.add_response(
        "assume_role",
        GIVEN,
        {
            **dict.fromkeys(("RoleArn", "SourceIdentity", "Policy", "Tags", "DurationSeconds"), ANY),
            "RoleSessionName": name,
        },
    )
    credentials.issue(tenant, QUEUE, access, source_identity=ADA)
    assert len(name) <= 64


@pytest.mark.parametrize("name", ["ada", "x" * 2_000, "Zoë Müller", "a/b:c d", "\ud800", "日本"], ids=ascii)
def test_sts_accepts_the_source_identity_of_any_caller(credentials: StsCredentials, sts: Stubber, name: str) -> None:
    # The stub checks lengths, not characters: those are from STS' reference.
    sts.add_response("assume_role", GIVEN)
    identity = source_identity(f"arn:aws:sts::000000000000:assumed-role/platform/{name}")
    credentials.issue(ACME, QUEUE, Access.SEND, source_identity=identity)
    assert re.fullmatch(r"[A-Za-z0-9_=,.@-]{2,64}", identity)


def test_the_repr_of_credentials_has_no_secrets(credentials: StsCredentials, sts: Stubber) -> None:
    sts.add_response("assume_role", GIVEN)
    shown = repr(credentials.issue(ACME, QUEUE, Access.SEND, source_identity=ADA))
    assert "ASIA0000000000000000" in shown
    assert "the-secret" not in shown
    assert "the-token" not in shown


@pytest.mark.parametrize(
    ("code", "error"), [("Throttling", Throttled), ("ThrottlingException", Throttled), ("AccessDenied", ClientError)]
)
def test_refusals_and_throttling_are_different_errors(
    credentials: StsCredentials, sts: Stubber, code: str, error: type[Exception]
) -> None:
    sts.add_client_error("assume_role", code, "because of this")
    with pytest.raises(error, match="because of this"):
        credentials.issue(ACME, QUEUE, Access.SEND, source_identity=ADA)


def test_the_client_is_created_once_when_it_is_first_used(sts: Stubber) -> None:
    made: list[object] = []

    def make() -> object:
        made.append(client("sts"))
        return made[-1]

    credentials = StsCredentials(make, ROLE, SECONDS)  # type: ignore[arg-type]
    assert not made
    for _ in range(2):
        sts.add_response("assume_role", GIVEN)
        credentials.issue(ACME, QUEUE, Access.SEND, source_identity=ADA)
    assert len(made) == 1
