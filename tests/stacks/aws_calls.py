"""Makes one call of every operation, without sending it. It runs with and without the layer's data for botocore."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Mapping, Sequence
from typing import Any

from botocore import xform_name
from botocore.session import Session

ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_DEFAULT_REGION": "eu-west-1",
    "AWS_CONFIG_FILE": "/nowhere",
    "AWS_SHARED_CREDENTIALS_FILE": "/nowhere",
    "BERTH_TABLE": "berth",
    "BERTH_VERSION": "0.1.0",
    "BERTH_TEMPLATE_VERSION": "0.1.0",
    "BERTH_LINGER_SECONDS": "60",
    "BERTH_CREATE_ON_GET_QUEUE": "true",
    "BERTH_RETRY_AFTER_SECONDS": "5",
    "BERTH_EVENTS_TABLE": "berth-events",
    "BERTH_CONTENTS_BUCKET": "berth-contents",
    "BERTH_SECRETS_KEY": "key",
    "BERTH_FIRST_QUEUE": "first",
    "BERTH_LATER_QUEUE": "later",
}
COMPARED = ("content-type", "x-amz-target", "content-md5", "x-amz-checksum-crc32", "host")


class _Stopped(Exception):
    """The request is complete, and is not sent."""


def requests(operations: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """The request of each operation, with all of its required input."""
    session, sent = Session(), {}
    for service, names in operations.items():
        client = session.create_client(service)
        for name in names:
            seen: list[Any] = []

            def stop(request: Any, seen: list[Any] = seen, **_: object) -> None:
                seen.append(request)
                raise _Stopped

            event = f"before-send.{client.meta.service_model.service_id.hyphenize()}.{name}"
            client.meta.events.register(event, stop)
            operation = client.meta.service_model.operation_model(name)
            # Without a given value, botocore would send a random one.
            given = dict.fromkeys(operation.idempotent_members, "a-token-for-repetitions-of-calls")
            if operation.input_shape is not None:
                given |= _value(operation.input_shape)
            with contextlib.suppress(_Stopped):
                getattr(client, xform_name(name))(**given)
            (request,) = seen
            headers = {key.lower(): _text(value) for key, value in request.headers.items()}
            sent[f"{service}.{name}"] = [
                request.method,
                request.url,
                {key: headers.get(key) for key in COMPARED},
                _text(request.body),
            ]
    return sent


def _value(shape: Any) -> Any:
    match shape.type_name:
        case "structure":
            names = shape.required_members or (list(shape.members)[:1] if shape.is_tagged_union else ())
            return {name: _value(shape.members[name]) for name in names}
        case "list":
            return [_value(shape.member)]
        case "map":
            return {"key": _value(shape.value)}
        case "integer" | "long" | "float" | "double":
            return shape.metadata.get("min", 1)
        case "boolean":
            return True
        case "blob":
            return b"bytes"
        case "timestamp":
            return datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
        case _:
            return "text".ljust(shape.metadata.get("min", 4), "x")


def _text(value: Any) -> str | None:
    if hasattr(value, "read"):
        value = value.read()
    return value.decode() if isinstance(value, bytes) else value
