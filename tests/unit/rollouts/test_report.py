"""The API's documents about rollouts: each cause once, and a limited size."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.api.rollout_answers import (
    group_by_cause,
    rollout_document,
    rollout_order_response,
    rollout_response,
    rollout_start_response,
    rollouts_response,
)
from orchestrator.api.rollout_models import MAX_CAUSES, MAX_TENANTS_PER_CAUSE
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import timestamp
from orchestrator.rollouts.control import NothingToDo, RolloutWithStages
from orchestrator.rollouts.counting import Reviews
from orchestrator.rollouts.records import (
    Item,
    Order,
    RecordedOrder,
    Repairs,
    Result,
    RolloutStatus,
    Share,
    Skip,
    Skipped,
    StageStatus,
    TenantOutcome,
)
from orchestrator.rollouts.selecting import MAX_NAMED, Selected
from orchestrator.tenants.admission import Refused
from orchestrator.tenants.order_results import Unchanged
from orchestrator.tenants.records import RootCause
from tests.fakes import NAMES, NEXT_VERSION, NOON, QUEUE_TABOO, VERSION, execution_arn
from tests.fakes.rollouts import count_reviews
from tests.unit.rollouts.world import (
    ADA,
    ROLLOUT,
    Fleet,
    a_rollout,
    a_spec,
    a_stage,
    a_stage_spec,
    tenant,
    tenants,
)

NO_REVIEWS = Reviews({}, {})


def a_failure(who: TenantId, cause: RootCause | None = QUEUE_TABOO) -> TenantOutcome:
    return TenantOutcome(ROLLOUT, 1, Item(who, NEXT_VERSION), Result.FAILED, NOON, root_cause=cause)


def causing(reason: Callable[[TenantId], str], *names: str) -> list[TenantOutcome]:
    return [
        a_failure(tenant(name), RootCause("InboundQueue", "AWS::SQS::Queue", reason(tenant(name)))) for name in names
    ]


# By cause


@pytest.mark.parametrize(
    "reason",
    [
        lambda _: "Access to the resource is denied.",
        lambda who: f"Tenant {who}: denied",
        lambda who: f"Queue {NAMES.stack_of(who)}-InboundQueue is taken",
        lambda who: f"{NAMES.stack_of(who)}-InboundQueue-aB{len(who.value)}dEfGhIjKl already exists",
        lambda who: f"denied (Request ID: {len(who.value)}2345678-1234-1234-1234-123456789abc)",
        lambda who: f"Invalid token 1A2B3C4D5E6F{len(who.value)}",
    ],
)
def test_causes_that_differ_only_in_the_tenants_name_are_grouped(reason: Callable[[TenantId], str]) -> None:
    (group,) = group_by_cause(causing(reason, "acme", "Zebra", "a-b-c"))

    assert group["count"] == 3
    assert group["tenants"] == ["Zebra", "a-b-c", "acme"]


def test_resources_that_differ_only_in_the_tenants_name_are_grouped() -> None:
    failures = [
        a_failure(who, RootCause(NAMES.stack_of(who), "AWS::CloudFormation::Stack", "gone")) for who in tenants(3)
    ] + [a_failure(who, RootCause(who.value, "Berth::Tenant", "fault")) for who in tenants(2)]

    assert [(group["rootCause"], group["count"]) for group in group_by_cause(failures)] == [
        ({"resource": "berth-tenant-…", "type": "AWS::CloudFormation::Stack", "reason": "gone"}, 3),
        ({"resource": "…", "type": "Berth::Tenant", "reason": "fault"}, 2),
    ]


def test_a_short_tenant_id_inside_other_words_is_not_replaced() -> None:
    (group,) = group_by_cause(a_failure(tenant(name)) for name in ("n", "u", "Q", "b", "acme"))

    assert group["rootCause"] == {
        "resource": "InboundQueue",
        "type": "AWS::SQS::Queue",
        "reason": "Access to the resource is denied.",
    }


def test_different_causes_are_separate_groups_with_the_most_frequent_first() -> None:
    rare, frequent = causing(lambda _: "rare", "a"), causing(lambda _: "frequent", "b", "c")

    assert [group["rootCause"]["reason"] for group in group_by_cause(rare + frequent)] == [  # type: ignore[index]
        "frequent",
        "rare",
    ]


def test_a_failure_without_a_cause_is_reported() -> None:
    (group,) = group_by_cause([a_failure(tenant("acme"), None)])

    assert group["rootCause"] == {"resource": "", "type": "", "reason": "No reason was recorded."}


def test_the_size_of_the_failure_report_is_limited() -> None:
    one_cause = [a_failure(who) for who in tenants(500)]
    many_causes = [
        a_failure(tenant(f"x{number}"), RootCause("r", "t", f"{'because ' * 120}{'x' * number}"))
        for number in range(300)
    ]

    groups = group_by_cause(one_cause + many_causes)

    assert len(groups) == MAX_CAUSES
    assert groups[0]["count"] == 500
    assert len(groups[0]["tenants"]) == MAX_TENANTS_PER_CAUSE  # type: ignore[arg-type]
    assert len(json.dumps(groups)) < 100_000


@given(st.lists(st.tuples(st.sampled_from(tenants(6)), st.text(max_size=40)), max_size=30))
def test_every_failure_is_counted_whatever_its_reason(failed: list[tuple[TenantId, str]]) -> None:
    failures = [a_failure(who, RootCause("r", "t", reason)) for who, reason in failed][:MAX_CAUSES]

    assert sum(int(str(group["count"])) for group in group_by_cause(failures)) == len(failures)


# One rollout


def test_a_rollouts_document_contains_its_stages() -> None:
    rollout = replace(
        a_rollout(a_spec(a_stage_spec(Share(1), alarm="errors", bake_seconds=60), a_stage_spec())),
        planned=(1, 8),
        total=9,
        skipped={Skip.PINNED: Skipped(2, ("x", "y"))},
        current_stage=2,
        repairs=Repairs(1, ("z",)),
    )
    stages = [
        a_stage(status=StageStatus.DONE, succeeded=1, started_at=NOON, ended_at=NOON, baked_until=NOON),
        a_stage(2, total=8, tolerated=1, forgiven=1, failed=2, skipped=1, in_flight=3, approved_by=ADA),
    ]

    document = rollout_document(rollout, stages)

    assert {name: document[name] for name in document if name not in ("stages", "spec")} == {
        "rolloutId": ROLLOUT,
        "status": "RUNNING",
        "reason": None,
        "dryRun": False,
        "version": NEXT_VERSION,
        "undo": None,
        "retry": None,
        "requestedBy": ADA,
        "createdAt": "2026-11-16T12:00:00.000Z",
        "endedAt": None,
        "total": 9,
        "execution": execution_arn("rollout"),
        "currentStage": 2,
        "selected": 9,
        "planned": [1, 8],
        "skipped": {"pinned": {"count": 2, "tenants": ["x", "y"]}},
        "succeeded": 1,
        "failed": 2,
        "skippedSince": 1,
        "inFlight": 3,
        "stageCount": 2,
        "stageStatus": "RUNNING",
        "bakedUntil": None,
        "awaitingStage": None,
        "repairs": {"count": 1, "tenants": ["z"]},
    }
    second: dict[str, Any] = document["stages"][1]  # type: ignore[index]
    assert {name: second[name] for name in second if name != "spec"} == {
        "number": 2,
        "status": "RUNNING",
        "total": 8,
        "tolerated": 2,
        "succeeded": 0,
        "failed": 2,
        "skipped": 1,
        "inFlight": 3,
        "concurrency": 12,
        "approvedBy": ADA,
        "startedAt": None,
        "endedAt": None,
        "bakedUntil": None,
    }


def an_order() -> RecordedOrder:
    return RecordedOrder("20261116-120000-abcd", NOON, Order.APPROVE, ADA, "Ticket 4711", stage=2)


def test_a_rollouts_document_contains_its_failures() -> None:
    response = rollout_response(a_rollout(), [a_stage()], [a_failure(tenant("acme"))], NO_REVIEWS, [an_order()])

    assert response.status == 200
    assert response.body["failures"] == group_by_cause([a_failure(tenant("acme"))])
    assert response.body["failuresCounted"] == 1
    assert "changes" not in response.body
    assert response.body["history"] == [
        {
            "at": timestamp(NOON),
            "order": "APPROVE",
            "requestedBy": ADA,
            "reason": "Ticket 4711",
            "stage": 2,
            "rolloutId": None,
            "detail": None,
            "altered": False,
        }
    ]


def test_a_dry_runs_document_contains_the_number_of_changes_and_the_resources() -> None:
    of_the_queue, of_the_stack = "replaces Q (AWS::SQS::Queue)", "the stack, which is UPDATE_FAILED"
    found = [
        (Result.SUCCEEDED, VERSION, (of_the_queue, of_the_stack)),
        (Result.SUCCEEDED, "0.0.1", (of_the_queue,)),
        (Result.UNCHANGED, VERSION, ()),
        (Result.FAILED, VERSION, (of_the_queue,)),
        # An update that failed is repeated, so the tenant stays at its release.
        (Result.SUCCEEDED, NEXT_VERSION, (of_the_queue,)),
    ]
    looked_at = [
        replace(a_failure(tenant(f"t{number}")), result=result, from_version=origin, changes=changes)
        for number, (result, origin, changes) in enumerate(found)
    ]

    response = rollout_response(
        a_rollout(a_spec(dry_run=True)), [a_stage()], looked_at[3:4], count_reviews(looked_at), []
    )

    nothing = {"effect": None, "resource": None, "resourceType": None}
    queue = {"effect": "REPLACE", "resource": "Q", "resourceType": "AWS::SQS::Queue"}
    assert response.body["changes"] == {
        "tenants": {"FAILED": 1, "SUCCEEDED": 3, "UNCHANGED": 1},
        "resources": [
            {"change": of_the_queue, **queue, "count": 4},
            {"change": of_the_stack, **nothing, "count": 1},
        ],
        "moves": [
            {"fromVersion": VERSION, "version": NEXT_VERSION, "count": 2},
            {"fromVersion": "0.0.1", "version": NEXT_VERSION, "count": 1},
        ],
    }


def test_the_largest_possible_rollout_fits_into_a_response() -> None:
    named = tuple(TenantId.parse(f"{number:040}") for number in range(500))
    stages = [a_stage(number, spec=a_stage_spec(Share(1), alarm="x" * 255)) for number in range(1, 11)]
    spec = a_spec(*(stage.spec for stage in stages), tenants=named, labels={f"{n:063}": "x" * 128 for n in range(20)})
    skipped = {why: Skipped(9_999, tuple(who.value for who in named[:MAX_NAMED])) for why in Skip}
    rollout = replace(a_rollout(spec, reason="x" * 2_000), skipped=skipped)
    failures = [a_failure(who, RootCause("x" * 255, "y" * 255, f"{n}{'z' * 990}")) for n, who in enumerate(named)]

    response = rollout_response(rollout, stages, failures, NO_REVIEWS, [replace(an_order(), reason="x" * 500)] * 100)

    assert len(json.dumps(response.body)) < 300_000


# Responses


def test_a_started_rollout_is_accepted_with_its_location() -> None:
    response = rollout_start_response(RolloutWithStages(a_rollout(status=RolloutStatus.PENDING), [a_stage()]))

    assert response.status == 202
    assert response.headers["Location"] == f"/rollouts/{ROLLOUT}"
    assert response.headers["Retry-After"] == str(response.body["retryAfterSeconds"])
    assert response.body["status"] == "PENDING"


def test_nothing_to_do_is_no_error_and_lists_the_skipped_tenants() -> None:
    selected = Selected([], {Skip.CURRENT: Skipped(3, ("a", "b", "c"))})

    response = rollout_start_response(NothingToDo("No tenant has to be moved (3 current).", selected))

    assert response.status == 200
    assert response.body == {
        "status": "UNCHANGED",
        "detail": "No tenant has to be moved (3 current).",
        "skipped": {"current": {"count": 3, "tenants": ["a", "b", "c"]}},
    }


def test_an_unchanged_rollout_is_no_error() -> None:
    response = rollout_order_response(Unchanged("It is already paused."))

    assert (response.status, response.body) == (200, {"status": "UNCHANGED", "detail": "It is already paused."})


def test_every_refusal_is_a_problem_that_names_its_kind() -> None:
    world = Fleet(1)
    running = world.start()
    over = "20261116-110000-0000"
    ended = replace(a_rollout(a_spec(dry_run=True), status=RolloutStatus.SUCCEEDED), id=over)
    world.plant(ended, [replace(a_stage(), rollout=over)])
    answers = [
        world.rollouts.start(a_spec(version="9.9.9"), ADA),
        world.rollouts.start(a_spec(a_stage_spec(alarm="none")), ADA),
        world.rollouts.start(a_spec(), "other"),
        world.rollouts.start(a_spec(version="0.1.0", undo=running), ADA),
        world.rollouts.pause("20261116-110000-ffff", "ada"),
        world.rollouts.pause(over, "ada"),
        world.rollouts.resume(over, "ada"),
        world.rollouts.abort(over, "ada"),
        world.rollouts.approve(over, 1, ADA),
        world.rollouts.retry(over, ADA),
        world.rollouts.retry(running, ADA),
    ]

    for answer in answers:
        assert isinstance(answer, Refused)
        response = rollout_order_response(answer)
        assert 400 <= response.status < 500
        assert response.body["status"] == response.status
        assert str(response.body["type"]).endswith(answer.kind)
        assert response.body["detail"] == answer.reason


def test_a_list_ends_with_a_cursor_if_there_may_be_more() -> None:
    older = "20261116-110000-0000"
    rollouts = [
        RolloutWithStages(a_rollout(), [a_stage()]),
        RolloutWithStages(replace(a_rollout(), id=older), [replace(a_stage(), rollout=older)]),
    ]

    assert rollouts_response(rollouts, 2).body["cursor"] == older
    assert rollouts_response(rollouts, 3).body["cursor"] is None
    assert rollouts_response([], 3).body == {"rollouts": [], "cursor": None}
