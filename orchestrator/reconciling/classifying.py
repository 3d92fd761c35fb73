"""Comparing one tenant's rows with its stack: a pure function that covers every difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.common.tenant_ids import TenantId
from orchestrator.reconciling.records import Finding, Kind, Remedy
from orchestrator.releases.published import is_known, same_content
from orchestrator.releases.records import Release
from orchestrator.tenants.own_stack import advice_about, is_for, is_given_away
from orchestrator.tenants.records import Audit, Lock, Metadata, Operation, Queue, Status, TenantState
from orchestrator.tenants.stack_ports import Stack
from orchestrator.tenants.stack_status import StackCondition, condition
from orchestrator.tenants.state import is_deleted, state_of

STANDS = (StackCondition.DONE, StackCondition.DONE_AT_OLD_VERSION)
"""The conditions of a healthy stack."""


@dataclass(frozen=True, slots=True)
class Observation:
    """A tenant's rows, read consistently, and its stack as CloudFormation describes it."""

    tenant: TenantId
    stack_name: str
    """The name of the tenant's stack, or the name that it would have."""
    metadata: Metadata | None
    audits: Sequence[Audit]
    lock: Lock | None
    stack: Stack | None
    queue_is_gone: bool = False
    """True if the queue in the metadata does not exist."""
    stack_is_ours: bool = True
    """True if Berth made the stack, and not somebody else who knew the tenant's stack name."""
    own_queue: Queue | None = None
    """The queue among the stack's resources. It is read only if the stack's outputs and the metadata differ."""

    @property
    def live_stack(self) -> Stack | None:
        gone = self.stack is None or condition(self.stack.status) is StackCondition.GONE
        return None if gone else self.stack

    @property
    def served(self) -> Metadata | None:
        return self.metadata if self.metadata and self.metadata.published else None


def classify(observation: Observation, releases: Mapping[str, Release]) -> Finding | None:
    """The finding about the tenant, if something is wrong. A tenant that is being changed is skipped.

    ``releases`` are the published releases, by version.
    """
    stack, metadata = observation.live_stack, observation.metadata
    if is_given_away(observation.tenant, metadata):
        return None  # A tenant has taken the stack since it was listed. Nobody has to create another one in its place.
    if observation.lock is not None or (stack and condition(stack.status) is StackCondition.WORKING):
        return None
    if stack and not is_for(observation.tenant, stack, metadata):
        return foreign_stack(observation.stack_name, stack)
    if stack and not observation.stack_is_ours:
        return _not_berths(observation, stack)
    if observation.served:
        return _classify_served(observation, observation.served, stack, releases)
    if stack is None:
        return _classify_without_stack(observation)
    return _classify_stack(observation, stack)


def _classify_served(
    observation: Observation, metadata: Metadata, stack: Stack | None, releases: Mapping[str, Release]
) -> Finding | None:
    tenant = observation.tenant
    create_again = f"berth delete {tenant} --wait && berth create {tenant} --wait"
    if stack is None:
        # A queue that outlived its stack may hold messages, and a row without a stack's id must not be removed.
        return _finding(
            Kind.MISSING_STACK,
            tenant,
            f"its queue {_url(metadata)} is served, but its stack {observation.stack_name} does not exist",
            Remedy.RECREATE if observation.queue_is_gone and metadata.stack_id else Remedy.NONE,
            f"Receive the messages that are left in the queue, then create the tenant again: {create_again}",
        )
    if observation.queue_is_gone and stack.queue in (None, metadata.queue):
        return _finding(
            Kind.VANISHED_QUEUE,
            tenant,
            f"its queue {_url(metadata)} does not exist, although its stack is complete",
            Remedy.NONE,
            "CloudFormation does not notice that the queue is missing. Receive the messages in the dead-letter queue, "
            f"which will be lost, then create the tenant again: {create_again}",
        )
    if condition(stack.status) not in STANDS:
        return _classify_broken(observation, stack)
    if differences := _differences(observation, metadata, stack, releases):
        is_own_queue = stack.queue == observation.own_queue
        incomplete = "The stack's outputs do not name its queue or its version."
        return _finding(
            Kind.METADATA_DIFFERS,
            tenant,
            f"the metadata differs from the stack: {differences}",
            Remedy.CORRECT if stack.queue and stack.version and is_own_queue else Remedy.NONE,
            f"{incomplete if is_own_queue else 'The queue in the outputs is not one of the resources of the stack.'} "
            f"Check the stack: {stack.stack_id}",
        )
    if not is_known(metadata.version, releases):
        return _finding(
            Kind.UNKNOWN_VERSION,
            tenant,
            f"it is at version {metadata.version}, which was never published here",
            Remedy.UPGRADE,
        )
    return None


def _classify_broken(observation: Observation, stack: Stack) -> Finding | None:
    """A tenant is served, but its stack is broken. If its latest operation failed, the tenant's state shows that."""
    if state_of(observation.metadata, observation.audits) is not TenantState.READY:
        return None
    reason = f": {stack.status_reason}" if stack.status_reason else ""
    return _finding(
        Kind.BROKEN_STACK,
        observation.tenant,
        f"it is served, but somebody changed its stack, which is {stack.status}{reason}",
        Remedy.NONE,
        f"Repair the stack by hand: {stack.stack_id}",
    )


def _classify_without_stack(observation: Observation) -> Finding | None:
    """A tenant is not served and has no stack. That is a finding only if it was served once."""
    state = state_of(observation.metadata, observation.audits)
    if state is not TenantState.UNKNOWN or not _was_provisioned(observation.audits):
        return None
    return _finding(
        Kind.MISSING_STACK,
        observation.tenant,
        "it was provisioned, but its stack and its queue do not exist",
        Remedy.CREATE,
    )


def _was_provisioned(audits: Sequence[Audit]) -> bool:
    """True if an operation other than a delete succeeded. A refused update proves nothing."""
    return any(audit.status is Status.SUCCESS and audit.operation is not Operation.DELETE for audit in audits)


def _classify_stack(observation: Observation, stack: Stack) -> Finding | None:
    """A tenant is not served, but has a stack."""
    tenant, stands = observation.tenant, condition(stack.status) in STANDS
    if is_deleted(observation.audits):
        return _finding(Kind.ORPHAN_STACK, tenant, f"it was deleted, but its stack is {stack.status}", Remedy.DELETE)
    state = state_of(observation.metadata, observation.audits)
    if state is not TenantState.UNKNOWN:
        return None  # A create or a delete failed, and the tenant's state shows that.
    by_hand = f"The stack was never in use. Delete it by hand: {stack.stack_id}"
    if observation.audits:
        return _finding(
            Kind.METADATA_DIFFERS,
            tenant,
            f"it has no recorded queue, but its stack is {stack.status}",
            Remedy.CREATE if stands else Remedy.NONE,
            by_hand,
        )
    return _finding(
        Kind.ORPHAN_STACK,
        tenant,
        f"it has no records, but its stack is {stack.status}",
        Remedy.CREATE if stands else Remedy.NONE,
        by_hand,
    )


def foreign_stack(name: str, stack: Stack) -> Finding:
    """A stack has the prefix of tenants' stack names, but does not belong to a tenant."""
    return Finding(
        Kind.FOREIGN_STACK,
        name,
        f"it has the name of a tenant's stack, but was made for {stack.tenant_id or 'something else'}",
        Remedy.NONE,
        "Names with that prefix are reserved for Berth. CloudTrail shows who made the stack. If nobody needs it, "
        "delete it by hand.",
    )


def queue_out_of_reach(tenant: TenantId, reason: str) -> Finding:
    """The row names a queue that Berth has no permission for, so its messages cannot be counted."""
    return Finding(
        Kind.METADATA_DIFFERS,
        tenant.value,
        reason,
        Remedy.NONE,
        "Tenants' queues are named after their stacks. If the tenant is from before Berth, adopt it: berth adopt. "
        f"Otherwise somebody other than Berth has changed its row. See the row: berth tenant {tenant}",
    )


def unreadable_rows(tenant: TenantId, reason: str) -> Finding:
    return Finding(
        Kind.METADATA_DIFFERS,
        tenant.value,
        reason,
        Remedy.NONE,
        "Somebody other than Berth has changed the tenant's rows. Correct the rows, or delete them.",
    )


def stack_out_of_reach(tenant: TenantId, reason: str) -> Finding:
    """The tenant was adopted, but the settings of a later deployment lack the prefix of its stack's name."""
    return Finding(
        Kind.METADATA_DIFFERS,
        tenant.value,
        reason,
        Remedy.NONE,
        f"Until then the tenant is served, but every operation on it fails. See the tenant: berth tenant {tenant}",
    )


def not_adopted(tenant: TenantId) -> Finding:
    """The tenant is from before Berth, and its stack is not recorded."""
    return Finding(
        Kind.NOT_ADOPTED,
        tenant.value,
        "it is from before Berth, and its stack is not recorded",
        Remedy.NONE,
        "See what adopting all such tenants would do: berth adopt --dry-run. Then adopt them: berth adopt",
    )


def drifted(stack: Stack, detail: str) -> Finding:
    """The stack has drifted. CloudFormation changes only what differs in the template, so there is no repair."""
    return Finding(
        Kind.DRIFTED,
        stack.tenant_id or stack.stack_id,
        f"its stack's resources do not match the template: {detail}",
        Remedy.NONE,
        f"See the differences: aws cloudformation describe-stack-resource-drifts --stack-name {stack.stack_id}",
    )


def not_compared(stack: Stack, reason: str) -> Finding:
    """CloudFormation detects drift with Berth's permissions, which do not include other resources than queues."""
    return Finding(
        Kind.DRIFTED,
        stack.tenant_id or stack.stack_id,
        f"some of its stack's resources could not be compared with the template: {reason}",
        Remedy.NONE,
        "Compare them with permissions to read these resources: aws cloudformation detect-stack-drift --stack-name "
        f"{stack.stack_id}",
    )


def _not_berths(observation: Observation, stack: Stack) -> Finding:
    """Somebody else made a stack with a tenant's stack name and parameters."""
    return Finding(
        Kind.FOREIGN_STACK,
        observation.stack_name,
        f"it has the name of tenant {observation.tenant}'s stack, but Berth did not make it: its service role is not "
        f"this deployment's, and the tenant was never served from {stack.stack_id}",
        Remedy.NONE,
        advice_about(stack),
    )


def _differences(observation: Observation, metadata: Metadata, stack: Stack, releases: Mapping[str, Release]) -> str:
    """The differences between metadata and stack, as text.

    A missing value is no difference in an old record: rows from before stack ids were recorded have none, and stacks
    from before versions have none. But a stack with a recorded fingerprint was made from a release and has a version,
    unless somebody has replaced its template. The outputs of an earlier system's stack may not name its queue.
    """
    differences = []
    queue = stack.queue or observation.own_queue
    if metadata.queue != queue:
        differences.append(f"queue {_url(metadata)} / {queue.url if queue else 'none'}")
    if metadata.stack_id not in (None, stack.stack_id):
        differences.append(f"stack {metadata.stack_id} / {stack.stack_id}")
    moved = stack.version != metadata.version and (stack.version is not None or metadata.deployed is not None)
    if moved and not same_content(stack.version, metadata.version, releases.get):
        differences.append(f"version {metadata.version} / {stack.version or 'none: its template is not a release'}")
    return ", ".join(differences)


def outputs_differ(observation: Observation) -> Finding | None:
    """The stack's other outputs are not those that were recorded with the latest operation.

    A reconciliation does not look for this: the index, which it compares with the stacks, has no outputs.
    """
    metadata, stack = observation.served, observation.live_stack
    if metadata is None or stack is None or not metadata.resources or metadata.resources == stack.resources:
        return None
    names = sorted(
        name
        for name in {*metadata.resources, *stack.resources}
        if metadata.resources.get(name) != stack.resources.get(name)
    )
    return _finding(
        Kind.METADATA_DIFFERS,
        observation.tenant,
        f"the metadata differs from the stack's outputs: {', '.join(names)}",
        Remedy.NONE,
        "Somebody has changed the stack by hand. getQueue answers with the recorded values until the next upgrade of "
        "the tenant records those of the stack.",
    )


def _url(metadata: Metadata) -> str:
    return metadata.queue.url if metadata.queue else "none"


def _finding(kind: Kind, tenant: TenantId, detail: str, remedy: Remedy, advice: str = "") -> Finding:
    return Finding(kind, tenant.value, detail, remedy, advice if remedy is Remedy.NONE else "")
