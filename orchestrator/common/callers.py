"""Who asks, from what API Gateway says about the caller, and whether it was API Gateway that said so."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

NOBODY_KNOWN = "direct invocation"
"""A function that is invoked directly is not told by whom; CloudTrail is."""

MOST_CHARACTERS = 2_048
"""No ARN is longer. The machines take no longer one, either."""

PROOF_VARIABLE = "proof"
"""The variable of the API's stage that API Gateway adds to every event, and that no caller of the API can set."""

_NOT_IN_A_SOURCE_IDENTITY = re.compile(r"[^A-Za-z0-9_=,.@-]+")
_MOST_OF_A_SOURCE_IDENTITY = 64
_DIGEST_LENGTH = 12


@dataclass(frozen=True, slots=True)
class ApiGateway:
    """Recognises API Gateway's events. Whoever may invoke a function directly can send it an event like that."""

    proof_digest: str | None
    """SHA-256 of what API Gateway proves itself with, in hexadecimal. Without it nobody is believed."""

    def sent(self, event: Mapping[str, Any]) -> bool:
        variables = event.get("stageVariables")
        proof = variables.get(PROOF_VARIABLE) if isinstance(variables, Mapping) else None
        if not self.proof_digest or not isinstance(proof, str):
            return False
        return hmac.compare_digest(digest_of(proof), self.proof_digest)

    def caller(self, event: Mapping[str, Any]) -> str:
        """The caller's ARN, if it was API Gateway that said so."""
        return caller(event) if self.sent(event) else NOBODY_KNOWN


def digest_of(proof: str) -> str:
    """Half of a surrogate pair is text to JSON; it is no part of any proof, so it may be replaced."""
    return hashlib.sha256(proof.encode(errors="replace")).hexdigest()


def caller(event: Mapping[str, Any]) -> str:
    """The caller's ARN, as the event has it. Of a role it ends with the session's name, often that of a person."""
    found: object = event
    for name in ("requestContext", "authorizer", "iam", "userArn"):
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, str) and _may_be_an_arn(found) else NOBODY_KNOWN


def _may_be_an_arn(text: str) -> bool:
    return 0 < len(text) <= MOST_CHARACTERS and text.isprintable()


def counted_as(caller: str) -> str:
    """Whom a caller's creates are counted for.

    An IAM user may give federated users any name, and as many names as it likes: all of them are one caller.
    """
    role = role_of(caller)
    kind, slash, _ = role.partition("/")
    return kind if kind.endswith(":federated-user") and slash else role


def role_of(arn: str) -> str:
    """The caller without the session's name: the same for all instances of a service that ask at once."""
    kind, slash, rest = arn.partition("/")
    if kind.endswith(":assumed-role") and slash:
        return f"{kind}/{rest.partition('/')[0]}"
    return arn


def source_identity(arn: str) -> str:
    """The caller as STS and CloudTrail take it: ``operator=ada-0123456789ab``, of at most 64 characters.

    The name is for people. The digest of the whole ARN tells callers apart whose names look the same.
    """
    kind, slash, name = arn.rpartition(":")[2].partition("/")
    digest = hashlib.sha256(arn.encode(errors="replace")).hexdigest()[:_DIGEST_LENGTH]
    readable = _NOT_IN_A_SOURCE_IDENTITY.sub("-", (name if slash else kind).replace("/", "="))
    return f"{readable[: _MOST_OF_A_SOURCE_IDENTITY - _DIGEST_LENGTH - 1]}-{digest}"
