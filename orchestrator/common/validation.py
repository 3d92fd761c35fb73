"""How what comes in is checked against a JSON schema, and what is said when it does not fit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match
from jsonschema.validators import extend

from orchestrator.common.errors import InvalidRequest
from orchestrator.common.tenant_ids import TENANT_ID_MAX_LENGTH, TENANT_ID_PATTERN
from orchestrator.common.times import ID_PATTERN
from orchestrator.common.versions import VERSION_PATTERN

REASON_PATTERN = (
    r"^[^\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]*$"
)
"""One line: no control characters, and none that change how those around them are shown."""

_WANTED = {
    VERSION_PATTERN: "is not a version like 1.2.3",
    REASON_PATTERN: "is not one line of printable text",
}


def _whole(_validator: object, pattern: str, text: object, _schema: object) -> Iterator[ValidationError]:
    """`pattern`, of the whole text: by itself Python's `$` would let a trailing newline through."""
    if isinstance(text, str) and not re.fullmatch(pattern, text):
        wanted = _WANTED.get(pattern, f"does not match {pattern!r}")
        yield ValidationError(f"{text!a} {wanted}")


Schema = extend(Draft202012Validator, {"pattern": _whole})  # type: ignore[no-untyped-call]


def object_of(
    required: Mapping[str, Any], optional: Mapping[str, Any] | None = None, *, closed: bool = False
) -> dict[str, Any]:
    """An object with these properties; with no others if it is closed."""
    schema = {"type": "object", "properties": {**required, **(optional or {})}, "required": list(required)}
    return schema | {"additionalProperties": False} if closed else schema


TEXT = {"type": "string", "minLength": 1, "maxLength": 4096}
SECRET = {**TEXT, "writeOnly": True}
"""A text that no message quotes."""
TENANT_ID = {"type": "string", "pattern": TENANT_ID_PATTERN, "maxLength": TENANT_ID_MAX_LENGTH}
SORTED_ID = {"type": "string", "pattern": ID_PATTERN}
"""Of a rollout, a reconciliation or an adoption."""
VERSION = {"type": "string", "pattern": VERSION_PATTERN}
REASON = {"type": "string", "pattern": REASON_PATTERN, "minLength": 1, "maxLength": 500}
"""Why something is asked for."""

LABELS = {
    "type": "object",
    "maxProperties": 20,
    "propertyNames": {"pattern": "^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$"},
    "additionalProperties": {"type": "string", "pattern": "^[A-Za-z0-9 ._:/@+=-]{0,128}$"},
}


MOST_LEVELS = 50
"""What is nested more deeply is nothing of ours. Much more deeply, and Python could not even show it."""


def is_utf8(text: str) -> bool:
    """Whether it can be stored and sent on. Half of a surrogate pair is text to JSON, and to no service."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def valid(schema: Any, given: object, *, what: str = "the event") -> dict[str, Any]:
    _check_can_be_handled(given, what)
    error = best_match(schema.iter_errors(given))
    if error is not None:
        where = ".".join(str(step) for step in error.absolute_path) or what
        # An error's message quotes the value. Errors are logged, and secrets are not.
        secret = isinstance(error.schema, dict) and error.schema.get("writeOnly", False)
        raise InvalidRequest(f"{where}: {'what is there does not fit' if secret else error.message[:300]}")
    assert isinstance(given, dict)  # noqa: S101 - every schema that is passed in requires an object
    return given


def _check_can_be_handled(given: object, what: str) -> None:
    level = [given]
    for _ in range(MOST_LEVELS):
        below: list[object] = []
        for each in level:
            if isinstance(each, str):
                if not is_utf8(each):
                    raise InvalidRequest(f"{what}: it holds half of a surrogate pair, which is no character")
            elif isinstance(each, dict):
                below += each
                below += each.values()
            elif isinstance(each, list):
                below += each
        if not below:
            return
        level = below
    raise InvalidRequest(f"{what}: it is nested too deeply")
