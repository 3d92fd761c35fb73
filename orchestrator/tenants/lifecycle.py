"""The requests of operators: create, upgrade, retry, delete, label, pin and unpin a tenant.

As in getQueue, starting an execution is crash-safe: its name is deterministic, and its first step takes the tenant's
lock. The same request twice starts one execution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from orchestrator.common.errors import InvalidRequest, Unsettled
from orchestrator.common.input_limits import MAX_LABELS
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import Clock
from orchestrator.common.versions import order
from orchestrator.releases.ports import Parameters, Releases
from orchestrator.releases.states import ReleaseChooser
from orchestrator.tenants.admission import (
    Refusal,
    Refused,
    refusal,
    release_withdrawn,
    tenant_deleted,
    unknown_release,
    unknown_tenant,
    withdrawn_under,
)
from orchestrator.tenants.attempts import (
    deleted_at,
    first_creates,
    is_failed_delete,
    latest_of,
    next_attempt,
    request_of_retry,
    that_can_be_retried,
)
from orchestrator.tenants.decisions import tier_to_create, version_to_create
from orchestrator.tenants.names import Names
from orchestrator.tenants.operations import is_dead
from orchestrator.tenants.order_messages import (
    about_to_be_created,
    busy,
    changes_of,
    in_another_tier,
    no_release,
    not_deleted_by_retry,
    not_in_tier,
    refused_by,
    warm_stack_taken,
    without_stack,
)
from orchestrator.tenants.order_results import (
    Accepted,
    Changed,
    Description,
    OrderResult,
    Unchanged,
    accepted_or_busy,
    described,
    queue_given,
    record_create,
    why_not_deleted,
    would_change_stack,
)
from orchestrator.tenants.own_stack import has_unknown_stack
from orchestrator.tenants.ports import (
    CreateLimits,
    Executions,
    LabelEdit,
    Pin,
    Queues,
    SeenTenant,
    TenantDescriptions,
    TenantReader,
    UnfinishedWork,
    WarmPool,
)
from orchestrator.tenants.records import (
    Attempt,
    Audit,
    Lock,
    Metadata,
    Operation,
    Request,
    Status,
    TenantState,
)
from orchestrator.tenants.state import is_deleted, run_of, state_of, waiting_create

_ROUNDS = 25
"""The maximum number of attempts that are tried, one after the other, until one can be started."""


@dataclass(frozen=True, slots=True)
class Lifecycle:
    reader: TenantReader
    descriptions: TenantDescriptions
    releases: Releases
    executions: Executions
    queues: Queues
    clock: Clock
    version: str
    """The release that the deployment has published."""
    default_tier: str
    """The tier in which tenants are created if nobody names one."""
    chooser: ReleaseChooser
    """Reads the release of a tier that tenants are created at and upgraded to by default, and those that were
    withdrawn."""
    limits: CreateLimits
    counted_for: str | None = None
    """The caller whose creates per minute are counted. Operators' creates are not counted."""
    names: Names = field(default_factory=Names)
    parameters: Parameters | None = None
    """The parameters of tenants' templates. Only upgrades need them."""
    unfinished: UnfinishedWork | None = None
    """Unfinished work of tenants, for an early refusal. The delete itself always checks it."""
    warm_pool: WarmPool | None = None
    """The stacks that are kept ready, which new tenants take. ``None`` for requesters whose tenants take none."""
    of_warm_stacks: bool = False
    """Whether operations of the stacks that are kept ready may be requested. People may only delete them, and retry
    that: the pool does the rest."""

    def create(
        self,
        tenant: TenantId,
        request: Request,
        *,
        unpin: bool = False,
        explicit: bool = True,
        only_if: SeenTenant | None = None,
    ) -> OrderResult:
        """Create the tenant, also one that was deleted. If the tenant exists, only its labels and pin are set.

        A create that is not ``explicit`` does not restore a tenant that was deleted.
        With ``only_if``, labels and pin are not set if somebody else has created the tenant, or requested its create,
        since the metadata was read.
        """
        self._check_not_warm(tenant)
        metadata = self.reader.metadata(tenant)
        exists = metadata is not None and metadata.published
        operation = None if exists else Operation.CREATE
        if request.pin and (refused := self._not_to_pin(tenant, request.pin, metadata, request.tier, operation)):
            return refused
        if metadata is not None and exists:
            if request.tier not in (None, metadata.tier):
                return in_another_tier(metadata, request.tier, self.releases)
            return self._describe(tenant, metadata, request, unpin=unpin, only_if=only_if)
        if unpin:
            metadata = metadata and replace(metadata, pinned_version=None)
            if not explicit:
                self.descriptions.describe(
                    tenant,
                    labels=None,
                    pin=Pin(lift=True),
                    request=request,
                    at=self.clock.now(),
                    only_if=only_if,
                )
        audits = self.reader.audits(tenant)
        own = self.tier_to_create(metadata, audits)
        tier = request.tier or (self._tier_of(request.pin) if request.pin else None) or own
        version = request.pin or self.version_to_create(tier, metadata, audits)
        if version is None:
            return self._no_release(tenant, tier)
        # A delete that has not finished may give the tenant back, which then is of its former tier.
        recorded = None if metadata is not None and metadata.has_tier_of_queue else tier
        description = Description(request.labels, Pin(request.pin, lift=unpin), recorded) if explicit else None
        named = request.tier if tier == own else tier
        return self._order(
            tenant,
            Operation.CREATE,
            version,
            replace(request, explicit=explicit, tier=named),
            metadata,
            description=description,
            only_if=only_if,
        )

    def _take_warm_stack(
        self, attempt: Attempt, request: Request, description: Description | None
    ) -> OrderResult | None:
        """Give a stack that is kept ready to the new tenant; ``None`` if there is none.

        Labels and pin are set then, as those of a tenant that exists. Another caller may have created the tenant at the
        same moment, in another tier, or even have deleted it since.
        """
        tenant = attempt.tenant
        if description is None or self.warm_pool is None or self.warm_pool.take(attempt, request) is None:
            return None
        metadata = self.reader.metadata(tenant)
        if metadata is None or not metadata.published:
            return busy(tenant, self.reader.lock(tenant))
        if metadata.tier != description.tier:
            return in_another_tier(metadata, description.tier, self.releases)
        result = self._describe(tenant, metadata, request, unpin=False, only_if=None)
        return result if isinstance(result, Refused) else queue_given(metadata, warm_stack_taken(metadata))

    def tier_to_create(self, metadata: Metadata | None, audits: Sequence[Audit]) -> str:
        """The tier in which the tenant is created by default."""
        return tier_to_create(metadata, audits, self.default_tier, self.releases.release)

    def version_to_create(self, tier: str, metadata: Metadata | None, audits: Sequence[Audit]) -> str | None:
        """The release that the tenant is created at by default, in this tier; ``None`` if the tier has none."""
        choice = self.chooser.choose(tier)

        def is_available(version: str) -> bool:
            return version not in choice.withdrawn and self._tier_of(version) == tier

        return version_to_create(metadata, audits, choice.current, is_available)

    def _check_not_warm(self, tenant: TenantId) -> None:
        if not self.of_warm_stacks:
            tenant.check_is_tenants()

    def _tier_of(self, version: str) -> str | None:
        return release.tier if (release := self.releases.release(version)) else None

    def _no_release(self, tenant: TenantId, tier: str) -> Refused:
        return no_release(tenant, tier, self.releases)

    def upgrade(self, tenant: TenantId, version: str | None, request: Request) -> OrderResult:
        """Update the tenant to ``version``, by default to the release that it is pinned to, or to the current one."""
        self._check_not_warm(tenant)
        metadata = self.reader.metadata(tenant)
        tier = metadata.tier if metadata else self.default_tier
        target = version or (metadata.pinned_version if metadata else None) or self.chooser.choose(tier).current
        if target is None:
            return self._no_release(tenant, tier)
        return self._order(tenant, Operation.UPDATE, target, replace(request, version=version), metadata)

    def move(self, tenant: TenantId, tier: str, request: Request) -> OrderResult:
        """Move the tenant to the current release of another tier. Until that has succeeded, it is of its own tier.

        After a move that failed, a move to the tenant's own tier repairs its stack.
        """
        self._check_not_warm(tenant)
        metadata = self.reader.metadata(tenant)
        served = metadata if metadata is not None and metadata.published else None
        if served and served.tier == tier:
            if state_of(served, self.reader.audits(tenant)) is TenantState.UPDATE_FAILED:
                return self.upgrade(tenant, served.version, request)
            return Unchanged(f"Tenant {tenant} is already of the tier {tier}, at version {served.version}.")
        target = self.chooser.choose(tier).current
        if target is None:
            return self._no_release(tenant, tier)
        return self._order(tenant, Operation.UPDATE, target, replace(request, tier=tier), metadata)

    def retry(self, tenant: TenantId, by: str, *, reason: str = "") -> OrderResult:
        """Start the latest operation again with the same options, if it failed.

        A delete that failed and left the tenant in service is not retried: it has to be requested explicitly. No older
        operation is retried in its place, because nobody expects that from a retry after a delete.
        """
        audits, metadata = self.reader.audits(tenant), self.reader.metadata(tenant)
        if not audits:
            return unknown_tenant(tenant)
        in_service = metadata is not None and metadata.published
        latest = latest_of(that_can_be_retried(audits, in_service=in_service))
        if in_service and is_failed_delete(latest_of(audits)):
            return not_deleted_by_retry(tenant, latest)
        if latest is None or latest.status is Status.SUCCESS:
            if latest != latest_of(audits) and is_deleted(audits):
                return tenant_deleted(tenant)  # Operations that failed since then were refused because of the delete.
            at = metadata.version if metadata and in_service else None
            if metadata and at and (withdrawal := self.chooser.withdrawal(at)):
                return withdrawn_under(tenant, at, withdrawal, self.chooser.choose(metadata.tier).current)
            return Refused(
                Refusal.NOTHING_TO_RETRY, f"Tenant {tenant}: its latest operation succeeded. There is nothing to retry."
            )
        version = latest.version or self.version  # Operations from before versions were recorded have none.
        request = request_of_retry(latest, by, reason)
        is_explicit_create = request.explicit and latest.operation is Operation.CREATE
        description = Description(None, Pin()) if is_explicit_create else None
        return self._order(tenant, latest.operation, version, request, metadata, description=description)

    def delete(self, tenant: TenantId, request: Request, *, remains: bool = False) -> OrderResult:
        """Delete the tenant, if its queues are empty or the request accepts the loss of messages.

        With ``remains``, a tenant that was deleted is deleted again, because its stack was found.
        """
        metadata = self.reader.metadata(tenant)
        audits = self.reader.audits(tenant)
        deleted = is_deleted(audits)
        if metadata is None and not (audits and (remains or not deleted)) and not self._is_starting(tenant, audits):
            return Unchanged(f"Tenant {tenant} does not exist, so nothing was deleted.")
        if remains and deleted:
            # A create that was requested since the tenant was deleted must win over this delete.
            request = replace(request, asked_at=deleted_at(audits))
        return self._order(tenant, Operation.DELETE, self.version, request, metadata)

    def _is_starting(self, tenant: TenantId, audits: Sequence[Audit]) -> bool:
        """True if getQueue has started the create of a tenant that has no records yet."""
        if audits:
            return False  # getQueue starts no creates of deleted tenants.
        # During a deployment, getQueue may still use the previous release.
        in_tier = (each.version for each in self.releases.releases() if each.tier == self.default_tier)
        published = sorted(in_tier, key=order)
        versions = (self.version, self.chooser.choose(self.default_tier).current, *published[-2:])
        return any(self.executions.find_running(attempt) for attempt in first_creates(tenant, versions))

    def label(self, tenant: TenantId, edit: LabelEdit, request: Request) -> Changed | Unchanged | Refused:
        """Set and remove single labels of the tenant. The others stay."""
        metadata = self.reader.metadata(tenant)
        after = edit.applied_to(metadata.labels if metadata else {})
        if len(after) > MAX_LABELS:
            raise InvalidRequest(f"Tenant {tenant} would have {len(after)} labels; at most {MAX_LABELS} are allowed.")
        shown = ", ".join(f"{name}={value}" for name, value in sorted(after.items()))
        result = f"Tenant {tenant} has {f'the labels {shown}' if shown else 'no labels'}."
        return self._set(tenant, edit, Pin(), request, result)

    def pin(self, tenant: TenantId, version: str, request: Request) -> Changed | Unchanged | Refused:
        """Pin the tenant to the release. This does not update the tenant, but limits its updates to that release."""
        self._check_not_warm(tenant)
        metadata = self.reader.metadata(tenant)
        # A tenant that has no queue yet is created in this tier.
        tier = metadata.recorded_tier if metadata and not metadata.published else None
        if refused := self._not_to_pin(tenant, version, metadata, tier):
            return refused
        return self._set(tenant, None, Pin(version), request, f"Tenant {tenant} is pinned to version {version}.")

    def _not_to_pin(
        self,
        tenant: TenantId,
        version: str,
        metadata: Metadata | None,
        tier: str | None = None,
        operation: Operation | None = None,
    ) -> Refused | None:
        """Why nothing can be pinned to the release, or be created at it by this ``operation``.

        ``tier`` is the one that the request names.
        """
        release = self.releases.release(version)
        if release is None:
            return unknown_release(tenant, version)
        own = metadata.tier if metadata and metadata.published else None
        if refused := not_in_tier(tenant, release, own=tier or own, operation=operation):
            return refused
        withdrawal = self.chooser.withdrawal(version)
        if withdrawal is None:
            return None
        named = release.tier if release.tier != self.default_tier else None
        return release_withdrawn(tenant, version, withdrawal, operation, tier=named)

    def unpin(self, tenant: TenantId, request: Request) -> Changed | Unchanged | Refused:
        results = f"Tenant {tenant} is no longer pinned.", f"Tenant {tenant} was not pinned."
        return self._set(tenant, None, Pin(lift=True), request, *results)

    def _set(
        self, tenant: TenantId, labels: LabelEdit | None, pin: Pin, request: Request, result: str, unchanged: str = ""
    ) -> Changed | Unchanged | Refused:
        self._check_not_warm(tenant)
        metadata, audits = self.reader.metadata(tenant), self.reader.audits(tenant)
        if is_deleted(audits):
            return tenant_deleted(tenant)
        if metadata is None:
            return unknown_tenant(tenant)
        change = self.descriptions.describe(tenant, labels=labels, pin=pin, request=request, at=self.clock.now())
        if change is None:
            return busy(tenant, self.reader.lock(tenant))
        said = result if change.before != change.after else unchanged or result
        return described(change, f"{said} It is at version {metadata.version}." if metadata.version else said)

    def _describe(
        self, tenant: TenantId, metadata: Metadata, request: Request, *, unpin: bool, only_if: SeenTenant | None
    ) -> OrderResult:
        """Set labels and pin of a tenant that exists. A pin does not update the tenant."""
        exists = f"Tenant {tenant} exists, at version {metadata.version}."
        pin = Pin(request.pin, lift=unpin)
        if request.labels is None and pin == Pin():
            return Unchanged(exists)
        change = self.descriptions.describe(
            tenant, labels=request.labels, pin=pin, request=request, at=self.clock.now(), only_if=only_if
        )
        if change is None:
            return busy(tenant, self.reader.lock(tenant))
        if change.before == change.after:
            return Unchanged(f"{exists} Its labels and its pin are as requested.")
        return described(change, " ".join([exists, *changes_of(tenant, metadata, request, unpin=unpin)]))

    def _order(
        self,
        tenant: TenantId,
        operation: Operation,
        version: str,
        request: Request,
        metadata: Metadata | None,
        *,
        description: Description | None = None,
        only_if: SeenTenant | None = None,
    ) -> OrderResult:
        """Start the operation, unless it is refused. An explicit create has a ``description``, recorded beforehand."""
        first_free = 1
        for _ in range(_ROUNDS):
            audits = self.reader.audits(tenant)
            attempt = next_attempt(tenant, operation, version, audits, first_free)
            lock, waiting = self.reader.lock(tenant), waiting_create(audits)
            if lock is None and waiting is not None and operation is Operation.CREATE:
                return accepted_or_busy(Lock(run_of(waiting), None), attempt, request)
            # In later rounds, the pending create is the one that this call has recorded. A create that waits for its
            # turn does not hold up a delete: it is refused once it has its turn.
            pending = self.pending_create(metadata) if first_free == 1 and waiting is None else None
            if lock is not None and not is_dead(lock, executions=self.executions, clock=self.clock):
                if operation is Operation.DELETE and pending is not None:
                    # The delete that holds the lock was requested before that create, which therefore wins.
                    return about_to_be_created(tenant, pending)
                return accepted_or_busy(lock, attempt, request)
            if pending is not None and pending != attempt:
                return about_to_be_created(tenant, pending)
            refused = self._refusal(attempt, request, metadata, audits)
            if refused is None and operation is Operation.CREATE and first_free == 1 and pending is None:
                refused = self._limited(tenant, audits)  # A pending create has passed the limits before.
            is_new = metadata is None and not audits and only_if is None
            result = refused or (self._take_warm_stack(attempt, request, description) if is_new else None)
            if result is not None:
                return result
            # A resource does not describe a tenant with a pending create, whose requester may become the owner.
            records = description if only_if is None or pending is None else None
            now = self.clock.now()
            if records and not record_create(attempt, records, request, only_if, self.descriptions, at=now):
                return busy(tenant, None)
            execution = self.executions.start(attempt, request)
            if execution is not None:
                return Accepted(attempt, execution)
            # The attempt has ended since the records were read, or never recorded anything. Use the next number.
            first_free = attempt.number + 1
            metadata = self.reader.metadata(tenant)
        raise Unsettled(
            f"Tenant {tenant}: {operation} could not be started, because {_ROUNDS} attempts in a row had already "
            f"ended. See why these executions ended, up to {attempt.name!r}, then send the request again."
        )

    def pending_create(self, metadata: Metadata | None) -> Attempt | None:
        """An explicit create that was accepted and has not begun. Until it begins, no other operation is accepted."""
        if metadata is None or metadata.asked_for is None:
            return None
        recent = metadata.create_accepted_at(self.clock.now())
        return recent or (metadata.asked_for if self.executions.find_running(metadata.asked_for) else None)

    def _limited(self, tenant: TenantId, audits: Sequence[Audit]) -> Refused | None:
        is_new = not audits or is_deleted(audits)
        limited = self.limits.check(tenant, is_new=is_new, caller=self.counted_for)
        return refused_by(limited, tenant) if limited else None

    def _refusal(
        self, attempt: Attempt, request: Request, metadata: Metadata | None, audits: Sequence[Audit]
    ) -> Refused | Unchanged | None:
        tenant = attempt.tenant
        if attempt.operation is Operation.DELETE:
            return why_not_deleted(
                tenant, request, metadata, names=self.names, queues=self.queues, unfinished=self.unfinished
            )
        release = self.releases.release(attempt.version)
        # A request of this moment is later than everything that is recorded, whatever the clocks show.
        asked_at = request.asked_at or datetime.max.replace(tzinfo=UTC)
        refused = refusal(
            attempt,
            request,
            asked_at=asked_at,
            metadata=metadata,
            audits=audits,
            release=release,
            withdrawal=self.chooser.withdrawal(attempt.version),
        )
        if refused or attempt.operation is not Operation.UPDATE or metadata is None:
            return refused
        if has_unknown_stack(metadata, self.names):
            return without_stack(tenant)
        # After a failed update, an update to the tenant's own version repairs its stack.
        is_at_target = metadata.version == attempt.version and state_of(metadata, audits) is TenantState.READY
        if is_at_target and not would_change_stack(metadata, release, self.parameters, self.names):
            pinned = ", which it is pinned to" if metadata.pinned_version else ""
            return Unchanged(f"Tenant {tenant} is already at version {attempt.version}{pinned}.")
        return None
