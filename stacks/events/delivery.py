"""Deliver events to the connections of their tenants: dispatch from the stream, two queues, the sweep, recovery.

Rows are the truth and messages are hints. So every way in which a message or a record can be lost ends in
a function that finds the delivery again, and only what that function cannot do is left for an operator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_events as event_rules
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_event_sources as event_sources
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from orchestrator.adapters.dynamodb.event_keys import EVENT_PREFIX, LISTED_CARE, LISTED_SETTINGS, STATUS_INDEX
from orchestrator.tenants.credentials import Access
from stacks.common.alarms import PERIOD, Alarm, counted_by_all
from stacks.common.capability import Capability, Output
from stacks.common.dead_letters import DeadLetters, dead_letter_queue
from stacks.common.encryption import Encryption
from stacks.common.functions import BerthFunction, FunctionKit
from stacks.common.graphs import graph
from stacks.common.permissions import allow, allow_on_tenant_queues
from stacks.common.table import TENANT_ROWS
from stacks.events.connections import allow_changing_connections
from stacks.events.contents import Contents
from stacks.events.mail import Mail
from stacks.events.rows import (
    CONFIGURATION_ROWS,
    CONNECTION_ROWS,
    DELIVERY_ROWS,
    DUE_INDEX_ROWS,
    EVENT_ROWS,
    LIFE_ROWS,
    PARKED_INDEX_ROWS,
    QUEUE_ATTRIBUTES,
    REPLAY_INDEX_ROWS,
    REPLAY_ROWS,
)
from stacks.events.secrets_key import SecretsKey
from stacks.events.table import EventsTable
from stacks.settings import Settings

_DISPATCH_SECONDS = 30
_DELIVER_SECONDS = 60
_SWEEP_SECONDS = 55
"""Shorter than the time between two sweeps, so that they hardly ever overlap. Overlapping does no harm."""
_RECOVER_SECONDS = 30
_REDISPATCH_SECONDS = 300

_VISIBILITY = 6
"""How many times the timeout of its function a message stays hidden, as Lambda advises: it needs time to retry."""
_MAX_RECEIVES = 5
_KEPT = Duration.days(14)
"""The maximum of SQS."""

_DISPATCH_BATCH = 100
_DISPATCH_BATCHES_AT_ONCE = 4
_DISPATCH_RETRIES = 50
"""Dispatch fails only if DynamoDB does. With growing pauses, this many retries last for most of an hour."""
_DELIVER_BATCH = 10
_DELIVER_AT_ONCE = 50
"""Invocations of deliver_events at once, if no concurrency is reserved. Each tries up to ten deliveries at once."""
_MIN_AT_ONCE = 2
"""The minimum of Lambda."""

_LATE_MILLISECONDS = 60_000
_LATE_SECONDS = 300
_LATE_PERIODS = 2
_SWEEP_PERIODS = 2


class _Queues(Construct):
    """The queues of deliveries, and where their messages go that could not be processed."""

    def __init__(self, scope: Construct, construct_id: str, *, encryption: Encryption) -> None:
        super().__init__(scope, construct_id)
        self._encryption = encryption
        self.not_recovered = dead_letter_queue(self, "NotRecovered", encryption=encryption)
        self.not_redispatched = dead_letter_queue(self, "NotRedispatched", encryption=encryption)
        self.lost = self._queue("Lost", seconds=_RECOVER_SECONDS, dead_letters=self.not_recovered)
        self.not_dispatched = self._queue(
            "NotDispatched", seconds=_REDISPATCH_SECONDS, dead_letters=self.not_redispatched
        )
        self.first = self._queue("First", seconds=_DELIVER_SECONDS, dead_letters=self.lost)
        self.later = self._queue("Later", seconds=_DELIVER_SECONDS, dead_letters=self.lost)

    def _queue(self, name: str, *, seconds: int, dead_letters: sqs.Queue) -> sqs.Queue:
        return self._encryption.queue(
            self,
            name,
            visibility_timeout=Duration.seconds(_VISIBILITY * seconds),
            retention_period=_KEPT,
            dead_letter_queue=sqs.DeadLetterQueue(queue=dead_letters, max_receive_count=_MAX_RECEIVES),
        )

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables of a function that sends messages about deliveries."""
        return {"BERTH_FIRST_QUEUE": self.first.queue_url, "BERTH_LATER_QUEUE": self.later.queue_url}

    def allow_sending(self, role: iam.Role, *queues: sqs.Queue) -> None:
        allow(role, ["sqs:SendMessage"], *(each.queue_arn for each in queues))
        self._encryption.allow_queues(role, Access.SEND)

    def feed(self, function: BerthFunction, queue: sqs.Queue, *, batch: int, at_once: int) -> None:
        """Have Lambda call the function with messages of the queue."""
        self._encryption.allow_queues(function.role, Access.RECEIVE)
        self._encryption.allow_queues_with_former_keys(function.role, Access.RECEIVE)
        function.function.add_event_source(
            event_sources.SqsEventSource(
                queue, batch_size=batch, max_concurrency=at_once, report_batch_item_failures=True
            )
        )


class Delivery(Capability):
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        kit: FunctionKit,
        events: EventsTable,
        contents: Contents,
        secrets: SecretsKey,
        mail: Mail | None,
        settings: Settings,
    ) -> None:
        super().__init__(scope, construct_id)
        self._kit = kit
        self._events = events
        self._contents = contents
        self._secrets = secrets
        self._mail = mail
        self._settings = settings
        self._queues = _Queues(self, "Queues", encryption=kit.encryption)
        self._dispatch_events = self._make_dispatch_events()
        self.deliver_events = self._make_deliver_events()
        self._sweep_deliveries = self._make_sweep_deliveries()
        self._recover_deliveries = self._make_recover_deliveries()
        self._redispatch_events = self._make_redispatch_events()

    @property
    def functions(self) -> Sequence[BerthFunction]:
        return (
            self._dispatch_events,
            self.deliver_events,
            self._sweep_deliveries,
            self._recover_deliveries,
            self._redispatch_events,
        )

    @property
    def dead_letters(self) -> Sequence[DeadLetters]:
        return (
            DeadLetters(
                self._queues.not_recovered,
                "deliveries that could not be recovered",
                "DeliveriesNotRecovered",
                "Messages about deliveries were lost, and the function recover_deliveries could not make up for them. "
                "Some events may wait until the nightly redispatch. The messages name the tenants and the events. Look "
                "at the log of recover_deliveries, fix the cause, then start a redrive of the queue.",
            ),
            DeadLetters(
                self._queues.not_redispatched,
                "redispatches of events",
                "EventsNotRedispatched",
                "The function redispatch_events did not run, or failed on every try, so events that were not "
                "dispatched may wait until the next night. Look at its log, fix the cause, then invoke it with an "
                "empty event, and purge the queue.",
            ),
        )

    @property
    def alarms(self) -> Sequence[Alarm]:
        return (
            Alarm(
                "DispatchLate",
                self._dispatch_age(),
                "The function dispatch_events is more than a minute behind the stream of events, so deliveries are "
                "late. Records are kept for 24 hours. Look at the function's errors and throttles, and at the status "
                "of DynamoDB and SQS.",
                threshold=_LATE_MILLISECONDS,
                periods=_LATE_PERIODS,
            ),
            Alarm(
                "DeliveriesLate",
                self._oldest(self._queues.first),
                "First deliveries to healthy connections have waited for more than five minutes. Slow and failing "
                "receivers have a queue of their own, so the cause is ours: look at the errors and throttles of "
                "deliver_events, and raise berth:deliverConcurrency if it is at its limit.",
                threshold=_LATE_SECONDS,
                periods=_LATE_PERIODS,
            ),
            Alarm(
                "SweepNotRunning",
                self._sweep_deliveries.function.metric_invocations(period=PERIOD),
                "The function sweep_deliveries was not called for ten minutes. Retries that wait for more than 15 "
                "minutes, and deliveries whose message was lost, do not go out. None is lost: the next run sends what "
                "is due. Look at the rule that calls the function every minute, and at its throttles.",
                periods=_SWEEP_PERIODS,
                is_heartbeat=True,
            ),
            Alarm(
                "DeliveryErrors",
                self.deliver_events.counted("Errors", statistic="Sum", period=PERIOD),
                "The function deliver_events failed on a message by an error of ours, and not of a receiver. The "
                "message comes again after six minutes. The function's log, level ERROR, has the tenant, the event and "
                "the stack trace.",
            ),
            Alarm(
                "RedispatchCutShort",
                self._redispatch_events.counted("RedispatchesCutShort", statistic="Sum", period=PERIOD),
                "The function redispatch_events had too little time to look at the events of all tenants. Events that "
                "were not dispatched may wait for another night. Invoke the function again with an empty event.",
            ),
            Alarm(
                "UnreadableRows",
                counted_by_all(self, "UnreadableRows"),
                "A row of an event, of a connection, or of a tenant's event settings, bills or purge cannot be read: "
                "somebody other than Berth has changed it. This connection or tenant waits, and all others go on. The "
                "logs of the event plane's functions, level ERROR, have the keys of the row.",
            ),
            Alarm(
                "DeliveriesLost",
                self._recover_deliveries.counted("DeliveriesLost", statistic="Sum", period=PERIOD),
                "Messages about deliveries came to the dead-letter queue, because deliver_events failed on them "
                "several times. Each delivery is tried again by its row, and is failed after three such losses. The "
                "logs of deliver_events and recover_deliveries name the tenants and the errors.",
            ),
        )

    @property
    def widgets(self) -> Sequence[cloudwatch.IWidget]:
        queues, deliver = self._queues, self.deliver_events
        return (
            graph(
                "Deliveries: tries",
                deliver.counted("Delivered", statistic="Sum", label="delivered"),
                deliver.counted("TriesFailed", statistic="Sum", label="failed at the receiver"),
            ),
            graph(
                "Deliveries: oldest message",
                self._oldest(queues.first, label="first tries"),
                self._oldest(queues.later, label="retries and slow receivers"),
            ),
            graph(
                "Deliveries: messages in the queues",
                queues.first.metric_approximate_number_of_messages_visible(label="first tries"),
                queues.later.metric_approximate_number_of_messages_visible(label="retries and slow receivers"),
            ),
            graph("Deliveries: age of the stream", self._dispatch_age(label="milliseconds")),
        )

    @property
    def outputs(self) -> Sequence[Output]:
        return (
            Output("DeliverEventsFunctionName", self.deliver_events.function.function_name),
            Output("FirstQueueUrl", self._queues.first.queue_url),
            Output("LaterQueueUrl", self._queues.later.queue_url),
        )

    def never_deliver_to(self, host: str) -> None:
        """A delivery to Berth's own API would come in as an event again."""
        self.deliver_events.function.add_environment("BERTH_OWN_HOSTS", host)

    def _dispatch_age(self, label: str | None = None) -> cloudwatch.Metric:
        return self._dispatch_events.function.metric("IteratorAge", period=PERIOD, statistic="Maximum", label=label)

    def _oldest(self, queue: sqs.Queue, label: str | None = None) -> cloudwatch.Metric:
        return queue.metric_approximate_age_of_oldest_message(period=PERIOD, statistic="Maximum", label=label)

    # The functions

    def _make_dispatch_events(self) -> BerthFunction:
        """Sends a message for each connection that wants a new event."""
        function = self._function(
            "DispatchEvents",
            "dispatch_events",
            timeout_seconds=_DISPATCH_SECONDS,
            environment=self._environment_of_dispatchers,
        )
        role = function.role
        self._allow_dispatching(role)
        self._events.allow_consuming_stream(role)
        self._kit.encryption.allow_queues(role, Access.SEND)
        lambda_.EventSourceMapping(
            self,
            "Stream",
            target=function.function,
            event_source_arn=self._events.stream_arn,
            starting_position=lambda_.StartingPosition.TRIM_HORIZON,
            filters=[
                lambda_.FilterCriteria.filter(
                    {
                        "eventName": lambda_.FilterRule.is_equal("INSERT"),
                        "dynamodb": {"Keys": {"pk": {"S": lambda_.FilterRule.begins_with(EVENT_PREFIX)}}},
                    }
                )
            ],
            batch_size=_DISPATCH_BATCH,
            parallelization_factor=_DISPATCH_BATCHES_AT_ONCE,
            bisect_batch_on_error=True,
            retry_attempts=_DISPATCH_RETRIES,
            on_failure=event_sources.SqsDlq(self._queues.not_dispatched),
        )
        return function

    def _make_deliver_events(self) -> BerthFunction:
        """Tries deliveries, several at once."""
        at_once = self._settings.deliver_concurrency
        function = self._function(
            "DeliverEvents",
            "deliver_events",
            timeout_seconds=_DELIVER_SECONDS,
            reserved_concurrency=at_once,
            environment={
                **self._environment_of_dispatchers,
                **self._secrets.environment,
                **self._settings.destination_environment,
                **(self._mail.environment if self._mail else {}),
            },
        )
        role = function.role
        self._allow_changing_deliveries(role)
        allow_changing_connections(role, table=self._kit.table, events=self._events)
        self._allow_sending_to_receivers(role)
        self._queues.allow_sending(role, self._queues.first, self._queues.later)
        first, later = _shared(at_once or _DELIVER_AT_ONCE)
        self._queues.feed(function, self._queues.first, batch=_DELIVER_BATCH, at_once=first)
        self._queues.feed(function, self._queues.later, batch=_DELIVER_BATCH, at_once=later)
        return function

    def _make_sweep_deliveries(self) -> BerthFunction:
        """Sends messages for what is due, and for what is parked at connections that work again."""
        function = self._function(
            "SweepDeliveries",
            "sweep_deliveries",
            timeout_seconds=_SWEEP_SECONDS,
            # An account without room for the deliverers' reservation has none for this one either.
            reserved_concurrency=1 if self._settings.deliver_concurrency else None,
            environment=self._environment_of_dispatchers,
        )
        role = function.role
        self._allow_dispatching(role)
        self._allow_changing_deliveries(role)
        self._events.allow(role, "BatchGetItem", rows=DELIVERY_ROWS)
        allow_changing_connections(role, table=self._kit.table, events=self._events)
        self._kit.table.allow_index(role, LISTED_CARE)
        self._kit.table.allow(role, "BatchGetItem", rows=CONNECTION_ROWS)
        # The row of a deleted connection, and the pointer to it.
        self._kit.table.allow(role, "DeleteItem", rows=[*CONNECTION_ROWS, LIFE_ROWS])
        # Replays look through the events of a time.
        self._events.allow(role, "Query", rows=EVENT_ROWS)
        self._events.allow(role, "BatchGetItem", "PutItem", rows=REPLAY_ROWS)
        self._events.allow_index(role, STATUS_INDEX, rows=[DUE_INDEX_ROWS, PARKED_INDEX_ROWS, REPLAY_INDEX_ROWS])
        event_rules.Rule(
            self,
            "EveryMinute",
            description="Sends the deliveries that are due.",
            schedule=event_rules.Schedule.rate(Duration.minutes(1)),
            targets=[
                # No retries and no dead letters: the next run does all that this one did not.
                targets.LambdaFunction(function.function, retry_attempts=0, max_event_age=Duration.minutes(1))
            ],
        )
        return function

    def _make_recover_deliveries(self) -> BerthFunction:
        """Gives each delivery whose message was lost a due time."""
        function = self._function("RecoverDeliveries", "recover_deliveries", timeout_seconds=_RECOVER_SECONDS)
        self._allow_changing_deliveries(function.role)
        self._queues.feed(function, self._queues.lost, batch=_DELIVER_BATCH, at_once=_MIN_AT_ONCE)
        return function

    def _make_redispatch_events(self) -> BerthFunction:
        """Dispatches events that were never dispatched, whatever has happened to their records in the stream."""
        function = self._function(
            "RedispatchEvents",
            "redispatch_events",
            timeout_seconds=_REDISPATCH_SECONDS,
            environment=self._environment_of_dispatchers,
            dead_letters=self._queues.not_redispatched,
        )
        role = function.role
        self._allow_dispatching(role)
        self._kit.table.allow_index(role, LISTED_SETTINGS)
        self._events.allow(role, "Query", rows=EVENT_ROWS)
        self._queues.feed(function, self._queues.not_dispatched, batch=1, at_once=_MIN_AT_ONCE)
        event_rules.Rule(
            self,
            "Nightly",
            description="Dispatches events that were never dispatched.",
            schedule=event_rules.Schedule.cron(hour="2", minute="30"),
            targets=[
                targets.LambdaFunction(
                    function.function,
                    dead_letter_queue=self._queues.not_redispatched,
                    retry_attempts=2,
                    max_event_age=Duration.hours(1),
                )
            ],
        )
        return function

    @property
    def _environment_of_dispatchers(self) -> Mapping[str, str]:
        return {**self._queues.environment, **self._contents.environment}

    def _function(
        self,
        construct_id: str,
        name: str,
        *,
        timeout_seconds: int,
        environment: Mapping[str, str] | None = None,
        reserved_concurrency: int | None = None,
        dead_letters: sqs.Queue | None = None,
    ) -> BerthFunction:
        return BerthFunction(
            self,
            construct_id,
            kit=self._kit,
            name=name,
            timeout_seconds=timeout_seconds,
            reserved_concurrency=reserved_concurrency,
            environment={"BERTH_EVENTS_TABLE": self._events.name, **(environment or {})},
            dead_letters=dead_letters,
        )

    # The permissions

    @property
    def environment_of_resenders(self) -> Mapping[str, str]:
        return self._queues.environment

    def allow_resending(self, role: iam.Role) -> None:
        """Let a role show deliveries, resend events and manage replays. A resend never shares the quick queue."""
        self._events.allow(role, "GetItem", "BatchGetItem", "Query", "PutItem", rows=DELIVERY_ROWS)
        self._events.allow(role, "GetItem", "Query", "PutItem", rows=REPLAY_ROWS)
        self._queues.allow_sending(role, self._queues.later)

    def _allow_dispatching(self, role: iam.Role) -> None:
        """Let a role dispatch events, as ``orchestrator.events.delivery.dispatching`` does."""
        self._kit.table.allow(role, "Query", rows=CONNECTION_ROWS)
        # Both are written in one transaction: a delivery is put only beside its event.
        self._events.allow(role, "GetItem", "PutItem", "UpdateItem", rows=[EVENT_ROWS, DELIVERY_ROWS])
        self._queues.allow_sending(role, self._queues.first, self._queues.later)
        # A filter may look at the content.
        self._allow_reading_contents(role)

    def _allow_changing_deliveries(self, role: iam.Role) -> None:
        """Let a role make all transitions of ``orchestrator.events.delivery.transitions``.

        One statement for both kinds of rows, because they are written in one transaction, and AWS does not document
        whether it evaluates each write of a transaction by itself.
        """
        rows = [EVENT_ROWS, DELIVERY_ROWS]
        self._events.allow(role, "GetItem", "PutItem", "UpdateItem", "DeleteItem", rows=rows)

    def _allow_reading_contents(self, role: iam.Role) -> None:
        self._contents.allow(role, "GetObject")
        self._contents.allow_listing(role)

    def _allow_sending_to_receivers(self, role: iam.Role) -> None:
        """Let a role do what the destinations need that are in AWS. Webhooks need no permission."""
        self._kit.table.allow(role, "GetItem", rows=CONFIGURATION_ROWS)
        self._kit.table.allow_attributes(role, *QUEUE_ATTRIBUTES, rows=TENANT_ROWS)
        allow_on_tenant_queues(role, "SendMessage")
        self._kit.encryption.allow_queues(role, Access.SEND)
        self._kit.encryption.allow_queues_with_former_keys(role, Access.SEND)
        self._allow_reading_contents(role)
        self._secrets.allow_decrypting(role)
        if self._mail is not None:
            self._mail.allow_sending(role)


def _shared(at_once: int) -> tuple[int, int]:
    """The concurrency of both queues: together as many as there are, so that neither takes what is the other's."""
    first = max(_MIN_AT_ONCE, at_once // 2)
    return first, max(_MIN_AT_ONCE, at_once - first)
