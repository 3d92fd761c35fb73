"""Rollouts of a fleet of sixty tenants: successful, halted, paused, retried and undone."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import parse_timestamp
from orchestrator.local.releases import Template
from orchestrator.rollouts.records import Item
from orchestrator.rollouts.selecting import in_order
from tests.e2e.deployed import Deployed, eventually
from tests.e2e.fleet import (
    a_fleet,
    once_begun,
    order,
    over,
    rollout_of,
    stages,
    start,
    started,
    until,
    versions,
)
from tests.e2e.operators import EARLIER, a_release, a_tenant, call, tenant_of
from tests.fakes import NAMES

SIZE = 60
FLEET = "sixty"
STUBBORN = "stubborn"

WORKS = "2.0.0"
CHANGES_NOTHING = "2.0.1"
REFUSED_BY_SOME = "2.1.0"


def visibility(template: Template, seconds: int) -> None:
    template["Resources"]["InboundQueue"]["Properties"]["VisibilityTimeout"] = seconds


def renamed_queue(template: Template) -> None:
    template["Resources"]["InboundQueue"]["Properties"]["QueueName"] = {"Fn::Sub": "${AWS::StackName}-renamed"}


@pytest.fixture(scope="module")
def fleet(berth: Deployed) -> list[TenantId]:
    """Sixty tenants, and the releases that they are moved to. Each test starts with the result of the previous one."""
    a_release(berth, WORKS, lambda template: visibility(template, 60))
    a_release(berth, CHANGES_NOTHING, lambda template: visibility(template, 60))
    stubborn = berth.a_stubborn_resource(STUBBORN)

    def add_stubborn(template: Template) -> None:
        visibility(template, 60)
        template["Resources"]["Stubborn"] = stubborn

    a_release(berth, REFUSED_BY_SOME, add_stubborn)
    return a_fleet(berth, FLEET, SIZE)


def turns(fleet: list[TenantId], version: str) -> list[TenantId]:
    """The order of the tenants' turns in a rollout to this release."""
    return [item.tenant for item in in_order([Item(tenant, version) for tenant in fleet], version)]


def test_a_dry_run_shows_what_would_change_and_changes_nothing(berth: Deployed, fleet: list[TenantId]) -> None:
    before = versions(berth, fleet)
    rollout = started(berth, FLEET, version=WORKS, dryRun=True, sample="3")
    shown = over(berth, rollout)

    assert (shown["selected"], shown["planned"], shown["total"]) == (SIZE, [1, 6, 53], 3)
    assert shown["changes"]["tenants"] == {"SUCCEEDED": 3}
    counts = {each["change"]: each["count"] for each in shown["changes"]["resources"]}
    assert counts["changes InboundQueue (AWS::SQS::Queue)"] == 3
    assert versions(berth, fleet) == before
    looked_at = turns(fleet, WORKS)[0]
    change_sets = berth.client("cloudformation").list_change_sets(StackName=NAMES.stack_of(looked_at))["Summaries"]
    assert change_sets == []


def test_sixty_tenants_are_upgraded_in_three_stages(berth: Deployed, fleet: list[TenantId]) -> None:
    rollout = started(berth, FLEET, version=WORKS)
    shown = over(berth, rollout)

    assert shown["status"] == "SUCCEEDED", shown
    assert [(stage["total"], stage["succeeded"], stage["status"]) for stage in shown["stages"]] == [
        (1, 1, "DONE"),
        (6, 6, "DONE"),
        (53, 53, "DONE"),
    ]
    assert set(versions(berth, fleet).values()) == {WORKS}
    canary = turns(fleet, WORKS)[0]
    history = tenant_of(berth, canary)["history"]
    assert history[-1]["requestedBy"] == f"rollout/{rollout}"
    assert berth.stack(canary)["StackStatus"] == "UPDATE_COMPLETE"
    in_use = {each["version"]: each["tenants"] for each in call(berth, "GET", "/releases").body["releases"]}
    assert in_use[WORKS]["total"] == SIZE


def test_a_bad_release_halts_after_the_first_tenant_with_the_reason(berth: Deployed, fleet: list[TenantId]) -> None:
    berth.talk_to(STUBBORN, "Create *")
    rollout = started(berth, FLEET, version=REFUSED_BY_SOME)
    shown = over(berth, rollout)

    canary = turns(fleet, REFUSED_BY_SOME)[0]
    assert shown["status"] == "HALTED"
    assert shown["reason"] == (
        "Stage 1: 1 of 1 tenants failed, 0 were tolerated. "
        f"First, tenant {canary}: Stubborn (Custom::Stubborn): I will not."
    )
    assert shown["failures"] == [
        {
            "rootCause": {"resource": "Stubborn", "type": "Custom::Stubborn", "reason": "I will not."},
            "count": 1,
            "tenants": [canary.value],
        }
    ]
    assert (shown["succeeded"], shown["failed"], shown["inFlight"]) == (0, 1, 0)
    assert set(versions(berth, fleet).values()) == {WORKS}
    assert tenant_of(berth, canary)["state"] == "UPDATE_FAILED"


def test_too_many_failures_halt_stage_two_and_failed_tenants_are_retried_and_moved_ones_undone(
    berth: Deployed, fleet: list[TenantId]
) -> None:
    in_turn = turns(fleet, REFUSED_BY_SOME)
    unwilling = in_turn[1:7]
    berth.talk_to(STUBBORN, *(f"Create {tenant}" for tenant in unwilling))
    halted = started(
        berth, FLEET, version=REFUSED_BY_SOME, stages=stages("1", "10%", "rest", concurrency=1, tolerated="1")
    )
    shown = over(berth, halted)

    # One failure is tolerated, the second is not. The other four failing tenants never had their turns.
    assert shown["status"] == "HALTED"
    assert shown["reason"].startswith("Stage 2: 2 of 6 tenants failed, 1 were tolerated. First, tenant ")
    assert [stage["status"] for stage in shown["stages"]] == ["DONE", "RUNNING", "WAITING"]
    (failures,) = shown["failures"]
    failed = [TenantId(name) for name in failures["tenants"]]
    assert len(failed) == failures["count"] == 2
    assert set(failed) <= set(unwilling)
    assert Counter(versions(berth, fleet).values()) == {WORKS: SIZE - 1, REFUSED_BY_SOME: 1}

    berth.talk_to(STUBBORN)
    answer = order(berth, halted, "retry")
    assert (answer.status, answer.body["total"], answer.body["retry"]) == (202, 2, halted)
    assert over(berth, answer.body["rolloutId"])["status"] == "SUCCEEDED"
    moved = [in_turn[0], *failed]
    assert {tenant for tenant in fleet if berth.ask(tenant).body["version"] == REFUSED_BY_SOME} == set(moved)

    refused = start(berth, FLEET, version=WORKS, stages=stages("rest"))
    assert (refused.status, refused.body["type"]) == (409, "urn:berth:problem:downgrade")
    # The undo includes tenants that had failed, because the retry moved them.
    shown = over(berth, started(berth, FLEET, undo=halted))
    assert (shown["status"], shown["total"]) == ("SUCCEEDED", 3)
    assert start(berth, FLEET, undo=answer.body["rolloutId"]).body["skipped"]["current"]["count"] == 2
    assert set(versions(berth, fleet).values()) == {WORKS}


def test_a_rollout_is_paused_resumed_and_aborted_and_excludes_others_of_its_tenants(
    berth: Deployed, fleet: list[TenantId]
) -> None:
    slowly = stages("rest", concurrency=2)
    rollout = started(berth, FLEET, version=CHANGES_NOTHING, stages=slowly)
    once_begun(berth, rollout)

    assert order(berth, rollout, "pause").body["status"] == "PAUSED"
    paused = eventually(
        lambda: shown if (shown := rollout_of(berth, rollout))["inFlight"] == 0 else None, what="those in flight end"
    )
    assert 0 < paused["succeeded"] < SIZE
    assert Counter(versions(berth, fleet).values())[CHANGES_NOTHING] == paused["succeeded"]
    in_the_way = start(berth, FLEET, version=CHANGES_NOTHING)
    assert (in_the_way.status, in_the_way.body["type"]) == (409, "urn:berth:problem:rollout-in-the-way")
    assert in_the_way.body["rolloutId"] == rollout

    assert order(berth, rollout, "resume").body["status"] == "RUNNING"
    eventually(
        lambda: True if rollout_of(berth, rollout)["succeeded"] > paused["succeeded"] else None, what="it goes on"
    )
    assert order(berth, rollout, "abort").status == 202
    aborted = over(berth, rollout)
    assert (aborted["status"], aborted["inFlight"]) == ("ABORTED", 0)
    moved = Counter(versions(berth, fleet).values())[CHANGES_NOTHING]
    assert 0 < moved == aborted["succeeded"]

    assert order(berth, rollout, "resume").status == 409


def test_a_release_that_changes_nothing_is_recorded_without_calls_to_cloudformation(
    berth: Deployed, fleet: list[TenantId]
) -> None:
    """Some tenants have just been moved to such a release, and their stacks still have the release before it."""
    tenant = next(TenantId(name) for name, version in versions(berth, fleet).items() if version == CHANGES_NOTHING)
    outputs = {each["OutputKey"]: each["OutputValue"] for each in berth.stack(tenant)["Outputs"]}
    assert outputs["Version"] == WORKS


def test_a_stage_waits_for_approval_and_an_alarm_during_the_bake_halts_the_rollout(berth: Deployed) -> None:
    cloudwatch = berth.client("cloudwatch")
    cloudwatch.put_metric_alarm(
        AlarmName="too-many-complaints",
        Namespace="Platform",
        MetricName="Complaints",
        Statistic="Sum",
        Period=60,
        EvaluationPeriods=1,
        Threshold=1.0,
        ComparisonOperator="GreaterThanOrEqualToThreshold",
    )
    tenants = [a_tenant(berth, f"baked-{number}", EARLIER) for number in (1, 2)]
    names = [tenant.value for tenant in tenants]
    staged = stages("1", "rest", approval=True, alarm="too-many-complaints")
    staged[0]["bakeSeconds"] = 600
    answer = call(berth, "POST", "/rollouts", body={"tenants": names, "stages": staged})
    assert answer.status == 202, answer.body
    rollout = str(answer.body["rolloutId"])

    def stage_is(status: str) -> object:
        return eventually(
            lambda: True if rollout_of(berth, rollout)["stages"][0]["status"] == status else None, what=status
        )

    stage_is("AWAITING_APPROVAL")
    approval = {"stage": 1}
    assert call(berth, "POST", f"/rollouts/{rollout}/approve", body=approval).status == 202
    assert call(berth, "POST", f"/rollouts/{rollout}/approve", body=approval).body["status"] == "UNCHANGED"
    stage_is("BAKING")
    ended = parse_timestamp(rollout_of(berth, rollout)["stages"][0]["endedAt"])
    # Times in the emulator's history have whole seconds.
    eventually(lambda: True if datetime.now(UTC) - ended > timedelta(seconds=1) else None, what="the next second")
    for state in ("ALARM", "OK"):
        cloudwatch.set_alarm_state(AlarmName="too-many-complaints", StateValue=state, StateReason="It was a bad day.")
    shown = over(berth, rollout)
    assert shown["status"] == "HALTED"
    assert shown["reason"] == ("Stage 1: the alarm too-many-complaints went off during the bake: It was a bad day.")
    assert shown["succeeded"] == 1


def test_a_dry_run_flags_a_queue_that_would_be_replaced(berth: Deployed) -> None:
    tenant = a_tenant(berth, "would-lose-its-queue")
    version = a_release(berth, "2.2.0", renamed_queue)
    answer = call(berth, "POST", "/rollouts", body={"version": version, "tenants": [tenant.value], "dryRun": True})
    shown = until(berth, str(answer.body["rolloutId"]), "FAILED")

    (failure,) = shown["failures"]
    assert "would replace or remove the inbound queue" in failure["rootCause"]["reason"]
    assert tenant_of(berth, tenant)["state"] == "READY"


def test_a_pinned_tenant_is_not_moved_until_it_is_unpinned(berth: Deployed) -> None:
    tenant = a_tenant(berth, "stays-behind", EARLIER)
    body = {"tenants": [tenant.value], "stages": stages("rest")}
    assert call(berth, "PUT", f"/tenants/{tenant}/pin", body={"version": EARLIER}).status == 200
    shown = call(berth, "POST", "/rollouts", body=body)
    assert (shown.status, shown.body["skipped"]["pinned"]["tenants"]) == (200, [tenant.value])

    assert call(berth, "DELETE", f"/tenants/{tenant}/pin").status == 200
    answer = call(berth, "POST", "/rollouts", body=body)
    assert over(berth, str(answer.body["rolloutId"]))["status"] == "SUCCEEDED"
    assert berth.ask(tenant).body["version"] == berth.release
