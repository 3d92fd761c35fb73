"""Signatures of webhooks: the vectors that providers publish, an independent implementation, and changed bits."""

from __future__ import annotations

import base64
import hmac
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from standardwebhooks import Webhook, WebhookVerificationError, webhooks

from orchestrator.common.errors import InvalidRequest
from orchestrator.events.records import Provider
from orchestrator.events.signatures import TOLERANCE, Unverified, check_secret_and_verification, verify


@dataclass(frozen=True)
class Vector:
    """A request that its provider has signed."""

    provider: Provider
    secret: str
    headers: Mapping[str, str]
    body: bytes
    at: datetime = datetime(2026, 11, 16, 12, tzinfo=UTC)
    verification: Mapping[str, str] = field(default_factory=dict)
    signed_headers: tuple[str, ...] = ()
    """The headers of which no bit may change."""

    def verify(self) -> Unverified | None:
        return verify(self.provider, self.secret.encode(), self.verification, self.headers, self.body, at=self.at)

    def with_header(self, name: str, value: str) -> Vector:
        return replace(self, headers={**self.headers, name: value})

    def without_header(self, name: str) -> Vector:
        return replace(self, headers={each: value for each, value in self.headers.items() if each != name})


def seconds(number: int) -> datetime:
    return datetime.fromtimestamp(number, UTC)


GITHUB = Vector(
    # docs.github.com, "Validating webhook deliveries", "Testing the webhook payload validation"
    Provider.GITHUB,
    "It's a Secret to Everybody",
    {"x-hub-signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"},
    b"Hello, World!",
    signed_headers=("x-hub-signature-256",),
)
SLACK = Vector(
    # docs.slack.dev, "Verifying requests from Slack"
    Provider.SLACK,
    "8f742231b10e8888abcd99yyyzzz85a5",
    {
        "x-slack-request-timestamp": "1531420618",
        "x-slack-signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
    },
    b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V"
    b"&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text="
    b"&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN"
    b"&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c",
    seconds(1531420618),
    signed_headers=("x-slack-request-timestamp", "x-slack-signature"),
)
STANDARD = Vector(
    # The vector in the reference libraries of github.com/standard-webhooks
    Provider.STANDARD_WEBHOOKS,
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    },
    b'{"test": 2432232314}',
    seconds(1614265330),
    signed_headers=("webhook-id", "webhook-timestamp", "webhook-signature"),
)
STRIPE = Vector(
    # The vector in the tests of Stripe's own library for .NET: EventUtilityTest
    Provider.STRIPE,
    "webhook_secret",
    {
        "stripe-signature": "t=1533204620,v1=f0bdba6d4eacbd8ad8a3bbadd7248e633ec1477f7899c124c51b39405fa36613,"
        "v0=63f3a72374a733066c4be69ed7f8e5ac85c22c9f0a6a612ab9a025a9e4ee7eef"
    },
    json.dumps(
        {
            "id": "evt_123",
            "object": "event",
            "account": "acct_123",
            "api_version": "2017-05-25",
            "created": 1533204620,
            "data": {
                "object": {
                    "id": "ii_123",
                    "object": "invoiceitem",
                    "amount": 1000,
                    "currency": "usd",
                    "customer": "cus_123",
                    "date": 1533204620,
                    "description": "Test Invoice Item",
                    "discountable": False,
                    "invoice": "in_123",
                    "livemode": False,
                    "metadata": {},
                    "period": {"start": 1533204620, "end": 1533204620},
                    "plan": None,
                    "proration": False,
                    "quantity": None,
                    "subscription": None,
                }
            },
            "livemode": False,
            "pending_webhooks": 1,
            "request": {"id": "req_123", "idempotency_key": "idempotency-key-123"},
            "type": "invoiceitem.created",
        },
        indent=2,
    ).encode()
    + b"\n",
    seconds(1533204620),
)
SHOPIFY = Vector(
    # Shopify publishes no vector. This one was made with the command line of OpenSSL.
    Provider.SHOPIFY,
    "hush-this-is-a-client-secret",
    {"x-shopify-hmac-sha256": "qMVqC/cW9VPMPlQilpBqSnP9anZx5H4nGMnXapEQG64="},
    b'{"id":820982911946154508,"email":"jon@example.com"}',
    signed_headers=("x-shopify-hmac-sha256",),
)
RFC_4231 = Vector(
    # RFC 4231, test case 2, with SHA-512
    Provider.HMAC,
    "Jefe",
    {
        "x-signature": "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554"
        "9758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737"
    },
    b"what do ya want for nothing?",
    verification={"header": "X-Signature", "algorithm": "sha512"},
    signed_headers=("x-signature",),
)
RFC_2202 = Vector(
    # RFC 2202, test case 2 of HMAC-SHA-1, in base64 and with a prefix
    Provider.HMAC,
    "Jefe",
    {"x-signature": "v1 " + base64.b64encode(bytes.fromhex("effcdf6ae5eb2fa2d27416d5f184df9c259a7c79")).decode()},
    b"what do ya want for nothing?",
    verification={"header": "X-Signature", "algorithm": "sha1", "encoding": "base64", "prefix": "v1 "},
    signed_headers=("x-signature",),
)
RFC_4231_DEFAULTS = Vector(
    # RFC 4231, test case 2, with what a source gets that names its header only
    Provider.HMAC,
    "Jefe",
    {"x-signature": "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
    b"what do ya want for nothing?",
    verification={"header": "X-Signature"},
    signed_headers=("x-signature",),
)
SHARED = Vector(
    Provider.SHARED_SECRET,
    "a-long-shared-secret",
    {"authorization": "Bearer a-long-shared-secret"},
    b"anything",
    verification={"header": "Authorization", "prefix": "Bearer "},
    signed_headers=("authorization",),
)
VECTORS = {
    "github": GITHUB,
    "slack": SLACK,
    "standard": STANDARD,
    "stripe": STRIPE,
    "shopify": SHOPIFY,
    "hmac sha512": RFC_4231,
    "hmac sha1": RFC_2202,
    "hmac": RFC_4231_DEFAULTS,
    "shared": SHARED,
}
for_each_vector = pytest.mark.parametrize("vector", VECTORS.values(), ids=VECTORS)


@for_each_vector
def test_a_request_signed_by_its_provider_is_verified(vector: Vector) -> None:
    assert vector.verify() is None


def test_a_source_that_checks_nothing_takes_everything() -> None:
    assert verify(Provider.NONE, None, {}, {}, b"anything", at=STANDARD.at) is None


@pytest.mark.parametrize("provider", [each for each in Provider if each is not Provider.NONE])
def test_without_a_secret_nothing_is_verified(provider: Provider) -> None:
    for secret in (None, b""):
        assert isinstance(verify(provider, secret, {"header": "x"}, {"x": ""}, b"", at=STANDARD.at), Unverified)


# Changed bits


def each_flipped(data: bytes) -> Iterator[bytes]:
    """The data with one changed bit, for every bit."""
    for bit in range(len(data) * 8):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        yield bytes(changed)


@pytest.mark.parametrize("name", [name for name in VECTORS if name != "shared"])
def test_every_changed_bit_of_the_body_is_refused(name: str) -> None:
    vector = VECTORS[name]
    accepted = [body for body in each_flipped(vector.body) if replace(vector, body=body).verify() is None]
    assert not accepted


@for_each_vector
def test_every_changed_bit_of_the_secret_is_refused(vector: Vector) -> None:
    secrets = [secret.decode("latin-1") for secret in each_flipped(vector.secret.encode())]
    assert not [secret for secret in secrets if replace(vector, secret=secret).verify() is None]


@for_each_vector
def test_every_changed_bit_of_a_signed_header_is_refused(vector: Vector) -> None:
    for name in vector.signed_headers:
        values = [value.decode("latin-1") for value in each_flipped(vector.headers[name].encode())]
        assert not [value for value in values if vector.with_header(name, value).verify() is None]


def test_every_changed_bit_of_stripes_time_and_signature_is_refused() -> None:
    # The element v0 is of another scheme, and is not looked at.
    header = STRIPE.headers["stripe-signature"].partition(",v0=")[0]
    assert STRIPE.with_header("stripe-signature", header).verify() is None
    values = [value.decode("latin-1") for value in each_flipped(header.encode())]
    assert not [value for value in values if STRIPE.with_header("stripe-signature", value).verify() is None]


@for_each_vector
def test_a_missing_header_is_named(vector: Vector) -> None:
    for name in vector.headers:
        refused = vector.without_header(name).verify()
        assert refused is not None
        assert re.search(rf"header {name} is missing", refused.reason, re.IGNORECASE)


@for_each_vector
@pytest.mark.parametrize("value", ["", " ", "\xe9", "\u20ac" * 9, "\ud800", "v1,\xe9", "t=\u0661,v1=\xe9", "=" * 999])
def test_a_header_that_is_not_ascii_is_refused_and_no_error(vector: Vector, value: str) -> None:
    for name in vector.headers:
        assert isinstance(vector.with_header(name, value).verify(), Unverified)


@for_each_vector
def test_the_reason_has_neither_the_secret_nor_the_signature(vector: Vector) -> None:
    changed = [replace(vector, body=b"another"), replace(vector, at=vector.at + timedelta(days=1))]
    changed += [vector.with_header(name, "sent") for name in vector.headers]
    for each in changed:
        refused = each.verify()
        if refused is not None:
            shown = refused.reason
            assert vector.secret not in shown
            assert not any(value in shown for value in vector.headers.values())
            assert "sent" not in shown


# Time


@pytest.mark.parametrize("vector", [SLACK, STANDARD, STRIPE], ids=["slack", "standard", "stripe"])
def test_a_signature_is_good_for_five_minutes_in_either_direction(vector: Vector) -> None:
    for offset in (TOLERANCE, -TOLERANCE):
        assert replace(vector, at=vector.at + offset).verify() is None
        refused = replace(vector, at=vector.at + offset * 1.01).verify()
        assert refused is not None
        assert "more than 5 minutes" in refused.reason


@pytest.mark.parametrize("text", ["", "-1", "1e3", "1531420618.0", " 1531420618", "\u0661", "9" * 12, "9" * 5_000])
def test_a_time_that_is_no_number_of_seconds_is_refused_even_if_it_is_signed(text: str) -> None:
    headers = signed_by_slack(text, b"body")
    assert isinstance(replace(SLACK, headers=headers, body=b"body").verify(), Unverified)


def signed_by_slack(text: str, body: bytes) -> dict[str, str]:
    digest = hmac.digest(SLACK.secret.encode(), b"v0:" + text.encode() + b":" + body, "sha256").hex()
    return {"x-slack-request-timestamp": text, "x-slack-signature": f"v0={digest}"}


def test_the_last_second_that_has_eleven_digits_is_no_error() -> None:
    headers = signed_by_slack("9" * 11, b"body")
    assert isinstance(replace(SLACK, headers=headers, body=b"body").verify(), Unverified)


# Stripe


def test_stripe_may_send_several_signatures_while_a_secret_is_rotated() -> None:
    header = STRIPE.headers["stripe-signature"].replace(",v1=", f",v1={'0' * 64},v1=")
    assert STRIPE.with_header("stripe-signature", header).verify() is None


def test_a_stripe_signature_with_two_times_has_none() -> None:
    header = STRIPE.headers["stripe-signature"]
    refused = STRIPE.with_header("stripe-signature", f"t=1533204620,{header}").verify()
    assert refused is not None
    assert "exactly one time" in refused.reason


def test_stripes_old_scheme_is_not_accepted() -> None:
    header = STRIPE.headers["stripe-signature"].replace("v1=", "v0=")
    assert isinstance(STRIPE.with_header("stripe-signature", header).verify(), Unverified)


# Standard Webhooks


def test_one_of_several_signatures_is_enough() -> None:
    ours = STANDARD.headers["webhook-signature"]
    several = f"v1,{'A' * 43}= v1a,{'A' * 86}== {ours} v2,x"
    assert STANDARD.with_header("webhook-signature", several).verify() is None


def test_a_signature_of_another_version_is_not_compared() -> None:
    ours = STANDARD.headers["webhook-signature"].removeprefix("v1,")
    for version in ("v1a", "v2", "V1", ""):
        assert isinstance(STANDARD.with_header("webhook-signature", f"{version},{ours}").verify(), Unverified)


def test_the_secret_may_come_without_its_prefix_or_its_padding() -> None:
    padded = Webhook("whsec_" + base64.b64encode(b"twenty-five bytes of key!").decode())
    headers = {**STANDARD.headers, "webhook-signature": signature_of(padded, STANDARD)}
    text = base64.b64encode(b"twenty-five bytes of key!").decode()
    for secret in (f"whsec_{text}", text, text.rstrip("="), f"whsec_{text.rstrip('=')}"):
        assert replace(STANDARD, secret=secret, headers=headers).verify() is None


def test_the_names_of_svix_are_known_too() -> None:
    headers = {name.replace("webhook-", "svix-"): value for name, value in STANDARD.headers.items()}
    assert replace(STANDARD, headers=headers).verify() is None


def test_the_names_of_both_are_not_mixed() -> None:
    headers = {**STANDARD.headers, "svix-signature": STANDARD.headers["webhook-signature"]}
    del headers["webhook-signature"]
    assert isinstance(replace(STANDARD, headers=headers).verify(), Unverified)


def test_an_id_with_a_full_stop_cannot_take_bytes_from_the_body() -> None:
    """The provider signed a body that begins with digits. Moved into the id, they would make another event of it."""
    body = b"1614265330.stolen"
    signed = replace(STANDARD, body=body, headers={**STANDARD.headers, "webhook-id": "msg"})
    signature = signature_of(Webhook(STANDARD.secret), signed)
    assert signed.with_header("webhook-signature", signature).verify() is None
    moved = {"webhook-id": "msg.1614265330", "webhook-timestamp": "1614265330", "webhook-signature": signature}
    refused = replace(STANDARD, body=b"stolen", headers=moved).verify()
    assert refused is not None
    assert "full stop" in refused.reason


def test_a_secret_that_is_not_base64_is_refused_with_a_reason() -> None:
    refused = replace(STANDARD, secret="whsec_not base64!").verify()
    assert refused is not None
    assert "not base64" in refused.reason


def signature_of(webhook: Webhook, vector: Vector) -> str:
    return webhook.sign(vector.headers["webhook-id"], vector.at, vector.body.decode())


class FrozenTime(datetime):
    """The clock of the independent implementation, which takes none."""

    @classmethod
    def now(cls, tz: Any = None) -> FrozenTime:
        return cls.fromtimestamp(STANDARD.at.timestamp(), tz)


def independently(secret: str, headers: Mapping[str, str], body: str, monkeypatch: pytest.MonkeyPatch) -> bool:
    with monkeypatch.context() as patched:
        patched.setattr(webhooks, "datetime", FrozenTime)
        try:
            Webhook(secret).verify(body, dict(headers), json_parse=False)
        except (WebhookVerificationError, ValueError, TypeError):
            return False
    return True


texts = st.text(st.characters(codec="utf-8"), max_size=40)
messages = st.fixed_dictionaries(
    {
        "key": st.binary(min_size=24, max_size=64),
        "message_id": st.text("abcXYZ019_-", min_size=1, max_size=30),
        "offset": st.integers(min_value=-400, max_value=400),
        "body": texts,
    }
)
spoilers: st.SearchStrategy[Callable[[str], str]] = st.sampled_from(
    [
        lambda text: text,
        lambda text: text + "x",
        lambda text: "x" + text,
        lambda text: text[:-1],
        lambda text: f"{text} {text}",
        lambda _text: "",
        lambda text: text.swapcase(),
    ]
)


@settings(max_examples=300)
@given(message=messages, part=st.sampled_from(["id", "timestamp", "signature", "body"]), spoil=spoilers)
def test_we_agree_with_the_reference_implementation(
    message: dict[str, Any], part: str, spoil: Callable[[str], str]
) -> None:
    secret = "whsec_" + base64.b64encode(message["key"]).decode()
    moment = STANDARD.at + timedelta(seconds=message["offset"])
    signature = Webhook(secret).sign(message["message_id"], moment, message["body"])
    headers = {
        "webhook-id": message["message_id"],
        "webhook-timestamp": str(int(moment.timestamp())),
        "webhook-signature": signature,
    }
    body = message["body"]
    if part == "body":
        body = spoil(body)
    else:
        headers[f"webhook-{part}"] = spoil(headers[f"webhook-{part}"])
    ours = replace(STANDARD, secret=secret, headers=headers, body=body.encode()).verify() is None
    with pytest.MonkeyPatch.context() as monkeypatch:
        theirs = independently(secret, headers, body, monkeypatch)
    if part == "signature" and theirs and not ours:
        # The reference ignores what comes after the end of the base64 text. We compare the text.
        assert base64.b64decode(headers["webhook-signature"].removeprefix("v1,")) == base64.b64decode(signature[3:])
        assert headers["webhook-signature"] != signature
    else:
        assert ours == theirs


# Whatever comes in


@settings(max_examples=200)
@given(
    provider=st.sampled_from([each for each in Provider if each is not Provider.NONE]),
    values=st.lists(st.text(max_size=80), min_size=9, max_size=9),
    body=st.binary(max_size=80),
    secret=st.binary(min_size=1, max_size=40),
)
def test_made_up_headers_are_refused_and_no_error(
    provider: Provider, values: list[str], body: bytes, secret: bytes
) -> None:
    names = sorted({name for vector in VECTORS.values() for name in vector.headers})
    headers = dict(zip(names, values, strict=False))
    verification = {"header": "X-Signature", "algorithm": values[0], "encoding": values[1], "prefix": values[2]}
    assert isinstance(verify(provider, secret, verification, headers, body, at=STANDARD.at), Unverified)


# Configuration


@for_each_vector
def test_a_source_of_each_kind_can_be_configured(vector: Vector) -> None:
    check_secret_and_verification(vector.provider, vector.secret.ljust(8, "A"), vector.verification)


@pytest.mark.parametrize("provider", [Provider.NONE, Provider.HMAC, Provider.SHARED_SECRET])
def test_sources_of_other_providers_may_name_the_headers_of_type_and_delivery_id(provider: Provider) -> None:
    named = {"event_type_header": "X-Event", "delivery_id_header": "X-Delivery"}
    header = {} if provider is Provider.NONE else {"header": "X-Signature"}
    check_secret_and_verification(provider, None if provider is Provider.NONE else "a-long-secret", header | named)


@pytest.mark.parametrize(
    ("provider", "secret", "verification", "says"),
    [
        (Provider.NONE, "a-long-secret", {}, "has no secret"),
        (Provider.GITHUB, None, {}, "needs the secret"),
        (Provider.GITHUB, "tooshor", {}, "8 to 1024 characters"),
        (Provider.GITHUB, "x" * 1025, {}, "8 to 1024 characters"),
        (Provider.GITHUB, "with-\xe9-in-it", {}, "printable ASCII"),
        (Provider.GITHUB, "a-long-secret\n", {}, "printable ASCII"),
        (Provider.GITHUB, " a-long-secret", {}, "without blanks"),
        (Provider.GITHUB, "a-long-secret", {"header": "X"}, "has no field 'header'"),
        (Provider.STANDARD_WEBHOOKS, "whpk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", {}, "asymmetric"),
        (Provider.STANDARD_WEBHOOKS, "whsec_not-base64!", {}, "followed by base64"),
        (Provider.STANDARD_WEBHOOKS, "whsec_==", {}, "followed by base64"),
        (Provider.HMAC, "a-long-secret", {}, "needs 'header'"),
        (Provider.HMAC, "a-long-secret", {"header": "X Y"}, "verification.header"),
        (Provider.HMAC, "a-long-secret", {"header": "X\n"}, "verification.header"),
        (Provider.HMAC, "a-long-secret", {"header": "X", "algorithm": "md5"}, "verification.algorithm"),
        (Provider.HMAC, "a-long-secret", {"header": "X", "encoding": "base32"}, "verification.encoding"),
        (Provider.HMAC, "a-long-secret", {"header": "X", "prefix": "x" * 51}, "verification.prefix"),
        (Provider.HMAC, "a-long-secret", {"header": "X", "prefix": "\xe9"}, "verification.prefix"),
        (Provider.HMAC, "a-long-secret", {"header": "X", "event_type_header": ""}, "verification.event_type_header"),
        (Provider.SHARED_SECRET, "a-long-secret", {"header": "X", "algorithm": "sha1"}, "has no field 'algorithm'"),
    ],
)
def test_a_source_that_could_never_verify_is_refused(
    provider: Provider, secret: str | None, verification: dict[str, str], says: str
) -> None:
    with pytest.raises(InvalidRequest, match=re.escape(says)) as refused:
        check_secret_and_verification(provider, secret, verification)
    assert secret is None or secret not in str(refused.value)


@pytest.mark.parametrize("field", ["event_type_header", "delivery_id_header"])
@pytest.mark.parametrize("header", ["Authorization", "cookie", "X-Api-Key", "Proxy-Authorization"])
def test_a_header_that_holds_secrets_is_no_name_of_an_event(field: str, header: str) -> None:
    with pytest.raises(InvalidRequest, match=f"verification.{field}: .* holds secrets"):
        check_secret_and_verification(Provider.NONE, None, {field: header})


@pytest.mark.parametrize("field", ["event_type_header", "delivery_id_header"])
def test_the_header_of_a_shared_secret_is_no_name_of_an_event(field: str) -> None:
    with pytest.raises(InvalidRequest, match="holds secrets"):
        check_secret_and_verification(Provider.SHARED_SECRET, "12345678", {"header": "X-Token", field: "x-token"})
    check_secret_and_verification(Provider.SHARED_SECRET, "12345678", {"header": "X-Token", field: "X-Event"})


def test_a_secret_of_standard_webhooks_with_a_short_key_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="16 bytes"):
        check_secret_and_verification(Provider.STANDARD_WEBHOOKS, "whsec_AAECAwQFBgcICQoLDA0O", {})
    check_secret_and_verification(Provider.STANDARD_WEBHOOKS, "whsec_AAECAwQFBgcICQoLDA0ODw==", {})
