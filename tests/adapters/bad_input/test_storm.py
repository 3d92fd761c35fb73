"""The storm itself: it finds what is wrong, tells which input it was, and makes the same one again."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from orchestrator.common.errors import InvalidRequest
from tests.adapters.bad_input import test_custom_resources, test_machines
from tests.adapters.bad_input.inputs import an_input, sent
from tests.adapters.bad_input.storm import as_text, storm
from tests.adapters.bad_input.test_api import ROUTES, a_request, met, requests_like
from tests.adapters.bad_input.world import RESPONSE_URL, ControlPlane, switch_log

SECRET = "sesame-1234"


@pytest.mark.parametrize("route", ROUTES)
def test_a_seed_makes_the_same_input_again(route: str) -> None:
    def made() -> list[str]:
        return [as_text(requests_like(route)(Random(seed))) for seed in range(20)]

    assert made() == made()
    assert len(set(made())) > 10


def test_a_failure_is_reported_with_its_input(plane: ControlPlane) -> None:
    def meet(event: Any) -> str:
        assert event != {"number": 3}
        return "fine"

    numbers = iter(range(10))
    with pytest.raises(AssertionError) as failed:
        storm("an edge", plane, lambda _: {"number": next(numbers)}, meet, inputs=10)
    (note,) = failed.value.__notes__
    assert "Input 3 at an edge: {'number': 3}" in note
    assert "BERTH_FUZZ_SEED=3 pytest" in note


@pytest.mark.parametrize(
    ("answer", "effects"),
    [
        pytest.param({"statusCode": 500, "body": '{"status": 500, "detail": "No."}'}, [], id="a fault"),
        pytest.param({"statusCode": 400, "body": '{"status": 400, "detail": "No."}'}, ["begin"], id="a write"),
        pytest.param({"statusCode": 400, "body": '{"status": 400, "detail": ""}'}, [], id="no reason"),
        pytest.param({"statusCode": 200, "body": "{}"}, [], id="accepted, but not documented"),
    ],
)
def test_an_invalid_response_is_detected(plane: ControlPlane, answer: dict[str, Any], effects: list[str]) -> None:
    class Careless(ControlPlane):
        def call(self, _name: str, _event: object) -> Any:
            self.effects.extend(effects)
            return answer

    assert plane
    with pytest.raises(AssertionError):
        met(Careless(), "operators", {}, lambda _: False)


def test_every_effect_is_detected(plane: ControlPlane) -> None:
    plane.as_before()
    status = plane.call("operators", sent(Random(0), a_request("DELETE /tenants/{tenantId}")))["statusCode"]
    assert (status, plane.effects) == (202, ["start"])


# Logging


def _with_secrets(value: Any) -> Any:
    """Where secrets are in what comes in: task tokens, the signature of an address, headers, messages' texts."""
    if not isinstance(value, dict):
        return value
    hidden = {"taskToken": SECRET, "ResponseURL": f"{RESPONSE_URL}{SECRET}", "headers": {"authorization": SECRET}}
    return type(value)((name, hidden.get(name) or _with_secrets(each)) for name, each in value.items())


LOGGED: dict[str, tuple[str, Callable[[], Any]]] = {
    **{
        route: ("get_queue" if route == ROUTES[0] else "operators", lambda route=route: a_request(route))
        for route in ROUTES
    },  # type: ignore[misc]
    **{step: (step.partition(" ")[0], lambda step=step: test_machines.STEPS[step][0]) for step in test_machines.STEPS},  # type: ignore[misc]
    **{
        name: (name, lambda name=name: test_custom_resources.a_resources_request(name, "Create"))  # type: ignore[misc]
        for name in test_custom_resources.RESOURCES
    },
    "tenant_queue": (
        "tenant_queue",
        lambda: test_custom_resources.a_request(test_custom_resources.QUEUE_PROPERTIES, "Create"),
    ),
}


@pytest.mark.parametrize("edge", LOGGED)
def test_bad_input_logs_no_secrets(plane: ControlPlane, edge: str) -> None:
    function, template = LOGGED[edge]
    plane.load(function)
    plane.as_before()
    switch_log(on=True)
    plane.logs.keeps, plane.logs.lines = True, []
    secrets = _with_secrets(template())
    for seed in range(30):
        rest = {name: each for name, each in secrets.items() if SECRET not in json.dumps(each)}
        broken = an_input(Random(seed), rest)
        event = {**sent(Random(seed), secrets), **broken} if isinstance(broken, dict) else sent(Random(seed), secrets)
        try:
            plane.call(function, event)
        except (InvalidRequest, OSError) as refused:
            plane.logs.lines.append(str(refused))
        except Exception as fault:  # noqa: BLE001 - what is logged matters here, not what became of it
            plane.logs.lines.append(type(fault).__name__)
        plane.as_before()
    assert plane.logs.lines
    assert SECRET not in "".join(plane.logs.lines)
    plane.logs.keeps = False
