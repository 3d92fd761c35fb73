"""Properties of the declared routes that their readers rely on."""

from __future__ import annotations

import msgspec
import pytest

from orchestrator.api.event_plane_routes import EVENT_ROUTES
from orchestrator.api.problems import Problem
from orchestrator.api.route import AnyRoute, Audience
from orchestrator.api.routes import PROBLEMS, ROUTES
from orchestrator.tenants.admission import Refusal
from orchestrator.tenants.credentials import CREDENTIAL_ROUTES

EVERY_ROUTE = (*ROUTES, *EVENT_ROUTES)


@pytest.mark.parametrize("routes", [ROUTES, EVENT_ROUTES], ids=["control plane", "event plane"])
def test_names_and_paths_of_routes_are_unique(routes: tuple[AnyRoute, ...]) -> None:
    assert len({route.name for route in routes}) == len({route.key for route in routes}) == len(routes)


@pytest.mark.parametrize("route", EVERY_ROUTE, ids=lambda route: route.name)
def test_path_parameters_are_fields_of_the_request(route: AnyRoute) -> None:
    names = {field.encode_name for field in msgspec.structs.fields(route.request)}
    assert set(route.path_parameters) <= names


@pytest.mark.parametrize("route", EVERY_ROUTE, ids=lambda route: route.name)
def test_each_status_of_a_route_has_one_model(route: AnyRoute) -> None:
    statuses = [answer.status for answer in route.answers]
    assert len(statuses) == len(set(statuses))
    assert not set(statuses) & {problem.status for problem in route.problems}


def test_get_queues_function_serves_the_routes_that_are_not_for_operators() -> None:
    keys = [route.key for route in ROUTES if route.audience is not Audience.OPERATOR]
    assert keys == ["GET /tenants/{tenantId}/queue", *CREDENTIAL_ROUTES]


def test_a_kind_of_problem_has_the_same_status_and_title_on_every_route() -> None:
    for routes in (ROUTES, EVENT_ROUTES):
        declared = {(each.kind, each.status, each.title) for route in routes for each in route.problems}
        assert len(declared) == len({kind for kind, _, _ in declared})
    assert {each.kind for route in ROUTES for each in route.problems} == set(PROBLEMS)


def test_tenants_routes_say_which_scope_an_api_key_needs_and_no_other_route_does() -> None:
    assert {route.name for route in EVERY_ROUTE if route.scope} == {
        route.name for route in EVERY_ROUTE if route.audience is Audience.TENANT
    }


@pytest.mark.parametrize("refusal", list(Refusal))
def test_every_refusal_is_a_kind_of_problem(refusal: Refusal) -> None:
    assert isinstance(PROBLEMS[refusal], Problem)
