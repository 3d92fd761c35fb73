"""Delivery ids, event types and challenges, as each provider sends them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.challenges import MAX_CHALLENGE_CHARACTERS, challenge_in
from orchestrator.events.event_types import EVENT_TYPE_PATTERN
from orchestrator.events.incoming import Incoming
from orchestrator.events.providers import Announcement, announced, usable_type
from orchestrator.events.records import Provider, Source, SourceStatus, TenantEpoch
from tests.fakes import NOON

SOURCE = Source(
    TenantEpoch(TenantId.parse("acme"), "0011"), "src_1", "shop", Provider.NONE, SourceStatus.ACTIVE, created_at=NOON
)
JSON = {"content-type": "application/json; charset=utf-8"}
FORM = {"content-type": "application/x-www-form-urlencoded"}


def of(provider: Provider, **verification: str) -> Source:
    return replace(SOURCE, provider=provider, verification=verification)


def a_request(body: object = b"", **headers: str) -> Incoming:
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Incoming("POST", JSON | {name.replace("_", "-"): value for name, value in headers.items()}, sent)


@pytest.mark.parametrize(
    ("source", "request_", "delivery_id", "event_type"),
    [
        (of(Provider.STRIPE), a_request({"id": "evt_1", "type": "invoice.paid"}), "evt_1", "invoice.paid"),
        (
            of(Provider.GITHUB),
            a_request(b"{}", x_github_delivery="72d3162e", x_github_event="pull_request"),
            "72d3162e",
            "pull_request",
        ),
        (
            of(Provider.SHOPIFY),
            a_request(b"{}", x_shopify_webhook_id="b54557e4", x_shopify_topic="orders/create"),
            "b54557e4",
            "orders/create",
        ),
        (
            of(Provider.SLACK),
            a_request({"type": "event_callback", "event_id": "Ev1", "event": {"type": "app_mention"}}),
            "Ev1",
            "app_mention",
        ),
        (of(Provider.SLACK), a_request({"type": "app_rate_limited"}), None, "app_rate_limited"),
        (
            of(Provider.STANDARD_WEBHOOKS),
            a_request({"type": "contact.created"}, webhook_id="m1"),
            "m1",
            "contact.created",
        ),
        (of(Provider.STANDARD_WEBHOOKS), a_request(b"\x00\xff", svix_id="m2"), "m2", "webhook"),
        (
            of(Provider.HMAC, header="X", event_type_header="X-Event", delivery_id_header="X-Id"),
            a_request({"type": "in.body"}, x_event="in.header", x_id="7"),
            "7",
            "in.header",
        ),
        (of(Provider.SHARED_SECRET, header="X"), a_request({"type": "in.body"}, x_id="7"), None, "in.body"),
        (of(Provider.NONE), a_request(b"not JSON"), None, "webhook"),
        (of(Provider.NONE), a_request({"type": 5}), None, "webhook"),
    ],
)
def test_each_provider_names_its_deliveries_and_types(
    source: Source, request_: Incoming, delivery_id: str | None, event_type: str
) -> None:
    assert announced(source, request_) == Announcement(delivery_id, event_type)


@pytest.mark.parametrize(
    ("body", "event_type"),
    [
        (b"command=%2Fdeploy&text=now", "slash_command"),
        (b"payload=%7B%22type%22%3A%22block_actions%22%7D", "block_actions"),
        (b"payload=%7B", "webhook"),
        (b"payload=5", "webhook"),
        (b"\xff", "webhook"),
        (b"a&" * 999, "webhook"),
        (b"", "webhook"),
    ],
)
def test_slacks_commands_and_buttons_are_forms(body: bytes, event_type: str) -> None:
    request = Incoming("POST", FORM, body)
    assert announced(of(Provider.SLACK), request) == Announcement(None, event_type)


@pytest.mark.parametrize("delivery_id", ["", "  ", "\ud800", "x" * 501, 5, None, ["x"]])
def test_a_delivery_id_that_cannot_be_used_is_none(delivery_id: object) -> None:
    assert announced(of(Provider.STRIPE), a_request({"id": delivery_id})).delivery_id is None


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ("order#created", "order_created"),
        ("##", "webhook"),
        ("order created", "order_created"),
        ("./order", "order"),
        ("_order", "order"),
        ("\u00e9t\u00e9", "t_"),
        ("x" * 200, "x" * 128),
        ("", "webhook"),
        ("...", "webhook"),
        (None, "webhook"),
    ],
)
def test_a_type_that_cannot_be_stored_is_made_storable(sent: object, stored: str) -> None:
    # A provider would send the event again and again if it were refused, with the same type.
    assert usable_type(sent) == stored


@given(st.one_of(st.text(max_size=300), st.none(), st.integers()))
def test_every_type_is_one_that_an_event_may_have(sent: Any) -> None:
    stored = usable_type(sent)
    assert re.fullmatch(EVENT_TYPE_PATTERN, stored)
    assert "#" not in stored


@given(st.text("abcXYZ019._:/-", min_size=1, max_size=128).filter(lambda text: text[0].isalnum()))
def test_a_type_that_can_be_stored_stays_as_it_is(sent: str) -> None:
    assert usable_type(sent) == sent


# Challenges


def test_slacks_challenge_is_echoed() -> None:
    found = challenge_in(of(Provider.SLACK), a_request({"type": "url_verification", "challenge": "3eZb"}))
    assert found is not None
    assert found.answer == {"challenge": "3eZb"}


@pytest.mark.parametrize("challenge", [None, 5, "x" * (MAX_CHALLENGE_CHARACTERS + 1), "\ud800", {}])
def test_a_challenge_that_is_no_short_text_is_not_echoed(challenge: object) -> None:
    found = challenge_in(of(Provider.SLACK), a_request({"type": "url_verification", "challenge": challenge}))
    assert found is not None
    assert found.answer == {"challenge": ""}


def test_githubs_ping_is_answered() -> None:
    found = challenge_in(of(Provider.GITHUB), a_request({"zen": "Keep it logically awesome."}, x_github_event="ping"))
    assert found is not None
    assert found.answer == {"status": "pong"}


@pytest.mark.parametrize(
    ("source", "request_"),
    [
        (of(Provider.GITHUB), a_request({"type": "url_verification", "challenge": "x"}, x_github_event="push")),
        (of(Provider.SLACK), a_request({"type": "event_callback"}, x_github_event="ping")),
        (of(Provider.SLACK), Incoming("POST", FORM, b'{"type": "url_verification"}')),
        (of(Provider.NONE), a_request({"type": "url_verification", "challenge": "x"}, x_github_event="ping")),
        (of(Provider.STRIPE), a_request({"type": "ping"})),
    ],
)
def test_events_and_the_challenges_of_other_providers_are_no_challenges(source: Source, request_: Incoming) -> None:
    assert challenge_in(source, request_) is None
