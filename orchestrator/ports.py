"""Everything that the use cases of the control plane need from outside. The composition root builds them from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import timedelta

    from orchestrator.common.stack_arns import Location, StackArn
    from orchestrator.common.times import Clock
    from orchestrator.pool.ports import PoolRows
    from orchestrator.reconciling.health import Concurrency
    from orchestrator.reconciling.ports import (
        ReconciliationLedger,
        ReconciliationStarter,
        StackSurvey,
        SurveyedQueues,
    )
    from orchestrator.releases.ports import (
        Parameters,
        PublishedTemplates,
        Releases,
        ReleaseStates,
        StackPolicies,
        TemplateStore,
    )
    from orchestrator.releases.states import PromotionMode
    from orchestrator.rollouts.ports import (
        Alarms,
        CreateTurnRows,
        Manifests,
        RolloutExecutions,
        RolloutLedger,
        Throttling,
    )
    from orchestrator.tenants.credentials import CredentialsIssuer
    from orchestrator.tenants.ledger import Ledger
    from orchestrator.tenants.limits import TenantCounts
    from orchestrator.tenants.names import Names
    from orchestrator.tenants.ports import (
        CreateCounts,
        Executions,
        FleetReader,
        NewName,
        Reviews,
        TenantReader,
        TenantRows,
        UnfinishedWork,
    )
    from orchestrator.tenants.stack_ports import StackResources, Stacks


class UseCaseSettings(Protocol):
    """The settings that use cases and functions read. A function has only those that it needs."""

    @property
    def names(self) -> Names: ...

    @property
    def version(self) -> str: ...

    @property
    def template_version(self) -> str: ...

    @property
    def promotion(self) -> PromotionMode: ...

    @property
    def default_tier(self) -> str: ...

    @property
    def location(self) -> Location: ...

    @property
    def stack_id(self) -> StackArn: ...

    @property
    def empty_for(self) -> timedelta: ...

    @property
    def stack_events(self) -> bool: ...

    @property
    def max_tenants(self) -> int: ...

    @property
    def creates_per_minute(self) -> int: ...

    @property
    def create_on_get_queue(self) -> bool: ...

    @property
    def retry_after_seconds(self) -> int: ...

    @property
    def warm_pool(self) -> Mapping[str, int]: ...

    @property
    def rollout_concurrency(self) -> int: ...

    @property
    def api_proof_digest(self) -> str | None: ...

    @property
    def dead_letter_queues(self) -> Mapping[str, str]: ...


class ApiProof(Protocol):
    def proof(self) -> str | None:
        """The secret by which functions recognise API Gateway; ``None`` while there is none."""


class Ports(Protocol):
    """Everything that use cases need from outside. ``adapters/ports.py`` has it on AWS, ``tests/fakes`` in memory."""

    @property
    def settings(self) -> UseCaseSettings: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def pause(self) -> Callable[[float], None]:
        """Waits for that many seconds."""

    @property
    def new_name(self) -> NewName: ...

    # Tenants and releases

    @property
    def tenants(self) -> TenantReader: ...

    @property
    def fleet(self) -> FleetReader: ...

    @property
    def releases(self) -> Releases: ...

    @property
    def release_states(self) -> ReleaseStates: ...

    @property
    def ledger(self) -> Ledger: ...

    @property
    def executions(self) -> Executions: ...

    def start_tenant_queue(self, name: str, event: Mapping[str, Any]) -> str | None:
        """Start the state machine of Custom::TenantQueue, once per name. ``None`` if that execution has ended."""

    @property
    def stacks(self) -> Stacks:
        """Tenants' stacks, to read."""

    @property
    def observed_stacks(self) -> Stacks:
        """Tenants' stacks, for an operator who looks at one. Rollouts slow down if CloudFormation throttles operations,
        and not if it throttles this."""

    @property
    def writable_stacks(self) -> Stacks:
        """Tenants' stacks, to create, update and delete."""

    @property
    def parameters(self) -> Parameters: ...

    @property
    def stack_resources(self) -> StackResources: ...

    @property
    def queues(self) -> SurveyedQueues: ...

    @property
    def unfinished_work(self) -> UnfinishedWork: ...

    @property
    def templates(self) -> TemplateStore: ...

    @property
    def stack_policies(self) -> StackPolicies: ...

    @property
    def published_templates(self) -> PublishedTemplates: ...

    @property
    def reviews(self) -> Reviews: ...

    @property
    def create_counts(self) -> CreateCounts: ...

    @property
    def tenant_counts(self) -> TenantCounts: ...

    @property
    def credentials(self) -> CredentialsIssuer | None:
        """``None`` where temporary credentials are not switched on."""

    @property
    def api_stage(self) -> ApiProof: ...

    # Reconciling

    @property
    def survey(self) -> StackSurvey: ...

    @property
    def reconciliation_table(self) -> ReconciliationLedger: ...

    @property
    def reconciliation_starter(self) -> ReconciliationStarter: ...

    @property
    def stack_limit(self) -> Callable[[], int | None]:
        """Returns the number of stacks that the account may have, if AWS tells it."""

    @property
    def concurrency(self) -> Callable[[], Concurrency | None]:
        """Returns how many functions may run at once, and how many did, if AWS tells it."""

    # Rollouts

    @property
    def rollout_table(self) -> RolloutLedger: ...

    @property
    def throttling(self) -> Throttling: ...

    @property
    def warm_stacks(self) -> PoolRows:
        """The list of the stacks that are kept ready."""

    @property
    def tenant_rows(self) -> TenantRows: ...

    @property
    def create_turns(self) -> CreateTurnRows: ...

    @property
    def manifests(self) -> Manifests: ...

    @property
    def alarms(self) -> Alarms: ...

    @property
    def rollout_executions(self) -> RolloutExecutions: ...
