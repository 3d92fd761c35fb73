"""Checks that a webhook comes from the provider of its source.

| provider          | headers                                                  | signed bytes            | as     |
|-------------------|----------------------------------------------------------|-------------------------|--------|
| stripe            | Stripe-Signature: t=...,v1=...                           | {t}.{body}              | hex    |
| github            | X-Hub-Signature-256: sha256=...                          | {body}                  | hex    |
| shopify           | X-Shopify-Hmac-Sha256                                    | {body}                  | base64 |
| slack             | X-Slack-Signature: v0=..., X-Slack-Request-Timestamp     | v0:{timestamp}:{body}   | hex    |
| standard-webhooks | webhook-signature: v1,..., webhook-id, webhook-timestamp | {id}.{timestamp}.{body} | base64 |
| hmac              | as the source says                                       | {body}                  | either |
| shared-secret     | as the source says: the secret itself                    |                         |        |
| none              |                                                          |                         |        |

Signatures are HMAC-SHA256, unless a source of the kind ``hmac`` says otherwise. They are compared as they were sent, as
bytes and in constant time: nothing but the exact text of the signature is accepted.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from orchestrator.common.errors import InvalidRequest
from orchestrator.events.incoming import SECRET_HEADERS
from orchestrator.events.records import Provider

TOLERANCE = timedelta(minutes=5)
"""How far the time of a signature may be from now, in either direction."""

HEADER = "header"
ALGORITHM = "algorithm"
ENCODING = "encoding"
PREFIX = "prefix"
EVENT_TYPE_HEADER = "event_type_header"
DELIVERY_ID_HEADER = "delivery_id_header"
"""The fields of a source's ``verification``."""

ALGORITHMS = {"sha256": hashlib.sha256, "sha1": hashlib.sha1, "sha512": hashlib.sha512}
ENCODINGS = ("hex", "base64")

MIN_SECRET_CHARACTERS = 8
MAX_SECRET_CHARACTERS = 1024
MAX_PREFIX_CHARACTERS = 50
_MIN_STANDARD_KEY_BYTES = 16

_NAMES = frozenset({EVENT_TYPE_HEADER, DELIVERY_ID_HEADER})
_FIELDS: Mapping[Provider, frozenset[str]] = {
    Provider.HMAC: frozenset({HEADER, ALGORITHM, ENCODING, PREFIX}) | _NAMES,
    Provider.SHARED_SECRET: frozenset({HEADER, PREFIX}) | _NAMES,
    Provider.NONE: _NAMES,
}
"""The fields of ``verification`` that a provider has. The others need none."""

_HEADER_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")
_PRINTABLE_ASCII = re.compile(r"[\x20-\x7e]*")
_SECONDS = re.compile(r"[0-9]{1,11}")
_STANDARD_SECRET_PREFIX = "whsec_"  # noqa: S105 - how every such secret begins
_ASYMMETRIC_SECRET_PREFIXES = ("whpk_", "whsk_")


@dataclass(frozen=True, slots=True)
class Unverified:
    """The webhook is refused. The reason names no secret and no signature, so that it can be answered and logged."""

    reason: str


@dataclass(frozen=True, slots=True)
class _Signed:
    """A request, and the means to check it. Names of headers are in lower case."""

    secret: bytes
    verification: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    at: datetime


def verify(
    provider: Provider,
    secret: bytes | None,
    verification: Mapping[str, str],
    headers: Mapping[str, str],
    body: bytes,
    *,
    at: datetime,
) -> Unverified | None:
    """``None`` if the request is the provider's. ``headers`` have names in lower case."""
    if provider is Provider.NONE:
        return None
    if not secret:
        return Unverified("The source has no secret, so that no request can be verified. Create the source again.")
    return _CHECKS[provider](_Signed(secret, verification, headers, body, at))


def check_secret_and_verification(provider: Provider, secret: str | None, verification: Mapping[str, str]) -> None:
    """Refuse a source that could never verify a webhook, with a message for the person who creates it."""
    _check_secret(provider, secret)
    _check_fields(provider, verification)


# Providers


def _stripe(given: _Signed) -> Unverified | None:
    header = given.headers.get("stripe-signature")
    if header is None:
        return _missing("Stripe-Signature")
    elements = [element.strip().partition("=") for element in header.split(",")]
    times = [value for name, _, value in elements if name == "t"]
    if len(times) != 1:
        return Unverified("The header Stripe-Signature does not have exactly one time (t=...).")
    signed = b"%b.%b" % (_bytes(times[0]), given.body)
    # The key is the whole text of the secret, with its prefix whsec_.
    expected = hmac.digest(given.secret, signed, "sha256").hex()
    return _compared(expected, [value for name, _, value in elements if name == "v1"]) or _at_time(times[0], given.at)


def _github(given: _Signed) -> Unverified | None:
    header = given.headers.get("x-hub-signature-256")
    if header is None:
        return _missing("X-Hub-Signature-256")
    return _compared(f"sha256={hmac.digest(given.secret, given.body, 'sha256').hex()}", [header])


def _shopify(given: _Signed) -> Unverified | None:
    header = given.headers.get("x-shopify-hmac-sha256")
    if header is None:
        return _missing("X-Shopify-Hmac-Sha256")
    return _compared(_base64(hmac.digest(given.secret, given.body, "sha256")), [header])


def _slack(given: _Signed) -> Unverified | None:
    header, seconds = given.headers.get("x-slack-signature"), given.headers.get("x-slack-request-timestamp")
    if header is None:
        return _missing("X-Slack-Signature")
    if seconds is None:
        return _missing("X-Slack-Request-Timestamp")
    signed = b"v0:%b:%b" % (_bytes(seconds), given.body)
    expected = f"v0={hmac.digest(given.secret, signed, 'sha256').hex()}"
    return _compared(expected, [header]) or _at_time(seconds, given.at)


def _standard_webhooks(given: _Signed) -> Unverified | None:
    # Svix, which the specification comes from, still sends its own names.
    family = "webhook" if "webhook-id" in given.headers else "svix"
    names = {part: f"{family}-{part}" for part in ("id", "timestamp", "signature")}
    found = {part: given.headers.get(name) for part, name in names.items()}
    for part, value in found.items():
        if not value:
            return _missing(f"webhook-{part}")
    message_id, seconds, signatures = (found[part] or "" for part in ("id", "timestamp", "signature"))
    if "." in message_id:
        # A full stop separates the signed parts. In the id, it could move bytes of the body into the other parts.
        return Unverified("The header webhook-id has a full stop, which the specification does not allow.")
    key = _standard_key(given.secret)
    if key is None:
        return Unverified("The secret of the source is not base64. Create the source again with the right secret.")
    signed = b"%b.%b.%b" % (_bytes(message_id), _bytes(seconds), given.body)
    expected = f"v1,{_base64(hmac.digest(key, signed, 'sha256'))}"
    return _compared(expected, signatures.split(" ")) or _at_time(seconds, given.at)


def _generic(given: _Signed) -> Unverified | None:
    name = given.verification.get(HEADER, "")
    header = given.headers.get(name.lower())
    if header is None:
        return _missing(name)
    algorithm = given.verification.get(ALGORITHM, "sha256")
    if algorithm not in ALGORITHMS:
        return Unverified(f"The source's algorithm is not one of {', '.join(ALGORITHMS)}. Create the source again.")
    digest = hmac.digest(given.secret, given.body, algorithm)
    text = _base64(digest) if given.verification.get(ENCODING) == "base64" else digest.hex()
    return _compared(given.verification.get(PREFIX, "") + text, [header])


def _shared_secret(given: _Signed) -> Unverified | None:
    name = given.verification.get(HEADER, "")
    header = given.headers.get(name.lower())
    if header is None:
        return _missing(name)
    expected = _bytes(given.verification.get(PREFIX, "")) + given.secret
    if hmac.compare_digest(expected, _bytes(header)):
        return None
    return Unverified(f"The header {name} does not have the source's secret.")


_CHECKS: Mapping[Provider, Callable[[_Signed], Unverified | None]] = {
    Provider.STRIPE: _stripe,
    Provider.GITHUB: _github,
    Provider.SHOPIFY: _shopify,
    Provider.SLACK: _slack,
    Provider.STANDARD_WEBHOOKS: _standard_webhooks,
    Provider.HMAC: _generic,
    Provider.SHARED_SECRET: _shared_secret,
}


# Parts of checks


def _compared(expected: str, signatures: Iterable[str]) -> Unverified | None:
    wanted = _bytes(expected)
    if any(hmac.compare_digest(wanted, _bytes(signature)) for signature in signatures):
        return None
    return Unverified(
        "The signature does not match. Compare the secret of the source with the provider's, and make sure that "
        "nothing on the way changes the body."
    )


def _at_time(seconds: str, at: datetime) -> Unverified | None:
    if not _SECONDS.fullmatch(seconds):
        return Unverified("The time of the signature is not a number of seconds since 1970.")
    signed_at = datetime.fromtimestamp(int(seconds), UTC)
    if abs(at - signed_at) <= TOLERANCE:
        return None
    minutes = TOLERANCE // timedelta(minutes=1)
    return Unverified(f"The time of the signature is more than {minutes} minutes from now.")


def _missing(header: str) -> Unverified:
    return Unverified(f"The header {header} is missing.")


def _bytes(text: str) -> bytes:
    """The text in UTF-8. JSON text may contain half of a surrogate pair, which equals nothing but itself."""
    return text.encode(errors="surrogatepass")


def _base64(digest: bytes) -> str:
    return base64.b64encode(digest).decode()


def _standard_key(secret: bytes) -> bytes | None:
    """The key that the text of a secret stands for: the part after ``whsec_`` is base64, with or without padding."""
    text = secret.removeprefix(_STANDARD_SECRET_PREFIX.encode()).rstrip(b"=")
    try:
        return base64.b64decode(text + b"=" * (-len(text) % 4), validate=True) or None
    except binascii.Error:
        return None


# Configuration


def _check_secret(provider: Provider, secret: str | None) -> None:
    if provider is Provider.NONE:
        if secret is not None:
            raise InvalidRequest("secret: a source of the provider 'none' checks nothing, so it has no secret.")
        return
    if secret is None:
        raise InvalidRequest(f"secret: a source of the provider '{provider}' needs the secret that the provider uses.")
    if not MIN_SECRET_CHARACTERS <= len(secret) <= MAX_SECRET_CHARACTERS:
        raise InvalidRequest(
            f"secret: use {MIN_SECRET_CHARACTERS} to {MAX_SECRET_CHARACTERS} characters; shorter ones can be guessed."
        )
    if not _PRINTABLE_ASCII.fullmatch(secret) or secret != secret.strip():
        raise InvalidRequest("secret: use printable ASCII characters, without blanks at the beginning or the end.")
    if provider is Provider.STANDARD_WEBHOOKS:
        if secret.startswith(_ASYMMETRIC_SECRET_PREFIXES):
            raise InvalidRequest("secret: asymmetric keys (whpk_, whsk_) are not supported; use a secret (whsec_).")
        key = _standard_key(secret.encode())
        if key is None:
            raise InvalidRequest("secret: a secret of Standard Webhooks is whsec_ followed by base64.")
        if len(key) < _MIN_STANDARD_KEY_BYTES:
            raise InvalidRequest(
                f"secret: the key of Standard Webhooks has at least {_MIN_STANDARD_KEY_BYTES} bytes in base64; a "
                "shorter one can be guessed."
            )


def _check_fields(provider: Provider, verification: Mapping[str, str]) -> None:
    allowed = _FIELDS.get(provider, frozenset())
    if unknown := sorted(set(verification) - allowed):
        known = f"its fields are {', '.join(sorted(allowed))}" if allowed else "it has no fields"
        raise InvalidRequest(f"verification: the provider '{provider}' has no field {ascii(unknown[0])[:60]}; {known}.")
    if HEADER in allowed and HEADER not in verification:
        raise InvalidRequest(f"verification: the provider '{provider}' needs 'header', the name of the header.")
    for name in (HEADER, EVENT_TYPE_HEADER, DELIVERY_ID_HEADER):
        if name in verification and not _HEADER_NAME.fullmatch(verification[name]):
            raise InvalidRequest(f"verification.{name}: the name of a header has letters, digits, '-' and '_' only.")
    secret = SECRET_HEADERS | ({verification[HEADER].lower()} if provider is Provider.SHARED_SECRET else set())
    for name in (EVENT_TYPE_HEADER, DELIVERY_ID_HEADER):
        if verification.get(name, "").lower() in secret:
            raise InvalidRequest(f"verification.{name}: that header holds secrets, which events do not show.")
    if verification.get(ALGORITHM, "sha256") not in ALGORITHMS:
        raise InvalidRequest(f"verification.algorithm: use one of {', '.join(ALGORITHMS)}.")
    if verification.get(ENCODING, "hex") not in ENCODINGS:
        raise InvalidRequest(f"verification.encoding: use one of {', '.join(ENCODINGS)}.")
    prefix = verification.get(PREFIX, "")
    if len(prefix) > MAX_PREFIX_CHARACTERS or not _PRINTABLE_ASCII.fullmatch(prefix):
        raise InvalidRequest(
            f"verification.prefix: use at most {MAX_PREFIX_CHARACTERS} printable ASCII characters, such as 'sha256='."
        )
