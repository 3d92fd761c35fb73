"""The public edge of the event plane: whatever anybody sends to a webhook or a form is answered, never with a 5xx."""

from __future__ import annotations

import base64
import hmac
import importlib
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator.common.callers import digest_of
from orchestrator.event_composition import EventUseCases
from orchestrator.events.configuring_sources import secret_context
from orchestrator.events.records import Form, Provider, Source, SourceStatus
from tests.adapters.bad_input.classifying import at
from tests.adapters.bad_input.event_writes import NotedContents, NotedWrites
from tests.adapters.bad_input.inputs import JsonText, an_input, anything, over_http
from tests.adapters.bad_input.storm import INPUTS, storm
from tests.adapters.bad_input.world import PROOF, LogSink, _log_into, switch_log
from tests.fakes import ACME, NOON, FakeClock
from tests.fakes.events import (
    ACME_LIFE,
    FakeConfiguration,
    FakeKeyUse,
    FakeSecrets,
    FakeTenants,
    FakeUsage,
    Watch,
    event_settings,
)
from tests.functions import forget_functions

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
PAGE = "https://www.example.com"
SECONDS = str(int(NOON.timestamp()))
BOUNDARY = "----WebKitFormBoundary7MA4YWxkTrZu0gW"

HOOK = "ANY /hooks/{sourceId}"
FORM = "POST /forms/{formId}"
OPTIONS = "OPTIONS /forms/{formId}"


class Plane:
    """The function as Lambda calls it, with a source of every kind and two forms."""

    def __init__(self) -> None:
        self.effects: list[str] = []
        self.logs = LogSink()
        self.secrets = FakeSecrets()
        configuration = FakeConfiguration({ACME: event_settings()})
        for provider in Provider:
            source = self.source_of(provider)
            configuration.sources[source.source_id] = source
        for form in FORMS.values():
            configuration.forms[form.form_id] = form
        watch = Watch()
        # Every input comes ten minutes after the one before, so that none is refused because of those before it.
        self.advance = lambda: setattr(watch, "seconds", watch.seconds + 600)
        self.writes = NotedWrites(self.effects)
        ports: Any = SimpleNamespace(
            settings=SimpleNamespace(api_proof_digest=digest_of(PROOF)),
            clock=FakeClock(),
            monotonic=watch,
            tenants=FakeTenants(),
            configuration=configuration,
            key_use=FakeKeyUse(),
            usage=FakeUsage(),
            secrets=self.secrets,
            event_writes=self.writes,
            contents=NotedContents(self.effects),
        )
        self.use_cases = EventUseCases(ports)

    def source_of(self, provider: Provider) -> Source:
        verification = {"header": "X-Signature", "delivery_id_header": "X-Delivery"}
        source = Source(
            ACME_LIFE,
            source_id_of(provider),
            "shop",
            provider,
            SourceStatus.ACTIVE,
            NOON,
            verification=verification if provider in (Provider.HMAC, Provider.SHARED_SECRET) else {},
        )
        if provider is Provider.NONE:
            return source
        context = secret_context(source.source_id)
        return replace(source, secret=self.secrets.encrypt(SECRET.encode(), ACME_LIFE, context))

    def as_before(self) -> None:
        self.writes.marks.clear()
        self.forget()

    def forget(self) -> None:
        self.effects.clear()
        self.advance()

    def call(self, event: object) -> Any:
        return importlib.import_module("lambdas.events.receive").handler(event, None)


def source_id_of(provider: Provider) -> str:
    return f"src_{list(Provider).index(provider):024x}"


FORMS = {
    "form_" + "0" * 24: Form(ACME_LIFE, "form_" + "0" * 24, "open", SourceStatus.ACTIVE, NOON, honeypot="website"),
    "form_" + "1" * 24: Form(
        ACME_LIFE, "form_" + "1" * 24, "of a page", SourceStatus.ACTIVE, NOON, (PAGE,), f"{PAGE}/thanks", "website"
    ),
}


@pytest.fixture(scope="module")
def public() -> Iterator[Plane]:
    plane = Plane()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_LAMBDA_LOG_LEVEL", "FATAL")
        patch.setenv("BERTH_TABLE", "berth")
        forget_functions()
        patch.setattr(importlib.import_module("lambdas.event_runtime"), "use_cases", plane.use_cases)
        patch.setattr(importlib.import_module("lambdas.observing"), "count", lambda *_: None)
        _log_into(plane.logs, patch)
        yield plane
    forget_functions()


# Requests


def a_request(route: str, parameters: dict[str, str], headers: dict[str, str], body: object) -> dict[str, Any]:
    """A valid request, as API Gateway sends it."""
    method = route.partition(" ")[0].replace("ANY", "POST")
    return {
        "version": "2.0",
        "routeKey": route,
        "rawPath": route.partition(" ")[2],
        "headers": {"host": "api.example.com", "user-agent": "curl/8", **headers},
        "requestContext": {"http": {"method": method, "sourceIp": "192.0.2.1"}},
        "pathParameters": parameters,
        "body": body,
        "isBase64Encoded": False,
        "stageVariables": {"proof": PROOF},
    }


def a_webhook(rng: Random) -> Any:
    """Mostly a signed one, with something wrong in the headers or in the body that was signed."""
    provider = rng.choice(list(Provider))
    document = JsonText(id="evt_1", type="order.created", event_id="Ev1", event={"type": "message"}, data={"n": 1})
    if rng.random() < 0.2:
        document = JsonText(type="url_verification", challenge="3eZb")
    whole = a_request(
        HOOK,
        {"sourceId": source_id_of(provider)},
        {
            "content-type": "application/json",
            "x-github-event": rng.choice(("push", "ping")),
            "x-github-delivery": "72d3162e",
            "x-shopify-topic": "orders/create",
            "x-shopify-webhook-id": "b54557e4",
            "webhook-id": "msg_1",
            "x-delivery": "7",
            "berth-hops": "1",
        },
        document,
    )
    event = over_http(rng, an_input(rng, whole if rng.random() < 0.3 else {"body": whole["body"]}))
    event = {**whole, **event} if isinstance(event, dict) else {**whole, "body": event}
    signed = rng.random() < 0.8 and signatures_of(event)
    headers = at(event, "headers")
    if signed and isinstance(headers, dict):
        if rng.random() < 0.2:
            spoil = rng.choice(SPOILERS)
            signed = {name: spoil(value) for name, value in signed.items()}
        event["headers"] = {**headers, **signed}
        if rng.random() < 0.2:
            event["headers"][rng.choice(list(event["headers"]))] = anything(rng)
    return event


SPOILERS: tuple[Callable[[str], str], ...] = (
    lambda _text: "",
    lambda text: text[:-1],
    lambda text: text + "\u00e9",
    lambda text: "\ud800" + text,
    lambda text: text.replace("=", "\0"),
    lambda text: f"{text},{text}",
    lambda text: f"{text} {text}",
)


def signatures_of(event: dict[str, Any]) -> dict[str, str]:
    """The right signature of every provider. Empty if the body is none that can be signed."""
    body = sent_bytes(event)
    if body is None:
        return {}

    def digest(key: bytes, data: bytes) -> bytes:
        return hmac.digest(key, data, "sha256")

    key, seconds = SECRET.encode(), SECONDS.encode()
    standard = digest(base64.b64decode(SECRET.removeprefix("whsec_")), b"msg_1.%b.%b" % (seconds, body))
    is_shared = at(event, "pathParameters", "sourceId") == source_id_of(Provider.SHARED_SECRET)
    return {
        "stripe-signature": f"t={SECONDS},v1={digest(key, b'%b.%b' % (seconds, body)).hex()}",
        "x-hub-signature-256": f"sha256={digest(key, body).hex()}",
        "x-shopify-hmac-sha256": base64.b64encode(digest(key, body)).decode(),
        "x-slack-signature": f"v0={digest(key, b'v0:%b:%b' % (seconds, body)).hex()}",
        "x-slack-request-timestamp": SECONDS,
        "webhook-timestamp": SECONDS,
        "webhook-signature": f"v1,{base64.b64encode(standard).decode()}",
        "x-signature": SECRET if is_shared else digest(key, body).hex(),
    }


def sent_bytes(event: dict[str, Any]) -> bytes | None:
    body = event.get("body") or ""
    try:
        return base64.b64decode(body, validate=True) if event.get("isBase64Encoded") else body.encode()
    except (ValueError, TypeError, AttributeError):
        return None


MULTIPART = (
    f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="name"\r\n\r\nAda\r\n'
    f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="cv"; filename=""\r\n\r\n\r\n--{BOUNDARY}--\r\n'
)
BODIES: tuple[tuple[str, object], ...] = (
    ("application/json", JsonText(name="Ada", website="", colors=["red", "blue"])),
    ("application/x-www-form-urlencoded", "name=Ada&color=red&color=blue&website="),
    (f"multipart/form-data; boundary={BOUNDARY}", MULTIPART),
)


def a_submission(rng: Random) -> Any:
    content_type, body = rng.choice(BODIES)
    headers = {"content-type": content_type, "origin": PAGE, "berth-hops": "1"}
    whole = a_request(FORM, {"formId": rng.choice(list(FORMS))}, headers, body)
    event = over_http(rng, an_input(rng, whole if rng.random() < 0.5 else {"body": body}))
    return {**whole, **event} if isinstance(event, dict) else {**whole, "body": event}


def a_preflight(rng: Random) -> Any:
    headers = {"origin": PAGE, "access-control-request-method": "POST"}
    whole = a_request(OPTIONS, {"formId": rng.choice(list(FORMS))}, headers, None)
    event = an_input(rng, whole)
    return {**whole, **event} if isinstance(event, dict) and rng.random() < 0.5 else event


# Answers


def met(public: Plane, event: object, success: dict[int, tuple[set[str], ...]]) -> str:
    """How a request was answered: a success has the effects that it may have, and a refusal has none."""
    result = public.call(event)
    status, effects = result["statusCode"], set(public.effects)
    assert 200 <= status < 500, f"answered {status}"
    for name, value in result["headers"].items():
        assert f"{name}: {value}".isascii()
        assert f"{name}: {value}".isprintable()
    if status < 400:
        assert effects in success[status], f"answered {status} with {effects}"
        return str(status)
    problem = json.loads(result["body"])
    assert (problem["status"], result["headers"]["Content-Type"]) == (status, "application/problem+json")
    assert problem["detail"]
    assert SECRET not in result["body"]
    assert not effects, f"refused, but for {effects}"
    return str(status)


KEPT = ({"event"}, {"event", "mark"}, {"event", "content"}, {"event", "mark", "content"})
NOTHING: set[str] = set()


@pytest.mark.parametrize(
    ("route", "make", "success", "common"),
    [
        (HOOK, a_webhook, {200: (*KEPT, NOTHING)}, {"200", "400", "401", "404"}),
        (
            FORM,
            a_submission,
            {202: (*KEPT, NOTHING), 303: (*KEPT, NOTHING), 204: (NOTHING,)},
            {"202", "303", "400", "415"},
        ),
        (OPTIONS, a_preflight, {204: (NOTHING,), 202: KEPT, 303: KEPT}, {"204", "403", "404"}),
    ],
    ids=["hook", "form", "options"],
)
def test_every_public_request_is_answered_or_refused(
    public: Plane, route: str, make: Any, success: dict[int, tuple[set[str], ...]], common: set[str]
) -> None:
    plane: Any = public
    answered = storm(route, plane, make, lambda event: met(public, event, success))
    # Some inputs are refused, and some are accepted.
    assert INPUTS < 100 or common <= set(answered), answered


def test_nothing_that_is_secret_is_logged(public: Plane) -> None:
    switch_log(on=True)
    public.logs.keeps = True
    rng = Random(7)
    for _ in range(300):
        public.call(a_webhook(rng))
    public.logs.keeps = False
    switch_log(on=False)
    assert len(public.logs.lines) >= 300
    assert SECRET not in "".join(public.logs.lines)
