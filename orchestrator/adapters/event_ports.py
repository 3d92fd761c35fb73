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
    from collections.abc import Sequence

    from mypy_boto3_dynamodb import DynamoDBClient

    from orchestrator.adapters.delivery_queues import SqsDeliveryQueues
    from orchestrator.adapters.dynamodb.connections import DynamoConnectionChanges, DynamoConnections
    from orchestrator.adapters.dynamodb.deliveries import DynamoDeliveries
    from orchestrator.adapters.dynamodb.event_changes import DynamoChanges
    from orchestrator.adapters.dynamodb.event_configuration_writes import DynamoConfigurationTable
    from orchestrator.adapters.dynamodb.event_epochs import DynamoEpochs
    from orchestrator.adapters.dynamodb.event_purges import DynamoEventCounts, DynamoPurges, DynamoRemains
    from orchestrator.adapters.dynamodb.event_reads import DynamoEventReads
    from orchestrator.adapters.dynamodb.event_tenant_queues import DynamoTenantQueues
    from orchestrator.adapters.dynamodb.event_usage_writes import DynamoUsageWrites
    from orchestrator.adapters.dynamodb.events import DynamoEventWrites
    from orchestrator.adapters.dynamodb.parked import DynamoParkedDeliveries
    from orchestrator.adapters.dynamodb.replays import DynamoReplays
    from orchestrator.adapters.event_access import StsEventAccess
    from orchestrator.adapters.event_contents import S3Contents
    from orchestrator.adapters.eventbridge import EventBridgeBus
    from orchestrator.adapters.handover import LambdaHandover
    from orchestrator.adapters.http_sender import HttpWebhooks
    from orchestrator.adapters.kms import KmsSecrets
    from orchestrator.adapters.queue_messages import SqsQueueMessages
    from orchestrator.adapters.ses import SesMails
    from orchestrator.adapters.settings import Settings
    from orchestrator.adapters.sqs import SqsParkedRecords
    from orchestrator.adapters.stepfunctions import StepFunctionsPurges
    from orchestrator.events.records import UnreadableRow


class AwsEventPorts:
    """Implements :class:`orchestrator.event_ports.EventPorts`."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.clock = SystemClock()
        self._unreadable: list[UnreadableRow] = []

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

    @cached_property
    def parked_deliveries(self) -> DynamoParkedDeliveries:
        from orchestrator.adapters.dynamodb.parked import DynamoParkedDeliveries

        return DynamoParkedDeliveries(self._dynamodb, self.settings.table, events_table=self.settings.events_table)

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

    # Sending

    @cached_property
    def webhooks(self) -> HttpWebhooks:
        from orchestrator.adapters.http_sender import HttpWebhooks

        return HttpWebhooks(self.settings.address_rules)

    @cached_property
    def tenant_queues(self) -> DynamoTenantQueues:
        from orchestrator.adapters.dynamodb.event_tenant_queues import DynamoTenantQueues

        return DynamoTenantQueues(self._dynamodb, self.settings.table)

    @cached_property
    def queue_messages(self) -> SqsQueueMessages:
        from orchestrator.adapters.queue_messages import SqsQueueMessages

        return SqsQueueMessages(lambda: client("sqs"))

    @cached_property
    def mails(self) -> SesMails:
        from orchestrator.adapters.ses import SesMails

        return SesMails(
            lambda: client("sesv2"),
            self.settings.mail_from,
            configuration_set=self.settings.mail_configuration_set,
        )

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

    # Berth's own events

    @cached_property
    def bus(self) -> EventBridgeBus:
        from orchestrator.adapters.eventbridge import EventBridgeBus

        return EventBridgeBus(lambda: client("events"), self.settings.own_events_bus, self.settings.control_plane)

    @cached_property
    def handover(self) -> LambdaHandover:
        from orchestrator.adapters.handover import LambdaHandover

        return LambdaHandover(lambda: client("lambda"), self.settings.publish_events_function)

    # Deliveries

    @cached_property
    def connections(self) -> DynamoConnections:
        from orchestrator.adapters.dynamodb.connections import DynamoConnections

        return DynamoConnections(self._dynamodb, self.settings.table, report=self._unreadable.append)

    @cached_property
    def connection_changes(self) -> DynamoConnectionChanges:
        from orchestrator.adapters.dynamodb.connections import DynamoConnectionChanges
        from orchestrator.events.changes import BERTH, Recorder

        return DynamoConnectionChanges(
            self._dynamodb,
            self.settings.table,
            events_table=self.settings.events_table,
            recorder=Recorder(BERTH, self.clock),
        )

    def take_unreadable(self) -> Sequence[UnreadableRow]:
        taken = list(self._unreadable)
        # The list itself stays: the adapters report into it.
        self._unreadable.clear()
        return taken

    @cached_property
    def deliveries(self) -> DynamoDeliveries:
        from orchestrator.adapters.dynamodb.deliveries import DynamoDeliveries

        return DynamoDeliveries(self._dynamodb, self.settings.events_table, report=self._unreadable.append)

    @property
    def listed_connections(self) -> DynamoConnections:
        return self.connections

    @property
    def connections_by_id(self) -> DynamoConfigurationTable:
        from orchestrator.events.changes import BERTH

        return self.configuration_table(BERTH)

    @cached_property
    def replays(self) -> DynamoReplays:
        from orchestrator.adapters.dynamodb.replays import DynamoReplays

        return DynamoReplays(self._dynamodb, self.settings.events_table)

    @cached_property
    def message_queue(self) -> SqsDeliveryQueues:
        from orchestrator.adapters.delivery_queues import SqsDeliveryQueues

        return SqsDeliveryQueues(
            lambda: client("sqs"), first=self.settings.first_queue, later=self.settings.later_queue
        )

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
