"""The change set of an update: only the one that Berth created is executed, and only if it is as requested."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.common.errors import Conflict
from orchestrator.releases.template_contract import KMS_KEY_PARAMETER
from orchestrator.tenants.outcomes import Done, Reviewing, Started
from orchestrator.tenants.stack_ports import ChangeSetState
from tests.fakes import (
    ACME,
    NEXT_VERSION,
    QUEUE,
    FakeStacks,
    InMemoryTable,
    a_release,
    parameters_of,
    some_metadata,
    stack_arn,
    take,
)
from tests.unit.updates import RUN, Updating, failure, why


@pytest.fixture
def world() -> Updating:
    return Updating()


# Change sets


def test_a_change_set_that_is_being_created_is_waited_for(world: Updating) -> None:
    stack_id = world.plant()
    world.stacks.review_takes = 3
    world.review()
    for _ in range(3):
        assert world.start() == Reviewing()
        assert not world.touched
    assert world.start() == Started(stack_id)


def test_the_change_set_of_a_stack_that_has_changed_since_is_created_again(world: Updating) -> None:
    stack_id = world.plant()
    world.draw_up(ChangeSetState.STALE)
    assert "has changed since" in why(world.start())
    assert not world.change_sets
    assert not world.touched
    assert world.drive() == Done(stack_id, QUEUE, NEXT_VERSION)


def test_a_change_set_that_cannot_be_created_is_a_failure(world: Updating) -> None:
    world.plant()
    world.draw_up(ChangeSetState.FAILED, "Template format error: unsupported structure.")
    refused = failure(world.drive())
    assert "Template format error" in refused.reason
    assert refused.failed_stack is None
    assert not world.touched
    assert not world.change_sets


def test_changes_that_were_made_before_a_crash_are_not_made_again(world: Updating) -> None:
    stack_id = world.plant()
    world.review()
    assert world.start() == world.start() == Started(stack_id)
    world.stacks.settle()
    assert world.start() == Started(stack_id)
    assert world.stacks.calls.count("execute_change_set") == 1
    assert world.inspect(Started(stack_id)) == Done(stack_id, QUEUE, NEXT_VERSION)


def test_changes_whose_making_is_not_visible_yet_are_not_made_again(world: Updating) -> None:
    stack_id = world.plant()
    world.draw_up(ChangeSetState.EXECUTED)
    assert world.start() == Started(stack_id)
    assert "has not begun" in why(world.inspect(Started(stack_id)))
    assert not world.touched


def test_a_change_set_that_another_request_has_just_executed_is_checked_again() -> None:
    class Overtaken(FakeStacks):
        def execute_change_set(self, stack_id: str, change_set: str, *, client_token: str) -> None:
            super().execute_change_set(stack_id, change_set, client_token=client_token)
            raise Conflict("ChangeSet is in EXECUTE_IN_PROGRESS status")

    world = Updating(stacks=Overtaken())
    stack_id = world.plant()
    world.review()
    assert "EXECUTE_IN_PROGRESS" in why(world.start())
    assert world.drive() == Done(stack_id, QUEUE, NEXT_VERSION)
    assert world.stacks.calls.count("execute_change_set") == 1


# Changes that somebody else drew up


EVIL = "https://evil.example/template.json"


def evil_changes(world: Updating, stack_id: str, name: str) -> str:
    """Somebody draws up changes to another template, with all the rest as Berth would have it."""
    world.stacks.digests[EVIL] = "e" * 64
    return world.stacks.add_changes(
        stack_id, name, EVIL, state=ChangeSetState.READY, parameters=parameters_of(ACME), changes=()
    )


def made(world: Updating) -> str:
    """The template that the stack is being changed to."""
    (fake,) = world.stacks.all.values()
    return world.stacks.executed(fake)


@pytest.mark.parametrize("name", [RUN.attempt.client_token, "berth-name-1"], ids=["the client token", "guessed"])
def test_changes_that_somebody_drew_up_before_under_their_name_are_not_made(world: Updating, name: str) -> None:
    stack_id = world.plant()
    evil_changes(world, stack_id, name)
    assert world.drive() == Done(stack_id, QUEUE, NEXT_VERSION)
    assert made(world) == a_release(NEXT_VERSION).template_url


def test_another_change_set_with_the_same_name_is_not_executed(world: Updating) -> None:
    stack_id = world.plant()
    world.review()
    world.stacks.delete_change_set(stack_id, "berth-name-1")
    evil_changes(world, stack_id, "berth-name-1")
    assert world.start() == Reviewing()
    assert not world.touched
    assert world.drive() == Done(stack_id, QUEUE, NEXT_VERSION)


def test_changes_are_made_by_the_id_that_cloudformation_gave_them(world: Updating) -> None:
    stack_id = world.plant()
    world.review()
    lock = world.table.lock(ACME)
    assert lock is not None
    assert lock.change_set is not None
    assert lock.change_set.endswith("changeSet/berth-name-1/1")
    evil_changes(world, stack_id, "berth-name-1")
    world.start()
    assert list(world.stacks.all[stack_id].change_sets) == [lock.change_set]


@pytest.mark.parametrize("then", ["template_digest", "execute_change_set"])
def test_a_change_set_that_somebody_deletes_is_created_again(then: str) -> None:
    class Deleting(FakeStacks):
        def _called(self, method: str) -> None:
            super()._called(method)
            if method == then and self.calls.count(then) == 1:
                for fake in self.all.values():
                    fake.change_sets.clear()

    world = Updating(stacks=Deleting())
    stack_id = world.plant()
    world.review()
    assert "does not exist" in why(world.start())
    assert world.drive() == Done(stack_id, QUEUE, NEXT_VERSION)


STRANGE: dict[str, dict[str, Any]] = {
    "other parameters": {"parameters": {"TenantId": "acme", "MetadataServiceToken": "arn:evil"}},
    "capabilities": {"extras": ["capabilities"]},
    "imported resources": {"extras": ["imported resources"]},
    "somebody's topic": {"attached": frozenset({"arn:aws:sns:eu-west-1:0:somebody's topic"})},
    "another stack": {"stack_id": stack_arn(number=9)},
}


@pytest.mark.parametrize("strange", STRANGE)
def test_changes_that_berth_did_not_ask_for_are_not_made(world: Updating, strange: str) -> None:
    """Even if they have the very id: whoever can write to the table, or to the bucket, is not obeyed, either."""
    stack_id = world.plant()
    world.review()
    ((change_set, (drawn_up, url)),) = world.stacks.all[stack_id].change_sets.items()
    world.stacks.all[stack_id].change_sets[change_set] = (replace(drawn_up, **STRANGE[strange]), url)
    refused = failure(world.start())
    assert strange in refused.reason
    assert change_set in refused.reason
    assert not world.touched
    assert not world.change_sets


@pytest.mark.parametrize("key", ["", "the former key"], ids=["none", "another"])
def test_a_change_set_with_a_former_key_is_created_again(key: str) -> None:
    world = Updating()
    world.table = InMemoryTable()
    world.table.record_release(a_release(NEXT_VERSION, parameters=[KMS_KEY_PARAMETER]))
    world.table.plant_metadata(some_metadata())
    take(world.table, world.run)
    stack_id = world.plant()
    world.review()
    ((change_set, (drawn_up, url)),) = world.stacks.all[stack_id].change_sets.items()
    former = replace(drawn_up, parameters={**drawn_up.parameters, KMS_KEY_PARAMETER: key})
    world.stacks.all[stack_id].change_sets[change_set] = (former, url)
    assert why(world.start()) == "another key was deployed since the change set was created"
    assert not world.touched
    assert not world.change_sets
    assert world.drive() == Done(stack_id, QUEUE, NEXT_VERSION)


def test_topics_and_alarms_attached_to_a_stack_do_not_prevent_its_update(world: Updating) -> None:
    stack_id, attached = world.plant(), frozenset({"arn:aws:sns:eu-west-1:0:ops", "an alarm"})
    world.stacks.change(stack_id, "CREATE_COMPLETE", attached=attached)
    world.review()
    ((change_set, (drawn_up, url)),) = world.stacks.all[stack_id].change_sets.items()
    world.stacks.all[stack_id].change_sets[change_set] = (replace(drawn_up, attached=attached), url)
    assert world.drive() == Done(stack_id, QUEUE, NEXT_VERSION)


def test_changes_from_a_template_that_is_not_the_releases_are_not_made(world: Updating) -> None:
    world.plant()
    world.stacks.digests[a_release(NEXT_VERSION).template_url] = "e" * 64
    refused = failure(world.drive())
    assert f"another template than that of release {NEXT_VERSION}" in refused.reason
    assert not world.touched


def test_an_update_calls_cloudformation_no_more_often_to_change_something_than_it_has_to(world: Updating) -> None:
    world.plant()
    world.drive()
    changing = [call for call in world.stacks.calls if call not in {"find", "queue", "changes", "template_digest"}]
    assert changing == ["create_change_set", "execute_change_set"]
    assert world.stacks.calls.count("template_digest") == 1
