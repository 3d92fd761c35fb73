"""What operators ask for: create, upgrade, retry and delete a tenant.

As with getQueue nothing is written before the execution: its name is deterministic, and its first step takes the
tenant's lock. Asking twice for the same starts it once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from orchestrator.common.errors import Unsettled
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import Clock
from orchestrator.common.versions import order
from orchestrator.releases.ports import Parameters, Releases
from orchestrator.releases.published import fingerprint
from orchestrator.releases.records import Release
from orchestrator.releases.template_contract import KMS_KEY_PARAMETER
from orchestrator.tenants.admission import Refusal, Refused, refusal, tenant_deleted, unknown_release, unknown_tenant
from orchestrator.tenants.decisions import FleetFull, Limited, TooManyCreates, version_to_create
from orchestrator.tenants.deleting import messages_of, tell_messages, why_not_adopted
from orchestrator.tenants.names import Names
from orchestrator.tenants.operations import is_dead
from orchestrator.tenants.own_stack import has_unknown_stack, why_out_of_reach
from orchestrator.tenants.ports import CreateLimits, Executions, Pin, Queues, Seen, TenantDescriptions, TenantReader
from orchestrator.tenants.records import (
    ACCEPTED_FOR,
    Attempt,
    Audit,
    Lock,
    Messages,
    Metadata,
    Operation,
    Request,
    Status,
    TenantState,
)
from orchestrator.tenants.state import delete_counts, is_deleted, state_of

_ROUNDS = 25


@dataclass(frozen=True, slots=True)
class Accepted:
    """The operation has been started, or was under way already."""

    attempt: Attempt
    execution: str


@dataclass(frozen=True, slots=True)
class Unchanged:
    """There was nothing to do."""

    reason: str


Ordered = Accepted | Unchanged | Refused


@dataclass(frozen=True, slots=True)
class Description:
    """What is said about a tenant that is to be created."""

    labels: Mapping[str, str] | None
    pin: Pin


@dataclass(frozen=True, slots=True)
class Lifecycle:
    reader: TenantReader
    descriptions: TenantDescriptions
    releases: Releases
    executions: Executions
    queues: Queues
    clock: Clock
    version: str
    """The release that tenants are created at and upgraded to, unless another is named."""
    limits: CreateLimits
    counted_for: str | None = None
    """Whom creates are counted for, by the minute. Operators' are not counted."""
    names: Names = field(default_factory=Names)
    parameters: Parameters | None = None
    """What tenants' templates are given, for whoever upgrades tenants."""

    def create(
        self,
        tenant: TenantId,
        request: Request,
        *,
        unpin: bool = False,
        explicit: bool = True,
        only_if: Seen | None = None,
    ) -> Ordered:
        """Create the tenant, also one that was deleted. Labels and pin are set on one that is there, too.

        Not ``explicit`` when nobody asked for the tenant itself: whoever was deleted meanwhile is not brought back.
        With ``only_if`` nothing is said about a tenant that has become somebody else's since it was seen.
        """
        if request.pin and self.releases.release(request.pin) is None:
            return unknown_release(tenant, request.pin)
        metadata = self.reader.metadata(tenant)
        if metadata is not None and metadata.published:
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
        asked = replace(request, explicit=explicit)
        version = request.pin or self.version_to_create(metadata, self.reader.audits(tenant))
        said = Description(request.labels, Pin(request.pin, lift=unpin)) if explicit else None
        return self._order(tenant, Operation.CREATE, version, asked, metadata, introduce=said, only_if=only_if)

    def version_to_create(self, metadata: Metadata | None, audits: Sequence[Audit]) -> str:
        """The release that the tenant is created at, if no other is named."""
        return version_to_create(metadata, audits, self.version, lambda version: bool(self.releases.release(version)))

    def upgrade(self, tenant: TenantId, version: str | None, request: Request) -> Ordered:
        """Move the tenant to a release: the one named, the one that it is pinned to, or the current one."""
        metadata = self.reader.metadata(tenant)
        target = version or (metadata.pinned_version if metadata else None) or self.version
        return self._order(tenant, Operation.UPDATE, target, replace(request, version=version), metadata)

    def retry(self, tenant: TenantId, by: str, *, reason: str = "") -> Ordered:
        """Try the latest operation again, as it was asked for, if it failed.

        A delete that failed and left the tenant in service is not tried again: it has to be asked for by name. Nor is
        an older operation in its place, which nobody who says "retry" after such a delete has in mind.
        """
        audits, metadata = self.reader.audits(tenant), self.reader.metadata(tenant)
        if not audits:
            return unknown_tenant(tenant)
        in_service = metadata is not None and metadata.published
        latest = _latest(_that_can_be_retried(audits, in_service=in_service))
        if in_service and _is_failed_delete(_latest(audits)):
            return _not_deleted_by_retry(tenant, latest)
        if latest is None or latest.status is Status.SUCCESS:
            if latest != _latest(audits) and is_deleted(audits):
                return tenant_deleted(tenant)  # What failed since then was refused because of that.
            return Refused(
                Refusal.NOTHING_TO_RETRY, f"Tenant {tenant}: its latest operation succeeded. There is nothing to retry."
            )
        version = latest.version or self.version
        # A create that a later delete has overruled stays overruled.
        asked_at = latest.asked_at if latest.operation is Operation.CREATE else None
        # A resource's delete is repeated for that resource, whose tenant alone it deletes. A create is the operator's.
        resource = latest.request.resource if latest.operation is Operation.DELETE else None
        # What nobody has asked for by name brings nobody back either: a delete may be about to begin.
        request = replace(latest.request, by=by, resource=resource, asked_at=asked_at, reason=reason)
        asked_for_again = request.explicit and latest.operation is Operation.CREATE
        introduce = Description(None, Pin()) if asked_for_again else None
        return self._order(tenant, latest.operation, version, request, metadata, introduce=introduce)

    def delete(self, tenant: TenantId, request: Request, *, remains: bool = False) -> Ordered:
        """Delete the tenant, if nothing is lost by it or that was asked for.

        ``remains`` of a tenant that was deleted are deleted, too: someone has seen a stack that nobody should have.
        """
        metadata = self.reader.metadata(tenant)
        audits = self.reader.audits(tenant)
        deleted = is_deleted(audits)
        if metadata is None and not (audits and (remains or not deleted)) and not self._is_asked_for(tenant, audits):
            return Unchanged(f"There is no tenant {tenant}, so there was nothing to delete.")
        if remains and deleted:
            # Whoever has asked for the tenant since it was deleted is not overruled.
            request = replace(request, asked_at=_deleted_at(audits))
        return self._order(tenant, Operation.DELETE, self.version, request, metadata)

    def _is_asked_for(self, tenant: TenantId, audits: Sequence[Audit]) -> bool:
        """Whether getQueue has started a create of a tenant that nothing is recorded of yet."""
        if audits:
            return False  # getQueue starts nothing for a tenant that was deleted.
        # During a deployment the getQueue of the release before is still at work. A first attempt may have died.
        published = sorted((release.version for release in self.releases.releases()), key=order)
        attempts = [
            Attempt(tenant, Operation.CREATE, version, number)
            for version in dict.fromkeys((self.version, *published[-2:]))
            for number in (1, 2)
        ]
        return any(self.executions.find_running(attempt) for attempt in attempts)

    def pin(self, tenant: TenantId, version: str, request: Request) -> Unchanged | Refused:
        """Have the tenant stay at that release, or go there and no further. It is not moved by this."""
        if self.releases.release(version) is None:
            return unknown_release(tenant, version)
        return self._say(tenant, Pin(version), request, f"Tenant {tenant} is pinned to version {version}")

    def unpin(self, tenant: TenantId, request: Request) -> Unchanged | Refused:
        return self._say(tenant, Pin(lift=True), request, f"Tenant {tenant} is not pinned")

    def _say(self, tenant: TenantId, pin: Pin, request: Request, said: str) -> Unchanged | Refused:
        metadata, audits = self.reader.metadata(tenant), self.reader.audits(tenant)
        if is_deleted(audits):
            return tenant_deleted(tenant)
        if metadata is None:
            return unknown_tenant(tenant)
        if not self.descriptions.describe(tenant, labels=None, pin=pin, request=request, at=self.clock.now()):
            return _busy(tenant, self.reader.lock(tenant))
        return Unchanged(f"{said}. It is at version {metadata.version}." if metadata.version else f"{said}.")

    def _describe(
        self, tenant: TenantId, metadata: Metadata, request: Request, *, unpin: bool, only_if: Seen | None
    ) -> Ordered:
        """Labels and pin of a tenant that is there. A pin says where it stays; it moves nothing."""
        there = f"Tenant {tenant} is there, at version {metadata.version}"
        pin = Pin(request.pin, lift=unpin)
        if request.labels is None and pin == Pin():
            return Unchanged(f"{there}.")
        said = self.descriptions.describe(
            tenant, labels=request.labels, pin=pin, request=request, at=self.clock.now(), only_if=only_if
        )
        if not said:
            return _busy(tenant, self.reader.lock(tenant))
        return Unchanged(" ".join([f"{there}.", *_changes(tenant, metadata, request, unpin=unpin)]))

    def _order(
        self,
        tenant: TenantId,
        operation: Operation,
        version: str,
        request: Request,
        metadata: Metadata | None,
        *,
        introduce: Description | None = None,
        only_if: Seen | None = None,
    ) -> Ordered:
        first_free = 1
        for _ in range(_ROUNDS):
            audits = self.reader.audits(tenant)
            attempt = _next_attempt(tenant, operation, version, audits, first_free)
            pending = self.pending_create(metadata) if first_free == 1 else None  # Later it is the one from here.
            lock = self.reader.lock(tenant)
            if lock is not None and not is_dead(lock, executions=self.executions, clock=self.clock):
                if operation is Operation.DELETE and pending is not None:
                    # The delete that owns the tenant was asked for before that create, and does not overrule it.
                    return _about_to_be_created(tenant, pending)
                return _told_about(lock, attempt, request)
            if pending is not None and pending != attempt:
                return _about_to_be_created(tenant, pending)
            refused = self._refusal(attempt, request, metadata, audits)
            if refused is None and operation is Operation.CREATE and first_free == 1 and pending is None:
                refused = self._limited(tenant, audits)  # A create that is pending was let through before.
            if refused is not None:
                return refused
            # A resource says nothing about a tenant that somebody is about to create: it may become theirs.
            says = introduce if only_if is None or pending is None else None
            if says and not self._introduce(attempt, says, request, only_if):
                return _busy(tenant, None)
            execution = self.executions.start(attempt, request)
            if execution is not None:
                return Accepted(attempt, execution)
            # That attempt has ended since the records were read, or never recorded anything. The next is free.
            first_free = attempt.number + 1
            metadata = self.reader.metadata(tenant)
        raise Unsettled(
            f"Tenant {tenant}: {_ROUNDS} attempts in a row had already ended. Look at the executions up to "
            f"{attempt.name!r}."
        )

    def pending_create(self, metadata: Metadata | None) -> Attempt | None:
        """An explicit create that was accepted and has not begun. Until it has, nothing else is accepted.

        Step Functions may not show an execution that was started a moment ago, so the row is believed for a minute.
        """
        if metadata is None or metadata.asked_for is None or metadata.asked_for_at is None:
            return None
        recent = self.clock.now() - metadata.asked_for_at < ACCEPTED_FOR
        return metadata.asked_for if recent or self.executions.find_running(metadata.asked_for) else None

    def _limited(self, tenant: TenantId, audits: Sequence[Audit]) -> Refused | None:
        another = not audits or is_deleted(audits)
        limited = self.limits.check(tenant, another=another, caller=self.counted_for)
        return _refused_by(limited, tenant) if limited else None

    def _introduce(self, attempt: Attempt, said: Description, request: Request, only_if: Seen | None) -> bool:
        """Write down what is said about a tenant whose create is about to be started.

        Until the create has begun, nothing else says that it was asked for. A delete right after it finds this row; and
        if getQueue has started a create before, that one brings the tenant with these labels, or makes way for the pin.
        """
        return self.descriptions.describe(
            attempt.tenant,
            labels=said.labels,
            pin=said.pin,
            request=request,
            at=self.clock.now(),
            asked_for=attempt,
            only_if=only_if,
        )

    def _refusal(
        self, attempt: Attempt, request: Request, metadata: Metadata | None, audits: Sequence[Audit]
    ) -> Refused | Unchanged | None:
        tenant = attempt.tenant
        if attempt.operation is Operation.DELETE:
            if reason := why_not_adopted(metadata, self.names, self.queues):
                return Refused(Refusal.NOT_ADOPTED, reason)
            patient = request.force or request.drain_seconds
            # The delete itself says what is the matter with a stack out of reach. Its queue is out of reach, too.
            held = {} if patient or why_out_of_reach(metadata, self.names) else messages_of(metadata, self.queues)
            if not held:
                return None
            return Refused(
                Refusal.NOT_EMPTY,
                f"Tenant {tenant} still has messages: {tell_messages(held)}. Nothing was deleted. Receive them, wait "
                "for them to be received (drain), or force the deletion.",
                {"messages": {name: _counts(messages) for name, messages in held.items()}},
            )
        release = self.releases.release(attempt.version)
        # Asked for now, that is after everything that is recorded: clocks need not be compared for that.
        asked_at = request.asked_at or datetime.max.replace(tzinfo=UTC)
        refused = refusal(attempt, request, asked_at=asked_at, metadata=metadata, audits=audits, release=release)
        if refused or attempt.operation is not Operation.UPDATE or metadata is None:
            return refused
        if has_unknown_stack(metadata, self.names):
            return _without_stack(tenant)
        # After a failed update, updating to where the tenant is heals its stack.
        there = metadata.version == attempt.version and state_of(metadata, audits) is TenantState.READY
        if there and not self._would_be_made_otherwise(metadata, release):
            pinned = ", which it is pinned to" if metadata.pinned_version else ""
            return Unchanged(f"Tenant {tenant} is at version {attempt.version} already{pinned}.")
        return None

    def _would_be_made_otherwise(self, metadata: Metadata, release: Release | None) -> bool:
        """True if the same release makes another stack now, for example with another key."""
        if self.parameters is None or release is None:
            return False
        if metadata.deployed is None:
            # Nobody knows which key the stack has, if any. CloudFormation says so if there is nothing to change.
            return KMS_KEY_PARAMETER in release.parameters
        made_from = fingerprint(release, self.parameters(metadata.tenant, release))
        return made_from not in (None, metadata.deployed)


def _changes(tenant: TenantId, metadata: Metadata, request: Request, *, unpin: bool) -> list[str]:
    """What a create has changed of a tenant that was there."""
    told = [] if request.labels is None else ["Its labels are recorded."]
    if unpin:
        told.append("It is not pinned any more.")
    elif request.pin and request.pin == metadata.version:
        told.append("It is pinned to that version now.")
    elif request.pin:
        told.append(f"It is pinned to version {request.pin} now. Move it there: berth upgrade {tenant}")
    return told


def _without_stack(tenant: TenantId) -> Refused:
    return Refused(
        Refusal.NOT_ADOPTED,
        f"Tenant {tenant} is from before Berth, and the stack of its queue is not on record. The tenant is served, but "
        "cannot be upgraded. Have it adopted: berth adopt. If that says that no stack has the queue, the tenant has to "
        "be deleted and created again: see A fleet from before Berth in the runbook.",
    )


def _refused_by(limited: Limited, tenant: TenantId) -> Refused:
    match limited:
        case FleetFull(tenants, limit):
            return Refused(
                Refusal.FLEET_FULL,
                f"Tenant {tenant} was not created: there are {tenants} tenants, and there may be {limit} "
                "(berth:maxTenants). Delete tenants that nobody needs, or deploy with a higher limit, up to the number "
                "of stacks that the account may have. How many that is: berth doctor",
                {"tenants": tenants, "maxTenants": limit},
            )
        case TooManyCreates(limit, seconds):
            return Refused(
                Refusal.TOO_MANY_CREATES,
                f"Tenant {tenant} was not created yet: {limit} creates were started within a minute, which is as many "
                f"as a caller may (berth:createsPerMinute). The next may be started in {seconds} seconds.",
                {"retryAfterSeconds": seconds},
            )


def _next_attempt(
    tenant: TenantId, operation: Operation, version: str, audits: Sequence[Audit], first_free: int
) -> Attempt:
    same = [
        audit.attempt
        for audit in audits
        if audit.operation is operation and (operation is Operation.DELETE or audit.version == version)
    ]
    return Attempt(tenant, operation, version, max([first_free, *(number + 1 for number in same)]))


def _that_can_be_retried(audits: Sequence[Audit], *, in_service: bool) -> list[Audit]:
    """A delete that left the tenant in service was refused. Once a delete counts, whatever else did not ask for the
    tenant itself was refused because of it.
    """
    if in_service:
        return [audit for audit in audits if audit.operation is not Operation.DELETE]
    if delete_counts(audits):
        return [audit for audit in audits if audit.operation is Operation.DELETE or audit.request.explicit]
    return list(audits)


def _is_failed_delete(audit: Audit | None) -> bool:
    return audit is not None and audit.operation is Operation.DELETE and audit.status is Status.FAILURE


def _not_deleted_by_retry(tenant: TenantId, before: Audit | None) -> Refused:
    """``before`` is the latest operation before the delete that failed."""
    reason = (
        f"Tenant {tenant}: its latest operation, a delete, failed and left the tenant in service. A retry deletes no "
        f"tenant that is in service. Ask for the delete again: berth delete {tenant}"
    )
    if before is not None and before.operation is Operation.UPDATE and before.status is Status.FAILURE:
        reason += f". Or ask for the update that failed before it: berth upgrade {tenant} --to {before.version}"
    return Refused(Refusal.NOTHING_TO_RETRY, reason)


def _latest(audits: Sequence[Audit]) -> Audit | None:
    return max(audits, key=lambda audit: audit.updated_at, default=None)


def _deleted_at(audits: Sequence[Audit]) -> datetime | None:
    """When the delete was asked for. Rows from before 0.5.0 say only when it ended."""
    return next((audit.asked_at or audit.updated_at for audit in audits if audit.operation is Operation.DELETE), None)


def _told_about(lock: Lock, asked_for: Attempt, request: Request) -> Accepted | Refused:
    """The tenant's owner: the very operation that is asked for, or another."""
    owner = lock.run.attempt
    same = owner.operation is asked_for.operation
    same &= owner.operation is Operation.DELETE or owner.version == asked_for.version
    specs = _specs(request)
    if same and specs in (Request(), _specs(lock.run.request)):
        return Accepted(owner, lock.run.execution)
    return _busy(asked_for.tenant, lock)


def _specs(request: Request) -> Request:
    """What was asked for, whoever asked, whenever and why. The version is the attempt's."""
    return replace(request, by="", resource=None, explicit=False, version=None, asked_at=None, reason="")


def _busy(tenant: TenantId, lock: Lock | None) -> Refused:
    if lock is None:
        return Refused(Refusal.BUSY, f"Tenant {tenant} is being changed. Ask again.")
    operation, release = lock.run.attempt.operation, lock.run.attempt.release
    what = f"{operation} {release}" if release else operation.value
    return Refused(
        Refusal.BUSY,
        f"Tenant {tenant} is busy: {what} is going on. Ask again when it has ended.",
        {"operation": operation.value, "version": release, "execution": lock.run.execution},
    )


def _about_to_be_created(tenant: TenantId, create: Attempt) -> Refused:
    return Refused(
        Refusal.BUSY,
        f"Tenant {tenant} is busy: {create.operation} {create.version} is about to begin. Ask again when it has ended.",
        {"operation": create.operation.value, "version": create.version},
    )


def _counts(messages: Messages) -> dict[str, int]:
    return {"visible": messages.visible, "inFlight": messages.in_flight, "delayed": messages.delayed}
