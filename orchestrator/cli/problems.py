"""Answers of the API that are not what was asked for: what an operator is told, and how the command ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.cli.errors import ApiProblem, ExitCode
from orchestrator.tenants.admission import Refusal

if TYPE_CHECKING:
    from orchestrator.adapters.berth_api import ApiAnswer

_BY_STATUS = {
    400: ExitCode.BAD_USAGE,
    403: ExitCode.REFUSED,
    404: ExitCode.GONE,
    409: ExitCode.REFUSED,
    410: ExitCode.GONE,
    422: ExitCode.BAD_USAGE,
    424: ExitCode.FAILED,
    429: ExitCode.NOT_READY,
    502: ExitCode.NOT_READY,
    503: ExitCode.NOT_READY,
    504: ExitCode.NOT_READY,
}
_BY_KIND = {"tenant-being-deleted": ExitCode.GONE}
_OF_API_GATEWAY = {
    403: (ExitCode.NO_CONTROL_PLANE, " These credentials may not call it: they need execute-api:Invoke."),
    404: (ExitCode.NO_CONTROL_PLANE, " It is not Berth's: see --stack."),
}
"""The same statuses mean something else when it is not Berth that answers."""


def kind_of(answer: ApiAnswer) -> str:
    """The last part of a problem's type, which is what tells problems apart."""
    return str(answer.body.get("type", "")).rpartition(":")[2]


def problem(answer: ApiAnswer, *, can_wait: bool = True, waited: float | None = None) -> ApiProblem:
    """``can_wait`` says whether the command takes --wait, and ``waited`` how many seconds it has waited already."""
    detail = answer.body.get("detail")
    code = _BY_KIND.get(kind_of(answer), _BY_STATUS.get(answer.status, ExitCode.UNEXPECTED))
    if detail is None:
        # Berth's own answers have a detail. This one is API Gateway's, or that of something on the way to it.
        code, hint = _OF_API_GATEWAY.get(answer.status, (code, ""))
        message = answer.body.get("message", "no reason was given")
        return ApiProblem(f"The API answered {answer.status}: {message}.{hint}", code, None)
    if kind_of(answer) == Refusal.NOT_EMPTY:
        return _not_empty(answer, code)
    return ApiProblem(str(detail), code, answer.body, _advice(answer, can_wait=can_wait, waited=waited))


def _advice(answer: ApiAnswer, *, can_wait: bool, waited: float | None) -> list[str]:
    """How the command line spells what the API advises."""
    tenant, rollout = answer.body.get("tenantId"), answer.body.get("rolloutId")
    match kind_of(answer):
        case Refusal.DOWNGRADE:
            return ["Go back all the same: --allow-downgrade"]
        case Refusal.PINNED:
            return [
                f"Pin it elsewhere: berth pin {tenant} VERSION",
                f"Lift its pin: berth unpin {tenant}",
            ]
        case Refusal.BUSY if waited is not None:
            return [f"It is still busy after {waited:.0f} s. Wait longer: --timeout SECONDS"]
        case Refusal.BUSY if can_wait:
            return ["Have it done as soon as the tenant is free: --wait"]
        case Refusal.ROLLOUT_IN_THE_WAY:
            return [f"Follow it: berth rollout watch {rollout}", f"End it: berth rollout abort {rollout}"]
        case Refusal.ROLLOUT_OVER | Refusal.NOTHING_TO_APPROVE:
            return [f"How it stands, and what can be done: berth rollout status {rollout}"]
        case _:
            return []


def _not_empty(answer: ApiAnswer, code: ExitCode) -> ApiProblem:
    counts = [
        f"  {queue}: {held['visible']} visible, {held['inFlight']} in flight, {held['delayed']} delayed"
        for queue, held in answer.body["messages"].items()
    ]
    line = f"Tenant {answer.body['tenantId']} still has messages, so nothing was deleted."
    advice = "Receive them; wait until others have received them: --drain SECONDS; or lose them: --force"
    return ApiProblem(line, code, answer.body, [*counts, advice])
