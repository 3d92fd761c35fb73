"""How `berth` ends: every exit code, and which error leads to which.

What the command line adds to the tree of :mod:`orchestrator.common.errors`:

    BerthError
    ├── ControlPlaneNotFound    there is no control plane where it was looked for
    ├── ApiProblem              the API answered, but not with what it was asked for
    ├── OperationFailed         the operation that was waited for has failed
    ├── NoRollout               the newest rollout was meant, and there is none
    ├── NothingToApprove        the stage that waits was meant, and none does
    ├── NotProven               a step of `berth verify` did not come out as it should
    │   └── TimeIsUp            it goes on, and is no longer waited for
    ├── NothingToProve          a step of `berth verify` does not apply here
    └── NotConfirmed            someone was asked whether they mean it, and they did not say so
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from orchestrator.common.errors import BerthError, InvalidRequest, Throttled


class ExitCode(IntEnum):
    OK = 0
    UNEXPECTED = 1
    BAD_USAGE = 2
    NOT_READY = 3
    FAILED = 4
    GONE = 5
    NO_CONTROL_PLANE = 6
    REFUSED = 7
    ATTENTION = 8
    INTERRUPTED = 130

    @property
    def meaning(self) -> str:
        return _MEANINGS[self]


_MEANINGS = {
    ExitCode.OK: "done",
    ExitCode.UNEXPECTED: "unexpected error (--debug shows where)",
    ExitCode.BAD_USAGE: "bad usage: also an invalid tenant id, or an unknown version",
    ExitCode.NOT_READY: "not ready yet: ask again later",
    ExitCode.FAILED: "the operation failed",
    ExitCode.GONE: "being deleted, deleted, or no such tenant, rollout or reconciliation",
    ExitCode.NO_CONTROL_PLANE: "control plane not found or unreachable, credentials missing or denied",
    ExitCode.REFUSED: "refused, for the reason that is told: nothing was changed",
    ExitCode.ATTENTION: "something needs attention (doctor, reconcile, adopt, verify)",
    ExitCode.INTERRUPTED: "interrupted (Ctrl-C)",
}


class ControlPlaneNotFound(BerthError):
    """There is no control plane where it was looked for."""


class ApiProblem(BerthError):
    """The API answered, but not with what it was asked for. ``advice`` is what can be done about it, line by line."""

    def __init__(
        self, line: str, code: ExitCode, body: Mapping[str, object] | None, advice: Sequence[str] = ()
    ) -> None:
        super().__init__(line)
        self.code = code
        self.body = body
        self.advice = advice


class OperationFailed(BerthError):
    """The operation that was waited for has failed. ``record`` is what is recorded about it."""

    def __init__(self, line: str, record: Mapping[str, object], advice: Sequence[str] = ()) -> None:
        super().__init__(line)
        self.record = record
        self.advice = advice


class NoRollout(BerthError):
    """The newest rollout was meant, and there is none."""


class NothingToApprove(BerthError):
    """The stage that waits for approval was meant, and none does."""


class NotProven(BerthError):
    """A step of `berth verify` did not come out as it should."""


class TimeIsUp(NotProven):
    """A step of `berth verify` goes on, and is no longer waited for."""


class NothingToProve(BerthError):
    """A step of `berth verify` does not apply here."""


class NotConfirmed(BerthError):
    """Someone was asked whether they mean it, and they did not say so."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An error as an operator is told: one line, an exit code, a document for ``--json``, and what can be done."""

    code: ExitCode
    line: str
    document: Mapping[str, object]
    advice: Sequence[str] = ()


def explain(error: Exception) -> Failure:
    code, line = _sort(error)
    line = " ".join(line.split())
    document: Mapping[str, object] = {"title": code.meaning, "detail": line, "exitCode": code.value}
    match error:
        case ApiProblem():
            return Failure(code, line, document if error.body is None else error.body, error.advice)
        case OperationFailed():
            return Failure(code, line, {**document, **error.record}, error.advice)
        case _:
            return Failure(code, line, document)


def _sort(error: Exception) -> tuple[ExitCode, str]:
    match error:
        case ApiProblem():
            return error.code, str(error)
        case InvalidRequest():
            return ExitCode.BAD_USAGE, str(error)
        case Throttled():
            return ExitCode.NOT_READY, f"AWS asks to slow down, try again later: {error}"
        case OperationFailed():
            return ExitCode.FAILED, str(error)
        case NoRollout():
            return ExitCode.GONE, str(error)
        case NothingToApprove() | NotConfirmed():
            return ExitCode.REFUSED, str(error)
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
            return (
                ExitCode.NO_CONTROL_PLANE,
                "No AWS region given: use --region, set AWS_DEFAULT_REGION, or start a local control plane with "
                "make up.",
            )
        case BotoCoreError():
            # Everything that the SDK raises itself: unreachable, timed out, unknown profile, no login, TLS.
            return ExitCode.NO_CONTROL_PLANE, str(error)
        case _:
            return ExitCode.UNEXPECTED, f"{type(error).__name__}: {error} (--debug shows where)"
