"""The gate of creates: gives a create its turn, or a place in the line.

A create holds its turn from its first step to its last. Giving a turn back wakes the creates that are next, so an
execution that waits enters no states. Nothing that crashes can block the line: a turn that was given to an execution
that is no longer there is given back by the next caller or by the reconciler, and everybody who finds room wakes the
next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from orchestrator.common.errors import Unsettled
from orchestrator.rollouts.create_turns import AWAIT_ADMISSION, CreateTurns, Ticket
from orchestrator.tenants.state import own_waiting
from orchestrator.tenants.turns import Admission, Place

if TYPE_CHECKING:
    from orchestrator.common.times import Clock
    from orchestrator.rollouts.ports import CreateTurnRows, Throttling
    from orchestrator.tenants.ports import TenantReader
    from orchestrator.tenants.records import Run

Wake = Callable[[str, Mapping[str, object] | None], bool]
"""Wakes the execution that waits with the task token. ``False`` if it no longer waits."""

_MAX_TRIES = 20
"""The maximum number of tries for a write that conflicts with the writes of other creates."""

_TAKES_LOCK_WITHIN = timedelta(minutes=5)
"""A create takes its tenant's lock in the step in which it gets its turn. A holder without the lock is dead after this
time. Whether its execution is running need not be asked: Step Functions allows few such calls."""

_ADMITTED: Mapping[str, object] = {"outcome": "admitted"}


@dataclass(frozen=True, slots=True)
class CreateGate:
    """Implements :class:`orchestrator.tenants.turns.Turns`."""

    rows: CreateTurnRows
    throttling: Throttling
    tenants: TenantReader
    wake: Wake
    clock: Clock

    def admit(self, run: Run) -> Admission | None:
        """Give the create its turn, unless there is no room or others wait. ``None``: it has to wait."""
        for _ in range(_MAX_TRIES):
            turns, now = self._read(), self.clock.now()
            holder = turns.holders.get(run.execution)
            if holder is not None:
                return Admission(holder.since, holder.waited)
            if not turns.has_room or self.rows.first_ticket() is not None:
                return None
            waited = self._has_waited(run)
            if self.rows.store(turns.taken(run.execution, run.tenant, now, waited=waited)):
                return Admission(now, waited, is_new=True)
        return None

    def _has_waited(self, run: Run) -> bool:
        """True if the create has lost the turn that it was given in the line, for example because it came too late.

        The rows of a create that has only just started need not be read: no turn is lost so soon.
        """
        if self.clock.now() - run.started_at <= _TAKES_LOCK_WITHIN:
            return False
        return own_waiting(self.tenants.audits(run.tenant), run) is not None

    def place(self, ticket: int | None) -> Place:
        number = ticket or self.rows.draw_number()
        turns, now = self._read(), self.clock.now()
        return Place(number, now + timedelta(seconds=turns.wait_seconds(number)), now + AWAIT_ADMISSION)

    def queue(self, run: Run, place: Place, task_token: str) -> None:
        self.rows.put_ticket(Ticket(place.ticket, run.tenant, run.execution, task_token))
        self._serve_all(self._read())  # A turn may have been given back before the ticket was stored.

    def leave(self, execution: str, *, succeeded: bool = False) -> None:
        self._serve_all(self._give_back(execution, succeeded=succeeded))

    def settle(self) -> None:
        self._serve_all(self._give_back_of_dead(self._read()))

    def _serve_all(self, turns: CreateTurns) -> None:
        """Give the turns that are free to the first in the line, and wake them."""
        if self._is_stuck(turns):
            turns = self._give_back_of_dead(turns)
        for _ in range(_MAX_TRIES):
            ticket = self.rows.first_ticket() if turns.has_room else None
            if ticket is None:
                return
            self._serve(turns, ticket)
            turns = self._read()

    def _serve(self, turns: CreateTurns, ticket: Ticket) -> None:
        is_new = ticket.execution not in turns.holders
        if is_new and not self.rows.store(turns.taken_by(ticket, self.clock.now())):
            return  # Another create came first. Everything is read again.
        woken = self.wake(ticket.task_token, _ADMITTED)
        self.rows.remove_ticket(ticket)
        if is_new and not woken:
            # The execution has died, or its state has timed out a moment ago, and it queues again with its number.
            self._give_back(ticket.execution, succeeded=False)

    def _is_stuck(self, turns: CreateTurns) -> bool:
        """True if there is no room, and no turn was taken or given back for a while: holders may have died."""
        now = self.clock.now()
        return not turns.has_room and now - (turns.moved_at or now) > _TAKES_LOCK_WITHIN

    def _give_back_of_dead(self, turns: CreateTurns) -> CreateTurns:
        for execution, holder in turns.held_since_before(self.clock.now() - _TAKES_LOCK_WITHIN).items():
            lock = self.tenants.lock(holder.tenant)
            if lock is None or lock.run.execution != execution:
                turns = self._give_back(execution, succeeded=False)
        return turns

    def _give_back(self, execution: str, *, succeeded: bool) -> CreateTurns:
        """Give the turn back, if the create has one, and return the turns as they are now."""
        for _ in range(_MAX_TRIES):
            turns = self._read()
            if execution not in turns.holders:
                return turns
            left = turns.given_back(execution, self.clock.now(), succeeded=succeeded)
            if self.rows.store(left):
                return replace(left, revision=left.revision + 1)
        raise Unsettled(
            f"The turn of {execution} was not given back, because other creates changed the turns {_MAX_TRIES} times "
            "in a row. The step is retried."
        )

    def _read(self) -> CreateTurns:
        """The turns, with the pace after the latest throttles. The next write stores it."""
        throttles, now = self.throttling.throttles(), self.clock.now()
        turns = self.rows.turns()
        return CreateTurns.initial(throttles, now) if turns is None else turns.with_throttles(throttles, now)
