"""Submissions of forms: reading them, and deciding which pages may send them.

A form comes as HTML pages send it (application/x-www-form-urlencoded or multipart/form-data, without files), or as a
JSON object. The fields of an HTML form are stored as a JSON object, too, so that receivers see one format: a field with
one value is text, and a field that occurs several times is a list of texts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from orchestrator.common.errors import InvalidRequest
from orchestrator.common.input_limits import check_can_be_handled
from orchestrator.events.incoming import Incoming
from orchestrator.events.quotas import OverLimit
from orchestrator.events.rates import Rates
from orchestrator.events.records import Form

URL_ENCODED = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
JSON = "application/json"

MAX_FIELDS = 200
MAX_NAME_CHARACTERS = 200

_BOUNDARY = re.compile(r"""boundary=(?:"([0-9A-Za-z'()+_,./:=? -]{1,70})"|([0-9A-Za-z'()+_,./:=?-]{1,70}))""", re.I)
_DISPOSITION = re.compile(r"content-disposition:[ \t]*form-data[ \t]*;(.*)", re.I)
_PARAMETER = re.compile(r'(?:^|;)[ \t]*(name|filename\*?)[ \t]*=[ \t]*(?:"([^"]*)"|([^;"\s]*))', re.I)
_MAX_PART_HEADER_BYTES = 2048


@dataclass(frozen=True, slots=True)
class Submission:
    payload: bytes
    """A JSON object."""
    from_page: bool
    """True for an HTML form, whose sender is a person with a browser. JSON is sent by scripts."""
    is_trapped: bool
    """True if the honeypot was filled in, which no person does."""


@dataclass(frozen=True, slots=True)
class WrongContentType:
    """The body is none of the formats of a form, or has a file in it."""

    detail: str


# Reading


def read_submission(form: Form, incoming: Incoming) -> Submission | WrongContentType:
    match incoming.media_type:
        case "application/json":
            return _read_json(form, incoming.body)
        case "application/x-www-form-urlencoded":
            return _from_fields(form, _url_encoded(incoming.body))
        case "multipart/form-data":
            fields = _multipart(incoming)
            return fields if isinstance(fields, WrongContentType) else _from_fields(form, fields)
    return WrongContentType(f"Send the form as {URL_ENCODED}, as {MULTIPART} without files, or as {JSON}.")


def _read_json(form: Form, body: bytes) -> Submission:
    try:
        fields = json.loads(body.decode(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise InvalidRequest("The body is not JSON in UTF-8.") from None
    if not isinstance(fields, dict):
        raise InvalidRequest("The body is not a JSON object with the fields of the form.")
    check_can_be_handled(fields, "the body")
    return Submission(body, from_page=False, is_trapped=bool(form.honeypot and fields.get(form.honeypot)))


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _from_fields(form: Form, pairs: Iterable[tuple[str, str]]) -> Submission:
    fields: dict[str, list[str]] = {}
    for name, value in pairs:
        if not 1 <= len(name) <= MAX_NAME_CHARACTERS:
            raise InvalidRequest(f"The name of a field has 1 to {MAX_NAME_CHARACTERS} characters.")
        fields.setdefault(name, []).append(value)
    trap = fields.pop(form.honeypot, []) if form.honeypot else []
    if not fields:
        raise InvalidRequest("The form has no fields.")
    document = {name: values[0] if len(values) == 1 else values for name, values in fields.items()}
    payload = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    return Submission(payload, from_page=True, is_trapped=any(trap))


def _url_encoded(body: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="strict")
    except UnicodeDecodeError:
        raise InvalidRequest("The form is not encoded in UTF-8.") from None
    except ValueError:
        raise _too_many_fields() from None


def _multipart(incoming: Incoming) -> list[tuple[str, str]] | WrongContentType:
    found = _BOUNDARY.search(incoming.headers.get("content-type", ""))
    if found is None:
        raise InvalidRequest("The header Content-Type has no valid boundary for multipart/form-data.")
    fields: list[tuple[str, str]] = []
    for head, content in _parts(incoming.body, (found[1] or found[2]).encode()):
        name, file_name = _names_in(head)
        if name is None:
            raise InvalidRequest("A part of the form has no name.")
        if file_name is not None:
            if file_name or content:
                return WrongContentType(
                    "Forms take no files, and this one has a file in it. Remove the field for files, and store files "
                    "elsewhere."
                )
            # The page has a field for files, and no file was chosen.
            continue
        try:
            fields.append((name, content.decode()))
        except UnicodeDecodeError:
            raise InvalidRequest("The form is not encoded in UTF-8.") from None
    return fields


def _parts(body: bytes, boundary: bytes) -> Iterator[tuple[str, bytes]]:
    """The parts of a multipart body (RFC 2046), each with its headers."""
    # With a line break before it, the first delimiter looks like all others. What precedes it is not part of the form.
    _preamble, *pieces = (b"\r\n" + body).split(b"\r\n--" + boundary, MAX_FIELDS + 2)
    for piece in pieces[: MAX_FIELDS + 1]:
        if piece.startswith(b"--"):
            return
        head, blank_line, content = piece.partition(b"\r\n\r\n")
        if not blank_line or len(head) > _MAX_PART_HEADER_BYTES:
            raise InvalidRequest("A part of the form has no headers, or too long ones.")
        try:
            yield head.decode(), content
        except UnicodeDecodeError:
            raise InvalidRequest("The form is not encoded in UTF-8.") from None
    if len(pieces) > MAX_FIELDS + 1:
        raise _too_many_fields()
    raise InvalidRequest("The form is not complete: its closing boundary is missing.")


def _names_in(head: str) -> tuple[str | None, str | None]:
    """The name of a part, and the name of its file. ``None`` for what is not there."""
    for line in head.split("\r\n"):
        if (disposition := _DISPOSITION.fullmatch(line.strip())) is not None:
            given = {match[1].lower(): match[2] or match[3] or "" for match in _PARAMETER.finditer(disposition[1])}
            return given.get("name"), given.get("filename*", given.get("filename"))
    return None, None


def _too_many_fields() -> InvalidRequest:
    return InvalidRequest(f"The form has more than {MAX_FIELDS} fields.")


# Origins


def is_allowed_origin(form: Form, origin: str | None) -> bool:
    """True if a page of this origin may send the form. A form without origins takes submissions from anywhere.

    With origins, a request has to name one of them. Browsers do so by themselves, and no page can prevent it.
    """
    return not form.origins or origin in form.origins


def cors_headers(form: Form, origin: str | None) -> dict[str, str]:
    """The headers that let a page of the origin read an answer. Empty if the page may not send the form."""
    if not form.origins:
        return {"Access-Control-Allow-Origin": "*"}
    # This header is on refusals, too, so that no cache gives the answer for one origin to another.
    vary = {"Vary": "Origin"}
    return {"Access-Control-Allow-Origin": origin, **vary} if origin and origin in form.origins else vary


PREFLIGHT_HEADERS = {
    "Access-Control-Allow-Methods": "POST, OPTIONS",
    "Access-Control-Allow-Headers": "content-type",
    "Access-Control-Max-Age": "600",
}
"""The headers of the answer to OPTIONS, besides those about the origin."""


def redirect_for(form: Form) -> str | None:
    """The page to which a browser is sent after a submission. Only pages of the form's own origins are allowed."""
    url = form.redirect_url
    if url is None or not url.isascii() or not url.isprintable() or " " in url:
        return None
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return url if f"{parts.scheme}://{parts.netloc}" in form.origins else None


# The quota of a form


class FormQuotas:
    """The submissions per minute of each form, counted by each running instance of the function for itself.

    A form has a quota of its own, so that a flood of submissions cannot use up what the tenant's plan includes.
    """

    def __init__(self, *, monotonic: Callable[[], float]) -> None:
        self._rates = Rates(monotonic=monotonic)

    def take(self, form: Form) -> OverLimit | None:
        """Count a submission that is about to be accepted, or refuse it."""
        per_minute = form.submissions_per_minute
        seconds = self._rates.take(form.form_id, per_second=per_minute / 60, at_once=per_minute)
        if seconds is None:
            return None
        return OverLimit(
            f"The form {form.form_id} has had its {per_minute} submissions per minute. Try again in {seconds} seconds.",
            seconds,
        )
