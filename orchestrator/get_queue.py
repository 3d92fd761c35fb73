"""The one call that platforms make: a tenant's queue, or what to do until there is one.

Starting is crash-safe because nothing is written first: the execution's name is deterministic, so any
number of simultaneous callers start one execution, and its first step records it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from orchestrator.decisions import BeingDeleted, Decision, Deleted, Failed, Ready, StartCreate, Wait, decide, ready
from orchestrator.errors import Unsettled
from orchestrator.records import Attempt, Audit, Operation, Request, Status
from orchestrator.tenants import TenantId

if TYPE_CHECKING:
    from orchestrator.ports import Clock, Executions, TenantReader

SUSPECT_AFTER = timedelta(minutes=5)
"""A Started older than this is checked against its execution. Asking is rate-limited, so not sooner."""

_ROUNDS = 25


@dataclass(frozen=True, slots=True)
class Provisioning:
    """The queue is on its way."""

    execution: str


@dataclass(frozen=True, slots=True)
class NotProvisioned:
    """There is no queue, and nothing was started to make one."""


Answer = Ready | Provisioning | NotProvisioned | Failed | BeingDeleted | Deleted


@dataclass(frozen=True, slots=True)
class GetQueue:
    reader: TenantReader
    executions: Executions
    clock: Clock
    version: str

    def __call__(self, tenant: TenantId, *, by: str = "") -> Answer:
        """``by`` is who asks. The same for all who ask at once, or Step Functions takes them for different callers."""
        return ready(self.reader.metadata(tenant)) or self._settle(tenant, Request(by))

    def find(self, tenant: TenantId) -> Answer:
        """The same without starting anything."""
        if served := ready(self.reader.metadata(tenant)):
            return served
        decision, _ = self._decide(tenant)
        match decision:
            case Wait(execution):
                return Provisioning(execution)
            case StartCreate():
                return NotProvisioned()
            case _:
                return decision

    def _settle(self, tenant: TenantId, request: Request) -> Answer:
        first_free_attempt = 1
        for _ in range(_ROUNDS):
            decision, version = self._decide(tenant)
            if isinstance(decision, Wait):
                return Provisioning(decision.execution)
            if not isinstance(decision, StartCreate):
                return decision
            number = max(decision.attempt, first_free_attempt)
            attempt = Attempt(tenant, Operation.CREATE, version, number)
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

    def _decide(self, tenant: TenantId) -> tuple[Decision, str]:
        """The decision, and the version that it is about: the one that the tenant is pinned to, or the current one."""
        # Audit before metadata: a create that finishes in between is then seen as Ready, never as vanished.
        audits = self.reader.audits(tenant)
        metadata = self.reader.metadata(tenant)
        version = (metadata.pinned_version if metadata else None) or self.version
        return decide(metadata, audits, version, abandoned=self._abandoned(audits)), version

    def _abandoned(self, audits: Sequence[Audit]) -> frozenset[str]:
        """Executions that say Started, have said so for long, and no longer run."""
        suspect_before = self.clock.now() - SUSPECT_AFTER
        return frozenset(
            audit.execution
            for audit in audits
            if audit.status is Status.STARTED
            and audit.updated_at < suspect_before
            and not self.executions.is_running(audit.execution)
        )
