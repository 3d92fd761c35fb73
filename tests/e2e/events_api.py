"""The deployed Events API."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.httpsession import URLLib3Session

from orchestrator.adapters.dynamodb.event_keys import event_key
from orchestrator.adapters.dynamodb.event_rows import event_from
from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.records import Event, TenantEpoch
from orchestrator.local.deployment import events_outputs
from orchestrator.local.emulator import REGION
from tests.e2e.deployed import Deployed
from tests.present import present


class EventsApi:
    """The Events API. ``operate`` is for the routes of operators, about one tenant."""

    def __init__(self, berth: Deployed, tenant: TenantId) -> None:
        self._berth = berth
        self._tenant = tenant
        self.outputs = events_outputs(berth.emulator)
        self._url = berth.emulator.api_url(self.outputs["EventsApiUrl"])
        self._credentials = present(berth._session.get_credentials())
        self._http = URLLib3Session(timeout=35)

    def send(self, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, Mapping[str, str], Any]:
        """Send a request with AWS's signature, besides a key's or a provider's."""
        return self._send(method, path, body, headers, signed=True)

    def send_unsigned(
        self, method: str, path: str, body: bytes = b"", **headers: str
    ) -> tuple[int, Mapping[str, str], Any]:
        """Send a request as a producer, a provider or a browser does."""
        return self._send(method, path, body, headers, signed=False)

    def _send(
        self, method: str, path: str, body: bytes, headers: Mapping[str, str], *, signed: bool
    ) -> tuple[int, Mapping[str, str], Any]:
        url = f"{self._url.rstrip('/')}{path}"
        given = {name.replace("_", "-"): value for name, value in headers.items()} | {"Host": urlsplit(url).netloc}
        request = AWSRequest(method, url, headers=given, data=body)
        if signed:
            SigV4Auth(self._credentials, "execute-api", REGION).add_auth(request)
        prepared = request.prepare()
        there = urlsplit(self._berth.emulator.endpoint)
        prepared.url = urlsplit(prepared.url)._replace(scheme=there.scheme, netloc=there.netloc).geturl()
        response = self._http.send(prepared)
        return response.status_code, response.headers, json.loads(response.content) if response.content else None

    def operate(self, method: str, path: str, document: Mapping[str, Any] | None = None) -> Any:
        body = b"" if document is None else json.dumps(document).encode()
        status, _, answer = self.send(method, f"/tenants/{self._tenant}{path}", body, Content_Type="application/json")
        assert status in (200, 201, 202), answer
        return answer

    def event(self, event_id: str) -> Event:
        settings = self._berth.client("dynamodb").get_item(
            TableName=self._berth.outputs["TableName"],
            Key={"pk": {"S": f"EVENTS#{self._tenant}"}, "sk": {"S": "CONFIG#main"}},
        )["Item"]
        found = self._berth.client("dynamodb").get_item(
            TableName=self.outputs["EventsTableName"],
            Key=event_key(TenantEpoch(self._tenant, settings["epoch"]["S"]), event_id),
        )
        return event_from(found["Item"])
