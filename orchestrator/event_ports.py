"""Everything that the use cases of the event plane need from outside. Its composition root builds them from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import timedelta

    from orchestrator.common.times import Clock
    from orchestrator.events.access import EventAccess
    from orchestrator.events.delivery.addresses import AddressRules
    from orchestrator.events.delivery.ports import (
        ConnectionChanges,
        Connections,
        ConnectionsById,
        DeliveryTable,
        ListedConnections,
        Mails,
        MessageQueue,
        QueueMessages,
        TenantQueues,
        Webhooks,
    )
    from orchestrator.events.delivery.replays import Replays
    from orchestrator.events.ports import (
        Acknowledgements,
        BilledUsage,
        Configuration,
        ConfigurationTable,
        Contents,
        EventCounts,
        EventReads,
        EventWrites,
        KeyUse,
        ListedSettings,
        ParkedDeliveries,
        ParkedRecords,
        PurgeExecutions,
        Purges,
        RecordedChanges,
        Remains,
        Secrets,
        Tenants,
        Usage,
        UsageCounts,
    )
    from orchestrator.events.records import UnreadableRow
    from orchestrator.own_events.ports import Bus, Handover


class EventSettings(Protocol):
    """The settings that use cases and functions read. A function has only those that it needs."""

    @property
    def api_proof_digest(self) -> str | None: ...

    @property
    def events_environment(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def purge_settle(self) -> timedelta: ...

    @property
    def control_plane(self) -> str: ...

    @property
    def address_rules(self) -> AddressRules: ...

    @property
    def mail_from(self) -> str | None: ...


class EventPorts(Protocol):
    """Everything that the use cases need from outside. ``adapters/event_ports.py`` has it on AWS."""

    @property
    def settings(self) -> EventSettings: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def monotonic(self) -> Callable[[], float]:
        """Seconds that only ever grow."""

    @property
    def tenants(self) -> Tenants: ...

    @property
    def configuration(self) -> Configuration: ...

    def configuration_table(self, by: str) -> ConfigurationTable:
        """The table, as this caller changes it."""

    @property
    def recorded_changes(self) -> RecordedChanges: ...

    @property
    def key_use(self) -> KeyUse: ...

    @property
    def usage(self) -> Usage: ...

    @property
    def secrets(self) -> Secrets: ...

    @property
    def event_writes(self) -> EventWrites: ...

    @property
    def event_reads(self) -> EventReads: ...

    @property
    def parked_deliveries(self) -> ParkedDeliveries: ...

    @property
    def acknowledgements(self) -> Acknowledgements: ...

    @property
    def contents(self) -> Contents: ...

    @property
    def webhooks(self) -> Webhooks: ...

    @property
    def tenant_queues(self) -> TenantQueues: ...

    @property
    def queue_messages(self) -> QueueMessages: ...

    @property
    def mails(self) -> Mails: ...

    @property
    def listed_settings(self) -> ListedSettings: ...

    @property
    def usage_counts(self) -> UsageCounts: ...

    @property
    def billed_usage(self) -> BilledUsage: ...

    @property
    def event_counts(self) -> EventCounts: ...

    @property
    def parked_records(self) -> ParkedRecords: ...

    @property
    def bus(self) -> Bus: ...

    @property
    def handover(self) -> Handover: ...

    @property
    def connections(self) -> Connections: ...

    @property
    def connection_changes(self) -> ConnectionChanges: ...

    @property
    def connections_by_id(self) -> ConnectionsById: ...

    @property
    def listed_connections(self) -> ListedConnections: ...

    @property
    def deliveries(self) -> DeliveryTable: ...

    @property
    def replays(self) -> Replays: ...

    @property
    def message_queue(self) -> MessageQueue: ...

    def take_unreadable(self) -> Sequence[UnreadableRow]:
        """Rows of connections that could not be read since this was last asked."""

    @property
    def purges(self) -> Purges: ...

    @property
    def remains(self) -> Remains: ...

    @property
    def purge_executions(self) -> PurgeExecutions: ...

    @property
    def access(self) -> EventAccess | None:
        """``None`` where temporary credentials are not switched on."""
