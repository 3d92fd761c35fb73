"""All ports in memory: what :class:`orchestrator.composition.UseCases` needs, and every fake can be replaced."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from typing import Any

from orchestrator.common.stack_arns import Location, StackArn
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.tiers import STANDARD
from orchestrator.reconciling.health import Concurrency
from orchestrator.releases.ports import Parameters
from orchestrator.releases.states import PromotionMode
from orchestrator.tenants.credentials import Access, Credentials, CredentialsIssuer
from orchestrator.tenants.names import Names
from orchestrator.tenants.ports import FleetReader
from orchestrator.tenants.records import Queue
from orchestrator.tenants.stack_ports import StackResources
from tests.fakes.examples import LOCATION, NAMES, NOON, VERSION, execution_arn, parameters_of
from tests.fakes.others import (
    FakeClock,
    FakeExecutions,
    FakePublishedTemplates,
    FakeQueues,
    FakeStackPolicies,
    FakeTemplates,
    FakeUnfinishedWork,
    InMemoryCreateCounts,
    InMemoryReleaseStates,
    InMemoryReviews,
    InMemoryTenantCounts,
)
from tests.fakes.pool import InMemoryPool
from tests.fakes.reconciling import FakeSurvey, InMemoryReconciliations
from tests.fakes.resources import FakeResources
from tests.fakes.rollouts import (
    FakeAlarms,
    FakeRolloutExecutions,
    FakeThrottling,
    InMemoryCreateTurns,
    InMemoryManifests,
    InMemoryRollouts,
)
from tests.fakes.stacks import FakeStacks
from tests.fakes.table import InMemoryTable

OWN_STACK = StackArn.parse("arn:aws:cloudformation:eu-west-1:000000000000:stack/Berth/1")
"""The stack of the control plane itself."""


@dataclass
class FakeSettings:
    template_version: str = VERSION
    version: str = "0.10.0"
    promotion: PromotionMode = PromotionMode.ON_DEPLOY
    default_tier: str = STANDARD
    names: Names = NAMES
    location: Location = LOCATION
    stack_id: StackArn = OWN_STACK
    empty_for: timedelta = timedelta(minutes=1)
    stack_events: bool = True
    max_tenants: int = 1_900
    creates_per_minute: int = 0
    create_on_get_queue: bool = True
    retry_after_seconds: int = 5
    warm_pool: Mapping[str, int] = field(default_factory=dict)
    rollout_concurrency: int = 50
    api_proof_digest: str | None = None
    dead_letter_queues: Mapping[str, str] = field(default_factory=dict)


class FakeIssuer:
    def issue(self, tenant: TenantId, queue: Queue, access: Access, *, source_identity: str) -> Credentials:  # noqa: ARG002 - the port's
        return Credentials(access, "an id", "a secret", "a token", NOON + timedelta(hours=1))


class FakeApiStage:
    secret: str | None = None

    def proof(self) -> str | None:
        return self.secret


def numbered_names() -> Callable[[], str]:
    numbers = count(1)
    return lambda: f"name-{next(numbers)}"


@dataclass(kw_only=True, eq=False)
class FakePorts:
    """Implements :class:`orchestrator.composition.Ports`."""

    settings: FakeSettings = field(default_factory=FakeSettings)
    clock: FakeClock = field(default_factory=FakeClock)
    pause: Callable[[float], None] = lambda _seconds: None
    new_name: Callable[[], str] = field(default_factory=numbered_names)
    table: InMemoryTable = field(default_factory=InMemoryTable)
    index: FleetReader | None = None
    """The table's index, if it differs from the table: it may lag."""
    executions: FakeExecutions = field(default_factory=FakeExecutions)
    stacks: FakeStacks = field(default_factory=FakeStacks)
    parameters: Parameters = parameters_of
    stack_resources: StackResources = field(default_factory=FakeResources)
    queues: FakeQueues = field(default_factory=FakeQueues)
    unfinished_work: FakeUnfinishedWork = field(default_factory=FakeUnfinishedWork)
    templates: FakeTemplates = field(default_factory=FakeTemplates)
    stack_policies: FakeStackPolicies = field(default_factory=FakeStackPolicies)
    published_templates: FakePublishedTemplates = field(default_factory=FakePublishedTemplates)
    reviews: InMemoryReviews = field(default_factory=InMemoryReviews)
    release_states: InMemoryReleaseStates = field(default_factory=InMemoryReleaseStates)
    create_counts: InMemoryCreateCounts = field(default_factory=InMemoryCreateCounts)
    tenant_counts: InMemoryTenantCounts = field(default_factory=InMemoryTenantCounts)
    credentials: CredentialsIssuer | None = field(default_factory=FakeIssuer)
    api_stage: FakeApiStage = field(default_factory=FakeApiStage)
    reconciliation_table: InMemoryReconciliations = field(default_factory=InMemoryReconciliations)
    max_stacks: int | None = 2_000
    function_concurrency: Concurrency | None = field(default_factory=lambda: Concurrency(limit=1_000, most_used=12))
    rollout_table: InMemoryRollouts = field(default_factory=InMemoryRollouts)
    throttling: FakeThrottling = field(default_factory=FakeThrottling)
    warm_stacks: InMemoryPool = field(default_factory=InMemoryPool)
    create_turns: InMemoryCreateTurns = field(default_factory=InMemoryCreateTurns)
    manifests: InMemoryManifests = field(default_factory=InMemoryManifests)
    alarms: FakeAlarms = field(default_factory=lambda: FakeAlarms(errors=None))
    rollout_executions: FakeRolloutExecutions = field(default_factory=FakeRolloutExecutions)

    def __post_init__(self) -> None:
        self.survey = FakeSurvey(self.stacks)

    @property
    def tenants(self) -> InMemoryTable:
        return self.table

    @property
    def tenant_rows(self) -> InMemoryTable:
        return self.table

    @property
    def fleet(self) -> FleetReader:
        return self.index or self.table

    @property
    def releases(self) -> InMemoryTable:
        return self.table

    @property
    def ledger(self) -> InMemoryTable:
        return self.table

    @property
    def observed_stacks(self) -> FakeStacks:
        return self.stacks

    @property
    def writable_stacks(self) -> FakeStacks:
        return self.stacks

    @property
    def reconciliation_starter(self) -> InMemoryReconciliations:
        return self.reconciliation_table

    def start_tenant_queue(self, name: str, event: Mapping[str, Any]) -> str | None:  # noqa: ARG002 - the port's
        return execution_arn(name)

    def stack_limit(self) -> int | None:
        return self.max_stacks

    def concurrency(self) -> Concurrency | None:
        return self.function_concurrency
