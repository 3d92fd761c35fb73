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

    from orchestrator.adapters.dynamodb.event_configuration_writes import DynamoConfigurationTable
    from orchestrator.adapters.dynamodb.event_reads import DynamoEventReads
    from orchestrator.adapters.dynamodb.events import DynamoEventWrites
    from orchestrator.adapters.event_contents import S3Contents
    from orchestrator.adapters.kms import KmsSecrets
    from orchestrator.adapters.settings import Settings


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

    @cached_property
    def configuration_table(self) -> DynamoConfigurationTable:
        from orchestrator.adapters.dynamodb.event_configuration_writes import DynamoConfigurationTable

        return DynamoConfigurationTable(self._dynamodb, self.settings.table)

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
    def contents(self) -> S3Contents:
        from orchestrator.adapters.event_contents import S3Contents

        return S3Contents(lambda: client("s3"), self.settings.contents_bucket)
