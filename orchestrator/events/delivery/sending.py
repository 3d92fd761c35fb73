"""Tries once to send an event to a connection."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from orchestrator.common.errors import Conflict
from orchestrator.events.content import Packed, unpack
from orchestrator.events.delivery.answers import Failure, Result, Taken, Unsendable, try_result_of
from orchestrator.events.delivery.mail import mail
from orchestrator.events.delivery.mail_addresses import is_mail_address
from orchestrator.events.delivery.payloads import Payload, payload_to_send
from orchestrator.events.delivery.ports import Mails, QueueMessages, Webhooks
from orchestrator.events.delivery.queue_addresses import QueueAddresses
from orchestrator.events.delivery.queue_message import queue_message
from orchestrator.events.delivery.records import Connection, DestinationKind, Outgoing, TryResult
from orchestrator.events.delivery.signing import secret_context
from orchestrator.events.delivery.webhook_request import webhook_request
from orchestrator.events.ports import Contents, Secrets
from orchestrator.events.records import Content, Event


class Sending:
    """Implements :class:`orchestrator.events.delivery.ports.Sender`. Several threads may send at once.

    ``version`` is Berth's.
    """

    def __init__(
        self,
        *,
        webhooks: Webhooks,
        queue_addresses: QueueAddresses,
        queue_messages: QueueMessages,
        mails: Mails,
        contents: Contents,
        secrets: Secrets,
        monotonic: Callable[[], float],
        version: str,
    ) -> None:
        self._webhooks = webhooks
        self._queue_addresses = queue_addresses
        self._queue_messages = queue_messages
        self._mails = mails
        self._contents = contents
        self._secrets = secrets
        self._monotonic = monotonic
        self._version = version

    def send(self, outgoing: Outgoing) -> TryResult:
        began = self._monotonic()
        result = self._result(outgoing)
        took = timedelta(seconds=self._monotonic() - began)
        return try_result_of(result, milliseconds=took // timedelta(milliseconds=1), at=outgoing.at + took)

    def _result(self, outgoing: Outgoing) -> Result:
        event, connection = outgoing.event, outgoing.connection
        if event.life != connection.life:
            raise Conflict(
                f"Event {event.event_id} of {event.life} was not sent to connection {connection.connection_id}, which "
                f"belongs to {connection.life}."
            )
        content = self._content(event)
        if content is None:
            return Unsendable("The content of the event has expired.")
        payload = payload_to_send(content.body, event.content_type, connection.transform)
        if isinstance(payload, Unsendable):
            return payload
        match connection.destination.kind:
            case DestinationKind.WEBHOOK | DestinationKind.ZAPIER:
                return self._send_webhook(outgoing, payload)
            case DestinationKind.QUEUE:
                return self._send_to_queue(outgoing, payload, content)
            case DestinationKind.EMAIL:
                return self._send_mail(outgoing, payload)

    def _content(self, event: Event) -> Content | None:
        if event.content is not None or event.content_key is None:
            return event.content
        data = self._contents.get(event.content_key)
        return unpack(Packed(data, event.packing)) if data is not None else None

    def _send_webhook(self, outgoing: Outgoing, payload: Payload) -> Result:
        signing_secrets = self._signing_secrets(outgoing)
        return self._webhooks.post(webhook_request(outgoing, payload, signing_secrets, version=self._version))

    def _signing_secrets(self, outgoing: Outgoing) -> list[str]:
        """During a rotation both secrets, the new one first."""
        connection, until = outgoing.connection, outgoing.connection.former_secret_until
        encrypted = [connection.secret]
        if until is not None and outgoing.at < until:
            encrypted.append(connection.former_secret)
        return [self._decrypted(connection, each) for each in encrypted if each is not None]

    def _decrypted(self, connection: Connection, secret: bytes) -> str:
        return self._secrets.decrypt(secret, connection.life, secret_context(connection.connection_id)).decode()

    def _send_to_queue(self, outgoing: Outgoing, payload: Payload, content: Content) -> Result:
        life = outgoing.connection.life
        queue = self._queue_addresses.queue(life)
        if queue is None:
            return Failure(f"Tenant {life.tenant} has no queue now.")
        failure = self._queue_messages.send(queue.url, queue_message(outgoing, payload, content.headers))
        if failure is not None:
            # The queue may have been replaced since it was looked up.
            self._queue_addresses.forget(life)
        return failure or Taken()

    def _send_mail(self, outgoing: Outgoing, payload: Payload) -> Result:
        if not is_mail_address(outgoing.connection.destination.address):
            return Failure("The address of the connection is not an address of e-mail.")
        return self._mails.send(mail(outgoing, payload)) or Taken()
