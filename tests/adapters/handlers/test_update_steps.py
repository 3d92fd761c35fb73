"""The steps of an update: reviewed before anything is touched, and served all the while."""

from __future__ import annotations

import json

import pytest

from orchestrator.common.errors import LostOwnership, StackNotOurs
from orchestrator.tenants.records import Operation, Request, TenantState
from orchestrator.tenants.stack_ports import Change, Effect
from tests.adapters.conftest import client
from tests.adapters.handlers.functions import (
    DELAYING,
    DELETE,
    SERVICE_TOKEN,
    STACK_ROLE,
    TEMPLATE,
    UPDATE,
    Functions,
    publish_template,
    queue_of,
    served,
    step,
)
from tests.fakes import ACME, NAMES, NEXT_VERSION, QUEUE, QUEUE_TABOO, VERSION, FakeStacks, a_run, take
from tests.present import present

TAKEN_AWAY = Change("InboundQueue", "AWS::SQS::Queue", QUEUE.url, Effect.REPLACE)


def test_a_change_set_is_created_reviewed_and_executed(functions: Functions, stack: str) -> None:
    step(functions, "begin", UPDATE)
    assert step(functions, "start_stack", UPDATE) == {"outcome": "reviewing"}
    functions.answer("GetTemplate", {"TemplateBody": DELAYING})  # Moto has only that of the stack.
    assert step(functions, "start_stack", UPDATE) == {"outcome": "waiting"}
    (drawn_up,) = functions.sent_to("cloudformation.CreateChangeSet")
    assert drawn_up["RoleARN"] == STACK_ROLE
    assert drawn_up["Parameters"][1]["ParameterValue"] == SERVICE_TOKEN
    (made,) = functions.sent_to("cloudformation.ExecuteChangeSet")
    assert f":changeSet/{drawn_up['ChangeSetName']}/" in made["ChangeSetName"]
    described = client("cloudformation").describe_stacks(StackName=stack)["Stacks"][0]
    assert described["StackStatus"] == "UPDATE_COMPLETE"


def test_a_change_set_of_somebody_else_is_not_executed(functions: Functions, stack: str) -> None:
    """By moto's word."""
    evil = {**TEMPLATE, "Resources": {"InboundQueue": {"Type": "AWS::SQS::Queue", "Properties": {"DelaySeconds": 900}}}}
    given = {"TenantId": "acme", "MetadataServiceToken": SERVICE_TOKEN}
    planted = client("cloudformation").create_change_set(
        StackName=NAMES.stack_of(ACME),
        ChangeSetName=UPDATE.attempt.client_token,
        ChangeSetType="UPDATE",
        TemplateBody=json.dumps(evil),
        Parameters=[{"ParameterKey": name, "ParameterValue": value} for name, value in given.items()],
    )["Id"]
    step(functions, "begin", UPDATE)
    step(functions, "start_stack", UPDATE)
    functions.answer("GetTemplate", {"TemplateBody": DELAYING})
    assert step(functions, "start_stack", UPDATE) == {"outcome": "waiting"}
    (made,) = functions.sent_to("cloudformation.ExecuteChangeSet")
    assert made["ChangeSetName"] != planted
    assert client("cloudformation").get_template(StackName=stack)["TemplateBody"] == DELAYING


def test_each_update_names_its_change_set_differently(functions: Functions, stacks: FakeStacks) -> None:  # noqa: ARG001
    names = {functions.ports.new_name() for _ in range(100)}
    assert len(names) == 100
    assert {len(name) for name in names} == {32}


def test_a_change_set_of_another_template_is_not_executed(functions: Functions, stack: str) -> None:
    """Somebody has written over the template in the bucket, or over the id in the lock."""
    step(functions, "begin", UPDATE)
    step(functions, "start_stack", UPDATE)
    functions.answer("GetTemplate", {"TemplateBody": {**DELAYING, "Resources": {}}})
    refused = step(functions, "start_stack", UPDATE)
    assert refused["outcome"] == "failed"
    assert "another template" in refused["reason"]
    assert functions.sent_to("cloudformation.ExecuteChangeSet") == []
    assert client("cloudformation").list_change_sets(StackName=stack)["Summaries"] == []


def test_a_release_that_changes_nothing_is_published_as_it_is(functions: Functions, stack: str) -> None:
    before = queue_of(functions)
    unchanged = a_run(operation=Operation.UPDATE, version="0.1.1", started_at=UPDATE.started_at)
    publish_template(functions, "0.1.1", TEMPLATE)
    step(functions, "begin", unchanged)
    step(functions, "start_stack", unchanged)
    inspected = step(functions, "start_stack", unchanged)
    assert (inspected["outcome"], inspected["version"]) == ("done", "0.1.1")
    assert step(functions, "finish", unchanged, stack=inspected) == {"outcome": "published"}
    metadata = present(functions.table.metadata(ACME))
    assert (metadata.version, metadata.queue) == ("0.1.1", before)
    assert client("cloudformation").list_change_sets(StackName=stack)["Summaries"] == []


def test_the_queue_is_published_during_an_update(functions: Functions, stacks: FakeStacks) -> None:
    step(functions, "begin", UPDATE)
    step(functions, "start_stack", UPDATE)
    assert step(functions, "start_stack", UPDATE) == {"outcome": "waiting"}
    assert step(functions, "inspect_stack", UPDATE) == {"outcome": "working"}
    assert served(functions)
    stacks.settle()
    inspected = step(functions, "inspect_stack", UPDATE)
    assert (inspected["outcome"], inspected["version"]) == ("done", NEXT_VERSION)
    assert step(functions, "finish", UPDATE, stack=inspected) == {"outcome": "published"}
    _, _, body = functions.get_queue({"tenantId": "acme"})
    assert (body["version"], body["queueUrl"]) == (NEXT_VERSION, QUEUE.url)


def test_a_failed_update_has_its_stack_and_keeps_the_old_version(functions: Functions, stacks: FakeStacks) -> None:
    stacks.failures.append(QUEUE_TABOO.reason)
    step(functions, "begin", UPDATE)
    step(functions, "start_stack", UPDATE)
    step(functions, "start_stack", UPDATE)
    stacks.settle()
    (stack,) = stacks.living
    failed = step(functions, "inspect_stack", UPDATE)
    assert (failed["outcome"], failed["failedStack"]) == ("failed", stack.stack_id)
    response = step(functions, "record_failure", UPDATE, failure=failed)
    assert QUEUE_TABOO.reason in response["Cause"]
    _, _, body = functions.get_queue({"tenantId": "acme"})
    assert (body["version"], body["queueUrl"]) == (VERSION, QUEUE.url)
    (listed,) = functions.table.tenants_in(TenantState.UPDATE_FAILED, limit=1)
    assert listed.root_cause == QUEUE_TABOO


def test_an_incomplete_update_is_rolled_back_first(functions: Functions, stacks: FakeStacks) -> None:
    (planted,) = stacks.living
    stacks.change(planted.stack_id, "UPDATE_ROLLBACK_FAILED")
    step(functions, "begin", UPDATE)
    assert step(functions, "start_stack", UPDATE) == {"outcome": "waiting"}
    assert stacks.calls[-1] == "continue_rollback"
    stacks.settle()
    assert step(functions, "inspect_stack", UPDATE)["outcome"] == "again"


def test_an_update_that_would_remove_the_queue_fails(functions: Functions, stacks: FakeStacks) -> None:
    stacks.would_change = (TAKEN_AWAY,)
    step(functions, "begin", UPDATE)
    step(functions, "start_stack", UPDATE)
    failed = step(functions, "start_stack", UPDATE)
    assert (failed["outcome"], failed["failedStack"]) == ("failed", None)
    assert "inbound queue" in failed["reason"]
    assert "execute_change_set" not in stacks.calls
    step(functions, "record_failure", UPDATE, failure=failed)
    assert served(functions)


def test_an_update_may_remove_the_queue_if_the_request_allows_it(functions: Functions, stacks: FakeStacks) -> None:
    stacks.would_change = (TAKEN_AWAY,)
    run = a_run(operation=Operation.UPDATE, version=NEXT_VERSION, request=Request(allow_replacement=True))
    step(functions, "begin", run)
    step(functions, "start_stack", run)
    assert step(functions, "start_stack", run) == {"outcome": "waiting"}
    assert stacks.calls[-1] == "execute_change_set"


def test_a_run_that_lost_its_lock_changes_no_stack(functions: Functions, stacks: FakeStacks) -> None:
    take(functions.table, DELETE)
    with pytest.raises(LostOwnership):
        step(functions, "start_stack", UPDATE)
    assert stacks.calls == []


def test_a_stack_of_another_tenant_is_not_changed(functions: Functions, stacks: FakeStacks) -> None:
    (planted,) = stacks.living
    stacks.change(planted.stack_id, planted.status, tenant_id="another")
    take(functions.table, UPDATE)
    with pytest.raises(StackNotOurs):
        step(functions, "start_stack", UPDATE)
    assert stacks.calls == ["find"]


def test_throttling_is_waited_for(functions: Functions, stacks: FakeStacks) -> None:
    take(functions.table, UPDATE)
    stacks.throttled_calls = 1
    throttled = {"outcome": "again", "reason": "find: Rate exceeded", "throttled": True}
    assert step(functions, "start_stack", UPDATE) == throttled
    assert step(functions, "start_stack", UPDATE) == {"outcome": "reviewing"}
