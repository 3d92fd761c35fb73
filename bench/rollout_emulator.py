"""A rollout on the emulator against a bare script that updates the same stacks, as many at once.

Twice. The emulator's stacks are done almost at once, so that little but Berth's own steps is measured; on AWS a stack
takes ten seconds or more. So also with stacks that take such a time: a function behind one of their resources sleeps.
"""

from __future__ import annotations

import io
import tempfile
import threading
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from bench.measure import Result
from orchestrator.adapters.berth_api import BerthApi
from orchestrator.adapters.sessions import session_without_profile
from orchestrator.adapters.stepfunctions import StepFunctionsExecutions
from orchestrator.local.deployment import deploy
from orchestrator.local.emulator import Emulator, free_port
from orchestrator.local.home import Home, polls
from orchestrator.local.releases import Template, bumped, publish, released_template
from orchestrator.records import Attempt, Operation, Release, Request, parse_timestamp
from orchestrator.tenants import TenantId

TENANTS = 40
AT_ONCE = 8
STACK_SECONDS = 8

_LONGEST_SECONDS = 600
_ASK_AGAIN = frozenset({429, 500, 502, 503})
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
    with tempfile.TemporaryDirectory() as home:
        emulator = Emulator(port=free_port(), home=Path(home), keep_state=False)
        emulator.start()
        try:
            outputs = deploy(emulator, lambda _step: None)
            with _watched(emulator) as memory:
                return [*_measure(_Fleet(emulator, outputs)), memory.result()]
        finally:
            emulator.stop()


def _measure(fleet: _Fleet) -> list[Result]:
    fleet.create()
    quick, slow = fleet.quick_template, fleet.slow_template
    fleet.roll_out(fleet.publish("90.0.0", quick(60)))  # The functions are started by this one.
    rolled_out = fleet.roll_out(fleet.publish("91.0.0", quick(61)))
    bare = fleet.update_bare(fleet.publish("92.0.0", quick(62)))
    slowly = fleet.roll_out(fleet.publish("93.0.0", slow(63)))
    bare_slowly = fleet.update_bare(fleet.publish("94.0.0", slow(64)))
    takes = f"stacks that take {STACK_SECONDS} s"
    return [
        Result(
            f"rollout / bare UpdateStack, {AT_ONCE} at once, {takes}", round(slowly / bare_slowly, 2), "x", "<= 1.5"
        ),
        Result(f"rollout, {AT_ONCE} at once, {takes}", _a_minute(slowly), "tenants a minute", ""),
        Result(f"bare UpdateStack, {AT_ONCE} at once, {takes}", _a_minute(bare_slowly), "tenants a minute", ""),
        Result(f"rollout / bare UpdateStack, {AT_ONCE} at once, instant stacks", round(rolled_out / bare, 2), "x", ""),
        Result(f"rollout, {AT_ONCE} at once, instant stacks", _a_minute(rolled_out), "tenants a minute", ""),
        Result(f"bare UpdateStack, {AT_ONCE} at once, instant stacks", _a_minute(bare), "tenants a minute", ""),
    ]


def _a_minute(seconds: float) -> float:
    return round(TENANTS * 60 / seconds, 1)


@dataclass(frozen=True)
class _Fleet:
    emulator: Emulator
    outputs: dict[str, str]

    def create(self) -> None:
        stepfunctions = self._client("stepfunctions")
        executions = StepFunctionsExecutions(
            lambda: stepfunctions, lambda operation: self.outputs[f"{operation.value.capitalize()}TenantMachineArn"]
        )

        def create(tenant: TenantId) -> None:
            attempt = Attempt(tenant, Operation.CREATE, self.outputs["Version"], 1)
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

    def publish(self, version: str, template: Template) -> Release:
        return publish(self.emulator, self.outputs, version, bumped(template, version))

    def quick_template(self, visibility_timeout: int) -> Template:
        template = released_template(self.outputs["Version"])
        template["Resources"]["InboundQueue"]["Properties"]["VisibilityTimeout"] = visibility_timeout
        return template

    def slow_template(self, visibility_timeout: int) -> Template:
        template = self.quick_template(visibility_timeout)
        properties = {"ServiceToken": self._sleeper, "VisibilityTimeout": visibility_timeout}
        template["Resources"]["Sleeper"] = {"Type": "Custom::Sleeper", "Properties": properties}
        return template

    def roll_out(self, release: Release) -> float:
        """The seconds from when it was asked for until the last tenant was done."""
        stage = {"size": "rest", "maxConcurrency": AT_ONCE, "tolerated": "0", "bakeSeconds": 0}
        asked_at = time.time()
        started = self._api.request("POST", "/rollouts", body={"version": release.version, "stages": [stage]})
        if started.status != 202:
            raise RuntimeError(f"The rollout was not started: {started.status} {started.body}")
        for _ in _looks(every=1.0):
            told = self._api.request("GET", f"/rollouts/{started.body['rolloutId']}")
            if told.status not in _ASK_AGAIN and told.body["status"] in _ENDED:
                if told.body["status"] != "SUCCEEDED" or told.body["succeeded"] != TENANTS:
                    raise RuntimeError(f"The rollout did not succeed: {told.body}")
                return parse_timestamp(told.body["endedAt"]).timestamp() - asked_at
        raise RuntimeError(f"The rollout did not end: {told.body}")

    def update_bare(self, release: Release) -> float:
        cloudformation = self._client("cloudformation")
        kept = [{"ParameterKey": name, "UsePreviousValue": True} for name in ("TenantId", "MetadataServiceToken")]

        def update(tenant: TenantId) -> None:
            stack = tenant.stack_name
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
    def _api(self) -> BerthApi:
        session = session_without_profile(self.emulator.session_settings())
        credentials = session.get_credentials()
        assert credentials is not None
        url = self.emulator.api_url(self.outputs["ApiUrl"])
        return BerthApi(url, credentials, session.region_name, connect_to=self.emulator.endpoint)

    @cached_property
    def _sleeper(self) -> str:
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w") as code:
            code.writestr("sleeper.py", _SLEEPER)
        created = self._client("lambda").create_function(
            FunctionName="sleeper",
            Runtime="python3.13",
            Role="arn:aws:iam::000000000000:role/sleeper",
            Handler="sleeper.handler",
            Code={"ZipFile": archive.getvalue()},
            Timeout=60,
        )
        return str(created["FunctionArn"])

    def _client(self, service: str) -> Any:
        session: Any = session_without_profile(self.emulator.session_settings())
        return session.client(service, endpoint_url=self.emulator.endpoint)


def _looks(every: float = 0.2) -> Iterator[None]:
    looked_at = 0.0
    for _ in polls(_LONGEST_SECONDS):
        if time.monotonic() - looked_at >= every:
            looked_at = time.monotonic()
            yield


class _Memory:
    """The most that the emulator and its workers have held at once."""

    def __init__(self, group: int) -> None:
        self._group = group
        self._most = 0
        self._processes = 0

    def look(self) -> None:
        held = [size for size in map(self._held, Path("/proc").glob("[0-9]*")) if size]
        if sum(held) > self._most:
            self._most, self._processes = sum(held), len(held)

    def result(self) -> Result:
        name = f"rollout: most memory of the emulator, in {self._processes} processes"
        return Result(name, round(self._most / 1024), "MB", "")

    def _held(self, process: Path) -> int:
        """In kB; 0 of others' processes, and of those that have ended."""
        try:
            group = int((process / "stat").read_text().rpartition(")")[2].split()[2])
            if group != self._group:
                return 0
            lines = (process / "status").read_text().splitlines()
        except OSError:
            return 0
        return next((int(line.split()[1]) for line in lines if line.startswith("VmRSS:")), 0)


@contextmanager
def _watched(emulator: Emulator) -> Iterator[_Memory]:
    record = Home(emulator.home).record()
    assert record is not None
    memory, ended = _Memory(record.pid), threading.Event()

    def watch() -> None:
        while not ended.wait(1.0):
            memory.look()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield memory
    finally:
        ended.set()
        watcher.join()
