"""One rollout over a fleet, with all that may happen to it, in an order that a seed decides.

Its execution, its children and the updates take turns, and between any two calls of one the others may go on. What
else may happen does: operators pause, resume, approve and abort; tenants are pinned and updated by hand; functions and
executions die; CloudFormation throttles; an alarm goes off.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from orchestrator.admission import Refused
from orchestrator.errors import BerthError, Throttled
from orchestrator.ports import Pin
from orchestrator.records import Request
from orchestrator.rollouts.control import NothingToDo, Underway
from orchestrator.rollouts.documents import wish_from
from orchestrator.rollouts.records import Result, Rollout, RolloutStatus, Skip, StageStatus
from tests.fakes import NEXT_VERSION, VERSION, execution_arn
from tests.simulation.fleet import ALARM, Fleet
from tests.simulation.player import Crash, Event, Execution
from tests.simulation.rollout_player import Played, Turn, Whole
from tests.simulation.storm import Broken
from tests.simulation.world import OPERATOR

MOST_STEPS = 6_000
MOST_HAPPENINGS = 10
WRITES = {"admit", "record", "change", "change_stage", "write", "wake"}
STAGES: list[list[dict[str, Any]]] = [
    [{"size": "rest", "tolerated": "1"}],
    [{"size": "rest", "tolerated": "100%", "maxConcurrency": 2}],
    [{"size": "1", "tolerated": "0", "bakeSeconds": 40}, {"size": "rest", "tolerated": "50%", "maxConcurrency": 5}],
    [
        {"size": "2", "tolerated": "1", "bakeSeconds": 20, "alarm": ALARM},
        {"size": "30%", "tolerated": "1", "approval": True},
        {"size": "rest", "tolerated": "2", "maxConcurrency": 3},
    ],
]


class RolloutStorm:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.seen: Counter[str] = Counter()
        self._chance = random.Random(seed)
        self.fleet = Fleet()
        self.fleet.populate(self._chance.randint(2, 9), self._chance)
        self.fleet.cloudformation_goes_on = lambda: self._chance.random() < 0.6
        self.fleet.stacks.throttled_calls = self._chance.choice([0, 0, 6])
        self.rollout_id = ""
        self._wholes: dict[str, Whole] = {}
        self._turns: list[Turn] = []
        self._updates: dict[str, Execution] = {}
        self._left_alone: set[str] = set()
        """Updates that go on though nobody waits for them any more."""
        self._in_a_call: list[object] = []
        self._happenings = 0
        self._depth = 0
        self._deaths_to_come: Counter[str] = Counter()
        """How often a function is yet to die before it works again, by its state."""
        self._dies_after_writing = False
        self._resumes_left = self._chance.randint(0, 2)
        """How often an operator has it go on after it has stopped itself."""

    def play(self) -> None:
        try:
            if self._start():
                self._until_it_is_over()
                self._check_the_end()
        except AssertionError as broken:
            raise Broken(f"seed {self.seed}: {broken}") from broken

    @property
    def rollout(self) -> Rollout:
        rollout = self.fleet.ledger.rollout(self.rollout_id)
        assert rollout
        return rollout

    # Before

    def _start(self) -> bool:
        """Whether there is anything to do."""
        asked: dict[str, Any] = {"version": NEXT_VERSION, "stages": self._chance.choice(STAGES)}
        if self._chance.random() < 0.15:
            asked["dryRun"] = True
        wish = wish_from(asked, max_concurrency=4)
        try:
            started = self.fleet.rollouts(self._around_operator).start(wish, OPERATOR.by)
        except Crash:
            started = None
        if isinstance(started, NothingToDo):
            return False
        known = self.fleet.ledger.rollouts(limit=10)
        if not known:  # The function died before anything was written: it is asked for again.
            return self._start()
        assert started is None or isinstance(started, Underway)
        self.rollout_id = known[0].id
        self.seen["dry run"] += known[0].wish.dry_run
        return True

    # Meanwhile

    def _until_it_is_over(self) -> None:
        for _ in range(MOST_STEPS):
            self._take_up_what_was_started()
            if self._ready:
                self._something_happens()
            elif not self._an_operator_helps():
                return
        raise AssertionError(f"it never ends: {self.rollout}, {[each.at for each in self._wholes.values()]}")

    @property
    def _ready(self) -> list[Played | Execution]:
        """Who can go on, and has no function running."""
        played: list[Played | Execution] = [
            each for each in (*self._wholes.values(), *self._turns) if each.can_go_on and each not in self._in_a_call
        ]
        return played + [run for run in self._updates.values() if run.running and run not in self._in_a_call]

    def _something_happens(self) -> None:
        if self.rollout_id and self._happenings < MOST_HAPPENINGS and self._chance.random() < 0.03:
            self._happenings += 1
            self._chance.choice(self._what_may_happen)()
            self._take_up_what_was_started()
        elif ready := self._ready:
            self._step(self._chance.choice(ready))

    @property
    def _what_may_happen(self) -> list[Callable[[], object]]:
        return [
            *(partial(self._ask, what) for what in ("pause", "pause", "resume", "abort", "approve")),
            self._kill_the_rollout,
            self._kill_a_turn,
            self._pin,
            self._update_by_hand,
            self._break_a_function,
            self._throttle,
            self._sound_the_alarm,
        ]

    def _step(self, who: Played | Execution) -> None:
        self._in_a_call.append(who)
        try:
            who.step()
        finally:
            self._in_a_call.remove(who)
        self._check_how_many_are_in_flight()

    def _around(self, name: str, call: Callable[[], Any]) -> Any:
        """A call that a function makes: others go on before it, and sometimes it dies before or after."""
        who = self._in_a_call[-1]
        self._others_go_on()
        if isinstance(who, Played) and self._deaths_to_come[who.at]:
            self._die_soon(who, name, call)
        dies = self._chance.random()
        if dies < 0.005:
            raise Crash
        if dies < 0.008 and name.startswith("rollouts."):
            raise Throttled("DynamoDB: Rate exceeded")
        told = call()
        if dies > 0.995:
            raise Crash
        return told

    def _die_soon(self, who: Played, name: str, call: Callable[[], Any]) -> None:
        """At once, or as soon as something is written and nobody will hear of it."""
        if self._dies_after_writing:
            if name.partition(".")[2] not in WRITES:
                return
            call()
        self._deaths_to_come[who.at] -= 1
        raise Crash

    def _around_operator(self, _name: str, call: Callable[[], Any]) -> Any:
        """An operator asks while everything goes on; and that function may die, too."""
        self._others_go_on()
        dies = self._chance.random()
        if dies < 0.01:
            raise Crash
        told = call()
        if dies > 0.99:
            raise Crash
        return told

    def _others_go_on(self) -> None:
        if self._depth < 2 and self._chance.random() < 0.1:
            self._depth += 1
            try:
                self._something_happens()
            finally:
                self._depth -= 1

    def _ask(self, what: str) -> bool:
        """Whether anything came of it."""
        rollouts = self.fleet.rollouts(self._around_operator)
        asked: Callable[..., object] = getattr(rollouts, what)
        try:
            answered = asked(self.rollout_id, OPERATOR.by)
        except (Crash, BerthError):
            return True  # Perhaps.
        self.seen[what] += isinstance(answered, Underway)
        return not isinstance(answered, Refused)

    def _kill_the_rollout(self) -> None:
        """Its execution is stopped, and with it its children and, mostly, what they wait for."""
        for whole in self._wholes.values():
            if whole.running and whole not in self._in_a_call and not set(whole.children) & set(self._in_a_call):
                whole.end(whole.state.ABORTED)
                for turn in whole.children:
                    self._stop(turn)
                self.seen["killed"] += 1

    def _kill_a_turn(self) -> None:
        running = [turn for turn in self._turns if turn.running and turn not in self._in_a_call]
        if running:
            self._stop(self._chance.choice(running))
            self.seen["turn killed"] += 1

    def _stop(self, turn: Turn) -> None:
        if turn.running:
            turn.end(turn.state.ABORTED)
        update = turn.update
        if update and update.running:
            if update in self._in_a_call or self._chance.random() < 0.3:
                self._left_alone.add(update.name)
            else:
                update.abort()

    def _pin(self) -> None:
        tenant = self._chance.choice(self.fleet.tenants)
        self.fleet.table.describe(tenant, labels=None, pin=Pin(VERSION), at=self.fleet.clock.now())
        self.seen["pinned"] += 1

    def _update_by_hand(self) -> None:
        tenant = self._chance.choice(self.fleet.tenants)
        self.fleet.lifecycle().upgrade(tenant, NEXT_VERSION, Request(by=OPERATOR.by))
        for name in self.fleet.executions.inputs:
            if name not in self._updates:
                self._left_alone.add(name)
                self._updates[name] = Execution(self.fleet, name, self._around)

    def _break_a_function(self) -> None:
        """It dies more often than it is retried."""
        self._dies_after_writing = self._chance.random() < 0.5
        self._deaths_to_come[self._chance.choice(["Advance", "Admit", "RecordOutcome", "Review", "AwaitOperator"])] = 15

    def _throttle(self) -> None:
        self.fleet.stacks.throttled_calls += 8

    def _sound_the_alarm(self) -> None:
        self.fleet.alarms.alarms[ALARM] = "Threshold crossed."

    # Who starts what

    def _take_up_what_was_started(self) -> None:
        for name in self.fleet.rollout_executions.started:
            if name not in self._wholes:
                self._wholes[name] = Whole(self.fleet, name, self._around, self._enter)

    def _enter(self, name: str, given: Event) -> Turn:
        turn = Turn(self.fleet, name, given, self._around, self._start_update)
        self._turns.append(turn)
        return turn

    def _start_update(self, name: str, given: Event) -> Execution | None:
        """As Step Functions does: the same again while it runs is the same, and a name is used once."""
        execution = execution_arn(name)
        executions = self.fleet.executions
        if execution in executions.inputs:
            same = executions.inputs[execution] == given and execution in executions.running
            return self._updates[execution] if same else None
        executions.inputs[execution] = given
        executions.running.add(execution)
        self._updates[execution] = Execution(self.fleet, execution, self._around)
        self.seen["updates"] += 1
        return self._updates[execution]

    # When nobody can go on

    def _an_operator_helps(self) -> bool:
        """Whether something can go on again. What is over is over."""
        rollout = self.rollout
        if not rollout.status.active:
            if rollout.status is RolloutStatus.HALTED and self._resumes_left:
                self._resumes_left -= 1
                self.seen["resumed after a halt"] += 1
                self.fleet.alarms.alarms[ALARM] = None
                return self._ask("resume")
            return False
        waiting = [whole for whole in self._wholes.values() if whole.awaits_an_operator]
        assert waiting or not any(whole.running for whole in self._wholes.values()), f"nobody goes on: {rollout}"
        if waiting and self._chance.random() < 0.2:
            waiting[0].time_out()
        elif rollout.status is RolloutStatus.ABORTING:
            self._ask("abort")
        elif waiting and self._awaits_approval and rollout.status is RolloutStatus.RUNNING:
            self._ask("approve")
        else:
            self._ask(self._chance.choice(["resume"] * 6 + ["abort"]))
        return True

    @property
    def _awaits_approval(self) -> bool:
        stage = self.fleet.ledger.stage(self.rollout_id, self.rollout.current_stage)
        return stage is not None and stage.status is StageStatus.AWAITING_APPROVAL

    # What is promised

    def _check_how_many_are_in_flight(self) -> None:
        running = [name for name, run in self._updates.items() if run.running and name not in self._left_alone]
        if not running:
            return
        stage = self.fleet.ledger.stage(self.rollout_id, self.rollout.current_stage)
        assert stage
        assert len(running) <= stage.wish.max_concurrency, f"in flight: {running}, but {stage}"

    def _check_the_end(self) -> None:
        ledger, rollout = self.fleet.ledger, self.rollout
        outcomes = {outcome.item.tenant: outcome for outcome in ledger.outcomes(rollout.id)}
        self.seen[rollout.status] += 1
        self.seen.update(f"tenant {outcome.result}" for outcome in outcomes.values())
        for stage in ledger.stages(rollout.id):
            said = (stage.succeeded, stage.failed, stage.skipped)
            assert said == ledger.counted(rollout.id, stage.number), f"{stage} does not count what is written down"
        if rollout.wish.dry_run:
            assert not self._updates or self._left_alone, "a dry run has changed something"
        for number, tenant in enumerate(self.fleet.tenants, 1):
            moved = [each for each in self.fleet.stacks.all.values() if each.stack.tenant_id == tenant.value]
            assert len(moved) == 1, f"{tenant} ({number}) has {len(moved)} stacks"
            assert self.fleet.fleet_stacks.updated[moved[0].stack.stack_id] <= 1, f"{tenant} was moved twice"
        assert rollout.id not in ledger.registry().active
        if rollout.status in (RolloutStatus.SUCCEEDED, RolloutStatus.FAILED):
            assert len(outcomes) == rollout.total
            assert all(outcome.result.settled for outcome in outcomes.values())
            failed = any(outcome.result is Result.FAILED for outcome in outcomes.values())
            assert failed == (rollout.status is RolloutStatus.FAILED)
            assert all(stage.in_flight == 0 for stage in ledger.stages(rollout.id))
        if rollout.status is RolloutStatus.SUCCEEDED and not rollout.wish.dry_run:
            for tenant, outcome in outcomes.items():
                metadata = self.fleet.table.metadata(tenant)
                assert metadata
                there = metadata.published and metadata.version == NEXT_VERSION
                assert there or outcome.skip is Skip.PINNED, f"{tenant} is at {metadata.version}, and said {outcome}"
