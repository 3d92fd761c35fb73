"""The composition root: which adapter serves which use case. Functions and the command line start here."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, cast

from orchestrator.adapters.aws import SystemClock, client
from orchestrator.adapters.dynamodb import DynamoTable
from orchestrator.adapters.settings import Settings
from orchestrator.adapters.stepfunctions import StepFunctionsExecutions
from orchestrator.get_queue import GetQueue

if TYPE_CHECKING:
    from mypy_boto3_cloudformation.literals import DeploymentConfigModeType

    from orchestrator.adapters.cloudformation import CloudFormationStacks
    from orchestrator.adapters.s3 import S3Templates
    from orchestrator.adapters.sqs import SqsQueues
    from orchestrator.adapters.sts import StsCredentials
    from orchestrator.lifecycle import Lifecycle


class Wiring:
    """Makes each adapter once, when first asked for, and imports it only then: cold starts count."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.clock = SystemClock()

    @cached_property
    def table(self) -> DynamoTable:
        return DynamoTable(client("dynamodb"), self.settings.table)

    @cached_property
    def executions(self) -> StepFunctionsExecutions:
        return StepFunctionsExecutions(lambda: client("stepfunctions"), self.settings.machine)

    @cached_property
    def stacks(self) -> CloudFormationStacks:
        """Tenants' stacks, to look at."""
        from orchestrator.adapters.cloudformation import CloudFormationStacks

        return CloudFormationStacks(client("cloudformation"))

    @cached_property
    def writable_stacks(self) -> CloudFormationStacks:
        """Tenants' stacks, to create, update and delete."""
        from orchestrator.adapters.cloudformation import CloudFormationStacks

        return CloudFormationStacks(
            client("cloudformation"),
            service_role=self.settings.stack_role,
            service_token=self.settings.metadata_service_token,
            mode=cast("DeploymentConfigModeType", self.settings.deployment_mode),
        )

    @cached_property
    def queues(self) -> SqsQueues:
        from orchestrator.adapters.sqs import SqsQueues

        return SqsQueues(client("sqs"))

    @cached_property
    def templates(self) -> S3Templates:
        from orchestrator.adapters.s3 import S3Templates

        return S3Templates(client("s3"), self.settings.release_bucket)

    @cached_property
    def get_queue(self) -> GetQueue:
        return GetQueue(self.table, self.executions, self.clock, self.settings.version)

    @cached_property
    def credentials(self) -> StsCredentials | None:
        """Who issues temporary credentials; nobody where that is not switched on."""
        role = self.settings.queue_access_role
        if role is None:
            return None
        from orchestrator.adapters.sts import StsCredentials

        return StsCredentials(lambda: client("sts"), role, self.settings.credentials_seconds)

    @cached_property
    def lifecycle(self) -> Lifecycle:
        from orchestrator.lifecycle import Lifecycle

        return Lifecycle(
            reader=self.table,
            descriptions=self.table,
            releases=self.table,
            executions=self.executions,
            queues=self.queues,
            clock=self.clock,
            version=self.settings.version,
        )
