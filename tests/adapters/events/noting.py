"""Notes the requests of a client to DynamoDB. Tests share their clients, so a note must not outlive its test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def noted_requests(client: Any) -> Iterator[list[tuple[str, dict[str, Any]]]]:
    """The names and the parameters of the requests."""
    found: list[tuple[str, dict[str, Any]]] = []

    def note(params: dict[str, Any], model: Any, **_: Any) -> None:
        found.append((model.name, params))

    client.meta.events.register("provide-client-params.dynamodb", note)
    try:
        yield found
    finally:
        client.meta.events.unregister("provide-client-params.dynamodb", note)
