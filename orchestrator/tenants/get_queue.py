"""The one call that platforms make: a tenant's queue, or what to do until there is one.

Starting is crash-safe because nothing is written first: the execution's name is deterministic, so any
number of simultaneous callers start one execution, and its first step records it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from orchestrator.common.errors import Unsettled
from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.deadlines import MAY_STILL_RUN
from orchestrator.tenants.decisions import (
    BeingDeleted,
    Decision,
    Deleted,
    Failed,
    Limited,
    NotProvisioned,
    Ready,
    StartCreate,
    Unknown,
    Wait,
    decide,
    look,
    ready,
    version_to_create,
)
from orchestrator.tenants.records import ACCEPTED_FOR, Attempt, Audit, Metadata, Operation, Request, Status

if TYPE_CHECKING:
    from orchestrator.common.times import Clock
    from orchestrator.releases.ports import Releases
    from orchestrator.tenants.ports import CreateLimits, Executions, TenantReader

SUSPECT_AFTER = timedelta(minutes=5)
"""A Started older than this is checked against its execution. Asking is rate-limited, so not sooner."""

_ROUNDS = 25


@dataclass(frozen=True, slots=True)
class Provisioning:
    """The queue is on its way."""

    execution: str


Answer = Ready | Provisioning | NotProvisioned | Failed | BeingDeleted | Deleted | Unknown | Limited


@dataclass(frozen=True, slots=True)
class GetQueue:
    reader: TenantReader
    executions: Executions
    clock: Clock
    version: str
    """The release that tenants are created at."""
    limits: Callable[[], CreateLimits] | None
    """How creates are limited, asked for when one is about to be started. ``None`` where getQueue only looks."""
    releases: Releases

    def __call__(self, tenant: TenantId, *, by: str = "") -> Answer:
        """``by`` is who asks. The same for all who ask at once, or Step Functions takes them for different callers."""
        answer = ready(self.reader.metadata(tenant))
        if answer is not None:
            return answer
        if self.limits is None:
            return self._look(tenant)
        return self._settle(tenant, Request(by), self.limits)

    def find(self, tenant: TenantId) -> Answer:
        """The same without starting anything."""
        if served := ready(self.reader.metadata(tenant)):
            return served
        if self.limits is None:
            return self._look(tenant)
        decision, _, _ = self._decide(tenant)
        match decision:
            case Wait(execution):
                return Provisioning(execution)
            case StartCreate():
                return NotProvisioned(asking_provisions=True)
            case _:
                return decision

    def _look(self, tenant: TenantId) -> Answer:
        """Answer from the records alone. An operation that has died is given its end by the reconciler."""
        audits = self.reader.audits(tenant)
        metadata = self.reader.metadata(tenant)
        # Nothing is started, so it does not matter whether the version was ever published.
        seen = look(metadata, audits, version_to_create(metadata, audits, self.version, lambda _version: True))
        if isinstance(seen, Unknown | NotProvisioned) and (create := self._accepted(metadata)):
            return Provisioning(self.executions.execution_of(create))
        return Provisioning(seen.execution) if isinstance(seen, Wait) else seen

    def _accepted(self, metadata: Metadata | None) -> Attempt | None:
        """A create that an operator has just asked for, and that has not begun."""
        if metadata is None or metadata.asked_for_at is None:
            return None
        return metadata.asked_for if self.clock.now() - metadata.asked_for_at < ACCEPTED_FOR else None

    def _settle(self, tenant: TenantId, request: Request, limits: Callable[[], CreateLimits]) -> Answer:
        first_free_attempt = 1
        for _ in range(_ROUNDS):
            decision, version, metadata = self._decide(tenant)
            if isinstance(decision, Wait):
                return Provisioning(decision.execution)
            if not isinstance(decision, StartCreate):
                return decision
            number = max(decision.attempt, first_free_attempt)
            attempt = Attempt(tenant, Operation.CREATE, version, number)
            if first_free_attempt == 1:
                limited = limits().check(tenant, another=decision.another, caller=request.by)
                if limited is not None:
                    # An operator's order may have been accepted, and its create not have begun.
                    create = self._accepted(metadata)
                    return Provisioning(self.executions.execution_of(create)) if create else limited
            execution = self.executions.start(attempt, request)
            if execution:
                return Provisioning(execution)
            # That attempt has ended since the records were read, or was stopped before it could record
            # anything. Look again; if the records still say start, the next number is free.
            first_free_attempt = number + 1
        raise Unsettled(
            f"Tenant {tenant}: provisioning could not be started, {_ROUNDS} attempts in a row had already ended. "
            f"Look at the latest executions named {attempt.name!r} and before."
        )

    def _decide(self, tenant: TenantId) -> tuple[Decision, str, Metadata | None]:
        """The decision, the version that it is about, and what was recorded of the tenant."""
        # Audit before metadata: a create that finishes in between is then seen as Ready, never as vanished.
        audits = self.reader.audits(tenant)
        metadata = self.reader.metadata(tenant)
        version = self._version(metadata, audits)
        return decide(metadata, audits, version, abandoned=self._abandoned(audits)), version, metadata

    def _version(self, metadata: Metadata | None, audits: Sequence[Audit]) -> str:
        return version_to_create(metadata, audits, self.version, lambda version: bool(self.releases.release(version)))

    def _abandoned(self, audits: Sequence[Audit]) -> frozenset[str]:
        """Executions that say Started, have said so for long, and no longer run."""
        now = self.clock.now()
        return frozenset(
            audit.execution
            for audit in audits
            if audit.status is Status.STARTED
            and now - audit.updated_at > self._suspect_after(audit.execution)
            and not self.executions.is_running(audit.execution)
        )

    def _suspect_after(self, execution: str) -> timedelta:
        """How long an execution is believed to run. An earlier system's machines cannot be asked about theirs."""
        return SUSPECT_AFTER if self.executions.is_berths(execution) else MAY_STILL_RUN
