"""The declaration of a route. This module loads no wire models, so that importing it is cheap."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from orchestrator.api.problems import Problem

RequestT = TypeVar("RequestT")
"""The wire model of a request."""
AnswerT = TypeVar("AnswerT", covariant=True)
"""The wire models of the answers that are not problems."""

ANY_METHOD = "ANY"
"""The method of a route that takes every method. Its function refuses those that it does not know."""

MAX_CHARACTERS = 65_536
"""The maximum length of most bodies: more than twice the longest valid body. Explaining errors of a huge body is slow.
"""

_PARAMETER = re.compile(r"\{(\w+)\}")


class Audience(StrEnum):
    """The callers of a route. Each audience that has AWS credentials has a managed policy.

    Tenants call with an API key, and anybody may call the public routes.
    """

    PLATFORM = "platform"
    SENDER = "sender"
    RECEIVER = "receiver"
    OPERATOR = "operator"
    TENANT = "tenant"
    PUBLIC = "public"


class Rate(StrEnum):
    """The kind of rate limit that a route has. The deployment sets the numbers."""

    QUEUES = "queues"
    CREDENTIALS = "credentials"
    READS = "reads"
    ORDERS = "orders"
    EVENTS = "events"
    SUBMISSIONS = "submissions"
    EVENT_READS = "event-reads"


@dataclass(frozen=True, slots=True)
class Header:
    """A header of an answer. ``required`` is false if some answers come without it."""

    name: str
    description: str
    schema: Mapping[str, object]
    required: bool = True


@dataclass(frozen=True, slots=True)
class Answer(Generic[AnswerT]):
    status: int
    model: type[AnswerT] | None
    """``None`` for an answer without content."""
    description: str
    headers: tuple[Header, ...] = ()


def _no_warning(_request: object) -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class Route(Generic[RequestT, AnswerT]):
    """One route. Fields of the request that the path names are sent in the path only.

    The other fields are in the body of a PUT or a POST, and in the query of a GET or a DELETE, because many clients
    and proxies drop the body of a GET or a DELETE.
    """

    name: str
    method: str
    path: str
    audience: Audience
    rate: Rate
    summary: str
    request: type[RequestT]
    answers: tuple[Answer[AnswerT], ...]
    problems: tuple[Problem, ...] = ()
    description: str = ""
    scope: str | None = None
    """The scope that the API key of a tenant must have."""
    max_characters: int = MAX_CHARACTERS
    """The maximum length of a body."""
    bodies: tuple[str, ...] = ()
    """The content types of a body that is taken as it comes, without a wire model."""
    warning: Callable[[RequestT], str | None] = _no_warning
    """Returns the sentence that an operator has to confirm before the command line sends the request, if there is one.

    A DELETE that is sent by its path is confirmed in any case.
    """

    @property
    def key(self) -> str:
        """The route as API Gateway names it: ``GET /tenants/{tenantId}``."""
        return f"{self.method} {self.path}"

    @property
    def path_parameters(self) -> tuple[str, ...]:
        return tuple(_PARAMETER.findall(self.path))

    @property
    def has_body(self) -> bool:
        return self.method in ("PUT", "POST")


AnyRoute = Route[Any, Any]

RETRY_AFTER = Header(
    "Retry-After", "The number of seconds to wait before the next request.", {"type": "integer", "minimum": 1}
)
RETRY_AFTER_SOMETIMES = Header(
    "Retry-After",
    "The number of seconds to wait before the next request, if trying again helps.",
    {"type": "integer", "minimum": 1},
    required=False,
)
NO_STORE = Header("Cache-Control", "The answer holds credentials and must not be cached.", {"const": "no-store"})


def location(of: str, path: str, characters: str) -> Header:
    schema = {"type": "string", "format": "uri-reference", "pattern": f"^{path}/[{characters}]+$"}
    return Header("Location", f"The {of}.", schema)
