"""How what comes in is checked against a JSON schema, and what is said when it does not fit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match
from jsonschema.validators import extend

from orchestrator.common.errors import InvalidRequest
from orchestrator.common.input_limits import (
    LABEL_NAME_PATTERN,
    LABEL_VALUE_PATTERN,
    MAX_LABELS,
    REASON_MAX_LENGTH,
    REASON_PATTERN,
    check_can_be_handled,
)
from orchestrator.common.tenant_ids import TENANT_ID_MAX_LENGTH, TENANT_ID_PATTERN
from orchestrator.common.times import ID_PATTERN
from orchestrator.common.versions import VERSION_PATTERN

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
REASON = {"type": "string", "pattern": REASON_PATTERN, "minLength": 1, "maxLength": REASON_MAX_LENGTH}
"""Why something is asked for."""

LABELS = {
    "type": "object",
    "maxProperties": MAX_LABELS,
    "propertyNames": {"pattern": LABEL_NAME_PATTERN},
    "additionalProperties": {"type": "string", "pattern": LABEL_VALUE_PATTERN},
}


def valid(schema: Any, given: object, *, what: str = "the event") -> dict[str, Any]:
    check_can_be_handled(given, what)
    error = best_match(schema.iter_errors(given))
    if error is not None:
        where = ".".join(str(step) for step in error.absolute_path) or what
        # An error's message quotes the value. Errors are logged, and secrets are not.
        secret = isinstance(error.schema, dict) and error.schema.get("writeOnly", False)
        raise InvalidRequest(f"{where}: {'what is there does not fit' if secret else error.message[:300]}")
    assert isinstance(given, dict)  # noqa: S101 - every schema that is passed in requires an object
    return given
