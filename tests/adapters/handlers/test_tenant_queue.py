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
from tests.adapters.handlers.functions import Functions, Lines, input_of
from tests.fakes import ACME, NOON, OTHER_QUEUE, QUEUE, QUEUE_TABOO, VERSION, FakeResources, a_release, a_run, take
from tests.present import present

pytestmark = pytest.mark.usefixtures("endpoint")

GLOBEX = TenantId.parse("globex")
THEIR_STACK = "arn:aws:cloudformation:eu-west-1:123456789012:stack/their-stack/1"
RESOURCE = "TheirQueue"
BY = f"{THEIR_STACK}/{RESOURCE}"
HERE = Location.parse("aws:eu-west-1:123456789012")
LATER = NOON + timedelta(minutes=1)
WAITING = {"outcome": "waiting", "confirmed": True}


def asked(functions: Functions, request_type: str = "Create", tenant: str = "acme", **changes: Any) -> dict[str, Any]:
    """The event that CloudFormation sends. Its properties are always text."""
    properties = {"ServiceToken": "arn:aws:lambda:…", "TenantId": tenant} | changes.pop("properties", {})
    event = functions.endpoint.event(
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


def update_to(functions: Functions, tenant: str, *, before: str) -> dict[str, Any]:
    return asked(functions, "Update", tenant, PhysicalResourceId=before, OldResourceProperties={"TenantId": before})


def settle_event(event: dict[str, Any], *, since: datetime = NOON, **more: object) -> dict[str, object]:
    return {"execution": {"Id": "x", "StartTime": since.isoformat(), "Input": {"event": event}}, **more}


def settle(
    functions: Functions, event: dict[str, Any], *, since: datetime = NOON, genuine: bool = True, **more: object
) -> dict[str, Any]:
    """Run the next step of the machine. CloudFormation confirms the request only if it is ``genuine``."""
    resources = FakeResources()
    if genuine:
        resources.show(parse_claim(event, HERE))
    functions.ports.stack_resources = resources
    response: dict[str, Any] = functions.call("settle_tenant_queue", settle_event(event, since=since, **more))
    return response


def the_resources(run: Run) -> Run:
    """The same run, requested by the resource."""
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
    def test_an_event_is_passed_to_the_machine_without_a_response(self, functions: Functions) -> None:
        event = asked(functions)
        functions.call("tenant_queue", event)
        (execution,) = functions.all_executions
        assert execution.endswith(f":execution:tenant-queue:tenant-queue-{event['RequestId']}")
        assert input_of(execution) == {"event": event}
        assert functions.endpoint.answers == []
        assert functions.rows == 1

    def test_a_repeated_event_is_the_same_execution(self, functions: Functions) -> None:
        for _ in range(3):
            functions.call("tenant_queue", asked(functions))
        assert len(functions.all_executions) == 1

    def test_another_request_of_the_same_resource_is_another_execution(self, functions: Functions) -> None:
        for request_id in ("request-1", "request-2"):
            functions.call("tenant_queue", asked(functions, RequestId=request_id))
        assert len(functions.all_executions) == 2

    @pytest.mark.parametrize("properties", [{}, {"TenantId": "a/b"}, {"Version": "latest"}], ids=json.dumps)
    @pytest.mark.parametrize("request_type", ["Create", "Update", "Delete"])
    def test_an_invalid_event_is_passed_on_without_a_response(
        self, functions: Functions, request_type: str, properties: dict[str, object]
    ) -> None:
        functions.call("tenant_queue", asked(functions, request_type, properties=properties))
        assert len(functions.all_executions) == 1
        assert functions.endpoint.answers == []

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
        self, functions: Functions, lines: Lines, change: dict[str, object]
    ) -> None:
        functions.call("tenant_queue", {**asked(functions, "Delete"), **change})
        assert functions.all_executions == []
        assert functions.endpoint.answers == []
        assert functions.rows == 1
        (line,) = lines()
        assert (line["level"], line["message"]) == ("WARNING", "Refused")
        assert line["reason"]

    def test_the_machines_step_understands_the_event(self, functions: Functions) -> None:
        functions.serve()
        functions.call("tenant_queue", asked(functions))
        (execution,) = functions.all_executions
        assert settle(functions, input_of(execution)["event"])["outcome"] == "provided"
        assert len(functions.endpoint.answers) == 1


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
    def test_invalid_properties_are_refused(self, functions: Functions, properties: dict[str, object]) -> None:
        settle(functions, asked(functions, properties=properties))
        (answer,) = functions.endpoint.answers
        assert (answer["Status"], answer["PhysicalResourceId"]) == ("FAILED", "refused")
        assert next(iter(properties)) in answer["Reason"]
        assert functions.all_executions == []

    def test_a_refused_update_keeps_the_physical_id(self, functions: Functions) -> None:
        settle(functions, asked(functions, "Update", "a/b", PhysicalResourceId="acme"))
        (answer,) = functions.endpoint.answers
        assert (answer["Status"], answer["PhysicalResourceId"]) == ("FAILED", "acme")

    def test_a_refused_resource_can_be_removed(self, functions: Functions) -> None:
        settle(functions, asked(functions, "Delete", "a/b", PhysicalResourceId="refused"))
        (answer,) = functions.endpoint.answers
        assert (answer["Status"], answer["PhysicalResourceId"]) == ("SUCCESS", "refused")
        assert functions.all_executions == []


class TestCreate:
    def test_a_new_tenant_is_created_and_waited_for(self, functions: Functions) -> None:
        event = asked(functions, properties={"Version": VERSION, "Labels": {"plan": "gold"}})
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
        assert functions.endpoint.answers == []

    def test_a_ready_tenant_is_answered_with_its_queue(self, functions: Functions) -> None:
        functions.serve()
        event = asked(functions)
        response = settle(functions, event)
        assert response == {"outcome": "provided", "queue": {"arn": QUEUE.arn, "url": QUEUE.url}}
        assert functions.endpoint.answers == [
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

    def test_a_failure_is_answered_with_its_root_cause(self, functions: Functions) -> None:
        end(functions, the_resources(a_run(started_at=LATER)))
        response = settle(functions, asked(functions))
        assert response["outcome"] == "failed"
        (answer,) = functions.endpoint.answers
        assert (answer["Status"], answer["PhysicalResourceId"], answer["Data"]) == ("FAILED", "acme", {})
        assert QUEUE_TABOO.reason in answer["Reason"]

    def test_an_earlier_failure_is_retried(self, functions: Functions) -> None:
        end(functions, a_run())
        assert settle(functions, asked(functions), since=LATER) == WAITING
        assert functions.executions() == [a_run(2).attempt.name]

    def test_a_version_that_was_never_published_is_refused(self, functions: Functions) -> None:
        settle(functions, asked(functions, properties={"Version": "9.9.9"}))
        (answer,) = functions.endpoint.answers
        assert answer["Status"] == "FAILED"
        assert "never published" in answer["Reason"]
        assert functions.all_executions == []

    @pytest.mark.parametrize("operation", ["GetItem", "Query", "StartExecution"])
    def test_throttling_is_waited_for(self, functions: Functions, operation: str) -> None:
        functions.throttle(operation)
        assert settle(functions, asked(functions)) == WAITING
        assert functions.endpoint.answers == []

    def test_cloudformation_gets_a_response_before_its_timeout(self, functions: Functions) -> None:
        functions.clock.advance(PATIENCE)
        assert settle(functions, asked(functions)) == WAITING
        functions.clock.advance(timedelta(seconds=1))
        assert settle(functions, asked(functions))["outcome"] == "failed"
        (answer,) = functions.endpoint.answers
        assert (answer["Status"], "55 minutes" in answer["Reason"]) == ("FAILED", True)

    def test_a_response_that_is_not_accepted_is_an_error_so_that_the_step_is_retried(
        self, functions: Functions
    ) -> None:
        functions.serve()
        functions.endpoint.refusals = 3
        with pytest.raises(OSError, match="503"):
            settle(functions, asked(functions))
        assert settle(functions, asked(functions))["outcome"] == "provided"


class TestUpdate:
    def test_the_same_tenant_stays_the_same_resource(self, functions: Functions) -> None:
        functions.serve(the_resources(a_run()))
        event = update_to(functions, "acme", before="acme")
        event["ResourceProperties"]["Labels"] = {"plan": "gold"}
        settle(functions, event)
        (answer,) = functions.endpoint.answers
        assert (answer["Status"], answer["PhysicalResourceId"]) == ("SUCCESS", "acme")
        metadata = present(functions.table.metadata(ACME))
        assert metadata.labels == {"plan": "gold"}

    def test_another_tenant_is_another_resource(self, functions: Functions) -> None:
        functions.serve()
        functions.serve(a_run(tenant=GLOBEX), queue=OTHER_QUEUE)
        settle(functions, update_to(functions, "globex", before="acme"))
        (answer,) = functions.endpoint.answers
        assert (answer["Status"], answer["PhysicalResourceId"]) == ("SUCCESS", "globex")
        assert answer["Data"] == {"QueueUrl": OTHER_QUEUE.url, "QueueArn": OTHER_QUEUE.arn}

    def test_a_failed_change_of_the_tenant_keeps_the_resource(self, functions: Functions) -> None:
        functions.serve()
        end(functions, a_run(tenant=GLOBEX, started_at=LATER))
        settle(functions, update_to(functions, "globex", before="acme"))
        (answer,) = functions.endpoint.answers
        assert (answer["Status"], answer["PhysicalResourceId"]) == ("FAILED", "acme")

    def test_a_refused_update_can_be_rolled_back(self, functions: Functions) -> None:
        functions.serve()
        for tenant, before in [("a/b", "acme"), ("acme", "a/b")]:
            settle(functions, update_to(functions, tenant, before=before) | {"PhysicalResourceId": "acme"})
        answers = [(answer["Status"], answer["PhysicalResourceId"]) for answer in functions.endpoint.answers]
        assert answers == [("FAILED", "acme"), ("SUCCESS", "acme")]

    def test_an_update_does_not_recreate_a_deleted_tenant(self, functions: Functions) -> None:
        functions.serve()
        functions.remove(a_run(operation=Operation.DELETE, started_at=LATER))
        settle(functions, update_to(functions, "acme", before="acme"))
        (answer,) = functions.endpoint.answers
        assert (answer["Status"], "was deleted" in answer["Reason"]) == ("FAILED", True)
        assert functions.all_executions == []


class TestDelete:
    DELETING = {"OnDelete": "delete"}  # noqa: RUF012

    def test_by_default_the_tenant_is_kept(self, functions: Functions) -> None:
        functions.serve(the_resources(a_run()))
        assert settle(functions, asked(functions, "Delete")) == {"outcome": "provided", "queue": None}
        (answer,) = functions.endpoint.answers
        assert (answer["Status"], answer["PhysicalResourceId"], answer["Data"]) == ("SUCCESS", "acme", {})
        assert functions.all_executions == []

    def test_with_on_delete_the_tenant_of_the_resource_is_deleted(self, functions: Functions) -> None:
        functions.serve(the_resources(a_run()))
        event = asked(functions, "Delete", properties=self.DELETING)
        for _ in range(2):
            assert settle(functions, event) == WAITING
        assert functions.executions(Operation.DELETE) == [a_run(operation=Operation.DELETE).attempt.name]
        assert functions.endpoint.answers == []
        functions.remove(a_run(operation=Operation.DELETE, started_at=LATER))
        assert settle(functions, event) == {"outcome": "provided", "queue": None}
        (answer,) = functions.endpoint.answers
        assert (answer["Status"], answer["PhysicalResourceId"]) == ("SUCCESS", "acme")

    def test_with_on_delete_a_tenant_of_somebody_else_is_kept(self, functions: Functions) -> None:
        functions.serve()
        settle(functions, asked(functions, "Delete", properties=self.DELETING))
        assert [answer["Status"] for answer in functions.endpoint.answers] == ["SUCCESS"]
        assert functions.all_executions == []

    def test_a_failed_delete_is_answered_with_its_root_cause(self, functions: Functions) -> None:
        functions.serve(the_resources(a_run()))
        end(functions, a_run(operation=Operation.DELETE, started_at=LATER))
        settle(functions, asked(functions, "Delete", properties=self.DELETING))
        (answer,) = functions.endpoint.answers
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
    def test_an_unconfirmed_request_does_nothing(self, functions: Functions, lines: Lines, what: str) -> None:
        functions.serve(the_resources(a_run()))
        rows, before = functions.rows, functions.table.metadata(ACME)
        request_type, properties = self.FORGERIES[what]
        event = asked(functions, request_type, properties=properties)
        assert settle(functions, event, genuine=False) == {"outcome": "waiting", "confirmed": False}
        functions.clock.advance(CONSISTENT_WITHIN + timedelta(seconds=1))
        response = settle(functions, event, genuine=False, confirmed=False)
        assert response["outcome"] == "refused"
        assert functions.requests == [], "not even a read"
        assert (functions.rows, functions.table.metadata(ACME)) == (rows, before)
        assert functions.all_executions == []
        assert functions.endpoint.answers == []
        *_, line = (line for line in lines() if "level" in line)
        assert (line["level"], line["resource"], line["reason"]) == ("WARNING", BY, response["reason"])

    def test_an_unconfirmed_request_does_not_revive_a_tenant(self, functions: Functions) -> None:
        functions.serve(the_resources(a_run()))
        own = Request(by=BY, resource=StackResource.parse(THEIR_STACK, RESOURCE), own=True)
        functions.remove(a_run(operation=Operation.DELETE, started_at=LATER, request=own))
        functions.clock.advance(CONSISTENT_WITHIN + timedelta(minutes=2))
        response = settle(functions, asked(functions), since=LATER, genuine=False, confirmed=False)
        assert response["outcome"] == "refused"
        assert functions.all_executions == []

    @pytest.mark.parametrize("what", FORGERIES)
    def test_an_event_cannot_confirm_itself(self, functions: Functions, what: str) -> None:
        functions.serve(the_resources(a_run()))
        rows, before = functions.rows, functions.table.metadata(ACME)
        functions.clock.advance(CONSISTENT_WITHIN * 2)
        request_type, properties = self.FORGERIES[what]
        event = asked(functions, request_type, properties=properties)
        response = settle(functions, event, genuine=False, confirmed=True)
        assert response == {"outcome": "waiting", "confirmed": False}
        assert settle(functions, event, genuine=False, confirmed=False)["outcome"] == "refused"
        assert (functions.rows, functions.table.metadata(ACME)) == (rows, before)
        assert functions.all_executions == []
        assert functions.endpoint.answers == []

    def test_a_step_that_no_earlier_one_has_confirmed_asks_cloudformation(self, functions: Functions) -> None:
        functions.serve()
        functions.clock.advance(CONSISTENT_WITHIN * 2)
        assert "does not confirm" in settle(functions, asked(functions), genuine=False)["reason"]
        assert settle(functions, asked(functions))["outcome"] == "provided"

    def test_an_unconfirmed_request_is_refused_without_a_response_and_counted(
        self, functions: Functions, lines: Lines
    ) -> None:
        functions.clock.advance(CONSISTENT_WITHIN * 2)
        assert settle(functions, asked(functions), genuine=False)["outcome"] == "refused"
        assert functions.endpoint.answers == []
        assert [line["RequestNotConfirmed"] for line in lines() if "_aws" in line] == [[1.0]]

    def test_a_repeated_step_sends_no_second_response(self, functions: Functions, lines: Lines) -> None:
        functions.serve()
        event = asked(functions)
        settle(functions, event, confirmed=False)
        functions.clock.advance(CONSISTENT_WITHIN * 2)
        resources = FakeResources()
        resources.put(parse_claim(event, HERE).resource, "CREATE_COMPLETE", "acme", stack="CREATE_COMPLETE", at=LATER)
        functions.ports.stack_resources = resources
        again = functions.call("settle_tenant_queue", settle_event(event, confirmed=False))
        assert again == {"outcome": "provided"}
        assert [answer["Status"] for answer in functions.endpoint.answers] == ["SUCCESS"]
        assert [line for line in lines() if "RequestNotConfirmed" in line] == []

    def test_unconfirmed_requests_are_counted(self, functions: Functions, lines: Lines) -> None:
        functions.clock.advance(CONSISTENT_WITHIN * 2)
        settle(functions, asked(functions), genuine=False)
        assert [line["RequestNotConfirmed"] for line in lines() if "_aws" in line] == [[1.0]]

    def test_a_stack_of_another_account_is_refused_without_a_call(self, functions: Functions) -> None:
        event = asked(functions) | {"StackId": THEIR_STACK.replace("123456789012", "210987654321")}
        with pytest.raises(InvalidRequest, match="this account and region"):
            functions.call("settle_tenant_queue", settle_event(event))
        assert functions.requests == []


class TestFault:
    """CloudFormation gets a response for every error of the machine."""

    def test_the_error_of_the_function_is_the_response(self, functions: Functions) -> None:
        cause = json.dumps({"errorType": "UnknownRelease", "errorMessage": "It was never published."})
        response = settle(functions, asked(functions), failure={"Error": "Lambda.Unknown", "Cause": cause})
        assert response == {"outcome": "failed", "reason": "UnknownRelease: It was never published."}
        (answer,) = functions.endpoint.answers
        assert (answer["Status"], answer["Reason"]) == ("FAILED", response["reason"])
        assert answer["PhysicalResourceId"] == "acme"
        assert functions.requests == []

    def test_an_error_without_a_message_is_a_response_too(self, functions: Functions) -> None:
        event = update_to(functions, "globex", before="acme")
        settle(functions, event, failure={"Error": "States.Timeout"})
        (answer,) = functions.endpoint.answers
        assert (answer["Status"], answer["PhysicalResourceId"]) == ("FAILED", "acme")
        assert answer["Reason"].startswith("States.Timeout")


def test_every_step_is_logged_with_the_tenant_and_the_resource(functions: Functions, lines: Lines) -> None:
    settle(functions, asked(functions))
    functions.serve()
    settle(functions, asked(functions))
    logged = lines()
    assert [line["outcome"] for line in logged] == ["waiting", "provided"]
    assert {(line["tenant_id"], line["resource"], line["request"]) for line in logged} == {("acme", BY, "Create")}
