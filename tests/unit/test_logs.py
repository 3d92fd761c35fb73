"""The functions log nothing that a reader could use: no task token, no signed address.

Nor does what they raise, which Lambda logs. That getQueue's credentials are not logged is tested with its handler.
"""

from __future__ import annotations

import ast
import importlib
import json
import logging
import re
from collections.abc import Callable, Iterator
from dataclasses import fields
from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator.adapters import custom_resource
from orchestrator.common.errors import Throttled
from orchestrator.common.times import parse_timestamp, timestamp
from orchestrator.events.delivery.redispatching import Redispatched
from orchestrator.events.delivery.replaying import Replayed
from orchestrator.events.delivery.sweeping import Swept
from orchestrator.tenants.execution_input import machine_input
from orchestrator.tenants.tenant_queue import NotConfirmed, NotProvided, Provided
from stacks.common.function_code import module_of
from stacks.project import ROOT
from tests.fakes import ACME, NAMES, QUEUE, VERSION, World, a_run, take
from tests.functions import forget_functions

SECRET = "AQCEAAAAKgAAAAMAAAAAAAAAAXNlY3JldA"
SIGNED = f"https://cloudformation-custom-resource-response-euwest1.s3.amazonaws.com/arn?X-Amz-Signature={SECRET}"
ROLLOUT = "20261116-120000-abcd"
RUN = a_run()

Load = Callable[[str], Any]


@pytest.fixture
def world() -> World:
    """The fakes that the functions use in place of AWS."""
    world = World()
    take(world.table, RUN)
    return world


@pytest.fixture
def load(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    monkeypatch.setenv("AWS_LAMBDA_LOG_LEVEL", "INFO")
    monkeypatch.setenv("BERTH_METRICS_NAMESPACE", "Berth")
    monkeypatch.setenv("BERTH_LOCATION", "aws:eu-west-1:000000000000")
    monkeypatch.setattr(custom_resource, "_put", lambda *_: None)
    forget_functions()

    def load(name: str) -> Any:
        monkeypatch.setattr(importlib.import_module("lambdas.runtime"), "use_cases", world)
        return importlib.import_module(module_of(name)).handler

    yield load
    forget_functions()


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
    """The log of the call, with the exception that it raises."""
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


# The lines themselves


class Unwritable:
    def __str__(self) -> str:
        raise OSError("no text")


@pytest.fixture
def logs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("BERTH_SERVICE", "get_queue")
    monkeypatch.setenv("BERTH_METRICS_NAMESPACE", "Berth-dev")
    monkeypatch.setenv("AWS_LAMBDA_LOG_LEVEL", "INFO")
    forget_functions()
    yield importlib.import_module("lambdas.observing")
    forget_functions()


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_line_has_level_message_time_service_and_the_given_fields(
    logs: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    logs.logger.info("Tried", extra={"tenant_id": "acme", "at": ACME, "unknown": None, "level": "none"})
    (line,) = lines(capsys)
    # Lambda filters lines by level only if they have a timestamp of this form.
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["timestamp"])
    assert parse_timestamp(line.pop("timestamp"))
    assert line == {
        "level": "INFO",
        "message": "Tried",
        "service": "get_queue",
        "tenant_id": "acme",
        "at": str(ACME),
    }


def test_levels_below_lambdas_setting_are_left_out(logs: Any, capsys: pytest.CaptureFixture[str]) -> None:
    for method in ("debug", "info", "warning", "error"):
        getattr(logs.logger, method)("message")
    assert [line["level"] for line in lines(capsys)] == ["INFO", "WARNING", "ERROR"]


@pytest.mark.parametrize(
    ("setting", "logged"),
    [
        ("DEBUG", ["DEBUG", "INFO", "ERROR"]),
        ("WARN", ["ERROR"]),
        ("ERROR", ["ERROR"]),
        ("FATAL", []),
        ("unheard of", ["INFO", "ERROR"]),
    ],
)
def test_lambda_sets_the_level(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], setting: str, logged: list[str]
) -> None:
    monkeypatch.setenv("AWS_LAMBDA_LOG_LEVEL", setting)
    forget_functions()
    logger = importlib.import_module("lambdas.observing").logger
    for method in ("debug", "info", "error"):
        getattr(logger, method)("message")
    forget_functions()
    assert [line["level"] for line in lines(capsys)] == logged


def test_an_exception_has_its_stack_trace_and_its_causes(logs: Any, capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        try:
            _ = {}["first"]
        except KeyError as error:
            raise RuntimeError("second") from error

    try:
        fail()
    except RuntimeError as error:
        logs.logger.exception("Step failed")
        given = error
    logs.logger.error("Step failed", exc_info=given)
    both = lines(capsys)
    assert len(both) == 2
    for line in both:
        assert (line["level"], line["exception_name"]) == ("ERROR", "RuntimeError")
        assert "KeyError: 'first'" in line["exception"]
        assert "in fail" in line["exception"]
        assert line["exception"].endswith("RuntimeError: second")


def test_fields_of_a_block_are_in_its_lines_only(logs: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with logs.logger.append_context_keys(tenant_id="acme"):
        with logs.logger.append_context_keys(attempt="2"):
            logs.logger.info("inner")
        logs.logger.info("outer")
    with pytest.raises(RuntimeError), logs.logger.append_context_keys(tenant_id="acme"):
        raise RuntimeError
    logs.logger.info("after")
    fields = [(line["message"], line.get("tenant_id"), line.get("attempt")) for line in lines(capsys)]
    assert fields == [("inner", "acme", "2"), ("outer", "acme", None), ("after", None, None)]


def test_the_trace_of_the_call_is_in_its_lines(
    logs: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = "1-5759e988-bd862e3fe1be46a994272793"
    monkeypatch.setenv("_X_AMZN_TRACE_ID", f"Root={trace};Parent=53995c3f42cd8ad8;Sampled=0")
    logs.logger.info("traced")
    monkeypatch.delenv("_X_AMZN_TRACE_ID")
    logs.logger.info("not traced")
    assert [line.get("xray_trace_id") for line in lines(capsys)] == [trace, None]


@pytest.mark.parametrize("field", [{(1, 2): 3}, Unwritable()], ids=["keys", "text"])
def test_a_field_that_cannot_be_written_fails_nothing(
    logs: Any, capsys: pytest.CaptureFixture[str], field: object
) -> None:
    logs.logger.info("Tried", extra={"field": field})
    logs.logger.info("Tried again")
    out, err = capsys.readouterr()
    assert [json.loads(line)["message"] for line in out.splitlines()] == ["Tried again"]
    assert "Message: 'Tried'" in err


def test_no_field_has_a_name_that_the_standard_library_refuses() -> None:
    """A log record has attributes of these names. A call with such a field would raise."""
    taken = {*vars(logging.makeLogRecord({})), "message", "asctime"}
    named = {
        key.value
        for file in (ROOT / "lambdas").rglob("*.py")
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute | ast.Name)
        for keyword in call.keywords
        if keyword.arg == "extra"
        for key in ast.walk(keyword.value)
        if isinstance(key, ast.Constant) and isinstance(key.value, str)
    }
    assert {"tenant_id", "status", "reason"} <= named
    for outcome in (Swept, Replayed, Redispatched, Provided, NotProvided, NotConfirmed):
        named |= {field.name for field in fields(outcome)}
    assert not named & taken


def test_a_metric_is_a_line_that_cloudwatch_reads(logs: Any, capsys: pytest.CaptureFixture[str]) -> None:
    logs.count("Throttled", 3)
    (line,) = lines(capsys)
    assert line["_aws"].pop("Timestamp") > 1_700_000_000_000
    assert line == {
        "_aws": {
            "CloudWatchMetrics": [
                {
                    "Namespace": "Berth-dev",
                    "Dimensions": [["service"]],
                    "Metrics": [{"Name": "Throttled", "Unit": "Count"}],
                }
            ]
        },
        "service": "get_queue",
        "Throttled": [3.0],
    }


def test_functions_may_count_together(logs: Any, capsys: pytest.CaptureFixture[str]) -> None:
    logs.count("UnreadableRows", by_service=False)
    (line,) = lines(capsys)
    (definition,) = line["_aws"]["CloudWatchMetrics"]
    assert definition["Dimensions"] == [[]]
    assert (line["service"], line["UnreadableRows"]) == ("get_queue", [1.0])
