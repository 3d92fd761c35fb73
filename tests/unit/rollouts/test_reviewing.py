"""A dry run's review of one tenant: the changes, the losses, and that no change set is left behind."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from orchestrator.common.errors import Throttled
from orchestrator.releases.published import fingerprint
from orchestrator.releases.template_contract import KMS_KEY_PARAMETER
from orchestrator.rollouts.advancing import NotSucceeded, Succeeded
from orchestrator.rollouts.gate import Settled, ToReview, TryAgain
from orchestrator.rollouts.records import Item, Result, TenantOutcome, Turn
from orchestrator.tenants.deadlines import DEADLINE
from orchestrator.tenants.messages import Messages
from orchestrator.tenants.stack_ports import Change, ChangeSetState, Effect, Stack
from tests.fakes import (
    NAMES,
    NEXT_VERSION,
    QUEUE,
    VERSION,
    FakeQueues,
    a_release,
    parameters_of,
    stack_arn,
)
from tests.unit.rollouts.world import Fleet, a_spec, tenant

T1 = tenant("t001")
FAULT = "States.TaskFailed: the function could not be called"
OTHER_URL = "https://sqs.eu-west-1.amazonaws.com/0/dead-letters"
ALARM_CHANGES = Change("Alarm", "AWS::CloudWatch::Alarm", "alarm", Effect.MAY_REPLACE)
QUEUE_CHANGES = Change("InboundQueue", "AWS::SQS::Queue", QUEUE.url, Effect.CHANGE)
QUEUE_GOES = Change("InboundQueue", "AWS::SQS::Queue", QUEUE.url, Effect.REPLACE)
DEAD_LETTERS_GO = Change("DeadLetterQueue", "AWS::SQS::Queue", OTHER_URL, Effect.REPLACE)


NAME = f"plan-{hashlib.sha256(b'child').hexdigest()[:32]}"
"""The name of the change set in the turn of that child."""


class Review:
    """A dry run of one tenant, which has been admitted."""

    def __init__(self, *, stack: bool = True, **spec: Any) -> None:
        self.world = Fleet(1)
        self.stacks, self.queues = self.world.stacks, self.world.queues
        if stack:
            self.stack: Stack = self.stacks.plant_done(T1, template_url=a_release(VERSION).template_url)
        self.rollout = self.world.start(a_spec(dry_run=True, **spec))
        self.world.advance(self.rollout)
        self.turn = Turn(self.rollout, 1, Item(T1, NEXT_VERSION), "child")
        assert self.world.gate.admit(self.turn) == ToReview()

    def review(self, fault: str | None = None) -> Settled | TryAgain:
        return self.world.reviewing.review(self.turn, fault)

    def until_settled(self) -> Settled:
        for _ in range(10):
            if isinstance(result := self.review(), Settled):
                return result
        raise AssertionError("The review is never settled.")

    def outcome(self) -> TenantOutcome:
        return self.world.outcome(self.rollout, T1)

    @property
    def reason(self) -> str:
        return str(self.outcome().root_cause)

    @property
    def change_sets(self) -> list[str]:
        """The names of the stack's change sets."""
        return [each.split("/")[1] for each in self.stacks.all[self.stack.stack_id].change_sets]

    def plant(self, state: ChangeSetState, reason: str = "", template_url: str = "", **more: Any) -> None:
        self.stacks.add_changes(self.stack.stack_id, NAME, template_url, state=state, reason=reason, **more)


def test_the_changes_are_recorded_and_nothing_is_changed() -> None:
    review = Review()
    review.stacks.would_change = (QUEUE_CHANGES, ALARM_CHANGES)

    assert review.review() == TryAgain()
    assert review.change_sets == [NAME]
    assert review.review() == Settled(Result.SUCCEEDED)

    assert review.outcome().changes == (
        "changes InboundQueue (AWS::SQS::Queue)",
        "may replace Alarm (AWS::CloudWatch::Alarm)",
    )
    assert review.change_sets == [], "the change set is deleted afterwards"
    assert "execute_change_set" not in review.stacks.calls
    assert review.world.metadata_of(T1).version == VERSION
    stage = review.world.stage(review.rollout)
    assert (stage.succeeded, stage.in_flight) == (1, 0)
    assert review.world.advance(review.rollout) == Succeeded()


def test_the_review_waits_until_the_change_set_is_ready() -> None:
    review = Review()
    review.stacks.review_takes = 3

    assert [review.review() for _ in range(5)] == [TryAgain()] * 4 + [Settled(Result.SUCCEEDED)]
    assert review.stacks.calls.count("create_change_set") == 1


def test_an_empty_change_set_means_unchanged() -> None:
    review = Review()
    review.stacks.all[review.stack.stack_id].template_url = a_release(NEXT_VERSION).template_url

    assert review.until_settled() == Settled(Result.UNCHANGED)
    assert review.change_sets == []
    assert review.world.stage(review.rollout).succeeded == 1


def test_a_failed_change_set_is_a_failure_with_the_reason() -> None:
    review = Review()
    review.plant(ChangeSetState.FAILED, "Template error")

    assert review.review() == Settled(Result.FAILED)
    assert "Template error" in review.reason
    assert review.change_sets == []
    assert isinstance(review.world.advance(review.rollout), NotSucceeded)


@pytest.mark.parametrize("state", [ChangeSetState.STALE, ChangeSetState.EXECUTED])
def test_an_outdated_change_set_is_created_again(state: ChangeSetState) -> None:
    review = Review()
    review.plant(state)

    assert review.review() == TryAgain()
    assert review.change_sets == []
    assert review.until_settled() == Settled(Result.SUCCEEDED)


def test_a_change_set_with_an_earlier_key_is_created_again() -> None:
    review = Review()
    review.plant(ChangeSetState.READY, parameters={**parameters_of(T1), KMS_KEY_PARAMETER: "the former key"})

    assert review.review() == TryAgain()
    assert review.change_sets == []
    assert review.until_settled() == Settled(Result.SUCCEEDED)


# Change sets and stacks of others


def test_a_foreign_change_set_named_after_the_rollout_is_ignored() -> None:
    """The name depends on the child's ARN, which Step Functions generates."""
    review = Review()
    name = f"plan-{review.rollout}"
    review.stacks.add_changes(review.stack.stack_id, name, "", state=ChangeSetState.READY, changes=(QUEUE_CHANGES,))

    assert review.until_settled() == Settled(Result.SUCCEEDED)
    assert review.outcome().changes == ()
    assert review.change_sets == [name]


def test_a_foreign_change_set_with_the_same_name_is_reported_and_deleted() -> None:
    review = Review()
    review.stacks.digests["evil"] = "e" * 64
    review.plant(ChangeSetState.READY, template_url="evil", parameters=parameters_of(T1))

    assert review.review() == Settled(Result.FAILED)
    assert "another template" in review.reason
    assert review.change_sets == []


def test_a_stack_that_berth_did_not_create_is_not_reviewed() -> None:
    review = Review(stack=False)
    review.world.table.plant_metadata(replace(review.world.metadata_of(T1), stack_id=stack_arn(T1, 7)))
    review.stack = review.stacks.plant_done(T1, ours=False)

    assert review.until_settled() == Settled(Result.FAILED)
    assert "Berth did not make it" in review.reason
    assert "create_change_set" not in review.stacks.calls


# Losses


@pytest.mark.parametrize("changes", [[QUEUE_GOES], [ALARM_CHANGES, QUEUE_GOES]])
def test_a_loss_of_the_inbound_queue_is_flagged(changes: Sequence[Change]) -> None:
    review = Review()
    review.stacks.would_change = tuple(changes)

    assert review.until_settled() == Settled(Result.FAILED)

    assert "inbound queue" in review.reason
    assert len(review.outcome().changes) == len(changes)
    assert review.change_sets == []


def test_a_loss_of_messages_is_flagged() -> None:
    review = Review()
    review.stacks.would_change = (DEAD_LETTERS_GO,)
    review.queues.held[OTHER_URL] = Messages(3, 0, 0)

    assert review.until_settled() == Settled(Result.FAILED)
    assert "holds messages (3 visible" in review.reason


def test_a_queue_that_is_empty_is_no_loss() -> None:
    review = Review()
    review.stacks.would_change = (DEAD_LETTERS_GO,)

    assert review.until_settled() == Settled(Result.SUCCEEDED)


def test_a_replacement_that_was_allowed_is_no_loss() -> None:
    review = Review(allow_replacement=True)
    review.stacks.would_change = (QUEUE_GOES,)

    assert review.until_settled() == Settled(Result.SUCCEEDED)
    assert review.outcome().changes == ("replaces InboundQueue (AWS::SQS::Queue)",)


# Without calls to CloudFormation


def test_a_stack_with_the_same_fingerprint_is_unchanged_without_a_call_to_cloudformation() -> None:
    review = Review()
    review.world.change(T1, deployed=fingerprint(a_release(NEXT_VERSION), parameters_of(T1)))

    assert review.review() == Settled(Result.UNCHANGED)
    assert review.stacks.calls == []


def test_a_stack_with_another_fingerprint_is_reviewed() -> None:
    review = Review()
    review.world.change(T1, deployed=fingerprint(a_release(VERSION), parameters_of(T1)))

    assert review.until_settled() == Settled(Result.SUCCEEDED)


def test_a_missing_fingerprint_does_not_equal_another_missing_one() -> None:
    review = Review()
    review.turn = Turn(review.rollout, 1, Item(T1, "0.0.9"), "child")
    review.world.table.record_release(a_release("0.0.9", content=""))
    before = review.outcome()
    review.world.plant_outcome(_to("0.0.9", before))
    assert review.world.metadata_of(T1).deployed is None

    assert review.review() == TryAgain()
    assert "create_change_set" in review.stacks.calls


def _to(version: str, before: TenantOutcome) -> TenantOutcome:
    return TenantOutcome(
        before.rollout,
        before.stage,
        Item(before.item.tenant, version),
        before.result,
        before.updated_at,
        before.execution,
        before.operation_attempt,
    )


# Stacks in other states


def test_a_tenant_without_a_stack_is_a_failure() -> None:
    review = Review(stack=False)

    assert review.review() == Settled(Result.FAILED)
    assert NAMES.stack_of(T1) in review.reason


def test_the_review_waits_for_a_stack_that_cloudformation_is_changing() -> None:
    review = Review()
    review.stacks.change(review.stack.stack_id, "UPDATE_IN_PROGRESS")
    assert review.review() == TryAgain()
    assert "create_change_set" not in review.stacks.calls

    review.stacks.change(review.stack.stack_id, "UPDATE_COMPLETE")

    assert review.until_settled() == Settled(Result.SUCCEEDED)


@pytest.mark.parametrize("status", ["UPDATE_ROLLBACK_COMPLETE", "IMPORT_COMPLETE"])
def test_a_healthy_stack_is_reviewed(status: str) -> None:
    review = Review()
    review.stacks.change(review.stack.stack_id, status)

    assert review.until_settled() == Settled(Result.SUCCEEDED)


@pytest.mark.parametrize("status", ["UPDATE_FAILED", "UPDATE_ROLLBACK_FAILED"])
def test_a_stack_that_an_update_would_roll_back_first_would_change(status: str) -> None:
    review = Review()
    review.stacks.change(review.stack.stack_id, status)

    assert review.review() == Settled(Result.SUCCEEDED)
    assert review.outcome().changes == (f"the stack, which is {status}",)


@pytest.mark.parametrize("status", ["ROLLBACK_COMPLETE", "DELETE_FAILED", "REVIEW_IN_PROGRESS"])
def test_a_stack_that_needs_manual_repair_is_a_failure(status: str) -> None:
    review = Review()
    review.stacks.change(review.stack.stack_id, status, "because")

    assert review.review() == Settled(Result.FAILED)
    assert f"The stack is {status}: because" in review.reason


# Errors


def test_throttling_is_retried_and_is_not_a_failure() -> None:
    review = Review()
    review.stacks.throttled_calls = 3

    assert [review.review() for _ in range(3)] == [TryAgain()] * 3
    assert review.until_settled() == Settled(Result.SUCCEEDED)


def test_throttling_is_a_failure_after_the_deadline() -> None:
    review = Review()
    review.stacks.throttled_calls = 100
    review.world.clock.advance(DEADLINE)
    assert review.review() == TryAgain()

    review.world.clock.advance(timedelta(seconds=1))

    assert review.review() == Settled(Result.FAILED)
    assert "Rate exceeded" in review.reason


def test_a_change_set_that_is_never_ready_is_a_failure_after_the_deadline() -> None:
    review = Review()
    review.stacks.review_takes = 100
    assert review.review() == review.review() == TryAgain()

    review.world.clock.advance(DEADLINE + timedelta(seconds=1))

    assert review.review() == Settled(Result.FAILED)
    assert "in time" in review.reason


def test_a_late_review_with_a_result_records_the_result() -> None:
    review = Review()
    review.review()
    review.world.clock.advance(DEADLINE * 2)

    assert review.review() == Settled(Result.SUCCEEDED)


def test_a_fault_is_recorded() -> None:
    review = Review()

    assert review.review(FAULT) == Settled(Result.FAILED)
    assert FAULT in review.reason


def test_a_long_fault_is_shortened() -> None:
    review = Review()

    review.review("x" * 50_000)

    assert len(review.reason) < 1_200


def test_an_unknown_release_is_a_failure_with_the_reason() -> None:
    review = Review()
    review.world.plant_outcome(_to("9.9.9", review.outcome()))

    assert review.review() == Settled(Result.FAILED)
    assert "9.9.9 was never published" in review.reason


class ThrottledQueues(FakeQueues):
    """SQS that throttles the first request."""

    def messages(self, url: str) -> Messages | None:
        if url not in self.held:
            self.held[url] = Messages(0, 0, 0)
            raise Throttled("GetQueueAttributes: Rate exceeded")
        return super().messages(url)


def test_throttling_by_sqs_is_retried() -> None:
    review = Review()
    review.stacks.would_change = (DEAD_LETTERS_GO,)
    review.queues = ThrottledQueues()

    assert review.until_settled() == Settled(Result.SUCCEEDED)


# Repeated reviews


def test_a_repeated_review_returns_the_same_result() -> None:
    review = Review()
    first = review.until_settled()
    calls = list(review.stacks.calls)

    assert review.review() == review.review(FAULT) == first
    assert review.stacks.calls == calls
    assert review.world.stage(review.rollout).succeeded == 1


def test_a_tenant_without_a_turn_is_not_reviewed() -> None:
    review = Review()
    review.turn = Turn(review.rollout, 1, Item(tenant("nobody"), NEXT_VERSION), "child")

    assert review.review() == Settled(Result.SKIPPED)
    assert review.stacks.calls == []


def test_a_concurrent_record_is_not_lost() -> None:
    review = Review()
    review.review()
    review.world.rollout_table.concurrent_writes.append(lambda: review.world.touch_stage(review.rollout, skipped=5))

    assert review.review() == Settled(Result.SUCCEEDED)
    stage = review.world.stage(review.rollout)
    assert (stage.succeeded, stage.skipped) == (1, 5)
