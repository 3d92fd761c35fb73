"""Tenants from before Berth: their rows are brought into the index, and their stacks on record.

Their rows have no place in the index, so neither a list nor a rollout nor a survey sees them. Their stacks may have
names that Berth does not derive. Nothing is changed in CloudFormation by an adoption.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from orchestrator.common.errors import InvalidTenantId, QueueOutOfReach, UnreadableRows
from orchestrator.common.tenant_ids import TenantId
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
from orchestrator.tenants.deadlines import MAY_STILL_RUN
from orchestrator.tenants.names import Names
from orchestrator.tenants.own_stack import has_unknown_stack
from orchestrator.tenants.ports import Queues, Stack, Stacks, TenantReader
from orchestrator.tenants.records import Audit, Metadata, Operation, Queue, Request, RootCause, Status, TenantState
from orchestrator.tenants.stack_status import StackCondition, condition
from orchestrator.tenants.state import root_cause_of, state_of

ADOPTED = "adopted"
"""The mark on the audit of a delete that an adoption has found to be overcome."""

_LOST = RootCause(
    "Execution", "AWS::StepFunctions::Execution", "The system before Berth did not record how the operation ended."
)
_MAX_VERSION = 100
"""Bytes of a version that an adoption lists: it is part of a key of the index, and of a list's cursor."""
_SETTING = "berth:legacyStackPrefixes"
_CORRECT_ROWS = "Correct its rows in the table, or delete them."


@dataclass(frozen=True, slots=True)
class NotNow:
    """Why the tenant is not adopted."""

    reason: str
    advice: str


@dataclass(frozen=True, slots=True)
class FoundStack:
    stack: Stack
    logical_id: str
    """The name that the stack's template gives to the tenant's queue."""
    queue: Queue
    """The tenant's queue, with the URL by which CloudFormation lists it. Rows may have a URL of older SDKs."""


@dataclass
class KnownStacks:
    """All stacks of the account and region, and whose they and their queues are, as far as that is on record."""

    stacks: Sequence[SurveyedStack]
    given: dict[str, TenantId] = field(default_factory=dict)
    """The tenant that has the stack, by stack id: as the index has it, or by this adoption."""
    queues: dict[str, TenantId] = field(default_factory=dict)
    """The tenant that has the inbound queue, by the queue's ARN: as the index has it, or by this adoption."""
    of_unlisted: Callable[[], Iterable[Metadata]] = tuple
    """Reads the metadata of all tenants that the index does not have. To do so takes a look at the whole table."""
    _has_read_all: bool = False

    def note(self, metadata: Metadata | None) -> None:
        """Take note of the stack and the queue that are on record there."""
        if metadata is None:
            return
        if metadata.stack_id is not None:
            self.given.setdefault(metadata.stack_id, metadata.tenant)
        if metadata.queue is not None:
            self.queues.setdefault(metadata.queue.arn, metadata.tenant)

    def is_anothers(self, logical_id: str, queue: Queue, tenant: TenantId) -> bool:
        """True if the queue is on record as the inbound queue of another tenant than this one.

        Nobody is served from a queue for dead letters, so for those the table is not read.
        """
        if logical_id == OUTBOUND_QUEUE and not self._has_read_all:
            self._has_read_all = True
            for metadata in self.of_unlisted():
                if metadata.queue is not None:
                    self.queues.setdefault(metadata.queue.arn, metadata.tenant)
        return self.queues.get(queue.arn, tenant) != tenant

    def candidates(self, tenant: TenantId, metadata: Metadata, own_name: str) -> Iterator[SurveyedStack]:
        """The stacks that may have the tenant's queue, the likeliest first. CloudFormation's list of resources decides.

        CloudFormation names a queue after its stack, unless the template names it.
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
        """Adopt the tenant, or say what would be done. ``None`` if the index has it by now."""
        try:
            return self._adopt(TenantId.parse(tenant_id), known, request=request, dry_run=dry_run)
        except (InvalidTenantId, UnreadableRows) as unreadable:
            return _left(tenant_id, NotNow(str(unreadable), _CORRECT_ROWS))

    def _adopt(self, tenant: TenantId, known: KnownStacks, *, request: Request, dry_run: bool) -> Finding | None:
        seen = self.unlisted.unlisted(tenant)
        if seen is None or not needs_adoption(seen, self.stacks.names):
            # Another adoption may have been faster, and have given it a stack that the index did not have before.
            known.note(self.tenants.metadata(tenant))
            return None
        wants_stack = not seen.listed or has_unknown_stack(seen.metadata, self.stacks.names)
        found = _refusal(seen, self.clock.now()) or (self._stack_of(seen, known) if wants_stack else None)
        if isinstance(found, NotNow):
            return _left(tenant.value, found)
        if found is None and seen.listed and not seen.unfinished:
            return _left(tenant.value, _NO_STACK)
        adopted = plan(seen, found.stack.stack_id, found.queue) if found else plan(seen, None)
        if found and adopted.state is TenantState.DELETED:
            return _left(tenant.value, _not_deleted(found.stack))
        has_none = found is None and wants_stack and seen.metadata is not None and seen.metadata.queue is not None
        told = _told(seen, adopted, found, has_none=has_none)
        finding = Finding(Kind.UNLISTED, tenant.value, told, Remedy.ADOPT, _NO_STACK.advice if has_none else "")
        if found:
            known.given[found.stack.stack_id] = tenant
            known.queues.setdefault(found.queue.arn, tenant)
        if dry_run:
            return finding
        at = self.clock.now()
        change = adoption(
            seen.metadata or _nothing_about(tenant),
            adopted.metadata or _nothing_about(tenant),
            state=adopted.state,
            closed=adopted.closed,
            request=request,
            at=at,
        )
        if not self.unlisted.adopt(seen, adopted, change):
            return replace(finding, result="It has changed meanwhile. Ask again: berth adopt")
        return replace(finding, result=f"listed as {adopted.state}", repaired=True)

    def _stack_of(self, seen: UnlistedTenant, known: KnownStacks) -> FoundStack | NotNow | None:
        """The stack that has the tenant's queue among its resources, by CloudFormation's own word."""
        metadata, own_name = seen.metadata, self.stacks.names.stack_of(seen.tenant)
        if metadata is None:
            return None
        out_of_reach: list[str] = []
        beside: Stack | None = None
        for each in known.candidates(seen.tenant, metadata, own_name) if metadata.queue else ():
            if condition(each.stack.status) is StackCondition.GONE:
                continue
            if self._is_another_control_planes(each.stack):
                # Whoever wrote its template chose its outputs, so the stack that has the queue is still looked for.
                beside = each.stack if is_same_queue(each.stack.queue, metadata.queue) else beside
            elif not self._may_look_into(each, seen.tenant):
                out_of_reach.append(each.name)
            elif found := self._in_stack(each.stack, metadata, known):
                return found
        if beside:
            return _of_another_control_plane(beside)
        if out_of_reach:
            return NotNow(
                f"its stack seems to be {' or '.join(out_of_reach)}, and this control plane may not change stacks of "
                "such names",
                f"Deploy with a prefix of that name in {_SETTING}, then ask again: berth adopt",
            )
        return self._not_its_own(metadata, known)

    def _may_look_into(self, each: SurveyedStack, tenant: TenantId) -> bool:
        names = self.stacks.names
        if each.name == names.stack_of(tenant) or names.is_legacy(each.name):
            return True
        return _is_anothers(each.stack, tenant) and names.reaches(each.name)

    def _in_stack(self, stack: Stack, metadata: Metadata, known: KnownStacks) -> FoundStack | NotNow | None:
        """The tenant's queue in that stack, or why the tenant cannot have the stack. ``None`` without that queue."""
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

    def _not_its_own(self, metadata: Metadata, known: KnownStacks) -> NotNow | None:
        """Why the stack that the row names must not stay on record: it stands, and does not have the tenant's queue.

        A delete of the tenant would delete that stack, whoever is served from it. A stack with the tenant's stack name
        has to say itself that it is the tenant's.
        """
        recorded = metadata.stack_id
        if recorded is None or self.stacks.names.is_stack_of(metadata.tenant, recorded):
            return None
        standing = {
            each.stack.stack_id for each in known.stacks if condition(each.stack.status) is not StackCondition.GONE
        }
        if recorded not in standing:
            return None
        return NotNow(
            f"its row names stack {recorded}, which does not have its queue",
            "Find out which stack has the tenant's queue. Correct or remove StackId in the tenant's row, then ask "
            "again: berth adopt",
        )

    def _queues_of_others(
        self, metadata: Metadata, resources: Mapping[str, Queue], known: KnownStacks
    ) -> dict[str, Queue]:
        """The stack's queues that are not known to be the tenant's, by logical id. An upgrade would remove them.

        A queue that the row does not name is believed to be the tenant's by its logical id, unless another tenant is
        served from it.
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
        # The templates of an earlier system may call the queue for dead letters as they like.
        dead_letters = {self._dead_letters_of(queue) for queue in own.values()}
        return {logical_id: queue for logical_id, queue in others.items() if queue.name not in dead_letters}

    def _dead_letters_of(self, queue: Queue) -> str | None:
        """The name of the queue that takes the dead letters, if it is one that Berth may look at."""
        try:
            url = self.queues.dead_letter_queue(queue.url)
        except QueueOutOfReach:
            return None
        return url.rpartition("/")[2] if url else None


_NO_STACK = NotNow(
    "it is from before Berth, and no stack has its queue, so it is listed and served but cannot be upgraded",
    "See whether a stack has it after all: aws cloudformation describe-stack-resources --physical-resource-id "
    "QUEUE_URL. If none has it, receive what is left in the queue, and delete the queue by hand. Then delete the "
    "tenant, and create it again.",
)


def is_same_queue(one: Queue | None, other: Queue | None) -> bool:
    """True for one queue with two URLs, too: the hosts of the URLs that older SDKs recorded have other names."""
    if one is None or other is None:
        return False
    return one.url == other.url or (one.arn, one.name) == (other.arn, other.name)


def needs_adoption(seen: UnlistedTenant, names: Names) -> bool:
    """Whether Berth cannot look after the tenant as it is. A stack of the tenant's name is found without a record.

    What the earlier system began after the tenant was adopted, or while it was, has no end, either. A queue that was
    never published, and of which no earlier system tells, was recorded by a stack of Berth's: surveys judge that.
    """
    if seen.metadata is not None and seen.metadata.version is None and not seen.earlier:
        return False
    return not seen.listed or has_unknown_stack(seen.metadata, names) or bool(seen.unfinished)


def is_unlisted(tenant_id: str, unlisted: UnlistedTenants, names: Names) -> bool:
    """Whether that tenant has to be adopted. Rows that cannot be read are somebody else's, too."""
    try:
        seen = unlisted.unlisted(TenantId.parse(tenant_id))
    except (InvalidTenantId, UnreadableRows):
        return True
    return seen is not None and needs_adoption(seen, names)


def not_adopted(tenant_id: str) -> Finding:
    """What a survey says of such a tenant."""
    return Finding(
        Kind.UNLISTED,
        tenant_id,
        "it is from before Berth, and in no list, or without a stack on record, or with an operation that never ended: "
        "rollouts and surveys do not look after it",
        Remedy.NONE,
        "See what adopting all such tenants would do: berth adopt --dry-run. Then adopt them: berth adopt",
    )


def plan(seen: UnlistedTenant, stack_id: str | None, queue: Queue | None = None) -> Adopted:
    """What the rows are to say. Operations of the earlier system that never ended are given an end.

    ``queue`` is the tenant's, as CloudFormation lists it in that stack, so that both have the same URL from then on.
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
    """An operation of the earlier system, with an end. A tenant that is served has outlived its delete."""
    if audit.operation is Operation.DELETE and served:
        audit = replace(audit, revived_by=audit.revived_by or ADOPTED)
    if audit.status is not Status.STARTED:
        return audit
    if audit.operation is Operation.CREATE and served:
        return replace(audit, status=Status.SUCCESS)
    return replace(audit, status=Status.FAILURE, root_cause=_LOST)


def _refusal(seen: UnlistedTenant, now: datetime) -> NotNow | None:
    version = (seen.metadata.version if seen.metadata else None) or ""
    size = len(version.encode())
    if size > _MAX_VERSION:
        return NotNow(f"its version has {size} bytes, and at most {_MAX_VERSION} are listed", _CORRECT_ROWS)
    if seen.lock is not None:
        attempt = seen.lock.run.attempt
        return NotNow(f"{attempt.operation} {attempt.version} is at work on it", "Ask again: berth adopt")
    recent = [
        audit for audit in seen.audits if audit.status is Status.STARTED and now - audit.updated_at < MAY_STILL_RUN
    ]
    if recent:
        return NotNow(
            f"the system before Berth began {recent[0].operation} less than an hour ago: {recent[0].execution}",
            "Switch that system off, wait for the end of what it is doing, then ask again: berth adopt",
        )
    return None


def _checked(found: FoundStack, tenant: TenantId, known: KnownStacks) -> FoundStack | NotNow:
    stack = found.stack
    owner = known.given.get(stack.stack_id, tenant)
    if owner != tenant:
        return NotNow(
            f"its queue is also tenant {owner}'s: both are in {stack.stack_id}",
            "Find out which of the two has the stack, and delete the other's rows.",
        )
    if condition(stack.status) is StackCondition.WORKING:
        return NotNow(f"CloudFormation is at its stack, which is {stack.status}", "Ask again: berth adopt")
    return found


def _not_deleted(stack: Stack) -> NotNow:
    """Its metadata would be removed, and nobody would know of the stack any more."""
    return NotNow(
        f"the system before Berth recorded that it deleted the tenant, but stack {stack.stack_id} has its queue",
        "If nobody needs the tenant, delete the stack. If it is still used, delete the row AUDIT#DELETE of the tenant "
        "and give its row METADATA a Version. Then ask again: berth adopt",
    )


def _is_anothers(stack: Stack, tenant: TenantId) -> bool:
    """True for a stack that says that it is another tenant's. Templates of an earlier system need not say anything."""
    return stack.tenant_id not in (None, tenant.value)


def _of_another_control_plane(stack: Stack) -> NotNow:
    return NotNow(
        f"its queue is an output of stack {stack.stack_id}, which belongs to the control plane of "
        f"{stack.parameters[SERVICE_TOKEN_PARAMETER]}",
        "If that control plane looks after the tenant, delete the tenant's rows in this control plane's table.",
    )


def _made_for_another(stack: Stack, tenant: TenantId) -> NotNow:
    return NotNow(
        f"its queue is in stack {stack.stack_id}, whose parameter TenantId is {stack.tenant_id!a}",
        f"If the stack is this tenant's, make a change set with TenantId={tenant}. If that replaces no queue, execute "
        "it, then ask again: berth adopt. If the stack is somebody else's, delete this tenant's rows.",
    )


def _shared(found: FoundStack, others: Mapping[str, Queue]) -> NotNow:
    told = ", ".join(f"{logical_id} ({queue.name})" for logical_id, queue in sorted(others.items()))
    return NotNow(
        f"its stack {found.stack.stack_id} has queues besides its own, which its next upgrade would remove: {told}",
        "Take them out of the stack's template. If anybody needs them, first update the stack with DeletionPolicy: "
        "Retain for them, so that they stay. Then ask again: berth adopt",
    )


def _told(seen: UnlistedTenant, adopted: Adopted, found: FoundStack | None, *, has_none: bool) -> str:
    metadata = seen.metadata
    parts = [f"{adopted.state} at version {metadata.version}" if metadata and metadata.version else adopted.state.value]
    if found:
        parts.append(f"stack {found.stack.stack_id}")
        if found.logical_id != INBOUND_QUEUE:
            # Releases have it under another name, so CloudFormation would make another queue, and delete this one.
            parts.append(f"its queue is {found.logical_id} in the template, so an upgrade would replace it")
    elif has_none:
        parts.append("no stack has its queue, so it is served but cannot be upgraded")
    if metadata and metadata.outbound_queue:
        parts.append("with an outbound queue, which goes with its next upgrade")
    parts += [f"{audit.operation} that never ended becomes {audit.status}" for audit in adopted.closed]
    return ", ".join(parts)


def _left(tenant_id: str, why: NotNow) -> Finding:
    return Finding(Kind.UNLISTED, tenant_id, why.reason, Remedy.NONE, why.advice)


def _nothing_about(tenant: TenantId) -> Metadata:
    return Metadata(tenant, None, None, None, None, None)
