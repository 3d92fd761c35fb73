"""The ports of rollouts, in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import parse_timestamp, timestamp
from orchestrator.rollouts.counting import Count, Reviews, move_of
from orchestrator.rollouts.create_turns import CreateTurns, Ticket
from orchestrator.rollouts.pacing import Pace
from orchestrator.rollouts.ports import Registry
from orchestrator.rollouts.records import Item, RecordedOrder, Result, Rollout, RolloutStatus, Stage, TenantOutcome
from tests.fakes.examples import execution_arn


class InMemoryRollouts:
    """Rollouts in the table. ``tests/adapters`` holds it and the DynamoDB adapter to one contract."""

    def __init__(self) -> None:
        self._rollouts: dict[str, Rollout] = {}
        self._stages: dict[tuple[str, int], Stage] = {}
        self._outcomes: dict[tuple[str, TenantId], TenantOutcome] = {}
        self._reviewed: dict[str, list[TenantOutcome]] = {}
        self._registry = Registry(frozenset(), 0)
        self._orders: list[RecordedOrder] = []

    def rollout(self, rollout: str) -> Rollout | None:
        return self._rollouts.get(rollout)

    def stages(self, rollout: str) -> Sequence[Stage]:
        return [self._stages[key] for key in sorted(self._stages) if key[0] == rollout]

    def stage(self, rollout: str, number: int) -> Stage | None:
        return self._stages.get((rollout, number))

    def rollouts(self, *, limit: int, after: str | None = None) -> Sequence[Rollout]:
        newest_first = sorted(self._rollouts, reverse=True)
        return [self._rollouts[each] for each in newest_first if after is None or each < after][:limit]

    def registry(self) -> Registry:
        return self._registry

    def orders(self, rollout: str) -> Sequence[RecordedOrder]:
        return sorted((each for each in self._orders if each.rollout == rollout), key=lambda each: each.at)

    def _append(self, *orders: RecordedOrder | None) -> None:
        self._orders += [replace(each, at=parse_timestamp(timestamp(each.at))) for each in orders if each]

    def register(
        self, rollout: Rollout, stages: Sequence[Stage], *, revision: int, orders: Sequence[RecordedOrder] = ()
    ) -> bool:
        if rollout.id in self._rollouts:
            return False
        if not rollout.spec.dry_run:
            if self._registry.revision != revision:
                return False
            self._registry = Registry(self._registry.active | {rollout.id}, revision + 1)
        self._rollouts[rollout.id] = rollout
        self._stages |= {(stage.rollout, stage.number): stage for stage in stages}
        self._append(*orders)
        return True

    def change(
        self,
        rollout: Rollout,
        *,
        revision: int | None = None,
        order: RecordedOrder | None = None,
        stage: Stage | None = None,
    ) -> bool:
        before = self._rollouts.get(rollout.id)
        if before is None or before.revision != rollout.revision:
            return False
        if stage is not None and self._stages[stage.rollout, stage.number].revision != stage.revision:
            return False
        if not rollout.spec.dry_run and before.status.active != rollout.status.active:
            if revision not in (None, self._registry.revision):
                return False
            active = self._registry.active
            active = active | {rollout.id} if rollout.status.active else active - {rollout.id}
            self._registry = Registry(active, self._registry.revision + 1)
        self._rollouts[rollout.id] = replace(rollout, revision=rollout.revision + 1)
        if stage is not None:
            self._stages[stage.rollout, stage.number] = replace(stage, revision=stage.revision + 1)
        self._append(order)
        return True

    def change_stage(self, stage: Stage, *, order: RecordedOrder | None = None) -> bool:
        before = self._stages.get((stage.rollout, stage.number))
        if before is None or before.revision != stage.revision:
            return False
        self._stages[stage.rollout, stage.number] = replace(stage, revision=stage.revision + 1)
        self._append(order)
        return True

    def change_stages(self, stages: Sequence[Stage], *, order: RecordedOrder) -> bool:
        read = [self._stages.get((stage.rollout, stage.number)) for stage in stages]
        if any(now is None or now.revision != stage.revision for now, stage in zip(read, stages, strict=True)):
            return False
        for stage in stages:
            self._stages[stage.rollout, stage.number] = replace(stage, revision=stage.revision + 1)
        self._append(order)
        return True

    def tenant_outcome(self, rollout: str, tenant: TenantId) -> TenantOutcome | None:
        return self._outcomes.get((rollout, tenant))

    def outcomes(self, rollout: str) -> Iterable[TenantOutcome]:
        keys = sorted((key for key in self._outcomes if key[0] == rollout), key=lambda key: key[1].value)
        return [self._outcomes[key] for key in keys]

    def reviews(self, rollout: str) -> Reviews | None:
        reviewed = self._reviewed.get(rollout)
        return count_reviews(reviewed) if reviewed else None

    def failures(self, rollout: str, *, limit: int) -> Sequence[TenantOutcome]:
        return [each for each in self.outcomes(rollout) if each.result is Result.FAILED][:limit]

    def admit(self, count: Count, outcome: TenantOutcome, *, before: TenantOutcome | None) -> bool:
        rollout = self._rollouts.get(count.rollout)
        if rollout is None or rollout.status is not RolloutStatus.RUNNING:
            return False
        return self._count(count, outcome, before)

    def record(self, count: Count, outcome: TenantOutcome, *, before: TenantOutcome | None) -> bool:
        return self._count(count, outcome, before)

    def _count(self, count: Count, outcome: TenantOutcome, before: TenantOutcome | None) -> bool:
        key, place = (outcome.rollout, outcome.item.tenant), (count.rollout, count.stage)
        now, stage = self._outcomes.get(key), self._stages.get(place)
        if stage is None or not count.is_allowed(stage) or not _is_same_turn(now, before):
            return False
        self._stages[place] = count.added_to(stage)
        self._outcomes[key] = outcome
        if count.reviewed:
            self._reviewed.setdefault(count.rollout, []).append(count.reviewed)
        return True

    def slow_down(self, stage: Stage, pace: Pace) -> bool:
        now = self._stages[stage.rollout, stage.number]
        if now.pace.throttles_seen >= pace.throttles_seen:
            return False
        slowed = replace(now, pace=now.pace.slowed_to(pace), revision=now.revision + 1)
        self._stages[stage.rollout, stage.number] = slowed
        return True


def count_reviews(outcomes: Iterable[TenantOutcome]) -> Reviews:
    settled = [outcome for outcome in outcomes if outcome.result.settled]
    return Reviews(
        Counter(outcome.result for outcome in settled),
        Counter(change for outcome in settled for change in set(outcome.changes)),
        Counter(move for outcome in settled for move in move_of(outcome)),
    )


def _is_same_turn(now: TenantOutcome | None, before: TenantOutcome | None) -> bool:
    """True if no other turn has written the outcome since ``before`` was read."""
    if now is None or before is None:
        return now is before
    turns = [(outcome.execution, outcome.operation_attempt) for outcome in (now, before)]
    return not now.result.settled and turns[0] == turns[1]


class FakeThrottling:
    def __init__(self) -> None:
        self.count = 0

    def throttles(self) -> int:
        return self.count


class InMemoryManifests:
    def __init__(self) -> None:
        self.written: dict[str, Sequence[Item]] = {}

    def write(self, name: str, items: Sequence[Item]) -> str:
        self.written[f"rollouts/{name}.json"] = list(items)
        return f"rollouts/{name}.json"

    def read(self, manifest: str) -> Sequence[Item]:
        return self.written[manifest]

    def remove(self, manifest: str) -> None:
        self.written.pop(manifest, None)


class FakeAlarms:
    """Alarms that exist, each with why it is on, or ``None``; and when each was on before."""

    def __init__(self, **alarms: str | None) -> None:
        self.alarms = alarms
        self._history: dict[str, list[tuple[datetime, str]]] = {}

    def sound(self, name: str, reason: str, *, at: datetime) -> None:
        self.alarms[name] = reason
        self._history.setdefault(name, []).append((at, reason))

    def recover(self, name: str) -> None:
        self.alarms[name] = None

    def unknown(self, names: Iterable[str]) -> Sequence[str]:
        return sorted(set(names) - set(self.alarms))

    def went_off(self, name: str, *, since: datetime) -> str | None:
        if reason := self.alarms.get(name, "The alarm no longer exists."):
            return reason
        return next((reason for at, reason in self._history.get(name, []) if at >= since), None)


class FakeRolloutExecutions:
    def __init__(self) -> None:
        self.started: list[str] = []
        self.running: set[str] = set()
        self.waiting: set[str] = set()
        """Task tokens that are being waited on."""
        self.not_shown: set[str] = set()
        """Executions that began a moment ago, or ended long ago."""
        self.woken: list[str] = []

    def start_rollout(self, rollout: Rollout) -> str | None:
        execution = execution_arn(rollout.name)
        if execution in self.started:
            return execution if execution in self.running else None
        self.started.append(execution)
        self.running.add(execution)
        return execution

    def is_running(self, execution: str) -> bool | None:
        return None if execution in self.not_shown else execution in self.running

    def wake(self, task_token: str) -> bool:
        self.woken.append(task_token)
        was_waiting = task_token in self.waiting
        self.waiting.discard(task_token)
        return was_waiting


class InMemoryCreateTurns:
    """Implements :class:`orchestrator.rollouts.ports.CreateTurnRows`."""

    def __init__(self) -> None:
        self._turns: CreateTurns | None = None
        self._latest = 0
        self.tickets: dict[int, Ticket] = {}

    def turns(self) -> CreateTurns | None:
        return self._turns

    def store(self, turns: CreateTurns) -> bool:
        if turns.revision != (self._turns.revision if self._turns else 0):
            return False
        self._turns = replace(turns, revision=turns.revision + 1)
        return True

    def draw_number(self) -> int:
        self._latest += 1
        return self._latest

    def put_ticket(self, ticket: Ticket) -> None:
        self.tickets[ticket.number] = ticket

    def first_ticket(self) -> Ticket | None:
        return self.tickets[min(self.tickets)] if self.tickets else None

    def remove_ticket(self, ticket: Ticket) -> None:
        if self.tickets.get(ticket.number) == ticket:
            del self.tickets[ticket.number]
