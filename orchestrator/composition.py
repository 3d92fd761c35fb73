"""The composition root: which adapter serves which use case. Functions and the command line start here."""

from __future__ import annotations

from functools import cached_property, partial
from time import sleep
from typing import TYPE_CHECKING, cast

from orchestrator.adapters.aws import SystemClock, client
from orchestrator.adapters.dynamodb.tenants import DynamoTable
from orchestrator.adapters.settings import Settings
from orchestrator.adapters.stepfunctions import StepFunctionsExecutions, StepFunctionsRollouts
from orchestrator.common.callers import ApiGateway
from orchestrator.tenants.get_queue import GetQueue

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy_boto3_cloudformation.literals import DeploymentConfigModeType
    from mypy_boto3_dynamodb import DynamoDBClient

    from orchestrator.adapters.apigateway import ApiStage
    from orchestrator.adapters.cloudformation import CloudFormationResources, CloudFormationStacks
    from orchestrator.adapters.cloudwatch import CloudWatchAlarms
    from orchestrator.adapters.dynamodb.create_counts import DynamoCreateCounts
    from orchestrator.adapters.dynamodb.reconciliations import ReconciliationTable
    from orchestrator.adapters.dynamodb.rollouts import RolloutTable
    from orchestrator.adapters.dynamodb.unlisted import UnlistedRows
    from orchestrator.adapters.functions import AccountFunctions
    from orchestrator.adapters.s3 import S3Manifests, S3Templates
    from orchestrator.adapters.sqs import SqsQueues
    from orchestrator.adapters.sts import StsCredentials
    from orchestrator.adapters.survey import CloudFormationSurvey
    from orchestrator.reconciling.control import Reconciliations
    from orchestrator.reconciling.health import Health
    from orchestrator.reconciling.reconciler import Reconciler
    from orchestrator.reconciling.settling import Settling
    from orchestrator.releases.ports import Parameters
    from orchestrator.rollouts.advancing import Advancing
    from orchestrator.rollouts.control import Rollouts
    from orchestrator.rollouts.gate import Gate
    from orchestrator.rollouts.reviewing import Reviewing
    from orchestrator.tenants.confirming import Deployment
    from orchestrator.tenants.ledger import Ledger
    from orchestrator.tenants.lifecycle import Lifecycle
    from orchestrator.tenants.limits import Limits
    from orchestrator.tenants.names import Names
    from orchestrator.tenants.ports import CreateLimits
    from orchestrator.tenants.updating import Drafting


class Wiring:
    """Makes each adapter once, when first asked for, and imports it only then: cold starts count."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.clock = SystemClock()

    @cached_property
    def _dynamodb(self) -> DynamoDBClient:
        return cast("DynamoDBClient", client("dynamodb"))

    @cached_property
    def names(self) -> Names:
        return self.settings.names

    @cached_property
    def table(self) -> DynamoTable:
        return DynamoTable(self._dynamodb, self.settings.table)

    @cached_property
    def ledger(self) -> Ledger:
        """What writes tenants' rows."""
        from orchestrator.tenants.ledger import Ledger

        return Ledger(self.table)

    @cached_property
    def executions(self) -> StepFunctionsExecutions:
        return StepFunctionsExecutions(
            lambda: client("stepfunctions"), self.settings.machine, linger=self.settings.linger
        )

    @cached_property
    def stacks(self) -> CloudFormationStacks:
        """Tenants' stacks, to look at."""
        from orchestrator.adapters.cloudformation import CloudFormationStacks

        return CloudFormationStacks(
            client("cloudformation"),
            names=self.names,
            service_role=self.settings.stack_role,
            on_throttled=self._note_throttled,
        )

    @cached_property
    def stack_resources(self) -> CloudFormationResources:
        """Custom resources of ours, in stacks of other teams and in the control plane's own."""
        from orchestrator.adapters.cloudformation import CloudFormationResources

        return CloudFormationResources(client("cloudformation"))

    @cached_property
    def deployment(self) -> Deployment:
        from orchestrator.tenants.confirming import Deployment

        return Deployment(self.settings.stack_id, self.stack_resources, sleep)

    @cached_property
    def api_stage(self) -> ApiStage:
        from orchestrator.adapters.apigateway import ApiStage

        return ApiStage(client("apigatewayv2"), self.settings.api, self.settings.api_stage)

    @cached_property
    def writable_stacks(self) -> CloudFormationStacks:
        """Tenants' stacks, to create, update and delete."""
        from orchestrator.adapters.cloudformation import CloudFormationStacks

        return CloudFormationStacks(
            client("cloudformation"),
            names=self.names,
            service_role=self.settings.stack_role,
            parameters=self.parameters,
            mode=cast("DeploymentConfigModeType", self.settings.deployment_mode),
            on_throttled=self._note_throttled,
        )

    def _note_throttled(self) -> None:
        self.rollout_table.note_throttled()

    @cached_property
    def parameters(self) -> Parameters:
        """What tenants' templates are given."""
        from orchestrator.releases.published import stack_parameters

        settings = self.settings
        return partial(stack_parameters, service_token=settings.metadata_service_token, kms_key=settings.kms_key)

    @cached_property
    def drafting(self) -> Drafting:
        from secrets import token_hex

        from orchestrator.tenants.updating import Drafting

        return Drafting(self.ledger, self.parameters, lambda: token_hex(16))

    @cached_property
    def queues(self) -> SqsQueues:
        from orchestrator.adapters.sqs import SqsQueues

        return SqsQueues(client("sqs"))

    @cached_property
    def templates(self) -> S3Templates:
        from orchestrator.adapters.s3 import S3Templates

        return S3Templates(client("s3"), self.settings.release_bucket, source=self.settings.source_bucket)

    @cached_property
    def get_queue(self) -> GetQueue:
        limits = (lambda: self.counted_creates) if self.settings.create_on_get_queue else None
        return GetQueue(self.table, self.executions, self.clock, self.settings.version, limits, self.table)

    @cached_property
    def api_gateway(self) -> ApiGateway:
        return ApiGateway(self.settings.api_proof_digest)

    @cached_property
    def credentials(self) -> StsCredentials | None:
        """Who issues temporary credentials; nobody where that is not switched on."""
        role = self.settings.queue_access_role
        if role is None:
            return None
        from orchestrator.adapters.sts import StsCredentials

        key, former = self.settings.kms_key, self.settings.former_kms_keys
        return StsCredentials(
            lambda: client("sts"),
            role,
            self.settings.credentials_seconds,
            kms_keys=[*([key] if key else []), *former],
        )

    @cached_property
    def counted_creates(self) -> Limits:
        """The limits of creates that are counted by caller: the cap on tenants, which may lag, and a rate."""
        from orchestrator.tenants.limits import CountOfTheFleet, CreateRate, Limits

        count, per_minute = CountOfTheFleet(self.table.count_tenants, self.clock), self.settings.creates_per_minute
        rate = CreateRate(self.create_counts, self.clock, per_minute) if per_minute else None
        return Limits(count, self.settings.max_tenants, rate)

    @cached_property
    def create_counts(self) -> DynamoCreateCounts:
        from orchestrator.adapters.dynamodb.create_counts import DynamoCreateCounts

        return DynamoCreateCounts(self._dynamodb, self.settings.table)

    @cached_property
    def lifecycle(self) -> Lifecycle:
        """What operators order. Near the cap the fleet is counted for each create."""
        from orchestrator.tenants.limits import MAX_ORDERS_PER_COUNT, CountOfTheFleet, Limits

        most = self.settings.max_tenants
        count = CountOfTheFleet(self.table.count_tenants, self.clock, doubted=most - MAX_ORDERS_PER_COUNT)
        return self._lifecycle(Limits(count, most), parameters=self.parameters)

    @cached_property
    def tenant_queue_lifecycle(self) -> Lifecycle:
        """What other teams' stacks ask for, by Custom::TenantQueue."""
        from orchestrator.tenants.limits import TENANT_QUEUE_RESOURCES

        return self._lifecycle(self.counted_creates, counted_for=TENANT_QUEUE_RESOURCES)

    def _lifecycle(
        self, limits: CreateLimits, *, counted_for: str | None = None, parameters: Parameters | None = None
    ) -> Lifecycle:
        from orchestrator.tenants.lifecycle import Lifecycle

        return Lifecycle(
            reader=self.table,
            descriptions=self.ledger,
            releases=self.table,
            executions=self.executions,
            queues=self.queues,
            clock=self.clock,
            version=self.settings.version,
            limits=limits,
            counted_for=counted_for,
            names=self.names,
            parameters=parameters,
        )

    # Reconciling

    @cached_property
    def settling(self) -> Settling:
        from orchestrator.reconciling.settling import Settling

        return Settling(
            reader=self.table,
            ledger=self.ledger,
            releases=self.table,
            stacks=self.stacks,
            queues=self.queues,
            executions=self.executions,
            parameters=self.parameters,
            clock=self.clock,
        )

    def reconciler(self, *, has_time: Callable[[], bool], pause: Callable[[float], None]) -> Reconciler:
        """A new one each time: it keeps what it finds."""
        from orchestrator.reconciling.reconciler import Reconciler
        from orchestrator.reconciling.repairing import Repairing
        from orchestrator.tenants.limits import Unlimited

        return Reconciler(
            tenants=self.table,
            fleet=self.table,
            releases=self.table,
            stacks=self.stacks,
            survey=self.survey,
            queues=self.queues,
            settling=self.settling,
            repairing=Repairing(
                lifecycle=self._lifecycle(Unlimited(), parameters=self.parameters),
                corrections=self.ledger,
                queue_metadata=self.ledger,
                clock=self.clock,
            ),
            ledger=self.reconciliation_table,
            rollouts=self.rollout_table,
            rollout_executions=self.rollout_executions,
            unlisted=self.unlisted,
            clock=self.clock,
            has_time=has_time,
            pause=pause,
        )

    @cached_property
    def survey(self) -> CloudFormationSurvey:
        from orchestrator.adapters.survey import CloudFormationSurvey

        return CloudFormationSurvey(client("cloudformation"), service_role=lambda: self.settings.stack_role)

    @cached_property
    def unlisted(self) -> UnlistedRows:
        from orchestrator.adapters.dynamodb.unlisted import UnlistedRows

        return UnlistedRows(self._dynamodb, self.settings.table)

    @cached_property
    def reconciliation_table(self) -> ReconciliationTable:
        from orchestrator.adapters.dynamodb.reconciliations import ReconciliationTable

        return ReconciliationTable(self._dynamodb, self.settings.table)

    @cached_property
    def reconciliations(self) -> Reconciliations:
        from orchestrator.adapters.dynamodb.reconciliations import LambdaReconciliations
        from orchestrator.reconciling.control import Reconciliations

        starter = LambdaReconciliations(lambda: client("lambda"), lambda: self.settings.reconcile_function)
        return Reconciliations(ledger=self.reconciliation_table, starter=starter, clock=self.clock)

    @cached_property
    def account_functions(self) -> AccountFunctions:
        from orchestrator.adapters.functions import AccountFunctions

        return AccountFunctions(client("lambda"), client("cloudwatch"), self.clock)

    @cached_property
    def health(self) -> Health:
        from orchestrator.reconciling.health import Health

        return Health(
            fleet=self.table,
            reconciliations=self.reconciliation_table,
            queues=self.queues,
            stack_limit=self.survey.stack_limit,
            concurrency=self.account_functions.concurrency,
            max_tenants=self.settings.max_tenants,
            dead_letter_queues=self.settings.dead_letter_queues,
            clock=self.clock,
        )

    # Rollouts

    @cached_property
    def rollout_table(self) -> RolloutTable:
        from orchestrator.adapters.dynamodb.rollouts import RolloutTable

        return RolloutTable(self._dynamodb, self.settings.table)

    @cached_property
    def manifests(self) -> S3Manifests:
        from orchestrator.adapters.s3 import S3Manifests

        return S3Manifests(client("s3"), self.settings.release_bucket)

    @cached_property
    def alarms(self) -> CloudWatchAlarms:
        from orchestrator.adapters.cloudwatch import CloudWatchAlarms

        return CloudWatchAlarms(client("cloudwatch"))

    @cached_property
    def rollout_executions(self) -> StepFunctionsRollouts:
        return StepFunctionsRollouts(self.executions, lambda: self.settings.rollout_machine)

    @cached_property
    def rollouts(self) -> Rollouts:
        from orchestrator.rollouts.control import Rollouts

        return Rollouts(
            ledger=self.rollout_table,
            tenants=self.table,
            fleet=self.table,
            releases=self.table,
            manifests=self.manifests,
            alarms=self.alarms,
            executions=self.rollout_executions,
            clock=self.clock,
            version=self.settings.version,
            updates=self.executions,
        )

    @cached_property
    def advancing(self) -> Advancing:
        from orchestrator.rollouts.advancing import Advancing

        return Advancing(
            ledger=self.rollout_table,
            tenants=self.table,
            manifests=self.manifests,
            alarms=self.alarms,
            throttling=self.rollout_table,
            executions=self.rollout_executions,
            clock=self.clock,
        )

    @cached_property
    def gate(self) -> Gate:
        from orchestrator.rollouts.gate import Gate

        return Gate(ledger=self.rollout_table, tenants=self.table, throttling=self.rollout_table, clock=self.clock)

    @cached_property
    def reviewing(self) -> Reviewing:
        from orchestrator.rollouts.reviewing import Reviewing

        return Reviewing(
            gate=self.gate,
            ledger=self.rollout_table,
            tenants=self.table,
            releases=self.table,
            stacks=self.writable_stacks,
            queues=self.queues,
            parameters=self.parameters,
            clock=self.clock,
        )
