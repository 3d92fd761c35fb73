"""Temporary credentials for one tenant's queue, as the deployed control plane gives them."""

from __future__ import annotations

import json

import boto3
import pytest

from orchestrator.tenants import TenantId
from tests.e2e.deployed import Deployed
from tests.e2e.operators import a_tenant, call


def test_credentials_come_with_the_queue_and_the_queue_can_be_used_with_them(berth: Deployed) -> None:
    tenant = a_tenant(berth, "with-credentials")

    answer = call(berth, "GET", f"/tenants/{tenant}/queue", query={"credentials": "send"})

    assert answer.status == 200
    given = answer.body["credentials"]
    assert given.keys() == {"access", "accessKeyId", "secretAccessKey", "sessionToken", "expiresAt"}
    assert given["access"] == "send"
    platform = boto3.client(
        "sqs",
        region_name="us-east-1",
        endpoint_url=berth.emulator.endpoint,
        aws_access_key_id=given["accessKeyId"],
        aws_secret_access_key=given["secretAccessKey"],
        aws_session_token=given["sessionToken"],
    )
    assert "MessageId" in platform.send_message(QueueUrl=answer.body["queueUrl"], MessageBody="hello")
    assert "credentials" not in berth.ask(tenant).body


@pytest.mark.parametrize("wish", ["delete", "SEND", "", "send,receive"])
def test_other_wishes_are_refused(berth: Deployed, wish: str) -> None:
    answer = call(berth, "GET", "/tenants/nobody/queue", query={"credentials": wish})
    assert (answer.status, answer.body["type"]) == (400, "urn:berth:problem:invalid-request")
    assert berth.rows_of(TenantId("nobody")) == {}


def test_a_tenant_that_has_no_queue_yet_has_no_credentials_either(berth: Deployed) -> None:
    tenant = TenantId("no-queue-yet")
    answer = call(berth, "GET", f"/tenants/{tenant}/queue", query={"credentials": "receive"})
    assert answer.status == 202
    assert "credentials" not in json.dumps(dict(answer.body))
