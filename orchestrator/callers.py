"""Who asks, from what API Gateway says about the caller."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NOBODY_KNOWN = "direct invocation"
"""A function that is invoked directly is not told by whom; CloudTrail is."""

MOST_CHARACTERS = 2_048
"""No ARN is longer. The machines take no longer one, either."""


def caller(event: Mapping[str, Any]) -> str:
    """The caller's ARN. Of a role it ends with the session's name, often that of a person."""
    found: object = event
    for name in ("requestContext", "authorizer", "iam", "userArn"):
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, str) and _may_be_an_arn(found) else NOBODY_KNOWN


def _may_be_an_arn(text: str) -> bool:
    """Who invokes a function directly may say anything in API Gateway's place, also what no service would take."""
    return 0 < len(text) <= MOST_CHARACTERS and text.isprintable()


def role_of(arn: str) -> str:
    """The caller without the session's name: the same for all instances of a service that ask at once."""
    kind, slash, rest = arn.partition("/")
    if kind.endswith(":assumed-role") and slash:
        return f"{kind}/{rest.partition('/')[0]}"
    return arn
