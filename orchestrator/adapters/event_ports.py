"""The ports of the event plane on AWS: every adapter, made and imported when it is first needed."""

from __future__ import annotations

import time
from functools import cached_property
from typing import TYPE_CHECKING, cast

from orchestrator.adapters.aws import SystemClock, client
from orchestrator.adapters.dynamodb.event_configuration import DynamoConfiguration
from orchestrator.adapters.dynamodb.event_tenants import DynamoTenants
from orchestrator.adapters.dynamodb.event_usage import DynamoUsage

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from orchestrator.adapters.dynamodb.event_changes import DynamoChanges
    from orchestrator.adapters.dynamodb.event_configuration_writes import DynamoConfigurationTable
    from orchestrator.adapters.dynamodb.event_epochs import DynamoEpochs
    from orchestrator.adapters.dynamodb.event_purges import DynamoEventCounts, DynamoPurges, DynamoRemains
    from orchestrator.adapters.dynamodb.event_reads import DynamoEventReads
    from orchestrator.adapters.dynamodb.event_usage_writes import DynamoUsageWrites
    from orchestrator.adapters.dynamodb.events import DynamoEventWrites
    from orchestrator.adapters.event_access import StsEventAccess
    from orchestrator.adapters.event_contents import S3Contents
    from orchestrator.adapters.kms import KmsSecrets
    from orchestrator.adapters.settings import Settings
    from orchestrator.adapters.sqs import SqsParkedRecords
    from orchestrator.adapters.stepfunctions import StepFunctionsPurges


class AwsEventPorts:
    """Implements :class:`orchestrator.event_composition.EventPorts`."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.clock = SystemClock()

    def monotonic(self) -> float:
        return time.monotonic()

    @cached_property
    def _dynamodb(self) -> DynamoDBClient:
        return cast("DynamoDBClient", client("dynamodb"))

    @cached_property
    def tenants(self) -> DynamoTenants:
        return DynamoTenants(self._dynamodb, self.settings.table)

    @cached_property
    def configuration(self) -> DynamoConfiguration:
        return DynamoConfiguration(self._dynamodb, self.settings.table)

    @property
    def key_use(self) -> DynamoConfiguration:
        return self.configuration

    def configuration_table(self, by: str) -> DynamoConfigurationTable:
        from orchestrator.adapters.dynamodb.event_configuration_writes import DynamoConfigurationTable
        from orchestrator.events.changes import Recorder

        return DynamoConfigurationTable(
            self._dynamodb,
            self.settings.table,
            events_table=self.settings.events_table,
            recorder=Recorder(by, self.clock),
        )

    @cached_property
    def recorded_changes(self) -> DynamoChanges:
        from orchestrator.adapters.dynamodb.event_changes import DynamoChanges

        return DynamoChanges(self._dynamodb, self.settings.events_table)

    @cached_property
    def usage(self) -> DynamoUsage:
        return DynamoUsage(self._dynamodb, self.settings.table)

    @cached_property
    def secrets(self) -> KmsSecrets:
        from orchestrator.adapters.kms import KmsSecrets

        return KmsSecrets(lambda: client("kms"), self.settings.secrets_key)

    @cached_property
    def event_writes(self) -> DynamoEventWrites:
        from orchestrator.adapters.dynamodb.events import DynamoEventWrites

        return DynamoEventWrites(self._dynamodb, self.settings.events_table)

    @cached_property
    def event_reads(self) -> DynamoEventReads:
        from orchestrator.adapters.dynamodb.event_reads import DynamoEventReads

        return DynamoEventReads(self._dynamodb, self.settings.events_table)

    @property
    def acknowledgements(self) -> DynamoEventReads:
        return self.event_reads

    @cached_property
    def access(self) -> StsEventAccess | None:
        role = self.settings.event_access_role
        if role is None:
            return None
        from orchestrator.adapters.event_access import StsEventAccess

        return StsEventAccess(
            lambda: client("sts"),
            role=role,
            table=self.settings.events_table,
            table_arn=self.settings.events_table_arn,
            seconds=self.settings.credentials_seconds,
            kms_key=self.settings.kms_key,
        )

    @cached_property
    def contents(self) -> S3Contents:
        from orchestrator.adapters.event_contents import S3Contents

        return S3Contents(lambda: client("s3"), self.settings.contents_bucket)

    # Usage

    @cached_property
    def listed_settings(self) -> DynamoEpochs:
        from orchestrator.adapters.dynamodb.event_epochs import DynamoEpochs

        return DynamoEpochs(self._dynamodb, self.settings.table)

    @cached_property
    def usage_counts(self) -> DynamoUsageWrites:
        from orchestrator.adapters.dynamodb.event_usage_writes import DynamoUsageWrites

        return DynamoUsageWrites(self._dynamodb, self.settings.table)

    @property
    def billed_usage(self) -> DynamoUsageWrites:
        return self.usage_counts

    @cached_property
    def event_counts(self) -> DynamoEventCounts:
        from orchestrator.adapters.dynamodb.event_purges import DynamoEventCounts

        return DynamoEventCounts(self._dynamodb, self.settings.events_table)

    @cached_property
    def parked_records(self) -> SqsParkedRecords:
        from orchestrator.adapters.sqs import SqsParkedRecords

        return SqsParkedRecords(lambda: client("sqs"), self.settings.parked_records_queue)

    # The end of a tenant

    @cached_property
    def purges(self) -> DynamoPurges:
        from orchestrator.adapters.dynamodb.event_purges import DynamoPurges

        return DynamoPurges(self._dynamodb, self.settings.table)

    @cached_property
    def remains(self) -> DynamoRemains:
        from orchestrator.adapters.dynamodb.event_purges import DynamoRemains

        return DynamoRemains(
            self._dynamodb,
            table=self.settings.table,
            events_table=self.settings.events_table,
            contents=self.contents,
        )

    @cached_property
    def purge_executions(self) -> StepFunctionsPurges:
        from orchestrator.adapters.stepfunctions import StepFunctionsPurges

        return StepFunctionsPurges(lambda: client("stepfunctions"), self.settings.purge_machine)
