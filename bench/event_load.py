"""Many events from many tenants at once, through the deployed Events API on the emulator."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from botocore.awsrequest import AWSRequest
from botocore.exceptions import HTTPClientError
from botocore.httpsession import URLLib3Session

from bench.deployed import Deployed, deployed
from bench.event_load_checks import Answers, Sending, Stored, sendings, wrong_answers, wrong_rows
from bench.load_clients import RETRIED
from bench.measure import Result
from bench.memory import watched
from orchestrator.adapters.dynamodb.event_rows import event_from
from orchestrator.adapters.dynamodb.keys import metadata_key
from orchestrator.adapters.event_contents import S3Contents
from orchestrator.api.requesting import HttpRequest
from orchestrator.client.transport import SignedHttp
from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.content import Packed, unpack
from orchestrator.local.deployment import events_outputs

TENANTS = 20
EVENTS = 20_000
CLIENTS = 4
SECONDS = 900
"""The time within which all events have to be sent. What was not sent by then is counted."""
_RETRY_SECONDS = 0.5


def events_load(tenants: int = TENANTS, events: int = EVENTS) -> list[Result]:
    with deployed() as plane, watched(plane.emulator) as memory:
        load = _Load(plane, tenants)
        load.prepare()
        planned = list(sendings(tenants, events))
        began = time.monotonic()
        sent = load.send(planned, deadline=began + SECONDS)
        seconds = time.monotonic() - began
        what = f"events load: {events:,} events of {tenants} tenants, {CLIENTS} clients"
        answers, rows = load.answers, load.rows()
        wrong, lost = wrong_answers(sent, answers), wrong_rows(rows, answers)
        left = len(planned) - len(sent)
        statuses = tuple(f"{number} x HTTP {status}" for status, number in sorted(answers.statuses.items()))
        return [
            Result(f"{what}: events accepted", len(answers.accepted), "", ""),
            Result(f"{what}: events refused", len(answers.refused), "", ""),
            Result(f"{what}: accepted per second", round(len(answers.accepted) / seconds, 1), "", ""),
            Result(f"{what}: requests not made within {SECONDS // 60} min", left, "", "0"),
            Result(f"{what}: wrong answers", len(wrong), "events", "0", tuple(wrong)),
            Result(f"{what}: accepted and not there once, or there and not accepted", len(lost), "", "0", tuple(lost)),
            Result(f"{what}: requests", sum(answers.statuses.values()), "", "", statuses),
            memory.result("events load"),
        ]


class _Load:
    def __init__(self, on: Deployed, tenants: int) -> None:
        self._on = on
        self._tenants = [TenantId(f"load-{number}") for number in range(tenants)]
        self._keys: list[str] = []
        self._noting, self._own = threading.Lock(), threading.local()
        self.answers = Answers()

    def prepare(self) -> None:
        """Let the tenants be alive, with settings and a key each. Their queues are not needed."""
        dynamodb, operators = self._on.client("dynamodb"), self._operators
        for tenant in self._tenants:
            row = {**metadata_key(tenant), "CreatedAt": {"S": "2026-01-01T00:00:00.000Z"}}
            dynamodb.put_item(TableName=self._on.outputs["TableName"], Item=row)
            self._operate(operators, "PUT", f"/tenants/{tenant}/settings", {"plan": "pro"}, 200)
            issued = self._operate(
                operators, "POST", f"/tenants/{tenant}/keys", {"name": "load", "scopes": ["write"]}, 201
            )
            self._keys.append(str(issued["key"]))

    def _operate(self, http: SignedHttp, method: str, path: str, body: dict[str, Any], status: int) -> Any:
        for _ in range(20):
            answer = http.send(HttpRequest(method, path, {}, body))
            if answer.status == status:
                return answer.body
            time.sleep(_RETRY_SECONDS)
        raise RuntimeError(f"{method} {path}: answered {answer.status}: {answer.body}")

    def send(self, planned: Sequence[Sending], *, deadline: float) -> list[Sending]:
        """Send all in this order, with a limited number of clients. Returns what was sent in time."""

        def send(sending: Sending) -> bool:
            while time.monotonic() < deadline:
                if self._sent(sending):
                    return True
                time.sleep(_RETRY_SECONDS)
            return False

        with ThreadPoolExecutor(CLIENTS) as pool:
            return [sending for sending, done in zip(planned, pool.map(send, planned), strict=True) if done]

    def _sent(self, sending: Sending) -> bool:
        """``False`` if the request has to be repeated. Each has an Idempotency-Key, so that repeating it is safe."""
        url = f"{self._url}{sending.path}"
        headers = {
            "Host": urlsplit(url).netloc,
            "Content-Type": "application/json",
            "Authorization": f"Bearer {self._keys[sending.tenant]}",
            "Idempotency-Key": sending.idempotency_key,
        }
        prepared = AWSRequest("POST", url, headers=headers, data=sending.body).prepare()
        there = urlsplit(self._on.emulator.endpoint)
        prepared.url = urlsplit(prepared.url)._replace(scheme=there.scheme, netloc=there.netloc).geturl()
        try:
            response = self._http.send(prepared)
        except HTTPClientError:
            return False
        if response.status_code in RETRIED:
            with self._noting:
                self.answers.statuses[response.status_code] += 1
            return False
        body = json.loads(response.content)
        if any(each["status_code"] in RETRIED for each in body.get("results", ())):
            return False
        with self._noting:
            self.answers.note(sending, response.status_code, body)
        return True

    def rows(self) -> Iterator[Stored]:
        """Every event in the table, with its content."""
        contents = S3Contents(lambda: self._on.client("s3"), self._outputs["ContentsBucketName"])
        pages = self._on.client("dynamodb").get_paginator("scan").paginate(TableName=self._outputs["EventsTableName"])
        for row in (row for page in pages for row in page["Items"] if row["pk"]["S"].startswith("TENANT_ID#")):
            event = event_from(row)
            content = event.content
            if content is None and (data := contents.get(event.content_key or "")) is not None:
                content = unpack(Packed(data, event.packing))
            name = json.loads(content.body)["name"] if content else ""
            yield Stored(self._tenants.index(event.life.tenant), event.event_id, name)

    @cached_property
    def _outputs(self) -> dict[str, str]:
        return events_outputs(self._on.emulator)

    @cached_property
    def _url(self) -> str:
        return self._on.emulator.api_url(self._outputs["EventsApiUrl"]).rstrip("/")

    @property
    def _operators(self) -> SignedHttp:
        return self._on.http(self._outputs["EventsApiUrl"])

    @property
    def _http(self) -> URLLib3Session:
        """One connection per thread, because real producers are separate programs."""
        if not hasattr(self._own, "http"):
            self._own.http = URLLib3Session(timeout=35)
        return self._own.http  # type: ignore[no-any-return]
