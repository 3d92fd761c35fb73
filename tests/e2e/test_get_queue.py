"""getQueue: over HTTP and by direct invocation, with single, concurrent and invalid requests."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from orchestrator.common.tenant_ids import TenantId
from tests.e2e.deployed import Deployed


def test_a_new_tenant_has_to_wait_and_then_gets_a_queue_that_works(berth: Deployed) -> None:
    tenant = TenantId("newcomer")

    first = berth.ask(tenant)
    assert first.status == 202
    assert first.retry_after is not None
    assert first.body["state"] == "PROVISIONING"
    assert str(first.body["execution"]).startswith("arn:aws:states:")

    ready = berth.settled(tenant)
    assert ready.status == 200
    assert ready.body.keys() == {"tenantId", "queueUrl", "queueArn", "version", "state", "resources"}
    assert ready.body["tenantId"] == "newcomer"
    assert ready.body["version"] == berth.release

    sqs = berth.client("sqs")
    sqs.send_message(QueueUrl=ready.body["queueUrl"], MessageBody="hello")
    received = sqs.receive_message(QueueUrl=ready.body["queueUrl"], WaitTimeSeconds=10)
    assert [message["Body"] for message in received["Messages"]] == ["hello"]


def test_the_operation_is_recorded_from_start_to_success(berth: Deployed) -> None:
    tenant = TenantId("recorded")
    execution = berth.ask(tenant).body["execution"]
    queue = berth.settled(tenant).body
    version = berth.release

    rows = berth.rows_of(tenant)
    audit = rows[f"AUDIT#CREATE#{version}"]
    assert audit["Status"]["S"] == "Success"
    assert audit["Execution"]["S"] == execution
    assert audit["Attempt"]["N"] == "1"
    metadata = rows["METADATA"]
    assert metadata["InboundQueueArn"]["S"] == queue["queueArn"]
    assert metadata["InboundQueueUrl"]["S"] == queue["queueUrl"]
    assert metadata["Version"]["S"] == version
    assert metadata["StackId"]["S"] == berth.stack(tenant)["StackId"]
    assert [entry.status for entry in berth.table.history(tenant)] == ["Started", "Success"]
    assert "LOCK" not in rows


def test_a_hundred_simultaneous_first_calls_start_one_execution_and_write_one_audit_row(berth: Deployed) -> None:
    tenant = TenantId("stampede")
    apis = [berth.api() for _ in range(100)]
    with ThreadPoolExecutor(100) as callers:
        answers = list(callers.map(lambda api: berth.ask(tenant, api), apis))

    assert {answer.status for answer in answers} <= {202, 200}
    waiting = {answer.body["execution"] for answer in answers if answer.status == 202}
    assert len(waiting) == 1
    assert berth.settled(tenant).status == 200
    assert len(berth.executions(tenant)) == 1
    assert [sk for sk in berth.rows_of(tenant) if sk.startswith("AUDIT#")] == [f"AUDIT#CREATE#{berth.release}"]


def test_ids_that_differ_only_by_case_are_two_tenants_with_two_queues(berth: Deployed) -> None:
    queues = {berth.settled(TenantId(spelling)).body["queueArn"] for spelling in ("CamelCase", "camelcase")}
    assert len(queues) == 2


def test_a_direct_invocation_returns_the_same_response(berth: Deployed) -> None:
    tenant = TenantId("direct")
    over_http = berth.settled(tenant)
    directly = berth.invoke(berth.outputs["GetQueueFunctionName"], {"tenantId": "direct"})
    assert directly["statusCode"] == over_http.status
    assert json.loads(directly["body"]) == over_http.body


@pytest.mark.parametrize(
    "event",
    [
        None,
        [],
        "acme",
        {},
        {"tenantId": None},
        {"tenantId": 7},
        {"tenantId": {"S": "acme"}},
        {"tenantId": ""},
        {"tenantId": "a#METADATA"},
        {"tenantId": "a/b"},
        {"tenantId": ".."},
        {"tenantId": "ténant"},
        {"tenantId": "acme\n"},
        {"tenantId": "a" * 10_000},
        {"pathParameters": {"tenantId": "a b"}},
        {"pathParameters": None},
    ],
    ids=lambda event: json.dumps(event)[:40],
)
def test_bad_input_is_refused_and_changes_nothing(berth: Deployed, event: Any) -> None:
    rows, executions = berth.rows_of_tenants(), _all_executions(berth)

    answer = berth.invoke(berth.outputs["GetQueueFunctionName"], event)

    assert answer["statusCode"] == 400
    assert answer["headers"]["Content-Type"] == "application/problem+json"
    assert json.loads(answer["body"])["type"] == "urn:berth:problem:invalid-request"
    assert berth.rows_of_tenants() == rows
    assert _all_executions(berth) == executions


def _all_executions(berth: Deployed) -> int:
    return len(berth.client("stepfunctions").list_executions(stateMachineArn=berth.machine)["executions"])
