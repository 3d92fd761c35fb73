"""Adopting tenants from before Berth: adding them to the index, and recording their stacks.

Such tenants are not in the index, so lists, rollouts and surveys do not include them. Their stacks may have names that
Berth does not derive. An adoption changes only rows, nothing in CloudFormation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from orchestrator.common.errors import InvalidTenantId, QueueOutOfReach, UnreadableRows
from orchestrator.common.tenant_ids import WARM_PREFIX, TenantId
from orchestrator.common.times import Clock
from orchestrator.reconciling.ports import Adopted, SurveyedStack, UnlistedTenant, UnlistedTenants
from orchestrator.reconciling.records import Finding, Kind, Remedy
from orchestrator.releases.template_contract import (
    DEAD_LETTER_QUEUE,
    INBOUND_QUEUE,
    OUTBOUND_QUEUE,
    SERVICE_TOKEN_PARAMETER,
)
from orchestrator.tenants.changes import adoption
from orchestrator.tenants.deadlines import LEGACY_MAX_RUN_TIME
from orchestrator.tenants.names import Names
from orchestrator.tenants.operation_rows import empty_metadata
from orchestrator.tenants.own_stack import has_unknown_stack
from orchestrator.tenants.ports import Queues, TenantReader
from orchestrator.tenants.records import Audit, Metadata, Operation, Queue, Request, RootCause, Status, TenantState
from orchestrator.tenants.stack_ports import Stack, Stacks
from orchestrator.tenants.stack_status import StackCondition, condition
from orchestrator.tenants.state import root_cause_of, state_of

ADOPTED = "adopted"
"""The value of ``revived_by`` in the audit of a delete that an adoption found to be superseded."""

_LOST = RootCause(
    "Execution", "AWS::StepFunctions::Execution", "The system before Berth did not record how the operation ended."
)
_MAX_VERSION = 100
"""The maximum size of a version in bytes. The version is part of a key of the index, and of a list's cursor."""
_SETTING = "berth:legacyStackPrefixes"
_CORRECT_ROWS = "Correct the tenant's rows in the table, or delete them."


@dataclass(frozen=True, slots=True)
class NotAdopted:
    """The tenant was not adopted, for this reason."""

    reason: str
    advice: str


@dataclass(frozen=True, slots=True)
class FoundStack:
    stack: Stack
    logical_id: str
    """The logical id of the tenant's queue in the stack's template."""
    queue: Queue
    """The tenant's queue, with the URL that CloudFormation lists. Rows may have a URL of an older SDK."""


@dataclass
class KnownStacks:
    """All stacks of the account and region, and the tenants that are recorded for the stacks and their queues."""

    stacks: Sequence[SurveyedStack]
    given: dict[str, TenantId] = field(default_factory=dict)
    """The tenant of each stack, by stack id, from the index and from this adoption."""
    queues: dict[str, TenantId] = field(default_factory=dict)
    """The tenant of each inbound queue, by the queue's ARN, from the index and from this adoption."""
    of_unlisted: Callable[[], Iterable[Metadata]] = tuple
    """Reads the metadata of all tenants that are not in the index. This scans the whole table."""
    _has_read_all: bool = False

    def note(self, metadata: Metadata | None) -> None:
        """Remember the tenant of the stack and the queue in the metadata."""
        if metadata is None:
            return
        if metadata.stack_id is not None:
            self.given.setdefault(metadata.stack_id, metadata.tenant)
        if metadata.queue is not None:
            self.queues.setdefault(metadata.queue.arn, metadata.tenant)

    def is_anothers(self, logical_id: str, queue: Queue, tenant: TenantId) -> bool:
        """True if the queue is recorded as the inbound queue of another tenant.

        A dead-letter queue is never an inbound queue, so the table is read only for outbound queues.
        """
        if logical_id == OUTBOUND_QUEUE and not self._has_read_all:
            self._has_read_all = True
            for metadata in self.of_unlisted():
                if metadata.queue is not None:
                    self.queues.setdefault(metadata.queue.arn, metadata.tenant)
        return self.queues.get(queue.arn, tenant) != tenant

    def candidates(self, tenant: TenantId, metadata: Metadata, own_name: str) -> Iterator[SurveyedStack]:
        """The stacks that may have the tenant's queue, the likeliest first. Their resources decide.

        CloudFormation names a queue after its stack, unless the template sets its name.
        """
        queue_name = metadata.queue.name if metadata.queue else ""
        likely = (
            lambda each: each.stack.stack_id == metadata.stack_id,
            lambda each: each.name == own_name,
            lambda each: is_same_queue(each.stack.queue, metadata.queue),
            lambda each: each.stack.tenant_id == tenant.value,
            lambda each: queue_name.startswith(f"{each.name}-"),
        )
        found = {each.stack.stack_id: each for sign in likely for each in self.stacks if sign(each)}
        yield from found.values()


@dataclass(frozen=True, slots=True)
class Adopting:
    unlisted: UnlistedTenants
    tenants: TenantReader
    stacks: Stacks
    queues: Queues
    clock: Clock

    def adopt(self, tenant_id: str, known: KnownStacks, *, request: Request, dry_run: bool) -> Finding | None:
        """Adopt the tenant, or report what an adoption would do. ``None`` if the tenant needs no adoption any more."""
        if tenant_id.startswith(WARM_PREFIX):
            return None
        try:
            return self._adopt(TenantId.parse(tenant_id), known, request=request, dry_run=dry_run)
        except (InvalidTenantId, UnreadableRows) as unreadable:
            return _not_adopted_finding(tenant_id, NotAdopted(str(unreadable), _CORRECT_ROWS))

    def _adopt(self, tenant: TenantId, known: KnownStacks, *, request: Request, dry_run: bool) -> Finding | None:
        seen = self.unlisted.unlisted(tenant)
        if seen is None or not needs_adoption(seen, self.stacks.names):
            # Another adoption at the same time may have recorded the tenant's stack.
            known.note(self.tenants.metadata(tenant))
            return None
        wants_stack = not seen.listed or has_unknown_stack(seen.metadata, self.stacks.names)
        found = _refusal(seen, self.clock.now()) or (self._stack_of(seen, known) if wants_stack else None)
        if isinstance(found, NotAdopted):
            return _not_adopted_finding(tenant.value, found)
        if found is None and seen.listed and not seen.unfinished:
            return _not_adopted_finding(tenant.value, _NO_STACK)
        adopted = plan(seen, found.stack.stack_id, found.queue) if found else plan(seen, None)
        if found and adopted.state is TenantState.DELETED:
            return _not_adopted_finding(tenant.value, _not_deleted(found.stack))
        has_none = found is None and wants_stack and seen.metadata is not None and seen.metadata.queue is not None
        detail = _detail(seen, adopted, found, has_none=has_none)
        finding = Finding(Kind.UNLISTED, tenant.value, detail, Remedy.ADOPT, _NO_STACK.advice if has_none else "")
        if found:
            known.given[found.stack.stack_id] = tenant
            known.queues.setdefault(found.queue.arn, tenant)
        if dry_run:
            return finding
        at = self.clock.now()
        change = adoption(
            seen.metadata or empty_metadata(tenant),
            adopted.metadata or empty_metadata(tenant),
            state=adopted.state,
            closed=adopted.closed,
            request=request,
            at=at,
        )
        if not self.unlisted.adopt(seen, adopted, change):
            return replace(finding, result="the tenant has changed meanwhile. Repeat the adoption: berth adopt")
        return replace(finding, result=f"listed as {adopted.state}", repaired=True)

    def _stack_of(self, seen: UnlistedTenant, known: KnownStacks) -> FoundStack | NotAdopted | None:
        """The stack that has the tenant's queue among its resources, as CloudFormation lists them."""
        metadata, own_name = seen.metadata, self.stacks.names.stack_of(seen.tenant)
        if metadata is None:
            return None
        out_of_reach: list[str] = []
        others_stack: Stack | None = None
        for each in known.candidates(seen.tenant, metadata, own_name) if metadata.queue else ():
            if condition(each.stack.status) is StackCondition.GONE:
                continue
            if self._is_another_control_planes(each.stack):
                # The author of its template chose its outputs, so the search for the stack with the queue continues.
                others_stack = each.stack if is_same_queue(each.stack.queue, metadata.queue) else others_stack
            elif not self._may_look_into(each, seen.tenant):
                out_of_reach.append(each.name)
            elif found := self._in_stack(each.stack, metadata, known):
                return found
        if others_stack:
            return _of_another_control_plane(others_stack)
        if out_of_reach:
            return NotAdopted(
                f"its stack seems to be {' or '.join(out_of_reach)}, but this control plane may not change stacks with "
                "such names",
                f"Deploy with a prefix of that name in {_SETTING}, then repeat the adoption: berth adopt",
            )
        return self._not_its_own(metadata, known)

    def _may_look_into(self, each: SurveyedStack, tenant: TenantId) -> bool:
        names = self.stacks.names
        if each.name == names.stack_of(tenant) or names.is_legacy(each.name):
            return True
        return _is_anothers(each.stack, tenant) and names.reaches(each.name)

    def _in_stack(self, stack: Stack, metadata: Metadata, known: KnownStacks) -> FoundStack | NotAdopted | None:
        """The tenant's queue in the stack, or why the tenant cannot be adopted with that stack.

        ``None`` if the stack does not have the queue.
        """
        resources = self.stacks.queues(stack.stack_id)
        for logical_id, queue in resources.items():
            if is_same_queue(queue, metadata.queue):
                if _is_anothers(stack, metadata.tenant):
                    return _made_for_another(stack, metadata.tenant)
                found = FoundStack(stack, logical_id, queue)
                others = self._queues_of_others(metadata, resources, known)
                return _checked(found, metadata.tenant, known) if not others else _shared(found, others)
        return None

    def _is_another_control_planes(self, stack: Stack) -> bool:
        token = stack.parameters.get(SERVICE_TOKEN_PARAMETER)
        return token is not None and not self.stacks.names.is_own_service_token(token)

    def _not_its_own(self, metadata: Metadata, known: KnownStacks) -> NotAdopted | None:
        """Why the stack that the row names must not stay recorded: it exists, but does not have the tenant's queue.

        A delete of the tenant would delete that stack, even if another tenant is served from it. A stack with the
        tenant's stack name is not checked here, because it names its tenant itself.
        """
        recorded = metadata.stack_id
        if recorded is None or self.stacks.names.is_stack_of(metadata.tenant, recorded):
            return None
        existing = {
            each.stack.stack_id for each in known.stacks if condition(each.stack.status) is not StackCondition.GONE
        }
        if recorded not in existing:
            return None
        return NotAdopted(
            f"its row names stack {recorded}, which does not have its queue",
            "Find out which stack has the tenant's queue. Correct or remove StackId in the tenant's row, then repeat "
            "the adoption: berth adopt",
        )

    def _queues_of_others(
        self, metadata: Metadata, resources: Mapping[str, Queue], known: KnownStacks
    ) -> dict[str, Queue]:
        """The stack's queues that are not the tenant's, by logical id. An upgrade would remove them.

        A queue that the row does not name counts as the tenant's by its logical id, unless another tenant is served
        from it.
        """
        own = {
            logical_id: queue
            for logical_id, queue in resources.items()
            if any(is_same_queue(queue, its) for its in (metadata.queue, metadata.outbound_queue))
            or (
                logical_id in (DEAD_LETTER_QUEUE, OUTBOUND_QUEUE)
                and not known.is_anothers(logical_id, queue, metadata.tenant)
            )
        }
        others = {logical_id: queue for logical_id, queue in resources.items() if logical_id not in own}
        if not others:
            return {}
        # The dead-letter queue may have any logical id in the templates of an earlier system.
        dead_letters = {self._dead_letters_of(queue) for queue in own.values()}
        return {logical_id: queue for logical_id, queue in others.items() if queue.name not in dead_letters}

    def _dead_letters_of(self, queue: Queue) -> str | None:
        """The name of the queue's dead-letter queue, if it has one and Berth has permission for the queue."""
        try:
            url = self.queues.dead_letter_queue(queue.url)
        except QueueOutOfReach:
            return None
        return url.rpartition("/")[2] if url else None


_NO_STACK = NotAdopted(
    "it is from before Berth, and no stack has its queue, so it is listed and served but cannot be upgraded",
    "See whether a stack has the queue after all: aws cloudformation describe-stack-resources --physical-resource-id "
    "QUEUE_URL. If no stack has it, receive the messages that are left in the queue, and delete the queue by hand. "
    "Then delete the tenant, and create it again.",
)


def is_same_queue(one: Queue | None, other: Queue | None) -> bool:
    """True for the same queue, even with two URLs: the URLs of older SDKs have other host names."""
    if one is None or other is None:
        return False
    return one.url == other.url or (one.arn, one.name) == (other.arn, other.name)


def needs_adoption(seen: UnlistedTenant, names: Names) -> bool:
    """True if the tenant is not in the index, its stack is unknown, or it has an unfinished operation.

    The earlier system may have begun that operation during or after an earlier adoption. A queue that was never
    published, and has no audit of an earlier system, was recorded by a stack of Berth's: surveys check such tenants.
    """
    if seen.metadata is not None and seen.metadata.version is None and not seen.earlier:
        return False
    return not seen.listed or has_unknown_stack(seen.metadata, names) or bool(seen.unfinished)


def is_unlisted(tenant_id: str, unlisted: UnlistedTenants, names: Names) -> bool:
    """True if the tenant has to be adopted. That includes tenants with rows that cannot be read."""
    if tenant_id.startswith(WARM_PREFIX):
        return False  # The record that says which tenant has taken a stack is not listed.
    try:
        seen = unlisted.unlisted(TenantId.parse(tenant_id))
    except (InvalidTenantId, UnreadableRows):
        return True
    return seen is not None and needs_adoption(seen, names)


def not_adopted(tenant_id: str) -> Finding:
    """A survey's finding for a tenant that has to be adopted."""
    return Finding(
        Kind.UNLISTED,
        tenant_id,
        "it is from before Berth, and is not listed, has no recorded stack, or has an operation that never ended: "
        "rollouts and surveys do not include it",
        Remedy.NONE,
        "See what adopting all such tenants would do: berth adopt --dry-run. Then adopt them: berth adopt",
    )


def plan(seen: UnlistedTenant, stack_id: str | None, queue: Queue | None = None) -> Adopted:
    """The tenant's records after the adoption. Unfinished operations of the earlier system are ended.

    ``queue`` is the tenant's queue as CloudFormation lists it in the stack, so that row and stack have the same URL.
    """
    metadata = seen.metadata
    served = metadata is not None and metadata.published
    closed: list[Audit] = []
    audits: list[Audit] = []
    for key, audit in zip(seen.audit_keys, seen.audits, strict=True):
        audits.append(_ended(audit, served=served) if key in seen.earlier else audit)
        if audits[-1].status is not audit.status:
            closed.append(audits[-1])
    if metadata is not None and stack_id is not None:
        metadata = replace(metadata, stack_id=stack_id, queue=queue or metadata.queue)
    state = state_of(metadata, audits)
    return Adopted(metadata, audits, closed, state, root_cause_of(metadata, audits))


def _ended(audit: Audit, *, served: bool) -> Audit:
    """The audit of the earlier system's operation after the adoption. If the tenant is served, its delete is superseded
    and its create succeeded."""
    if audit.operation is Operation.DELETE and served:
        audit = replace(audit, revived_by=audit.revived_by or ADOPTED)
    if audit.status is not Status.STARTED:
        return audit
    if audit.operation is Operation.CREATE and served:
        return replace(audit, status=Status.SUCCESS)
    return replace(audit, status=Status.FAILURE, root_cause=_LOST)


def _refusal(seen: UnlistedTenant, now: datetime) -> NotAdopted | None:
    version = (seen.metadata.version if seen.metadata else None) or ""
    size = len(version.encode())
    if size > _MAX_VERSION:
        return NotAdopted(f"its version has {size} bytes, and the maximum is {_MAX_VERSION}", _CORRECT_ROWS)
    if seen.lock is not None:
        attempt = seen.lock.run.attempt
        return NotAdopted(
            f"{attempt.operation} {attempt.version} is running", "When it has ended, repeat the adoption: berth adopt"
        )
    recent = [
        audit
        for audit in seen.audits
        if audit.status is Status.STARTED and now - audit.updated_at < LEGACY_MAX_RUN_TIME
    ]
    if recent:
        return NotAdopted(
            f"the system before Berth began {recent[0].operation} less than an hour ago: {recent[0].execution}",
            "Switch that system off, wait for the end of its operations, then repeat the adoption: berth adopt",
        )
    return None


def _checked(found: FoundStack, tenant: TenantId, known: KnownStacks) -> FoundStack | NotAdopted:
    stack = found.stack
    owner = known.given.get(stack.stack_id, tenant)
    if owner != tenant:
        return NotAdopted(
            f"stack {stack.stack_id} has its queue, but belongs to tenant {owner}",
            "Find out which of the two tenants has the stack, and delete the other tenant's rows.",
        )
    if condition(stack.status) is StackCondition.WORKING:
        return NotAdopted(
            f"CloudFormation is changing its stack, which is {stack.status}",
            "When that has ended, repeat the adoption: berth adopt",
        )
    return found


def _not_deleted(stack: Stack) -> NotAdopted:
    """A deleted tenant is adopted without its metadata, so nothing would show that the stack exists."""
    return NotAdopted(
        f"the system before Berth recorded that it deleted the tenant, but stack {stack.stack_id} has its queue",
        "If nobody needs the tenant, delete the stack. If it is still used, delete the row AUDIT#DELETE of the tenant "
        "and add a Version to its row METADATA. Then repeat the adoption: berth adopt",
    )


def _is_anothers(stack: Stack, tenant: TenantId) -> bool:
    """True for a stack that names another tenant. Stacks of an earlier system may not name their tenant."""
    return stack.tenant_id not in (None, tenant.value)


def _of_another_control_plane(stack: Stack) -> NotAdopted:
    return NotAdopted(
        f"its queue is an output of stack {stack.stack_id}, which belongs to the control plane of "
        f"{stack.parameters[SERVICE_TOKEN_PARAMETER]}",
        "If the tenant belongs to that control plane, delete the tenant's rows in this control plane's table.",
    )


def _made_for_another(stack: Stack, tenant: TenantId) -> NotAdopted:
    return NotAdopted(
        f"its queue is in stack {stack.stack_id}, whose parameter TenantId is {stack.tenant_id!a}",
        f"If the stack is this tenant's, create a change set with TenantId={tenant}. If it replaces no queue, execute "
        "it, then repeat the adoption: berth adopt. If the stack is not this tenant's, delete this tenant's rows.",
    )


def _shared(found: FoundStack, others: Mapping[str, Queue]) -> NotAdopted:
    queues = ", ".join(f"{logical_id} ({queue.name})" for logical_id, queue in sorted(others.items()))
    return NotAdopted(
        f"its stack {found.stack.stack_id} has other queues, which its next upgrade would remove: {queues}",
        "Remove these queues from the stack's template. If anybody needs them, first update the stack with "
        "DeletionPolicy: Retain for them, so that they stay. Then repeat the adoption: berth adopt",
    )


def _detail(seen: UnlistedTenant, adopted: Adopted, found: FoundStack | None, *, has_none: bool) -> str:
    metadata = seen.metadata
    parts = [f"{adopted.state} at version {metadata.version}" if metadata and metadata.version else adopted.state.value]
    if found:
        parts.append(f"stack {found.stack.stack_id}")
        if found.logical_id != INBOUND_QUEUE:
            # The queue has another logical id in releases, so CloudFormation would create a new queue and delete this.
            parts.append(f"its queue is {found.logical_id} in the template, so an upgrade would replace it")
    elif has_none:
        parts.append("no stack has its queue, so it is served but cannot be upgraded")
    if metadata and metadata.outbound_queue:
        parts.append("with an outbound queue, which its next upgrade removes")
    parts += [f"{audit.operation} that never ended becomes {audit.status}" for audit in adopted.closed]
    return ", ".join(parts)


def _not_adopted_finding(tenant_id: str, why: NotAdopted) -> Finding:
    return Finding(Kind.UNLISTED, tenant_id, why.reason, Remedy.NONE, why.advice)
