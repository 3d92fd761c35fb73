"""A stack that is kept ready is given to one tenant, whatever happens at whatever call, and however it ends.

Each test plays one thing, and lets another one happen in full at the first call of it to the outside, then at the
second, and so on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import count, product
from typing import Any

import pytest

from orchestrator.common.errors import BerthError
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.writes import Check, Missing, Put, RowAbsent, RowExists, Update, any_of
from orchestrator.composition import UseCases
from orchestrator.pool import maintaining, taking
from orchestrator.pool.records import Pool
from orchestrator.rollouts.releasing import ReleaseOrdered
from orchestrator.tenants import own_stack, queue_metadata
from orchestrator.tenants.provisioning import Answer, Provisioning
from orchestrator.tenants.ready import Ready
from orchestrator.tenants.records import Metadata, Request, Run
from orchestrator.tenants.stack_ports import Stack, Stacks
from orchestrator.tenants.writes import Append, MetadataKey, Transition, Write
from tests.fakes import NEXT_VERSION, VERSION
from tests.simulation.aws.executions import Crash, FaultInjector, Moment
from tests.simulation.pool_world import ACME, GLOBEX, HOOLI, INITECH, At, PoolWorld
from tests.simulation.world import A_MOMENT

MAX_CALLS = 80

Action = Callable[[PoolWorld], None]


def _acme_asks(world: PoolWorld) -> None:
    world.clock.advance(A_MOMENT)  # Otherwise the two entries of the history would be the same.
    world.get_queue(ACME)


def _an_operator_creates_acme(world: PoolWorld) -> None:
    world.clock.advance(A_MOMENT)
    world.create(ACME)


def _globex_asks(world: PoolWorld) -> None:
    world.get_queue(GLOBEX)


def _the_pool_is_maintained(world: PoolWorld) -> None:
    world.maintain()
    world.run_executions()


def _a_release_comes(world: PoolWorld) -> None:
    """The stacks that are ready are out of date, and are deleted."""
    world.release = NEXT_VERSION
    world.maintain()
    world.run_executions()


def _the_pool_is_switched_off(world: PoolWorld) -> None:
    world.warm_pool = 0
    world.maintain()
    world.run_executions()


def _stacks_report_their_queues(world: PoolWorld) -> None:
    """CloudFormation calls the stacks' custom resources once more, for the tenants that the stacks know."""
    for stack_id, fake in list(world.stacks.all.items()):
        if fake.stack.status in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
            world._custom_resource(stack_id, had_one=True)


@pytest.fixture(autouse=True)
def _tenants_try_different_stacks_first(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = count()

    def rotated(candidates: list[TenantId], _tenant: TenantId) -> list[TenantId]:
        start = next(turns) % max(1, len(candidates))
        return [*candidates[start:], *candidates[:start]]

    monkeypatch.setattr(taking, "in_order", rotated)


OTHERS: dict[str, Action] = {
    "another tenant asks": _globex_asks,
    "the same tenant asks": _acme_asks,
    "an operator creates the same tenant": _an_operator_creates_acme,
    "the pool is maintained": _the_pool_is_maintained,
    "a release comes": _a_release_comes,
    "the pool is switched off": _the_pool_is_switched_off,
    "stacks report their queues": _stacks_report_their_queues,
}


def _asks(world: PoolWorld, at: At) -> None:
    world.get_queue(ACME, at.around)


def _is_created(world: PoolWorld, at: At) -> None:
    world.create(ACME, at.around)


def _maintains(world: PoolWorld, at: At) -> None:
    world.maintain(at.around)


def _replaces(world: PoolWorld, at: At) -> None:
    world.release = NEXT_VERSION
    world.maintain(at.around)


def _empties(world: PoolWorld, at: At) -> None:
    world.empty(at.around)


FIRST: dict[str, Callable[[PoolWorld, At], None]] = {
    "a tenant asks": _asks,
    "an operator creates a tenant": _is_created,
    "the pool is maintained": _maintains,
    "the pool is replaced": _replaces,
    "the pool is emptied": _empties,
}


def _play(first: Callable[[PoolWorld, At], None], other: Action, *, size: int = 1) -> None:
    for call in range(1, MAX_CALLS):
        world = PoolWorld(warm_pool=size).fill()
        at = At(call, lambda world=world: other(world))  # type: ignore[misc]
        first(world, at)
        world.check()
        world.run_executions()
        world.check()
        for tenant in (ACME, GLOBEX):
            world.get_queue(tenant)
        world.settle()
        _stacks_report_their_queues(world)
        for tenant in (ACME, GLOBEX):
            assert isinstance(world.get_queue(tenant), Ready), f"{tenant} has no queue"
        world.check()
        world.check_served(ACME, GLOBEX)
        if at.calls < call:
            return
    pytest.fail(f"There are more than {MAX_CALLS} calls.")


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS.keys())
@pytest.mark.parametrize("first", FIRST.values(), ids=FIRST.keys())
def test_no_stack_has_two_tenants(first: Callable[[PoolWorld, At], None], other: Action, size: int) -> None:
    _play(first, other, size=size)


@pytest.mark.parametrize("moment", Moment)
def test_a_function_that_dies_while_a_tenant_takes_a_stack_gives_it_to_nobody_else(moment: Moment) -> None:
    for call in range(1, MAX_CALLS):
        world = PoolWorld(warm_pool=1).fill()
        faults = FaultInjector(call, moment)
        with suppress(Crash):
            world.get_queue(ACME, faults.around)
        world.get_queue(GLOBEX)
        world.get_queue(ACME)
        world.settle()
        world.get_queue(GLOBEX)
        world.get_queue(ACME)
        world.check()
        world.check_served(ACME, GLOBEX)
        if faults.calls < call:
            return
    pytest.fail(f"There are more than {MAX_CALLS} calls.")


# A process of the function that was called before, and has seen which stacks are ready


class Process:
    """A process whose calls to the outside something may happen at."""

    def __init__(self, world: PoolWorld) -> None:
        self.at = At(0, lambda: None)
        self.use_cases = world.use_cases(lambda name, call: self.at.around(name, call))


def _nothing_happens(_world: PoolWorld) -> None:
    pass


def _others_take_all_that_are_ready(world: PoolWorld) -> None:
    for number in range(world.ready()):
        world.get_queue(TenantId(f"other-{number}"))


def _the_stacks_are_replaced(world: PoolWorld) -> None:
    """By others at the same release."""
    for switched in (0, world.warm_pool):
        world.warm_pool = switched
        for _ in range(3):
            _the_pool_is_maintained(world)


BETWEEN: dict[str, Action] = {
    "nothing": _nothing_happens,
    "others take all": _others_take_all_that_are_ready,
    "the stacks are replaced": _the_stacks_are_replaced,
    **OTHERS,
}


def _play_with_two_processes(between: Action, other: Action) -> None:
    for call in range(1, MAX_CALLS):
        world = PoolWorld(warm_pool=3).fill()
        first, second = Process(world), Process(world)
        for process, tenant in ((first, INITECH), (second, HOOLI)):
            assert isinstance(world.get_queue(tenant, process=process.use_cases), Ready)
        between(world)
        first.at = At(
            call,
            lambda world=world, process=second: (  # type: ignore[misc]
                world.get_queue(GLOBEX, process=process.use_cases),
                other(world),
            ),
        )
        world.clock.advance(A_MOMENT)
        world.get_queue(ACME, process=first.use_cases)
        world.check()
        world.settle()
        for tenant in (ACME, GLOBEX, INITECH, HOOLI):
            world.get_queue(tenant)
        world.settle()
        for tenant in (ACME, GLOBEX, INITECH, HOOLI):
            assert isinstance(world.get_queue(tenant), Ready), f"{tenant} has no queue"
        world.check()
        world.check_served(ACME, GLOBEX, INITECH, HOOLI)
        if first.at.calls < call:
            return
    pytest.fail(f"There are more than {MAX_CALLS} calls.")


@pytest.mark.parametrize("other", [_nothing_happens, _the_pool_is_maintained, _a_release_comes])
@pytest.mark.parametrize("between", BETWEEN.values(), ids=BETWEEN.keys())
def test_no_stack_has_two_tenants_whatever_two_processes_have_seen_before(between: Action, other: Action) -> None:
    _play_with_two_processes(between, other)


def _ask_after_a_withdrawal() -> Answer:
    """A process has seen stacks at a release that is withdrawn then."""
    world = PoolWorld(warm_pool=2, release=NEXT_VERSION).fill()
    process = world.use_cases()
    seen = world.get_queue(INITECH, process=process)
    assert isinstance(seen, Ready)
    assert seen.version == NEXT_VERSION
    assert isinstance(world.use_cases().releasing.withdraw(NEXT_VERSION, "ada"), ReleaseOrdered)
    return world.get_queue(ACME, process=process)


def test_a_process_that_has_seen_stacks_at_a_release_gives_none_of_them_once_it_is_withdrawn() -> None:
    answer = _ask_after_a_withdrawal()
    assert isinstance(answer, Provisioning)
    assert f"-{VERSION}-" in answer.execution


def test_a_planted_bug_is_found_if_the_release_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(UseCases, "choose_release", cache(UseCases.choose_release))
    assert isinstance(_ask_after_a_withdrawal(), Ready)


# Planted bugs


def _with_weaker(weaken: Callable[[Write], Write]) -> Callable[[pytest.MonkeyPatch], None]:
    """The transaction lacks conditions."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        real = taking.taken

        def broken(warm: Metadata, run: Run) -> Transition:
            return [weaken(write) for write in real(warm, run)]

        patch.setattr(taking, "taken", broken)

    return plant


def _is_of(write: Write, *, warm: bool) -> bool:
    return not isinstance(write, Append) and write.key.tenant.is_warm is warm


def _of_any_stack(write: Write) -> Write:
    return replace(write, condition=None) if isinstance(write, Put) and _is_of(write, warm=True) else write


def _of_any_tenant(write: Write) -> Write:
    if isinstance(write, Put) and _is_of(write, warm=False):
        return replace(write, condition=None)
    return replace(write, condition=ANYTHING) if isinstance(write, Check) and _is_of(write, warm=False) else write


def _of_a_stack_that_goes(write: Write) -> Write:
    if isinstance(write, Put) and _is_of(write, warm=True):
        return replace(write, condition=Missing("given_to"))
    return replace(write, condition=ANYTHING) if isinstance(write, Check) and _is_of(write, warm=True) else write


ANYTHING = any_of(RowAbsent(), RowExists())


def _names_are_enough(patch: pytest.MonkeyPatch) -> None:
    """A stack is looked for by its name also after a tenant has taken it."""

    def by_name(tenant: TenantId, metadata: Metadata | None, stacks: Stacks) -> Stack | None:
        return stacks.find(own_stack.recorded_stack(metadata) or stacks.names.stack_of(tenant))

    patch.setattr(own_stack, "find_stack", by_name)


def _reports_are_believed(patch: pytest.MonkeyPatch) -> None:
    """A stack that has not learned its tenant records its queue where it was."""
    real = queue_metadata.record_queue

    def record(tenant: TenantId, **named: Any) -> None:
        metadata = named["reader"].metadata(tenant)
        if tenant.is_warm and metadata is not None and metadata.given_to is not None:
            recorded = {"queue": named["reported"], "stack_id": named["stack_id"], "version": VERSION}
            clears = ("given_to", "gone_stack_id")
            named["reader"].apply([Update(MetadataKey(tenant), recorded, clears=clears)])
        else:
            real(tenant, **named)

    patch.setattr(queue_metadata, "record_queue", record)


def _taken_is_unwanted(patch: pytest.MonkeyPatch) -> None:
    """The pool deletes stacks by their names, also those that a tenant has taken."""
    _names_are_enough(patch)
    real = maintaining.Maintaining._look_after

    def look(self: maintaining.Maintaining, pool: Pool, warm: TenantId, *rest: Any) -> tuple[Pool, Any]:
        metadata = self.tenants.metadata(warm)
        if metadata is not None and metadata.given_to is not None:
            self.lifecycle.delete(warm, Request(by="pool", force=True))
            return pool.without(warm.value), rest[-1]
        return real(self, pool, warm, *rest)

    patch.setattr(maintaining.Maintaining, "_look_after", look)


@dataclass(frozen=True)
class Bug:
    plant: Callable[[pytest.MonkeyPatch], None]
    found: str


GOES = "was deleted|is being deleted|has no queue|two queues|is not served"
BUGS = {
    "a stack is taken that was taken": Bug(_with_weaker(_of_any_stack), "one stack|one queue"),
    "a tenant takes a second stack": Bug(_with_weaker(_of_any_tenant), "two queues"),
    "a stack is taken that is being deleted": Bug(_with_weaker(_of_a_stack_that_goes), GOES),
    "a stack is found by its name": Bug(_names_are_enough, GOES),
    "a stack reports its queue for nobody": Bug(_reports_are_believed, "one stack|one queue"),
    "the pool deletes what was taken": Bug(_taken_is_unwanted, GOES),
}
SEEN_BUGS = {
    "a stack that was seen earlier is given without a condition": Bug(
        _with_weaker(_of_any_stack), "one stack|one queue"
    ),
    "a stack that was seen earlier is given though its record has gone": Bug(
        _with_weaker(_of_a_stack_that_goes), f"one stack|one queue|{GOES}"
    ),
}


@pytest.mark.parametrize("bug", BUGS.values(), ids=BUGS.keys())
def test_a_planted_bug_is_found(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    bug.plant(monkeypatch)
    plays = product(FIRST.values(), OTHERS.values(), (1, 2))
    _find(bug, (partial(_play, first, other, size=size) for first, other, size in plays))


@pytest.mark.parametrize("bug", SEEN_BUGS.values(), ids=SEEN_BUGS.keys())
def test_a_planted_bug_is_found_in_what_processes_have_seen(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    bug.plant(monkeypatch)
    between = (each for name, each in BETWEEN.items() if name not in OTHERS)
    _find(bug, (partial(_play_with_two_processes, each, _nothing_happens) for each in between))


def _find(bug: Bug, plays: Iterable[Callable[[], None]]) -> None:
    found: list[str] = []
    for play in plays:
        try:
            play()
        except (AssertionError, BerthError) as broken:
            found.append(str(broken))
            if re.search(bug.found, found[-1]):
                return
    pytest.fail(f"It was not found. Found instead: {found}")
