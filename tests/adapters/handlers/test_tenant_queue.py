"""Custom::TenantQueue: handed to a machine at once, and answered by its step when there is an answer."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import pytest

from orchestrator.common.errors import InvalidRequest
from orchestrator.common.stack_arns import Location
from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.records import Operation, Request, Run
from orchestrator.tenants.resource_requests import parse_claim
from orchestrator.tenants.stack_resources import StackResource
from orchestrator.tenants.tenant_queue import CONSISTENT_WITHIN, PATIENCE
from tests.adapters.conftest import Endpoint
from tests.adapters.handlers.functions import Functions, Lines, input_of
from tests.fakes import ACME, NOON, OTHER_QUEUE, QUEUE, QUEUE_TABOO, VERSION, FakeResources, a_release, a_run, take
from tests.present import present

GLOBEX = TenantId.parse("globex")
THEIR_STACK = "arn:aws:cloudformation:eu-west-1:123456789012:stack/their-stack/1"
RESOURCE = "TheirQueue"
BY = f"{THEIR_STACK}/{RESOURCE}"
HERE = Location.parse("aws:eu-west-1:123456789012")
LATER = NOON + timedelta(minutes=1)
WAITING = {"outcome": "waiting", "confirmed": True}


def asked(endpoint: Endpoint, request_type: str = "Create", tenant: str = "acme", **changes: Any) -> dict[str, Any]:
    """What CloudFormation sends. Its properties are always text."""
    properties = {"ServiceToken": "arn:aws:lambda:…", "TenantId": tenant} | changes.pop("properties", {})
    event = endpoint.event(
        RequestType=request_type,
        StackId=THEIR_STACK,
        LogicalResourceId=RESOURCE,
        ResourceType="Custom::TenantQueue",
        ResourceProperties=properties,
        **changes,
    )
    if request_type != "Create":
        event.setdefault("PhysicalResourceId", tenant)
    return event


def update_to(endpoint: Endpoint, tenant: str, *, before: str) -> dict[str, Any]:
    return asked(endpoint, "Update", tenant, PhysicalResourceId=before, OldResourceProperties={"TenantId": before})


def settle_event(event: dict[str, Any], *, since: datetime = NOON, **more: object) -> dict[str, object]:
    return {"execution": {"Id": "x", "StartTime": since.isoformat(), "Input": {"event": event}}, **more}


def settle(
    functions: Functions, event: dict[str, Any], *, since: datetime = NOON, genuine: bool = True, **more: object
) -> dict[str, Any]:
    """Let the machine take its next step. Unless it is ``genuine``, CloudFormation knows nothing of the request."""
    resources = FakeResources()
    if genuine:
        resources.show(parse_claim(event, HERE))
    functions.ports.stack_resources = resources
    told: dict[str, Any] = functions.call("settle_tenant_queue", settle_event(event, since=since, **more))
    return told


def the_resources(run: Run) -> Run:
    """That run, asked for by the resource."""
    return Run(
        run.attempt,
        run.execution,
        run.started_at,
        Request(by=BY, resource=StackResource.parse(THEIR_STACK, RESOURCE), explicit=True),
    )


def end(functions: Functions, run: Run) -> None:
    """Let the operation fail."""
    assert take(functions.table, run) is None
    functions.table.fail(run, QUEUE_TABOO, run.started_at)


@pytest.fixture(autouse=True)
def released(functions: Functions) -> None:
    functions.table.record_release(a_release())


class TestHandOver:
    def test_an_event_is_passed_to_the_machine_without_a_response(
        self, functions: Functions, endpoint: Endpoint
    ) -> None:
        event = asked(endpoint)
        functions.call("tenant_queue", event)
        (execution,) = functions.all_executions
        assert execution.endswith(f":execution:tenant-queue:tenant-queue-{event['RequestId']}")
        assert input_of(execution) == {"event": event}
        assert endpoint.answers == []
        assert functions.rows == 1

    def test_a_repeated_event_is_the_same_execution(self, functions: Functions, endpoint: Endpoint) -> None:
        for _ in range(3):
            functions.call("tenant_queue", asked(endpoint))
        assert len(functions.all_executions) == 1

    def test_another_request_of_the_same_resource_is_another_execution(
        self, functions: Functions, endpoint: Endpoint
    ) -> None:
        for request_id in ("request-1", "request-2"):
            functions.call("tenant_queue", asked(endpoint, RequestId=request_id))
        assert len(functions.all_executions) == 2

    @pytest.mark.parametrize("properties", [{}, {"TenantId": "a/b"}, {"Version": "latest"}], ids=json.dumps)
    @pytest.mark.parametrize("request_type", ["Create", "Update", "Delete"])
    def test_an_invalid_event_is_passed_on_without_a_response(
        self, functions: Functions, endpoint: Endpoint, request_type: str, properties: dict[str, object]
    ) -> None:
        functions.call("tenant_queue", asked(endpoint, request_type, properties=properties))
        assert len(functions.all_executions) == 1
        assert endpoint.answers == []

    @pytest.mark.parametrize(
        "change",
        [
            {"StackId": THEIR_STACK.replace("eu-west-1", "us-east-1")},
            {"StackId": THEIR_STACK.replace("123456789012", "210987654321")},
            {"StackId": THEIR_STACK.replace("arn:aws:", "arn:aws-cn:")},
            {"StackId": "their-stack"},
            {"StackId": f"{THEIR_STACK}/x"},
            {"LogicalResourceId": "1/TheirQueue"},
            {"LogicalResourceId": None},
            {"RequestType": "Read"},
            {"ResourceProperties": "TenantId=acme"},
        ],
        ids=json.dumps,
    )
    def test_an_event_of_another_account_or_region_does_nothing(
        self, functions: Functions, endpoint: Endpoint, lines: Lines, change: dict[str, object]
    ) -> None:
        functions.call("tenant_queue", {**asked(endpoint, "Delete"), **change})
        assert functions.all_executions == []
        assert endpoint.answers == []
        assert functions.rows == 1
        (line,) = lines()
        assert (line["level"], line["message"]) == ("WARNING", "Refused")
        assert line["reason"]

    def test_the_machines_step_understands_the_event(self, functions: Functions, endpoint: Endpoint) -> None:
        functions.serve()
        functions.call("tenant_queue", asked(endpoint))
        (execution,) = functions.all_executions
        assert settle(functions, input_of(execution)["event"])["outcome"] == "provided"
        assert len(endpoint.answers) == 1


class TestWhatDoesNotFit:
    @pytest.mark.parametrize(
        "properties",
        [
            {"TenantId": "a/b"},
            {"TenantId": ["acme"]},
            {"Version": "latest"},
            {"Labels": {"a": ["b"]}},
            {"Labels": "plan=gold"},
            {"OnDelete": "Delete"},
        ],
        ids=json.dumps,
    )
    def test_invalid_properties_are_refused(
        self, functions: Functions, endpoint: Endpoint, properties: dict[str, object]
    ) -> None:
        settle(functions, asked(endpoint, properties=properties))
        (answer,) = endpoint.answers
        assert (answer["Status"], answer["PhysicalResourceId"]) == ("FAILED", "refused")
        assert next(iter(properties)) in answer["Reason"]
        assert functions.all_executions == []

    def test_a_refused_update_keeps_the_physical_id(self, functions: Functions, endpoint: Endpoint) -> None:
        settle(functions, asked(endpoint, "Update", "a/b", PhysicalResourceId="acme"))
        (answer,) = endpoint.answers
        assert (answer["Status"], answer["PhysicalResourceId"]) == ("FAILED", "acme")

    def test_a_refused_resource_can_be_removed(self, functions: Functions, endpoint: Endpoint) -> None:
        settle(functions, asked(endpoint, "Delete", "a/b", PhysicalResourceId="refused"))
        (answer,) = endpoint.answers
        assert (answer["Status"], answer["PhysicalResourceId"]) == ("SUCCESS", "refused")
        assert functions.all_executions == []


class TestCreate:
    def test_a_new_tenant_is_created_and_waited_for(self, functions: Functions, endpoint: Endpoint) -> None:
        event = asked(endpoint, properties={"Version": VERSION, "Labels": {"plan": "gold"}})
        for _ in range(3):
            assert settle(functions, event) == WAITING
        (execution,) = functions.all_executions
        assert input_of(execution)["request"] == {
            "by": BY,
            "resource": {"stackId": THEIR_STACK, "logicalId": RESOURCE},
            "explicit": True,
            "labels": {"plan": "gold"},
            "pin": VERSION,
            "askedAt": "2026-11-16T12:00:00.000Z",
        }
        assert endpoint.answers == []

    def test_a_ready_tenant_is_answered_with_its_queue(self, functions: Functions, endpoint: Endpoint) -> None:
        functions.serve()
        event = asked(endpoint)
        told = settle(functions, event)
        assert told == {"outcome": "provided", "queue": {"arn": QUEUE.arn, "url": QUEUE.url}}
        assert endpoint.answers == [
            {
                "Status": "SUCCESS",
                "Reason": "",
                "PhysicalResourceId": "acme",
                "StackId": THEIR_STACK,
                "RequestId": event["RequestId"],
                "LogicalResourceId": RESOURCE,
                "Data": {"QueueUrl": QUEUE.url, "QueueArn": QUEUE.arn},
            }
        ]

    def test_a_failure_is_answered_with_its_root_cause(self, functions: Functions, endpoint: Endpoint) -> None:
        end(functions, the_resources(a_run(started_at=LATER)))
        told = settle(functions, asked(endpoint))
        assert told["outcome"] == "failed"
        (answer,) = endpoint.answers
        assert (answer["Status"], answer["PhysicalResourceId"], answer["Data"]) == ("FAILED", "acme", {})
        assert QUEUE_TABOO.reason in answer["Reason"]

    def test_an_earlier_failure_is_retried(self, functions: Functions, endpoint: Endpoint) -> None:
        end(functions, a_run())
        assert settle(functions, asked(endpoint), since=LATER) == WAITING
        assert functions.executions() == [a_run(2).attempt.name]

    def test_a_version_that_was_never_published_is_refused(self, functions: Functions, endpoint: Endpoint) -> None:
        settle(functions, asked(endpoint, properties={"Version": "9.9.9"}))
        (answer,) = endpoint.answers
        assert answer["Status"] == "FAILED"
        assert "never published" in answer["Reason"]
        assert functions.all_executions == []

    @pytest.mark.parametrize("operation", ["GetItem", "Query", "StartExecution"])
    def test_throttling_is_waited_for(self, functions: Functions, endpoint: Endpoint, operation: str) -> None:
        functions.throttle(operation)
        assert settle(functions, asked(endpoint)) == WAITING
        assert endpoint.answers == []

    def test_cloudformation_gets_a_response_before_its_timeout(self, functions: Functions, endpoint: Endpoint) -> None:
        functions.clock.advance(PATIENCE)
        assert settle(functions, asked(endpoint)) == WAITING
        functions.clock.advance(timedelta(seconds=1))
        assert settle(functions, asked(endpoint))["outcome"] == "failed"
        (answer,) = endpoint.answers
        assert (answer["Status"], "55 minutes" in answer["Reason"]) == ("FAILED", True)

    def test_a_response_that_is_not_accepted_is_an_error_so_that_the_step_is_retried(
        self, functions: Functions, endpoint: Endpoint
    ) -> None:
        functions.serve()
        endpoint.refusals = 3
        with pytest.raises(OSError, match="503"):
            settle(functions, asked(endpoint))
        assert settle(functions, asked(endpoint))["outcome"] == "provided"


class TestUpdate:
    def test_the_same_tenant_stays_the_same_resource(self, functions: Functions, endpoint: Endpoint) -> None:
        functions.serve(the_resources(a_run()))
        event = update_to(endpoint, "acme", before="acme")
        event["ResourceProperties"]["Labels"] = {"plan": "gold"}
        settle(functions, event)
        (answer,) = endpoint.answers
        assert (answer["Status"], answer["PhysicalResourceId"]) == ("SUCCESS", "acme")
        metadata = present(functions.table.metadata(ACME))
        assert metadata.labels == {"plan": "gold"}

    def test_another_tenant_is_another_resource(self, functions: Functions, endpoint: Endpoint) -> None:
        functions.serve()
        functions.serve(a_run(tenant=GLOBEX), queue=OTHER_QUEUE)
        settle(functions, update_to(endpoint, "globex", before="acme"))
        (answer,) = endpoint.answers
        assert (answer["Status"], answer["PhysicalResourceId"]) == ("SUCCESS", "globex")
        assert answer["Data"] == {"QueueUrl": OTHER_QUEUE.url, "QueueArn": OTHER_QUEUE.arn}

    def test_a_failed_change_of_the_tenant_keeps_the_resource(self, functions: Functions, endpoint: Endpoint) -> None:
        functions.serve()
        end(functions, a_run(tenant=GLOBEX, started_at=LATER))
        settle(functions, update_to(endpoint, "globex", before="acme"))
        (answer,) = endpoint.answers
        assert (answer["Status"], answer["PhysicalResourceId"]) == ("FAILED", "acme")

    def test_a_refused_update_can_be_rolled_back(self, functions: Functions, endpoint: Endpoint) -> None:
        functions.serve()
        for tenant, before in [("a/b", "acme"), ("acme", "a/b")]:
            settle(functions, update_to(endpoint, tenant, before=before) | {"PhysicalResourceId": "acme"})
        answers = [(answer["Status"], answer["PhysicalResourceId"]) for answer in endpoint.answers]
        assert answers == [("FAILED", "acme"), ("SUCCESS", "acme")]

    def test_an_update_does_not_recreate_a_deleted_tenant(self, functions: Functions, endpoint: Endpoint) -> None:
        functions.serve()
        functions.remove(a_run(operation=Operation.DELETE, started_at=LATER))
        settle(functions, update_to(endpoint, "acme", before="acme"))
        (answer,) = endpoint.answers
        assert (answer["Status"], "was deleted" in answer["Reason"]) == ("FAILED", True)
        assert functions.all_executions == []


class TestDelete:
    DELETING = {"OnDelete": "delete"}  # noqa: RUF012

    def test_by_default_the_tenant_is_kept(self, functions: Functions, endpoint: Endpoint) -> None:
        functions.serve(the_resources(a_run()))
        assert settle(functions, asked(endpoint, "Delete")) == {"outcome": "provided", "queue": None}
        (answer,) = endpoint.answers
        assert (answer["Status"], answer["PhysicalResourceId"], answer["Data"]) == ("SUCCESS", "acme", {})
        assert functions.all_executions == []

    def test_with_on_delete_the_tenant_of_the_resource_is_deleted(
        self, functions: Functions, endpoint: Endpoint
    ) -> None:
        functions.serve(the_resources(a_run()))
        event = asked(endpoint, "Delete", properties=self.DELETING)
        for _ in range(2):
            assert settle(functions, event) == WAITING
        assert functions.executions(Operation.DELETE) == [a_run(operation=Operation.DELETE).attempt.name]
        assert endpoint.answers == []
        functions.remove(a_run(operation=Operation.DELETE, started_at=LATER))
        assert settle(functions, event) == {"outcome": "provided", "queue": None}
        (answer,) = endpoint.answers
        assert (answer["Status"], answer["PhysicalResourceId"]) == ("SUCCESS", "acme")

    def test_with_on_delete_a_tenant_of_somebody_else_is_kept(self, functions: Functions, endpoint: Endpoint) -> None:
        functions.serve()
        settle(functions, asked(endpoint, "Delete", properties=self.DELETING))
        assert [answer["Status"] for answer in endpoint.answers] == ["SUCCESS"]
        assert functions.all_executions == []

    def test_a_failed_delete_is_answered_with_its_root_cause(self, functions: Functions, endpoint: Endpoint) -> None:
        functions.serve(the_resources(a_run()))
        end(functions, a_run(operation=Operation.DELETE, started_at=LATER))
        settle(functions, asked(endpoint, "Delete", properties=self.DELETING))
        (answer,) = endpoint.answers
        assert (answer["Status"], answer["PhysicalResourceId"]) == ("FAILED", "acme")
        assert QUEUE_TABOO.reason in answer["Reason"]


class TestForged:
    """Somebody invokes the function directly, in the name of the resource that owns the tenant."""

    FORGERIES: dict[str, tuple[str, dict[str, object]]] = {  # noqa: RUF012
        "delete": ("Delete", {"OnDelete": "delete"}),
        "relabel": ("Update", {"Labels": {"team": "another"}}),
        "pin": ("Update", {"Version": VERSION}),
        "get the queue": ("Create", {}),
        "what does not fit": ("Create", {"TenantId": "a/b"}),
    }

    @pytest.mark.parametrize("what", FORGERIES)
    def test_an_unconfirmed_request_does_nothing(
        self, functions: Functions, endpoint: Endpoint, lines: Lines, what: str
    ) -> None:
        functions.serve(the_resources(a_run()))
        rows, before = functions.rows, functions.table.metadata(ACME)
        request_type, properties = self.FORGERIES[what]
        event = asked(endpoint, request_type, properties=properties)
        assert settle(functions, event, genuine=False) == {"outcome": "waiting", "confirmed": False}
        functions.clock.advance(CONSISTENT_WITHIN + timedelta(seconds=1))
        told = settle(functions, event, genuine=False, confirmed=False)
        assert told["outcome"] == "refused"
        assert functions.requests == [], "not even a read"
        assert (functions.rows, functions.table.metadata(ACME)) == (rows, before)
        assert functions.all_executions == []
        assert endpoint.answers == []
        *_, line = (line for line in lines() if "level" in line)
        assert (line["level"], line["resource"], line["reason"]) == ("WARNING", BY, told["reason"])

    def test_an_unconfirmed_request_does_not_revive_a_tenant(self, functions: Functions, endpoint: Endpoint) -> None:
        functions.serve(the_resources(a_run()))
        own = Request(by=BY, resource=StackResource.parse(THEIR_STACK, RESOURCE), own=True)
        functions.remove(a_run(operation=Operation.DELETE, started_at=LATER, request=own))
        functions.clock.advance(CONSISTENT_WITHIN + timedelta(minutes=2))
        told = settle(functions, asked(endpoint), since=LATER, genuine=False, confirmed=False)
        assert told["outcome"] == "refused"
        assert functions.all_executions == []

    @pytest.mark.parametrize("what", FORGERIES)
    def test_an_event_cannot_confirm_itself(self, functions: Functions, endpoint: Endpoint, what: str) -> None:
        functions.serve(the_resources(a_run()))
        rows, before = functions.rows, functions.table.metadata(ACME)
        functions.clock.advance(CONSISTENT_WITHIN * 2)
        request_type, properties = self.FORGERIES[what]
        event = asked(endpoint, request_type, properties=properties)
        told = settle(functions, event, genuine=False, confirmed=True)
        assert told == {"outcome": "waiting", "confirmed": False}
        assert settle(functions, event, genuine=False, confirmed=False)["outcome"] == "refused"
        assert (functions.rows, functions.table.metadata(ACME)) == (rows, before)
        assert functions.all_executions == []
        assert endpoint.answers == []

    def test_for_a_machine_of_0_5_0_every_step_asks_cloudformation(
        self, functions: Functions, endpoint: Endpoint
    ) -> None:
        functions.serve()
        functions.clock.advance(CONSISTENT_WITHIN * 2)
        assert "does not confirm" in settle(functions, asked(endpoint), genuine=False)["reason"]
        assert settle(functions, asked(endpoint))["outcome"] == "provided"

    def test_a_machine_of_0_5_0_gets_the_outcome_failed(
        self, functions: Functions, endpoint: Endpoint, lines: Lines
    ) -> None:
        """It takes any outcome that it does not know for a reason to wait, and would wait for an hour."""
        functions.clock.advance(CONSISTENT_WITHIN * 2)
        assert settle(functions, asked(endpoint), genuine=False)["outcome"] == "failed"
        assert endpoint.answers == []
        assert [line["RequestNotConfirmed"] for line in lines() if "_aws" in line] == [[1.0]]

    def test_a_repeated_step_sends_no_second_response(
        self, functions: Functions, endpoint: Endpoint, lines: Lines
    ) -> None:
        functions.serve()
        event = asked(endpoint)
        settle(functions, event, confirmed=False)
        functions.clock.advance(CONSISTENT_WITHIN * 2)
        resources = FakeResources()
        resources.put(parse_claim(event, HERE).resource, "CREATE_COMPLETE", "acme", stack="CREATE_COMPLETE", at=LATER)
        functions.ports.stack_resources = resources
        again = functions.call("settle_tenant_queue", settle_event(event, confirmed=False))
        assert again == {"outcome": "provided"}
        assert [answer["Status"] for answer in endpoint.answers] == ["SUCCESS"]
        assert [line for line in lines() if "RequestNotConfirmed" in line] == []

    def test_unconfirmed_requests_are_counted(self, functions: Functions, endpoint: Endpoint, lines: Lines) -> None:
        functions.clock.advance(CONSISTENT_WITHIN * 2)
        settle(functions, asked(endpoint), genuine=False)
        assert [line["RequestNotConfirmed"] for line in lines() if "_aws" in line] == [[1.0]]

    def test_a_stack_of_another_account_is_refused_without_a_call(
        self, functions: Functions, endpoint: Endpoint
    ) -> None:
        event = asked(endpoint) | {"StackId": THEIR_STACK.replace("123456789012", "210987654321")}
        with pytest.raises(InvalidRequest, match="this account and region"):
            functions.call("settle_tenant_queue", settle_event(event))
        assert functions.requests == []


class TestFault:
    """Whatever went wrong in the machine, CloudFormation hears of it."""

    def test_the_error_of_the_function_is_the_response(self, functions: Functions, endpoint: Endpoint) -> None:
        cause = json.dumps({"errorType": "UnknownRelease", "errorMessage": "It was never published."})
        told = settle(functions, asked(endpoint), failure={"Error": "Lambda.Unknown", "Cause": cause})
        assert told == {"outcome": "failed", "reason": "UnknownRelease: It was never published."}
        (answer,) = endpoint.answers
        assert (answer["Status"], answer["Reason"]) == ("FAILED", told["reason"])
        assert answer["PhysicalResourceId"] == "acme"
        assert functions.requests == []

    def test_an_error_without_a_message_is_a_response_too(self, functions: Functions, endpoint: Endpoint) -> None:
        event = update_to(endpoint, "globex", before="acme")
        settle(functions, event, failure={"Error": "States.Timeout"})
        (answer,) = endpoint.answers
        assert (answer["Status"], answer["PhysicalResourceId"]) == ("FAILED", "acme")
        assert answer["Reason"].startswith("States.Timeout")


def test_every_step_is_logged_with_the_tenant_and_the_resource(
    functions: Functions, endpoint: Endpoint, lines: Lines
) -> None:
    settle(functions, asked(endpoint))
    functions.serve()
    settle(functions, asked(endpoint))
    logged = lines()
    assert [line["outcome"] for line in logged] == ["waiting", "provided"]
    assert {(line["tenant_id"], line["resource"], line["request"]) for line in logged} == {("acme", BY, "Create")}
