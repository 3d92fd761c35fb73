"""Requests to public addresses: the headers that are kept with an event, and bodies that may be JSON."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.events.incoming import (
    MAX_CONTENT_TYPE_CHARACTERS,
    MAX_HEADER_BYTES,
    MAX_HEADERS,
    Incoming,
    json_object,
    kept_headers,
)

OF_GITHUB = {"x-github-event": "push", "user-agent": "GitHub-Hookshot/044aadd", "accept": "*/*"}


def test_the_headers_that_the_sender_chose_are_kept() -> None:
    assert kept_headers(OF_GITHUB) == OF_GITHUB


@pytest.mark.parametrize(
    "name",
    [
        "authorization",
        "proxy-authorization",
        "cookie",
        "x-api-key",
        "berth-hops",
        "content-type",
        "content-length",
        "host",
        "x-amzn-trace-id",
        "x-forwarded-for",
        "x-forwarded-port",
    ],
)
def test_secrets_and_headers_of_the_connection_are_not_kept(name: str) -> None:
    assert kept_headers({name: "value", **OF_GITHUB}) == OF_GITHUB


def test_further_headers_that_hold_a_secret_can_be_named() -> None:
    assert kept_headers({"x-gitlab-token": "secret", **OF_GITHUB}, without={"x-gitlab-token"}) == OF_GITHUB


def test_headers_that_do_not_fit_are_left_out_and_the_others_kept() -> None:
    headers = {"x-long": "x" * MAX_HEADER_BYTES, **OF_GITHUB, "x-longer": "y" * MAX_HEADER_BYTES}
    assert kept_headers(headers) == OF_GITHUB
    assert len(kept_headers({f"x-{number}": "" for number in range(MAX_HEADERS + 9)})) == MAX_HEADERS


@given(st.dictionaries(st.text(max_size=30), st.text(st.characters(), max_size=300), max_size=80))
def test_kept_requests_are_within_the_limits_and_can_be_stored(headers: dict[str, str]) -> None:
    kept = kept_headers(headers)
    assert len(kept) <= MAX_HEADERS
    assert sum(len(name.encode()) + len(value.encode()) for name, value in kept.items()) <= MAX_HEADER_BYTES


def with_type(content_type: str | None) -> Incoming:
    return Incoming("POST", {} if content_type is None else {"content-type": content_type}, b"")


def test_the_media_type_is_the_content_type_without_its_parameters() -> None:
    assert with_type("Application/JSON; charset=utf-8").media_type == "application/json"
    assert with_type(None).media_type == ""


@pytest.mark.parametrize(
    ("given_type", "stored"),
    [
        ("text/plain; charset=utf-8", "text/plain; charset=utf-8"),
        (None, "application/octet-stream"),
        ("  ", "application/octet-stream"),
        ("\ud800", "application/octet-stream"),
        ("x" * 999, "x" * MAX_CONTENT_TYPE_CHARACTERS),
    ],
)
def test_a_content_type_can_always_be_stored(given_type: str | None, stored: str) -> None:
    assert with_type(given_type).content_type == stored


def test_a_json_object_is_read() -> None:
    assert json_object(b' {"type": "a", "n": 1.5} ') == {"type": "a", "n": 1.5}


@pytest.mark.parametrize("body", [b"", b"[]", b'"x"', b"1", b"{", b"\xff", b"[" * 100_000, b"9" * 5_000])
def test_anything_else_is_an_empty_object(body: bytes) -> None:
    assert json_object(body) == {}
