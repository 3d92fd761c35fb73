"""Compares a rollout on the emulator with a bare script that updates the same stacks, with the same concurrency.

It measures twice. The emulator's stacks are done almost at once, so little but Berth's own steps is measured. On AWS a
stack takes up to a minute. So the second measurement has stacks with a resource whose function sleeps.

On AWS, CloudFormation sends an event when a stack is done. The emulator sends none, so a thread of the benchmark does.
There is no event plane, whose functions would take processors from the rollout here, and do not on AWS.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

from bench.deployed import Deployed, deployed
from bench.measure import Result
from bench.memory import watched
from bench.stack_events import StackEvents
from orchestrator.api.rollout_requests import RolloutIdRequest, StageSpec, StartRollout
from orchestrator.api.rollout_routes import GET_ROLLOUT, START_ROLLOUT
from orchestrator.client.client import Client
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import parse_timestamp
from orchestrator.local.home import polls
from orchestrator.local.releases import Template, bumped, publish, released_template
from orchestrator.releases.records import Release
from orchestrator.tenants.names import Names
from orchestrator.tenants.records import Attempt, Operation, Request

TENANTS = 40
AT_ONCE = 8
STACK_SECONDS = 8

_EVENTS_EVERY = 0.2
_LONGEST_SECONDS = 600
_RETRIED = frozenset({429, 500, 502, 503})
_ENDED = frozenset({"SUCCEEDED", "FAILED", "HALTED", "ABORTED"})

_SLEEPER = f"""
import json, time, urllib.request

def handler(event, _context):
    if event["RequestType"] != "Delete":
        time.sleep({STACK_SECONDS})
    answer = {{name: event[name] for name in ("StackId", "RequestId", "LogicalResourceId")}}
    answer |= {{"Status": "SUCCESS", "PhysicalResourceId": "sleeper"}}
    request = urllib.request.Request(event["ResponseURL"], data=json.dumps(answer).encode(), method="PUT")
    urllib.request.urlopen(request, timeout=10).close()
"""


def rollout_emulator() -> list[Result]:
    with (
        deployed(events="false", stackEvents="true", awaitStackSeconds="60") as control_plane,
        watched(control_plane.emulator) as memory,
    ):
        fleet = _Fleet(control_plane)
        with fleet.stack_events():
            fleet.create()
            results = _measure(fleet)
        return [*results, memory.result("rollout")]


def _measure(fleet: _Fleet) -> list[Result]:
    quick, slow = fleet.quick_template, fleet.slow_template
    fleet.roll_out(fleet.publish("90.0.0", quick(60)))  # A warm-up, which starts the functions.
    rolled_out = fleet.roll_out(fleet.publish("91.0.0", quick(61)))
    bare = fleet.update_bare(fleet.publish("92.0.0", quick(62)))
    slowly = fleet.roll_out(fleet.publish("93.0.0", slow(63)))
    bare_slowly = fleet.update_bare(fleet.publish("94.0.0", slow(64)))
    takes = f"stacks that take {STACK_SECONDS} s"
    return [
        Result(
            f"rollout / bare UpdateStack, {AT_ONCE} at once, {takes}", round(slowly / bare_slowly, 2), "x", "<= 1.17"
        ),
        Result(f"rollout, {AT_ONCE} at once, {takes}", _per_minute(slowly), "tenants per minute", ""),
        Result(f"bare UpdateStack, {AT_ONCE} at once, {takes}", _per_minute(bare_slowly), "tenants per minute", ""),
        Result(f"rollout / bare UpdateStack, {AT_ONCE} at once, instant stacks", round(rolled_out / bare, 2), "x", ""),
        Result(f"rollout, {AT_ONCE} at once, instant stacks", _per_minute(rolled_out), "tenants per minute", ""),
        Result(f"bare UpdateStack, {AT_ONCE} at once, instant stacks", _per_minute(bare), "tenants per minute", ""),
    ]


def _per_minute(seconds: float) -> float:
    return round(TENANTS * 60 / seconds, 1)


@dataclass(frozen=True)
class _Fleet:
    on: Deployed

    def create(self) -> None:
        stepfunctions, executions = self.on.client("stepfunctions"), self.on.executions()

        def create(tenant: TenantId) -> None:
            attempt = Attempt(tenant, Operation.CREATE, self.on.outputs["TemplateVersion"], 1)
            execution = executions.start(attempt, Request(by="bench", explicit=True))
            for _ in _looks():
                status = stepfunctions.describe_execution(executionArn=execution)["status"]
                if status == "SUCCEEDED":
                    return
                if status != "RUNNING":
                    break
            raise RuntimeError(f"{tenant} was not created: {status}.")

        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(create, self._tenants))

    @contextmanager
    def stack_events(self) -> Iterator[None]:
        """Send events about the stacks that operations wait for, about as soon as CloudFormation does."""
        clients = {service: self.on.client(service) for service in ("dynamodb", "cloudformation", "lambda")}
        pages = clients["lambda"].get_paginator("list_functions").paginate()
        functions = {
            each["Handler"].split(".")[-2]: each["FunctionName"] for page in pages for each in page["Functions"]
        }
        events = StackEvents(clients.__getitem__, self.on.outputs["TableName"], functions["stack_event"])
        over = threading.Event()

        def send() -> None:
            while not over.wait(_EVENTS_EVERY):
                for tenant in self._tenants:
                    events.send(tenant)

        with ThreadPoolExecutor(1) as pool:
            sending = pool.submit(send)
            try:
                yield
            finally:
                over.set()
            sending.result()

    def publish(self, version: str, template: Template) -> Release:
        return publish(self.on.emulator, self.on.outputs, version, bumped(template, version))

    def quick_template(self, visibility_timeout: int) -> Template:
        template = released_template(self.on.outputs["TemplateVersion"])
        template["Resources"]["InboundQueue"]["Properties"]["VisibilityTimeout"] = visibility_timeout
        return template

    def slow_template(self, visibility_timeout: int) -> Template:
        template = self.quick_template(visibility_timeout)
        properties = {"ServiceToken": self._sleeper, "VisibilityTimeout": visibility_timeout}
        template["Resources"]["Sleeper"] = {"Type": "Custom::Sleeper", "Properties": properties}
        return template

    def roll_out(self, release: Release) -> float:
        """Roll out the release, and return the seconds from the request until the last tenant was done."""
        stage = StageSpec(size="rest", max_concurrency=AT_ONCE, tolerated="0", bake_seconds=0)
        requested_at = time.time()
        started = self._api.send_request(START_ROLLOUT, StartRollout(version=release.version, stages=[stage]))
        if started.status != 202:
            raise RuntimeError(f"The rollout was not started: {started.status} {started.body}")
        for _ in _looks(every=1.0):
            answer = self._api.send_request(GET_ROLLOUT, RolloutIdRequest(rollout_id=started.body["rolloutId"]))
            if answer.status not in _RETRIED and answer.body["status"] in _ENDED:
                if answer.body["status"] != "SUCCEEDED" or answer.body["succeeded"] != TENANTS:
                    raise RuntimeError(f"The rollout did not succeed: {answer.body}")
                return parse_timestamp(answer.body["endedAt"]).timestamp() - requested_at
        raise RuntimeError(f"The rollout did not end: {answer.body}")

    def update_bare(self, release: Release) -> float:
        cloudformation = self.on.client("cloudformation")
        kept = [{"ParameterKey": name, "UsePreviousValue": True} for name in ("TenantId", "MetadataServiceToken")]

        def update(tenant: TenantId) -> None:
            stack = Names().stack_of(tenant)
            cloudformation.update_stack(StackName=stack, TemplateURL=release.template_url, Parameters=kept)
            for _ in _looks():
                status = cloudformation.describe_stacks(StackName=stack)["Stacks"][0]["StackStatus"]
                if status == "UPDATE_COMPLETE":
                    return
                if not status.endswith("_IN_PROGRESS"):
                    break
            raise RuntimeError(f"{stack} was not updated: {status}.")

        began = time.perf_counter()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(update, self._tenants))
        return time.perf_counter() - began

    @property
    def _tenants(self) -> list[TenantId]:
        return [TenantId(f"bench-{number}") for number in range(TENANTS)]

    @cached_property
    def _api(self) -> Client:
        return self.on.api()

    @cached_property
    def _sleeper(self) -> str:
        return self.on.function("sleeper", _SLEEPER)


def _looks(every: float = 0.2) -> Iterator[None]:
    polled_at = 0.0
    for _ in polls(_LONGEST_SECONDS):
        if time.monotonic() - polled_at >= every:
            polled_at = time.monotonic()
            yield
