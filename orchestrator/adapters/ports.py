"""The ports on AWS: every adapter, made once, when it is first needed.

An adapter is imported only then, too, because a function's cold start should load only what the function uses.
"""

from __future__ import annotations

from functools import cached_property, partial
from time import sleep
from typing import TYPE_CHECKING, Any, cast

from orchestrator.adapters.aws import SystemClock, client, open_connection
from orchestrator.adapters.dynamodb.tenants import DynamoTable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mypy_boto3_dynamodb import DynamoDBClient

    from orchestrator.adapters.apigateway import ApiStage
    from orchestrator.adapters.cloudformation import CloudFormationResources, CloudFormationStacks
    from orchestrator.adapters.cloudwatch import CloudWatchAlarms
    from orchestrator.adapters.dynamodb.create_counts import DynamoCreateCounts, DynamoTenantCounts
    from orchestrator.adapters.dynamodb.create_turns import CreateTurnTable
    from orchestrator.adapters.dynamodb.pool import PoolTable
    from orchestrator.adapters.dynamodb.reconciliations import LambdaReconciliations, ReconciliationTable
    from orchestrator.adapters.dynamodb.release_states import ReleaseStateTable
    from orchestrator.adapters.dynamodb.reviews import ReviewTable
    from orchestrator.adapters.dynamodb.rollouts import RolloutTable
    from orchestrator.adapters.functions import AccountFunctions
    from orchestrator.adapters.iam import IamStackPolicies
    from orchestrator.adapters.s3 import S3Manifests, S3PublishedTemplates, S3Templates
    from orchestrator.adapters.settings import Settings
    from orchestrator.adapters.sqs import SqsQueues
    from orchestrator.adapters.stepfunctions import StepFunctionsExecutions, StepFunctionsRollouts
    from orchestrator.adapters.sts import StsCredentials
    from orchestrator.adapters.survey import CloudFormationSurvey
    from orchestrator.adapters.unfinished_work import LambdaUnfinishedWork
    from orchestrator.reconciling.health import Concurrency
    from orchestrator.releases.ports import Parameters
    from orchestrator.tenants.ledger import Ledger


class AwsPorts:
    """Implements :class:`orchestrator.composition.Ports`."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.clock = SystemClock()

    def pause(self, seconds: float) -> None:
        sleep(seconds)

    def new_name(self) -> str:
        from secrets import token_hex

        return token_hex(16)

    @cached_property
    def _dynamodb(self) -> DynamoDBClient:
        return cast("DynamoDBClient", client("dynamodb"))

    def open_connection(self) -> None:
        open_connection(lambda: self._dynamodb)

    # Tenants and releases

    @cached_property
    def table(self) -> DynamoTable:
        return DynamoTable(self._dynamodb, self.settings.table)

    @property
    def tenants(self) -> DynamoTable:
        return self.table

    @property
    def fleet(self) -> DynamoTable:
        return self.table

    @property
    def releases(self) -> DynamoTable:
        return self.table

    @cached_property
    def release_states(self) -> ReleaseStateTable:
        from orchestrator.adapters.dynamodb.release_states import ReleaseStateTable

        return ReleaseStateTable(self._dynamodb, self.settings.table)

    @cached_property
    def ledger(self) -> Ledger:
        from orchestrator.tenants.ledger import Ledger

        return Ledger(self.table)

    @cached_property
    def executions(self) -> StepFunctionsExecutions:
        from orchestrator.adapters.stepfunctions import StepFunctionsExecutions

        return StepFunctionsExecutions(
            lambda: client("stepfunctions"), self.settings.machine, linger=self.settings.linger
        )

    def start_tenant_queue(self, name: str, event: Mapping[str, Any]) -> str | None:
        return self.executions.start_by_name(self.settings.tenant_queue_machine, name, {"event": dict(event)})

    @cached_property
    def stacks(self) -> CloudFormationStacks:
        from orchestrator.adapters.cloudformation import CloudFormationStacks

        return CloudFormationStacks(
            client("cloudformation"),
            names=self.settings.names,
            service_role=self.settings.stack_role,
            on_throttled=self._note_throttled,
        )

    @cached_property
    def observed_stacks(self) -> CloudFormationStacks:
        from orchestrator.adapters.cloudformation import CloudFormationStacks

        return CloudFormationStacks(
            client("cloudformation"), names=self.settings.names, service_role=self.settings.stack_role
        )

    @cached_property
    def writable_stacks(self) -> CloudFormationStacks:
        from orchestrator.adapters.cloudformation import CloudFormationStacks

        return CloudFormationStacks(
            client("cloudformation"),
            names=self.settings.names,
            service_role=self.settings.stack_role,
            parameters=self.parameters,
            on_throttled=self._note_throttled,
        )

    def _note_throttled(self) -> None:
        self.rollout_table.note_throttled()

    @cached_property
    def parameters(self) -> Parameters:
        from orchestrator.releases.published import stack_parameters

        settings = self.settings
        return partial(stack_parameters, service_token=settings.metadata_service_token, kms_key=settings.kms_key)

    @cached_property
    def stack_resources(self) -> CloudFormationResources:
        from orchestrator.adapters.cloudformation import CloudFormationResources

        return CloudFormationResources(client("cloudformation"))

    @cached_property
    def queues(self) -> SqsQueues:
        from orchestrator.adapters.sqs import SqsQueues

        return SqsQueues(client("sqs"))

    @cached_property
    def unfinished_work(self) -> LambdaUnfinishedWork:
        from orchestrator.adapters.unfinished_work import LambdaUnfinishedWork

        return LambdaUnfinishedWork(lambda: client("lambda"), self.settings.names.unfinished_work_function)

    @cached_property
    def templates(self) -> S3Templates:
        from orchestrator.adapters.s3 import S3Templates

        return S3Templates(client("s3"), self.settings.release_bucket, source=self.settings.source_bucket)

    @cached_property
    def stack_policies(self) -> IamStackPolicies:
        from orchestrator.adapters.iam import IamStackPolicies

        return IamStackPolicies(lambda: client("iam"), self.settings.stack_policies)

    @cached_property
    def published_templates(self) -> S3PublishedTemplates:
        from orchestrator.adapters.s3 import S3PublishedTemplates

        return S3PublishedTemplates(lambda: client("s3"))

    @cached_property
    def reviews(self) -> ReviewTable:
        from orchestrator.adapters.dynamodb.reviews import ReviewTable

        return ReviewTable(self._dynamodb, self.settings.table)

    @cached_property
    def create_counts(self) -> DynamoCreateCounts:
        from orchestrator.adapters.dynamodb.create_counts import DynamoCreateCounts

        return DynamoCreateCounts(self._dynamodb, self.settings.table)

    @cached_property
    def tenant_counts(self) -> DynamoTenantCounts:
        from orchestrator.adapters.dynamodb.create_counts import DynamoTenantCounts

        return DynamoTenantCounts(self._dynamodb, self.settings.table)

    @cached_property
    def credentials(self) -> StsCredentials | None:
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
    def api_stage(self) -> ApiStage:
        from orchestrator.adapters.apigateway import ApiStage

        return ApiStage(client("apigatewayv2"), self.settings.api, self.settings.api_stage)

    # Reconciling

    @cached_property
    def survey(self) -> CloudFormationSurvey:
        from orchestrator.adapters.survey import CloudFormationSurvey

        return CloudFormationSurvey(client("cloudformation"), service_role=lambda: self.settings.stack_role)

    @cached_property
    def reconciliation_table(self) -> ReconciliationTable:
        from orchestrator.adapters.dynamodb.reconciliations import ReconciliationTable

        return ReconciliationTable(self._dynamodb, self.settings.table)

    @cached_property
    def reconciliation_starter(self) -> LambdaReconciliations:
        from orchestrator.adapters.dynamodb.reconciliations import LambdaReconciliations

        return LambdaReconciliations(lambda: client("lambda"), lambda: self.settings.reconcile_function)

    @cached_property
    def account_functions(self) -> AccountFunctions:
        from orchestrator.adapters.functions import AccountFunctions

        return AccountFunctions(client("lambda"), client("cloudwatch"), self.clock)

    def stack_limit(self) -> int | None:
        return self.survey.stack_limit()

    def concurrency(self) -> Concurrency | None:
        return self.account_functions.concurrency()

    # Rollouts

    @cached_property
    def rollout_table(self) -> RolloutTable:
        from orchestrator.adapters.dynamodb.rollouts import RolloutTable

        return RolloutTable(self._dynamodb, self.settings.table)

    @property
    def throttling(self) -> RolloutTable:
        return self.rollout_table

    @cached_property
    def warm_stacks(self) -> PoolTable:
        from orchestrator.adapters.dynamodb.pool import PoolTable

        return PoolTable(self._dynamodb, self.settings.table)

    @property
    def tenant_rows(self) -> DynamoTable:
        return self.table

    @cached_property
    def create_turns(self) -> CreateTurnTable:
        from orchestrator.adapters.dynamodb.create_turns import CreateTurnTable

        return CreateTurnTable(self._dynamodb, self.settings.table)

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
        from orchestrator.adapters.stepfunctions import StepFunctionsRollouts

        return StepFunctionsRollouts(self.executions, lambda: self.settings.rollout_machine)
