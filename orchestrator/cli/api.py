"""How commands ask Berth's API. :class:`orchestrator.client.client.Client` asks it over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from orchestrator.api.route import Asked, Route
    from orchestrator.client.transport import ApiAnswer

Document = Mapping[str, Any]
"""The JSON object in an answer."""


class Api(Protocol):
    def ask(self, route: Route[Asked, Any], asked: Asked) -> ApiAnswer:
        """One request, and whatever the API says to it."""
