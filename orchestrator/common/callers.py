"""The caller of a request, as API Gateway names the caller, and the check that API Gateway sent the event."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

NOBODY_KNOWN = "direct invocation"
"""The caller of a function that was invoked directly. Lambda does not tell the function who it was; CloudTrail does."""

MAX_CHARACTERS = 2_048
"""The maximum length of an ARN. The state machines' input schemas have the same limit."""

PROOF_VARIABLE = "proof"
"""The API's stage variable with the proof. API Gateway adds it to every event; callers of the API cannot set it."""

_NOT_IN_A_SOURCE_IDENTITY = re.compile(r"[^A-Za-z0-9_=,.@-]+")
_MAX_SOURCE_IDENTITY = 64
_DIGEST_LENGTH = 12


@dataclass(frozen=True, slots=True)
class ApiGateway:
    """Recognises API Gateway's events by a proof, because anyone who may invoke a function can imitate the rest."""

    proof_digest: str | None
    """SHA-256 of the proof, in hexadecimal. While this is not set, no event is accepted as API Gateway's."""

    def sent(self, event: Mapping[str, Any]) -> bool:
        variables = event.get("stageVariables")
        proof = variables.get(PROOF_VARIABLE) if isinstance(variables, Mapping) else None
        if not self.proof_digest or not isinstance(proof, str):
            return False
        return hmac.compare_digest(digest_of(proof), self.proof_digest)

    def caller(self, event: Mapping[str, Any]) -> str:
        """The caller's ARN, if API Gateway sent the event."""
        return caller(event) if self.sent(event) else NOBODY_KNOWN


def digest_of(proof: str) -> str:
    """The SHA-256 digest of a proof.

    JSON text may contain half of a surrogate pair, which has no encoding. No proof contains one, so it is replaced.
    """
    return hashlib.sha256(proof.encode(errors="replace")).hexdigest()


def caller(event: Mapping[str, Any]) -> str:
    """The caller's ARN from the event, unverified. A role's ARN ends with the session name, often a person's name."""
    value: object = event
    for name in ("requestContext", "authorizer", "iam", "userArn"):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, str) and _may_be_an_arn(value) else NOBODY_KNOWN


def _may_be_an_arn(text: str) -> bool:
    return 0 < len(text) <= MAX_CHARACTERS and text.isprintable()


def counted_as(caller: str) -> str:
    """The name under which a caller's creates are counted.

    An IAM user can create federated users under any number of names, so all federated users of an account count as one
    caller.
    """
    role = role_of(caller)
    kind, slash, _ = role.partition("/")
    return kind if kind.endswith(":federated-user") and slash else role


def role_of(arn: str) -> str:
    """The caller without the session name. All instances of a service share their role, but not their sessions."""
    kind, slash, rest = arn.partition("/")
    if kind.endswith(":assumed-role") and slash:
        return f"{kind}/{rest.partition('/')[0]}"
    return arn


def source_identity(arn: str) -> str:
    """The caller as an STS source identity of at most 64 characters, such as ``operator=ada-0123456789ab``.

    The name is for people who read CloudTrail. The digest of the whole ARN keeps apart callers with the same name.
    """
    kind, slash, name = arn.rpartition(":")[2].partition("/")
    digest = hashlib.sha256(arn.encode(errors="replace")).hexdigest()[:_DIGEST_LENGTH]
    readable = _NOT_IN_A_SOURCE_IDENTITY.sub("-", (name if slash else kind).replace("/", "="))
    return f"{readable[: _MAX_SOURCE_IDENTITY - _DIGEST_LENGTH - 1]}-{digest}"
