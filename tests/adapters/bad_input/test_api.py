"""Every route of the API, and getQueue called directly: whatever comes in is answered, and as documented."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from tests.adapters.bad_input.classifying import at, is_tenant_id, request_is_documented, statuses
from tests.adapters.bad_input.inputs import JsonText, an_input, over_http
from tests.adapters.bad_input.storm import INPUTS, storm
from tests.adapters.bad_input.world import PROOF, RECONCILIATION, ROLLOUT, ControlPlane
from tests.fakes import EXPLICIT, VERSION
from tests.fakes.templates import example_template

QUEUE_ROUTE = "GET /tenants/{tenantId}/queue"
SEND_ROUTE = "POST /tenants/{tenantId}/queue/credentials/send"
RECEIVE_ROUTE = "POST /tenants/{tenantId}/queue/credentials/receive"
QUEUE_ROUTES = (QUEUE_ROUTE, SEND_ROUTE, RECEIVE_ROUTE)

STAGES = [
    {"size": "1", "maxConcurrency": 1, "tolerated": "0", "bakeSeconds": 60, "alarm": "errors", "approval": True},
    {"size": "rest", "maxConcurrency": 5},
]
WHY = "Ticket 4711"
LABELS = {"plan": "gold", "team": "billing"}
BODIES: dict[str, dict[str, Any]] = {
    "PUT /tenants/{tenantId}": {"version": VERSION, "labels": LABELS, "reason": WHY},
    "POST /tenants/{tenantId}/upgrade": {"version": VERSION, "allowDowngrade": True, "allowReplacement": False},
    "POST /tenants/{tenantId}/move": {"tier": "gold", "reason": WHY},
    "POST /tenants/{tenantId}/labels": {"set": LABELS, "remove": ["trial"], "reason": WHY},
    "PUT /tenants/{tenantId}/pin": {"version": VERSION, "reason": WHY},
    "POST /tenants/{tenantId}/retry": {"reason": WHY},
    "POST /rollouts/{rolloutId}/pause": {"reason": WHY},
    "POST /rollouts": {
        "tenants": ["acme", "running"],
        "labels": LABELS,
        "share": "10%",
        "stages": STAGES,
        "dryRun": True,
    },
    "PUT /releases/{version}": {"template": example_template(), "notes": WHY, "allowReplacement": True},
    "POST /releases/{version}/check": {"template": example_template()},
    "POST /rollouts/{rolloutId}/approve": {"stage": 1, "reason": WHY},
    "POST /rollouts/{rolloutId}/promote": {"stage": 1, "reason": WHY},
    "POST /rollouts/{rolloutId}/change": {"maxConcurrency": 2, "tolerated": "10%", "bakeSeconds": 60, "reason": WHY},
    "POST /reconciliations": {"dryRun": True, "detectDrift": False},
}
QUERIES: dict[str, dict[str, str]] = {
    "DELETE /tenants/{tenantId}": {"force": "true", "drainSeconds": "60", "reason": WHY},
    "DELETE /tenants/{tenantId}/pin": {"reason": WHY},
    "GET /tenants": {
        "state": "READY",
        "version": VERSION,
        "label": "plan=gold,team=billing",
        "pinned": "false",
        "limit": "10",
        "cursor": "UkVBRFkvMC4xLjAvMC4xLjAjYWNtZQ",
    },
    "GET /rollouts": {"cursor": ROLLOUT, "limit": "10"},
    "GET /releases/{version}/changes": {"fromVersion": VERSION},
}
IDS = {
    "tenantId": "acme",
    "version": VERSION,
    "rolloutId": ROLLOUT,
    "reconciliationId": RECONCILIATION,
}

ROUTES = (
    *QUEUE_ROUTES,
    "PUT /tenants/{tenantId}",
    "GET /tenants/{tenantId}",
    "GET /tenants/{tenantId}/stack",
    "DELETE /tenants/{tenantId}",
    "POST /tenants/{tenantId}/upgrade",
    "POST /tenants/{tenantId}/move",
    "POST /tenants/{tenantId}/retry",
    "POST /tenants/{tenantId}/labels",
    "PUT /tenants/{tenantId}/pin",
    "DELETE /tenants/{tenantId}/pin",
    "GET /tenants",
    "GET /operations",
    "GET /reconciliations",
    "GET /releases",
    "PUT /releases/{version}",
    "POST /releases/{version}/check",
    "GET /releases/{version}/changes",
    "POST /releases/{version}/promote",
    "POST /releases/{version}/withdraw",
    "POST /releases/{version}/reinstate",
    "POST /rollouts",
    "GET /rollouts",
    "GET /rollouts/{rolloutId}",
    "POST /rollouts/{rolloutId}/pause",
    "POST /rollouts/{rolloutId}/resume",
    "POST /rollouts/{rolloutId}/abort",
    "POST /rollouts/{rolloutId}/approve",
    "POST /rollouts/{rolloutId}/promote",
    "POST /rollouts/{rolloutId}/change",
    "POST /rollouts/{rolloutId}/retry",
    "POST /reconciliations",
    "GET /reconciliations/{reconciliationId}",
    "GET /diagnosis",
)


def a_request(route: str) -> dict[str, Any]:
    """The event of API Gateway for a valid request."""
    method, _, path = route.partition(" ")
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": route,
        "rawPath": path,
        "headers": {"content-type": "application/json"},
        "requestContext": {"http": {"method": method}, "authorizer": {"iam": {"userArn": EXPLICIT.by}}},
        "isBase64Encoded": False,
        "stageVariables": {"proof": PROOF},
    }
    if "{" in route:
        event["pathParameters"] = {name: value for name, value in IDS.items() if f"{{{name}}}" in route}
    if route in QUERIES:
        event["queryStringParameters"] = dict(QUERIES[route])
    if route in BODIES:
        event["body"] = JsonText(BODIES[route])
    return event


def requests_like(route: str) -> Callable[[Random], Any]:
    """Mostly wrong in what the caller chooses: the path, the query and the body. The rest is API Gateway's."""
    whole = a_request(route)
    chosen = {name: whole.pop(name) for name in ("pathParameters", "queryStringParameters", "body") if name in whole}

    def make(rng: Random) -> Any:
        if rng.random() < 0.25:
            return over_http(rng, an_input(rng, {**whole, **chosen}))
        part = an_input(rng, {**chosen, "body": chosen.get("body", JsonText())})
        return over_http(rng, {**whole, **part} if isinstance(part, dict) else {**whole, "body": part})

    return make


def met(plane: ControlPlane, function: str, event: object, documented: Callable[[int], bool]) -> str:
    """The kind of a response. A refusal has a reason and no effect."""
    result = plane.call(function, event)
    status, body = result["statusCode"], json.loads(result["body"])
    assert 200 <= status < 500, f"answered {status}"
    if status >= 400:
        # A list of tenants is drawn up before it is seen that another rollout is in the way. Nobody reads it then.
        drawn_up = {"write"} if status == 409 else set()
        assert set(plane.effects) <= drawn_up, f"refused, but for {plane.effects}"
        assert body["status"] == status
        assert body["detail"]
    if status != 400:
        assert documented(status), f"accepted what is not documented: {status}"
    return str(status)


def is_understood(event: Any) -> bool:
    """By getQueue, which platforms call with whatever else they like to say."""
    path, query = event.get("pathParameters"), event.get("queryStringParameters")
    tenant = path.get("tenantId") if isinstance(path, dict) else event.get("tenantId")
    with_credentials = "credentials" in event or (isinstance(query, dict) and "credentials" in query)
    return is_tenant_id(tenant) and not with_credentials


def is_api_gateways(event: Any) -> bool:
    return bool(at(event, "stageVariables", "proof") == PROOF)


def test_every_route_is_tested(plane: ControlPlane) -> None:
    operators = plane.load("operators").__globals__
    assert set(ROUTES) == {*QUEUE_ROUTES, *operators["ROUTES"]}


@pytest.mark.parametrize("route", ROUTES)
def test_any_request_gets_a_documented_response(plane: ControlPlane, route: str) -> None:
    def meet(event: Any) -> str:
        # The function knows the route by what it is told.
        said = at(event, "routeKey")
        asked = said if isinstance(said, str) else ""
        if route in QUEUE_ROUTES:
            # By any other name it is asked for the queue, and nothing more.
            asked = asked if asked in QUEUE_ROUTES else QUEUE_ROUTE
            return met(plane, "get_queue", event, lambda status: status in statuses(asked) and is_understood(event))
        if not is_api_gateways(event):
            return met(plane, "operators", event, lambda status: status == 403)
        return met(
            plane,
            "operators",
            event,
            lambda status: status in statuses(asked) and request_is_documented(asked, event),
        )

    answered = storm(route, plane, requests_like(route), meet)
    # Some inputs are refused, and some are accepted.
    assert INPUTS < 100 or (answered["400"] and len(answered) > 1), answered


def test_any_direct_invocation_of_get_queue_gets_a_response(plane: ControlPlane) -> None:
    def meet(event: Any) -> str:
        return met(plane, "get_queue", event, lambda status: status in statuses(QUEUE_ROUTE) and is_understood(event))

    answered = storm("directly", plane, lambda rng: an_input(rng, {"tenantId": "acme", "more": "send"}), meet)
    assert INPUTS < 100 or (answered["400"] and answered["200"]), answered
