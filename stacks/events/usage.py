"""Count the accepted events of each tenant, from the stream of the table of events."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_event_sources as event_sources
from constructs import Construct

from orchestrator.adapters.dynamodb.event_keys import EVENT_PREFIX
from orchestrator.tenants.credentials import Access
from stacks.common.alarms import PERIOD, Alarm
from stacks.common.capability import Capability
from stacks.common.dead_letters import DeadLetters, dead_letter_queue
from stacks.common.functions import BerthFunction, FunctionKit
from stacks.common.graphs import graph
from stacks.common.permissions import acknowledge
from stacks.events.rows import CONFIGURATION_ROWS
from stacks.events.table import EventsTable

_COUNT_SECONDS = 30
_LATE_MILLISECONDS = 60_000
"""Usage is normally counted within seconds. A tenant over its quota is refused only once its events are counted."""
_LATE_PERIODS = 2
_BATCH = 500
_BATCHES_AT_ONCE = 4
"""Per shard of the stream. Records of one partition stay in order, which counting does not need."""
_RETRIES = 10


class Usage(Capability):
    def __init__(self, scope: Construct, construct_id: str, *, kit: FunctionKit, events: EventsTable) -> None:
        super().__init__(scope, construct_id)
        self._not_counted = dead_letter_queue(self, "NotCounted", encryption=kit.encryption)
        acknowledge(self._not_counted, "AwsSolutions-SQS3", "This is itself the dead-letter queue of a stream.")
        self._count_usage = BerthFunction(
            self,
            "CountUsage",
            kit=kit,
            name="count_usage",
            timeout_seconds=_COUNT_SECONDS,
        )
        role = self._count_usage.role
        kit.table.allow(role, "UpdateItem", rows=CONFIGURATION_ROWS)
        events.allow_consuming_stream(role)
        kit.encryption.allow_queues(role, Access.SEND)
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
                )
            ],
            batch_size=_BATCH,
            max_batching_window=Duration.seconds(1),
            parallelization_factor=_BATCHES_AT_ONCE,
            # A batch that fails is halved until the record that cannot be counted is alone.
            bisect_batch_on_error=True,
            retry_attempts=_RETRIES,
            on_failure=event_sources.SqsDlq(self._not_counted),
        )

    @property
    def functions(self) -> Sequence[BerthFunction]:
        return (self._count_usage,)

    @property
    def dead_letters(self) -> Sequence[DeadLetters]:
        return (
            DeadLetters(
                self._not_counted,
                "events that were not counted",
                "UsageNotCounted",
                "The function count_usage failed on some events on every try, so the usage of their tenants is too "
                "low. No event is lost. Look at its log, fix the cause, then purge the queue.",
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
