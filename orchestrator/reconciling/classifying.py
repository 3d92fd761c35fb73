"""One tenant's rows against its stack: a pure function, with every way in which the two may differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.common.tenant_ids import TenantId
from orchestrator.reconciling.records import Finding, Kind, Remedy
from orchestrator.releases.published import is_known, same_content
from orchestrator.releases.records import Release
from orchestrator.tenants.own_stack import is_for, what_to_do
from orchestrator.tenants.ports import Stack
from orchestrator.tenants.records import Audit, Lock, Metadata, Operation, Queue, Status, TenantState
from orchestrator.tenants.stack_status import StackCondition, condition
from orchestrator.tenants.state import is_deleted, state_of

STANDS = (StackCondition.DONE, StackCondition.DONE_AT_OLD_VERSION)
"""What a stack is like that serves a tenant."""


@dataclass(frozen=True, slots=True)
class Observation:
    """A tenant as it was found: all rows read consistently, and the stack asked for."""

    tenant: TenantId
    stack_name: str
    """The name that the tenant's stack has, if it has one."""
    metadata: Metadata | None
    audits: Sequence[Audit]
    lock: Lock | None
    stack: Stack | None
    queue_is_gone: bool = False
    """SQS says that the queue in the metadata does not exist."""
    stack_is_ours: bool = True
    """Whether Berth made the stack, and not somebody who knew the tenant's stack name."""
    own_queue: Queue | None = None
    """The queue among the stack's resources. Looked for where the stack's outputs and the metadata differ."""

    @property
    def live_stack(self) -> Stack | None:
        gone = self.stack is None or condition(self.stack.status) is StackCondition.GONE
        return None if gone else self.stack

    @property
    def served(self) -> Metadata | None:
        return self.metadata if self.metadata and self.metadata.published else None


def classify(looked: Observation, releases: Mapping[str, Release]) -> Finding | None:
    """What is wrong with the tenant, if anything is. Whoever is at it, or at its stack, is not disturbed.

    ``releases`` are those that were published, by version.
    """
    stack = looked.live_stack
    if looked.lock is not None or (stack and condition(stack.status) is StackCondition.WORKING):
        return None
    if stack and not is_for(looked.tenant, stack, looked.metadata):
        return foreign_stack(looked.stack_name, stack)
    if stack and not looked.stack_is_ours:
        return _planted(looked, stack)
    if looked.served:
        return _classify_served(looked, looked.served, stack, releases)
    if stack is None:
        return _classify_without_stack(looked)
    return _classify_stack(looked, stack)


def _classify_served(
    looked: Observation, metadata: Metadata, stack: Stack | None, releases: Mapping[str, Release]
) -> Finding | None:
    tenant = looked.tenant
    make_anew = f"berth delete {tenant} --wait && berth create {tenant} --wait"
    if stack is None:
        # A queue that outlived its stack may hold messages, and a row without a stack's id is not Berth's to forget.
        return _finding(
            Kind.MISSING_STACK,
            tenant,
            f"its queue {_url(metadata)} is served, but there is no stack {looked.stack_name}",
            Remedy.RECREATE if looked.queue_is_gone and metadata.stack_id else Remedy.NONE,
            f"Receive what may be left in the queue, then have it made anew: {make_anew}",
        )
    if looked.queue_is_gone and stack.queue in (None, metadata.queue):
        return _finding(
            Kind.VANISHED_QUEUE,
            tenant,
            f"its queue {_url(metadata)} does not exist, though the stack stands",
            Remedy.NONE,
            "CloudFormation does not notice, so all has to be made anew, without what is in its dead-letter queue: "
            f"{make_anew}",
        )
    if condition(stack.status) not in STANDS:
        return _classify_broken(looked, stack)
    if differences := _differences(looked, metadata, stack, releases):
        true = stack.queue == looked.own_queue
        unsaid = "The stack does not say which queue it has, or at which version it is."
        return _finding(
            Kind.METADATA_DIFFERS,
            tenant,
            f"the metadata differs from the stack: {differences}",
            Remedy.CORRECT if stack.queue and stack.version and true else Remedy.NONE,
            f"{unsaid if true else 'The queue in its outputs is none of its resources.'} Look at {stack.stack_id}",
        )
    if not is_known(metadata.version, releases):
        return _finding(
            Kind.UNKNOWN_VERSION,
            tenant,
            f"it is at version {metadata.version}, which was never published here",
            Remedy.UPGRADE,
        )
    return None


def _classify_broken(looked: Observation, stack: Stack) -> Finding | None:
    """Of a tenant that is served, and whose stack does not stand. If its latest operation failed, that says so."""
    if state_of(looked.metadata, looked.audits) is not TenantState.READY:
        return None
    reason = f": {stack.status_reason}" if stack.status_reason else ""
    return _finding(
        Kind.BROKEN_STACK,
        looked.tenant,
        f"it is served, but somebody left its stack {stack.status}{reason}",
        Remedy.NONE,
        f"Bring the stack back to where it stands, by hand: {stack.stack_id}",
    )


def _classify_without_stack(looked: Observation) -> Finding | None:
    """Of a tenant that is not served, and has no stack. Only one that once was served is a surprise."""
    if state_of(looked.metadata, looked.audits) is not TenantState.UNKNOWN or not _was_provisioned(looked.audits):
        return None
    return _finding(
        Kind.MISSING_STACK, looked.tenant, "it was provisioned, but its stack and its queue are gone", Remedy.CREATE
    )


def _was_provisioned(audits: Sequence[Audit]) -> bool:
    """An update that was refused says nothing: nobody may ever have created the tenant."""
    return any(audit.status is Status.SUCCESS and audit.operation is not Operation.DELETE for audit in audits)


def _classify_stack(looked: Observation, stack: Stack) -> Finding | None:
    """Of a tenant that is not served, and has a stack."""
    tenant, stands = looked.tenant, condition(stack.status) in STANDS
    if is_deleted(looked.audits):
        return _finding(Kind.ORPHAN_STACK, tenant, f"it was deleted, but its stack is {stack.status}", Remedy.DELETE)
    state = state_of(looked.metadata, looked.audits)
    if state is not TenantState.UNKNOWN:
        return None  # A create or a delete failed, and says so.
    by_hand = f"Nothing in it was ever in use. Delete it by hand: {stack.stack_id}"
    if looked.audits:
        return _finding(
            Kind.METADATA_DIFFERS,
            tenant,
            f"it has no queue on record, but its stack is {stack.status}",
            Remedy.CREATE if stands else Remedy.NONE,
            by_hand,
        )
    return _finding(
        Kind.ORPHAN_STACK,
        tenant,
        f"nothing is known of such a tenant, but its stack is {stack.status}",
        Remedy.CREATE if stands else Remedy.NONE,
        by_hand,
    )


def foreign_stack(name: str, stack: Stack) -> Finding:
    """A stack whose name begins as tenants' stacks' do, and which is no tenant's."""
    return Finding(
        Kind.FOREIGN_STACK,
        name,
        f"its name is one of a tenant's stack, but it was made for {stack.tenant_id or 'something else'}",
        Remedy.NONE,
        "Names with that prefix are Berth's. CloudTrail says who made the stack. Delete it by hand if nobody needs it.",
    )


def queue_out_of_reach(tenant: TenantId, reason: str) -> Finding:
    """The row names a queue that is none of Berth's by its name, so that nobody can count its messages."""
    return Finding(
        Kind.METADATA_DIFFERS,
        tenant.value,
        reason,
        Remedy.NONE,
        "Tenants' queues are named after their stacks. A tenant from before Berth has to be adopted: berth adopt. "
        "Otherwise somebody has written into the table: berth tenant shows what.",
    )


def unreadable_rows(tenant: TenantId, reason: str) -> Finding:
    return Finding(
        Kind.METADATA_DIFFERS,
        tenant.value,
        reason,
        Remedy.NONE,
        "Something other than Berth has written into the table. Correct the tenant's rows, or delete them.",
    )


def stack_out_of_reach(tenant: TenantId, reason: str) -> Finding:
    """The tenant was adopted, and a later deployment has left out the prefix of its stack's name."""
    return Finding(
        Kind.METADATA_DIFFERS,
        tenant.value,
        reason,
        Remedy.NONE,
        f"Until then every operation on the tenant fails. It is served all the same. See: berth tenant {tenant}",
    )


def drifted(stack: Stack, detail: str) -> Finding:
    """CloudFormation puts nothing right of what it was not told to change, so no repair would help."""
    return Finding(
        Kind.DRIFTED,
        stack.tenant_id or stack.stack_id,
        f"its stack's resources are not as the template has them: {detail}",
        Remedy.NONE,
        f"See what differs: aws cloudformation describe-stack-resource-drifts --stack-name {stack.stack_id}",
    )


def _planted(looked: Observation, stack: Stack) -> Finding:
    """Somebody made a stack that is like a tenant's in all that anybody can choose."""
    return Finding(
        Kind.FOREIGN_STACK,
        looked.stack_name,
        f"it says that it is tenant {looked.tenant}'s, but Berth did not make it: its service role is not this "
        f"deployment's, and the tenant was never served from {stack.stack_id}",
        Remedy.NONE,
        what_to_do(stack),
    )


def _differences(looked: Observation, metadata: Metadata, stack: Stack, releases: Mapping[str, Release]) -> str:
    """Rows from before stacks were recorded have none, stacks from before versions were have none: no difference.

    A stack that was made from a release says its version, unless somebody has put another template in its place.

    Nor have stacks of an earlier system to name their queue in their outputs.
    """
    told = []
    queue = stack.queue or looked.own_queue
    if metadata.queue != queue:
        told.append(f"queue {_url(metadata)} / {queue.url if queue else 'none'}")
    if metadata.stack_id not in (None, stack.stack_id):
        told.append(f"stack {metadata.stack_id} / {stack.stack_id}")
    moved = stack.version != metadata.version and (stack.version is not None or metadata.deployed is not None)
    if moved and not same_content(stack.version, metadata.version, releases.get):
        told.append(f"version {metadata.version} / {stack.version or 'none: its template is no release of Berth'}")
    return ", ".join(told)


def _url(metadata: Metadata) -> str:
    return metadata.queue.url if metadata.queue else "none"


def _finding(kind: Kind, tenant: TenantId, detail: str, remedy: Remedy, advice: str = "") -> Finding:
    return Finding(kind, tenant.value, detail, remedy, advice if remedy is Remedy.NONE else "")
