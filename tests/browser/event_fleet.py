"""The event plane of the tests' fleet: the functions of the Events API on AWS in process, with receivers that fail."""

from __future__ import annotations

import base64
import importlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from moto import mock_aws

from orchestrator.api.requesting import HttpRequest
from orchestrator.client.transport import ApiAnswer
from orchestrator.common.tenant_ids import TenantId
from orchestrator.event_composition import EventUseCases
from orchestrator.events.delivery.delivering import Delivering
from orchestrator.events.delivery.dispatching import Dispatching
from orchestrator.events.delivery.records import Connection, TryResult, Verdict
from orchestrator.events.records import TenantEpoch
from tests.adapters.conftest import REGION, an_empty_table, client
from tests.adapters.events.delivery_world import FakeMessages, ScriptedReceivers
from tests.adapters.events.functions import EventFunctions, event_functions_at, http_event
from tests.adapters.events.lives import BUCKET, EVENTS_TABLE
from tests.adapters.events.tables import make_events_table
from tests.adapters.events.test_configuration_commands import EventsApi
from tests.adapters.quick_moto import quicken
from tests.browser.fleet import FleetApi
from tests.fakes.events import Watch
from tests.present import present

TAKEN = TryResult(Verdict.DELIVERED, 48, 200, "thanks")
BROKEN = TryResult(Verdict.RETRY, 1_204, 503, "<html><body>upstream is down</body></html>\nrequest 8c1f")
UNWANTED = TryResult(Verdict.GIVE_UP, 61, 400, '{"error": "unknown field: currency"}')
HALF_A_PAIR = b'{"note": "half \\ud800 of a pair"}'
BYTES = bytes(range(256)) * 20


class EventPlane(EventsApi):
    """The Events API, for the several threads of a console, and what happens behind it."""

    def __init__(self, functions: EventFunctions) -> None:
        super().__init__(functions)
        self.clock = functions.clock
        self.receivers = ScriptedReceivers()
        self._messages = FakeMessages()
        self._turn = threading.RLock()
        self.keys: dict[str, str] = {}
        """An API key of each tenant, which sends the events."""

    def send(self, request: HttpRequest) -> ApiAnswer:
        with self._turn:
            return super().send(request)

    # Configuring

    def operate(self, route: str, tenant: str = "acme", **more: Any) -> dict[str, Any]:
        answer = self.functions.operate(route, tenant=tenant, **more)
        assert answer.status < 300, answer.body
        return answer.body

    def serve(self, tenant: str, **settings: object) -> None:
        """Let the tenant accept events."""
        self.functions.serve(TenantId.parse(tenant))
        self.operate("PUT /settings", tenant, body=settings)
        made = self.operate("POST /keys", tenant, body={"name": "Shop", "scopes": ["write"]})
        self.keys[tenant] = made["key"]

    def connect(self, name: str, tenant: str = "acme", **more: object) -> str:
        made = self.operate("POST /connections", tenant, body={"name": name, **more})
        return str(made["connection_id"])

    # Events and their deliveries

    def accept(self, payload: object, event_type: str = "order.created", tenant: str = "acme") -> str:
        """An event that nobody has tried to deliver."""
        body = payload if isinstance(payload, str) else json.dumps(payload)
        text = f'{{"event_type": {json.dumps(event_type)}, "payload": {{"order": {body}}}}}'
        with self._turn:
            self.clock.advance(timedelta(seconds=7))
            answer = self.functions.call("ingest", http_event("POST /events", key=self.keys[tenant], body=text))
        assert answer.status < 300, answer.body
        return str(answer.body["event_id"])

    def receive(self, source_id: str, body: bytes, content_type: str = "application/octet-stream") -> str:
        """A webhook with any bytes."""
        event = http_event(
            "POST /hooks/{sourceId}", ids={"sourceId": source_id}, headers={"content-type": content_type}
        )
        event |= {"body": base64.b64encode(body).decode(), "isBase64Encoded": True, "rawPath": f"/hooks/{source_id}"}
        with self._turn:
            self.clock.advance(timedelta(seconds=7))
            answer = self.functions.call("receive", event)
        assert answer.status < 300, answer.body
        return str(answer.body["event_id"])

    def deliver(self, event_id: str, tenant: str = "acme", rounds: int = 1) -> None:
        """Dispatch the event, and make the first tries; more ``rounds`` are retries when they are due."""
        with self._turn:
            event = present(self._ports.deliveries.event(self.life(tenant), event_id))
            self._dispatching.dispatch([event])
            for _ in range(rounds):
                for message in self._messages.take():
                    self._delivering.deliver(message)
                if rounds > 1:
                    self.clock.advance(timedelta(minutes=10))

    def send_event(self, payload: object, event_type: str = "order.created", tenant: str = "acme") -> str:
        event_id = self.accept(payload, event_type, tenant)
        self.deliver(event_id, tenant)
        return event_id

    def life(self, tenant: str) -> TenantEpoch:
        return present(self._ports.configuration.settings(TenantId.parse(tenant))).life

    def disable(self, tenant: str, connection_id: str, reason: str) -> None:
        ports = self._ports
        found = ports.connections_by_id.connection(self.life(tenant), connection_id)
        assert isinstance(found, Connection)
        assert ports.connection_changes.disable(found, reason, self.clock.now())

    def advance_replay(self, replay_id: str, last_event: str, tenant: str = "acme", **counts: int) -> None:
        """Let a replay have looked at all events up to this one."""
        replays = self._ports.replays
        found = present(replays.replay(self.life(tenant), replay_id))
        assert replays.write(found, replace(found, after=last_event, revision=found.revision + 1, **counts))

    @property
    def _use_cases(self) -> EventUseCases:
        found: EventUseCases = importlib.import_module("lambdas.event_runtime").use_cases
        return found

    @property
    def _ports(self) -> Any:
        return self._use_cases.ports

    @property
    def _dispatching(self) -> Dispatching:
        ports, listing = self._ports, self._use_cases.listing
        return Dispatching(
            table=ports.deliveries,
            connections=ports.connections,
            queue=self._messages,
            content_of=lambda event: listing.with_content(event).content,
            clock=self.clock,
        )

    @property
    def _delivering(self) -> Delivering:
        ports = self._ports
        return Delivering(
            table=ports.deliveries,
            connections=ports.connections,
            changes=ports.connection_changes,
            sender=self.receivers,
            queue=self._messages,
            clock=self.clock,
            monotonic=Watch(),
            draw=lambda: 0.5,
            pause=lambda _seconds: None,
        )


@contextmanager
def an_event_plane(api: FleetApi) -> Iterator[EventPlane]:
    """An event plane for the fleet, with nothing in it."""
    with pytest.MonkeyPatch.context() as patch, mock_aws(config={"lambda": {"use_docker": False}}):
        quicken(patch)
        patch.setenv("AWS_DEFAULT_REGION", REGION)
        dynamodb = an_empty_table(client("dynamodb"))
        make_events_table(dynamodb, EVENTS_TABLE)
        client("s3").create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
        with event_functions_at(dynamodb, api.clock, patch) as functions:
            yield EventPlane(functions)


class EventFleet:
    """The tenants acme and globex with connections in all states, and their events. Tenant initech has no settings."""

    def __init__(self, plane: EventPlane) -> None:
        self.plane = plane
        self._acme()
        self._globex()
        plane.functions.serve(TenantId.parse("initech"))

    def _acme(self) -> None:
        plane = self.plane
        plane.serve("acme", plan="pro", inbox=False, tenant_name="Acme Ltd")
        plane.operate("POST /keys", body={"name": "Reports", "scopes": ["read"], "expires_in_seconds": 90 * 86_400})
        old = plane.operate("POST /keys", body={"name": "First try", "scopes": ["admin"]})
        plane.operate("DELETE /keys/{keyId}", ids={"keyId": old["key_id"]})
        self.github = plane.operate("POST /sources", body={"name": "GitHub", "provider": "github"})["source_id"]
        self.scanner = plane.operate("POST /sources", body={"name": "Scanner", "provider": "none"})["source_id"]
        self.form = plane.operate("POST /forms", body={"name": "Contact", "origins": ["https://www.example.com"]})[
            "form_id"
        ]
        self.queue = plane.connect("Own queue")
        self.shop = plane.connect("Shop", destination="webhook", address="https://shop.example.com/hooks/berth")
        self.crm = plane.connect(
            "CRM",
            destination="webhook",
            address="https://crm.example.com/in",
            filter={"event_type": "order.paid", "payload": {"total": {"$gte": 100}}},
        )
        self.legacy = plane.connect("Legacy ERP", destination="webhook", address="https://erp.example.com/events")
        plane.disable("acme", self.legacy, "The receiver answered 410: it wants no more events.")
        plane.operate("POST /connections/{connectionId}/pause", ids={"connectionId": self.crm})
        self.delivered = [plane.send_event({"number": number, "total": 40 * number}) for number in range(1, 5)]
        plane.receivers.answers[self.shop] = UNWANTED
        self.unwanted = plane.send_event({"number": 5, "currency": "EUR"})
        plane.receivers.answers[self.shop] = BROKEN
        self.retrying = plane.accept({"number": 6, "total": 19})
        plane.deliver(self.retrying, rounds=3)
        self.parked = [plane.send_event({"number": number}) for number in range(7, 30)][-1]
        self.half = plane.receive(self.scanner, HALF_A_PAIR, "application/json")
        self.huge = plane.accept({"text": "long " * 40_000}, "report.made")
        self.bytes = plane.receive(self.scanner, BYTES)
        self.markup = plane.accept({"html": "<script>alert(1)</script>"}, "page.made")
        started = plane.operate(
            "POST /replays",
            body={"connection_id": self.shop, "since": "2026-11-16T12:00:00Z", "only_failed": True},
        )
        self.replay = started["replay_id"]
        plane.advance_replay(self.replay, self.retrying, looked_at=6, sent=1, skipped=5)
        plane.clock.advance(timedelta(seconds=40))

    def _globex(self) -> None:
        plane = self.plane
        plane.serve("globex", plan="free")
        paused = plane.connect("Warehouse", "globex", destination="webhook", address="https://warehouse.example.com/in")
        plane.operate("POST /connections/{connectionId}/pause", "globex", ids={"connectionId": paused})
        self.warehouse = paused
