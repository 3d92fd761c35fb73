"""Berth's API over HTTP, asked as a platform or an operator would: one signed request an answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.httpsession import URLLib3Session
from botocore.utils import get_environ_proxies

if TYPE_CHECKING:
    from botocore.credentials import Credentials

    from orchestrator.common.tenant_ids import TenantId
    from orchestrator.tenants.credentials import Access
    from orchestrator.tenants.records import TenantState

# API Gateway gives up after 30 seconds and says so; that answer tells more than a timeout of our own.
_TIMEOUT_SECONDS = 35


@dataclass(frozen=True, slots=True)
class ApiAnswer:
    """What the API said. The body is empty when it was not a JSON object, as from a proxy on the way."""

    status: int
    body: Mapping[str, Any] = field(repr=False)
    """Not shown by accident: it may hold credentials."""
    retry_after: float | None = None


class BerthApi:
    """``connect_to`` is where requests are sent when the endpoint's own host does not lead to the API.

    They are signed for, and name, the endpoint's host all the same.
    """

    def __init__(self, endpoint: str, credentials: Credentials, region: str, *, connect_to: str | None = None) -> None:
        self._endpoint = endpoint.rstrip("/")
        self._credentials = credentials
        self._region = region
        self._connect_to = connect_to
        proxies = {} if connect_to else get_environ_proxies(endpoint)
        self._http = URLLib3Session(timeout=_TIMEOUT_SECONDS, proxies=proxies)

    # What platforms ask for

    def get_queue(self, tenant: TenantId) -> ApiAnswer:
        return self.request("GET", f"{_path(tenant)}/queue")

    def get_credentials(self, tenant: TenantId, access: Access) -> ApiAnswer:
        """Temporary credentials for the queue, and the queue itself. A tenant that has none gets none by this."""
        return self.request("POST", f"{_path(tenant)}/queue/credentials/{access}")

    # What operators ask for

    def create(
        self,
        tenant: TenantId,
        *,
        pin: str | None = None,
        unpin: bool = False,
        labels: Mapping[str, str] | None = None,
        reason: str | None = None,
    ) -> ApiAnswer:
        """The pin and the labels of a tenant that is there are set; what is not given stays as it is."""
        lifted = {"version": None} if unpin else {}
        return self.request("PUT", _path(tenant), body=_given(version=pin, labels=labels, reason=reason) | lifted)

    def upgrade(
        self,
        tenant: TenantId,
        version: str | None = None,
        *,
        allow_downgrade: bool = False,
        allow_replacement: bool = False,
        reason: str | None = None,
    ) -> ApiAnswer:
        asked = {"allowDowngrade": allow_downgrade, "allowReplacement": allow_replacement}
        return self.request("POST", f"{_path(tenant)}/upgrade", body=_given(version=version, reason=reason) | asked)

    def retry(self, tenant: TenantId, *, reason: str | None = None) -> ApiAnswer:
        return self.request("POST", f"{_path(tenant)}/retry", body=_given(reason=reason) or None)

    def delete(
        self,
        tenant: TenantId,
        *,
        force: bool = False,
        drain_seconds: int | None = None,
        reason: str | None = None,
    ) -> ApiAnswer:
        query = _given(force="true" if force else None, drainSeconds=drain_seconds, reason=reason)
        return self.request("DELETE", _path(tenant), query)

    def pin(self, tenant: TenantId, version: str, *, reason: str | None = None) -> ApiAnswer:
        return self.request("PUT", f"{_path(tenant)}/pin", body=_given(version=version, reason=reason))

    def unpin(self, tenant: TenantId, *, reason: str | None = None) -> ApiAnswer:
        return self.request("DELETE", f"{_path(tenant)}/pin", _given(reason=reason))

    def tenant(self, tenant: TenantId) -> ApiAnswer:
        return self.request("GET", _path(tenant))

    def tenants(
        self,
        *,
        state: TenantState | None = None,
        version: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> ApiAnswer:
        return self.request("GET", "/tenants", _given(status=state, version=version, cursor=cursor, limit=limit))

    def releases(self) -> ApiAnswer:
        return self.request("GET", "/releases")

    def start_rollout(self, wish: Mapping[str, object]) -> ApiAnswer:
        return self.request("POST", "/rollouts", body=wish)

    def order_rollout(self, rollout: str, verb: str, *, reason: str | None = None) -> ApiAnswer:
        """One of pause, resume, abort and retry."""
        return self.request("POST", f"{_rollout_path(rollout)}/{verb}", body=_given(reason=reason) or None)

    def approve_stage(self, rollout: str, stage: int, *, reason: str | None = None) -> ApiAnswer:
        return self.request("POST", f"{_rollout_path(rollout)}/approve", body=_given(stage=stage, reason=reason))

    def rollout(self, rollout: str) -> ApiAnswer:
        return self.request("GET", _rollout_path(rollout))

    def rollouts(self, *, cursor: str | None = None, limit: int | None = None) -> ApiAnswer:
        return self.request("GET", "/rollouts", _given(cursor=cursor, limit=limit))

    def reconcile(self, *, dry_run: bool = False, detect_drift: bool = False, reason: str | None = None) -> ApiAnswer:
        asked = {"dryRun": dry_run, "detectDrift": detect_drift}
        return self.request("POST", "/reconciliations", body=asked | _given(reason=reason))

    def reconciliation(self, reconciliation: str) -> ApiAnswer:
        return self.request("GET", f"/reconciliations/{quote(reconciliation, safe='')}")

    def adopt(self, *, dry_run: bool = False, cursor: str | None = None, reason: str | None = None) -> ApiAnswer:
        return self.request("POST", "/adoptions", body={"dryRun": dry_run} | _given(cursor=cursor, reason=reason))

    def adoption(self, adoption: str) -> ApiAnswer:
        return self.request("GET", f"/adoptions/{quote(adoption, safe='')}")

    def health(self) -> ApiAnswer:
        return self.request("GET", "/diagnosis")

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, object] | None = None,
        body: Mapping[str, object] | None = None,
    ) -> ApiAnswer:
        url = f"{self._endpoint}{path}"
        if query:
            # Encoded as a signature has it, where a blank is %20 and not +: what is signed is what is sent.
            url += f"?{urlencode(query, quote_via=quote, safe='')}"
        headers = {"Accept": "application/json", "Host": urlsplit(url).netloc}
        if body is not None:
            headers["Content-Type"] = "application/json"
        data = b"" if body is None else json.dumps(body).encode()
        request = AWSRequest(method, url, headers=headers, data=data)
        # Frozen anew for every request: while a caller waits, temporary credentials may be renewed.
        SigV4Auth(self._credentials.get_frozen_credentials(), "execute-api", self._region).add_auth(request)
        prepared = request.prepare()
        prepared.url = self._address(prepared.url)
        response = self._http.send(prepared)
        return ApiAnswer(response.status_code, _json_object(response.content), _seconds(response.headers))

    def _address(self, url: str) -> str:
        if self._connect_to is None:
            return url
        there = urlsplit(self._connect_to)
        return urlunsplit(urlsplit(url)._replace(scheme=there.scheme, netloc=there.netloc))


def _path(tenant: TenantId) -> str:
    return f"/tenants/{quote(tenant.value, safe='')}"


def _rollout_path(rollout: str) -> str:
    return f"/rollouts/{quote(rollout, safe='')}"


def _given(**values: object) -> dict[str, object]:
    return {name: value for name, value in values.items() if value is not None}


def _json_object(content: bytes) -> dict[str, Any]:
    try:
        body = json.loads(content)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _seconds(headers: Mapping[str, str]) -> float | None:
    """Retry-After in its one form that Berth sends; as a date it is left alone."""
    value = headers.get("Retry-After", "")
    return float(value) if value.isdecimal() else None
