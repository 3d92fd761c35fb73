"""Sends one request, signed or with an API key, and returns the answer."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.httpsession import URLLib3Session
from botocore.utils import get_environ_proxies

from orchestrator.common.errors import InvalidRequest

if TYPE_CHECKING:
    from botocore.awsrequest import AWSResponse
    from botocore.credentials import Credentials

    from orchestrator.api.requesting import HttpRequest

# Longer than API Gateway's own timeout of 30 seconds, whose answer says more than a timeout of the client.
_TIMEOUT_SECONDS = 35
_VISIBLE = re.compile("[!-~]+")


@dataclass(frozen=True, slots=True)
class ApiAnswer:
    """An answer of the API. The body is empty if it was not a JSON object, for example if a proxy answered."""

    status: int
    body: Mapping[str, Any] = field(repr=False)
    """Left out of repr(), because the body may hold credentials."""
    retry_after: float | None = None


class SignedHttp:
    """``connect_to`` is the address to send requests to if the endpoint's own host does not lead to the API.

    Signature and Host header still use the endpoint's host.
    """

    def __init__(self, endpoint: str, credentials: Credentials, region: str, *, connect_to: str | None = None) -> None:
        self._endpoint = endpoint.rstrip("/")
        self._credentials = credentials
        self._region = region
        self._connect_to = connect_to
        proxies = {} if connect_to else get_environ_proxies(endpoint)
        self._http = URLLib3Session(timeout=_TIMEOUT_SECONDS, proxies=proxies)

    def send(self, request: HttpRequest) -> ApiAnswer:
        signed = _aws_request(self._endpoint, request)
        # Credentials are frozen for every request, because temporary ones may be renewed while a caller waits.
        SigV4Auth(self._credentials.get_frozen_credentials(), "execute-api", self._region).add_auth(signed)
        prepared = signed.prepare()
        prepared.url = _address(prepared.url, self._connect_to)
        return _answer(self._http.send(prepared))


class HttpWithKey:
    """Requests to the Events API with an API key of a tenant, for that tenant. ``connect_to``: see SignedHttp."""

    def __init__(self, endpoint: str, key: str, *, connect_to: str | None = None) -> None:
        # HTTP libraries quote a header that they refuse, so the key would be in the message.
        if not _VISIBLE.fullmatch(key):
            raise InvalidRequest("This is not an API key: it is empty, or has blanks, line breaks or other characters.")
        self._endpoint = endpoint.rstrip("/")
        self._key = key
        self._connect_to = connect_to
        proxies = {} if connect_to else get_environ_proxies(endpoint)
        self._http = URLLib3Session(timeout=_TIMEOUT_SECONDS, proxies=proxies)

    def send(self, request: HttpRequest) -> ApiAnswer:
        asked = _aws_request(self._endpoint, request)
        asked.headers["Authorization"] = f"Bearer {self._key}"
        prepared = asked.prepare()
        prepared.url = _address(prepared.url, self._connect_to)
        return _answer(self._http.send(prepared))


def _address(url: str, connect_to: str | None) -> str:
    if connect_to is None:
        return url
    there = urlsplit(connect_to)
    return urlunsplit(urlsplit(url)._replace(scheme=there.scheme, netloc=there.netloc))


def _aws_request(endpoint: str, request: HttpRequest) -> AWSRequest:
    url = f"{endpoint}{request.target}"
    headers = {"Accept": "application/json", "Host": urlsplit(url).netloc}
    if request.body is not None:
        headers["Content-Type"] = "application/json"
    data = b"" if request.body is None else json.dumps(request.body).encode()
    return AWSRequest(request.method, url, headers=headers, data=data)


def _answer(response: AWSResponse) -> ApiAnswer:
    return ApiAnswer(response.status_code, _json_object(response.content), _seconds(response.headers))


def _json_object(content: bytes) -> dict[str, Any]:
    try:
        body = json.loads(content)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _seconds(headers: Mapping[str, str]) -> float | None:
    """The seconds in Retry-After. A date, which Berth never sends, is ignored."""
    value = headers.get("Retry-After", "")
    return float(value) if value.isdecimal() else None
