"""Temporary credentials for one tenant's queue, from the deployed control plane."""

from __future__ import annotations

import json

import boto3
import pytest

from orchestrator.common.tenant_ids import TenantId
from tests.e2e.deployed import Deployed
from tests.e2e.operators import a_tenant, call


def test_credentials_are_returned_with_the_queue_and_can_use_it(berth: Deployed) -> None:
    tenant = a_tenant(berth, "with-credentials")

    answer = call(berth, "POST", f"/tenants/{tenant}/queue/credentials/send")

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


@pytest.mark.parametrize("spec", ["send", "receive", "delete", ""])
def test_the_old_query_parameter_returns_no_credentials(berth: Deployed, spec: str) -> None:
    answer = call(berth, "GET", "/tenants/nobody/queue", query={"credentials": spec})
    assert (answer.status, answer.body["type"]) == (400, "urn:berth:problem:invalid-request")
    assert "/queue/credentials/send" in answer.body["detail"]
    assert berth.rows_of(TenantId("nobody")) == {}


@pytest.mark.parametrize("access", ["send", "receive"])
def test_a_tenant_without_a_queue_gets_no_credentials_and_is_not_provisioned(berth: Deployed, access: str) -> None:
    tenant = TenantId("no-queue-yet")
    answer = call(berth, "POST", f"/tenants/{tenant}/queue/credentials/{access}")
    assert (answer.status, answer.body["type"]) == (409, "urn:berth:problem:not-provisioned")
    assert "accessKeyId" not in json.dumps(dict(answer.body))
    assert berth.rows_of(tenant) == {}
    assert berth.executions(tenant) == []
