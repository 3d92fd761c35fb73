"""What a declaration of a route says. It loads no wire models, so that everybody can afford it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from orchestrator.api.problems import Problem

Asked = TypeVar("Asked")
"""The wire model of a request."""
Told = TypeVar("Told", covariant=True)
"""The wire models of the answers that are no problems."""

_PARAMETER = re.compile(r"\{(\w+)\}")


class Audience(StrEnum):
    """Who may call a route. Each audience has a managed policy; the operators' allows every route."""

    PLATFORM = "platform"
    SENDER = "sender"
    RECEIVER = "receiver"
    OPERATOR = "operator"


class Rate(StrEnum):
    """How often a route may be called, by kind. The numbers are those of the deployment."""

    QUEUES = "queues"
    CREDENTIALS = "credentials"
    READS = "reads"
    ORDERS = "orders"


@dataclass(frozen=True, slots=True)
class Header:
    """A header of an answer. ``required`` is false where it comes only sometimes."""

    name: str
    description: str
    schema: Mapping[str, object]
    required: bool = True


@dataclass(frozen=True, slots=True)
class Answer(Generic[Told]):
    status: int
    model: type[Told]
    description: str
    headers: tuple[Header, ...] = ()


@dataclass(frozen=True, slots=True)
class Route(Generic[Asked, Told]):
    """One route. A field of the request that the path names is in the path, and nowhere else.

    The other fields are in the body of a PUT or a POST, and in the query of a GET or a DELETE: many clients and
    proxies drop the body of those.
    """

    name: str
    method: str
    path: str
    audience: Audience
    rate: Rate
    summary: str
    request: type[Asked]
    answers: tuple[Answer[Told], ...]
    problems: tuple[Problem, ...] = ()
    description: str = ""

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

RETRY_AFTER = Header("Retry-After", "In how many seconds to ask again.", {"type": "integer", "minimum": 1})
RETRY_AFTER_SOMETIMES = Header(
    "Retry-After",
    "In how many seconds to ask again, where that helps.",
    {"type": "integer", "minimum": 1},
    required=False,
)
NO_STORE = Header("Cache-Control", "Nobody else may be given the answer.", {"const": "no-store"})


def location(of: str, path: str, characters: str) -> Header:
    schema = {"type": "string", "format": "uri-reference", "pattern": f"^{path}/[{characters}]+$"}
    return Header("Location", f"The {of}.", schema)
