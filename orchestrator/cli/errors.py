"""How `berth` ends: every exit code, and which error leads to which.

What the command line adds to the tree of :mod:`orchestrator.errors`:

    BerthError
    ├── ControlPlaneNotFound    there is no control plane where it was looked for
    ├── NoSuchTenant            nothing is recorded about the tenant
    └── ApiProblem              the API answered, but neither with a queue nor with "wait"
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from orchestrator.errors import BerthError, InvalidRequest, Throttled


class ExitCode(IntEnum):
    OK = 0
    UNEXPECTED = 1
    BAD_USAGE = 2
    NOT_READY = 3
    FAILED = 4
    GONE = 5
    NO_CONTROL_PLANE = 6
    INTERRUPTED = 130

    @property
    def meaning(self) -> str:
        return _MEANINGS[self]


_MEANINGS = {
    ExitCode.OK: "done",
    ExitCode.UNEXPECTED: "unexpected error (--debug shows where)",
    ExitCode.BAD_USAGE: "bad usage, or an invalid tenant id",
    ExitCode.NOT_READY: "not ready yet: ask again later",
    ExitCode.FAILED: "provisioning failed",
    ExitCode.GONE: "being deleted, deleted, or no such tenant",
    ExitCode.NO_CONTROL_PLANE: "control plane not found or unreachable, credentials missing or denied",
    ExitCode.INTERRUPTED: "interrupted (Ctrl-C)",
}


class ControlPlaneNotFound(BerthError):
    """There is no control plane where it was looked for."""


class NoSuchTenant(BerthError):
    """Nothing is recorded about the tenant."""


class ApiProblem(BerthError):
    """The API answered, but neither with a queue nor with "wait"."""

    def __init__(self, line: str, code: ExitCode, body: Mapping[str, object] | None) -> None:
        super().__init__(line)
        self.code = code
        self.body = body


@dataclass(frozen=True, slots=True)
class Failure:
    """An error as an operator is told: one line, an exit code, and a document for ``--json``."""

    code: ExitCode
    line: str
    document: Mapping[str, object]


def explain(error: Exception) -> Failure:
    code, line = _sort(error)
    line = " ".join(line.split())
    if isinstance(error, ApiProblem) and error.body is not None:
        return Failure(code, line, error.body)
    return Failure(code, line, {"title": code.meaning, "detail": line, "exitCode": code.value})


def _sort(error: Exception) -> tuple[ExitCode, str]:
    match error:
        case ApiProblem():
            return error.code, str(error)
        case InvalidRequest():
            return ExitCode.BAD_USAGE, str(error)
        case Throttled():
            return ExitCode.NOT_READY, f"AWS asks to slow down, try again later: {error}"
        case NoSuchTenant():
            return ExitCode.GONE, str(error)
        case ControlPlaneNotFound():
            return ExitCode.NO_CONTROL_PLANE, str(error)
        case BerthError():
            return ExitCode.UNEXPECTED, str(error)
        case _:
            return _sort_foreign(error)


_DENIED = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "ExpiredToken",
        "ExpiredTokenException",
        "IncompleteSignature",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "MissingAuthenticationToken",
        "MissingAuthenticationTokenException",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)


def _sort_foreign(error: Exception) -> tuple[ExitCode, str]:
    # Not at the top: invalid input and --help should not pay for loading the SDK.
    from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, NoRegionError

    from orchestrator.adapters.aws import error_code, error_message

    match error:
        case ClientError():
            told = f"{error.operation_name}: {error_message(error) or error_code(error)}"
            if error_code(error) in _DENIED:
                return ExitCode.NO_CONTROL_PLANE, f"AWS denied {told}"
            if error_code(error) == "ResourceNotFoundException":
                return ExitCode.NO_CONTROL_PLANE, f"Part of the control plane is gone, deploy it again. {told}"
            return ExitCode.UNEXPECTED, f"AWS refused {told}"
        case NoCredentialsError():
            return (
                ExitCode.NO_CONTROL_PLANE,
                "No AWS credentials found: log in, use --profile, or start a local control plane with make up.",
            )
        case NoRegionError():
            return ExitCode.NO_CONTROL_PLANE, "No AWS region given: use --region, or set AWS_DEFAULT_REGION."
        case BotoCoreError():
            # Everything that the SDK raises itself: unreachable, timed out, unknown profile, no login, TLS.
            return ExitCode.NO_CONTROL_PLANE, str(error)
        case _:
            return ExitCode.UNEXPECTED, f"{type(error).__name__}: {error} (--debug shows where)"
