"""`berth get-queue`: a tenant's queue, asked for as a platform would, and waited for as an operator would."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.text import Text

from orchestrator.answers import RETRY_AFTER_SECONDS
from orchestrator.cli import render
from orchestrator.cli.errors import ApiProblem, ExitCode
from orchestrator.cli.progress import Progress
from orchestrator.tenants import TenantId

if TYPE_CHECKING:
    from orchestrator.adapters.queue_api import ApiAnswer
    from orchestrator.cli.control_plane import QueueAnswers

_READY = 200
_PROVISIONING = 202
_DENIED = 403
_NO_SUCH_ROUTE = 404

_LATER = frozenset({_PROVISIONING, 429, 503})

_CODES = {
    _READY: ExitCode.OK,
    _PROVISIONING: ExitCode.NOT_READY,
    400: ExitCode.BAD_USAGE,
    _DENIED: ExitCode.NO_CONTROL_PLANE,
    _NO_SUCH_ROUTE: ExitCode.NO_CONTROL_PLANE,
    409: ExitCode.GONE,
    410: ExitCode.GONE,
    424: ExitCode.FAILED,
    429: ExitCode.NOT_READY,
    503: ExitCode.NOT_READY,
}


def ask(
    tenant: TenantId,
    api: QueueAnswers,
    *,
    timeout: float,
    monotonic: Callable[[], float],
    sleep: Callable[[float], None],
) -> ApiAnswer:
    """Ask until the answer is other than "later" or the time is up. A timeout of 0 asks once."""
    deadline = monotonic() + timeout
    with Progress(monotonic) as progress:
        while True:
            answer = api.get_queue(tenant)
            pause = max(1, answer.retry_after or RETRY_AFTER_SECONDS)
            if answer.status not in _LATER or monotonic() + pause > deadline:
                return answer
            progress.tell(_what_is_waited_for(tenant, answer))
            try:
                sleep(pause)
            except KeyboardInterrupt:
                render.note(f"No longer waiting. What was started for tenant {tenant} goes on.")
                raise


def show(tenant: TenantId, answer: ApiAnswer, *, as_json: bool, waited: float | None) -> ExitCode:
    """Show a queue or that it is on its way. Every other answer is an :class:`ApiProblem`."""
    code = _CODES.get(answer.status, ExitCode.UNEXPECTED)
    if answer.status not in (_READY, _PROVISIONING):
        raise _problem(answer, code)
    if as_json:
        render.show_json(answer.body)
    else:
        said = {name: str(value) for name, value in answer.body.items()}
        status = said.get("status", "")
        render.show_pairs(
            {
                "tenant": tenant.value,
                "status": Text(status, render.STYLES.get(status, "")),
                "queue url": said.get("queueUrl"),
                "queue arn": said.get("queueArn"),
                "version": said.get("version"),
                "execution": said.get("execution"),
            }
        )
    if answer.status == _PROVISIONING:
        render.note(
            f"Not ready yet. Wait for it: berth get-queue {tenant} --wait"
            if waited is None
            else f"Still not ready after {waited:.0f} s. It goes on: ask again later, or wait with a longer --timeout."
        )
    return code


def _problem(answer: ApiAnswer, code: ExitCode) -> ApiProblem:
    detail = answer.body.get("detail")
    if detail is not None:
        return ApiProblem(str(detail), code, answer.body)
    # Berth's own answers have a detail. This one is API Gateway's, or that of something on the way to it.
    hint = {
        _DENIED: " These credentials may not call it: they need execute-api:Invoke.",
        _NO_SUCH_ROUTE: " It is not Berth's: see --stack.",
    }
    message = answer.body.get("message", "no reason was given")
    return ApiProblem(f"The API answered {answer.status}: {message}.{hint.get(answer.status, '')}", code, None)


def _what_is_waited_for(tenant: TenantId, answer: ApiAnswer) -> str:
    if answer.status == _PROVISIONING:
        return f"Tenant {tenant} is being provisioned by {answer.body.get('execution')}"
    reason = answer.body.get("detail") or answer.body.get("message") or "no reason was given"
    return f"The API asks to come back later ({answer.status}): {reason}"
