"""Rollouts: what operators ask for, and the steps of the machine, over the table, the bucket and the machines."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.common.tenant_ids import TenantId
from orchestrator.releases.published import fingerprint, stack_parameters
from orchestrator.rollouts.records import Result, RolloutStatus
from orchestrator.tenants.records import Operation, Request
from tests.adapters.conftest import REGION, client
from tests.adapters.handlers.functions import (
    ADA,
    RELEASES,
    SERVICE_TOKEN,
    UPDATE,
    Functions,
    Lines,
    input_of,
    step,
)
from tests.fakes import ACME, NEXT_VERSION, VERSION, FakeStacks, a_release, a_run, take
from tests.present import present

pytestmark = pytest.mark.usefixtures("endpoint")

START = "POST /rollouts"
LIST = "GET /rollouts"
SHOW = "GET /rollouts/{rolloutId}"
PAUSE, RESUME, ABORT, APPROVE, RETRY = (
    f"POST /rollouts/{{rolloutId}}/{word}" for word in ("pause", "resume", "abort", "approve", "retry")
)

ALL_AT_ONCE = [{"size": "rest"}]
UNKNOWN = "20200101-000000-0000"
CHILD = "arn:aws:states:eu-west-1:123456789012:execution:rollout/Turn:1"
FAULT = {"Error": "Lambda.Unknown", "Cause": "The function died."}


@pytest.fixture(autouse=True)
def fleet(functions: Functions) -> None:
    """Two tenants that are served, and a release that they are not at."""
    client("s3").create_bucket(Bucket=RELEASES, CreateBucketConfiguration={"LocationConstraint": REGION})
    functions.table.record_release(a_release(NEXT_VERSION))
    for tenant in (ACME, TenantId.parse("globex")):
        functions.serve(a_run(tenant=tenant))


def start(functions: Functions, **more: object) -> str:
    """Start a rollout, and return its id."""
    status, _, body = functions.operate(START, body={"version": NEXT_VERSION, "stages": ALL_AT_ONCE, **more})
    assert status == 202, body
    return str(body["rolloutId"])


def advance(functions: Functions, rollout: str, attempt: int = 1, **more: object) -> dict[str, Any]:
    response: dict[str, Any] = functions.call("advance_rollout", rollout_event(functions, rollout, attempt, **more))
    return response


def rollout_event(functions: Functions, rollout: str, attempt: int = 1, **more: object) -> dict[str, object]:
    execution = next(each for each in functions.rollout_executions if each.endswith(f"{rollout}-{attempt}"))
    return {"execution": {"Id": execution, "Input": {"rolloutId": rollout, "attempt": attempt}}, **more}


def turn_event(rollout: str, tenant: TenantId = ACME, **more: object) -> dict[str, object]:
    return {
        "rolloutId": rollout,
        "stage": 1,
        "tenantId": tenant.value,
        "version": NEXT_VERSION,
        "execution": CHILD,
        **more,
    }


class TestStart:
    def test_a_rollout_is_recorded_with_its_tenants_and_started(self, functions: Functions) -> None:
        status, headers, body = functions.operate(START, body={"version": NEXT_VERSION})
        rollout = present(functions.rollouts.rollout(body["rolloutId"]))
        assert (status, headers["Location"]) == (202, f"/rollouts/{rollout.id}")
        assert (body["total"], body["requestedBy"], rollout.by) == (2, ADA, ADA)
        (execution,) = functions.rollout_executions
        assert execution.endswith(f":rollout-{rollout.id}-1")
        assert input_of(execution) == {"rolloutId": rollout.id, "attempt": 1}
        manifests = [stage.manifest for stage in functions.rollouts.stages(rollout.id)]
        stored = [json.load(client("s3").get_object(Bucket=RELEASES, Key=key)["Body"]) for key in manifests]
        listed = {item["tenantId"]: item["version"] for items in stored for item in items}
        assert listed == {"acme": NEXT_VERSION, "globex": NEXT_VERSION}

    def test_the_default_concurrency_is_the_control_planes(self, functions: Functions) -> None:
        _, _, body = functions.operate(START, body={"version": NEXT_VERSION})
        assert {stage["spec"]["maxConcurrency"] for stage in body["stages"]} == {8}
        status, _, _ = functions.operate(START, body={"stages": [{"size": "rest", "maxConcurrency": 9}]})
        assert status == 400

    def test_another_rollout_of_the_same_tenants_is_refused(self, functions: Functions) -> None:
        rollout = start(functions)
        status, _, body = functions.operate(START, body={"version": NEXT_VERSION})
        assert (status, body["type"]) == (409, "urn:berth:problem:rollout-in-the-way")
        assert body["rolloutId"] == rollout


class TestShow:
    def test_a_rollout_is_shown_with_stages_and_failures_by_cause(self, functions: Functions) -> None:
        rollout = start(functions, stages=[{"size": "rest", "tolerated": "100%"}])
        advance(functions, rollout)
        functions.call("admit_tenant", turn_event(rollout))
        functions.call("record_outcome", turn_event(rollout, failure=FAULT))
        status, _, body = functions.operate(SHOW, rollout=rollout)
        assert (status, body["status"], body["failed"]) == (200, "RUNNING", 1)
        (group,) = body["failures"]
        assert (group["tenants"], group["count"]) == (["acme"], 1)
        assert "The function died." in group["rootCause"]["reason"]
        assert "changes" not in body

    def test_only_a_dry_run_is_shown_with_changes(self, functions: Functions) -> None:
        rollout = start(functions, dryRun=True)
        advance(functions, rollout)
        functions.use(FakeStacks())
        assert functions.call("admit_tenant", turn_event(rollout)) == {"outcome": "review"}
        functions.call("review_tenant", turn_event(rollout, failure=FAULT))
        _, _, body = functions.operate(SHOW, rollout=rollout)
        assert body["changes"]["tenants"] == {"FAILED": 1}
        assert functions.rollouts.tenant_outcome(rollout, ACME) is not None

    def test_rollouts_are_listed_newest_first(self, functions: Functions) -> None:
        first = start(functions, dryRun=True)
        functions.clock.advance(UPDATE.started_at - a_run().started_at)
        second = start(functions, dryRun=True)
        _, _, body = functions.operate(LIST)
        assert [each["rolloutId"] for each in body["rollouts"]] == [second, first]
        _, _, page = functions.operate(LIST, query={"limit": "1"})
        _, _, rest = functions.operate(LIST, query={"limit": "1", "cursor": page["cursor"]})
        assert [each["rolloutId"] for each in rest["rollouts"]] == [first]


class TestControl:
    def test_a_rollout_is_paused_resumed_and_aborted(self, functions: Functions) -> None:
        rollout = start(functions)
        advance(functions, rollout)
        responses = [functions.operate(route, rollout=rollout) for route in (PAUSE, RESUME, ABORT)]
        assert [(status, body["status"]) for status, _, body in responses] == [
            (202, "PAUSED"),
            (202, "RUNNING"),
            (202, "ABORTING"),
        ]
        assert advance(functions, rollout)["status"] == "ABORTED"
        assert functions.rollouts.registry().active == frozenset()

    def test_a_stage_is_approved_by_number(self, functions: Functions) -> None:
        rollout = start(functions, stages=[{"size": "rest", "approval": True}])
        assert advance(functions, rollout) == {"outcome": "await"}
        status, _, body = functions.operate(APPROVE, body={"stage": 1}, rollout=rollout)
        assert (status, body["stages"][0]["approvedBy"]) == (202, ADA)
        assert functions.operate(APPROVE, body={"stage": 1}, rollout=rollout)[0] == 200
        assert functions.operate(APPROVE, body={"stage": 2}, rollout=rollout)[0] == 409
        assert functions.operate(APPROVE, rollout=rollout)[0] == 400
        assert advance(functions, rollout)["outcome"] == "run"

    def test_an_order_is_logged_with_the_rollout(self, functions: Functions, lines: Lines) -> None:
        rollout = start(functions)
        lines()
        functions.operate(PAUSE, rollout=rollout)
        (line,) = lines()
        assert (line["route"], line["caller"], line["rollout_id"]) == (PAUSE, ADA, rollout)


class TestSteps:
    def test_the_next_stage_has_the_list_of_its_tenants(self, functions: Functions) -> None:
        rollout = start(functions)
        (stage,) = functions.rollouts.stages(rollout)
        response = advance(functions, rollout)
        assert response == {"outcome": "run", "stage": 1, "manifest": stage.manifest, "maxConcurrency": 8}

    def test_an_error_of_the_rollout_itself_halts_it(self, functions: Functions) -> None:
        rollout = start(functions)
        response = advance(functions, rollout, failure=FAULT)
        assert (response["outcome"], response["status"]) == ("stopped", "HALTED")
        halted = present(functions.rollouts.rollout(rollout))
        assert (halted.status, halted.reason) == (RolloutStatus.HALTED, "Lambda.Unknown: The function died.")

    def test_a_paused_rollout_stores_its_token(self, functions: Functions) -> None:
        rollout = start(functions)
        advance(functions, rollout)
        functions.operate(PAUSE, rollout=rollout)
        functions.call("await_operator", rollout_event(functions, rollout, taskToken="a task token"))
        paused = present(functions.rollouts.rollout(rollout))
        assert paused.task_token == "a task token"

    def test_a_tenants_update_is_requested_by_the_rollout(self, functions: Functions) -> None:
        rollout = start(functions, allowReplacement=True)
        advance(functions, rollout)
        response = functions.call("admit_tenant", turn_event(rollout))
        assert (response["outcome"], response["name"]) == ("admitted", UPDATE.attempt.name)
        assert response["input"]["request"] == {"by": f"rollout/{rollout}", "allowReplacement": True}

    def test_the_outcome_of_a_tenant_is_read_from_its_rows(self, functions: Functions) -> None:
        rollout = start(functions)
        advance(functions, rollout)
        functions.call("admit_tenant", turn_event(rollout))
        functions.serve(UPDATE)
        response = functions.call("record_outcome", turn_event(rollout, failure=FAULT))
        assert response == {"outcome": "settled", "result": "SUCCEEDED"}
        outcome = present(functions.rollouts.tenant_outcome(rollout, ACME))
        assert (outcome.result, outcome.from_version) == (Result.SUCCEEDED, VERSION)

    def test_a_dry_run_changes_nothing(self, functions: Functions) -> None:
        stacks = functions.use(FakeStacks())
        stacks.plant_done(ACME, template_url=a_release().template_url)
        rollout = start(functions, dryRun=True)
        advance(functions, rollout)
        functions.call("admit_tenant", turn_event(rollout))
        assert functions.call("review_tenant", turn_event(rollout)) == {"outcome": "again"}
        response = functions.call("review_tenant", turn_event(rollout))
        assert (response["outcome"], response["result"]) == ("settled", "SUCCEEDED")
        assert "execute_change_set" not in stacks.calls

    @pytest.mark.parametrize("name", ["admit_tenant", "record_outcome", "review_tenant"])
    def test_a_throttled_turn_is_repeated(self, functions: Functions, name: str) -> None:
        rollout = start(functions)
        functions.throttle("GetItem")
        response = functions.call(name, turn_event(rollout))
        assert response == {"outcome": "again", "reason": "GetItem: Rate exceeded", "throttled": True}

    def test_a_step_is_logged_with_its_rollout_and_its_tenant(self, functions: Functions, lines: Lines) -> None:
        rollout = start(functions)
        advance(functions, rollout)
        lines()
        functions.call("admit_tenant", turn_event(rollout))
        (line,) = lines()
        assert (line["rollout_id"], line["tenant_id"], line["execution"]) == (rollout, "acme", CHILD)
        assert (line["message"], line["response"]["outcome"]) == ("Step done", "admitted")


class TestUpdatesThatChangeNothing:
    def test_an_update_to_the_deployed_fingerprint_is_done_at_once(self, functions: Functions) -> None:
        made_from = fingerprint(
            a_release(NEXT_VERSION), stack_parameters(ACME, a_release(NEXT_VERSION), service_token=SERVICE_TOKEN)
        )
        functions.serve(a_run(2), deployed=made_from)
        begun = step(functions, "begin", UPDATE)
        assert (begun["outcome"], begun["version"]) == ("done", NEXT_VERSION)
        assert step(functions, "finish", UPDATE, stack=begun) == {"outcome": "published"}
        metadata = present(functions.table.metadata(ACME))
        assert (metadata.version, metadata.deployed) == (NEXT_VERSION, made_from)
        assert not any(each.startswith("cloudformation.") for each in functions.requests)

    def test_the_fingerprint_is_removed_before_the_stack_changes(self, functions: Functions) -> None:
        functions.serve(a_run(2), deployed="made from something else")
        assert step(functions, "begin", UPDATE) == {"outcome": "begun"}
        metadata = present(functions.table.metadata(ACME))
        assert metadata.deployed is None


class TestAtTheEndOfADeployment:
    @pytest.fixture
    def deploy(self, functions: Functions) -> Callable[..., dict[str, Any]]:
        def deployed(version: str = NEXT_VERSION, *, kind: str = "Create", before: str | None = None) -> dict[str, Any]:
            more = {"OldResourceProperties": {"Version": before}} if before else {}
            event = functions.endpoint.event(RequestType=kind, ResourceProperties={"Version": version}, **more)
            functions.deploy("start_rollout", event)
            return functions.endpoint.answers[-1]

        return deployed

    def test_a_deployment_starts_a_rollout(self, functions: Functions, deploy: Callable[..., dict[str, Any]]) -> None:
        answer = deploy()
        (rollout,) = functions.rollouts.rollouts(limit=10)
        assert (answer["Status"], answer["Data"]) == ("SUCCESS", {"RolloutId": rollout.id})
        assert (rollout.spec.version, rollout.by, rollout.total) == (NEXT_VERSION, "deployment", 2)
        assert len(functions.rollout_executions) == 1

    def test_an_update_starts_a_rollout_only_for_another_version(
        self, functions: Functions, deploy: Callable[..., dict[str, Any]]
    ) -> None:
        assert deploy(kind="Update", before=NEXT_VERSION)["Status"] == "SUCCESS"
        assert functions.rollout_executions == []
        assert deploy(kind="Update", before=VERSION)["Status"] == "SUCCESS"
        assert len(functions.rollout_executions) == 1

    def test_another_active_rollout_does_not_fail_the_deployment(
        self, functions: Functions, deploy: Callable[..., dict[str, Any]]
    ) -> None:
        start(functions)
        assert deploy()["Status"] == "SUCCESS"
        assert len(functions.rollout_executions) == 1

    def test_a_fleet_at_the_release_does_not_fail_the_deployment(
        self, functions: Functions, deploy: Callable[..., dict[str, Any]]
    ) -> None:
        assert deploy(VERSION)["Status"] == "SUCCESS"
        assert functions.rollout_executions == []

    def test_a_newer_fleet_does_not_fail_the_deployment(
        self, functions: Functions, deploy: Callable[..., dict[str, Any]]
    ) -> None:
        functions.table.record_release(a_release("0.0.9"))
        assert deploy("0.0.9")["Status"] == "SUCCESS"
        assert functions.rollout_executions == []

    def test_an_unpublished_release_fails_the_deployment(self, deploy: Callable[..., dict[str, Any]]) -> None:
        answer = deploy("9.9.9")
        assert answer["Status"] == "FAILED"
        assert "never published" in answer["Reason"]


def test_releases_are_shown_with_notes_and_tenants(functions: Functions) -> None:
    functions.table.record_release(replace(a_release("0.3.0"), notes="Faster."))
    _, _, body = functions.operate("GET /releases")
    shown = {each["version"]: (each["notes"], each["tenants"]["total"]) for each in body["releases"]}
    assert shown == {VERSION: (None, 2), NEXT_VERSION: (None, 0), "0.3.0": ("Faster.", 0)}


def test_an_update_by_hand_and_a_rollout_wait_for_each_other(functions: Functions) -> None:
    rollout = start(functions)
    advance(functions, rollout)
    by_hand = a_run(operation=Operation.UPDATE, version=NEXT_VERSION, request=Request(by=ADA))
    take(functions.table, by_hand)
    response = functions.call("admit_tenant", turn_event(rollout))
    assert (response["outcome"], response["input"]["attempt"]) == ("admitted", 2)
