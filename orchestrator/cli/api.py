"""The API as commands use it. :class:`orchestrator.client.client.Client` implements it over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from orchestrator.api.route import RequestT, Route
    from orchestrator.client.transport import ApiAnswer

Document = Mapping[str, Any]
"""The JSON object in an answer."""


class Api(Protocol):
    def send_request(self, route: Route[RequestT, Any], request: RequestT) -> ApiAnswer:
        """Send one request, and return the answer whatever its status."""
