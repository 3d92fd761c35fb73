"""Custom resources: whatever CloudFormation sends, or someone in its name, it is answered, or was no such event."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Any

import pytest

from orchestrator.errors import BerthError, InvalidRequest
from tests.adapters.bad_input.inputs import an_input
from tests.adapters.bad_input.judging import (
    asks_for_proof,
    asks_for_release,
    asks_for_rollout,
    asks_for_tenant_queue,
    at,
    is_moment,
    tells_of_metadata,
)
from tests.adapters.bad_input.storm import INPUTS, storm
from tests.adapters.bad_input.world import RESPONSE_URL, TEMPLATE, ControlPlane
from tests.fakes import NEXT_VERSION, NOON, QUEUE, stack_arn

QUEUE_PROPERTIES = {"TenantId": "acme", "Version": NEXT_VERSION, "Labels": {"plan": "gold"}, "OnDelete": "delete"}
RESOURCES: dict[str, tuple[dict[str, Any], Callable[[object], bool]]] = {
    "tenant_queue": (QUEUE_PROPERTIES, asks_for_tenant_queue),
    "tenant_metadata": (
        {"TenantId": "acme", "InboundQueueArn": QUEUE.arn, "InboundQueueUrl": QUEUE.url},
        tells_of_metadata,
    ),
    "publish_release": (
        {
            "Version": "0.3.0",
            "Digest": hashlib.sha256(TEMPLATE).hexdigest(),
            "SourceBucket": "assets",
            "SourceKey": "template.json",
            "Notes": "What is new.",
        },
        asks_for_release,
    ),
    "start_rollout": ({"Version": NEXT_VERSION}, asks_for_rollout),
    "api_proof": ({"Generation": "1"}, asks_for_proof),
}


def a_request(properties: dict[str, Any], kind: str) -> dict[str, Any]:
    return {
        "RequestType": kind,
        "ResponseURL": RESPONSE_URL,
        "StackId": stack_arn(),
        "RequestId": "5478764e-a29b-4f27-b4c3-4bcdf0ef9c6d",
        "LogicalResourceId": "Resource",
        "PhysicalResourceId": "acme",
        "ResourceProperties": {**properties, "ServiceToken": "arn:aws:lambda:eu-west-1:000000000000:function:berth"},
        "OldResourceProperties": {"TenantId": "other", "Version": "0.0.1"},
    }


def is_address(value: object) -> bool:
    """One that an answer may be sent to, whether or not somebody is there."""
    return isinstance(value, str) and bool(re.fullmatch("https?://[!-~]+", value))


@pytest.mark.parametrize("kind", ["Create", "Update", "Delete"])
@pytest.mark.parametrize("function", RESOURCES)
def test_whatever_a_custom_resource_is_asked_for_is_answered(plane: ControlPlane, function: str, kind: str) -> None:
    properties, is_understood = RESOURCES[function]
    template = a_request(properties, kind)

    def meet(event: Any) -> str:
        try:
            plane.call(function, event)
        except InvalidRequest:
            assert at(event, "ResponseURL") != RESPONSE_URL, "could have been answered"
            assert not plane.effects, f"refused, but for {plane.effects}"
            return "nobody to answer"
        except OSError:
            assert is_address(at(event, "ResponseURL"))
            assert at(event, "ResponseURL") != RESPONSE_URL
            assert not plane.effects or is_understood(event)
            return "nobody answers"
        if "start_by_name" in plane.effects:
            assert is_understood(event)
            return "handed over"
        (answer,) = plane.answers
        if answer["Status"] == "FAILED":
            assert answer["Reason"]
            assert not plane.effects, f"refused, but for {plane.effects}"
            return "refused"
        # What was refused was never there, so its delete always succeeds.
        assert is_understood(event) or (event["RequestType"] == "Delete" and not plane.effects)
        return "done"

    met = storm(f"{function}/{kind}", plane, lambda rng: an_input(rng, template), meet, inputs=INPUTS // 3)
    assert INPUTS < 300 or len(met) > 2, met


def test_whatever_the_machine_that_settles_them_sends_is_understood_or_refused(plane: ControlPlane) -> None:
    execution = {"StartTime": NOON.isoformat(), "Input": {"event": a_request(QUEUE_PROPERTIES, "Create")}}
    template = {"execution": execution, "failure": {"Error": "States.Timeout", "Cause": "It took too long."}}

    def meet(event: Any) -> str:
        try:
            told = plane.call("settle_tenant_queue", event)
        except InvalidRequest:
            assert not plane.effects, f"refused, but for {plane.effects}"
            assert not plane.answers
            return "refused"
        except (BerthError, OSError):
            told = {"outcome": "fault"}
        assert asks_for_tenant_queue(at(event, "execution", "Input", "event"))
        assert is_moment(at(event, "execution", "StartTime"))
        return str(told["outcome"])

    met = storm("settle_tenant_queue", plane, lambda rng: an_input(rng, template), meet)
    assert INPUTS < 100 or (met["refused"] and met["failed"]), met
