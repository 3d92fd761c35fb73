"""The turns of creates: only as many creates change stacks at once as CloudFormation's rate allows.

A create that has no turn waits in a line, without its tenant's lock: so a delete need not wait for it, and the create
is refused once it has its turn. :mod:`orchestrator.rollouts.create_gate` gives the turns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from orchestrator.common.errors import Conflict
from orchestrator.common.times import Clock
from orchestrator.tenants.deadlines import MAX_WAIT_FOR_TURN
from orchestrator.tenants.outcomes import GaveUp, Queued, Waiting
from orchestrator.tenants.ports import Executions, OperationLedger, TenantReader
from orchestrator.tenants.records import Operation, Run
from orchestrator.tenants.state import own_waiting


@dataclass(frozen=True, slots=True)
class Admission:
    """A create has its turn, since this time."""

    since: datetime
    waited: bool = False
    """True if the create was in the line before."""
    is_new: bool = False
    """True if the create has had no turn before this request."""


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a waiting create in the line."""

    ticket: int
    expected_at: datetime
    """About when the create gets its turn."""
    waits_until: datetime
    """When its execution asks again, if nothing wakes it before. Until then, the execution need not be checked."""


class Turns(Protocol):
    """Gives creates their turns, and manages the line of those that wait."""

    def admit(self, run: Run) -> Admission | None:
        """Give the create its turn, or return the turn that it has. ``None``: it has to wait."""

    def place(self, ticket: int | None) -> Place:
        """The place of a create in the line. ``ticket`` is its number, if it has waited before."""

    def queue(self, run: Run, place: Place, task_token: str) -> None:
        """Put the create into the line. It is woken by its task token when it has its turn, or at once."""

    def settle(self) -> None:
        """Give back the turns of creates that have died, and wake those who are next."""

    def leave(self, execution: str, *, succeeded: bool = False) -> None:
        """Give the create's turn back, if it has one, and wake those who are next."""


def queued(run: Run, clock: Clock) -> Queued | GaveUp:
    if clock.now() - run.started_at <= MAX_WAIT_FOR_TURN:
        return Queued()
    hours = int(MAX_WAIT_FOR_TURN.total_seconds() // 3600)
    return GaveUp(
        f"Tenant {run.tenant}: its create did not get its turn within {hours} hours, because too many creates wait. "
        "Nothing was created. Request the operation again.",
        throttled=True,
    )


def since_admission(run: Run, admission: Admission | None) -> Run:
    """The run, and if it has waited: since its turn. Its deadline counts from then; its request is as old as it was."""
    if admission is None or not admission.waited:
        return run
    return replace(run, started_at=admission.since, request=replace(run.request, asked_at=run.asked_at))


def await_admission(
    run: Run,
    *,
    task_token: str,
    reader: TenantReader,
    ledger: OperationLedger,
    executions: Executions,
    turns: Turns,
    clock: Clock,
) -> Waiting:
    """Put the create into the line, and record that it waits. It is woken when it has its turn.

    It keeps its place if it has waited before. A payload may be forged, but not the token of a state that waits. Step
    Functions allows few calls that would confirm the execution itself; Begin makes one once the create has its turn.
    """
    if run.attempt.operation is not Operation.CREATE or not executions.is_waiting(task_token):
        raise Conflict(
            f"Tenant {run.tenant}: no create waits with the task token that {run.attempt.name} has sent. Nothing was "
            "recorded."
        )
    own = own_waiting(reader.audits(run.tenant), run)
    place = turns.place(own.ticket if own else None)
    # The record comes first. Once the create is in the line, it may be woken, and write its own records.
    ledger.wait_for_turn(run, place, at=clock.now())
    turns.queue(run, place, task_token)
    return Waiting()
