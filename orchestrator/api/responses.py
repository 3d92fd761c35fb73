"""The parts that all HTTP answers share. Errors are problem details (RFC 9457) with a stable type.

This module knows no capability, so that a function loads only the answers that it gives.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from orchestrator.api.problems import (
    CREDENTIALS_NOT_ENABLED,
    INVALID_REQUEST,
    NOT_THROUGH_THE_API,
    TRY_AGAIN,
    Problem,
)
from orchestrator.common.errors import InvalidRequest

RETRY_AFTER_SECONDS = 2
"""The value of Retry-After, except for a queue that is being created (``berth:retryAfterSeconds``)."""

NO_CONTENT = 204
"""The status of an answer without a body."""


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    headers: dict[str, str]
    body: dict[str, object]

    def as_proxy_result(self) -> dict[str, object]:
        """The response in API Gateway's format. Direct callers of the function get the same format."""
        body = "" if self.status == NO_CONTENT else json.dumps(self.body)
        return {"statusCode": self.status, "headers": self.headers, "body": body}


def refuse(error: InvalidRequest) -> Response:
    return problem(INVALID_REQUEST, str(error))


def unknown_caller() -> Response:
    return problem(
        NOT_THROUGH_THE_API,
        "The function was invoked without API Gateway, so the caller is unknown. Call the API's URL instead. "
        "While the control plane is being deployed, try again in a minute.",
    )


def no_credentials() -> Response:
    return problem(
        CREDENTIALS_NOT_ENABLED,
        "This control plane does not issue credentials: it was deployed without berth:credentialsSeconds.",
    )


def try_again_later(detail: str) -> Response:
    response = problem(TRY_AGAIN, detail)
    response.headers["Retry-After"] = str(RETRY_AFTER_SECONDS)
    return response


def json_response(status: int, body: dict[str, object]) -> Response:
    return Response(status, {"Content-Type": "application/json"}, body)


def problem(kind: Problem, detail: str, **more: object) -> Response:
    """An answer with problem details. `status` is the HTTP status; the tenant's state is `tenantState`."""
    return Response(
        kind.status,
        {"Content-Type": "application/problem+json"},
        {"type": kind.type, "title": kind.title, "status": kind.status, "detail": detail, **more},
    )
