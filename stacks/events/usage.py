"""Count the accepted events of each tenant, from the stream of the table of events."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_events as event_rules
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_event_sources as event_sources
from constructs import Construct

from orchestrator.adapters.dynamodb.event_keys import EVENT_PREFIX, LISTED_SETTINGS
from orchestrator.adapters.dynamodb.own_event_stream import DELIVERIES_FILTER
from orchestrator.events.authorising import REMEMBERED_SECONDS
from orchestrator.tenants.credentials import Access
from stacks.common.alarms import PERIOD, Alarm
from stacks.common.capability import Capability
from stacks.common.dead_letters import DeadLetters, dead_letter_queue
from stacks.common.functions import BerthFunction, FunctionKit
from stacks.common.graphs import graph
from stacks.common.permissions import acknowledge, allow
from stacks.events.rows import CONFIGURATION_ROWS, EVENT_ROWS, LIFE_ROWS
from stacks.events.table import EventsTable

_COUNT_SECONDS = 30
_BILL_SECONDS = 300
_LATE_MILLISECONDS = 60_000
"""Usage is normally counted within 10 seconds. A tenant over its quota is refused only once its events are counted."""
_LATE_PERIODS = 2
_BATCH = 500
_WINDOW = Duration.seconds(REMEMBERED_SECONDS)
"""Functions that accept events read the count this often, so a count that is made more often only costs more."""
_BATCHES_AT_ONCE = 4
"""Per shard of the stream. Records of one partition stay in order, which counting does not need."""
_RETRIES = 10


class Usage(Capability):
    """``publish_events`` is the function that count_usage hands the deliveries to that failed for good."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        kit: FunctionKit,
        events: EventsTable,
        publish_events: BerthFunction,
    ) -> None:
        super().__init__(scope, construct_id)
        self._not_counted = dead_letter_queue(self, "NotCounted", encryption=kit.encryption)
        acknowledge(self._not_counted, "AwsSolutions-SQS3", "This is itself the dead-letter queue of a stream.")
        self._not_billed = dead_letter_queue(self, "NotBilled", encryption=kit.encryption)
        self._count_usage = BerthFunction(
            self,
            "CountUsage",
            kit=kit,
            name="count_usage",
            timeout_seconds=_COUNT_SECONDS,
            environment={
                "BERTH_PARKED_RECORDS_QUEUE": self._not_counted.queue_url,
                "BERTH_PUBLISH_EVENTS_FUNCTION": publish_events.function.function_name,
            },
        )
        role = self._count_usage.role
        kit.table.allow(role, "BatchGetItem", rows=CONFIGURATION_ROWS)
        kit.table.allow(role, "UpdateItem", rows=LIFE_ROWS)
        events.allow_consuming_stream(role)
        kit.encryption.allow_queues(role, Access.SEND)
        allow(role, ["lambda:InvokeFunction"], publish_events.arn)
        lambda_.EventSourceMapping(
            self,
            "Stream",
            target=self._count_usage.function,
            event_source_arn=events.stream_arn,
            starting_position=lambda_.StartingPosition.TRIM_HORIZON,
            filters=[
                lambda_.FilterCriteria.filter(
                    {
                        "eventName": lambda_.FilterRule.is_equal("INSERT"),
                        "dynamodb": {"Keys": {"pk": {"S": lambda_.FilterRule.begins_with(EVENT_PREFIX)}}},
                    }
                ),
                lambda_.FilterCriteria.filter(DELIVERIES_FILTER),
            ],
            batch_size=_BATCH,
            max_batching_window=_WINDOW,
            parallelization_factor=_BATCHES_AT_ONCE,
            # A batch that failed comes again whole, and not in halves: so its tenants' counters recognise it. The
            # function itself sets records apart that cannot be counted.
            bisect_batch_on_error=False,
            retry_attempts=_RETRIES,
            on_failure=event_sources.SqsDlq(self._not_counted),
        )
        # The function parks what it cannot count, in the queue that also takes what Lambda gives up.
        allow(role, ["sqs:SendMessage"], self._not_counted.queue_arn)
        self._bill_usage = self._make_bill_usage(kit, events)

    @property
    def functions(self) -> Sequence[BerthFunction]:
        return (self._count_usage, self._bill_usage)

    def _make_bill_usage(self, kit: FunctionKit, events: EventsTable) -> BerthFunction:
        function = BerthFunction(
            self,
            "BillUsage",
            kit=kit,
            name="bill_usage",
            timeout_seconds=_BILL_SECONDS,
            environment={"BERTH_EVENTS_TABLE": events.name},
            dead_letters=self._not_billed,
        )
        role = function.role
        kit.encryption.allow_queues(role, Access.SEND)
        kit.table.allow_index(role, LISTED_SETTINGS)
        kit.table.allow(role, "BatchGetItem", rows=CONFIGURATION_ROWS)
        kit.table.allow(role, "UpdateItem", rows=LIFE_ROWS)
        events.allow_counting(role, rows=EVENT_ROWS)
        event_rules.Rule(
            self,
            "Hourly",
            description="Counts the events of each tenant in the hours that are over.",
            schedule=event_rules.Schedule.rate(Duration.hours(1)),
            targets=[
                targets.LambdaFunction(
                    function.function,
                    dead_letter_queue=self._not_billed,
                    retry_attempts=2,
                    max_event_age=Duration.minutes(5),
                )
            ],
        )
        return function

    @property
    def dead_letters(self) -> Sequence[DeadLetters]:
        return (
            DeadLetters(
                self._not_counted,
                "events that were not counted",
                "UsageNotCounted",
                "The function count_usage could not count some events, so the monthly count of their tenants is too "
                "low. No event is lost, and bills are right. The messages have the keys of the events. Fix the cause, "
                "then purge the queue.",
            ),
            DeadLetters(
                self._not_billed,
                "counts for bills",
                "UsageNotBilled",
                "The function bill_usage did not run, or failed on every try. The next run, within the hour, counts "
                "the hours that are missing. Look at its log, then purge the queue.",
            ),
        )

    @property
    def alarms(self) -> Sequence[Alarm]:
        return (
            Alarm(
                "EventStreamLate",
                self._age(),
                "The function count_usage is more than a minute behind the stream of events, so tenants over their "
                "monthly quota are not refused yet. Records are kept for 24 hours. Look at the function's errors and "
                "throttles.",
                threshold=_LATE_MILLISECONDS,
                periods=_LATE_PERIODS,
            ),
        )

    @property
    def widgets(self) -> Sequence[cloudwatch.IWidget]:
        return (graph("Events: age of the stream", self._age(label="milliseconds")),)

    def _age(self, label: str | None = None) -> cloudwatch.Metric:
        return self._count_usage.function.metric("IteratorAge", period=PERIOD, statistic="Maximum", label=label)
