"""Measures the processor time of the functions that are called most, and computes what memory costs least.

Lambda gives a function processor time in proportion to its memory. So a call with more memory computes for a shorter
time, at the same price, but waits for AWS or a receiver as long as before, at a higher price.

The functions run in this process, and AWS is an emulator in another one: so the processor time is theirs alone.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from bench.delivery_receivers import Kind, receivers
from bench.deployed import Deployed, deployed
from bench.event_delivery import delivery_functions
from bench.event_plane import EventPlane, body_of, forget_clients, made
from bench.event_settings import EVENTS_TABLE
from bench.measure import Result, silence
from bench.played_lambda import QUEUE_BATCH, record_of
from orchestrator.adapters import aws
from orchestrator.adapters.delivery_queues import to_wire
from orchestrator.adapters.dynamodb.event_keys import event_key
from orchestrator.common.callers import PROOF_VARIABLE, digest_of
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import timestamp
from orchestrator.events.configuring import SettingsChange
from orchestrator.events.configuring_connections import IssuedSecret, NewConnection
from orchestrator.events.delivery.messages import DeliveryMessage
from orchestrator.events.delivery.records import DeliveryRef, Destination, DestinationKind
from orchestrator.events.plans import Plan
from orchestrator.local.home import polls
from orchestrator.tenants.execution_input import machine_input
from orchestrator.tenants.records import Attempt, Operation, Request

SIZES = (128, 256, 512, 1024, 1769)
"""In MB. 1,769 MB are one whole processor."""
WHOLE_PROCESSOR = 1769
REQUEST, GB_SECOND = 0.20, 13.33
"""In dollars per million, on arm64."""
WAITS = {"dynamodb": 5, "sqs": 10, "stepfunctions": 30, "cloudformation": 200, "s3": 20, "kms": 10, "lambda": 50}
"""How long a request to each service is assumed to take on AWS, in milliseconds."""
RECEIVER_MILLISECONDS = 250
"""How long a receiver is assumed to take."""
ROUNDS, CREATES = 200, 12
OPERATORS = {
    "operators for a tenant": "GET /tenants/{tenantId}",
    "operators for the releases": "GET /releases",
}
"""The requests of operators that are measured: those that open consoles repeat most."""
_STACK_SECONDS = 60
_STEPS = ("begin", "start_stack", "inspect_stack", "finish")
_PROOF = "the benchmark's own"
_PAYLOAD = {"order": 42, "customer": "ada@example.com", "total": "19.90", "currency": "EUR"}

Handler = Callable[[object, object], Any]


def billed_milliseconds(megabytes: int, processor: float, waiting: float) -> int:
    """The duration of a call that computes on one processor, and waits for others in between."""
    return math.ceil(processor * max(1.0, WHOLE_PROCESSOR / megabytes) + waiting)


def dollars_per_million(megabytes: int, processor: float, waiting: float) -> float:
    return REQUEST + megabytes / 1024 * billed_milliseconds(megabytes, processor, waiting) / 1000 * GB_SECOND


@dataclass
class _Requests:
    """The requests to AWS, by service."""

    made: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of_functions(cls) -> _Requests:
        """Those of the functions, which must not have made their clients before."""
        requests = cls()
        session: Any = aws._session()
        session.register("before-call", requests._note)
        return requests

    def _note(self, model: Any, **_: Any) -> None:
        self.made[model.service_model.service_name] += 1


@dataclass
class Calls:
    """The calls of one function. The first one is not kept: it loads what the others find loaded."""

    name: str
    requests: _Requests
    processor: list[float] = field(default_factory=list)
    """In milliseconds."""
    waiting: list[float] = field(default_factory=list)

    @contextmanager
    def measured(self, also_waits: float = 0.0) -> Iterator[None]:
        self.requests.made.clear()
        began = time.process_time()
        yield
        self.processor.append((time.process_time() - began) * 1000)
        waits = sum(WAITS[service] * times for service, times in self.requests.made.items())
        self.waiting.append(also_waits + waits)

    def results(self) -> Iterator[Result]:
        processor = round(statistics.median(self.processor[1:]), 1)
        waiting = statistics.median(self.waiting[1:])
        name = f"memory: {self.name}"
        yield Result(f"{name}: processor time per call, p50", processor, "ms", "")
        yield Result(f"{name}: assumed to wait, p50", waiting, "ms", "")
        costs = {size: dollars_per_million(size, processor, waiting) for size in SIZES}
        details = tuple(f"{size:,} MB: {cost:.2f} USD per million calls" for size, cost in costs.items())
        yield Result(f"{name}: cheapest memory", min(costs, key=costs.__getitem__), "MB", "", details)


def function_memory() -> list[Result]:
    return [result for calls in (*_of_control_plane(), *_of_event_plane()) for result in calls.results()]


# The control plane


def _of_control_plane() -> Sequence[Calls]:
    with deployed(real_waits=True, events="false") as control_plane, _environment_of(control_plane), silence():
        machine = _waiting_machine(control_plane)
        requests = _Requests.of_functions()
        calls = {name: Calls(name, requests) for name in (*_STEPS, "get_queue", *OPERATORS)}
        tenants = [f"memory-{number}" for number in range(CREATES)]
        for tenant in tenants:
            _create(control_plane, machine, tenant, calls)
        get_queue = _handler("api", "get_queue")
        for _ in range(ROUNDS):
            with calls["get_queue"].measured():
                body_of(get_queue({"tenantId": tenants[0]}, None), 200)
        operators = _handler("api", "operators")
        for name, route in OPERATORS.items():
            request = _request_of_operator(route, tenants[0])
            for _ in range(ROUNDS):
                with calls[name].measured():
                    body_of(operators(request, None), 200)
        return list(calls.values())


def _request_of_operator(route: str, tenant: str) -> Mapping[str, Any]:
    """The event that API Gateway sends."""
    return {
        "version": "2.0",
        "routeKey": route,
        "pathParameters": {"tenantId": tenant} if "{tenantId}" in route else {},
        "requestContext": {"authorizer": {"iam": {"userArn": "arn:aws:iam::000000000000:user/bench"}}},
        "stageVariables": {PROOF_VARIABLE: _PROOF},
    }


def _waiting_machine(control_plane: Deployed) -> str:
    """A machine whose executions do nothing. A function only works for an execution that is running."""
    waits = {"StartAt": "Wait", "States": {"Wait": {"Type": "Wait", "Seconds": 3600, "End": True}}}
    created = control_plane.client("stepfunctions").create_state_machine(
        name="bench-waiting", definition=json.dumps(waits), roleArn="arn:aws:iam::000000000000:role/bench"
    )
    return str(created["stateMachineArn"])


def _create(control_plane: Deployed, machine: str, tenant: str, calls: Mapping[str, Calls]) -> None:
    """Play the machine that creates a tenant: the states whose functions are measured."""
    attempt = Attempt(TenantId.parse(tenant), Operation.CREATE, control_plane.outputs["TemplateVersion"], 1)
    given = machine_input(attempt, Request(by="bench", explicit=True))
    started = control_plane.client("stepfunctions").start_execution(
        stateMachineArn=machine, name=attempt.name, input=json.dumps(given)
    )
    execution = {
        "Id": started["executionArn"],
        "Name": attempt.name,
        "StartTime": timestamp(started["startDate"]),
        "Input": given,
    }

    def step(name: str, expected: str | None = None, **more: object) -> dict[str, Any]:
        handler = _handler("tenants", name)
        with calls[name].measured():
            result: dict[str, Any] = handler({"execution": execution, **more}, None)
        if expected and result["outcome"] != expected:
            raise RuntimeError(f"{name} ended with {result}.")
        return result

    step("begin", "begun", operation=Operation.CREATE.value)
    stack = step("start_stack")
    for _ in polls(_STACK_SECONDS):
        inspected = step("inspect_stack", stack=stack)
        if inspected["outcome"] == "done":
            break
    step("finish", stack=inspected)


@contextmanager
def _environment_of(control_plane: Deployed) -> Iterator[None]:
    """The variables of the deployed functions, for their code in this process."""
    before = dict(os.environ)
    pages = control_plane.client("lambda").get_paginator("list_functions").paginate()
    functions = {each["Handler"].split(".")[-2]: each for page in pages for each in page["Functions"]}
    os.environ.pop("AWS_PROFILE", None)
    for name in (*_STEPS, "get_queue", "operators"):
        os.environ.update(functions[name]["Environment"]["Variables"])
    os.environ["BERTH_API_PROOF_DIGEST"] = digest_of(_PROOF)
    os.environ.update(control_plane.emulator.client_environment())
    forget_clients()
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
        forget_clients()


# The event plane


def _of_event_plane() -> Sequence[Calls]:
    with receivers([Kind.QUICK]) as there, delivery_functions() as (client, _):
        requests = _Requests.of_functions()
        plane = made(client, change=SettingsChange(plan=Plan.PRO, inbox=False, type_index=False))
        connection = _connect(plane, there.url(0))
        calls = [Calls(name, requests) for name in ("ingest", "dispatch_events", "deliver_events")]
        batches = Calls(f"deliver_events with {QUEUE_BATCH} messages", requests)
        for _ in range(ROUNDS // QUEUE_BATCH):
            events = [_sent(plane, client, calls) for _ in range(QUEUE_BATCH)]
            with batches.measured(RECEIVER_MILLISECONDS - _waits_at_once(QUEUE_BATCH)):
                _deliver(plane, connection, events)
            with calls[2].measured(RECEIVER_MILLISECONDS):
                _deliver(plane, connection, [_sent(plane, client, calls)])
        return [*calls, batches]


def _waits_at_once(messages: int) -> float:
    """A batch's deliveries wait at the same time: the requests of all but one cost no time of their own."""
    return (messages - 1) * 2 * WAITS["dynamodb"]


def _connect(plane: EventPlane, url: str) -> str:
    use_cases = importlib.import_module("lambdas.event_runtime").use_cases
    new = NewConnection("receiver", Destination(DestinationKind.WEBHOOK, url))
    created = use_cases.configuring_connections("bench").create(plane.settings, new)
    assert isinstance(created, IssuedSecret), created
    return created.connection.connection_id


def _sent(plane: EventPlane, client: Any, calls: Sequence[Calls]) -> str:
    """Accept an event and dispatch it. Returns its id."""
    request = plane.request("POST /events", body=json.dumps({"event_type": "order.created", "payload": _PAYLOAD}))
    with calls[0].measured():
        answer = _handler("events", "ingest")(request, None)
    event_id = str(body_of(answer, 202)["event_id"])
    row = client.get_item(TableName=EVENTS_TABLE, Key=event_key(plane.settings.life, event_id))["Item"]
    with calls[1].measured():
        _handler("events", "dispatch_events")({"Records": [record_of(row)]}, None)
    return event_id


def _deliver(plane: EventPlane, connection: str, events: Sequence[str]) -> None:
    life = plane.settings.life
    records = [
        {"messageId": each, "body": to_wire(DeliveryMessage(DeliveryRef(life, each, connection)))} for each in events
    ]
    answer = _handler("events", "deliver_events")({"Records": records}, None)
    if answer["batchItemFailures"]:
        raise RuntimeError(f"Deliveries failed: {answer}")


def _handler(folder: str, function: str) -> Handler:
    handler: Handler = importlib.import_module(f"lambdas.{folder}.{function}").handler
    return handler
