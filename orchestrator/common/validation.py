"""Validation of input against JSON schemas, and the messages about invalid input."""

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
from orchestrator.common.tiers import NOT_A_TIER, TIER_PATTERN
from orchestrator.common.times import ID_PATTERN
from orchestrator.common.versions import VERSION_PATTERN

_PATTERN_MESSAGES = {
    VERSION_PATTERN: "is not a version like 1.2.3",
    TIER_PATTERN: NOT_A_TIER,
    REASON_PATTERN: "is not one line of printable text",
}


def _whole(_validator: object, pattern: str, text: object, _schema: object) -> Iterator[ValidationError]:
    """The JSON schema keyword `pattern`, which must match the whole text: Python's `$` accepts a trailing newline."""
    if isinstance(text, str) and not re.fullmatch(pattern, text):
        message = _PATTERN_MESSAGES.get(pattern, f"does not match {pattern!r}")
        yield ValidationError(f"{text!a} {message}")


Schema = extend(Draft202012Validator, {"pattern": _whole})  # type: ignore[no-untyped-call]


def object_of(
    required: Mapping[str, Any], optional: Mapping[str, Any] | None = None, *, closed: bool = False
) -> dict[str, Any]:
    """The schema of an object with these properties. A ``closed`` object may have no others."""
    schema = {"type": "object", "properties": {**required, **(optional or {})}, "required": list(required)}
    return schema | {"additionalProperties": False} if closed else schema


TEXT = {"type": "string", "minLength": 1, "maxLength": 4096}
SECRET = {**TEXT, "writeOnly": True}
"""Text that must not appear in error messages or logs."""
TENANT_ID = {"type": "string", "pattern": TENANT_ID_PATTERN, "maxLength": TENANT_ID_MAX_LENGTH}
SORTED_ID = {"type": "string", "pattern": ID_PATTERN}
"""The id of a rollout or a reconciliation."""
VERSION = {"type": "string", "pattern": VERSION_PATTERN}
TIER = {"type": "string", "pattern": TIER_PATTERN}
REASON = {"type": "string", "pattern": REASON_PATTERN, "minLength": 1, "maxLength": REASON_MAX_LENGTH}
"""The reason that a caller gives for a request."""

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
        # The validator's message quotes the value, and errors are logged, so a secret gets a message without its value.
        secret = isinstance(error.schema, dict) and error.schema.get("writeOnly", False)
        raise InvalidRequest(f"{where}: {'the value is not valid' if secret else error.message[:300]}")
    assert isinstance(given, dict)  # noqa: S101 - every schema that is passed in requires an object
    return given
