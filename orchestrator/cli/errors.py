"""The exit codes of `berth`, and which error leads to which.

The command line adds these errors to the tree of :mod:`orchestrator.common.errors`:

    BerthError
    ├── ControlPlaneNotFound    no control plane was found
    ├── ApiProblem              the API answered with an error
    ├── OperationFailed         the operation that the command waited for has failed
    ├── NoRollout               the command needs a rollout, and there is none
    ├── SeveralRollouts         the command can be meant for several rollouts, and names none
    ├── NothingToApprove        no stage is waiting for approval
    ├── NotProven               a step of `berth verify` failed
    │   └── TimeIsUp            the step did not end within --timeout
    ├── NothingToProve          a step of `berth verify` does not apply here
    └── NotConfirmed            the operator was asked for confirmation and did not give it
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from orchestrator.common.errors import BerthError, InvalidRequest, Throttled

TYPE_PREFIX = "urn:berth:cli:"
"""The type of an error begins with this, unless the API has answered with a problem, which has its own type."""


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
    ExitCode.BAD_USAGE: "bad usage, an invalid tenant id, or an unknown version",
    ExitCode.NOT_READY: "not ready yet: try again later",
    ExitCode.FAILED: "the operation failed",
    ExitCode.GONE: "deleted or being deleted; or no such tenant, rollout, event, connection",
    ExitCode.NO_CONTROL_PLANE: "control plane not found or unreachable; credentials missing or denied",
    ExitCode.REFUSED: "refused, for the reason in the message: nothing was changed",
    ExitCode.ATTENTION: "something needs attention (doctor, reconcile, adopt, verify, check ...)",
    ExitCode.INTERRUPTED: "interrupted (Ctrl-C)",
}


class ControlPlaneNotFound(BerthError):
    """No control plane was found."""


class ApiProblem(BerthError):
    """The API answered with an error. ``advice`` says what the operator can do about it, line by line."""

    def __init__(
        self, line: str, code: ExitCode, body: Mapping[str, object] | None, advice: Sequence[str] = ()
    ) -> None:
        super().__init__(line)
        self.code = code
        self.body = body
        self.advice = advice


class OperationFailed(BerthError):
    """The operation that the command waited for has failed. ``record`` is its audit or history record."""

    def __init__(self, line: str, record: Mapping[str, object], advice: Sequence[str] = ()) -> None:
        super().__init__(line)
        self.record = record
        self.advice = advice


class NoRollout(BerthError):
    """The command names no rollout, and there is none that it can be meant for."""


class SeveralRollouts(BerthError):
    """The command names no rollout, and can be meant for several. ``advice`` has the command for each of them."""

    def __init__(self, line: str, advice: Sequence[str]) -> None:
        super().__init__(line)
        self.advice = advice


class NothingToApprove(BerthError):
    """The command approves the stage that waits for approval, and no stage does."""


class NotProven(BerthError):
    """A step of `berth verify` failed."""


class TimeIsUp(NotProven):
    """A step of `berth verify` did not end within --timeout. It may still be running."""


class NothingToProve(BerthError):
    """A step of `berth verify` does not apply here."""


class NotConfirmed(BerthError):
    """The operator was asked for confirmation and did not give it."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An error as the operator sees it: one line, an exit code, a document for ``--json``, and advice."""

    code: ExitCode
    line: str
    document: Mapping[str, object]
    advice: Sequence[str] = ()


def explain(error: Exception, further_advice: Sequence[str] = ()) -> Failure:
    code, line = _classify(error)
    line = " ".join(line.split())
    advice: Sequence[str] = further_advice
    more: Mapping[str, object] = {}
    match error:
        case ApiProblem():
            advice, more = [*error.advice, *further_advice], error.body or {}
        case OperationFailed():
            advice, more = [*error.advice, *further_advice], {"record": dict(error.record)}
        case SeveralRollouts():
            advice = [*error.advice, *further_advice]
        case _:
            pass
    return Failure(code, line, error_document(code, line, advice, **more), advice)


def may_come_of_another_version(error: Exception) -> bool:
    """True if the error may mean that the control plane and this command line have different versions.

    Then there is no such route, or the request or the answer has fields that the other side does not know.
    """
    match error:
        case ApiProblem(body=None, code=ExitCode.NO_CONTROL_PLANE):
            return True
        case ApiProblem(body=body):
            return body is not None and str(body.get("type", "")).endswith(":invalid-request")
        case _:
            return isinstance(error, LookupError | TypeError | ValueError) and not isinstance(error, BerthError)


def error_document(code: ExitCode, line: str, advice: Sequence[str] = (), **more: object) -> dict[str, object]:
    """An error in the shape that every error has with ``--json``: docs/cli-output.json.

    A problem of the API keeps its own type, title and detail, and its members.
    """
    return {
        "type": f"{TYPE_PREFIX}{code.name.lower().replace('_', '-')}",
        "title": code.meaning,
        "detail": line,
        **more,
        "exitCode": code.value,
        "advice": list(advice),
    }


def _classify(error: Exception) -> tuple[ExitCode, str]:
    match error:
        case ApiProblem():
            return error.code, str(error)
        case InvalidRequest():
            return ExitCode.BAD_USAGE, str(error)
        case Throttled():
            return ExitCode.NOT_READY, f"AWS throttles requests, try again later: {error}"
        case OperationFailed():
            return ExitCode.FAILED, str(error)
        case NoRollout():
            return ExitCode.GONE, str(error)
        case SeveralRollouts() | NothingToApprove() | NotConfirmed():
            return ExitCode.REFUSED, str(error)
        case ControlPlaneNotFound():
            return ExitCode.NO_CONTROL_PLANE, str(error)
        case BerthError():
            return ExitCode.UNEXPECTED, str(error)
        case _:
            return _classify_sdk_error(error)


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


def is_denied(error: Exception) -> bool:
    """True if AWS refuses who asks, for example because the credentials have expired."""
    from botocore.exceptions import ClientError

    from orchestrator.adapters.aws import error_code

    return isinstance(error, ClientError) and error_code(error) in _DENIED


def _classify_sdk_error(error: Exception) -> tuple[ExitCode, str]:
    # Imported here because loading the SDK takes long, and neither --help nor invalid input needs it.
    from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, NoRegionError

    from orchestrator.adapters.aws import error_code, error_message

    match error:
        case ClientError():
            message = f"{error.operation_name}: {error_message(error) or error_code(error)}"
            if is_denied(error):
                return ExitCode.NO_CONTROL_PLANE, f"AWS denied {message}"
            if error_code(error) == "ResourceNotFoundException":
                return ExitCode.NO_CONTROL_PLANE, f"Part of the control plane was deleted: deploy it again. {message}"
            return ExitCode.UNEXPECTED, f"AWS refused {message}"
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
            # Errors of the SDK itself: unreachable, timed out, unknown profile, not logged in, TLS.
            return ExitCode.NO_CONTROL_PLANE, str(error)
        case _:
            return ExitCode.UNEXPECTED, f"{type(error).__name__}: {error} (--debug shows where)"


def sdk_errors() -> tuple[type[Exception], ...]:
    """The SDK's errors: AWS did not answer, or refused."""
    # Imported here because loading the SDK takes long, and neither --help nor invalid input needs it.
    from botocore.exceptions import BotoCoreError, ClientError

    return BotoCoreError, ClientError
