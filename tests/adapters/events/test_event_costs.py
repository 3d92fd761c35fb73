"""docs/costs.json has the number of requests that each call of the event plane's functions makes."""

from __future__ import annotations

import hashlib
import hmac
import importlib
import secrets
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from orchestrator.adapters.delivery_queues import to_wire
from orchestrator.adapters.dynamodb.event_keys import event_key
from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.delivery.messages import DeliveryMessage
from orchestrator.events.delivery.records import DeliveryRef
from orchestrator.events.event_ids import new_event_id
from orchestrator.events.records import TenantEpoch
from stacks.common.function_code import module_of
from tests.adapters.events.functions import EventFunctions, http_event
from tests.adapters.events.lives import EVENTS_TABLE, record
from tests.adapters.events.test_dispatch_stream import as_lambda_hands_it_over
from tests.adapters.handlers.functions import emitter
from tests.costs import COUNTS
from tests.fakes import ACME
from tests.fakes.receivers import Receiver

READS = frozenset({"GetItem", "BatchGetItem", "Query"})
COLUMNS = {"kms": "KMS", "s3": "S3", "sqs": "SQS"}
LARGE = secrets.token_hex(8000)
LONGER_THAN_REMEMBERED = timedelta(seconds=11)


@contextmanager
def noted() -> Iterator[Counter[str]]:
    """The requests of all clients that are created from now on, by the columns of the page."""
    found: Counter[str] = Counter()

    def note(model: Any, **_: Any) -> None:
        service = model.service_model.service_name
        found[COLUMNS.get(service) or ("reads" if model.name in READS else "writes")] += 1

    emitter().register("before-call", note)
    try:
        yield found
    finally:
        emitter().unregister("before-call", note)


class Context:
    def get_remaining_time_in_millis(self) -> int:
        return 300_000


class Calls:
    """Calls of the functions, each of which is in the table."""

    def __init__(self, functions: EventFunctions) -> None:
        self.functions = functions
        self.key = functions.key()
        assert functions.operate("PUT /settings", body={"plan": "starter"}).status == 200
        source = functions.operate("POST /sources", body={"name": "shop", "provider": "github"}).body
        self.source, self.secret = source["source_id"], source["secret"]
        self.form_id = functions.operate("POST /forms", body={"name": "contact"}).body["form_id"]

        (row,) = (row for row in self.functions.rows if row["sk"]["S"] == "CONFIG#main")
        self.life = TenantEpoch(ACME, row["epoch"]["S"])

    def wait(self) -> None:
        self.functions.clock.advance(LONGER_THAN_REMEMBERED)

    def send(self, status: int = 202, *, key: str | None = None, text: str = "", **headers: str) -> str:
        body = {"event_type": "order.created", "payload": {"text": text}}
        event = http_event("POST /events", key=key or self.key, body=body, headers=headers)
        # Events of the same moment have no order, and only some of them are small.
        self.functions.clock.advance(timedelta(milliseconds=1))
        answer = self.functions.call("ingest", event)
        assert answer.status == status
        return str(answer.body.get("event_id"))

    def hook(self, status: int = 200, *, delivery: str, source: str | None = None, secret: str | None = None) -> None:
        signature = hmac.new((secret or self.secret).encode(), b"{}", hashlib.sha256).hexdigest()
        headers = {"x-hub-signature-256": f"sha256={signature}", "x-github-delivery": delivery}
        ids = {"sourceId": source or self.source}
        event = http_event("POST /hooks/{sourceId}", ids=ids, body="{}", headers=headers)
        assert self.functions.call("receive", {**event, "routeKey": "ANY /hooks/{sourceId}"}).status == status

    def submit(self, status: int = 202, form_id: str | None = None) -> None:
        event = http_event("POST /forms/{formId}", ids={"formId": form_id or self.form_id}, body={"a": "b"})
        assert self.functions.call("receive", event).status == status

    def ask(self, route: str, **more: Any) -> Any:
        answer = self.functions.ask(route, self.key, **more)
        assert answer.status == 200, answer.body
        return answer.body

    def count(self, events: int) -> None:
        keys = [event_key(self.life, new_event_id(self.functions.clock.now(), 0)) for _ in range(events)]
        records = [record(each["pk"]["S"], each["sk"]["S"]) for each in keys]
        importlib.import_module(module_of("count_usage")).handler({"Records": records}, None)

    def run(self, name: str, *, later: timedelta = timedelta(hours=1)) -> None:
        """A schedule calls the function, so much later."""
        self.functions.clock.advance(later)
        importlib.import_module(module_of(name)).handler({}, Context())

    def end(self) -> None:
        purges = importlib.import_module("lambdas.event_runtime").use_cases.ports.purges
        assert purges.end(self.life, self.functions.clock.now())

    def purge(self) -> None:
        step = {"tenantId": self.life.tenant.value, "epoch": self.life.epoch}
        importlib.import_module(module_of("purge_events")).handler(step, Context())

    def connect(self, address: str) -> str:
        body = {"name": "shop", "destination": "webhook", "address": address}
        created = self.functions.operate("POST /connections", body=body)
        assert created.status == 201
        return str(created.body["connection_id"])

    def dispatch(self, event_id: str) -> None:
        found = self.functions.dynamodb.get_item(TableName=EVENTS_TABLE, Key=event_key(self.life, event_id))
        records = [as_lambda_hands_it_over(dict(found["Item"]))]
        importlib.import_module(module_of("dispatch_events")).handler({"Records": records}, None)

    def deliver(self, event_id: str, connection_id: str) -> None:
        message = to_wire(DeliveryMessage(DeliveryRef(self.life, event_id, connection_id)))
        event = {"Records": [{"messageId": "1", "body": message}]}
        assert importlib.import_module(module_of("deliver_events")).handler(event, None) == {"batchItemFailures": []}

    def unfinished(self, tenant: str) -> None:
        importlib.import_module(module_of("unfinished_work")).handler({"tenantId": tenant}, None)


@pytest.fixture
def counted(event_functions: EventFunctions, monkeypatch: pytest.MonkeyPatch) -> dict[str, Counter[str]]:
    monkeypatch.setenv("BERTH_PURGE_SETTLE_SECONDS", "0")
    monkeypatch.setenv("BERTH_LOOPBACK_DESTINATIONS", "true")
    monkeypatch.setenv("BERTH_VERSION", "1.0.0")
    monkeypatch.setenv("BERTH_PURGE_MACHINE", "arn:aws:states:eu-west-1:123456789012:stateMachine:purge")
    found: dict[str, Counter[str]] = {}
    with noted() as requests:
        calls = Calls(event_functions)

        def call(name: str, make: Callable[[], object]) -> None:
            before = Counter(requests)
            make()
            found[name] = requests - before

        call("first event of a function instance", calls.send)
        call("event", calls.send)
        calls.wait()
        call("event, after 10 seconds", calls.send)
        call("event with Idempotency-Key", lambda: calls.send(**{"idempotency-key": "1"}))
        call("the same event again", lambda: calls.send(**{"idempotency-key": "1"}))
        call("event above 4 KB", lambda: calls.send(text=LARGE))
        # In another function than events with a key.
        calls.wait()
        call("first webhook of a function instance", lambda: calls.hook(delivery="1"))
        call("webhook", lambda: calls.hook(delivery="2"))
        calls.wait()
        call("first submission of a function instance", calls.submit)
        call("submission", calls.submit)
        calls.send()
        calls.hook(delivery="3")
        call("refused: no key, or not like one", lambda: calls.send(401, key="nonsense"))
        call("refused: unknown key", lambda: calls.send(401, key=f"bk_test_{'A' * 43}"))
        call("refused: wrong signature", lambda: calls.hook(401, delivery="4", secret="other"))
        call("refused: unknown source", lambda: calls.hook(404, delivery="4", source=f"src_{'0' * 24}"))
        call("refused: unknown form", lambda: calls.submit(404, form_id=f"form_{'0' * 24}"))
        call("refused: too large", lambda: calls.send(413, text="a" * 300_000))
        event_id = calls.send()
        call("event by its id", lambda: calls.ask("GET /events/{eventId}", ids={"eventId": event_id}))
        call("list of events", lambda: calls.ask("GET /events"))
        call("list by type", lambda: calls.ask("GET /events", query={"event_type": "order.created"}))
        call("inbox without large events", lambda: calls.ask("GET /inbox", query={"limit": "3"}))
        call("acknowledgement of one event", lambda: calls.ask("POST /inbox/ack", body={"event_ids": [event_id]}))
        call("usage", lambda: calls.ask("GET /usage"))
        call("batch of the stream, of one tenant", lambda: calls.count(500))
        call("question for unfinished events, some in the inbox", lambda: calls.unfinished("acme"))
        call("question for unfinished events, no settings", lambda: calls.unfinished("globex"))
        call("search for deleted tenants, one tenant", lambda: calls.run("find_purges"))
        call("counts for bills, one tenant with events", lambda: calls.run("bill_usage"))
        call("counts for bills, one tenant without events", lambda: calls.run("bill_usage"))
        with Receiver() as receiver:
            connection_id = calls.connect(receiver.url)
            first, second = calls.send(), calls.send()
            call("dispatch of an event in the inbox to one connection", lambda: calls.dispatch(first))
            calls.dispatch(second)
            call("first delivery of a function instance", lambda: calls.deliver(first, connection_id))
            call("delivery", lambda: calls.deliver(second, connection_id))
            assert len(receiver.requests) == 2
            call("sweep with nothing to do", lambda: calls.run("sweep_deliveries"))
            calls.functions.operate("POST /connections/{connectionId}/pause", ids={"connectionId": connection_id})
            calls.dispatch(calls.send())
            call("sweep that looks at one paused connection", lambda: calls.run("sweep_deliveries"))
            a_minute = timedelta(minutes=1)
            call("the next sweeps, for 15 minutes", lambda: calls.run("sweep_deliveries", later=a_minute))
            calls.functions.operate("POST /connections/{connectionId}/resume", ids={"connectionId": connection_id})
        event_functions.withdraw(TenantId.parse("acme"))
        calls.wait()
        calls.send(401)
        call("refused: the tenant is withdrawn", lambda: calls.send(401))
        calls.end()
        calls.purge()
        call("step of a purge that finds nothing", calls.purge)
    return found


def test_the_requests_of_every_call(counted: dict[str, Counter[str]]) -> None:
    assert {name: dict(requests) for name, requests in counted.items()} == COUNTS["event calls"]


@pytest.mark.parametrize("name", ["find_purges", "bill_usage", "sweep_deliveries"])
def test_a_scheduled_function_that_finds_nothing_writes_no_metric(
    event_functions: EventFunctions, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """A metric costs something in every hour in which it has a value."""
    monkeypatch.setenv("AWS_LAMBDA_LOG_LEVEL", "INFO")
    monkeypatch.setenv("BERTH_VERSION", "1.0.0")
    monkeypatch.setenv("BERTH_PURGE_MACHINE", "arn:aws:states:eu-west-1:123456789012:stateMachine:purge")
    calls = Calls(event_functions)
    capsys.readouterr()
    calls.run(name)
    written = capsys.readouterr().out
    assert '"message"' in written
    assert '"_aws"' not in written
