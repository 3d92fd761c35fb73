"""The answers to webhooks and forms: a status that providers and browsers understand, and a reason that people do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.api.event_reading import BodyTooLarge, incoming_of
from orchestrator.api.receiving_answers import (
    preflight_response,
    submission_response,
    unknown_address_response,
    webhook_response,
)
from orchestrator.api.responses import Response
from orchestrator.common.errors import InvalidRequest
from orchestrator.events.accepting import Accepted, TooLarge
from orchestrator.events.challenges import Challenge
from orchestrator.events.content import MAX_BODY_BYTES
from orchestrator.events.event_ids import new_event_id
from orchestrator.events.forms import WrongContentType
from orchestrator.events.hops import TooManyHops
from orchestrator.events.incoming import Incoming
from orchestrator.events.quotas import OverLimit
from orchestrator.events.receiving import (
    Decided,
    NoSuchAddress,
    OriginNotAllowed,
    Paused,
    ReceivedSubmission,
    SubmissionResult,
    Trapped,
    WebhookResult,
    WrongMethod,
)
from orchestrator.events.records import Form, SourceStatus
from orchestrator.events.signatures import Unverified
from orchestrator.events.statuses import EventStatus
from tests.fakes import NOON
from tests.fakes.events import ACME_LIFE, event_settings

PAGE = "https://www.example.com"
FORM = Form(ACME_LIFE, "form_1", "contact", SourceStatus.ACTIVE, NOON, (PAGE,), f"{PAGE}/thanks")
SETTINGS = event_settings(inbox=False)
ID = new_event_id(NOON, 0, submission=True)
ACCEPTED = Decided(Accepted(ID, EventStatus.RECEIVED), SETTINGS)
OVER = OverLimit("Too much.", 7)


def is_problem(response: Response, status: int, kind: str) -> bool:
    return (
        response.status == response.body["status"] == status
        and response.body["type"] == f"urn:berth:problem:{kind}"
        and response.headers["Content-Type"] == "application/problem+json"
        and bool(response.body["detail"])
    )


@pytest.mark.parametrize(
    ("result", "status", "kind"),
    [
        (NoSuchAddress(), 404, "unknown-source"),
        (Paused("source src_1"), 409, "source-paused"),
        (TooManyHops(5), 409, "too-many-hops"),
        (Unverified("The header X is missing."), 401, "invalid-signature"),
        (WrongMethod(("POST", "PUT")), 405, "method-not-allowed"),
        (Decided(TooLarge(300_000), SETTINGS), 413, "too-large"),
        (Decided(OVER, SETTINGS), 429, "over-plan"),
    ],
)
def test_a_webhook_that_is_refused_gets_a_problem(result: WebhookResult, status: int, kind: str) -> None:
    assert is_problem(webhook_response(result), status, kind)


def test_a_method_that_is_not_allowed_is_told_which_are() -> None:
    assert webhook_response(WrongMethod(("POST", "PUT"))).headers["Allow"] == "POST, PUT"


def test_an_accepted_webhook_is_answered_with_200_which_every_provider_takes() -> None:
    response = webhook_response(ACCEPTED)
    assert response.status == 200
    assert response.body["event_id"] == ID


def test_a_challenge_is_answered_as_json() -> None:
    response = webhook_response(Challenge("url_verification", {"challenge": "<b>"}))
    assert (response.status, response.body) == (200, {"challenge": "<b>"})
    assert response.headers["Content-Type"] == "application/json"


def submitted(result: SubmissionResult, *, from_page: bool = True, **changes: Any) -> Response:
    return submission_response(ReceivedSubmission(result, replace(FORM, **changes), from_page))


@pytest.mark.parametrize(
    ("result", "status", "kind"),
    [
        (NoSuchAddress(), 404, "unknown-source"),
        (Paused("form form_1"), 409, "source-paused"),
        (TooManyHops(5), 409, "too-many-hops"),
        (OriginNotAllowed(), 403, "origin-not-allowed"),
        (WrongContentType("No files."), 415, "unsupported-media-type"),
        (OVER, 429, "too-many-submissions"),
        (Decided(OVER, SETTINGS), 429, "over-plan"),
        (Decided(TooLarge(300_000), SETTINGS), 413, "too-large"),
    ],
)
def test_a_submission_that_is_refused_gets_a_problem(result: SubmissionResult, status: int, kind: str) -> None:
    response = submitted(result)
    assert is_problem(response, status, kind)
    if status == 429:
        assert response.headers["Retry-After"] == "7"
        assert response.body["retryAfterSeconds"] == 7


def test_a_page_is_sent_on_and_a_script_is_answered() -> None:
    page, script = submitted(ACCEPTED), submitted(ACCEPTED, from_page=False)
    assert (page.status, page.headers["Location"]) == (303, f"{PAGE}/thanks")
    assert (script.status, script.body["event_id"]) == (202, ID)
    assert "Location" not in script.headers


@pytest.mark.parametrize(
    "changes", [{"redirect_url": None}, {"redirect_url": "https://evil.example/"}, {"origins": ()}]
)
def test_without_an_allowed_page_to_go_to_a_page_is_answered(changes: dict[str, Any]) -> None:
    response = submitted(ACCEPTED, **changes)
    assert (response.status, response.body["event_id"]) == (202, ID)
    assert "Location" not in response.headers


@pytest.mark.parametrize("from_page", [True, False])
def test_a_robot_that_was_trapped_cannot_tell(from_page: bool) -> None:
    assert submitted(Trapped(SETTINGS, ID), from_page=from_page) == submitted(ACCEPTED, from_page=from_page)


def test_a_browser_that_asks_first_is_answered_without_a_body() -> None:
    response = preflight_response(FORM, PAGE)
    assert response.as_proxy_result() == {
        "statusCode": 204,
        "headers": {
            "Access-Control-Allow-Methods": "POST, OPTIONS",
            "Access-Control-Allow-Headers": "content-type",
            "Access-Control-Max-Age": "600",
        },
        "body": "",
    }
    assert is_problem(preflight_response(FORM, "https://evil.example"), 403, "origin-not-allowed")
    assert is_problem(unknown_address_response(), 404, "unknown-source")


# Reading


def test_a_request_is_read_byte_for_byte() -> None:
    event = {
        "headers": {"X-Signature": "a", "content-type": "text/plain"},
        "requestContext": {"http": {"method": "PUT", "sourceIp": "192.0.2.1"}},
        "body": "gP8=",
        "isBase64Encoded": True,
    }
    headers = {"x-signature": "a", "content-type": "text/plain"}
    assert incoming_of(event) == Incoming("PUT", headers, b"\x80\xff", "192.0.2.1")


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"headers": None, "requestContext": None, "body": None},
        {"headers": [], "requestContext": {"http": []}, "isBase64Encoded": True},
        {"headers": {"a": None, "b": 5}, "requestContext": {"http": {"method": 5, "sourceIp": {}}}},
    ],
)
def test_parts_that_are_missing_or_of_another_type_are_empty(event: dict[str, Any]) -> None:
    assert incoming_of(event) == Incoming("", {}, b"", None)


def test_a_body_that_is_too_large_is_refused_before_anything_is_looked_up() -> None:
    assert incoming_of({"body": "x" * MAX_BODY_BYTES}).body == b"x" * MAX_BODY_BYTES
    with pytest.raises(BodyTooLarge):
        incoming_of({"body": "x" * (MAX_BODY_BYTES + 1)})


@pytest.mark.parametrize("body", [5, {"a": 1}, "\ud800"])
def test_a_body_that_is_no_text_is_refused(body: object) -> None:
    with pytest.raises(InvalidRequest):
        incoming_of({"body": body})
