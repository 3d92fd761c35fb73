"""Compares all tenants with all stacks.

A large fleet takes longer than one function may run. The position is saved now and then, and when the time runs out;
another function then continues from there. The stacks that were listed are stored with the position, so each stack is
listed once and each tenant is checked once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import IntEnum

from orchestrator.reconciling.checking import TenantChecks
from orchestrator.reconciling.checkpoints import CLAIM, Checkpoint, Phase, Position
from orchestrator.reconciling.classifying import STANDS, drifted, not_compared
from orchestrator.reconciling.ports import Drift, StackSurvey, SurveyedStack, TokenRefused
from orchestrator.reconciling.progress import Progress
from orchestrator.tenants.fleet import LISTED_STATES
from orchestrator.tenants.listings import ListedTenant
from orchestrator.tenants.names import Names
from orchestrator.tenants.ports import FleetReader
from orchestrator.tenants.stack_ports import Stack
from orchestrator.tenants.stack_status import condition

DRIFT_AT_ONCE = 10
"""The maximum number of drift detections at the same time, so that CloudFormation does not throttle others."""

SAVE_EVERY = timedelta(minutes=2)
"""If a function dies, at most the work of this time is repeated. Smaller fleets are surveyed without saving."""

STACKS_PER_CHUNK = 1_000
"""The number of stacks that are stored in one row, which is about 90 KB."""

MAX_RESTARTS = 3
"""How often the list of stacks is begun again if CloudFormation refuses a token."""

_PAGE = 200
_DRIFT_PAUSE_SECONDS = 2.0


class Superseded(Exception):
    """Another function has continued the survey."""


class Mark(IntEnum):
    """The result of a survey for a stack that it has listed."""

    NOBODYS = 0
    """No tenant that was checked so far has the stack or its name."""
    NAMED = 1
    """A tenant in the index has this stack's name, and another stack."""
    TENANTS = 2
    """It is the stack of a tenant in the index."""


@dataclass
class Surveying:
    survey: StackSurvey
    fleet: FleetReader
    names: Names
    checks: TenantChecks
    progress: Progress
    saved: Checkpoint | None = None
    """The checkpoint that is stored; ``None`` if the survey was never saved."""
    _position: Position = field(default_factory=Position)
    _stacks: list[SurveyedStack] = field(default_factory=list)
    _stored: int = 0
    """The number of stacks that are stored."""
    _marks: bytearray = field(default_factory=bytearray)
    _saved_at: datetime | None = None

    def run(self) -> None:
        """Survey the fleet, from the saved position on. What was done is not lost when an exception is raised."""
        self._saved_at = self.progress.clock.now()
        if self.saved is not None:
            self._restore(self.saved.position)
        phases: Mapping[Phase, Callable[[], None]] = {
            Phase.STACKS: self._list_stacks,
            Phase.TENANTS: self._check_tenants,
            Phase.OTHERS: self._check_others,
            Phase.DRIFT: self._detect_drift,
        }
        every = list(phases)
        for phase in every[every.index(self._position.phase) :]:
            if phase is not self._position.phase:
                self._position = replace(self._position, phase=phase, after=None, state=None)
            phases[phase]()

    def save(self, *, claimed_for: timedelta = timedelta(0)) -> None:
        """Store the position, so that another function can continue, at once or after that time."""
        progress = self.progress
        self._store_stacks()
        position = replace(self._position, marks=bytes(self._marks))
        now, revision = progress.clock.now(), self.saved.revision if self.saved else 0
        checkpoint = Checkpoint(progress.so_far(), position, now + claimed_for, revision)
        if not progress.ledger.save_checkpoint(checkpoint):
            raise Superseded
        self.saved, self._saved_at = replace(checkpoint, revision=revision + 1), now
        progress.show()

    def _save_if_due(self) -> None:
        if self._saved_at is not None and self.progress.clock.now() - self._saved_at >= SAVE_EVERY:
            self.save(claimed_for=CLAIM)

    def _restore(self, position: Position) -> None:
        self._position = position
        for number in range(position.chunks):
            self._stacks += self.progress.ledger.stored_stacks(self.progress.requested, position.list_id, number)
        self._stored = len(self._stacks)
        self._marks = bytearray(position.marks)
        if position.phase is Phase.STACKS:
            self._count_stacks(self._stacks, counted=0)

    # Stacks

    def _list_stacks(self) -> None:
        while True:
            self.progress.check_time()
            try:
                page = self.survey.page(self._position.after)
            except TokenRefused:
                if self._position.restarts == MAX_RESTARTS:
                    raise
                self._list_again()
                continue
            self._stacks += map(_without_details, page.stacks)
            self._count_stacks(page.stacks, counted=self.progress.coverage.stacks)
            self._position = replace(self._position, after=page.token)
            if page.token is None:
                break
            if len(self._stacks) - self._stored >= STACKS_PER_CHUNK:
                self._store_stacks()
                self.progress.show()
            self._save_if_due()
        self._marks = bytearray(len(self._stacks))

    def _list_again(self) -> None:
        """Begin the list of stacks again. Its token may be from the function before, and too old by now."""
        self._position = Position(restarts=self._position.restarts + 1)
        self._stacks, self._stored = [], 0

    def _store_stacks(self) -> None:
        ledger, requested = self.progress.ledger, self.progress.requested
        while self._stored < len(self._stacks):
            chunk = self._stacks[self._stored : self._stored + STACKS_PER_CHUNK]
            ledger.store_stacks(requested, self._position.list_id, self._position.chunks, chunk)
            self._stored += len(chunk)
            self._position = replace(self._position, chunks=self._position.chunks + 1)

    def _count_stacks(self, added: Sequence[SurveyedStack], *, counted: int) -> None:
        """Count the added stacks with those counted before. All stacks count, because they share the quota."""
        named = counted + sum(map(self._is_named, added))
        self.progress.coverage = replace(self.progress.coverage, all_stacks=len(self._stacks), stacks=named)

    def _is_named(self, each: SurveyedStack) -> bool:
        """True if the stack's name is that of its tenant. Tenants may have adopted others, or taken one that was ready.

        A stack that is kept ready and is nobody's is left to the pool.
        """
        if not each.name.startswith(self.names.tenant_prefix):
            return False
        return not self.names.is_legacy(each.name) and not self.names.is_warm(each.name)

    # Tenants

    def _check_tenants(self) -> None:
        named = {each.name: number for number, each in enumerate(self._stacks) if self._is_named(each)}
        others = {each.stack.stack_id: number for number, each in enumerate(self._stacks) if each.name not in named}
        seen: set[str] = set()
        begin = LISTED_STATES.index(self._position.state) if self._position.state else 0
        for state in LISTED_STATES[begin:]:
            if state is not self._position.state:
                self._position = replace(self._position, state=state, after=None)
            while page := self.fleet.tenants_in(state, after=self._position.after, limit=_PAGE):
                self._check_page(page, named, others, seen)
                self._save_if_due()

    def _check_page(
        self, page: Sequence[ListedTenant], named: Mapping[str, int], others: Mapping[str, int], seen: set[str]
    ) -> None:
        expected: list[tuple[ListedTenant, Stack | None]] = []
        for listed in page:
            number = others.get(listed.stack_id or "", named.get(self.names.stack_of(listed.tenant)))
            expected.append((listed, None if number is None else self._stacks[number].stack))
        exist = self.checks.existing_queues(expected)
        for listed, stack in expected:
            self.progress.check_time()
            name = self.names.stack_of(listed.tenant)
            # A tenant that was listed in another state before was repaired since, which has changed its state.
            if name not in seen:
                seen.add(name)
                self._mark(named.get(name), Mark.NAMED)
                adopted = others.get(listed.stack_id or "")
                if adopted is not None:
                    self.progress.coverage = replace(self.progress.coverage, stacks=self.progress.coverage.stacks + 1)
                self._mark(named.get(name) if adopted is None else adopted, Mark.TENANTS)
                self.checks.check_listed(listed, stack, exist)
                if self.progress.coverage.tenants % _PAGE == 0:
                    self.progress.show()
            self._position = replace(self._position, after=listed.position)

    def _mark(self, number: int | None, mark: Mark) -> None:
        if number is not None:
            self._marks[number] = max(self._marks[number], mark)

    # Stacks that no tenant has

    def _check_others(self) -> None:
        for number in range(int(self._position.after or 0), len(self._stacks)):
            each = self._stacks[number]
            if self._marks[number] == Mark.NOBODYS and self._is_named(each):
                self.progress.check_time()
                self.checks.check_stack(each.name, each.stack)
            self._position = replace(self._position, after=str(number + 1))
            self._save_if_due()

    def _detect_drift(self) -> None:
        """Detect the drift of healthy stacks, a few at a time, because each detection takes a while."""
        if not self.progress.requested.spec.detect_drift:
            return
        of_tenants = [each.stack for each, mark in zip(self._stacks, self._marks, strict=True) if mark == Mark.TENANTS]
        stacks = {stack.stack_id: stack for stack in of_tenants if condition(stack.status) in STANDS}
        waiting = deque(sorted(stacks)[int(self._position.after or 0) :])
        while waiting or self._position.detections:
            self.progress.check_time()
            while waiting and len(self._position.detections) < DRIFT_AT_ONCE:
                detection, stack_id = self.survey.start_drift_detection(waiting[0]), waiting.popleft()
                begun = {detection: stack_id} if detection else {}
                detections = {**self._position.detections, **begun}
                self._position = replace(self._position, after=str(len(stacks) - len(waiting)), detections=detections)
            for detection, stack_id in self._position.detections.items():
                drift = self.survey.drift(detection)
                if drift.done:
                    self._note_drift(detection, stacks[stack_id], drift)
            self.progress.show()
            self._save_if_due()
            if self._position.detections:
                self.progress.pause(_DRIFT_PAUSE_SECONDS)

    def _note_drift(self, detection: str, stack: Stack, drift: Drift) -> None:
        left = {name: stack_id for name, stack_id in self._position.detections.items() if name != detection}
        self._position = replace(self._position, detections=left)
        self.progress.coverage = replace(self.progress.coverage, drift=self.progress.coverage.drift + 1)
        if drift.drifted:
            self.progress.found(drifted(stack, drift.detail))
        elif drift.failure:
            self.progress.found(not_compared(stack, drift.failure))


def _without_details(each: SurveyedStack) -> SurveyedStack:
    """The stack with the details that a survey compares, so that a large fleet fits into memory and into few rows."""
    return replace(each, stack=replace(each.stack, status_reason="", parameters={}, attached=frozenset()))
