"""Fakes of what a try needs from outside, and examples of what is tried."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.delivery.answers import Failure, ReceiverResponse
from orchestrator.events.delivery.mail import Mail
from orchestrator.events.delivery.ports import Webhooks
from orchestrator.events.delivery.queue_addresses import QueueAddresses
from orchestrator.events.delivery.queue_message import QueueMessage
from orchestrator.events.delivery.records import (
    API_ORIGIN,
    Connection,
    ConnectionStatus,
    Destination,
    DestinationKind,
    Outgoing,
    ServedQueue,
)
from orchestrator.events.delivery.sending import Sending
from orchestrator.events.delivery.signing import secret_context
from orchestrator.events.delivery.webhook_request import WebhookRequest
from orchestrator.events.event_ids import new_event_id
from orchestrator.events.plans import Plan, time_to_live
from orchestrator.events.records import Content, Event, TenantEpoch
from orchestrator.events.statuses import EventStatus
from tests.fakes.events import ACME_LIFE, INCARNATION, FakeConfiguration, FakeSecrets, Watch, event_settings
from tests.fakes.examples import ACME, NOON
from tests.fakes.others import FakeClock

EVENT_ID = new_event_id(NOON, 3, random_bits=lambda _bits: 0)
CONNECTION_ID = "con_1"
QUEUE_URL = "https://sqs.eu-west-1.amazonaws.com/0/acme-inbound"
TAKEN = ReceiverResponse(200, {}, b"")


def an_event(body: bytes = b'{"total": 120}', **changes: Any) -> Event:
    event = Event(
        ACME_LIFE, EVENT_ID, EventStatus.RECEIVED, "order.created", Content(body), NOON + time_to_live(Plan.PRO)
    )
    return replace(event, **changes)


def a_connection(
    kind: DestinationKind = DestinationKind.WEBHOOK, address: str = "https://example.com/hook", **changes: Any
) -> Connection:
    connection = Connection(
        ACME_LIFE,
        CONNECTION_ID,
        API_ORIGIN,
        "tests",
        Destination(kind, "" if kind is DestinationKind.QUEUE else address),
        ConnectionStatus.ACTIVE,
        NOON,
    )
    return replace(connection, **changes)


def outgoing(event: Event | None = None, connection: Connection | None = None, at: Any = NOON) -> Outgoing:
    return Outgoing(connection or a_connection(), event or an_event(), at)


def encrypted(secret: str, life: TenantEpoch = ACME_LIFE, connection_id: str = CONNECTION_ID) -> bytes:
    return FakeSecrets().encrypt(secret.encode(), life, secret_context(connection_id))


@dataclass
class FakeWebhooks:
    """Implements :class:`orchestrator.events.delivery.ports.Webhooks`, and keeps the requests."""

    answer: ReceiverResponse | Failure = TAKEN
    requests: list[WebhookRequest] = field(default_factory=list)
    watch: Watch | None = None
    seconds: float = 0.0
    """How long an answer takes."""

    def post(self, request: WebhookRequest) -> ReceiverResponse | Failure:
        self.requests.append(request)
        if self.watch is not None:
            self.watch.seconds += self.seconds
        return self.answer


@dataclass
class FakeTenantQueues:
    """Implements :class:`orchestrator.events.delivery.ports.TenantQueues`, and counts its reads."""

    queues: dict[TenantId, ServedQueue] = field(default_factory=lambda: {ACME: ServedQueue(INCARNATION, QUEUE_URL)})
    reads: int = 0

    def served_queue(self, tenant: TenantId) -> ServedQueue | None:
        self.reads += 1
        return self.queues.get(tenant)


@dataclass
class FakeQueueMessages:
    """Implements :class:`orchestrator.events.delivery.ports.QueueMessages`, and keeps the messages."""

    failure: Failure | None = None
    sent: list[tuple[str, QueueMessage]] = field(default_factory=list)

    def send(self, url: str, message: QueueMessage) -> Failure | None:
        self.sent.append((url, message))
        return self.failure


@dataclass
class FakeMails:
    """Implements :class:`orchestrator.events.delivery.ports.Mails`, and keeps the mails."""

    failure: Failure | None = None
    sent: list[Mail] = field(default_factory=list)

    def send(self, mail: Mail) -> Failure | None:
        self.sent.append(mail)
        return self.failure


@dataclass
class FakeContents:
    """Implements :class:`orchestrator.events.ports.Contents`."""

    objects: dict[str, bytes] = field(default_factory=dict)

    def put_once(self, key: str, data: bytes) -> None:
        self.objects.setdefault(key, data)

    def get(self, key: str) -> bytes | None:
        return self.objects.get(key)


class SendingWorld:
    """A sender with a fake of everything around it, unless something else is given."""

    def __init__(self, webhooks: Webhooks | None = None) -> None:
        self.clock, self.watch = FakeClock(), Watch()
        self.webhooks = FakeWebhooks(watch=self.watch)
        self.configuration = FakeConfiguration({ACME: event_settings()})
        self.tenant_queues, self.queue_messages = FakeTenantQueues(), FakeQueueMessages()
        self.mails, self.contents = FakeMails(), FakeContents()
        self.sending = Sending(
            webhooks=webhooks or self.webhooks,
            queue_addresses=QueueAddresses(
                configuration=self.configuration, queues=self.tenant_queues, clock=self.clock, monotonic=self.watch
            ),
            queue_messages=self.queue_messages,
            mails=self.mails,
            contents=self.contents,
            secrets=FakeSecrets(),
            monotonic=self.watch,
            version="1.2.3",
        )
