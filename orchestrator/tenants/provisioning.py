"""Provisions a tenant that has no queue when getQueue is called, or says why there is none.

Starting a create is crash-safe because nothing is written first. The execution's name is deterministic, so any number
of simultaneous callers start one execution, and its first step records it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from orchestrator.common.errors import Unsettled
from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.deadlines import LEGACY_MAX_RUN_TIME
from orchestrator.tenants.decisions import (
    BeingDeleted,
    Decision,
    Deleted,
    Failed,
    Limited,
    NoRelease,
    NotProvisioned,
    StartCreate,
    Unknown,
    Wait,
    decide,
    decide_read_only,
    tier_to_create,
    version_to_create,
)
from orchestrator.tenants.ready import Ready
from orchestrator.tenants.records import Attempt, Audit, Metadata, Operation, Request, Status

if TYPE_CHECKING:
    from orchestrator.common.times import Clock
    from orchestrator.releases.ports import Releases
    from orchestrator.releases.states import Choice
    from orchestrator.tenants.ports import CreateLimits, Executions, TenantReader, WarmPool

CHECK_EXECUTION_AFTER = timedelta(minutes=5)
"""The execution of an operation that started longer ago than this is checked. Step Functions limits the rate of such
checks, so younger operations are not checked."""

_ROUNDS = 25
"""The maximum number of attempts that are tried, one after the other, until one can be started."""


@dataclass(frozen=True, slots=True)
class Provisioning:
    """The queue is being created by this execution."""

    execution: str
    wait_seconds: int | None = field(default=None, compare=False)
    """About how long the create waits until it has its turn; ``None`` if it has begun."""


Queueless = Provisioning | NotProvisioned | Failed | BeingDeleted | Deleted | Unknown | NoRelease | Limited
Answer = Ready | Queueless


@dataclass(frozen=True, slots=True)
class ProvisionQueue:
    reader: TenantReader
    executions: Executions
    clock: Clock
    version: str
    """The release that the deployment has published. Creates are at it unless another one is chosen."""
    limits: Callable[[], CreateLimits] | None
    """Returns the limits of creates when a create is about to be started. ``None`` if getQueue is read-only."""
    releases: Releases
    choose: Callable[[str], Choice]
    """Reads which release of a tier is current. It is called only if a create may be started."""
    default_tier: str
    """The tier in which new tenants are created."""
    warm_pool: Callable[[], WarmPool] | None = None
    """Returns the stacks that are kept ready, when a new tenant may take one. ``None`` if none of the default tier are
    kept."""

    def __call__(self, tenant: TenantId, *, by: str = "", is_recorded: bool = True) -> Answer:
        """``by`` is the caller. Simultaneous callers of one tenant must have the same ``by``: it is part of the
        execution's input, and Step Functions treats a start with another input as a conflict.

        ``is_recorded`` is false if the tenant was just seen to have no metadata: then it may be new.
        """
        if self.limits is None:
            return self._read_only(tenant)
        request, audits = Request(by), None
        if self.warm_pool is not None and not is_recorded:
            audits = self.reader.audits(tenant)
            if not audits and (taken := self._take(tenant, request, self.warm_pool)):
                return taken
        return self._provision(tenant, request, self.limits, audits)

    def _take(self, tenant: TenantId, request: Request, warm_pool: Callable[[], WarmPool]) -> Ready | None:
        """Give a stack that is kept ready to a new tenant. Its metadata is not read again: whether nothing is recorded
        about the tenant is a condition of the transaction.

        The limits of creates are not checked: the stack was counted when it was created.
        """
        # It is read each time, so that no tenant gets a release that was withdrawn.
        version = self.choose(self.default_tier).current
        return warm_pool().take(Attempt(tenant, Operation.CREATE, version, 1), request) if version else None

    def find(self, tenant: TenantId) -> Answer:
        """The same, but nothing is started."""
        if self.limits is None:
            return self._read_only(tenant)
        decision, _, _ = self._decide(tenant)
        match decision:
            case Wait():
                return self._waiting(decision)
            case StartCreate():
                return NotProvisioned(asking_provisions=True)
            case _:
                return decision

    def _read_only(self, tenant: TenantId) -> Answer:
        """Answer from the records alone. The reconciler ends operations whose executions have died."""
        audits = self.reader.audits(tenant)
        metadata = self.reader.metadata(tenant)
        # Nothing is started, so it does not matter whether the version was ever published.
        version = version_to_create(metadata, audits, self.version, lambda _version: True)
        decision = decide_read_only(metadata, audits, version or self.version)
        if isinstance(decision, Unknown | NotProvisioned) and (create := self._accepted(metadata)):
            return Provisioning(self.executions.execution_of(create))
        return self._waiting(decision) if isinstance(decision, Wait) else decision

    def _accepted(self, metadata: Metadata | None) -> Attempt | None:
        """A create that an operator has just requested and that has not begun."""
        return metadata.create_accepted_at(self.clock.now()) if metadata else None

    def _provision(
        self,
        tenant: TenantId,
        request: Request,
        limits: Callable[[], CreateLimits],
        audits: Sequence[Audit] | None,
    ) -> Answer:
        """``audits`` are those of the tenant, if they have just been read."""
        first_free_attempt = 1
        for _ in range(_ROUNDS):
            decision, version, metadata = self._decide(tenant, audits)
            audits = None
            if isinstance(decision, Wait):
                return self._waiting(decision)
            if not isinstance(decision, StartCreate):
                return decision
            number = max(decision.attempt, first_free_attempt)
            attempt = Attempt(tenant, Operation.CREATE, version, number)
            if first_free_attempt == 1:
                limited = limits().check(tenant, is_new=decision.is_new, caller=request.by)
                if limited is not None:
                    # An operator's create may have been accepted, and not have begun yet.
                    create = self._accepted(metadata)
                    return Provisioning(self.executions.execution_of(create)) if create else limited
            execution = self.executions.start(attempt, request)
            if execution:
                return Provisioning(execution)
            # The attempt has ended since the records were read, or was stopped before it could record anything. Decide
            # again; if a create has to be started, use the next attempt number.
            first_free_attempt = number + 1
        raise Unsettled(
            f"Tenant {tenant}: its create could not be started, because {_ROUNDS} attempts in a row had already ended. "
            f"See why these executions ended, up to {attempt.name!r}, then send the request again."
        )

    def _waiting(self, decision: Wait) -> Provisioning:
        if decision.expected_at is None:
            return Provisioning(decision.execution)
        left = (decision.expected_at - self.clock.now()).total_seconds()
        # The longer ago the expected time was, the less it says. So callers ask less and less often.
        return Provisioning(decision.execution, math.ceil(left if left > 0 else -left / 2))

    def _decide(
        self, tenant: TenantId, audits: Sequence[Audit] | None = None
    ) -> tuple[Decision | NotProvisioned | NoRelease, str, Metadata | None]:
        """The decision, the version of a create, and the tenant's metadata."""
        # The audits are read before the metadata, so a create that finishes in between is seen as Ready.
        audits = self.reader.audits(tenant) if audits is None else audits
        metadata = self.reader.metadata(tenant)
        abandoned = self._abandoned(audits)
        decision = decide(metadata, audits, self.version, abandoned=abandoned)
        if not isinstance(decision, StartCreate | Failed):
            return decision, self.version, metadata  # No release has to be chosen.
        tier = tier_to_create(metadata, audits, self.default_tier, self.releases.release)
        choice = self.choose(tier)
        version = self._version(choice, metadata, audits)
        if version is None:
            return NoRelease(tier), self.version, metadata
        decision = decide(metadata, audits, version, abandoned=abandoned)
        is_pinned = metadata is not None and metadata.pinned_version == version
        if isinstance(decision, StartCreate) and is_pinned and version in choice.withdrawn:
            return NotProvisioned(withdrawn=version), version, metadata
        return decision, version, metadata

    def _version(self, choice: Choice, metadata: Metadata | None, audits: Sequence[Audit]) -> str | None:
        def is_available(version: str) -> bool:
            release = self.releases.release(version)
            return version not in choice.withdrawn and release is not None and release.tier == choice.tier

        return version_to_create(metadata, audits, choice.current, is_available)

    def _abandoned(self, audits: Sequence[Audit]) -> frozenset[str]:
        """Executions that are recorded as Started, are old enough to be checked, and no longer run."""
        now = self.clock.now()
        return frozenset(
            audit.execution
            for audit in audits
            if audit.status is Status.STARTED
            and now - audit.seen_alive_at > self._check_after(audit.execution)
            and not self.executions.is_running(audit.execution)
        )

    def _check_after(self, execution: str) -> timedelta:
        """How long an execution is assumed to run. Berth cannot check the executions of an earlier system."""
        return CHECK_EXECUTION_AFTER if self.executions.is_berths(execution) else LEGACY_MAX_RUN_TIME
