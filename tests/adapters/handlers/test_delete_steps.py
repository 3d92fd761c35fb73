"""The steps of a delete: not before the messages are gone, and served again if nothing was deleted."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from orchestrator.common.times import timestamp
from orchestrator.tenants.records import Operation, Request
from tests.adapters.conftest import REGION, client
from tests.adapters.handlers.functions import (
    DELETE,
    STACK_ROLE,
    Functions,
    queue_of,
    served,
    step,
)
from tests.fakes import ACME, FakeStacks, a_run


def test_a_tenant_with_an_empty_queue_is_deleted(functions: Functions, stack: str) -> None:
    step(functions, "begin", DELETE)
    looked = step(functions, "start_stack", DELETE, emptySince=None, taskToken="first")
    now = timestamp(functions.clock.now())
    assert looked == {"outcome": "draining", "messages": "none were counted", "emptySince": now, "seconds": 60}
    assert functions.sent_to("cloudformation.DeleteStack") == []
    functions.clock.advance(timedelta(seconds=60))
    assert step(functions, "start_stack", DELETE, emptySince=now, taskToken="second") == {"outcome": "waiting"}
    (sent,) = functions.sent_to("cloudformation.DeleteStack")
    assert (sent["StackName"], sent["RoleARN"]) == (stack, STACK_ROLE)
    functions.call("stack_event", {"detail": {"stack-id": stack}})
    first, second = functions.sent_to("stepfunctions.SendTaskSuccess")
    assert (first["taskToken"], json.loads(first["output"])) == ("first", looked)
    assert (second["taskToken"], json.loads(second["output"])) == ("second", {"outcome": "gone"})
    assert step(functions, "finish", DELETE, stack={"outcome": "gone"}) == {"outcome": "removed"}
    assert functions.table.metadata(ACME) is None
    assert functions.get_queue({"tenantId": "acme"})[0] == 410


@pytest.mark.usefixtures("stack")
def test_messages_stop_a_delete_and_the_queue_is_restored(functions: Functions) -> None:
    client("sqs").send_message(QueueUrl=queue_of(functions).url, MessageBody="x")
    step(functions, "begin", DELETE)
    assert not served(functions)
    failed = step(functions, "start_stack", DELETE)
    assert (failed["outcome"], failed["failedStack"]) == ("failed", None)
    assert "inbound queue: 1 visible, 0 in flight, 0 delayed" in failed["reason"]
    response = step(functions, "record_failure", DELETE, failure=failed)
    assert "1 visible" in response["Cause"]
    assert served(functions)
    assert functions.sent_to("cloudformation.DeleteStack") == []


@pytest.mark.usefixtures("stack")
def test_messages_in_the_dead_letter_queue_stop_a_delete(functions: Functions) -> None:
    dead = client("sqs").create_queue(QueueName="dead")["QueueUrl"]
    client("sqs").send_message(QueueUrl=dead, MessageBody="x")
    policy = json.dumps({"deadLetterTargetArn": f"arn:aws:sqs:{REGION}:123456789012:dead", "maxReceiveCount": 1})
    client("sqs").set_queue_attributes(QueueUrl=queue_of(functions).url, Attributes={"RedrivePolicy": policy})
    step(functions, "begin", DELETE)
    assert "dead-letter queue: 1 visible" in step(functions, "start_stack", DELETE)["reason"]


@pytest.mark.usefixtures("stack")
def test_a_draining_queue_is_waited_for_as_long_as_requested(functions: Functions) -> None:
    url = queue_of(functions).url
    client("sqs").send_message(QueueUrl=url, MessageBody="x")
    patient = a_run(operation=Operation.DELETE, started_at=functions.clock.now(), request=Request(drain_seconds=60))
    step(functions, "begin", patient)
    assert step(functions, "start_stack", patient) == {
        "outcome": "draining",
        "messages": "inbound queue: 1 visible, 0 in flight, 0 delayed",
        "emptySince": None,
        "seconds": 15,
    }
    functions.clock.advance(timedelta(seconds=60))
    assert step(functions, "start_stack", patient)["outcome"] == "failed"
    client("sqs").purge_queue(QueueUrl=url)
    assert step(functions, "start_stack", patient, emptySince=None)["outcome"] == "draining"


@pytest.mark.usefixtures("stack")
def test_force_skips_the_check_of_messages(functions: Functions) -> None:
    client("sqs").send_message(QueueUrl=queue_of(functions).url, MessageBody="x")
    forced = a_run(operation=Operation.DELETE, request=Request(force=True))
    step(functions, "begin", forced)
    assert step(functions, "start_stack", forced) == {"outcome": "waiting"}


def test_a_tenant_without_a_stack_is_deleted_at_once(functions: Functions) -> None:
    functions.serve()
    step(functions, "begin", DELETE)
    assert step(functions, "start_stack", DELETE) == {"outcome": "gone"}


def test_a_delete_that_failed_half_way_has_its_root_cause_and_keeps_the_queue_withdrawn(
    functions: Functions, stacks: FakeStacks
) -> None:
    step(functions, "begin", DELETE)
    (stack,) = stacks.living
    empty_since = timestamp(functions.clock.now() - timedelta(minutes=1))
    stacks.delete_failures.extend(["in use"] * 3)
    for _ in range(3):
        assert step(functions, "start_stack", DELETE, emptySince=empty_since) == {"outcome": "waiting"}
        stacks.settle()
        assert step(functions, "inspect_stack", DELETE)["outcome"] == "again"
    failed = step(functions, "start_stack", DELETE, emptySince=empty_since)
    assert (failed["outcome"], failed["failedStack"]) == ("failed", stack.stack_id)
    response = step(functions, "record_failure", DELETE, failure=failed)
    assert response["Cause"] == "Tenant acme: InboundQueue (AWS::SQS::Queue): in use"
    status, _, body = functions.get_queue({"tenantId": "acme"})
    assert (status, body["rootCause"]["reason"]) == (424, "in use")


@pytest.mark.usefixtures("stack")
def test_throttling_by_sqs_is_an_outcome(functions: Functions) -> None:
    step(functions, "begin", DELETE)
    functions.throttle("GetQueueAttributes")
    response = step(functions, "start_stack", DELETE)
    assert response == {"outcome": "again", "reason": "GetQueueAttributes: Rate exceeded", "throttled": True}
