"""The turns of creates: who is admitted, who waits and how long, and what becomes of turns whose holder has died."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from orchestrator.common.tenant_ids import TenantId
from orchestrator.rollouts.create_turns import AWAIT_ADMISSION, MAX_CREATES_AT_ONCE, CreateTurns
from orchestrator.rollouts.pacing import REACTION_TIME, Pace
from orchestrator.tenants.deadlines import DEADLINE, MAX_WAIT_FOR_TURN
from orchestrator.tenants.decisions import Wait, decide
from orchestrator.tenants.order_results import Accepted
from orchestrator.tenants.outcomes import Again, Begun, Busy, Done, GaveUp, Published, Queued, Waiting
from orchestrator.tenants.provisioning import CHECK_EXECUTION_AFTER, Provisioning
from orchestrator.tenants.records import Operation, Request, Run, Status, TenantState
from orchestrator.tenants.state import state_of
from tests.fakes import ACME, NOON, QUEUE, VERSION, Operations, a_run, stack_arn
from tests.present import present

AT_ONCE = Pace.initial(MAX_CREATES_AT_ONCE).at_once
A_MINUTE = timedelta(minutes=1)


class Storm(Operations):
    """More creates than have their turn at once."""

    def run_of(self, number: int) -> Run:
        return a_run(tenant=TenantId(f"tenant-{number}"), started_at=self.clock.now())

    def ask(self, run: Run) -> object:
        return self.begin(run)

    def fill(self) -> list[Run]:
        """Start the maximum number of creates that have their turn at once."""
        runs = [self.run_of(number) for number in range(AT_ONCE)]
        assert [self.ask(run) for run in runs] == [Begun()] * AT_ONCE
        return runs

    def queue(self, run: Run) -> str:
        """The create has to wait. Returns its task token."""
        assert self.ask(run) == Queued()
        token = f"token of {run.execution}"
        self.executions.waiting.add(token)
        assert self.await_admission(run, task_token=token) == Waiting()
        return token

    def end(self, run: Run) -> None:
        assert self.finish(run, Done(stack_arn(run.tenant), QUEUE, VERSION)) == Published()

    @property
    def holders(self) -> set[str]:
        return set(present(self.create_turns.turns()).holders)

    def waits(self, token: str) -> bool:
        return token in self.executions.waiting


@pytest.fixture
def storm() -> Storm:
    return Storm()


# Turns


def test_creates_are_admitted_up_to_the_limit_and_the_others_wait(storm: Storm) -> None:
    storm.fill()
    assert storm.ask(storm.run_of(99)) == Queued()
    assert len(storm.holders) == AT_ONCE


def test_a_create_that_asks_twice_has_one_turn(storm: Storm) -> None:
    run = storm.run_of(1)
    assert storm.ask(run) == storm.ask(run) == Begun()
    assert storm.holders == {run.execution}


def test_a_create_that_ends_wakes_those_that_are_next_in_the_order_of_their_requests(storm: Storm) -> None:
    first, *_ = storm.fill()
    tokens = [storm.queue(storm.run_of(number)) for number in (101, 102, 103, 104)]
    storm.end(first)
    # One turn is free, and another one because the limit was fully used and the create has succeeded.
    assert [storm.waits(token) for token in tokens] == [False, False, True, True]
    assert storm.executions.results[tokens[0]] == {"outcome": "admitted"}


def test_a_create_that_fails_gives_its_turn_back_too(storm: Storm) -> None:
    first, *_ = storm.fill()
    waiting = storm.run_of(101)
    token = storm.queue(waiting)
    storm.record_failure(first)
    assert not storm.waits(token)
    assert first.execution not in storm.holders
    assert storm.ask(waiting) == Begun()


def test_forged_creates_take_no_turns(storm: Storm) -> None:
    storm.executions.made_up_run = False
    for number in range(AT_ONCE):
        assert isinstance(storm.ask(storm.run_of(number)), Again)
    assert storm.holders == set()


def test_a_forged_payload_does_not_give_back_the_turn_of_a_create_that_has_one(storm: Storm) -> None:
    first, *_ = storm.fill()
    storm.executions.made_up_run = False
    assert isinstance(storm.ask(first), Again)
    assert first.execution in storm.holders


def test_a_create_that_comes_while_others_wait_joins_the_line(storm: Storm) -> None:
    first, *_ = storm.fill()
    storm.queue(storm.run_of(101))
    turns = present(storm.create_turns.turns())
    storm.create_turns.store(turns.given_back(first.execution, NOON, succeeded=False))  # Nobody was woken yet.
    assert storm.ask(storm.run_of(102)) == Queued()


def test_a_turn_that_was_given_back_before_the_ticket_was_stored_is_used(storm: Storm) -> None:
    first, *_ = storm.fill()
    late = storm.run_of(101)
    assert storm.ask(late) == Queued()
    storm.end(first)
    storm.executions.waiting.add("its token")
    storm.await_admission(late, task_token="its token")
    assert not storm.waits("its token")
    assert storm.ask(late) == Begun()


def test_a_create_that_asks_again_after_the_timeout_keeps_its_place(storm: Storm) -> None:
    storm.fill()
    early = storm.run_of(101)
    storm.queue(early)
    storm.queue(storm.run_of(102))
    storm.clock.advance(AWAIT_ADMISSION)
    storm.executions.waiting.add("another token")
    storm.await_admission(early, task_token="another token")
    assert present(storm.create_turns.first_ticket()).task_token == "another token"
    assert sorted(storm.create_turns.tickets) == [1, 2]


def test_a_create_behind_another_operation_of_its_tenant_gives_its_turn_to_others(storm: Storm) -> None:
    storm.create()
    delete = a_run(operation=Operation.DELETE)
    storm.begin(delete)
    assert storm.ask(a_run(2)) == Busy(delete.execution)
    assert storm.holders == set()


# The pace


def test_the_limit_grows_with_successes_until_cloudformation_throttles(storm: Storm) -> None:
    first, second, *_ = storm.fill()
    storm.end(first)
    assert present(storm.create_turns.turns()).pace.at_once == AT_ONCE + 1
    storm.clock.advance(REACTION_TIME)
    storm.throttling.count += 1
    storm.end(second)
    assert present(storm.create_turns.turns()).pace.limit < AT_ONCE + 1


def test_a_storm_never_exceeds_the_ceiling() -> None:
    turns = CreateTurns.initial(0, NOON)
    for number in range(1_000):
        while turns.has_room:
            name = f"{number}-{len(turns.holders)}"
            turns = turns.taken(name, ACME, NOON)
        turns = turns.given_back(next(iter(turns.holders)), NOON, succeeded=True)
    assert len(turns.holders) <= MAX_CREATES_AT_ONCE


def test_the_wait_follows_from_the_place_in_the_line_and_from_how_long_creates_take() -> None:
    initial = CreateTurns.initial(0, NOON)
    turns = replace(initial, pace=replace(initial.pace, slow_start=False), seconds_per_create=30.0)
    assert turns.wait_seconds(1) == -(-30 // AT_ONCE)
    assert turns.wait_seconds(10 * AT_ONCE) == 300
    assert replace(turns, tickets_left=9 * AT_ONCE).wait_seconds(10 * AT_ONCE) == 30


def test_until_cloudformation_has_throttled_the_wait_follows_from_the_highest_pace() -> None:
    initial = CreateTurns.initial(0, NOON)
    assert initial.wait_seconds(9_000) == 12_600  # 50 creates of 70 seconds at once.
    assert replace(initial, seconds_per_create=20.0).wait_seconds(9_000) == 6_000  # 1.5 creates per second.


def test_quick_creates_shorten_the_wait_also_before_cloudformation_has_throttled() -> None:
    turns = replace(CreateTurns.initial(0, NOON), seconds_per_create=1.0)
    assert turns.wait_seconds(10 * AT_ONCE) == 10


def test_a_create_that_was_woken_has_its_turn_however_cloudformation_throttles_meanwhile(storm: Storm) -> None:
    """So it enters few states: it never goes back into the line because the pace has dropped."""
    first, *_ = storm.fill()
    waiting = storm.run_of(101)
    token = storm.queue(waiting)
    storm.record_failure(first)
    assert not storm.waits(token)
    for _ in range(20):
        storm.clock.advance(REACTION_TIME)
        storm.throttling.count += 10
        storm.turns.leave("nobody's")  # Somebody else looks at the turns and sees the throttles.
    assert not present(storm.create_turns.turns()).has_room
    assert storm.ask(waiting) == Begun()


# Records


def test_a_create_that_waits_is_listed_as_being_provisioned_and_has_no_lock(storm: Storm) -> None:
    storm.fill()
    run = storm.run_of(101)
    storm.queue(run)
    (audit,) = storm.table.audits(run.tenant)
    assert (audit.status, audit.ticket, audit.execution) == (Status.STARTED, 1, run.execution)
    assert storm.table.lock(run.tenant) is None
    assert [each.tenant for each in storm.table.tenants_in(TenantState.PROVISIONING, limit=100)].count(run.tenant) == 1


def test_get_queue_says_how_long_the_create_waits_and_starts_nothing(storm: Storm) -> None:
    storm.fill()
    run = storm.run_of(101)
    storm.queue(run)
    answer = storm.get_queue(run.tenant)
    assert isinstance(answer, Provisioning)
    assert answer.execution == run.execution
    assert answer.wait_seconds == present(storm.create_turns.turns()).wait_seconds(1)
    assert storm.executions.started == []


def test_callers_ask_less_often_the_longer_a_turn_is_overdue(storm: Storm) -> None:
    """Thousands of callers would otherwise ask every two seconds if the line is slower than was expected."""
    storm.fill()
    run = storm.run_of(101)
    storm.queue(run)
    storm.clock.advance(timedelta(seconds=present(provisioning(storm, run).wait_seconds)))
    assert provisioning(storm, run).wait_seconds == 0
    storm.clock.advance(timedelta(minutes=10))
    assert provisioning(storm, run).wait_seconds == 300


def provisioning(storm: Storm, run: Run) -> Provisioning:
    answer = storm.get_queue(run.tenant)
    assert isinstance(answer, Provisioning)
    return answer


def test_get_queue_does_not_ask_step_functions_about_a_create_that_waits(storm: Storm) -> None:
    storm.fill()
    run = storm.run_of(101)
    storm.queue(run)
    storm.clock.advance(AWAIT_ADMISSION)
    assert isinstance(storm.get_queue(run.tenant), Provisioning)
    assert storm.executions.asked_about == []
    storm.clock.advance(CHECK_EXECUTION_AFTER + A_MINUTE)  # By then, the execution has asked again, or is dead.
    storm.get_queue(run.tenant)
    assert storm.executions.asked_about == [run.execution]


def test_the_deadline_of_a_create_counts_from_its_turn_and_its_request_is_as_old_as_it_was(storm: Storm) -> None:
    first, *_ = storm.fill()
    run = storm.run_of(101)
    storm.queue(run)
    storm.clock.advance(2 * DEADLINE)
    storm.record_failure(first)
    assert storm.ask(run) == Begun()
    locked = present(storm.table.lock(run.tenant)).run
    assert locked.started_at == storm.clock.now()
    assert locked.asked_at == run.started_at
    (audit,) = storm.table.audits(run.tenant)
    assert (audit.ticket, audit.asked_at) == (None, run.started_at)


def test_a_create_that_waits_for_too_long_fails_because_of_throttling(storm: Storm) -> None:
    storm.fill()
    run = storm.run_of(101)
    storm.queue(run)
    storm.clock.advance(MAX_WAIT_FOR_TURN + A_MINUTE)
    given_up = storm.ask(run)
    assert isinstance(given_up, GaveUp)
    assert given_up.throttled


def test_the_same_create_requested_again_is_the_one_that_waits(storm: Storm) -> None:
    storm.fill()
    run = storm.run_of(101)
    storm.queue(run)
    assert storm.lifecycle.create(run.tenant, Request(by="ada")) == Accepted(run.attempt, run.execution)
    assert storm.executions.started == []


def test_a_delete_does_not_wait_for_a_create_that_waits_and_the_create_is_then_refused(storm: Storm) -> None:
    first, *_ = storm.fill()
    run = storm.run_of(101)
    storm.queue(run)
    storm.clock.advance(A_MINUTE)
    deleted = storm.lifecycle.delete(run.tenant, Request(by="ada"))
    assert isinstance(deleted, Accepted)
    delete = Run(deleted.attempt, deleted.execution, storm.clock.now(), Request(by="ada"))
    assert storm.begin(delete) == Begun()
    storm.finish(delete, None)
    assert state_of(storm.table.metadata(run.tenant), storm.table.audits(run.tenant)) is TenantState.DELETED
    storm.record_failure(first)
    refused = storm.ask(run)
    assert isinstance(refused, GaveUp)
    assert "was deleted" in refused.reason


def test_a_deleted_tenant_that_waits_to_be_created_again_is_being_provisioned(storm: Storm) -> None:
    storm.delete()
    storm.clock.advance(A_MINUTE)
    storm.fill()
    accepted = storm.lifecycle.create(ACME, Request(by="ada"))
    assert isinstance(accepted, Accepted)
    request = Request(by="ada", explicit=True)
    run = Run(accepted.attempt, accepted.execution, storm.clock.now(), request)
    storm.queue(run)
    audits = storm.table.audits(ACME)
    assert state_of(storm.table.metadata(ACME), audits) is TenantState.PROVISIONING
    assert decide(storm.table.metadata(ACME), audits, VERSION) == Wait(run.execution)


# Creates that lose their turn


def test_a_create_that_lost_its_turn_after_a_long_wait_is_not_late(storm: Storm) -> None:
    runs = storm.fill()
    late = storm.run_of(101)
    token = storm.queue(late)
    storm.clock.advance(AWAIT_ADMISSION)
    storm.executions.waiting.discard(token)  # The state has timed out, and nobody knows that yet.
    for run in runs:
        storm.record_failure(run)
    assert storm.create_turns.tickets == {}
    assert storm.ask(late) == Begun()
    assert present(storm.table.lock(late.tenant)).run.started_at == storm.clock.now()
    assert storm.ask(late) == Begun()  # The response was lost.


def test_a_create_that_never_waited_is_late_however_often_it_has_had_a_turn(storm: Storm) -> None:
    storm.create()
    delete = a_run(operation=Operation.DELETE)
    storm.begin(delete)
    busy = a_run(2, started_at=storm.clock.now())
    assert storm.ask(busy) == Busy(delete.execution)
    storm.clock.advance(DEADLINE + A_MINUTE)
    storm.executions.start(delete.attempt, delete.request)
    assert isinstance(storm.ask(busy), GaveUp)


def test_a_create_that_waited_and_finds_its_tenant_busy_is_late_at_last(storm: Storm) -> None:
    """Its turn is given back after some minutes, and it gets another one, with a deadline of its own."""
    first, *_ = storm.fill()
    waiting = storm.run_of(101)
    storm.queue(waiting)
    delete = a_run(operation=Operation.DELETE, tenant=waiting.tenant)
    storm.executions.start(delete.attempt, delete.request)
    storm.table.plant_lock(waiting.tenant, delete)
    storm.record_failure(first)
    gave_up_after: timedelta | None = None
    since = storm.clock.now()
    while gave_up_after is None:
        storm.clock.advance(A_MINUTE)
        storm.turns.settle()
        asked = storm.ask(waiting)
        assert isinstance(asked, Busy | GaveUp)
        gave_up_after = storm.clock.now() - since if isinstance(asked, GaveUp) else None
        assert storm.clock.now() - since <= AWAIT_ADMISSION + DEADLINE + A_MINUTE, "it waits for ever"
    assert gave_up_after > DEADLINE


def test_a_create_that_has_begun_does_not_wait_again_if_its_turn_was_given_back(storm: Storm) -> None:
    first, *_ = storm.fill()
    since = storm.clock.now()
    storm.queue(storm.run_of(101))
    storm.clock.advance(A_MINUTE)
    storm.turns.leave(first.execution)
    assert first.execution not in storm.holders
    assert storm.ask(first) == Begun()  # The response to the first try was lost.
    assert present(storm.table.lock(first.tenant)).run.started_at == since


def test_numbers_that_never_got_into_the_line_do_not_make_others_wait_longer(storm: Storm) -> None:
    first, *_ = storm.fill()
    for _ in range(1000):
        storm.create_turns.draw_number()  # Creates that died right after this.
    storm.queue(storm.run_of(101))
    storm.record_failure(first)
    waiting = storm.run_of(102)
    storm.queue(waiting)
    audit = present(storm.table.audit(waiting.attempt))
    assert present(audit.expected_at) - storm.clock.now() < A_MINUTE


# Forged payloads


def test_a_token_of_another_create_parks_a_tenant_for_no_longer_than_a_wait(storm: Storm) -> None:
    """Step Functions does not say whose token it is, and allows too few calls that would. Only a role that may call the
    function and knows the token of a create that waits at this moment can send such a payload."""
    first, *_ = storm.fill()
    storm.executions.made_up_run = False
    robbed, forged = storm.run_of(101), storm.run_of(102)
    storm.executions.start(robbed.attempt, robbed.request)
    token = storm.queue(robbed)
    assert storm.await_admission(forged, task_token=token) == Waiting()
    assert isinstance(storm.get_queue(forged.tenant), Provisioning)

    storm.record_failure(first)
    assert not storm.waits(token)
    assert storm.ask(robbed) == Begun()
    storm.clock.advance(AWAIT_ADMISSION + CHECK_EXECUTION_AFTER + A_MINUTE)
    storm.turns.settle()
    assert forged.execution not in storm.holders
    storm.get_queue(forged.tenant)
    assert [attempt.tenant for attempt, *_ in storm.executions.started][-1] == forged.tenant


# Creates that die


def test_a_create_that_died_while_it_waited_is_passed_over(storm: Storm) -> None:
    first, *_ = storm.fill()
    dead, alive = storm.run_of(101), storm.run_of(102)
    storm.executions.waiting.discard(storm.queue(dead))
    token = storm.queue(alive)
    storm.record_failure(first)
    assert not storm.waits(token)
    assert dead.execution not in storm.holders
    assert storm.create_turns.tickets == {}


def test_the_turn_of_a_create_that_died_before_it_began_is_given_back_by_the_next_that_asks(storm: Storm) -> None:
    runs = storm.fill()
    for run in runs:
        storm.table.plant_lock(run.tenant, None)
    storm.clock.advance(timedelta(minutes=6))
    waiting = storm.run_of(101)
    assert not storm.waits(storm.queue(waiting))
    assert storm.holders == {waiting.execution}


def test_the_reconciler_gives_back_the_turns_of_dead_creates_and_wakes_the_next(storm: Storm) -> None:
    runs = storm.fill()
    storm.table.plant_lock(runs[0].tenant, None)
    token = storm.queue(storm.run_of(101))
    storm.clock.advance(timedelta(minutes=6))
    storm.turns.settle()
    assert runs[0].execution not in storm.holders
    assert len(storm.holders) == AT_ONCE
    assert not storm.waits(token)


def test_an_operation_that_is_settled_gives_its_turn_back(storm: Storm) -> None:
    first, *_ = storm.fill()
    storm.executions.made_up_run = False
    storm.clock.advance(DEADLINE)
    storm.settling.settle(first)
    assert first.execution not in storm.holders


def test_a_function_that_died_after_it_gave_a_turn_and_before_it_woke_the_create_is_made_up_for(storm: Storm) -> None:
    first, *_ = storm.fill()
    token = storm.queue(storm.run_of(101))
    turns = present(storm.create_turns.turns()).given_back(first.execution, NOON, succeeded=False)
    storm.create_turns.store(turns.taken_by(present(storm.create_turns.first_ticket()), NOON))
    turns = present(storm.create_turns.turns())
    storm.create_turns.store(replace(turns, pace=replace(turns.pace, limit=AT_ONCE + 1.0)))
    storm.turns.settle()
    assert not storm.waits(token)
    assert storm.create_turns.tickets == {}
