"""The routes of the configuration of events: whatever comes in is answered as documented, without 5xx."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator.adapters.dynamodb.connection_rows import connection_from, connection_row
from orchestrator.adapters.dynamodb.event_configuration import api_key_row, form_row, settings_row, source_row
from orchestrator.adapters.dynamodb.replays import replay_from, replay_row
from orchestrator.api import connection_routes, delivery_routes
from orchestrator.api.event_configuration_routes import PUT_SETTINGS, TENANT_ROUTES
from orchestrator.api.for_operators import for_operators
from orchestrator.common.callers import digest_of
from orchestrator.event_composition import EventUseCases
from orchestrator.events.content import Packed
from orchestrator.events.delivery import transitions
from orchestrator.events.delivery.addresses import AddressRules
from orchestrator.events.delivery.records import (
    Connection,
    Delivery,
    DeliveryRef,
    DeliveryState,
    Destination,
    DestinationKind,
)
from orchestrator.events.delivery.replays import Replay, ReplayStatus
from orchestrator.events.event_ids import new_event_id
from orchestrator.events.records import (
    ApiKey,
    Event,
    EventSettings,
    Form,
    Provider,
    Scope,
    Source,
    SourceStatus,
    TenantEpoch,
)
from tests.adapters.bad_input.classifying import at, request_is_documented, statuses
from tests.adapters.bad_input.inputs import JsonText, an_input, over_http
from tests.adapters.bad_input.storm import INPUTS, storm
from tests.adapters.bad_input.world import PROOF, LogSink, _log_into, switch_log
from tests.fakes import ACME, EXPLICIT, NOON, FakeClock
from tests.fakes.deliveries import InMemoryDeliveries
from tests.fakes.events import (
    ACME_LIFE,
    FakeConfiguration,
    FakeKeyUse,
    FakeSecrets,
    FakeTenants,
    FakeUsage,
    Watch,
    api_key,
    connection,
    event_settings,
)
from tests.fakes.sending import an_event
from tests.functions import forget_functions

KEY = f"bk_test_{'A' * 43}"
SECRET = "correct horse battery"
IDS = {
    "tenantId": "acme",
    "keyId": f"key_{'0' * 24}",
    "sourceId": f"src_{'0' * 24}",
    "formId": f"form_{'0' * 24}",
    **dict.fromkeys(("connectionId", "subscriptionId"), f"conn_{'0' * 24}"),
    "eventId": new_event_id(NOON, 3, random_bits=lambda _bits: 0),
    "replayId": f"rpl_{'0' * 24}",
}
A_REPLAY = Replay(
    ACME_LIFE,
    IDS["replayId"],
    "api",
    NOON - timedelta(hours=1),
    NOON,
    NOON,
    "key_1",
    shards=1,
    status=ReplayStatus.PAUSED,
    revision=1,
)
BODIES: dict[str, dict[str, Any]] = {
    "putSettings": {"plan": "pro", "inbox": True, "type_index": False, "tenant_name": "Acme"},
    "createKey": {"name": "shop", "scopes": ["read", "write"], "expires_in_seconds": 3600},
    "rotateKey": {"overlap_seconds": 60},
    "createSource": {
        "name": "shop",
        "provider": "hmac",
        "secret": SECRET,
        "verification": {"header": "X-Signature", "encoding": "hex"},
    },
    "createForm": {
        "name": "contact",
        "origins": ["https://acme.example"],
        "redirect_url": "https://acme.example/thanks",
        "honeypot": "website",
        "submissions_per_minute": 5,
    },
    "updateForm": {"name": "contact", "origins": [], "redirect_url": None, "honeypot": None},
    "createConnection": {
        "name": "shop",
        "origin": "api",
        "destination": "webhook",
        "address": "https://acme.example/hooks",
        "filter": {"event_type": "order.created", "payload": {"total": {"$gte": 1.5}, "tags": {"$in": ["a"]}}},
        "transform": {"remove": ["a.b"], "rename": {"c": "d"}, "set": {"e": 1}, "wrap": "f"},
        "retry_seconds": [5, 60],
    },
    "updateConnection": {"name": "shop", "filter": None, "transform": {"wrap": "x"}, "retry_seconds": None},
    "subscribeZap": {"hookUrl": "https://hooks.zapier.com/hooks/1/", "event_type": "order.created"},
}
BODIES |= {
    "resendEvent": {"connection_id": IDS["connectionId"]},
    "startReplay": {
        "connection_id": IDS["connectionId"],
        "since": "2026-11-16T11:00:00Z",
        "until": "2026-11-16T11:30:00Z",
        "include_delivered": False,
        "only_failed": True,
    },
}
ROUTES = {
    route.key: (route, function, BODIES.get(declared.name))
    for declared in (*TENANT_ROUTES, *connection_routes.TENANT_ROUTES, *delivery_routes.TENANT_ROUTES)
    for route, function in ((declared, "tenant_events"), (for_operators(declared), "event_operators"))
} | {PUT_SETTINGS.key: (PUT_SETTINGS, "event_operators", BODIES["putSettings"])}


@dataclass
class NotedTable(FakeConfiguration):
    """Notes every write, and checks that DynamoDB would take it. What is written is not kept."""

    all_connections: dict[str, Connection] = field(default_factory=dict)
    effects: list[str] = field(default_factory=list)

    def _note(self, what: str, row: dict[str, Any]) -> bool:
        json.dumps(row, ensure_ascii=False, default=lambda data: data.decode("latin-1")).encode()
        assert len(json.dumps(row, default=str)) < 100_000
        self.effects.append(what)
        return True

    def put_settings(self, settings: EventSettings, *, replaced: EventSettings | None) -> bool:
        assert replaced is not None
        return self._note("settings", settings_row(settings))

    def listed_api_key(self, _life: TenantEpoch, key_id: str) -> ApiKey | None:
        return next((key for key in self.api_keys.values() if key.key_id == key_id), None)

    def add_api_key(self, key: ApiKey, _settings: EventSettings, **_: Any) -> bool:
        return self._note("key", api_key_row(key))

    def change_api_key(self, _before: ApiKey, after: ApiKey) -> bool:
        return self._note("key", api_key_row(after))

    def add_source(self, source: Source, _settings: EventSettings) -> bool:
        assert source.secret is None or SECRET.encode() not in source.secret
        return self._note("source", source_row(source))

    def change_source(self, _before: Source, after: Source) -> bool:
        return self._note("source", source_row(after))

    def remove_source(self, source: Source, _settings: EventSettings) -> bool:
        return self._note("source", source_row(source))

    def add_form(self, form: Form, _settings: EventSettings) -> bool:
        return self._note("form", form_row(form))

    def change_form(self, _before: Form, after: Form) -> bool:
        return self._note("form", form_row(after))

    def remove_form(self, form: Form, _settings: EventSettings) -> bool:
        return self._note("form", form_row(form))

    def connections(self, _life: TenantEpoch) -> Sequence[Connection]:
        return list(self.all_connections.values())

    def connection(self, _life: TenantEpoch, connection_id: str) -> Connection | None:
        return self.all_connections.get(connection_id)

    def add_connection(self, connection: Connection, _settings: EventSettings) -> bool:
        return self._noted(connection)

    def change_connection(self, _before: Connection, after: Connection) -> bool:
        return self._noted(after)

    def _noted(self, connection: Connection) -> bool:
        row = connection_row(connection)
        assert connection_from(row) == connection
        return self._note("connection", row)

    def put(self, event: Event, _packed: Packed, **_: Any) -> None:
        self._note("event", {"type": event.event_type, "metadata": dict(event.metadata)})


class NoEvents:
    """A tenant without events. Implements the reads of lists of :class:`orchestrator.events.ports.EventReads`."""

    def read(self, *_: Any) -> dict[str, Event]:
        return {}

    def by_time(self, *_: Any, **__: Any) -> tuple[Sequence[Event], bool]:
        return [], False

    def by_type(self, *_: Any) -> tuple[Sequence[str], bool]:
        return [], False


@dataclass
class NotedReplays:
    """One replay is paused. Notes every write. Implements :class:`orchestrator.events.delivery.replays.Replays`."""

    effects: list[str]

    def replay(self, life: TenantEpoch, replay_id: str) -> Replay | None:
        return A_REPLAY if (life, replay_id) == (A_REPLAY.life, A_REPLAY.replay_id) else None

    def of_tenant(self, _life: TenantEpoch, **_: Any) -> tuple[Sequence[Replay], str | None]:
        return [A_REPLAY], None

    def count_running(self, _life: TenantEpoch) -> int:
        return 0

    def count_since(self, _life: TenantEpoch, _first_id: str) -> int:
        return 0

    def write(self, _before: Replay | None, after: Replay) -> bool:
        assert replay_from(replay_row(after)) == after
        self.effects.append("replay")
        return True


class NotedDeliveries(InMemoryDeliveries):
    """One event has failed. Notes every change, and keeps none."""

    def __init__(self, effects: list[str]) -> None:
        super().__init__()
        self._effects = effects
        event = an_event(event_id=IDS["eventId"])
        self.put_event(event)
        ref = DeliveryRef(event.life, event.event_id, IDS["connectionId"])
        failed = Delivery(ref, DeliveryState.FAILED, 1, NOON, event.expires_at, ended_at=NOON)
        assert super().apply(transitions.changed(None, failed))

    def apply(self, transition: Any) -> bool:
        self._effects.append("delivery")
        return bool(transition)


class NoQueue:
    def send(self, _messages: Any) -> Sequence[Any]:
        return []


class Lists:
    """The table, with its lists under the names of the port. The fake keeps records under the same names."""

    def __init__(self, table: NotedTable) -> None:
        self._table = table

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)

    def api_keys(self, _life: TenantEpoch) -> Sequence[ApiKey]:
        return list(self._table.api_keys.values())

    def sources(self, _life: TenantEpoch) -> Sequence[Source]:
        return list(self._table.sources.values())

    def forms(self, _life: TenantEpoch) -> Sequence[Form]:
        return list(self._table.forms.values())


class Plane:
    """The two functions as Lambda calls them, for a tenant with a key, a source, a form and a connection."""

    def __init__(self) -> None:
        key = api_key(KEY, key_id=IDS["keyId"], scopes=frozenset({Scope.ADMIN}))
        source = Source(ACME_LIFE, IDS["sourceId"], "shop", Provider.NONE, SourceStatus.ACTIVE, NOON)
        form = Form(ACME_LIFE, IDS["formId"], "contact", SourceStatus.ACTIVE, NOON)
        self.table = NotedTable(
            {ACME: event_settings()}, {key.digest: key}, {source.source_id: source}, {form.form_id: form}
        )
        destination = Destination(DestinationKind.WEBHOOK, "https://acme.example/hooks")
        there = connection(connection_id=IDS["connectionId"], destination=destination, secret=SECRET[::-1].encode())
        self.table.all_connections[there.connection_id] = there
        self.logs = LogSink()
        self.watch = Watch()
        ports: Any = SimpleNamespace(
            settings=SimpleNamespace(
                api_proof_digest=digest_of(PROOF),
                events_environment="test",
                address_rules=AddressRules(),
                mail_from="events@berth.example",
            ),
            clock=FakeClock(),
            monotonic=self.watch,
            tenants=FakeTenants(),
            configuration=self.table,
            configuration_table=lambda _by: Lists(self.table),
            key_use=FakeKeyUse(),
            usage=FakeUsage(),
            secrets=FakeSecrets(),
            event_writes=self.table,
            event_reads=NoEvents(),
            deliveries=NotedDeliveries(self.table.effects),
            replays=NotedReplays(self.table.effects),
            connections_by_id=self.table,
            connections=SimpleNamespace(of_origin=lambda _life, _origin: [there]),
            message_queue=NoQueue(),
            contents=None,
        )
        self.use_cases = EventUseCases(ports)

    @property
    def effects(self) -> list[str]:
        return self.table.effects

    def as_before(self) -> None:
        self.forget()

    def forget(self) -> None:
        self.effects.clear()
        self.watch.seconds += 60

    def call(self, function: str, event: object) -> Any:
        return importlib.import_module(f"lambdas.events.{function}").handler(event, None)


@pytest.fixture(scope="module")
def configured() -> Iterator[Plane]:
    plane = Plane()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_LAMBDA_LOG_LEVEL", "FATAL")
        forget_functions()
        patch.setattr(importlib.import_module("lambdas.event_runtime"), "use_cases", plane.use_cases)
        patch.setattr(importlib.import_module("lambdas.observing"), "count", lambda *_: None)
        for function in ("tenant_events", "event_operators"):
            importlib.import_module(f"lambdas.events.{function}")
        _log_into(plane.logs, patch)
        yield plane
    forget_functions()


def a_request(key: str) -> dict[str, Any]:
    """A valid request, as API Gateway sends it."""
    route, function, body = ROUTES[key]
    by_key = {"authorization": f"Bearer {KEY}"} if function == "tenant_events" else {}
    signed = {"authorizer": {"iam": {"userArn": EXPLICIT.by}}} if function == "event_operators" else {}
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": key,
        "rawPath": route.path,
        "headers": {"content-type": "application/json", **by_key},
        "requestContext": {"http": {"method": route.method}, **signed},
        "isBase64Encoded": False,
        "stageVariables": {"proof": PROOF},
    }
    if route.path_parameters:
        event["pathParameters"] = {name: IDS[name] for name in route.path_parameters}
    if body is not None:
        event["body"] = JsonText(body)
    return event


def requests_like(key: str) -> Callable[[Random], Any]:
    """Mostly wrong in what the caller chooses: the path, the query and the body. The rest is API Gateway's."""
    whole = a_request(key)
    chosen = {name: whole.pop(name) for name in ("pathParameters", "body") if name in whole}

    def make(rng: Random) -> Any:
        if rng.random() < 0.25:
            return over_http(rng, an_input(rng, {**whole, **chosen}))
        part = an_input(rng, {**chosen, "body": chosen.get("body", JsonText())})
        return over_http(rng, {**whole, **part} if isinstance(part, dict) else {**whole, "body": part})

    return make


def met(plane: Plane, function: str, event: Any) -> str:
    result = plane.call(function, event)
    status, body = result["statusCode"], json.loads(result["body"])
    assert 200 <= status < 500, f"answered {status}"
    assert KEY not in result["body"]
    assert SECRET not in result["body"]
    if status >= 400:
        assert not plane.effects, f"refused, but for {plane.effects}"
        assert (body["status"], result["headers"]["Content-Type"]) == (status, "application/problem+json")
        assert body["detail"]
    if status not in (400, 403) or at(event, "stageVariables", "proof") == PROOF:
        asked = at(event, "routeKey")
        assert status == 400 or status in statuses(asked), f"answered {status} to {asked}"
        assert status >= 400 or request_is_documented(asked, event), "accepted what is not documented"
    return str(status)


@pytest.mark.parametrize("key", ROUTES)
def test_any_request_gets_a_documented_response(configured: Plane, key: str) -> None:
    _route, function, _body = ROUTES[key]
    plane: Any = configured
    answered = storm(key, plane, requests_like(key), lambda event: met(configured, function, event))
    # Some inputs are refused, and some are accepted.
    assert INPUTS < 100 or (answered["400"] and len(answered) > 1), answered


def test_nothing_that_is_secret_is_logged(configured: Plane) -> None:
    switch_log(on=True)
    configured.logs.keeps = True
    for key, (_route, function, _body) in ROUTES.items():
        make = requests_like(key)
        for seed in range(20):
            configured.call(function, make(Random(seed)))
    configured.logs.keeps = False
    switch_log(on=False)
    logged = "".join(configured.logs.lines)
    assert len(configured.logs.lines) >= 20 * len(ROUTES)
    assert KEY not in logged
    assert SECRET not in logged
