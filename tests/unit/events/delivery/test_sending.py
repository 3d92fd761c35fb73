"""One try: what is sent to each kind of destination, and how its end is told."""

from __future__ import annotations

import base64
import json
from bisect import bisect_left
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from standardwebhooks import Webhook

from orchestrator.api.event_read_answers import event_response
from orchestrator.common.errors import Conflict
from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.content import pack
from orchestrator.events.delivery.answers import Failure, ReceiverResponse, Unsendable
from orchestrator.events.delivery.mail import MAX_PAYLOAD_BYTES
from orchestrator.events.delivery.mail_addresses import is_mail_address
from orchestrator.events.delivery.payloads import payload_to_send
from orchestrator.events.delivery.queue_addresses import REMEMBERED_SECONDS
from orchestrator.events.delivery.queue_message import MAX_MESSAGE_BYTES
from orchestrator.events.delivery.records import DestinationKind, ServedQueue, TryResult, Verdict
from orchestrator.events.delivery.signing import new_signing_secret, signature_headers
from orchestrator.events.documents import json_text
from orchestrator.events.records import Content, Event, TenantEpoch
from tests.fakes import ACME, NOON
from tests.fakes.events import EPOCH, INCARNATION, NEXT_INCARNATION, event_settings
from tests.fakes.sending import (
    CONNECTION_ID,
    EVENT_ID,
    QUEUE_URL,
    SendingWorld,
    a_connection,
    an_event,
    encrypted,
    outgoing,
)

DELIVERY_ID = f"{EVENT_ID}-{CONNECTION_ID}"
SECOND = timedelta(seconds=1)
TRANSFORM = {"remove": ["card"], "wrap": "order"}
DEEP = b"[" * 50_000 + b"]" * 50_000


@pytest.fixture
def world() -> SendingWorld:
    return SendingWorld()


class TestWebhooks:
    @pytest.mark.parametrize("kind", [DestinationKind.WEBHOOK, DestinationKind.ZAPIER])
    def test_the_bytes_are_sent_as_they_were_accepted(self, world: SendingWorld, kind: DestinationKind) -> None:
        body = b' {"total":  1.10, "total": 2}\n'
        event = an_event(body, content_type="application/vnd.shop+json; charset=utf-8")
        assert world.sending.send(outgoing(event, a_connection(kind))) == TryResult(Verdict.DELIVERED, 0, code=200)
        (request,) = world.webhooks.requests
        assert (request.url, request.body) == ("https://example.com/hook", body)
        assert request.headers == {
            "user-agent": "Berth/1.2.3",
            "accept": "*/*",
            "content-type": "application/vnd.shop+json; charset=utf-8",
            "webhook-id": DELIVERY_ID,
            "webhook-timestamp": str(int(NOON.timestamp())),
            "berth-event-id": EVENT_ID,
            "berth-event-type": "order.created",
            "berth-hops": "1",
        }

    def test_a_receiver_verifies_the_signature(self, world: SendingWorld) -> None:
        secret = new_signing_secret()
        world.sending.send(outgoing(connection=a_connection(secret=encrypted(secret))))
        (request,) = world.webhooks.requests
        expected = signature_headers(DELIVERY_ID, request.body, [secret], NOON)
        assert expected.items() <= request.headers.items()

    def test_during_a_rotation_both_secrets_sign(self, world: SendingWorld) -> None:
        new, former = new_signing_secret(), new_signing_secret()
        rotated = a_connection(
            secret=encrypted(new), former_secret=encrypted(former), former_secret_until=NOON + 2 * SECOND
        )
        for after in (0, 1, 2, 3):
            world.sending.send(outgoing(connection=rotated, at=NOON + after * SECOND))
        signatures = [request.headers["webhook-signature"].split(" ") for request in world.webhooks.requests]
        assert list(map(len, signatures)) == [2, 2, 1, 1]
        body = world.webhooks.requests[0].body
        both = signature_headers(DELIVERY_ID, body, [new, former], NOON)["webhook-signature"]
        assert signatures[0] == both.split(" ")

    def test_a_secret_of_another_connection_signs_nothing(self, world: SendingWorld) -> None:
        stolen = a_connection(secret=encrypted(new_signing_secret(), connection_id="con_2"))
        with pytest.raises(ValueError, match="another context"):
            world.sending.send(outgoing(connection=stolen))
        assert world.webhooks.requests == []

    def test_hops_are_counted_on(self, world: SendingWorld) -> None:
        world.sending.send(outgoing(an_event(metadata={"hops": "3"})))
        assert world.webhooks.requests[0].headers["berth-hops"] == "4"

    @pytest.mark.parametrize("given", ["text/plain\r\nx-evil: 1", "text/größe", "", "a\x00"])
    def test_a_content_type_that_is_no_header_is_replaced(self, world: SendingWorld, given: str) -> None:
        world.sending.send(outgoing(an_event(content_type=given)))
        assert world.webhooks.requests[0].headers["content-type"] == "application/octet-stream"

    def test_no_header_can_be_injected_by_the_type_of_an_event(self, world: SendingWorld) -> None:
        world.sending.send(outgoing(an_event(event_type="a\r\nx-evil: 1ä")))
        assert world.webhooks.requests[0].headers["berth-event-type"] == "a__x-evil: 1_"

    def test_the_time_that_a_try_takes_is_told(self, world: SendingWorld) -> None:
        world.webhooks.seconds = 2.5
        world.webhooks.answer = ReceiverResponse(503, {"retry-after": "Mon, 16 Nov 2026 12:00:10 GMT"}, b"busy")
        assert world.sending.send(outgoing()) == TryResult(
            Verdict.RETRY, 2_500, code=503, text="busy", retry_after=timedelta(seconds=7.5)
        )

    def test_no_answer_is_an_answer(self, world: SendingWorld) -> None:
        world.webhooks.answer = Failure("No answer in time.", slows=True)
        assert world.sending.send(outgoing()) == TryResult(Verdict.RETRY, 0, text="No answer in time.", slows=True)


class TestTransforms:
    def send(self, world: SendingWorld, body: bytes, content_type: str = "text/plain") -> TryResult:
        event = an_event(body, content_type=content_type)
        return world.sending.send(outgoing(event, a_connection(transform=TRANSFORM)))

    def test_a_payload_that_is_json_is_transformed_and_then_signed(self, world: SendingWorld) -> None:
        secret = new_signing_secret()
        connection = a_connection(transform=TRANSFORM, secret=encrypted(secret))
        event = an_event('{"card": "4242", "name": "Ä \\ud800"}'.encode(), content_type="text/plain")
        world.sending.send(outgoing(event, connection))
        (request,) = world.webhooks.requests
        assert json.loads(request.body) == {"order": {"name": "Ä \ud800"}}
        assert request.headers["content-type"] == "application/json"
        assert (
            request.headers["webhook-signature"]
            == signature_headers(DELIVERY_ID, request.body, [secret], NOON)["webhook-signature"]
        )

    @pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
    def test_json_with_a_byte_order_mark_is_transformed(self, world: SendingWorld, encoding: str) -> None:
        assert self.send(world, '{"card": "4242", "name": "Ä"}'.encode(encoding)).verdict is Verdict.DELIVERED
        (request,) = world.webhooks.requests
        assert json.loads(request.body) == {"order": {"name": "Ä"}}

    @pytest.mark.parametrize("body", [b"card=4242", b"\xff", b"", b"NaN", b'{"card": NaN}', b"{'card': 1}"])
    def test_any_other_payload_is_sent_as_it_was_accepted(self, world: SendingWorld, body: bytes) -> None:
        assert self.send(world, body).verdict is Verdict.DELIVERED
        (request,) = world.webhooks.requests
        assert (request.body, request.headers["content-type"]) == (body, "text/plain")

    @pytest.mark.parametrize(
        "number", ["1.50", "1e400", "-0", "1E+2", "0.1234567890123456789012", "12345678901234567890.10", "9" * 5_000]
    )
    def test_numbers_stay_as_they_were_written(self, world: SendingWorld, number: str) -> None:
        self.send(world, f'{{"card": "4242", "n": {number}, "list": [{number}, "{number}"]}}'.encode())
        (request,) = world.webhooks.requests
        assert request.body == f'{{"order":{{"n":{number},"list":[{number},"{number}"]}}}}'.encode()

    def test_json_that_cannot_be_transformed_is_not_sent(self, world: SendingWorld) -> None:
        """As it was accepted, it would hold what the tenant wants removed."""
        answer = self.send(world, DEEP)
        assert answer.verdict is Verdict.GIVE_UP
        assert "could not be transformed" in answer.text
        assert world.webhooks.requests == []

    def test_a_payload_that_is_too_deep_only_once_it_is_transformed_is_not_sent(self) -> None:
        """Versions of Python differ in the depth that they can read and write, so no payload has the right one."""
        deep: list[Any] = []
        for _ in range(200_000):
            deep = [deep]
        assert isinstance(payload_to_send(b"{}", "application/json", {"set": {"a": deep}}), Unsendable)

    def test_a_payload_of_any_depth_is_sent_or_not_sent(self) -> None:
        def is_sent(depth: int) -> bool:
            payload = payload_to_send(b"[" * depth + b"]" * depth, "application/json", {"wrap": "order"})
            return not isinstance(payload, Unsendable)

        limit = bisect_left(range(200_000), True, key=lambda depth: not is_sent(depth + 1))
        # The limit counts the frames of the caller, too, so it is here another one than in the search, by a few.
        outcomes = [is_sent(limit + more) for more in range(-10, 11)]
        assert outcomes == sorted(outcomes, reverse=True)
        assert (outcomes[0], outcomes[-1]) == (True, False)


class TestContents:
    def in_s3(self, world: SendingWorld, content: Content) -> Event:
        packed = pack(content)
        world.contents.put_once("30d/acme/key", packed.data)
        return an_event(content=None, content_key="30d/acme/key", packing=packed.packing)

    def test_a_large_content_is_loaded(self, world: SendingWorld) -> None:
        content = Content(b'"' + b"a" * 9_000 + b'"', {"x-shop": "1"})
        assert world.sending.send(outgoing(self.in_s3(world, content))).verdict is Verdict.DELIVERED
        assert world.webhooks.requests[0].body == content.body

    @pytest.mark.parametrize("kind", DestinationKind)
    def test_a_content_that_has_expired_is_given_up_and_says_so(
        self, world: SendingWorld, kind: DestinationKind
    ) -> None:
        event = replace(self.in_s3(world, Content(b"{}")), content_key="gone")
        answer = world.sending.send(outgoing(event, a_connection(kind)))
        assert answer == TryResult(Verdict.GIVE_UP, 0, text="The content of the event has expired.")
        assert [*world.webhooks.requests, *world.queue_messages.sent, *world.mails.sent] == []


@pytest.mark.parametrize("kind", DestinationKind)
@pytest.mark.parametrize(
    "life",
    [TenantEpoch(TenantId.parse("globex"), EPOCH), TenantEpoch(ACME, "later")],
    ids=["another tenant", "a later one"],
)
def test_nothing_is_sent_to_a_connection_of_somebody_else(
    world: SendingWorld, kind: DestinationKind, life: TenantEpoch
) -> None:
    with pytest.raises(Conflict, match=f"{life}"):
        world.sending.send(outgoing(connection=a_connection(kind, life=life)))
    assert [*world.webhooks.requests, *world.queue_messages.sent, *world.mails.sent] == []


def shown(event: Event) -> dict[str, Any]:
    """The answer of GET /events/{eventId}."""
    body: dict[str, Any] = json.loads(str(event_response(ACME, event.event_id, event).as_proxy_result()["body"]))
    return body


class TestQueues:
    def send(self, world: SendingWorld, event: Event, **changes: Any) -> dict[str, Any]:
        answer = world.sending.send(outgoing(event, a_connection(DestinationKind.QUEUE, **changes)))
        assert answer.verdict is Verdict.DELIVERED, answer
        body: dict[str, Any] = json.loads(self.body(world))
        return body

    def body(self, world: SendingWorld) -> str:
        return world.queue_messages.sent[-1][1].body

    @pytest.mark.parametrize(
        "body", [b'{"total": 1.10}', b" [1, 2]\n", b"\xff\x00", b"card=4242", b"", DEEP[49_800:-49_800], b'"\\ud800"']
    )
    def test_a_message_has_the_names_of_the_api(self, world: SendingWorld, body: bytes) -> None:
        event = an_event(content=Content(body, {"x-shop": "1"}), source_id="src_1", metadata={"hops": "1"})
        message, answer = self.send(world, event), shown(event)
        assert message == {
            name: value for name, value in answer.items() if name not in ("status", "delivered_at", "retry_count")
        }

    def test_it_goes_to_the_tenants_queue_with_the_headers_of_a_webhook(self, world: SendingWorld) -> None:
        self.send(world, an_event(metadata={"hops": "1"}))
        ((url, message),) = world.queue_messages.sent
        assert url == QUEUE_URL
        assert message.attributes == {
            "webhook-id": DELIVERY_ID,
            "berth-event-type": "order.created",
            "berth-hops": "2",
        }

    def test_numbers_stay_as_they_came_in(self, world: SendingWorld) -> None:
        self.send(world, an_event(b'{"total": 1.10, "n": 12345678901234567890.10}'))
        assert '"payload": {"total": 1.10, "n": 12345678901234567890.10}}' in self.body(world)

    def test_characters_that_sqs_would_replace_are_escaped(self, world: SendingWorld) -> None:
        assert self.send(world, an_event('["\ufffe\uffff"]'.encode()))["payload"] == ["\ufffe\uffff"]
        assert not set(self.body(world)) & {"\ufffe", "\uffff"}

    def test_it_is_transformed(self, world: SendingWorld) -> None:
        message = self.send(world, an_event(b'{"card": 1, "a": 2}'), transform={"remove": ["card"]})
        assert message["payload"] == {"a": 2}

    @pytest.mark.parametrize("payload", [b'"' + b"a" * MAX_MESSAGE_BYTES + b'"', b"\xff" * 140_000])
    def test_a_large_one_is_sent_by_reference(self, world: SendingWorld, payload: bytes) -> None:
        message = self.send(world, an_event(content=Content(payload, {"x-shop": "1"})))
        assert message["payload_omitted"] is True
        assert message["event_id"] == EVENT_ID
        assert not message.keys() & {"payload", "payload_base64", "headers"}
        assert len(self.body(world)) < 1_000

    def test_the_largest_payload_that_fits_is_sent(self, world: SendingWorld) -> None:
        self.send(world, an_event(b'""'))
        rest = MAX_MESSAGE_BYTES - len(self.body(world))
        assert self.send(world, an_event(b'"' + b"a" * rest + b'"'))["payload"] == "a" * rest
        assert len(self.body(world)) == MAX_MESSAGE_BYTES
        assert "payload" not in self.send(world, an_event(b'"' + b"a" * (rest + 1) + b'"'))

    def test_the_queue_is_remembered_for_a_minute(self, world: SendingWorld) -> None:
        for _ in range(3):
            self.send(world, an_event())
        assert world.tenant_queues.reads == 1
        world.tenant_queues.queues[ACME] = ServedQueue(INCARNATION, "https://another")
        world.watch.seconds += REMEMBERED_SECONDS
        self.send(world, an_event())
        assert world.queue_messages.sent[-1][0] == "https://another"

    def test_a_queue_that_failed_is_looked_up_again(self, world: SendingWorld) -> None:
        world.queue_messages.failure = Failure("The queue does not exist.")
        answer = world.sending.send(outgoing(connection=a_connection(DestinationKind.QUEUE)))
        assert answer == TryResult(Verdict.RETRY, 0, text="The queue does not exist.")
        world.queue_messages.failure = None
        world.tenant_queues.queues[ACME] = ServedQueue(INCARNATION, "https://another")
        self.send(world, an_event())
        assert world.queue_messages.sent[-1][0] == "https://another"

    def test_a_tenant_without_a_queue_is_tried_again(self, world: SendingWorld) -> None:
        world.tenant_queues.queues.clear()
        answer = world.sending.send(outgoing(connection=a_connection(DestinationKind.QUEUE)))
        assert answer == TryResult(Verdict.RETRY, 0, text="Tenant acme has no queue now.")
        world.tenant_queues.queues[ACME] = ServedQueue(INCARNATION, QUEUE_URL)
        self.send(world, an_event())

    def test_the_queue_of_a_later_tenant_of_the_same_id_gets_nothing(self, world: SendingWorld) -> None:
        world.tenant_queues.queues[ACME] = ServedQueue(NEXT_INCARNATION, "https://of-another")
        answer = world.sending.send(outgoing(connection=a_connection(DestinationKind.QUEUE)))
        assert answer.verdict is Verdict.RETRY
        later = replace(event_settings().life, epoch="later")
        world.configuration.all_settings[ACME] = event_settings(later, incarnation=NEXT_INCARNATION)
        assert world.sending.send(outgoing(connection=a_connection(DestinationKind.QUEUE))).verdict is Verdict.RETRY
        assert world.queue_messages.sent == []


class TestMails:
    def send(self, world: SendingWorld, event: Event, address: str = "ada@example.com", **changes: Any) -> TryResult:
        return world.sending.send(outgoing(event, a_connection(DestinationKind.EMAIL, address, **changes)))

    def test_a_mail_shows_the_event(self, world: SendingWorld) -> None:
        assert self.send(world, an_event('{"name": "Ä", "items": [1]}'.encode())) == TryResult(Verdict.DELIVERED, 0)
        (mail,) = world.mails.sent
        assert (mail.to, mail.subject) == ("ada@example.com", "order.created (acme)")
        assert mail.headers == {"webhook-id": DELIVERY_ID, "Auto-Submitted": "auto-generated"}
        assert mail.text == (
            "Tenant acme has an event.\n\n"
            "type:     order.created\n"
            f"id:       {EVENT_ID}\n"
            "received: 2026-11-16T12:00:00.000000Z\n"
            "from:     POST /events\n\n"
            '{\n  "name": "Ä",\n  "items": [\n    1\n  ]\n}\n'
        )

    def test_no_header_can_be_injected(self, world: SendingWorld) -> None:
        self.send(world, an_event(event_type="a\r\nBcc: eve@example.com" + "b" * 500))
        (mail,) = world.mails.sent
        assert mail.subject.startswith("a  Bcc: eve@example.com")
        assert len(mail.subject) == 200
        assert "\nBcc" not in mail.text

    @pytest.mark.parametrize(
        "payload",
        [
            b'"' + b"a" * 200_000 + b'"',
            b'"' + "€".encode() * 60_000 + b'"',
            b"[" * 90 + b"[" + b",".join([b"1"] * 100_000) + b"]" + b"]" * 90,
        ],
        ids=["long", "characters of three bytes", "deep"],
    )
    def test_a_long_payload_is_cut(self, world: SendingWorld, payload: bytes) -> None:
        self.send(world, an_event(payload))
        text = world.mails.sent[0].text
        assert text.endswith("\n\nThe payload is longer than this mail. Get it by GET /events/{id}.\n")
        assert MAX_PAYLOAD_BYTES < len(text.encode()) < MAX_PAYLOAD_BYTES + 1_000

    def test_a_payload_that_is_not_json_is_described(self, world: SendingWorld) -> None:
        self.send(world, an_event(b"\xff" * 2_000, content_type="image/png\n"))
        assert "The payload is not shown: 2,000 bytes of image/png. Get it by" in world.mails.sent[0].text

    def test_a_mail_is_transformed(self, world: SendingWorld) -> None:
        self.send(world, an_event(b'{"card": 1, "a": 2}'), transform={"remove": ["card"]})
        assert "card" not in world.mails.sent[0].text

    def test_a_mail_that_is_refused_is_tried_again(self, world: SendingWorld) -> None:
        world.mails.failure = Failure("SES refused the mail.")
        assert self.send(world, an_event()) == TryResult(Verdict.RETRY, 0, text="SES refused the mail.")

    @pytest.mark.parametrize(
        "address",
        [
            *("", "ada", "ada@", "@example.com", "ada@example", "ada@example.com,eve@example.com", "a da@example.com"),
            *("Ada <ada@example.com>", "ada@example.com\r\nBcc: eve@example.com", "ada@example.com\n", '"a b"@c.com'),
            *("ada@example..com", "ada@exämple.com", "a" * 65 + "@example.com", "a@" + "b." * 130 + "com"),
        ],
    )
    def test_an_address_that_could_be_read_as_another_gets_nothing(self, world: SendingWorld, address: str) -> None:
        assert not is_mail_address(address)
        answer = self.send(world, an_event(), address)
        assert (answer.verdict, world.mails.sent) == (Verdict.RETRY, [])

    @pytest.mark.parametrize("address", ["a@b.co", "ada.love+x@mail.example.com", "o'brien@example.com"])
    def test_usual_addresses_are_fine(self, address: str) -> None:
        assert is_mail_address(address)


def test_the_webhook_library_verifies_what_is_sent() -> None:
    """Over loopback, the same is tested with a real receiver."""
    world, secret = SendingWorld(), new_signing_secret()
    world.sending.send(outgoing(connection=a_connection(secret=encrypted(secret)), at=datetime.now(UTC)))
    (request,) = world.webhooks.requests
    assert Webhook(secret).verify(request.body, dict(request.headers)) == {"total": 120}


@pytest.mark.parametrize(
    "body",
    [
        *(
            b"{}",
            b" 1 ",
            b'"a"',
            b"null",
            b"",
            b" ",
            b"{",
            b"[1,]",
            b"01",
            b"-",
            b"1e5",
            b"1E400",
            b"NaN",
            b"-Infinity",
        ),
        *(
            b'{"a": NaN}',
            b'"\t"',
            b'"\\x"',
            b'"\\ud800"',
            b'"\\uD83D\\uDE00"',
            b"\xef\xbb\xbf{}",
            b"\xff",
            b"{'a': 1}",
            b"1 2",
            b"tru",
        ),
        *(b"9" * 1_000, b"9" * 1_001, b"9" * 5_000, b"[" * 100 + b"]" * 100, b"[" * 101 + b"]" * 101, DEEP, b'"\x7f"'),
    ],
    ids=lambda body: repr(body[:20]),
)
def test_a_queue_is_sent_as_json_what_the_api_shows_as_json(body: bytes) -> None:
    is_json = json_text(body) is not None
    assert is_json == ("payload" in shown(an_event(body)))
    if not is_json:
        assert base64.b64decode(shown(an_event(body))["payload_base64"]) == body
