"""A dry run's look at one tenant: what would change, what would be lost, and that nothing is left behind."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from orchestrator.common.errors import Throttled
from orchestrator.releases.published import KMS_KEY_PARAMETER, fingerprint
from orchestrator.rollouts.advancing import NotSucceeded, Succeeded
from orchestrator.rollouts.gate import Settled, ToReview, TryAgain
from orchestrator.rollouts.records import Item, Result, TenantOutcome, Turn
from orchestrator.rollouts.reviewing import Reviewing
from orchestrator.tenants.deadlines import DEADLINE
from orchestrator.tenants.ports import Change, ChangeSetState, Stack
from orchestrator.tenants.records import Messages
from tests.fakes import (
    NAMES,
    NEXT_VERSION,
    QUEUE,
    VERSION,
    FakeQueues,
    FakeStacks,
    a_release,
    parameters_of,
    stack_arn,
)
from tests.unit.rollouts.world import World, a_wish, tenant

T1 = tenant("t001")
FAULT = "States.TaskFailed: the function could not be called"
OTHER_URL = "https://sqs.eu-west-1.amazonaws.com/0/dead-letters"
ALARM_CHANGES = Change("Alarm", "AWS::CloudWatch::Alarm", "alarm", removes=True)
QUEUE_CHANGES = Change("InboundQueue", "AWS::SQS::Queue", QUEUE.url, removes=False)
QUEUE_GOES = Change("InboundQueue", "AWS::SQS::Queue", QUEUE.url, removes=True)
DEAD_LETTERS_GO = Change("DeadLetterQueue", "AWS::SQS::Queue", OTHER_URL, removes=True)


NAME = f"plan-{hashlib.sha256(b'child').hexdigest()[:32]}"
"""The name of what is drawn up in the turn of that child."""


class Look:
    """A dry run of one tenant, whose turn has come."""

    def __init__(self, *, stack: bool = True, **wish: Any) -> None:
        self.world = World(1)
        self.stacks, self.queues = FakeStacks(), FakeQueues()
        if stack:
            self.stack: Stack = self.stacks.plant_done(T1, template_url=a_release(VERSION).template_url)
        self.rollout = self.world.start(a_wish(dry_run=True, **wish))
        self.world.advance(self.rollout)
        self.turn = Turn(self.rollout, 1, Item(T1, NEXT_VERSION), "child")
        assert self.world.gate.admit(self.turn) == ToReview()

    @property
    def reviewing(self) -> Reviewing:
        return Reviewing(
            gate=self.world.gate,
            ledger=self.world.ledger,
            tenants=self.world.table,
            releases=self.world.table,
            stacks=self.stacks,
            queues=self.queues,
            parameters=parameters_of,
            clock=self.world.clock,
        )

    def review(self, fault: str | None = None) -> Settled | TryAgain:
        return self.reviewing.review(self.turn, fault)

    def until_settled(self) -> Settled:
        for _ in range(10):
            if isinstance(answer := self.review(), Settled):
                return answer
        raise AssertionError("It is never settled.")

    def outcome(self) -> TenantOutcome:
        return self.world.outcome(self.rollout, T1)

    @property
    def reason(self) -> str:
        return str(self.outcome().root_cause)

    @property
    def change_sets(self) -> list[str]:
        """The names of what was drawn up."""
        return [each.split("/")[1] for each in self.stacks.all[self.stack.stack_id].change_sets]

    def plant(self, state: ChangeSetState, reason: str = "", template_url: str = "", **more: Any) -> None:
        self.stacks.add_changes(self.stack.stack_id, NAME, template_url, state=state, reason=reason, **more)


def test_what_would_change_is_told_and_nothing_is_changed() -> None:
    look = Look()
    look.stacks.would_change = (QUEUE_CHANGES, ALARM_CHANGES)

    assert look.review() == TryAgain()
    assert look.change_sets == [NAME]
    assert look.review() == Settled(Result.SUCCEEDED)

    assert look.outcome().changes == (
        "changes InboundQueue (AWS::SQS::Queue)",
        "may replace or remove Alarm (AWS::CloudWatch::Alarm)",
    )
    assert look.change_sets == [], "it is forgotten afterwards"
    assert "make_changes" not in look.stacks.calls
    assert look.world.metadata(T1).version == VERSION
    stage = look.world.stage(look.rollout)
    assert (stage.succeeded, stage.in_flight) == (1, 0)
    assert look.world.advance(look.rollout) == Succeeded()


def test_it_is_waited_for_until_the_changes_are_drawn_up() -> None:
    look = Look()
    look.stacks.review_takes = 3

    assert [look.review() for _ in range(5)] == [TryAgain()] * 4 + [Settled(Result.SUCCEEDED)]
    assert look.stacks.calls.count("draw_up_changes") == 1


def test_when_cloudformation_has_nothing_to_change_it_is_unchanged() -> None:
    look = Look()
    look.stacks.all[look.stack.stack_id].template_url = a_release(NEXT_VERSION).template_url

    assert look.until_settled() == Settled(Result.UNCHANGED)
    assert look.change_sets == []
    assert look.world.stage(look.rollout).succeeded == 1


def test_changes_that_cannot_be_drawn_up_are_a_failure_with_the_reason() -> None:
    look = Look()
    look.plant(ChangeSetState.FAILED, "Template error")

    assert look.review() == Settled(Result.FAILED)
    assert "Template error" in look.reason
    assert look.change_sets == []
    assert isinstance(look.world.advance(look.rollout), NotSucceeded)


@pytest.mark.parametrize("state", [ChangeSetState.STALE, ChangeSetState.EXECUTED])
def test_changes_that_are_not_those_of_the_stack_any_more_are_drawn_up_anew(state: ChangeSetState) -> None:
    look = Look()
    look.plant(state)

    assert look.review() == TryAgain()
    assert look.change_sets == []
    assert look.until_settled() == Settled(Result.SUCCEEDED)


def test_changes_with_the_key_from_before_a_deployment_are_drawn_up_anew() -> None:
    look = Look()
    look.plant(ChangeSetState.READY, parameters={**parameters_of(T1), KMS_KEY_PARAMETER: "the former key"})

    assert look.review() == TryAgain()
    assert look.change_sets == []
    assert look.until_settled() == Settled(Result.SUCCEEDED)


# Somebody else's


def test_changes_that_somebody_drew_up_under_the_rollouts_id_are_not_told_of() -> None:
    """As 0.5.0 named them. Step Functions makes up the name of each child, so nobody can compute the name now."""
    look = Look()
    name = f"plan-{look.rollout}"
    look.stacks.add_changes(look.stack.stack_id, name, "", state=ChangeSetState.READY, changes=(QUEUE_CHANGES,))

    assert look.until_settled() == Settled(Result.SUCCEEDED)
    assert look.outcome().changes == ()
    assert look.change_sets == [name]


def test_changes_that_somebody_drew_up_under_the_very_name_are_told_as_such_and_thrown_away() -> None:
    look = Look()
    look.stacks.digests["evil"] = "e" * 64
    look.plant(ChangeSetState.READY, template_url="evil", parameters=parameters_of(T1))

    assert look.review() == Settled(Result.FAILED)
    assert "another template" in look.reason
    assert look.change_sets == []


def test_a_stack_that_somebody_made_is_not_looked_at() -> None:
    look = Look(stack=False)
    look.world.table.plant_metadata(replace(look.world.metadata(T1), stack_id=stack_arn(T1, 7)))
    look.stack = look.stacks.plant_done(T1, ours=False)

    assert look.until_settled() == Settled(Result.FAILED)
    assert "Berth did not make it" in look.reason
    assert "draw_up_changes" not in look.stacks.calls


# Losses


@pytest.mark.parametrize("changes", [[QUEUE_GOES], [ALARM_CHANGES, QUEUE_GOES]])
def test_a_loss_of_the_inbound_queue_is_flagged(changes: Sequence[Change]) -> None:
    look = Look()
    look.stacks.would_change = tuple(changes)

    assert look.until_settled() == Settled(Result.FAILED)

    assert "inbound queue" in look.reason
    assert len(look.outcome().changes) == len(changes)
    assert look.change_sets == []


def test_a_loss_of_messages_is_flagged() -> None:
    look = Look()
    look.stacks.would_change = (DEAD_LETTERS_GO,)
    look.queues.held[OTHER_URL] = Messages(3, 0, 0)

    assert look.until_settled() == Settled(Result.FAILED)
    assert "holds messages (3 visible" in look.reason


def test_a_queue_that_is_empty_is_no_loss() -> None:
    look = Look()
    look.stacks.would_change = (DEAD_LETTERS_GO,)

    assert look.until_settled() == Settled(Result.SUCCEEDED)


def test_a_replacement_that_was_allowed_is_no_loss() -> None:
    look = Look(allow_replacement=True)
    look.stacks.would_change = (QUEUE_GOES,)

    assert look.until_settled() == Settled(Result.SUCCEEDED)
    assert look.outcome().changes == ("may replace or remove InboundQueue (AWS::SQS::Queue)",)


# Without asking CloudFormation


def test_a_stack_that_is_made_from_the_same_is_unchanged_without_a_word_to_cloudformation() -> None:
    look = Look()
    look.world.change(T1, deployed=fingerprint(a_release(NEXT_VERSION), parameters_of(T1)))

    assert look.review() == Settled(Result.UNCHANGED)
    assert look.stacks.calls == []


def test_a_stack_that_is_made_from_something_else_is_looked_at() -> None:
    look = Look()
    look.world.change(T1, deployed=fingerprint(a_release(VERSION), parameters_of(T1)))

    assert look.until_settled() == Settled(Result.SUCCEEDED)


def test_what_nobody_knows_is_not_the_same_as_what_nobody_recorded() -> None:
    look = Look()
    look.turn = Turn(look.rollout, 1, Item(T1, "0.0.9"), "child")
    look.world.table.record_release(a_release("0.0.9", content=""))
    before = look.outcome()
    look.world.ledger.record(look.world.stage(look.rollout), _to("0.0.9", before))
    assert look.world.metadata(T1).deployed is None

    assert look.review() == TryAgain()
    assert "draw_up_changes" in look.stacks.calls


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
    look = Look(stack=False)

    assert look.review() == Settled(Result.FAILED)
    assert NAMES.stack_of(T1) in look.reason


def test_a_stack_that_cloudformation_is_at_is_waited_for() -> None:
    look = Look()
    look.stacks.change(look.stack.stack_id, "UPDATE_IN_PROGRESS")
    assert look.review() == TryAgain()
    assert "draw_up_changes" not in look.stacks.calls

    look.stacks.change(look.stack.stack_id, "UPDATE_COMPLETE")

    assert look.until_settled() == Settled(Result.SUCCEEDED)


@pytest.mark.parametrize("status", ["UPDATE_ROLLBACK_COMPLETE", "IMPORT_COMPLETE"])
def test_a_healthy_stack_is_looked_at(status: str) -> None:
    look = Look()
    look.stacks.change(look.stack.stack_id, status)

    assert look.until_settled() == Settled(Result.SUCCEEDED)


@pytest.mark.parametrize("status", ["UPDATE_FAILED", "UPDATE_ROLLBACK_FAILED"])
def test_a_stack_that_an_update_would_heal_first_would_change(status: str) -> None:
    look = Look()
    look.stacks.change(look.stack.stack_id, status)

    assert look.review() == Settled(Result.SUCCEEDED)
    assert look.outcome().changes == (f"the stack, which is {status}",)


@pytest.mark.parametrize("status", ["ROLLBACK_COMPLETE", "DELETE_FAILED", "REVIEW_IN_PROGRESS"])
def test_a_stack_that_only_a_person_can_help_is_a_failure(status: str) -> None:
    look = Look()
    look.stacks.change(look.stack.stack_id, status, "because")

    assert look.review() == Settled(Result.FAILED)
    assert f"The stack is {status}: because" in look.reason


# When something goes wrong on the way


def test_throttling_is_tried_again_and_fails_nothing() -> None:
    look = Look()
    look.stacks.throttled_calls = 3

    assert [look.review() for _ in range(3)] == [TryAgain()] * 3
    assert look.until_settled() == Settled(Result.SUCCEEDED)


def test_throttling_all_the_time_is_a_failure_after_the_deadline() -> None:
    look = Look()
    look.stacks.throttled_calls = 100
    look.world.clock.advance(DEADLINE)
    assert look.review() == TryAgain()

    look.world.clock.advance(timedelta(seconds=1))

    assert look.review() == Settled(Result.FAILED)
    assert "Rate exceeded" in look.reason


def test_changes_that_are_never_drawn_up_are_a_failure_after_the_deadline() -> None:
    look = Look()
    look.stacks.review_takes = 100
    assert look.review() == look.review() == TryAgain()

    look.world.clock.advance(DEADLINE + timedelta(seconds=1))

    assert look.review() == Settled(Result.FAILED)
    assert "in time" in look.reason


def test_a_look_that_is_late_but_knows_tells_what_it_knows() -> None:
    look = Look()
    look.review()
    look.world.clock.advance(DEADLINE * 2)

    assert look.review() == Settled(Result.SUCCEEDED)


def test_a_fault_is_told() -> None:
    look = Look()

    assert look.review(FAULT) == Settled(Result.FAILED)
    assert FAULT in look.reason


def test_a_fault_of_any_length_fits() -> None:
    look = Look()

    look.review("x" * 50_000)

    assert len(look.reason) < 1_200


def test_a_release_that_was_never_published_is_told() -> None:
    look = Look()
    look.world.ledger.record(look.world.stage(look.rollout), _to("9.9.9", look.outcome()))

    assert look.review() == Settled(Result.FAILED)
    assert "9.9.9 was never published" in look.reason


class ThrottledQueues(FakeQueues):
    """SQS that throttles the first look."""

    def messages(self, url: str) -> Messages | None:
        if url not in self.held:
            self.held[url] = Messages(0, 0, 0)
            raise Throttled("GetQueueAttributes: Rate exceeded")
        return super().messages(url)


def test_throttling_of_the_queues_is_tried_again() -> None:
    look = Look()
    look.stacks.would_change = (DEAD_LETTERS_GO,)
    look.queues = ThrottledQueues()

    assert look.until_settled() == Settled(Result.SUCCEEDED)


# Asked again


def test_asked_again_after_it_is_settled_it_says_the_same() -> None:
    look = Look()
    first = look.until_settled()
    calls = list(look.stacks.calls)

    assert look.review() == look.review(FAULT) == first
    assert look.stacks.calls == calls
    assert look.world.stage(look.rollout).succeeded == 1


def test_who_never_had_a_turn_is_not_looked_at() -> None:
    look = Look()
    look.turn = Turn(look.rollout, 1, Item(tenant("nobody"), NEXT_VERSION), "child")

    assert look.review() == Settled(Result.SKIPPED)
    assert look.stacks.calls == []


def test_what_others_record_at_the_same_moment_is_not_lost() -> None:
    look = Look()
    look.review()
    look.world.ledger.meddlers.append(lambda: look.world.touch_stage(look.rollout, skipped=5))

    assert look.review() == Settled(Result.SUCCEEDED)
    stage = look.world.stage(look.rollout)
    assert (stage.succeeded, stage.skipped) == (1, 5)
