"""Publish Berth's own events on an EventBridge bus, from the streams of the tables."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_events as buses
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_event_sources as event_sources
from constructs import Construct

from orchestrator.adapters.dynamodb.own_event_stream import TENANTS_FILTERS
from orchestrator.tenants.credentials import Access
from stacks.common.alarms import PERIOD, Alarm
from stacks.common.capability import Capability, Output
from stacks.common.dead_letters import DeadLetters, dead_letter_queue
from stacks.common.functions import BerthFunction, FunctionKit
from stacks.common.graphs import graph
from stacks.common.permissions import allow, names_of

_SECONDS = 30
_LATE_MILLISECONDS = 300_000
_BATCH = 100
_WINDOW = Duration.seconds(1)
_RETRIES = 10_000
"""The most that Lambda allows: in the end the stream forgets a record, after 24 hours."""


class OwnEvents(Capability):
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        kit: FunctionKit,
    ) -> None:
        super().__init__(scope, construct_id)
        self._bus = buses.EventBus(
            self,
            "Bus",
            event_bus_name=names_of(self).own_events_bus,
            description="Berth's own events: tenants, rollouts, connections and deliveries that changed.",
        )
        self._not_published = dead_letter_queue(self, "NotPublished", encryption=kit.encryption)
        self.publish_events = BerthFunction(
            self,
            "PublishEvents",
            kit=kit,
            name="publish_events",
            timeout_seconds=_SECONDS,
            environment={
                "BERTH_OWN_EVENTS_BUS": self._bus.event_bus_name,
                "BERTH_PARKED_RECORDS_QUEUE": self._not_published.queue_url,
            },
            # For calls of count_usage. The stream's own failures go to the same queue.
            dead_letters=self._not_published,
        )
        role = self.publish_events.role
        kit.table.allow_consuming_stream(role)
        kit.encryption.allow_queues(role, Access.SEND)
        allow(role, ["events:PutEvents"], self._bus.event_bus_arn)
        lambda_.EventSourceMapping(
            self,
            "Stream",
            target=self.publish_events.function,
            event_source_arn=kit.table.stream_arn,
            starting_position=lambda_.StartingPosition.TRIM_HORIZON,
            filters=[lambda_.FilterCriteria.filter(each) for each in TENANTS_FILTERS],
            batch_size=_BATCH,
            max_batching_window=_WINDOW,
            # The function parks what can never be published. So a batch that fails will succeed later, and events that
            # come again have the same ids.
            bisect_batch_on_error=True,
            retry_attempts=_RETRIES,
            on_failure=event_sources.SqsDlq(self._not_published),
        )

    @property
    def functions(self) -> Sequence[BerthFunction]:
        return (self.publish_events,)

    @property
    def outputs(self) -> Sequence[Output]:
        return (Output("OwnEventsBusArn", self._bus.event_bus_arn),)

    @property
    def dead_letters(self) -> Sequence[DeadLetters]:
        return (
            DeadLetters(
                self._not_published,
                "Berth's own events",
                "OwnEventsNotPublished",
                "Some of Berth's own events did not reach the bus, so systems that react to them do not know of these "
                "changes. The messages have the events, or the keys of the rows. Fix the cause and publish them again.",
            ),
        )

    @property
    def alarms(self) -> Sequence[Alarm]:
        return (
            Alarm(
                "OwnEventsLate",
                self._age(),
                "The function publish_events is more than 5 minutes behind the stream of tenants, so Berth's own "
                "events come late. Records are kept for 24 hours. Look at the function's errors and throttles.",
                threshold=_LATE_MILLISECONDS,
            ),
        )

    @property
    def widgets(self) -> Sequence[cloudwatch.IWidget]:
        return (graph("Berth's own events: age of the stream", self._age(label="milliseconds")),)

    def _age(self, label: str | None = None) -> cloudwatch.Metric:
        return self.publish_events.function.metric("IteratorAge", period=PERIOD, statistic="Maximum", label=label)
