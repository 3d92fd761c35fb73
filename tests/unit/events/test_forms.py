"""Submissions of forms: as pages and scripts send them, from origins that may, within the form's own quota."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from urllib3 import encode_multipart_formdata

from orchestrator.common.errors import InvalidRequest
from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.forms import (
    MAX_FIELDS,
    FormQuotas,
    Submission,
    WrongContentType,
    cors_headers,
    is_allowed_origin,
    read_submission,
    redirect_for,
)
from orchestrator.events.incoming import Incoming
from orchestrator.events.records import Form, SourceStatus, TenantEpoch
from tests.fakes import NOON

FORM = Form(
    TenantEpoch(TenantId.parse("acme"), "0011"),
    "form_1",
    "contact",
    SourceStatus.ACTIVE,
    NOON,
    honeypot="website",
)
PAGE = "https://www.example.com"
OF_PAGE = replace(FORM, origins=(PAGE, "http://localhost:8000"), redirect_url=f"{PAGE}/thanks?from=form")

URL_ENCODED = "application/x-www-form-urlencoded"
BOUNDARY = "----WebKitFormBoundary7MA4YWxkTrZu0gW"
MULTIPART = f"multipart/form-data; boundary={BOUNDARY}"


def read(body: bytes, content_type: str, form: Form = FORM) -> Submission | WrongContentType:
    return read_submission(form, Incoming("POST", {"content-type": content_type}, body))


def fields(body: bytes, content_type: str, form: Form = FORM) -> Any:
    submission = read(body, content_type, form)
    assert isinstance(submission, Submission)
    return json.loads(submission.payload)


def parts(*given: tuple[str, bytes]) -> bytes:
    """A multipart body as browsers make it: each part has its header and its content."""
    delimiter = f"--{BOUNDARY}\r\n".encode()
    body = b"".join(delimiter + head.encode() + b"\r\n\r\n" + content + b"\r\n" for head, content in given)
    return body + f"--{BOUNDARY}--\r\n".encode()


def part(name: str, value: str) -> tuple[str, bytes]:
    return f'Content-Disposition: form-data; name="{name}"', value.encode()


# HTML forms


def test_the_fields_of_a_page_become_a_json_object() -> None:
    body = b"name=Ada+Lovelace&email=ada%40example.com&note=&color=red&color=blue&caf%C3%A9=%E2%82%AC"
    assert fields(body, URL_ENCODED) == {
        "name": "Ada Lovelace",
        "email": "ada@example.com",
        "note": "",
        "color": ["red", "blue"],
        "caf\u00e9": "\u20ac",
    }


def test_multipart_gives_the_same() -> None:
    body = parts(part("name", "Ada Lovelace"), part("color", "red"), part("color", "blue"), part("caf\u00e9", "\u20ac"))
    assert fields(body, MULTIPART) == {"name": "Ada Lovelace", "color": ["red", "blue"], "caf\u00e9": "\u20ac"}


def test_line_breaks_and_dashes_in_a_value_are_kept() -> None:
    value = f"one\r\ntwo\r\n--not the boundary\r\n\r\n{BOUNDARY}\r\n--"
    assert fields(parts(part("text", value)), MULTIPART) == {"text": value}


def test_a_quoted_boundary_and_parts_with_more_headers_are_understood() -> None:
    body = parts(("Content-Type: text/plain; charset=utf-8\r\nCONTENT-DISPOSITION: form-data; name=plain", b"x"))
    assert fields(body, f'multipart/form-data; charset=utf-8; BOUNDARY="{BOUNDARY}"') == {"plain": "x"}


@pytest.mark.parametrize(
    "file_name", ['filename="cv.pdf"', "filename=cv.pdf", "filename*=UTF-8''cv.pdf", 'filename=""']
)
def test_a_file_is_refused_with_a_clear_reason(file_name: str) -> None:
    head = f'Content-Disposition: form-data; name="cv"; {file_name}\r\nContent-Type: application/pdf'
    refused = read(parts(part("name", "Ada"), (head, b"%PDF-1.7")), MULTIPART)
    assert isinstance(refused, WrongContentType)
    assert "take no files" in refused.detail


def test_a_field_for_files_without_a_file_is_left_out() -> None:
    head = 'Content-Disposition: form-data; name="cv"; filename=""\r\nContent-Type: application/octet-stream'
    assert fields(parts(part("name", "Ada"), (head, b"")), MULTIPART) == {"name": "Ada"}


@pytest.mark.parametrize(
    ("body", "content_type", "says"),
    [
        (b"", URL_ENCODED, "no fields"),
        (b"=value", URL_ENCODED, "name of a field"),
        (b"x" * 201 + b"=1", URL_ENCODED, "name of a field"),
        (b"a=%FF", URL_ENCODED, "UTF-8"),
        (b"a=\xff", URL_ENCODED, "UTF-8"),
        (b"a=1&" * (MAX_FIELDS + 1), URL_ENCODED, "more than 200 fields"),
        (b"anything", "multipart/form-data", "boundary"),
        (b"anything", "multipart/form-data; boundary=", "boundary"),
        (b"anything", 'multipart/form-data; boundary="%s"' % ("x" * 71), "boundary"),
        (b"anything", MULTIPART, "closing boundary"),
        (parts(part("a", "1"))[:-8], MULTIPART, "closing boundary"),
        (parts(("Content-Disposition: form-data", b"1")), MULTIPART, "has no name"),
        (parts(("Content-Disposition: attachment; name=a", b"1")), MULTIPART, "has no name"),
        (parts(part("", "1")), MULTIPART, "name of a field"),
        (parts(part("a", "1")).replace(b"\r\n\r\n", b"\r\n"), MULTIPART, "no headers"),
        (parts(("Content-Disposition: form-data; name=a; x=" + "y" * 3_000, b"1")), MULTIPART, "too long"),
        (parts(("Content-Disposition: form-data; name=a", b"\xff")), MULTIPART, "UTF-8"),
        (parts(part("a", "1")).replace(b'"a"', b'"\xff"'), MULTIPART, "UTF-8"),
        (parts(*[part("a", "1")] * (MAX_FIELDS + 1)), MULTIPART, "more than 200 fields"),
        (parts(), MULTIPART, "no fields"),
    ],
)
def test_a_form_that_cannot_be_read_is_refused_with_the_reason(body: bytes, content_type: str, says: str) -> None:
    with pytest.raises(InvalidRequest, match=says):
        read(body, content_type)


def test_the_maximum_number_of_fields_is_read_in_either_format() -> None:
    values = [str(number) for number in range(MAX_FIELDS)]
    assert fields(urlencode([("a", value) for value in values]).encode(), URL_ENCODED) == {"a": values}
    assert fields(parts(*[part("a", value) for value in values]), MULTIPART) == {"a": values}


@pytest.mark.parametrize("content_type", ["", "text/plain", "application/xml", "multipart/mixed; boundary=x", "json"])
def test_another_content_type_is_refused(content_type: str) -> None:
    refused = read(b'{"a": 1}', content_type)
    assert isinstance(refused, WrongContentType)
    assert "application/json" in refused.detail


names = st.text(st.characters(codec="utf-8", exclude_characters='"\r\n\0\\'), min_size=1, max_size=20).filter(str.strip)
values = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=40)


@given(st.dictionaries(names, values, min_size=1, max_size=5))
def test_every_form_survives_a_round_trip_in_either_format(sent: dict[str, str]) -> None:
    form = replace(FORM, honeypot=None)
    assert fields(urlencode(sent).encode(), URL_ENCODED, form) == sent
    assert fields(parts(*[part(name, value) for name, value in sent.items()]), MULTIPART, form) == sent


@given(st.dictionaries(st.text("abcxyz", min_size=1, max_size=9), st.text("abc \n-\u20ac", max_size=30), min_size=1))
def test_forms_written_by_another_implementation_are_read(sent: dict[str, str]) -> None:
    body, content_type = encode_multipart_formdata(sent)
    assert fields(body, content_type, replace(FORM, honeypot=None)) == sent


@given(st.binary(max_size=300), st.sampled_from([URL_ENCODED, MULTIPART, "application/json", "multipart/form-data"]))
def test_any_bytes_are_read_or_refused(body: bytes, content_type: str) -> None:
    try:
        submission = read(body, content_type)
    except InvalidRequest:
        return
    assert isinstance(submission, Submission)
    assert isinstance(json.loads(submission.payload), dict)


# JSON


def test_json_is_kept_byte_for_byte() -> None:
    body = b'{ "name": "Ada",  "age": 36.50 }'
    submission = read(body, "application/json; charset=utf-8")
    assert submission == Submission(body, from_page=False, is_trapped=False)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"5",
        b"{",
        b'{"a": NaN}',
        b'"\xff"',
        b"[" * 100_000,
        b'{"a": "\\ud800"}',
        b'{"a":' * 60 + b"1" + b"}" * 60,
    ],
)
def test_json_that_is_no_object_of_fields_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidRequest):
        read(body, "application/json")


# The honeypot


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"name=Ada&website=http%3A%2F%2Fspam", URL_ENCODED),
        (b"name=Ada&website=&website=x", URL_ENCODED),
        (parts(part("name", "Ada"), part("website", "x")), MULTIPART),
        (b'{"name": "Ada", "website": "x"}', "application/json"),
    ],
)
def test_a_filled_honeypot_traps_the_sender(body: bytes, content_type: str) -> None:
    submission = read(body, content_type)
    assert isinstance(submission, Submission)
    assert submission.is_trapped


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"name=Ada&website=", URL_ENCODED),
        (b"name=Ada", URL_ENCODED),
        (b'{"name": "Ada", "website": ""}', "application/json"),
        (b'{"name": "Ada", "website": null}', "application/json"),
    ],
)
def test_an_empty_honeypot_traps_nobody(body: bytes, content_type: str) -> None:
    submission = read(body, content_type)
    assert isinstance(submission, Submission)
    assert not submission.is_trapped


def test_the_honeypot_of_a_page_is_not_part_of_the_submission() -> None:
    assert fields(b"name=Ada&website=", URL_ENCODED) == {"name": "Ada"}


# Origins and redirects


@pytest.mark.parametrize("origin", [None, "null", "", PAGE, "https://evil.example"])
def test_a_form_without_origins_takes_submissions_from_anywhere(origin: str | None) -> None:
    assert is_allowed_origin(FORM, origin)
    assert cors_headers(FORM, origin) == {"Access-Control-Allow-Origin": "*"}


@pytest.mark.parametrize("origin", OF_PAGE.origins)
def test_a_page_of_an_allowed_origin_may_send_and_read_the_answer(origin: str) -> None:
    assert is_allowed_origin(OF_PAGE, origin)
    assert cors_headers(OF_PAGE, origin) == {"Access-Control-Allow-Origin": origin, "Vary": "Origin"}


@pytest.mark.parametrize(
    "origin",
    [
        None,
        "",
        "null",
        "*",
        "http://www.example.com",
        "https://www.example.com:444",
        "https://www.example.com.evil.example",
    ],
)
def test_another_page_may_not_and_there_is_no_wildcard(origin: str | None) -> None:
    assert not is_allowed_origin(OF_PAGE, origin)
    assert cors_headers(OF_PAGE, origin) == {"Vary": "Origin"}


def test_a_redirect_goes_to_a_page_of_an_allowed_origin() -> None:
    assert redirect_for(OF_PAGE) == "https://www.example.com/thanks?from=form"


@pytest.mark.parametrize(
    "url",
    [
        None,
        "https://evil.example/",
        "https://www.example.com.evil.example/",
        "https://www.example.com@evil.example/",
        "https://evil.example/?https://www.example.com",
        "//www.example.com/",
        "javascript:alert(1)",
        "/thanks",
        "https://[",
        "https://www.example.com/\r\nSet-Cookie: a=b",
        "https://www.example.com/a b",
        "https://www.example.com/\u00e9",
    ],
)
def test_a_redirect_to_anywhere_else_is_not_made(url: str | None) -> None:
    assert redirect_for(replace(OF_PAGE, redirect_url=url)) is None
    assert redirect_for(replace(OF_PAGE, redirect_url=f"{PAGE}/thanks", origins=())) is None


# The quota


class Seconds:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_form_takes_its_submissions_per_minute_and_then_says_when_to_come_back() -> None:
    monotonic, form = Seconds(), replace(FORM, submissions_per_minute=3)
    quotas = FormQuotas(monotonic=monotonic)
    assert [quotas.take(form) for _ in range(3)] == [None] * 3
    over = quotas.take(form)
    assert over is not None
    assert over.retry_after_seconds == 20
    assert "form_1" in over.reason
    monotonic.now += 19
    assert quotas.take(form) is not None
    monotonic.now += 1
    assert quotas.take(form) is None
    assert quotas.take(form) is not None
    monotonic.now += 3600
    assert [quotas.take(form) is None for _ in range(4)] == [True, True, True, False]


def test_forms_do_not_share_a_quota() -> None:
    quotas = FormQuotas(monotonic=Seconds())
    first = replace(FORM, submissions_per_minute=1)
    assert quotas.take(first) is None
    assert quotas.take(first) is not None
    assert quotas.take(replace(first, form_id="form_2")) is None


def test_a_smaller_quota_takes_effect_at_once() -> None:
    quotas = FormQuotas(monotonic=Seconds())
    assert quotas.take(replace(FORM, submissions_per_minute=60)) is None
    small = replace(FORM, submissions_per_minute=2)
    assert [quotas.take(small) is None for _ in range(3)] == [True, True, False]
