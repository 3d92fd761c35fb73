"""Every operation over the fakes, crashing before and after every single call that it makes to the outside.

A crash is repeated as the machine's Retry says; a killed execution is followed by the next that is asked for.
Whatever happens, the promises hold in the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product

import pytest

from orchestrator.common.errors import Throttled
from orchestrator.tenants.decisions import Ready
from orchestrator.tenants.get_queue import SUSPECT_AFTER
from orchestrator.tenants.records import Operation, Status
from tests.fakes import ACME
from tests.simulation.player import Crash, Execution, Killed, Moment, Trouble
from tests.simulation.promises import ENDED, assert_the_promises_hold, told_of
from tests.simulation.stories import CREATES, DELETES, UPDATES, Story, by_asking
from tests.simulation.world import A_MOMENT, World

STORIES = {
    f"{operation.lower()}: {story.name}": story
    for operation, stories in zip(Operation, (CREATES, UPDATES, DELETES), strict=True)
    for story in stories
}


def begin(story: Story, trouble: Trouble) -> Execution:
    world = story.arrange()
    name = story.order(world)
    assert name
    return Execution(world, name, trouble.around)


def calls_of(story: Story) -> int:
    """How many calls to the outside it takes when nothing goes wrong."""
    trouble = Trouble()
    begin(story, trouble).play()
    return trouble.calls


def every_trouble(story: Story) -> Iterator[tuple[int, Moment]]:
    return product(range(1, calls_of(story) + 1), Moment)


@contextmanager
def told_where(at_call: int, moment: Moment) -> Iterator[None]:
    """One test is many: say which failed."""
    try:
        yield
    except BaseException as failed:
        failed.add_note(f"{moment.value} call {at_call}")
        raise


every_story = pytest.mark.parametrize("story", [pytest.param(story, id=name) for name, story in STORIES.items()])


def play_undisturbed(story: Story) -> None:
    execution = begin(story, Trouble())
    assert execution.play() == (story.ends is Status.SUCCESS)
    assert_the_promises_hold(execution.world)
    story.then(execution.world)


@every_story
def test_undisturbed_the_story_ends_as_it_should(story: Story) -> None:
    play_undisturbed(story)


@every_story
def test_a_crash_anywhere_has_the_effect_of_none(story: Story) -> None:
    for at_call, moment in every_trouble(story):
        with told_where(at_call, moment):
            trouble = Trouble(at_call, moment)
            execution = begin(story, trouble)

            succeeded = execution.play()

            assert trouble.calls > at_call
            assert succeeded == (story.ends is Status.SUCCESS)
            assert_the_promises_hold(execution.world)
            story.then(execution.world)
            assert told_of(execution.world, execution.name) == [Status.STARTED, story.ends]


@every_story
def test_an_execution_that_is_killed_anywhere_is_healed_by_asking_again(story: Story) -> None:
    for at_call, moment in every_trouble(story):
        with told_where(at_call, moment):
            killed = begin(story, Trouble(at_call, moment, Killed))
            with pytest.raises(Killed):
                killed.play()
            world = killed.world
            world.let_time_pass(SUSPECT_AFTER + A_MOMENT)

            successor = story.ask_again(world)
            if successor is not None:
                assert successor != killed.name
                succeeded = Execution(world, successor).play()
                assert succeeded or story.ends is Status.FAILURE
                assert told_of(world, successor) in ENDED

            assert_the_promises_hold(world)
            if story.ends is Status.SUCCESS:
                story.then(world)


def test_throttling_never_fails_a_run_by_itself() -> None:
    world = World()
    world.stacks.throttled_calls = 40
    name = by_asking(world)
    assert name
    assert Execution(world, name).play()
    assert_the_promises_hold(world)
    assert isinstance(world.ask(), Ready)


def test_the_trouble_strikes_where_it_is_told_to() -> None:
    heard: list[str] = []
    before, after = Trouble(2, Moment.BEFORE), Trouble(2, Moment.AFTER)
    for trouble in (before, after):
        trouble.around("call", lambda: heard.append("first"))
        with pytest.raises(Crash):
            trouble.around("call", lambda: heard.append(trouble.moment.value))  # noqa: B023 - called at once
    assert heard == ["first", "first", "after"]
    with pytest.raises(Throttled):
        Trouble(1, Moment.BEFORE, Throttled).around("call", lambda: heard.append("never"))


def test_the_machines_are_played_to_their_last_state() -> None:
    """Nothing is left to Finish or RecordFailure that the player would not show."""
    world = World()
    name = by_asking(world)
    assert name
    execution = Execution(world, name)
    passed = []
    while execution.running:
        passed.append(execution.at)
        execution.step()
    assert passed == [
        "Begin",
        "HasBegun",
        "StartStack",
        "AwaitStack",
        "AwaitStack",
        "InspectStack",
        "HasSettled",
        "Finish",
    ]
    assert world.table.metadata(ACME)
