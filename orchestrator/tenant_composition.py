"""Builds the use cases of single tenants: asking for queues, ordering operations, their steps, and releases."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from orchestrator.common.tiers import STANDARD

if TYPE_CHECKING:
    from datetime import datetime

    from orchestrator.common.callers import ApiGateway
    from orchestrator.common.errors import InvalidRequest
    from orchestrator.common.tenant_ids import TenantId
    from orchestrator.pool.seen import SeenStacks
    from orchestrator.pool.taking import Taking
    from orchestrator.ports import Ports
    from orchestrator.releases.ports import Parameters
    from orchestrator.releases.states import Choice, Promoter, PublishedVersions, ReleaseChooser
    from orchestrator.rollouts.create_gate import CreateGate
    from orchestrator.tenants.awaiting import Resumption
    from orchestrator.tenants.get_queue import GetQueue
    from orchestrator.tenants.lifecycle import Lifecycle
    from orchestrator.tenants.limits import Limits
    from orchestrator.tenants.outcomes import (
        Again,
        Begun,
        Busy,
        Done,
        Draining,
        GaveUp,
        Inspection,
        Published,
        Queued,
        Removed,
        Settled,
        Waiting,
    )
    from orchestrator.tenants.ports import (
        CreateLimits,
        UnfinishedWork,
        WarmPool,
    )
    from orchestrator.tenants.provisioning import ProvisionQueue
    from orchestrator.tenants.recent import RecentOperations
    from orchestrator.tenants.records import Queue, RootCause, Run
    from orchestrator.tenants.resource_requests import Claim, TenantQueueRequest
    from orchestrator.tenants.tenant_queue import Answer, AnsweredBefore, NotConfirmed
    from orchestrator.tenants.updating import Drafting


class TenantUseCases:
    """Builds a use case whenever it is asked for, from the ports of that moment.

    Only counts of the fleet, the published versions, the stacks that were last seen to be ready, and for some seconds
    the newest operations are kept.

    Each module is imported when it is first needed, because a function's cold start should load only what it uses.
    """

    def __init__(self, ports: Ports) -> None:
        self.ports = ports

    # Asking for queues and ordering operations

    @property
    def get_queue(self) -> GetQueue:
        from orchestrator.tenants.get_queue import GetQueue

        return GetQueue(self.ports.tenants, lambda: self._provision_queue)

    @property
    def _provision_queue(self) -> ProvisionQueue:
        from orchestrator.tenants.provisioning import ProvisionQueue

        ports = self.ports
        limits = (lambda: self.counted_creates) if ports.settings.create_on_get_queue else None
        return ProvisionQueue(
            ports.tenants,
            ports.executions,
            ports.clock,
            ports.settings.template_version,
            limits,
            ports.releases,
            self.choose_release,
            ports.settings.default_tier,
            (lambda: self.taking) if ports.settings.default_tier in ports.settings.warm_pool else None,
        )

    @property
    def taking(self) -> Taking:
        from orchestrator.pool.taking import Taking

        ports = self.ports
        return Taking(ports.warm_stacks, ports.tenant_rows, ports.executions, ports.clock, self._seen_stacks)

    @cached_property
    def _seen_stacks(self) -> SeenStacks:
        from orchestrator.pool.seen import SeenStacks

        return SeenStacks()

    @property
    def release_chooser(self) -> ReleaseChooser:
        from orchestrator.releases.states import ReleaseChooser

        ports, settings = self.ports, self.ports.settings
        return ReleaseChooser(
            ports.release_states, self._published_versions, settings.template_version, settings.promotion
        )

    @cached_property
    def _published_versions(self) -> PublishedVersions:
        from orchestrator.releases.states import PublishedVersions

        return PublishedVersions(self.ports.releases)

    def choose_release(self, tier: str = STANDARD) -> Choice:
        return self.release_chooser.choose(tier)

    @property
    def promoter(self) -> Promoter:
        from orchestrator.releases.states import Promoter

        return Promoter(self.release_chooser)

    @property
    def api_gateway(self) -> ApiGateway:
        from orchestrator.common.callers import ApiGateway

        return ApiGateway(self.ports.settings.api_proof_digest)

    @cached_property
    def counted_creates(self) -> Limits:
        """The limits of creates that are counted by caller: the cap on tenants, which may lag, and a rate."""
        from orchestrator.tenants.limits import CreateRate, KeptTenantCount, Limits

        ports, per_minute = self.ports, self.ports.settings.creates_per_minute
        rate = CreateRate(ports.create_counts, ports.clock, per_minute) if per_minute else None
        cap = ports.settings.max_tenants
        return Limits(KeptTenantCount(ports.fleet.count_tenants, ports.tenant_counts, ports.clock, cap), cap, rate)

    @cached_property
    def limits_of_orders(self) -> Limits:
        """The limit of operators' creates. A create is refused only after the fleet was counted for it."""
        from datetime import timedelta

        from orchestrator.tenants.limits import KeptTenantCount, Limits

        ports, cap = self.ports, self.ports.settings.max_tenants
        count = KeptTenantCount(ports.fleet.count_tenants, ports.tenant_counts, ports.clock, cap, timedelta(0))
        return Limits(count, cap)

    @property
    def lifecycle(self) -> Lifecycle:
        """The operators' orders."""
        ports = self.ports
        return self.lifecycle_with(
            self.limits_of_orders,
            parameters=ports.parameters,
            unfinished=ports.unfinished_work,
            warm_pool=self.taking if ports.settings.warm_pool else None,
        )

    @cached_property
    def recent_operations(self) -> RecentOperations:
        from orchestrator.tenants.recent import RecentOperations

        return RecentOperations(self.ports.executions, self.ports.clock)

    @property
    def tenant_queue_lifecycle(self) -> Lifecycle:
        """The orders of other teams' stacks, by Custom::TenantQueue."""
        from orchestrator.tenants.limits import TENANT_QUEUE_RESOURCES

        return self.lifecycle_with(self.counted_creates, counted_for=TENANT_QUEUE_RESOURCES)

    def lifecycle_with(
        self,
        limits: CreateLimits,
        *,
        counted_for: str | None = None,
        parameters: Parameters | None = None,
        unfinished: UnfinishedWork | None = None,
        warm_pool: WarmPool | None = None,
        of_warm_stacks: bool = False,
    ) -> Lifecycle:
        from orchestrator.tenants.lifecycle import Lifecycle

        ports = self.ports
        return Lifecycle(
            reader=ports.tenants,
            descriptions=ports.ledger,
            releases=ports.releases,
            executions=ports.executions,
            queues=ports.queues,
            clock=ports.clock,
            version=ports.settings.template_version,
            default_tier=ports.settings.default_tier,
            chooser=self.release_chooser,
            limits=limits,
            counted_for=counted_for,
            names=ports.settings.names,
            parameters=parameters,
            unfinished=unfinished,
            warm_pool=warm_pool,
            of_warm_stacks=of_warm_stacks,
        )

    def answer_tenant_queue(
        self, claim: Claim, asked: TenantQueueRequest | InvalidRequest, *, confirmed: bool, since: datetime
    ) -> Answer | AnsweredBefore | NotConfirmed:
        from orchestrator.tenants.tenant_queue import answer

        return answer(
            claim,
            asked,
            confirmed=confirmed,
            since=since,
            lifecycle=self.tenant_queue_lifecycle,
            resources=self.ports.stack_resources,
        )

    # The steps of an operation

    @property
    def turns(self) -> CreateGate:
        from orchestrator.rollouts.create_gate import CreateGate

        ports = self.ports
        return CreateGate(ports.create_turns, ports.throttling, ports.tenants, ports.executions.wake, ports.clock)

    def begin(self, run: Run) -> Begun | Busy | Again | Queued | Done | GaveUp:
        from orchestrator.tenants.operations import begin
        from orchestrator.tenants.records import Operation

        ports = self.ports
        return begin(
            run,
            reader=ports.tenants,
            ledger=ports.ledger,
            releases=ports.releases,
            withdrawal_of=lambda version: ports.release_states.state().withdrawn.get(version),
            stacks=ports.stacks,
            executions=ports.executions,
            parameters=ports.parameters,
            clock=ports.clock,
            turns=self.turns if run.attempt.operation is Operation.CREATE else None,
        )

    def await_admission(self, run: Run, *, task_token: str) -> Waiting:
        from orchestrator.tenants.turns import await_admission

        ports = self.ports
        return await_admission(
            run,
            task_token=task_token,
            reader=ports.tenants,
            ledger=ports.ledger,
            executions=ports.executions,
            turns=self.turns,
            clock=ports.clock,
        )

    @property
    def drafting(self) -> Drafting:
        from orchestrator.tenants.updating import Drafting

        ports = self.ports
        return Drafting(
            ports.ledger, ports.parameters, ports.new_name, ports.releases, ports.reviews, ports.published_templates
        )

    def start_and_wait(
        self, run: Run, *, task_token: str, empty_since: datetime | None = None
    ) -> Waiting | Inspection | Draining:
        from orchestrator.tenants.awaiting import start_and_wait

        ports = self.ports
        return start_and_wait(
            run,
            task_token=task_token,
            stack_events=ports.settings.stack_events,
            reader=ports.tenants,
            ledger=ports.ledger,
            releases=ports.releases,
            stacks=ports.writable_stacks,
            queues=ports.queues,
            drafting=self.drafting,
            unfinished=ports.unfinished_work,
            clock=ports.clock,
            empty_for=ports.settings.empty_for,
            empty_since=empty_since,
        )

    def await_stack(self, run: Run, *, task_token: str) -> Waiting | Settled:
        from orchestrator.tenants.awaiting import await_stack

        ports = self.ports
        return await_stack(run, task_token=task_token, reader=ports.tenants, ledger=ports.ledger, stacks=ports.stacks)

    def inspect_stack(self, run: Run) -> Inspection:
        from orchestrator.tenants.awaiting import inspect_started

        ports = self.ports
        return inspect_started(run, reader=ports.tenants, stacks=ports.stacks, queues=ports.queues, clock=ports.clock)

    def stack_settled(self, stack_id: str, *, client_token: str) -> Resumption | None:
        from orchestrator.tenants.awaiting import stack_settled

        ports = self.ports
        return stack_settled(
            stack_id,
            client_token=client_token,
            names=ports.settings.names,
            reader=ports.tenants,
            stacks=ports.stacks,
            queues=ports.queues,
            clock=ports.clock,
        )

    def finish(self, run: Run, *, stack: Done | None) -> Published | Removed:
        from orchestrator.tenants.operations import finish
        from orchestrator.tenants.outcomes import Published
        from orchestrator.tenants.records import Operation

        ports = self.ports
        finished = finish(
            run,
            stack=stack,
            reader=ports.tenants,
            ledger=ports.ledger,
            releases=ports.releases,
            stacks=ports.stacks,
            parameters=ports.parameters,
            clock=ports.clock,
        )
        if isinstance(finished, Published) and run.attempt.operation is Operation.CREATE:
            self.turns.leave(run.execution, succeeded=True)
        return finished

    def record_failure(self, run: Run, *, failure: RootCause, failed_stack: str | None) -> RootCause:
        from orchestrator.common.errors import LostOwnership
        from orchestrator.tenants.operations import record_failure
        from orchestrator.tenants.records import Operation

        ports = self.ports
        is_create = run.attempt.operation is Operation.CREATE
        try:
            cause = record_failure(
                run,
                failure=failure,
                failed_stack=failed_stack,
                reader=ports.tenants,
                ledger=ports.ledger,
                stacks=ports.stacks,
                executions=ports.executions,
                clock=ports.clock,
            )
        except LostOwnership:
            if is_create:
                self.turns.leave(run.execution)  # Another attempt has replaced the run.
            raise
        if is_create:
            self.turns.leave(run.execution)
        return cause

    # The tenant stack's own word about its queue

    def record_queue(self, tenant: TenantId, *, stack_id: str, reported: Queue) -> None:
        from orchestrator.tenants.queue_metadata import record_queue

        ports = self.ports
        record_queue(
            tenant,
            stack_id=stack_id,
            reported=reported,
            reader=ports.tenants,
            ledger=ports.ledger,
            stacks=ports.stacks,
            clock=ports.clock,
        )

    def forget_queue(self, tenant: TenantId, *, stack_id: str) -> bool:
        from orchestrator.tenants.queue_metadata import forget_queue

        ports = self.ports
        return forget_queue(tenant, stack_id=stack_id, reader=ports.tenants, ledger=ports.ledger, stacks=ports.stacks)
