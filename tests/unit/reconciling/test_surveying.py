"""A survey of a large fleet takes several functions: each continues where the one before had to stop."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import count

import pytest

from orchestrator.common.errors import Throttled
from orchestrator.reconciling.checkpoints import CLAIM, MAX_DURATION, Checkpoint
from orchestrator.reconciling.ports import StackPage, SurveyedStack, TokenRefused
from orchestrator.reconciling.records import SURVEY, Kind, Reconciliation, ReconciliationStatus, Spec
from orchestrator.reconciling.surveying import MAX_RESTARTS, SAVE_EVERY
from orchestrator.tenants.listings import ListedTenant
from orchestrator.tenants.records import TenantState
from tests.fakes import NOON, OTHER_QUEUE
from tests.unit.reconciling.world import RECONCILIATION, FleetWithStacks, MeddledTable, kinds, queue_of, tenant

LOOK = Spec(repair=False, detect_drift=True)
RUNNING, DONE, INCOMPLETE = (
    ReconciliationStatus.RUNNING,
    ReconciliationStatus.DONE,
    ReconciliationStatus.INCOMPLETE,
)


class CountedTable(MeddledTable):
    """A table that counts how often each tenant was listed."""

    def __init__(self) -> None:
        super().__init__()
        self.queries = 0

    def tenants_in(
        self, state: TenantState, *, version: str | None = None, prefix: str = "", after: str | None = None, limit: int
    ) -> Sequence[ListedTenant]:
        self.queries += 1
        return super().tenants_in(state, version=version, prefix=prefix, after=after, limit=limit)


def a_fleet(tenants: int = 6) -> FleetWithStacks:
    """A fleet with findings of every phase of a survey, on pages of two stacks."""
    world = FleetWithStacks()
    world.table = CountedTable()
    for release in FleetWithStacks().table.releases():
        world.table.record_release(release)
    world.drifting(tenants)
    world.add("differs", queue=OTHER_QUEUE)
    world.queues.gone.add(queue_of(world.add("vanished")).url)
    world.take_stack_away(world.add("missing"))
    world.delete(world.add("orphan"))
    world.stacks.plant_done(tenant("stray"), queue=queue_of(tenant("stray")))
    world.survey.per_page = 2
    world.survey.looks_needed = 2
    return world


def at_most(checks: int) -> Callable[[], bool]:
    """The time of a function: it may begin so many steps."""
    steps = count(1)
    return lambda: next(steps) <= checks


def runs(world: FleetWithStacks, checks: int, spec: Spec = LOOK) -> Iterator[Reconciliation]:
    """The results of one function after another, until the reconciliation is over."""
    while True:
        result = world.reconcile(spec, has_time=at_most(checks))
        yield result
        if result.over:
            return


@pytest.mark.parametrize("checks", [1, 2, 3, 5, 8, 13])
def test_a_survey_that_is_continued_finds_the_same_as_one_without_a_break(checks: int) -> None:
    whole = a_fleet().reconcile(LOOK)
    world = a_fleet()
    *before, done = runs(world, checks)
    assert before
    assert {each.status for each in before} == {RUNNING}
    assert (done.status, done.reason) == (DONE, "")
    assert Counter(kinds(done)) == Counter(kinds(whole))
    assert (done.coverage, done.counts) == (whole.coverage, whole.counts)
    assert world.reconciliation_table.recorded[done.id] == done
    assert not world.reconciliation_table.unfinished


@pytest.mark.parametrize("tenants", [10, 100])
def test_a_survey_that_is_continued_lists_every_stack_once(tenants: int) -> None:
    world = a_fleet(tenants)
    functions = len(list(runs(world, 40)))
    assert functions > tenants // 40
    assert max(Counter(world.survey.pages).values()) == 1
    assert isinstance(world.table, CountedTable)
    # Each state is listed once, and the page at which a function had to stop is listed again by the next one.
    assert world.table.queries <= 2 * len(TenantState) + functions


def test_the_progress_is_shown_while_the_survey_waits_to_be_continued() -> None:
    world = a_fleet()
    for result in runs(world, 6):
        shown = world.reconciliation_table.recorded[RECONCILIATION]
        assert (shown.status, shown.coverage) == (result.status, result.coverage)


def test_repairs_are_not_repeated() -> None:
    world = a_fleet()
    *_, done = runs(world, 3, Spec())
    ordered = world.ordered()
    assert len(ordered) == len(set(ordered)) == done.ordered


def test_while_a_function_is_at_work_no_other_one_continues_the_survey() -> None:
    world = a_fleet()
    world.reconcile(LOOK, has_time=at_most(7))
    stopped = world.reconciliation_table.checkpoints[RECONCILIATION]
    working = replace(stopped, claimed_until=world.clock.now() + CLAIM)
    world.reconciliation_table.checkpoints[RECONCILIATION] = working
    pages = len(world.survey.pages)
    assert world.reconcile(LOOK).status is RUNNING
    assert len(world.survey.pages) == pages
    world.clock.advance(CLAIM)
    assert world.reconcile(LOOK).status is DONE


def test_the_work_of_a_function_that_died_is_continued_from_what_it_had_saved() -> None:
    whole, world = a_fleet().reconcile(LOOK), a_fleet()
    page, asked = world.survey.page, count(1)

    def slow(token: str | None) -> StackPage:
        world.clock.advance(SAVE_EVERY)
        if next(asked) > 3:
            raise KeyboardInterrupt  # The function's time is over, without a warning.
        return page(token)

    world.survey.page = slow  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        world.reconcile(LOOK)
    world.survey.page = page  # type: ignore[method-assign]
    assert world.reconcile(LOOK).status is RUNNING  # The function may still be at work.
    world.clock.advance(CLAIM)
    done = world.reconcile(LOOK)
    assert Counter(kinds(done)) == Counter(kinds(whole))
    assert max(Counter(world.survey.pages).values()) == 1


def test_a_function_stops_if_another_one_has_taken_over() -> None:
    world = a_fleet()
    world.reconcile(LOOK, has_time=at_most(4))
    page = world.survey.page

    def meanwhile(token: str | None) -> StackPage:
        table = world.reconciliation_table
        saved = table.checkpoints[RECONCILIATION]
        table.checkpoints[RECONCILIATION] = replace(saved, revision=saved.revision + 1)
        return page(token)

    world.survey.page = meanwhile  # type: ignore[method-assign]
    assert world.reconcile(LOOK, has_time=at_most(2)).status is RUNNING
    assert world.reconciliation_table.recorded[RECONCILIATION].status is RUNNING


def test_if_a_survey_is_invoked_twice_only_the_function_that_saves_first_is_continued() -> None:
    """Lambda may hand an asynchronous invocation over twice."""
    world = a_fleet()
    table, page = world.reconciliation_table, world.survey.page
    saved: list[Checkpoint] = []

    def meanwhile(token: str | None) -> StackPage:
        """The other function saves while this one lists the first stacks. Then there is one stack more."""
        world.survey.page = page  # type: ignore[method-assign]
        world.reconcile(LOOK, has_time=at_most(12))
        saved.append(table.checkpoints[RECONCILIATION])
        world.add("aaa-new")
        return page(token)

    world.survey.page = meanwhile  # type: ignore[method-assign]
    assert world.reconcile(LOOK, has_time=at_most(9)).status is RUNNING
    assert [table.checkpoints[RECONCILIATION]] == saved
    (position,) = (each.position for each in saved)
    done = world.reconcile(LOOK)
    assert (done.status, done.reason) == (DONE, "")
    assert done.coverage.all_stacks == len(position.marks)


def test_a_long_survey_is_continued_after_throttles() -> None:
    world = a_fleet()
    world.reconcile(LOOK, has_time=at_most(2))
    page = world.survey.page

    def throttled(_token: str | None) -> StackPage:
        raise Throttled("DescribeStacks: Rate exceeded")

    world.survey.page = throttled  # type: ignore[method-assign]
    assert world.reconcile(LOOK).status is RUNNING
    world.survey.page = page  # type: ignore[method-assign]
    assert world.reconcile(LOOK).status is DONE


def test_stacks_are_listed_again_if_cloudformation_refuses_the_token_of_the_function_before() -> None:
    whole, world = a_fleet().reconcile(LOOK), a_fleet()
    world.reconcile(LOOK, has_time=at_most(3))
    before = world.reconciliation_table.checkpoints[RECONCILIATION].position
    assert before.after
    world.survey.refused.add(before.after)
    world.reconcile(LOOK, has_time=at_most(2))
    assert world.reconciliation_table.checkpoints[RECONCILIATION].position.list_id != before.list_id
    world.survey.refused.clear()
    done = world.reconcile(LOOK)
    assert (done.status, done.coverage) == (DONE, whole.coverage)
    assert Counter(kinds(done)) == Counter(kinds(whole))


def test_a_survey_ends_if_cloudformation_refuses_every_token() -> None:
    world = a_fleet()
    world.survey.refused.add("4")
    with pytest.raises(TokenRefused):
        deque(runs(world, 3), maxlen=0)
    assert world.survey.pages.count("4") == MAX_RESTARTS + 1
    assert world.reconciliation_table.recorded[RECONCILIATION].status is INCOMPLETE
    assert not world.reconciliation_table.unfinished


def test_a_survey_is_given_up_after_a_day() -> None:
    world = a_fleet()
    world.reconcile(LOOK, has_time=at_most(7))
    world.clock.advance(MAX_DURATION + timedelta(seconds=1))
    done = world.reconcile(LOOK)
    assert (done.status, done.reason) == (INCOMPLETE, "It has not ended within 24 hours.")
    assert not world.reconciliation_table.unfinished


def test_the_next_schedule_continues_a_survey_that_has_not_ended() -> None:
    world = a_fleet()
    first = world.reconciliations.to_run(SURVEY)
    assert first is not None
    assert world.reconciler(has_time=at_most(7)).run(first).status is RUNNING
    assert SURVEY not in world.reconciliation_table.recorded
    assert world.reconciliations.unfinished() == [SURVEY]
    world.clock.advance(timedelta(hours=6))
    later = world.reconciliations.to_run(SURVEY)
    assert later is not None
    done = world.reconciler().run(later)
    assert (done.status, done.started_at) == (DONE, NOON)
    assert max(Counter(world.survey.pages).values()) == 1
    assert world.reconciliations.unfinished() == []


def test_an_ended_reconciliation_is_not_continued() -> None:
    world = a_fleet()
    asked = world.reconciliations.start(LOOK, "ada")
    world.reconciler(has_time=at_most(7)).run(asked)
    assert world.reconciliations.unfinished() == [asked.id]
    # The function died after it had recorded the result.
    ended = replace(world.reconciliation_table.recorded[asked.id], status=DONE)
    world.reconciliation_table.recorded[asked.id] = ended
    assert world.reconciliations.unfinished() == []
    assert not world.reconciliation_table.unfinished


def test_stacks_of_other_people_are_counted_once() -> None:
    world = a_fleet()
    world.survey.others = [SurveyedStack("other", world.stacks_of(tenant("t00"))[0])]
    *_, done = runs(world, 4)
    assert done.coverage.all_stacks == len(world.stacks.living) + 1
    assert Kind.FOREIGN_STACK not in done.counts
