"""Rollouts over a fleet, with all that may happen to them, in an order that a seed decides.

Their executions, the children and the operations on tenants take turns, and between any two calls of one the others
may go on. What else may happen does, also while a rollout is planned: operators pause, resume, approve (also twice, and
the wrong stage), promote, change the pace, abort, undo and retry; tenants are pinned, updated, deleted and created by
hand; functions and executions die, and what they left behind is settled; CloudFormation and Step Functions throttle;
listings lag; an alarm goes off and recovers.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from orchestrator.common.errors import BerthError, Throttled
from orchestrator.common.tenant_ids import TenantId
from orchestrator.rollouts.adjusting import Adjusting
from orchestrator.rollouts.control import NothingToDo, RolloutWithStages
from orchestrator.rollouts.documents import spec_from
from orchestrator.rollouts.finding import INDEX_LAG
from orchestrator.rollouts.records import NewPace, Rollout, RolloutStatus, Share, Stage, StageStatus
from orchestrator.tenants.admission import Refused
from orchestrator.tenants.order_results import Accepted
from orchestrator.tenants.ports import Pin
from orchestrator.tenants.records import Request
from tests.fakes import NEXT_VERSION, VERSION, execution_arn
from tests.simulation.aws.executions import Crash, Event, Execution
from tests.simulation.rollouts.checks import (
    ByHand,
    Planning,
    check_counts,
    check_that_it_is_over,
    check_that_it_is_undone,
)
from tests.simulation.rollouts.executions import MachineExecution, RolloutExecution, Turn
from tests.simulation.rollouts.fleet import ALARM, EQUAL_VERSION, Fleet
from tests.simulation.seeded_run import Broken
from tests.simulation.world import OPERATOR

ALL = Share(100, percent=True)
A_SECOND, A_MINUTE = timedelta(seconds=1), timedelta(minutes=1)
MAX_STEPS = 9_000
"""The number of steps within which a tenant has to be settled. A turn that dies holds its place for 40 minutes, so if
only one tenant is updated at a time, those behind it wait for 1,200 rounds, each of several steps."""
MAX_ACTIONS = 14
MAX_ORDERS = 4
"""How many orders are given at a moment that suits them, besides those at any moment."""
MAX_SECONDS_AFTER_PAUSE = 5.0
"""How long after it was admitted a tenant's update may still be started, though the rollout was paused meanwhile."""
WRITES = {"admit", "record", "change", "change_stage", "change_stages", "write", "wake"}
STAGES: list[list[dict[str, Any]]] = [
    [{"size": "rest", "tolerated": "0", "maxConcurrency": 1}],
    [{"size": "rest", "tolerated": "100%", "maxConcurrency": 2}],
    [{"size": "1", "tolerated": "0", "bakeSeconds": 40}, {"size": "rest", "tolerated": "50%", "maxConcurrency": 5}],
    [
        {"size": "2", "tolerated": "1", "bakeSeconds": 60, "alarm": ALARM},
        {"size": "30%", "tolerated": "1", "approval": True},
        {"size": "rest", "tolerated": "2", "maxConcurrency": 3, "approval": True},
    ],
    [{"size": "rest", "tolerated": "100%", "bakeSeconds": 120, "alarm": ALARM}],
    [
        {"size": "50%", "tolerated": "100%", "bakeSeconds": 90},
        {"size": "rest", "tolerated": "100%", "maxConcurrency": 2, "approval": True},
    ],
]


def play_seed(seed: int, favoured_actions: Sequence[str] = ()) -> Counter[str]:
    """Play one seed and return what was seen. Raises :class:`Broken` if a promise was broken."""
    run = SeededRollout(seed, favoured_actions)
    run.play()
    return run.seen


class SeededRollout:
    def __init__(self, seed: int, favoured_actions: Sequence[str] = ()) -> None:
        """``favoured_actions`` are the names of what happens more often than it does otherwise."""
        self.seed = seed
        self._favoured_actions = favoured_actions
        self.seen: Counter[str] = Counter()
        self._rng = random.Random(seed)
        self.fleet = Fleet()
        self.fleet.populate(self._rng.randint(2, 9), self._rng)
        self.fleet.cloudformation_goes_on = lambda: self._rng.random() < 0.6
        self.fleet.stacks.throttled_calls = self._rng.choice([0, 0, 6])
        self.fleet.ledger.when_over = self._when_over
        self.rollout_id = ""
        """The id of the rollout that is under way."""
        self._by_hand = ByHand(pinned={each for each in self.fleet.tenants if self._is_pinned(each)})
        self._planning: Planning | None = None
        self._index = self.fleet.table.as_of_now()
        """An older state of the index, for a listing that lags."""
        self._index_at = self.fleet.clock.now()
        self._rollout_executions: dict[str, RolloutExecution] = {}
        self._turns: list[Turn] = []
        self._operations: dict[str, Execution] = {}
        """The operations on single tenants, by execution."""
        self._started_by: dict[str, str] = {}
        """Which rollout has started an update that somebody waits for."""
        self._in_a_call: list[object] = []
        self._actions = 0
        self._depth = 0
        self._deaths_to_come: Counter[str] = Counter()
        """How often a function is yet to die before it works again, by its state."""
        self._dies_after_writing = False
        self._starts_to_throttle = 0
        self._approvals: list[tuple[str, int]] = []
        """Which stages of which rollouts were approved, or were tried to be."""
        self._highest: dict[tuple[str, int], int] = {}
        """The highest concurrency of each stage before an operator changed it."""
        self._orders_left = self._rng.randint(0, MAX_ORDERS)
        self._steps_until_withdrawal = self._rng.randint(1, 120) if self._rng.random() < 0.15 else 0
        """When the release is withdrawn, if it is."""
        self._resumes_left = self._rng.randint(0, 2)
        """How often an operator has it go on after it has stopped itself."""

    def play(self) -> None:
        try:
            self._do_by_hand(self._rng.choice([0, 0, 2, 4]))
            undone: Rollout | None = None
            if self._start(self._first_spec()):
                self._until_it_is_over()
                undone = self._follow_up()
            self._until_nothing_goes_on()
            self._check_the_end(undone)
        except AssertionError as broken:
            raise Broken(f"seed {self.seed}: {broken}") from broken

    @property
    def rollout(self) -> Rollout:
        rollout = self.fleet.ledger.rollout(self.rollout_id)
        assert rollout
        return rollout

    @property
    def _stage(self) -> Stage:
        stage = self.fleet.ledger.stage(self.rollout_id, self.rollout.current_stage)
        assert stage
        return stage

    # One rollout after the other

    def _first_spec(self) -> dict[str, Any]:
        asked: dict[str, Any] = {"version": NEXT_VERSION, "stages": self._rng.choice(STAGES)}
        return asked | ({"dryRun": True} if self._rng.random() < 0.1 else {})

    def _start(self, asked: dict[str, Any]) -> bool:
        """Start a rollout, and return ``False`` if there is nothing to do."""
        spec = spec_from(asked, max_concurrency=4)
        return self._begin(lambda rollouts: rollouts.start(spec, OPERATOR.by), asked)

    def _begin(self, ask: Callable[[Any], object], asked: dict[str, Any]) -> bool:
        known = {rollout.id for rollout in self.fleet.ledger.rollouts(limit=10)}
        lags = self._rng.random() < 0.25
        self.fleet.listing = self._index if lags else self.fleet.table
        self.fleet.clock.advance(self._rng.choice([A_SECOND, A_MINUTE]))
        for _ in range(20):
            # A plan loses nobody if the index lags no more than it may.
            is_complete = not lags or self.fleet.clock.now() - self._index_at < INDEX_LAG
            planning = Planning(self.fleet, NEXT_VERSION) if "undo" not in asked and is_complete else None
            answered = self._ask_for_a_plan(ask, planning)
            new = [each for each in self.fleet.ledger.rollouts(limit=10) if each.id not in known]
            if new:
                self.rollout_id = new[0].id
                self.seen["dry run"] += new[0].spec.dry_run
            if planning and isinstance(answered, RolloutWithStages | NothingToDo):
                skipped = (
                    answered.rollout.skipped if isinstance(answered, RolloutWithStages) else answered.selected.skipped
                )
                names = [name for each in skipped.values() for name in each.tenants]
                planning.check(new[0] if new else None, names)
            if new or isinstance(answered, NothingToDo | Refused):
                return bool(new)
        return False  # The function died again and again before anything was written down.

    def _ask_for_a_plan(self, ask: Callable[[Any], object], planning: Planning | None) -> object:
        self._planning = planning
        if planning:
            planning.begin()
        try:
            return ask(self.fleet.use_cases(self._around_operator, version=NEXT_VERSION).rollouts)
        except (Crash, BerthError):
            return None
        finally:
            if planning:
                planning.look()
            self._planning = None

    def _follow_up(self) -> Rollout | None:
        """Undo or retry it, sometimes while something of it still goes on. The rollout that was undone, if one was."""
        earlier, what = self.rollout, self._rng.choice(["", "undo", "undo", "retry", "retry"])
        if not what or earlier.spec.dry_run:
            return None
        if self._rng.random() < 0.5:
            self._until_nothing_goes_on()
        for execution in self._operations:
            self._started_by.pop(execution, None)
        if what == "retry":
            begun = self._begin(lambda rollouts: rollouts.retry(earlier.id, OPERATOR.by), {"undo": "so to speak"})
        else:
            begun = self._start({"undo": earlier.id, "stages": self._rng.choice(STAGES)})
        self.seen[what] += begun
        if begun:
            self._until_it_is_over()
        if not begun or what == "retry":
            return None
        halted = self._status_of(earlier) is RolloutStatus.HALTED
        return None if halted and self._rng.random() < 0.5 and self._resume_after_undo(earlier) else earlier

    def _status_of(self, rollout: Rollout) -> RolloutStatus:
        now = self.fleet.ledger.rollout(rollout.id)
        assert now
        return now.status

    def _resume_after_undo(self, undone: Rollout) -> bool:
        """An operator resumes the rollout that was undone. That is refused, unless the undo has moved nobody."""
        undo, self.rollout_id = self.rollout_id, undone.id
        attempt = self.rollout.attempt
        self.seen["not resumed after its undo"] += not self._ask("resume")
        if self.rollout.attempt > attempt:
            self._until_it_is_over()
            return True
        self.rollout_id = undo
        return False

    # Meanwhile

    def _until_it_is_over(self) -> None:
        steps_left, progress = MAX_STEPS, self._progress
        while steps_left:
            steps_left -= 1
            if progress != self._progress:
                steps_left, progress = MAX_STEPS, self._progress
            self._take_up_what_was_started()
            is_left = self.rollout.status is not RolloutStatus.HALTED or not self._resumes_left
            if not self.rollout.status.active and is_left and self._rng.random() < 0.2:
                return
            if self._ready:
                self._something_happens()
            elif not self._an_operator_helps():
                return
        raise AssertionError(
            f"it never ends: {self.rollout}, {[each.at for each in self._rollout_executions.values()]}"
        )

    @property
    def _progress(self) -> tuple[str, int, int]:
        """What a rollout reaches only a limited number of times."""
        stages = self.fleet.ledger.stages(self.rollout_id)
        return self.rollout_id, self.rollout.attempt, sum(stage.settled for stage in stages)

    def _until_nothing_goes_on(self) -> None:
        for _ in range(MAX_STEPS):
            self._take_up_what_was_started()
            if ready := self._ready:
                self._step(self._rng.choice(ready))
            elif any(self.fleet.table.lock(tenant) for tenant in self.fleet.tenants):
                self.fleet.let_time_pass()
                self.fleet.settle_the_dead()
            else:
                return
        raise AssertionError("something goes on for ever")

    @property
    def _ready(self) -> list[MachineExecution | Execution]:
        """The executions that can take a step and have no function running."""
        played: list[MachineExecution | Execution] = [
            each
            for each in (*self._rollout_executions.values(), *self._turns)
            if each.can_go_on and each not in self._in_a_call
        ]
        return played + [run for run in self._operations.values() if run.running and run not in self._in_a_call]

    def _something_happens(self) -> None:
        if self._rng.random() < 0.02:
            self._index = self.fleet.table.as_of_now()
            self._index_at = self.fleet.clock.now()
        if self._orders_left and not self._planning and self._rng.random() < self._chance_of_an_order:
            self._orders_left -= 1
            self._give_a_suitable_order()
            self._take_up_what_was_started()
            return
        often = 0.1 if self._planning else 0.03
        if self._actions < MAX_ACTIONS and self._rng.random() < often:
            self._actions += 1
            self._what_happens()()
            self._take_up_what_was_started()
        elif ready := self._ready:
            self._step(self._rng.choice(ready))

    @property
    def _chance_of_an_order(self) -> float:
        """A stage takes many steps to run, and few to bake."""
        if not self.rollout_id or not self.rollout.status.active:
            return 0.0
        match self._stage.status:
            case StageStatus.BAKING | StageStatus.AWAITING_APPROVAL:
                return 0.2
            case StageStatus.RUNNING:
                return 0.01
            case _:
                return 0.0

    def _give_a_suitable_order(self) -> None:
        """Give an order that is refused at most other moments."""
        match self._stage.status:
            case StageStatus.BAKING:
                self._rng.choice([self._promote, partial(self._change_pace, NewPace(bake_seconds=5))])()
            case StageStatus.AWAITING_APPROVAL:
                self._rng.choice([self._promote, partial(self._approve, "this")])()
            case _:
                more = [NewPace(tolerated=ALL)] if self._stage.spec.tolerated != ALL else []
                self._change_pace(self._rng.choice([NewPace(max_concurrency=1), NewPace(max_concurrency=6), *more * 2]))

    def _what_happens(self) -> Callable[[], object]:
        may = self._what_may_happen_to_tenants + ([] if self._planning else self._what_may_happen_to_rollouts)
        favoured = [each for each in may if getattr(each, "__name__", "") in self._favoured_actions]
        return self._rng.choice(favoured if favoured and self._rng.random() < 0.7 else may)

    @property
    def _what_may_happen_to_rollouts(self) -> list[Callable[[], object]]:
        if not self.rollout_id:
            return []
        return [
            *(partial(self._ask, what) for what in ("pause", "pause", "resume")),
            self._abort,
            *(partial(self._approve, which) for which in ("this", "again", "another")),
            self._promote,
            self._change_pace,
            self._kill_the_rollout,
            self._kill_and_abort,
            self._kill_a_turn,
            self._kill_an_update,
            self._break_a_function,
            self._throttle_starts,
            *[self._sound_the_alarm] * 2,
            *[self._silence_the_alarm] * 3,
        ]

    @property
    def _what_may_happen_to_tenants(self) -> list[Callable[[], object]]:
        return [
            self._pin,
            *[self._update_by_hand] * 3,
            *[self._delete_by_hand] * 2,
            self._create_by_hand,
            self._throttle,
            self.fleet.settle_the_dead,
        ]

    def _step(self, who: MachineExecution | Execution) -> None:
        self._in_a_call.append(who)
        try:
            who.step()
        finally:
            self._in_a_call.remove(who)
        self._check_how_many_are_in_flight()
        self._steps_until_withdrawal -= 1
        if self._steps_until_withdrawal == 0:
            self._withdraw()

    def _withdraw(self) -> None:
        self.fleet.use_cases(version=NEXT_VERSION).releasing.withdraw(NEXT_VERSION, OPERATOR.by)
        self.seen["withdrawn"] += 1

    def _around(self, name: str, call: Callable[[], Any]) -> Any:
        """A call that a function makes: others go on before it, and sometimes it dies before or after."""
        who = self._in_a_call[-1]
        self._others_go_on(0.1)
        if isinstance(who, MachineExecution) and self._deaths_to_come[who.at]:
            self._die_soon(who, name, call)
        dies = self._rng.random()
        if dies < 0.005:
            raise Crash
        if dies < 0.008 and name.startswith("rollouts."):
            raise Throttled("DynamoDB: Rate exceeded")
        result = call()
        if dies > 0.995:
            raise Crash
        return result

    def _die_soon(self, who: MachineExecution, name: str, call: Callable[[], Any]) -> None:
        """At once, or as soon as something is written and nobody will hear of it."""
        if self._dies_after_writing:
            if name.partition(".")[2] not in WRITES:
                return
            call()
        self._deaths_to_come[who.at] -= 1
        raise Crash

    def _around_operator(self, _name: str, call: Callable[[], Any]) -> Any:
        """An operator asks while everything goes on; and that function may die, too."""
        self._others_go_on(0.5 if self._planning else 0.1)
        if self._planning:
            self._planning.look()
        dies = self._rng.random()
        if dies < 0.005:
            raise Crash
        result = call()
        if dies > 0.995:
            raise Crash
        return result

    def _others_go_on(self, often: float) -> None:
        if self._depth < 2 and self._rng.random() < often:
            self._depth += 1
            try:
                for _ in range(self._rng.choice([1, 4, 12]) if self._planning else 1):
                    self._something_happens()
            finally:
                self._depth -= 1

    # Operators and rollouts

    def _ask(self, what: str, *more: object) -> bool:
        """Give an order, and return ``False`` if it was refused."""
        rollouts = self.fleet.use_cases(self._around_operator, version=NEXT_VERSION).rollouts
        asked: Callable[..., object] = getattr(rollouts, what)
        try:
            answered = asked(self.rollout_id, *(more or (OPERATOR.by,)))
        except (Crash, BerthError):
            return True  # Perhaps.
        self.seen[what] += isinstance(answered, RolloutWithStages)
        return not isinstance(answered, Refused)

    def _abort(self) -> None:
        nobody_in_flight = self._stage.status is not StageStatus.RUNNING and not self._in_a_call
        # Undisturbed, so that it is known what the answer was about.
        rollouts = self.fleet.use_cases(version=NEXT_VERSION).rollouts
        if nobody_in_flight and self._rng.random() < 0.5:
            rollouts.abort(self.rollout_id, OPERATOR.by)
            assert not self.rollout.status.active, f"it was aborted with nobody in flight, and is {self.rollout.status}"
            self.seen["aborted at once"] += 1
        else:
            self._ask("abort")

    def _approve(self, which: str) -> None:
        """The stage that awaits it, the one that was approved last, or any."""
        number = self.rollout.current_stage
        if which == "again" and self._approvals:
            rollout, number = self._approvals[-1]
            if rollout != self.rollout_id:
                return
        elif which == "another":
            number = self._rng.randint(1, 4)
        self._approvals.append((self.rollout_id, number))
        self._ask("approve", number, f"{OPERATOR.by} for stage {number}")
        self.seen[f"approved {which}"] += 1

    def _promote(self) -> None:
        """Mostly the stage that waits, and sometimes another."""
        number = self._rng.choice([self.rollout.current_stage] * 3 + [self._rng.randint(1, 4)])
        by, approve = f"{OPERATOR.by} for stage {number}", self._rng.random() < 0.5
        self._adjust("promote", lambda adjusting: adjusting.promote(self.rollout_id, number, by, approve=approve))

    def _change_pace(self, new: NewPace | None = None) -> None:
        """Raise or lower the concurrency, or change the bake. More failures are tolerated, never fewer: a turn that was
        admitted at the same moment may be based on the former tolerance."""
        for stage in self.fleet.ledger.stages(self.rollout_id):
            key = (stage.rollout, stage.number)
            self._highest[key] = max(self._highest.get(key, 0), stage.spec.max_concurrency)
        new = new or self._rng.choice(
            [NewPace(max_concurrency=1), NewPace(max_concurrency=6), NewPace(bake_seconds=5), NewPace(tolerated=ALL)]
        )
        what = "concurrency" if new.max_concurrency else "tolerance" if new.tolerated else "bake"
        self._adjust(f"change {what}", lambda adjusting: adjusting.change(self.rollout_id, new, OPERATOR.by))

    def _adjust(self, what: str, ask: Callable[[Adjusting], object]) -> None:
        adjusting = self.fleet.use_cases(self._around_operator, version=NEXT_VERSION).rollout_adjusting
        try:
            self.seen[what] += isinstance(ask(adjusting), RolloutWithStages)
        except (Crash, BerthError):
            return

    def _kill_the_rollout(self) -> None:
        """Its execution is stopped, and with it its children and, mostly, what they wait for."""
        for execution in self._rollout_executions.values():
            if (
                execution.running
                and execution not in self._in_a_call
                and not set(execution.children) & set(self._in_a_call)
            ):
                execution.end(execution.state.ABORTED)
                for turn in execution.children:
                    self._stop(turn)
                self.seen["killed"] += 1

    def _kill_and_abort(self) -> None:
        """An operator stops the execution by hand, and then gives the rollout up."""
        self._kill_the_rollout()
        self._ask("abort")

    def _kill_a_turn(self) -> None:
        running = [turn for turn in self._turns if turn.running and turn not in self._in_a_call]
        if running:
            self._stop(self._rng.choice(running))
            self.seen["turn killed"] += 1

    def _kill_an_update(self) -> None:
        """Its turn goes on without it. CloudFormation does, too."""
        running = [each for each in map(self._operations.get, self._started_by) if each and each.running]
        idle = [each for each in running if each not in self._in_a_call]
        if idle:
            self._rng.choice(idle).abort()
            self.seen["update killed"] += 1

    def _stop(self, turn: Turn) -> None:
        if turn.running:
            turn.end(turn.state.ABORTED)
        update = turn.update
        if update and update.running:
            self._started_by.pop(update.name, None)
            if update not in self._in_a_call and self._rng.random() < 0.5:
                update.abort()

    # Operators and tenants

    def _do_by_hand(self, count: int) -> None:
        """Before anybody asks for a rollout: some of it is still going on then."""
        for _ in range(count):
            self._rng.choice([self._update_by_hand, self._update_by_hand, self._delete_by_hand])()
            self._take_up_what_was_started()
            for _ in range(self._rng.randint(0, 30)):
                if ready := self._ready:
                    self._step(self._rng.choice(ready))

    def _is_pinned(self, tenant: TenantId) -> bool:
        metadata = self.fleet.table.metadata(tenant)
        return metadata is not None and metadata.pinned_version is not None

    def _pin(self) -> None:
        tenant = self._rng.choice(self.fleet.tenants)
        self.fleet.table.describe(
            tenant, labels=None, pin=Pin(VERSION), request=Request(by="by hand"), at=self.fleet.clock.now()
        )
        self._by_hand.pinned.add(tenant)
        self.seen["pinned"] += 1

    def _update_by_hand(self) -> None:
        """Mostly to a release of equal content, which leaves it where a rollout has to move it."""
        tenant = self._rng.choice(self.fleet.tenants)
        version = self._rng.choice([EQUAL_VERSION, EQUAL_VERSION, EQUAL_VERSION, NEXT_VERSION, VERSION])
        request = Request(by=OPERATOR.by, allow_downgrade=self._rng.random() < 0.2)
        ordered = self.fleet.lifecycle().upgrade(tenant, version, request)
        if isinstance(ordered, Accepted):
            self.seen["updated by hand"] += 1
            self._by_hand.moved.add((tenant, version))
            if request.allow_downgrade:
                self._by_hand.moved_back.add((tenant, version))

    def _delete_by_hand(self) -> None:
        """If there are messages in its queue, that is refused after a while."""
        tenant = self._rng.choice(self.fleet.tenants)
        request = Request(by=OPERATOR.by, drain_seconds=self._rng.choice([0, 30, 120]))
        self.seen["deleted by hand"] += isinstance(self.fleet.lifecycle().delete(tenant, request), Accepted)

    def _create_by_hand(self) -> None:
        tenant = TenantId.parse(f"tenant-{self._rng.randint(1, len(self.fleet.tenants) + 1)}")
        ordered = self.fleet.lifecycle().create(tenant, Request(by=OPERATOR.by, explicit=True))
        self.seen["created by hand"] += isinstance(ordered, Accepted)
        if tenant not in self.fleet.tenants:
            self.fleet.tenants.append(tenant)

    # Other events

    def _break_a_function(self) -> None:
        """Have a function die more often than it is retried."""
        self._dies_after_writing = self._rng.random() < 0.5
        self._deaths_to_come[self._rng.choice(["Advance", "Admit", "RecordOutcome", "Review", "AwaitOperator"])] = 15

    def _throttle(self) -> None:
        self.fleet.stacks.throttled_calls += 8

    def _throttle_starts(self) -> None:
        self._starts_to_throttle = self._rng.randint(1, 12)

    def _sound_the_alarm(self) -> None:
        self.fleet.alarms.sound(ALARM, "Threshold crossed.", at=self.fleet.clock.now())
        self.seen["alarm"] += 1

    def _silence_the_alarm(self) -> None:
        self.fleet.alarms.recover(ALARM)

    # Executions

    def _take_up_what_was_started(self) -> None:
        for name in self.fleet.rollout_executions.started:
            if name not in self._rollout_executions:
                self._rollout_executions[name] = RolloutExecution(self.fleet, name, self._around, self._enter)
        for name in self.fleet.executions.inputs:
            if name not in self._operations:
                self._operations[name] = Execution(self.fleet, name, self._around)

    def _enter(self, name: str, given: Event) -> Turn:
        turn = Turn(self.fleet, name, given, self._around, self._start_update)
        self._turns.append(turn)
        running = [each for execution in self._rollout_executions.values() for each in execution.running_children]
        stage = self.fleet.ledger.stage(given["rolloutId"], given["stage"])
        assert stage
        of_stage = [each for each in running if each.rollout_and_stage == turn.rollout_and_stage]
        at_most = max(stage.spec.max_concurrency, stage.map_concurrency or 0)
        assert len(of_stage) < at_most, f"{len(of_stage)} wait or run, one more comes, but {stage}"
        return turn

    def _start_update(self, turn: Turn, name: str, given: Event) -> Execution | None:
        """Like Step Functions: the same start again returns the running execution, and a name is used once."""
        execution = execution_arn(name)
        executions = self.fleet.executions
        if execution in executions.inputs:
            same = executions.inputs[execution] == given and execution in executions.running
            return self._operations[execution] if same else None
        if self._starts_to_throttle:
            self._starts_to_throttle -= 1
            raise Throttled("StartExecution: Rate exceeded")
        rollout = self.fleet.ledger.rollout(turn.rollout_and_stage[0])
        assert rollout
        if rollout.status is not RolloutStatus.RUNNING:
            late = f"{name} starts, but the rollout is {rollout.status}, and it was admitted {turn.waited} s ago"
            assert turn.waited <= MAX_SECONDS_AFTER_PAUSE, late
        executions.inputs[execution] = given
        executions.running.add(execution)
        self._operations[execution] = Execution(self.fleet, execution, self._around)
        self._started_by[execution] = rollout.id
        self.seen["updates"] += 1
        return self._operations[execution]

    # When nobody can go on

    def _an_operator_helps(self) -> bool:
        """Have an operator unblock the rollout, and return ``False`` if it is over."""
        rollout = self.rollout
        if not rollout.status.active:
            if rollout.status is RolloutStatus.HALTED and self._rng.random() < 0.2:
                self.seen["closed"] += self._ask("abort")
                return False
            if rollout.status is RolloutStatus.HALTED and self._resumes_left:
                self._resumes_left -= 1
                self.seen["resumed after a halt"] += 1
                self.fleet.alarms.recover(ALARM)
                return self._ask("resume")
            return False
        waiting = [execution for execution in self._rollout_executions.values() if execution.awaits_an_operator]
        assert waiting or not any(execution.running for execution in self._rollout_executions.values()), (
            f"nobody goes on: {rollout}"
        )
        if waiting and self._rng.random() < 0.2:
            waiting[0].time_out()
        elif rollout.status is RolloutStatus.ABORTING:
            self._ask("abort")
        elif (
            waiting and self._stage.status is StageStatus.AWAITING_APPROVAL and rollout.status is RolloutStatus.RUNNING
        ):
            approve_this, again = (partial(self._approve, which) for which in ("this", "again"))
            self._rng.choice([approve_this, approve_this, again, self._promote])()
        else:
            self._ask(self._rng.choice(["resume"] * 6 + ["abort"]))
        return True

    # Promises

    def _when_over(self, rollout: Rollout) -> None:
        self.seen[rollout.status] += 1
        check_that_it_is_over(rollout, self.fleet, self._by_hand)

    def _check_how_many_are_in_flight(self) -> None:
        running = [name for name in self._started_by if self._operations[name].running]
        of_this = [name for name in running if self._started_by[name] == self.rollout_id]
        if of_this:
            stage = self._stage
            # Updates that were started before the concurrency was lowered are finished.
            at_most = max(stage.spec.max_concurrency, self._highest.get((stage.rollout, stage.number), 0))
            assert len(of_this) <= at_most, f"in flight: {of_this}, but {stage}"

    def _check_the_end(self, undone: Rollout | None) -> None:
        for rollout in self.fleet.ledger.rollouts(limit=10):
            check_counts(rollout, self.fleet)
            results = (f"tenant {outcome.result}" for outcome in self.fleet.ledger.outcomes(rollout.id))
            self.seen.update(results)
            if rollout.spec.dry_run:
                assert rollout.id not in self._started_by.values(), "a dry run has changed something"
        for tenant in self.fleet.tenants:
            living = [stack for stack in self.fleet.stacks.living if stack.tenant_id == tenant.value]
            assert len(living) <= 1, f"{tenant} has {len(living)} stacks"
        if undone:
            check_that_it_is_undone(undone, self.rollout, self.fleet, self._by_hand)
