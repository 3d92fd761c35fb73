"""Checks one tenant or one stack of a survey, and repairs it if that was requested."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from orchestrator.common.errors import InvalidTenantId, QueueOutOfReach, UnreadableRows
from orchestrator.common.stack_arns import name_of
from orchestrator.common.tenant_ids import TenantId
from orchestrator.reconciling.classifying import (
    Observation,
    classify,
    foreign_stack,
    not_adopted,
    queue_out_of_reach,
    stack_out_of_reach,
    unreadable_rows,
)
from orchestrator.reconciling.ports import SurveyedQueues
from orchestrator.reconciling.progress import Progress
from orchestrator.reconciling.records import Finding
from orchestrator.reconciling.repairing import Repairing
from orchestrator.releases.published import is_known, same_content
from orchestrator.releases.records import Release
from orchestrator.tenants.listings import ListedTenant
from orchestrator.tenants.own_stack import find_stack, has_unknown_stack, is_from_before, is_ours, why_out_of_reach
from orchestrator.tenants.ports import Queues, TenantReader
from orchestrator.tenants.records import Metadata, Queue, TenantState
from orchestrator.tenants.stack_ports import Stack, Stacks

_SERVED = frozenset({TenantState.READY, TenantState.UPDATE_FAILED})
_BUSY = frozenset({TenantState.PROVISIONING, TenantState.UPDATING, TenantState.DELETING})

Expected = tuple[ListedTenant, Stack | None]
"""A tenant in the index, and its stack in the list of stacks."""


@dataclass(frozen=True, slots=True)
class TenantChecks:
    tenants: TenantReader
    stacks: Stacks
    queues: SurveyedQueues
    repairing: Repairing
    releases: Mapping[str, Release]
    progress: Progress

    def existing_queues(self, page: Sequence[Expected]) -> Mapping[str, bool | QueueOutOfReach]:
        """Whether the queues exist of those tenants for which the index and the list of stacks show no difference.

        This is one request per tenant, so the requests of a page are sent at the same time.
        """
        return self.queues.exist(
            [listed.queue.url for listed, stack in page if listed.queue and self._seems_as_expected(listed, stack)]
        )

    def check_listed(
        self, listed: ListedTenant, stack: Stack | None, exist: Mapping[str, bool | QueueOutOfReach]
    ) -> None:
        progress = self.progress
        progress.coverage = replace(progress.coverage, tenants=progress.coverage.tenants + 1)
        if not listed.readable:
            progress.found(unreadable_rows(listed.tenant, listed.root_cause.reason if listed.root_cause else ""))
            return
        if listed.state in _BUSY:
            return
        exists = exist.get(listed.queue.url) if listed.queue and self._seems_as_expected(listed, stack) else None
        if isinstance(exists, QueueOutOfReach):
            progress.found(queue_out_of_reach(listed.tenant, str(exists)))
        elif not exists:
            self._check_safely(listed.tenant)

    def check_stack(self, name: str, stack: Stack) -> None:
        """Check a stack that no listed tenant has. Its tenant may be deleted, be from before Berth, or not exist."""
        try:
            tenant = TenantId.parse(stack.tenant_id)
        except InvalidTenantId:
            self.progress.found(foreign_stack(name, stack))
            return
        if self.stacks.names.stack_of(tenant) != name:
            self.progress.found(foreign_stack(name, stack))
            return
        self._check_safely(tenant, is_listed=False)

    def _seems_as_expected(self, listed: ListedTenant, stack: Stack | None) -> bool:
        """True if the index and the list of stacks show no difference. For most tenants nothing more is read."""
        if listed.state in _BUSY or not listed.readable:
            return False
        if listed.stack_id is not None and not self.stacks.names.reaches(name_of(listed.stack_id)):
            return False
        if listed.state not in _SERVED or listed.queue is None or stack is None or stack.queue != listed.queue:
            return False
        # Stacks of an earlier system do not name their version.
        at_version = stack.version in (None, listed.version) or same_content(
            stack.version, listed.version, self.releases.get
        )
        return at_version and is_known(listed.version, self.releases)

    def _check_safely(self, tenant: TenantId, *, is_listed: bool = True) -> None:
        try:
            if not is_listed and is_from_before(self.tenants.metadata(tenant)):
                self.progress.found(not_adopted(tenant))
            else:
                self._check(tenant)
        except (QueueOutOfReach, UnreadableRows) as error:
            self.progress.found(cannot_be_checked(tenant, error))

    def _check(self, tenant: TenantId) -> None:
        """Check one tenant, and repair it if requested. The index and the list of stacks lag, so all is read again."""
        observation, finding = check(tenant, self.tenants, self.stacks, self.queues, self.releases)
        if finding is None:
            return
        requested = self.progress.requested
        if observation is not None and requested.spec.repairs(finding.subject):
            finding = self.repairing.repair(finding, observation, requested.by, reason=requested.spec.reason)
        self.progress.found(finding)


def check(
    tenant: TenantId, tenants: TenantReader, stacks: Stacks, queues: Queues, releases: Mapping[str, Release]
) -> tuple[Observation | None, Finding | None]:
    """The tenant's rows and stack, and the finding about them, if something is wrong.

    There is no observation of a stack that is out of reach or not known. Raises QueueOutOfReach or UnreadableRows:
    :func:`cannot_be_checked` makes a finding of them.
    """
    if reason := why_out_of_reach(tenants.metadata(tenant), stacks.names):
        return None, stack_out_of_reach(tenant, reason)
    observation = observe(tenant, tenants, stacks, queues)
    if observation.live_stack is None and has_unknown_stack(observation.metadata, stacks.names):
        return None, not_adopted(tenant)
    return observation, classify(observation, releases)


def cannot_be_checked(tenant: TenantId, error: QueueOutOfReach | UnreadableRows) -> Finding:
    if isinstance(error, QueueOutOfReach):
        return queue_out_of_reach(tenant, str(error))
    return unreadable_rows(tenant, str(error))


def observe(tenant: TenantId, tenants: TenantReader, stacks: Stacks, queues: Queues) -> Observation:
    metadata, audits = tenants.metadata(tenant), tenants.audits(tenant)
    stack = find_stack(tenant, metadata, stacks)
    name = name_of(stack.stack_id) if stack else stacks.names.stack_of(tenant)
    queue = metadata.queue if metadata and metadata.published else None
    queue_is_gone = queue is not None and queues.messages(queue.url) is None
    ours = stack is None or is_ours(stack, metadata, stacks)
    own_queue = _own_queue(metadata, stack, stacks) if stack and ours and _differs(metadata, stack) else None
    # The lock is read last, so that an operation that has begun since is not disturbed.
    return Observation(tenant, name, metadata, audits, tenants.lock(tenant), stack, queue_is_gone, ours, own_queue)


def _own_queue(metadata: Metadata | None, stack: Stack, stacks: Stacks) -> Queue | None:
    """The tenant's queue among the stack's resources. An earlier system's template may give it any logical id."""
    own_queue = stacks.queue(stack.stack_id)
    if own_queue is None and metadata and metadata.queue in stacks.queues(stack.stack_id).values():
        return metadata.queue
    return own_queue


def _differs(metadata: Metadata | None, stack: Stack) -> bool:
    """True if a served tenant's metadata differs from its stack's outputs."""
    served = metadata is not None and metadata.published
    recorded = (metadata.queue, metadata.stack_id, metadata.version) if metadata else ()
    return served and recorded != (stack.queue, stack.stack_id, stack.version)
