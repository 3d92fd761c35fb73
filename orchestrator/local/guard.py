"""Protects the emulator, which by itself accepts every request, and runs code.

- Requests from web pages are refused. Browsers name the site that a request comes from (``Origin``,
  ``Sec-Fetch-Site``), and pages cannot change these headers. A page that uses DNS rebinding is recognised by ``Host``.
- Requests of other users of this machine are refused. A request must be signed (SigV4) with the home's access key, or
  with a key that the emulator issued to a role's session or an IAM user. Functions sign with the account id, which is
  not secret, and the home's secret.
- A signed request cannot be turned into another one. It must have been signed within the last 15 minutes, or be a
  presigned URL that has not expired, and the signature must cover the host, the body and all ``x-amz-`` headers.

Three kinds of requests need no signature: the health check, the response of a custom resource, at a URL that only its
function knows, and requests to routes of an HTTP API that everybody may call. Behind those, the function checks an API
key or a provider's signature, as on AWS. Web pages may call them, too: a form is sent by a page.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs
from xml.sax.saxutils import escape

from hypercorn.typing import (
    ASGIFramework,
    ASGIReceiveCallable,
    ASGIReceiveEvent,
    ASGISendCallable,
    ASGISendEvent,
    HTTPScope,
    Scope,
)
from ministack.core import sigv4  # type: ignore[import-untyped]

from orchestrator.local.access_key import GET_IT

_COMMON_KEY_ID = "test"
"""Many clients of emulators use this key id. Ministack treats it as its root user's, so the guard refuses it."""

HEALTH = "/_ministack/health"
CUSTOM_RESOURCES = "/_ministack/cfn-response/"

WRONG_HOST = "This emulator answers only at 127.0.0.1, localhost and names that end in .localhost, with its own port."
WRONG_SITE = "This emulator accepts no requests from web pages. Use a program that signs its requests, such as berth."
GET_THE_KEY = f"Set the environment variables with the key: {GET_IT}"
NO_KEY = f"The request is not signed with the access key of this emulator (SigV4). {GET_THE_KEY}"
WRONG_SECRET = f"The request's signature does not match: it was signed with another secret access key. {GET_THE_KEY}"
EXPIRED = "The presigned URL has expired, or is valid for more than seven days. Create another."
STALE = (
    "The request's signature is more than 15 minutes old, or from the future. Sign it again, by this machine's clock."
)
OTHER_BODY = "The body is not the one that was signed (x-amz-content-sha256)."
UNSIGNED_BODY = (
    "The signature does not cover the body (x-amz-content-sha256). Over HTTP, AWS clients sign the body. Only a "
    "presigned upload to S3 (PUT) may have an unsigned body."
)
UNSIGNED_HEADERS = "The signature must cover these headers: "

SIGNED_WITHIN = timedelta(minutes=15)
"""AWS's own limit, for clocks that are fast or slow."""

PRESIGNED_FOR_AT_MOST = timedelta(days=7)

# Clients of these services expect errors as XML. Clients of all other services, and of Berth's API, expect JSON.
_XML_SERVICES = frozenset({"cloudformation", "ec2", "iam", "monitoring", "s3", "sns", "sts"})

_SIGNED_IN_CHUNKS = frozenset({"STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"})

_HTTP_API = re.compile(r"([a-f0-9]{8})\.execute-api\.localhost:[0-9]+")

Headers = Iterable[tuple[bytes, bytes]]


@dataclass(frozen=True)
class Issued:
    """The keys and tokens that the emulator has issued."""

    secret: Callable[[str, str], str | None]
    """The secret for an access key id and a session token (empty if there is none); None if the key is unknown."""

    is_awaited: Callable[[str], bool]
    """True while a custom resource waits for a response at the URL with this token."""

    is_open: Callable[[str, str, str], bool] = lambda _api, _method, _path: False
    """True if the HTTP API with this id has a route for this method and path that needs no AWS credentials."""


def guarded(emulator: ASGIFramework, port: int, issued: Issued) -> ASGIFramework:
    """The emulator behind the guard. A refused request gets the reason, and what to do."""
    guard = _Guard(port, issued)

    async def app(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        if scope["type"] == "lifespan":
            await emulator(scope, receive, send)
        elif scope["type"] == "websocket":
            # Nothing here uses WebSockets. Closing one before it is accepted answers with status 403.
            await send({"type": "websocket.close", "code": 1008, "reason": None})
        else:
            request = _Request.of(scope)
            refusal = guard.refusal(request)
            body = await _read(receive, keep=refusal is None)
            if body is None:
                return
            refusal = refusal or guard.refusal_with(request, body)
            if refusal is not None:
                await _refuse(request, refusal, send)
            else:
                # A function behind an open route says itself which pages may read its responses.
                sending = send if guard.is_open(request) else _without_cors(send)
                await emulator(scope, _replayed(body, receive), sending)

    return app


def issued_by_ministack() -> Issued:
    """The keys and tokens of ministack. Imported here because its services read their state on import."""
    from ministack.core import iam_evaluator
    from ministack.services import apigateway  # type: ignore[import-untyped]
    from ministack.services.cloudformation import custom_resource  # type: ignore[import-untyped]

    def secret(access_key_id: str, session_token: str) -> str | None:
        if access_key_id == _COMMON_KEY_ID:
            return None
        account = iam_evaluator.find_iam_access_key_account(access_key_id)
        found = iam_evaluator.resolve_credential(access_key_id, account, session_token)
        return found.secret_access_key if isinstance(found, iam_evaluator.ResolvedCredential) else None

    def is_open(api: str, method: str, path: str) -> bool:
        # The emulator matches a path without its first segment if a stage has that name. No stage of Berth's has.
        return bool(apigateway.route_authorization_type(api, "$default", method, path) == "NONE")

    return Issued(secret, lambda token: token in custom_resource._pending, is_open)


@dataclass(frozen=True)
class _Request:
    method: str
    raw_path: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    """Headers by name in lower case. A repeated header is joined by commas, as SigV4 requires."""

    @classmethod
    def of(cls, scope: HTTPScope) -> "_Request":
        headers: dict[str, str] = {}
        for raw_name, raw_value in scope["headers"]:
            name, value = raw_name.decode("latin-1").lower(), sigv4.decode_header_value(raw_value)
            headers[name] = f"{headers[name]},{value}" if name in headers else value
        query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        return cls(scope["method"], scope["raw_path"].decode("latin-1"), scope["path"], query, headers)

    @property
    def is_presigned(self) -> bool:
        return "authorization" not in self.headers and "X-Amz-Signature" in self.query

    @property
    def session_token(self) -> str:
        if self.is_presigned:
            return self.query.get("X-Amz-Security-Token", [""])[0]
        return self.headers.get("x-amz-security-token", "")

    @property
    def signature(self) -> sigv4.HeaderSignature | None:
        if self.is_presigned:
            parsed = sigv4.parse_query_signature(self.query)
        elif self.headers.get("authorization", "").startswith("AWS4-HMAC-SHA256 "):
            parsed = sigv4.parse_header_signature(self.headers)
        else:
            return None
        # Comparing a signature that is not ASCII would raise an error.
        is_text = isinstance(parsed, sigv4.HeaderSignature) and parsed.signature.isascii()
        return parsed if is_text else None


@dataclass(frozen=True)
class _Guard:
    port: int
    issued: Issued

    def refusal(self, request: _Request) -> str | None:
        """The reason to refuse the request before its body is read, if there is one."""
        host = request.headers.get("host", "")
        if not re.fullmatch(rf"(?i)(127\.0\.0\.1|([a-z0-9-]+\.)*localhost):{self.port}", host):
            return WRONG_HOST
        if self.is_open(request):
            return None
        if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return WRONG_SITE
        if request.headers.get("origin", f"http://{host}") != f"http://{host}":
            return WRONG_SITE
        if self._needs_no_signature(request) or self._secret(request) is not None:
            return None
        return NO_KEY

    def refusal_with(self, request: _Request, body: bytes) -> str | None:
        """The reason to refuse the request once its body is read, if there is one."""
        if self._needs_no_signature(request):
            return None
        signature = request.signature
        if signature is None or sigv4.header_signature_failure(
            signature,
            self._secret(request),
            request.method,
            request.raw_path,
            request.query,
            request.headers,
            body,
            presigned=request.is_presigned,
        ):
            return WRONG_SECRET
        return (
            _not_covered(request, signature) or _out_of_time(request, signature) or _changed(request, signature, body)
        )

    def is_open(self, request: _Request) -> bool:
        """True for a request to a route of an HTTP API that everybody may call."""
        api = _HTTP_API.fullmatch(request.headers.get("host", ""))
        # The emulator takes some headers for the name of a service.
        plain = not any(name.startswith("x-amz-") for name in request.headers)
        return api is not None and plain and self.issued.is_open(api[1], request.method, request.path)

    def _needs_no_signature(self, request: _Request) -> bool:
        if self.is_open(request) or (request.method == "GET" and request.path == HEALTH):
            return True
        token = request.path.removeprefix(CUSTOM_RESOURCES)
        return request.method == "PUT" and token != request.path and self.issued.is_awaited(token)

    def _secret(self, request: _Request) -> str | None:
        """The secret that the request must be signed with; None if its key is unknown or it has no signature."""
        signature = request.signature
        return self.issued.secret(signature.access_key_id, request.session_token) if signature else None


def _not_covered(request: _Request, signature: sigv4.HeaderSignature) -> str | None:
    """The emulator finds the service and the action by ``Host``, by headers such as ``X-Amz-Target``, and by forms."""
    needed = {"host"} | {name for name in request.headers if name.startswith("x-amz-")}
    if request.is_presigned and "form" in request.headers.get("content-type", "").lower():
        needed.add("content-type")
    # The body's hash is a part of every signature, among the headers or not.
    missing = needed - {"x-amz-content-sha256"} - set(signature.signed_headers.lower().split(";"))
    return f"{UNSIGNED_HEADERS}{', '.join(sorted(missing))}." if missing else None


def _out_of_time(request: _Request, signature: sigv4.HeaderSignature) -> str | None:
    signed_at, now = _moment(signature.amz_date), datetime.now(UTC)
    if signed_at is None or signed_at > now + SIGNED_WITHIN:
        return STALE
    if not request.is_presigned:
        return STALE if signed_at < now - SIGNED_WITHIN else None
    seconds = request.query.get("X-Amz-Expires", [""])[0]
    if not re.fullmatch("[0-9]{1,6}", seconds, re.ASCII):
        return EXPIRED
    lasts = timedelta(seconds=int(seconds))
    return EXPIRED if lasts > PRESIGNED_FOR_AT_MOST or now > signed_at + lasts else None


def _moment(amz_date: str) -> datetime | None:
    try:
        return datetime.strptime(amz_date, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError:
        return None


def _changed(request: _Request, signature: sigv4.HeaderSignature, body: bytes) -> str | None:
    """The reason to refuse the body, because it may not be the one that was signed."""
    content_hash = request.headers.get("x-amz-content-sha256", "")
    if request.is_presigned and signature.service == "s3":
        return UNSIGNED_BODY if body and request.method != "PUT" else None
    if content_hash in _SIGNED_IN_CHUNKS or not content_hash:
        return None  # The check of the signature has covered each chunk's signature, or the body's hash.
    if not re.fullmatch("[0-9a-f]{64}", content_hash, re.ASCII):
        return UNSIGNED_BODY
    return OTHER_BODY if hashlib.sha256(body).hexdigest() != content_hash else None


async def _read(receive: ASGIReceiveCallable, *, keep: bool) -> bytes | None:
    """The request's body, empty unless ``keep``; None if the client has disconnected.

    The body is always read, because many clients read no response before they have sent all of it.
    """
    parts: list[bytes] = []
    while True:
        event = await receive()
        if event["type"] != "http.request":
            return None
        if keep:
            parts.append(event["body"])
        if not event["more_body"]:
            return b"".join(parts)


def _replayed(body: bytes, receive: ASGIReceiveCallable) -> ASGIReceiveCallable:
    first = True

    async def again() -> ASGIReceiveEvent:
        nonlocal first
        if not first:
            return await receive()
        first = False
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _without_cors(send: ASGISendCallable) -> ASGISendCallable:
    """Remove the CORS headers, with which the emulator lets every web page read its responses."""

    async def without(event: ASGISendEvent) -> None:
        if event["type"] == "http.response.start":
            event["headers"] = [
                (name, value) for name, value in event["headers"] if not name.lower().startswith(b"access-control-")
            ]
        await send(event)

    return without


async def _refuse(request: _Request, reason: str, send: ASGISendCallable) -> None:
    signature = request.signature
    if signature is not None and signature.service in _XML_SERVICES:
        kind = "text/xml"
        error = f"<Code>AccessDenied</Code><Message>{escape(reason)}</Message>"
        text = f"<ErrorResponse><Error>{error}</Error></ErrorResponse>"
    else:
        kind = "application/json"
        text = json.dumps({"__type": "AccessDeniedException", "message": reason})
    body = text.encode()
    headers = [
        (b"content-type", kind.encode()),
        (b"content-length", str(len(body)).encode()),
        # Some clients read the error's code from this header, not from the body.
        (b"x-amzn-errortype", b"AccessDeniedException"),
    ]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    await send({"type": "http.response.body", "body": body if request.method != "HEAD" else b"", "more_body": False})
