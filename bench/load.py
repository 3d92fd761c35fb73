"""Creates a thousand tenants at once, then makes many calls of getQueue, on the emulator.

To be independent of the machine's speed, getQueue is compared with a route to an empty function; the calls alternate.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

from bench.deployed import Deployed, deployed
from bench.load_checks import Execution, left_over, max_at_once, tenants_not_served, wrong_executions
from bench.load_clients import Answered, Call, at_once
from bench.measure import Result, percentile
from bench.memory import watched
from orchestrator.adapters.dynamodb.tenants import DynamoTable
from orchestrator.api.fields import TenantIdRequest
from orchestrator.api.queue_routes import GET_QUEUE
from orchestrator.api.requesting import HttpRequest
from orchestrator.client.client import Client
from orchestrator.client.transport import ApiAnswer, SignedHttp
from orchestrator.common.tenant_ids import TenantId
from orchestrator.local.home import polls
from orchestrator.tenants.records import STATE_DURING, Operation

TENANTS = 1_000
CALLS = 20_000
CLIENTS = 32
"""Clients that request new tenants. They are more than the emulator's functions can serve, so some have to retry."""
CALLERS = 4
"""Clients that call getQueue for tenants in service. They do not exceed the function's concurrency, so none waits."""
ROUNDS = 20

PROVISION_SECONDS = 720
CALL_SECONDS = 600

_CHECK_EVERY_SECONDS = 5.0
_READERS = 8
_BARE_ROUTE = "/bare"
# It logs a line, because the emulator waits 50 ms for a function's first log line. getQueue logs one, too: see
# :meth:`_Load._log_ready_answers`.
_BARE = """
def handler(_event, _context):
    print("called", flush=True)
    return {"statusCode": 200, "headers": {"Content-Type": "application/json"}, "body": "{}"}
"""


def load() -> list[Result]:
    with deployed() as control_plane, watched(control_plane.emulator) as memory:
        run = _Load(control_plane)
        provisioned = run.provision()
        checked = run.check()
        # Calls for tenants that do not exist would measure something else.
        called = run.call() if not any(result.is_broken for result in (*provisioned, *checked)) else []
        return [*provisioned, *checked, *called, memory.result("load")]


@dataclass(frozen=True)
class _Load:
    on: Deployed

    # A thousand tenants at once

    def provision(self) -> list[Result]:
        began = time.monotonic()
        answers = at_once(
            (self._get_queue(tenant) for tenant in self._tenants), clients=CLIENTS, deadline=began + PROVISION_SECONDS
        )
        took = time.monotonic() - began
        unsettled = self._settle(began + PROVISION_SECONDS)
        settled = TENANTS - unsettled
        minutes = (time.monotonic() - began) / 60
        within = f"within {PROVISION_SECONDS // 60} min"
        what = f"load: {TENANTS:,} tenants at once"
        return [
            Result(f"{what}: provisioned", round(settled / minutes, 1), "tenants per minute", ""),
            Result(f"{what}: until all were asked for", round(took, 1), "s", ""),
            Result(f"{what}: not settled {within}", unsettled, "tenants", "0"),
            *_answers(what, answers),
        ]

    def _settle(self, deadline: float) -> int:
        """Wait until no tenant is being provisioned any more, or the time is up. Returns how many still are."""
        unsettled = TENANTS
        checked_at = 0.0
        for _ in polls(max(0.0, deadline - time.monotonic())):
            if time.monotonic() - checked_at < _CHECK_EVERY_SECONDS:
                continue
            states = Counter[str]()
            for counted in self._table.versions_in_use().by_version.values():
                states.update(counted)
            # A tenant is not listed before the first step of its machine, and is being provisioned until the last.
            unsettled = TENANTS - states.total() + states[STATE_DURING[Operation.CREATE]]
            if unsettled == 0:
                break
            checked_at = time.monotonic()
        return unsettled

    # The checks after the creates

    def check(self) -> list[Result]:
        executions = self._executions()
        steps = self._failed_steps(executions)
        with ThreadPoolExecutor(_READERS) as pool:
            not_served = tenants_not_served(self._table, self._tenants, each=pool.map)
        wrong = wrong_executions(executions, self._tenants, self.on.outputs["TemplateVersion"])
        over = left_over(self._table, self._messages())
        what = f"load: {TENANTS:,} tenants at once"
        return [
            Result(f"{what}: executions at once, at most", max_at_once(executions), "", ""),
            Result(f"{what}: steps that failed and were repeated", steps.total(), "", "", _lines(steps)),
            Result(f"{what}: tenants without exactly one create", len(wrong), "", "0", tuple(wrong)),
            Result(f"{what}: rows that are not as they should be", len(not_served), "", "0", tuple(not_served)),
            Result(f"{what}: unfinished operations and dead letters", len(over), "", "0", tuple(over)),
        ]

    def _executions(self) -> list[Execution]:
        pages = self._stepfunctions.get_paginator("list_executions").paginate(stateMachineArn=self._machine)
        return [
            Execution(each["name"], each["status"], each["startDate"], each.get("stopDate"))
            for page in pages
            for each in page["executions"]
        ]

    def _failed_steps(self, executions: Sequence[Execution]) -> Counter[str]:
        """The errors of failed steps, and how often each occurred. A failed step was retried, or its operation failed.

        Timeouts are left out: the emulator sends no events about stacks, so every wait for one ends by its timeout.
        """

        def errors(name: str) -> list[str]:
            arn = f"{self._machine.replace(':stateMachine:', ':execution:')}:{name}"
            pages = self._stepfunctions.get_paginator("get_execution_history").paginate(executionArn=arn)
            events = (event for page in pages for event in page["events"] if event["type"] == "TaskFailed")
            failed = (event["taskFailedEventDetails"]["error"] for event in events)
            return [error for error in failed if error != "States.Timeout"]

        with ThreadPoolExecutor(_READERS) as pool:
            found = pool.map(errors, (execution.name for execution in executions))
            return Counter(error for each in found for error in each)

    def _messages(self) -> dict[str, int]:
        """The number of messages in each queue of the control plane, dead-letter queues included."""
        sqs, cloudformation = self.on.client("sqs"), self.on.client("cloudformation")
        pages = cloudformation.get_paginator("list_stack_resources").paginate(StackName="Berth")
        resources = [each for page in pages for each in page["StackResourceSummaries"]]
        counted = {}
        for queue in (each for each in resources if each["ResourceType"] == "AWS::SQS::Queue"):
            attributes = sqs.get_queue_attributes(QueueUrl=queue["PhysicalResourceId"], AttributeNames=["All"])
            waiting = [value for name, value in attributes["Attributes"].items() if "NumberOfMessages" in name]
            counted[queue["LogicalResourceId"]] = sum(map(int, waiting))
        return counted

    # Many calls of getQueue

    def call(self) -> list[Result]:
        self._log_ready_answers()
        bare, deadline = self._bare_call(), time.monotonic() + CALL_SECONDS
        tenants = (self._tenants[number % TENANTS] for number in range(CALLS))
        ours: list[Answered] = []
        others: list[Answered] = []
        seconds = {"ours": 0.0, "others": 0.0}
        at_once([bare, self._get_queue(self._tenants[0])] * CALLERS, clients=CALLERS, deadline=deadline)  # To warm up.
        # The calls alternate, so that other load on the machine affects both.
        while calls := [self._get_queue(tenant) for tenant in islice(tenants, CALLS // ROUNDS)]:
            if time.monotonic() > deadline:
                break
            for name, kept, made in (("ours", ours, calls), ("others", others, [bare] * len(calls))):
                began = time.monotonic()
                kept += at_once(made, clients=CALLERS, deadline=deadline)
                seconds[name] += time.monotonic() - began
        what = f"load: {len(ours):,} getQueue calls, {CALLERS} at once"
        our_rate, their_rate = len(ours) / seconds["ours"], len(others) / seconds["others"]
        results = [
            Result(f"{what}: not made within {CALL_SECONDS // 60} min", CALLS - len(ours), "calls", "0"),
            Result(f"{what}: calls per second / of an empty function", round(our_rate / their_rate, 3), "x", ""),
            Result(f"{what}: calls per second", round(our_rate, 1), "", ""),
        ]
        for part in (50, 99):
            mine, theirs = (percentile([each.seconds for each in kept], part) for kept in (ours, others))
            results.append(Result(f"{what}: p{part} / of an empty function", round(mine / theirs, 3), "x", ""))
            results.append(Result(f"{what}: p{part}", round(mine * 1000, 1), "ms", ""))
        not_ready = sum(each.status != 200 for each in ours)
        results.append(Result(f"{what}: answers without the queue", not_ready, "", "0"))
        return [*results, *_answers(what, ours)]

    def _log_ready_answers(self) -> None:
        """Without a line in the log, every call of getQueue would take the 50 ms that the emulator waits for one."""
        functions, name = self.on.client("lambda"), self.on.outputs["GetQueueFunctionName"]
        variables = functions.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
        variables["AWS_LAMBDA_LOG_LEVEL"] = "DEBUG"
        functions.update_function_configuration(FunctionName=name, Environment={"Variables": variables})

    def _get_queue(self, tenant: TenantId) -> Call:
        return lambda: self._api.send_request(GET_QUEUE, TenantIdRequest(tenant_id=tenant.value))

    def _bare_call(self) -> Call:
        """A route of the same API to an empty function with the same concurrency as getQueue."""
        gateway, api_id = self.on.client("apigatewayv2"), self.on.outputs["ApiUrl"].split("//")[1].split(".")[0]
        integration = gateway.create_integration(
            ApiId=api_id,
            IntegrationType="AWS_PROXY",
            IntegrationUri=self._bare_function(),
            PayloadFormatVersion="2.0",
        )["IntegrationId"]
        gateway.create_route(
            ApiId=api_id,
            RouteKey=f"GET {_BARE_ROUTE}",
            Target=f"integrations/{integration}",
            AuthorizationType="AWS_IAM",
        )

        def call() -> ApiAnswer:
            return self._http.send(HttpRequest("GET", _BARE_ROUTE, {}, None))

        return call

    def _bare_function(self) -> str:
        functions, bare = self.on.client("lambda"), self.on.function("bare", _BARE)
        concurrency = functions.get_function_concurrency(FunctionName=self.on.outputs["GetQueueFunctionName"])
        if "ReservedConcurrentExecutions" in concurrency:
            limit = concurrency["ReservedConcurrentExecutions"]
            functions.put_function_concurrency(FunctionName=bare, ReservedConcurrentExecutions=limit)
        return bare

    @cached_property
    def _tenants(self) -> Sequence[TenantId]:
        return [TenantId(f"load-{number}") for number in range(TENANTS)]

    @property
    def _api(self) -> Client:
        return Client(transport=self._http)

    @property
    def _http(self) -> SignedHttp:
        """One connection per thread, because real clients are separate programs."""
        if not hasattr(self._own, "http"):
            self._own.http = self.on.http()
        return self._own.http  # type: ignore[no-any-return]

    @cached_property
    def _own(self) -> threading.local:
        return threading.local()

    @cached_property
    def _table(self) -> DynamoTable:
        return self.on.table(connections=_READERS)

    @cached_property
    def _stepfunctions(self) -> Any:
        return self.on.client("stepfunctions", connections=_READERS)

    @property
    def _machine(self) -> str:
        return self.on.machine(Operation.CREATE)


def _answers(what: str, answered: Sequence[Answered]) -> Iterator[Result]:
    wrong = Counter(f"HTTP {each.status}" for each in answered if each.is_error)
    yield Result(f"{what}: error answers, after retries", wrong.total(), "", "0", _lines(wrong))
    yield Result(f"{what}: retries", sum(each.retries for each in answered), "", "")


def _lines(counted: Counter[str]) -> tuple[str, ...]:
    return tuple(f"{count} x {name}" for name, count in counted.most_common())
