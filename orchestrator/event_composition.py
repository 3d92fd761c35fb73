"""The composition root of the event plane: builds its use cases from ports.

It is separate from :mod:`orchestrator.composition`, because the event plane knows one thing of provisioning, whether a
tenant is alive, and because its functions must start fast.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.common.callers import ApiGateway
    from orchestrator.event_ports import EventPorts
    from orchestrator.events.accepting import Accepting
    from orchestrator.events.authorising import Authorising
    from orchestrator.events.changes import ListingChanges
    from orchestrator.events.configuring import Configuring
    from orchestrator.events.configuring_connections import ConfiguringConnections
    from orchestrator.events.configuring_forms import ConfiguringForms
    from orchestrator.events.configuring_keys import ConfiguringKeys
    from orchestrator.events.configuring_sources import ConfiguringSources
    from orchestrator.events.delivery.bounces import ProcessingBounces
    from orchestrator.events.delivery.delivering import Delivering
    from orchestrator.events.delivery.dispatching import Dispatching
    from orchestrator.events.delivery.history import DeliveryHistory
    from orchestrator.events.delivery.recovering import Recovering
    from orchestrator.events.delivery.redispatching import Redispatching
    from orchestrator.events.delivery.replaying import Replaying
    from orchestrator.events.delivery.replays import ManagingReplays
    from orchestrator.events.delivery.resending import Resending
    from orchestrator.events.delivery.sending import Sending
    from orchestrator.events.delivery.sweeping import Looks, Sweeping
    from orchestrator.events.delivery.troubles import ListingTroubles
    from orchestrator.events.inbox import Inbox
    from orchestrator.events.listing import Listing
    from orchestrator.events.purging import FindingPurges, ListingPurges, Purging
    from orchestrator.events.rates import Rates, RequestQuotas
    from orchestrator.events.receiving import Receiving
    from orchestrator.events.sending_tests import SendingTests
    from orchestrator.events.unfinished import CountingUnfinished
    from orchestrator.events.usage import Billing, Counting, ReportingUsage
    from orchestrator.events.zapier_samples import SamplingEvents


class EventUseCases:
    """Each use case is built when it is first asked for. Those that remember what they have read are kept.

    Each module is imported when it is first needed, because a function's cold start should load only what it uses.
    """

    def __init__(self, ports: EventPorts) -> None:
        self.ports = ports

    @property
    def api_gateway(self) -> ApiGateway:
        from orchestrator.common.callers import ApiGateway

        return ApiGateway(self.ports.settings.api_proof_digest)

    @cached_property
    def authorising(self) -> Authorising:
        from orchestrator.events.authorising import Authorising

        ports = self.ports
        return Authorising(
            configuration=ports.configuration,
            tenants=ports.tenants,
            usage=ports.usage,
            key_use=ports.key_use,
            clock=ports.clock,
            monotonic=ports.monotonic,
        )

    @cached_property
    def accepting(self) -> Accepting:
        from orchestrator.events.accepting import Accepting
        from orchestrator.events.quotas import Quotas

        ports = self.ports
        return Accepting(
            events=ports.event_writes,
            contents=ports.contents,
            quotas=Quotas(monotonic=ports.monotonic),
            clock=ports.clock,
        )

    @cached_property
    def request_quotas(self) -> RequestQuotas:
        from orchestrator.events.rates import RequestQuotas

        return RequestQuotas(monotonic=self.ports.monotonic)

    @property
    def listing(self) -> Listing:
        from orchestrator.events.listing import Listing

        return Listing(events=self.ports.event_reads, contents=self.ports.contents, clock=self.ports.clock)

    @property
    def inbox(self) -> Inbox:
        from orchestrator.events.inbox import Inbox

        ports = self.ports
        return Inbox(
            events=ports.event_reads, acknowledgements=ports.acknowledgements, listing=self.listing, clock=ports.clock
        )

    @cached_property
    def receiving(self) -> Receiving:
        from orchestrator.events.forms import FormQuotas
        from orchestrator.events.receiving import Receiving

        ports = self.ports
        return Receiving(
            authorising=self.authorising,
            accepting=self.accepting,
            secrets=lambda: ports.secrets,
            form_quotas=FormQuotas(monotonic=ports.monotonic),
            clock=ports.clock,
        )

    @cached_property
    def sending(self) -> Sending:
        from orchestrator.events.delivery.queue_addresses import QueueAddresses
        from orchestrator.events.delivery.sending import Sending

        ports = self.ports
        return Sending(
            webhooks=ports.webhooks,
            queue_addresses=QueueAddresses(
                configuration=ports.configuration,
                queues=ports.tenant_queues,
                clock=ports.clock,
                monotonic=ports.monotonic,
            ),
            queue_messages=ports.queue_messages,
            mails=ports.mails,
            contents=ports.contents,
            secrets=ports.secrets,
            monotonic=ports.monotonic,
            version=ports.settings.version,
        )

    # Configuration. ``by`` is who asks: an operator's ARN, or the id of an API key.

    def configuring(self, by: str) -> Configuring:
        from orchestrator.events.configuring import Configuring

        ports = self.ports
        return Configuring(table=ports.configuration_table(by), tenants=ports.tenants, clock=ports.clock)

    def configuring_keys(self, by: str) -> ConfiguringKeys:
        from orchestrator.events.configuring_keys import ConfiguringKeys

        ports = self.ports
        return ConfiguringKeys(
            table=ports.configuration_table(by), clock=ports.clock, environment=ports.settings.events_environment
        )

    def configuring_sources(self, by: str) -> ConfiguringSources:
        from orchestrator.events.configuring_sources import ConfiguringSources

        ports = self.ports
        return ConfiguringSources(table=ports.configuration_table(by), secrets=lambda: ports.secrets, clock=ports.clock)

    def configuring_forms(self, by: str) -> ConfiguringForms:
        from orchestrator.events.configuring_forms import ConfiguringForms

        return ConfiguringForms(table=self.ports.configuration_table(by), clock=self.ports.clock)

    def configuring_connections(self, by: str) -> ConfiguringConnections:
        from orchestrator.events.configuring_connections import ConfiguringConnections, DestinationRules
        from orchestrator.events.resource_ids import IdPrefix, is_resource_id

        ports = self.ports
        rules = DestinationRules(
            addresses=ports.settings.address_rules,
            sends_mail=ports.settings.mail_from is not None,
            by_operator=not is_resource_id(IdPrefix.KEY, by),
        )
        return ConfiguringConnections(
            table=ports.configuration_table(by), secrets=lambda: ports.secrets, rules=rules, clock=ports.clock
        )

    @cached_property
    def _test_rates(self) -> Rates:
        from orchestrator.events.rates import Rates

        return Rates(monotonic=self.ports.monotonic)

    def sending_tests(self, by: str) -> SendingTests:
        from orchestrator.events.sending_tests import SendingTests

        return SendingTests(
            connections=self.configuring_connections(by),
            accepting=self.accepting,
            rates=self._test_rates,
            clock=self.ports.clock,
        )

    @property
    def sampling_events(self) -> SamplingEvents:
        from orchestrator.events.zapier_samples import SamplingEvents

        return SamplingEvents(listing=self.listing)

    @property
    def listing_changes(self) -> ListingChanges:
        from orchestrator.events.changes import ListingChanges

        return ListingChanges(changes=self.ports.recorded_changes)

    # Deliveries

    @cached_property
    def dispatching(self) -> Dispatching:
        from orchestrator.events.delivery.dispatching import Dispatching

        ports, listing = self.ports, self.listing
        return Dispatching(
            table=ports.deliveries,
            connections=ports.connections,
            queue=ports.message_queue,
            content_of=lambda event: listing.with_content(event).content,
            clock=ports.clock,
        )

    @cached_property
    def delivering(self) -> Delivering:
        import random
        import time

        from orchestrator.events.delivery.delivering import Delivering

        ports = self.ports
        return Delivering(
            table=ports.deliveries,
            connections=ports.connections,
            changes=ports.connection_changes,
            sender=self.sending,
            queue=ports.message_queue,
            clock=ports.clock,
            monotonic=ports.monotonic,
            draw=random.random,
            pause=time.sleep,
        )

    @property
    def sweeping(self) -> Sweeping:
        from orchestrator.events.delivery.sweeping import Sweeping

        ports = self.ports
        return Sweeping(
            table=ports.deliveries,
            connections=ports.connections,
            changes=ports.connection_changes,
            dispatching=self.dispatching,
            queue=ports.message_queue,
            clock=ports.clock,
            looks=self._looks,
        )

    @cached_property
    def _looks(self) -> Looks:
        from orchestrator.events.delivery.sweeping import Looks

        return Looks()

    @property
    def processing_bounces(self) -> ProcessingBounces:
        from orchestrator.events.delivery.bounces import ProcessingBounces

        ports = self.ports
        return ProcessingBounces(connections=ports.connections, changes=ports.connection_changes, clock=ports.clock)

    @property
    def recovering(self) -> Recovering:
        from orchestrator.events.delivery.recovering import Recovering

        return Recovering(table=self.ports.deliveries, clock=self.ports.clock)

    @property
    def redispatching(self) -> Redispatching:
        from orchestrator.events.delivery.redispatching import Redispatching

        ports = self.ports
        return Redispatching(
            settings=ports.listed_settings,
            table=ports.deliveries,
            dispatching=self.dispatching,
            clock=ports.clock,
        )

    # Showing deliveries, and requesting others

    @property
    def delivery_history(self) -> DeliveryHistory:
        from orchestrator.events.delivery.history import DeliveryHistory

        ports = self.ports
        return DeliveryHistory(
            table=ports.deliveries,
            connections=ports.connections_by_id,
            origins=ports.connections,
            clock=ports.clock,
        )

    @property
    def resending(self) -> Resending:
        from orchestrator.events.delivery.resending import Resending

        ports = self.ports
        return Resending(
            table=ports.deliveries,
            connections=ports.connections_by_id,
            queue=ports.message_queue,
            clock=ports.clock,
        )

    @property
    def managing_replays(self) -> ManagingReplays:
        from orchestrator.events.delivery.replays import ManagingReplays

        ports = self.ports
        return ManagingReplays(
            replays=ports.replays,
            connections=ports.connections_by_id,
            origins=ports.connections,
            clock=ports.clock,
        )

    @property
    def replaying(self) -> Replaying:
        from orchestrator.events.delivery.replaying import Replaying

        ports = self.ports
        return Replaying(
            replays=ports.replays,
            table=ports.deliveries,
            connections=ports.connections,
            dispatching=self.dispatching,
            queue=ports.message_queue,
            clock=ports.clock,
        )

    # Usage

    @property
    def counting(self) -> Counting:
        from orchestrator.events.usage import Counting

        ports = self.ports
        return Counting(settings=ports.listed_settings, counts=ports.usage_counts, clock=ports.clock)

    def billing(self, *, has_time: Callable[[], bool]) -> Billing:
        from orchestrator.events.usage import Billing

        ports = self.ports
        return Billing(
            settings=ports.listed_settings,
            events=ports.event_counts,
            usage=ports.billed_usage,
            clock=ports.clock,
            has_time=has_time,
        )

    @property
    def reporting_usage(self) -> ReportingUsage:
        from orchestrator.events.usage import ReportingUsage

        return ReportingUsage(usage=self.ports.usage, billed=self.ports.billed_usage, clock=self.ports.clock)

    # The end of a tenant

    @property
    def counting_unfinished(self) -> CountingUnfinished:
        from orchestrator.events.unfinished import CountingUnfinished

        ports = self.ports
        return CountingUnfinished(
            tenants=ports.tenants,
            configuration=ports.configuration,
            events=ports.event_reads,
            parked=ports.parked_deliveries,
            clock=ports.clock,
        )

    @property
    def finding_purges(self) -> FindingPurges:
        from orchestrator.events.purging import FindingPurges

        ports = self.ports
        return FindingPurges(
            tenants=ports.tenants,
            configuration=ports.configuration,
            settings=ports.listed_settings,
            purges=ports.purges,
            executions=ports.purge_executions,
            clock=ports.clock,
        )

    def purging(self, *, has_time: Callable[[], bool]) -> Purging:
        from orchestrator.events.purging import Purging

        ports = self.ports
        return Purging(
            configuration=ports.configuration,
            purges=ports.purges,
            remains=ports.remains,
            clock=ports.clock,
            settle=ports.settings.purge_settle,
            has_time=has_time,
        )

    @property
    def listing_troubles(self) -> ListingTroubles:
        from orchestrator.events.delivery.troubles import ListingTroubles

        return ListingTroubles(connections=self.ports.listed_connections)

    @property
    def listing_purges(self) -> ListingPurges:
        from orchestrator.events.purging import ListingPurges

        return ListingPurges(purges=self.ports.purges)
