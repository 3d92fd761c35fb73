"""What the functions log holds nothing with which somebody could do something: no task token, no signed address.

Nor does what they raise, which Lambda logs. That getQueue's credentials are not logged is tested with its handler.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator.adapters import custom_resource
from orchestrator.common.errors import Throttled
from orchestrator.common.times import timestamp
from orchestrator.tenants.execution_input import machine_input
from stacks.common.function_code import module_of
from tests.fakes import ACME, NAMES, QUEUE, VERSION, World, a_run, take
from tests.own_log import use_own_log

SECRET = "AQCEAAAAKgAAAAMAAAAAAAAAAXNlY3JldA"
SIGNED = f"https://cloudformation-custom-resource-response-euwest1.s3.amazonaws.com/arn?X-Amz-Signature={SECRET}"
ROLLOUT = "20261116-120000-abcd"
RUN = a_run()

Load = Callable[[str], Any]


@pytest.fixture
def world() -> World:
    """What the functions find in place of AWS."""
    world = World()
    take(world.table, RUN)
    return world


@pytest.fixture
def load(world: World, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Load]:
    use_own_log(monkeypatch, request)
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", "Berth")
    monkeypatch.setenv("BERTH_LOCATION", "aws:eu-west-1:000000000000")
    monkeypatch.setattr(custom_resource, "_put", lambda *_: None)
    forget_functions()

    def load(name: str) -> Any:
        monkeypatch.setattr(importlib.import_module("lambdas.runtime"), "use_cases", world)
        return importlib.import_module(module_of(name)).handler

    yield load
    forget_functions()


def forget_functions() -> None:
    for name in [name for name in sys.modules if name == "lambdas" or name.startswith("lambdas.")]:
        del sys.modules[name]


def execution() -> dict[str, Any]:
    return {
        "Id": RUN.execution,
        "StartTime": timestamp(RUN.started_at),
        "Input": machine_input(RUN.attempt, RUN.request),
    }


def a_resource(**properties: object) -> dict[str, Any]:
    return {
        "RequestType": "Create",
        "ResponseURL": SIGNED,
        "StackId": f"arn:aws:cloudformation:eu-west-1:1:stack/{NAMES.stack_of(ACME)}/1",
        "RequestId": "1",
        "LogicalResourceId": "Resource",
        "ResourceType": "Custom::Resource",
        "ResourceProperties": {
            "TenantId": ACME.value,
            "InboundQueueArn": QUEUE.arn,
            "InboundQueueUrl": QUEUE.url,
            "Version": VERSION,
            **properties,
        },
    }


EVENTS: dict[str, dict[str, Any]] = {
    "await_stack": {
        "execution": execution(),
        "stack": {"outcome": "started", "stackId": "stack-1"},
        "taskToken": SECRET,
    },
    "await_operator": {
        "execution": {"Id": "arn:execution", "Input": {"rolloutId": ROLLOUT, "attempt": 1}},
        "taskToken": SECRET,
    },
    **{
        name: a_resource()
        for name in ("tenant_metadata", "publish_release", "start_rollout", "tenant_queue", "api_proof")
    },
    "settle_tenant_queue": {
        "execution": {"Id": "arn:execution", "StartTime": timestamp(RUN.started_at), "Input": {"event": a_resource()}}
    },
}


def logged(call: Callable[[], object], capsys: pytest.CaptureFixture[str]) -> str:
    """What is logged, with what is raised."""
    try:
        call()
        raised = ""
    except Exception as error:  # noqa: BLE001 - Lambda logs whatever it is
        raised = f"{error!r} {error}"
    return "".join(capsys.readouterr()) + raised


def broken(event: Any) -> Iterator[Any]:
    """The event with each of its fields left out, and of another kind, in turn. The secret stays."""
    for name, value in event.items():
        if value in (SECRET, SIGNED):
            continue
        yield {key: given for key, given in event.items() if key != name}
        yield {**event, name: None}
        yield {**event, name: ["not this"]}
        if isinstance(value, dict):
            yield from ({**event, name: inner} for inner in broken(value))


@pytest.mark.parametrize("name", EVENTS)
def test_no_secret_is_told_when_all_is_well_or_nothing_is(
    load: Load, world: World, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    handler = load(name)
    first = logged(lambda: handler(EVENTS[name], None), capsys)
    world.ports = SimpleNamespace()  # type: ignore[assignment]  # Whatever is asked for is a fault.
    at_fault = logged(lambda: handler(EVENTS[name], None), capsys)
    assert first
    assert at_fault
    assert SECRET not in first + at_fault


def test_no_task_token_is_told_by_a_step_that_is_throttled_or_fails(
    load: Load, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    handler, log = load("await_stack"), ""
    for error in (Throttled("UpdateItem: Rate exceeded"), RuntimeError("a bug")):

        def refuse(*_: object, error: Exception = error, **__: object) -> None:
            raise error

        world.table.remember_token = refuse  # type: ignore[method-assign]
        log += logged(lambda: handler(EVENTS["await_stack"], None), capsys)
    assert "Step failed" in log
    assert "Rate exceeded" in log
    assert SECRET not in log


@pytest.mark.parametrize("name", EVENTS)
def test_no_secret_is_told_by_whoever_does_not_understand(
    load: Load, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    handler = load(name)
    logs = [logged(lambda given=event: handler(given, None), capsys) for event in broken(EVENTS[name])]  # type: ignore[misc]
    assert len(logs) > 5
    assert not [log for log in logs if SECRET in log]


def test_a_secret_that_is_told_would_be_noticed(load: Load, world: World, capsys: pytest.CaptureFixture[str]) -> None:
    def careless(*_: object) -> None:
        raise RuntimeError(f"nobody waits for {SECRET}")

    handler = load("await_operator")
    world.rollout_table.rollout = careless  # type: ignore[assignment,method-assign]
    assert SECRET in logged(lambda: handler(EVENTS["await_operator"], None), capsys)


@pytest.mark.parametrize("character", ["\x1b[2J", "\x9b2J", "\x07", "\u202e", "\u2028"], ids=ascii)
def test_no_control_character_reaches_a_log_line(
    load: Load, world: World, capsys: pytest.CaptureFixture[str], character: str
) -> None:
    """A log line is read on a terminal, too."""

    def fail(*_: object) -> None:
        raise RuntimeError(f"before {character} after")

    handler = load("await_stack")
    world.table.remember_token = fail  # type: ignore[method-assign]
    with pytest.raises(RuntimeError):
        handler(EVENTS["await_stack"], None)
    log = capsys.readouterr().out
    assert "before" in log
    assert all(each.isprintable() or each == "\n" for each in log)
    assert log.isascii()
