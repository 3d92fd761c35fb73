"""Custom resources: whatever CloudFormation sends, or someone in its name, it is answered, or was no such event."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from orchestrator.common.errors import BerthError, InvalidRequest, Unconfirmed
from orchestrator.tenants.tenant_queue import CONSISTENT_WITHIN
from tests.adapters.bad_input.classifying import (
    asks_for_proof,
    asks_for_release,
    asks_for_rollout,
    asks_for_tenant_queue,
    at,
    claims_to_be_a_resources,
    is_moment,
    tells_of_metadata,
)
from tests.adapters.bad_input.inputs import an_input
from tests.adapters.bad_input.storm import INPUTS, storm
from tests.adapters.bad_input.world import AT_WORK, OWN_STACK, RESPONSE_URL, TEMPLATE, ControlPlane
from tests.fakes import ACME, NAMES, NEXT_VERSION, NOON, QUEUE, stack_arn

QUEUE_PROPERTIES = {"TenantId": "acme", "Version": NEXT_VERSION, "Labels": {"plan": "gold"}, "OnDelete": "delete"}
RESOURCES: dict[str, tuple[dict[str, Any], Callable[[object], bool]]] = {
    "tenant_metadata": (
        {"TenantId": "acme", "InboundQueueArn": QUEUE.arn, "InboundQueueUrl": QUEUE.url},
        tells_of_metadata,
    ),
    "publish_release": (
        {
            "Version": "0.3.0",
            "Digest": hashlib.sha256(TEMPLATE).hexdigest(),
            "SourceKey": "template.json",
            "Notes": "What is new.",
        },
        asks_for_release,
    ),
    "start_rollout": ({"Version": NEXT_VERSION}, asks_for_rollout),
    "api_proof": ({"Generation": "1"}, asks_for_proof),
}
OF_A_DEPLOYMENT = {"publish_release": "Release", "start_rollout": "Rollout", "api_proof": "ApiProof"}
"""The names of resources of the control plane's own stack, to which CloudFormation's request type is added."""


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


def a_resources_request(function: str, kind: str) -> dict[str, Any]:
    request = a_request(RESOURCES[function][0], kind)
    if function in OF_A_DEPLOYMENT:
        request |= {"StackId": OWN_STACK, "LogicalResourceId": f"{OF_A_DEPLOYMENT[function]}{kind}"}
    return request


def is_address(value: object) -> bool:
    """One that an answer may be sent to, whether or not somebody is there."""
    return isinstance(value, str) and bool(re.fullmatch("https?://[!-~]+", value))


@pytest.mark.parametrize("kind", ["Create", "Update", "Delete"])
def test_any_event_of_a_tenants_stack_gets_a_response(plane: ControlPlane, kind: str) -> None:
    template = a_resources_request("tenant_metadata", kind)

    def meet(event: Any) -> str:
        try:
            plane.call("tenant_metadata", event)
        except InvalidRequest:
            assert at(event, "ResponseURL") != RESPONSE_URL, "could have been answered"
            assert not plane.effects, f"refused, but for {plane.effects}"
            return "nobody to answer"
        except OSError:
            assert is_address(at(event, "ResponseURL"))
            assert at(event, "ResponseURL") != RESPONSE_URL
            assert not plane.effects or tells_of_metadata(event)
            return "nobody answers"
        (answer,) = plane.answers
        if answer["Status"] == "FAILED":
            assert answer["Reason"]
            assert not plane.effects, f"refused, but for {plane.effects}"
            return "refused"
        # A resource that was refused was never created, so its delete always succeeds.
        assert tells_of_metadata(event) or (event["RequestType"] == "Delete" and not plane.effects)
        return "done"

    met = storm(f"tenant_metadata/{kind}", plane, lambda rng: an_input(rng, template), meet, inputs=INPUTS // 3)
    assert INPUTS < 300 or len(met) > 2, met


@pytest.mark.parametrize("kind", ["Create", "Update", "Delete"])
@pytest.mark.parametrize("function", OF_A_DEPLOYMENT)
def test_only_events_of_the_deployment_get_a_response(plane: ControlPlane, function: str, kind: str) -> None:
    template = a_resources_request(function, kind)

    def is_understood(event: Any) -> bool:
        return is_the_deployments(event) and RESOURCES[function][1](event)

    def is_the_deployments(event: Any) -> bool:
        named = {name: at(event, name) for name in ("RequestType", "StackId", "LogicalResourceId")}
        return named == {name: template[name] for name in named}

    def meet(event: Any) -> str:
        try:
            plane.call(function, event)
        except (InvalidRequest, Unconfirmed):
            assert not plane.effects, f"refused, but for {plane.effects}"
            assert not plane.answers
            return "not answered"
        except OSError:
            assert is_address(at(event, "ResponseURL"))
            assert at(event, "ResponseURL") != RESPONSE_URL
            assert not plane.effects or is_understood(event)
            return "nobody answers"
        (answer,) = plane.answers
        if event["RequestType"] == "Delete":
            assert (answer["Status"], plane.effects) == ("SUCCESS", [])
            return "nothing to do"
        assert is_the_deployments(event)
        if answer["Status"] == "FAILED":
            assert answer["Reason"]
            assert not plane.effects, f"refused, but for {plane.effects}"
            return "refused"
        assert is_understood(event)
        return "done"

    met = storm(f"{function}/{kind}", plane, lambda rng: an_input(rng, template), meet, inputs=INPUTS // 3)
    assert INPUTS < 300 or len(met) > 1, met


@pytest.mark.parametrize("kind", ["Create", "Update", "Delete"])
def test_any_event_of_a_tenant_queue_is_passed_on_or_refused(plane: ControlPlane, kind: str) -> None:
    template = a_request(QUEUE_PROPERTIES, kind)

    def meet(event: Any) -> str:
        try:
            plane.call("tenant_queue", event)
        except InvalidRequest:
            assert at(event, "ResponseURL") != RESPONSE_URL, "could have been answered"
            assert not plane.effects
            return "nobody to answer"
        assert not plane.answers, "CloudFormation has not confirmed it"
        if not plane.effects:
            return "refused"
        assert plane.effects == ["start_by_name"]
        assert claims_to_be_a_resources(event)
        return "handed over"

    met = storm(f"tenant_queue/{kind}", plane, lambda rng: an_input(rng, template), meet, inputs=INPUTS // 3)
    assert INPUTS < 300 or len(met) == 3, met


@pytest.mark.parametrize("kind", ["Create", "Update", "Delete"])
@pytest.mark.parametrize("since", [NOON, NOON - CONSISTENT_WITHIN * 2], ids=["now", "before"])
@pytest.mark.parametrize("confirmed", [False, True], ids=["doubted", "said to be confirmed"])
def test_an_unconfirmed_event_has_no_effect_and_no_response(
    plane: ControlPlane, kind: str, since: datetime, confirmed: bool
) -> None:
    """Somebody invokes the function directly, with whatever they can think of."""
    forged = a_request(QUEUE_PROPERTIES, kind)

    def meet(event: Any) -> str:
        given = {"execution": {"StartTime": since.isoformat(), "Input": {"event": event}}, "confirmed": confirmed}
        try:
            response = plane.call("settle_tenant_queue", given)
        except InvalidRequest:
            response = {"outcome": "not understood"}
        assert not plane.effects
        assert not plane.answers
        assert response["outcome"] in ("not understood", "waiting" if since == NOON or confirmed else "refused")
        return str(response["outcome"])

    met = storm(
        f"forged/{kind}/{since}/{confirmed}", plane, lambda rng: an_input(rng, forged), meet, inputs=INPUTS // 3
    )
    assert INPUTS < 100 or len(met) == 2, met


def test_any_input_of_the_settling_machine_is_understood_or_refused(plane: ControlPlane) -> None:
    event = {**a_request(QUEUE_PROPERTIES, "Create"), "StackId": stack_arn().replace(NAMES.stack_of(ACME), AT_WORK)}
    execution = {"StartTime": NOON.isoformat(), "Input": {"event": event}}
    template = {"execution": execution, "failure": {"Error": "States.Timeout", "Cause": "It took too long."}}

    def meet(event: Any) -> str:
        try:
            response = plane.call("settle_tenant_queue", event)
        except InvalidRequest:
            assert not plane.effects, f"refused, but for {plane.effects}"
            assert not plane.answers
            return "refused"
        except (BerthError, OSError):
            response = {"outcome": "fault"}
        asked = at(event, "execution", "Input", "event")
        assert claims_to_be_a_resources(asked)
        assert asks_for_tenant_queue(asked) or not plane.effects
        assert is_moment(at(event, "execution", "StartTime"))
        return str(response["outcome"])

    met = storm("settle_tenant_queue", plane, lambda rng: an_input(rng, template), meet)
    assert INPUTS < 100 or (met["refused"] and met["failed"]), met
