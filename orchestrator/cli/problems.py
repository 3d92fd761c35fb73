"""Turns error responses of the API into messages, advice and exit codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from orchestrator.cli.errors import ApiProblem, ExitCode
from orchestrator.events.refusals import EventRefusal
from orchestrator.events.unfinished import DELIVERIES, INBOX, MAX_COUNTED
from orchestrator.tenants.admission import Refusal

if TYPE_CHECKING:
    from orchestrator.client.transport import ApiAnswer

_BY_STATUS = {
    400: ExitCode.BAD_USAGE,
    401: ExitCode.NO_CONTROL_PLANE,
    403: ExitCode.REFUSED,
    404: ExitCode.GONE,
    409: ExitCode.REFUSED,
    410: ExitCode.GONE,
    413: ExitCode.BAD_USAGE,
    422: ExitCode.BAD_USAGE,
    424: ExitCode.FAILED,
    429: ExitCode.NOT_READY,
    502: ExitCode.NOT_READY,
    503: ExitCode.NOT_READY,
    504: ExitCode.NOT_READY,
}
_BY_KIND = {"tenant-being-deleted": ExitCode.GONE, "template-refused": ExitCode.REFUSED}
_OF_API_GATEWAY = {
    403: (ExitCode.NO_CONTROL_PLANE, " These credentials may not call the API: they need execute-api:Invoke."),
    404: (ExitCode.NO_CONTROL_PLANE, " This is not Berth's API: see --stack."),
}
"""The meaning of these statuses when API Gateway answers instead of Berth."""

_LISTED_BY: Mapping[str, str] = {
    EventRefusal.NO_SUCH_KEY: "keys",
    EventRefusal.KEY_NOT_ACTIVE: "keys",
    EventRefusal.NO_SUCH_SOURCE: "sources",
    EventRefusal.NO_SUCH_FORM: "forms",
    EventRefusal.NO_SUCH_CONNECTION: "connections",
    EventRefusal.HAS_CONNECTIONS: "connections",
}
"""The command that lists the things of a tenant that such a refusal is about."""


def kind_of(answer: ApiAnswer) -> str:
    """The last part of the problem's type, which identifies the kind of problem."""
    return str(answer.body.get("type", "")).rpartition(":")[2]


def problem(answer: ApiAnswer, *, can_wait: bool = True, waited: float | None = None) -> ApiProblem:
    """The problem as an error of the command line.

    ``can_wait`` is true if the command has the option --wait; ``waited`` is how many seconds it has waited already.
    """
    detail = answer.body.get("detail")
    code = _BY_KIND.get(kind_of(answer), _BY_STATUS.get(answer.status, ExitCode.UNEXPECTED))
    if detail is None:
        # Berth's own problems have a detail. This response is from API Gateway, or from a proxy in front of it.
        code, hint = _OF_API_GATEWAY.get(answer.status, (code, ""))
        message = answer.body.get("message", "no reason was given")
        return ApiProblem(f"The API answered {answer.status}: {message}.{hint}", code, None)
    if kind_of(answer) == Refusal.NOT_EMPTY:
        return _not_empty(answer, code)
    return ApiProblem(str(detail), code, answer.body, _advice(answer, can_wait=can_wait, waited=waited))


def _advice(answer: ApiAnswer, *, can_wait: bool, waited: float | None) -> list[str]:
    """Advice for the problem, as commands and options."""
    tenant, rollout = answer.body.get("tenantId"), answer.body.get("rolloutId")
    match kind_of(answer):
        case Refusal.DOWNGRADE if tenant is None:
            # The problem of a tenant names its version, and the command.
            return ["Allow the downgrade: berth rollout start --allow-downgrade"]
        case Refusal.PINNED:
            return [
                f"Pin it to another release: berth pin {tenant} VERSION",
                f"Remove its pin: berth unpin {tenant}",
            ]
        case "provisioning-failed":
            return [f"Retry: berth retry {tenant}", f"Full history: berth tenant {tenant}"]
        case "tenant-deleted":
            return [f"Create it again, with a new queue: berth create {tenant}"]
        case Refusal.BUSY if waited is not None:
            return [f"The tenant is still busy after {waited:.0f} s. Wait longer: --timeout SECONDS"]
        case Refusal.BUSY if can_wait:
            return ["Wait until the tenant is free: --wait"]
        case Refusal.ROLLOUT_IN_THE_WAY:
            return [f"Watch it: berth rollout watch {rollout}", f"Abort it: berth rollout abort {rollout}"]
        case kind if kind in _LISTED_BY:
            return [f"See its {_LISTED_BY[kind]}: berth {_LISTED_BY[kind]} list {tenant}"]
        case Refusal.ROLLOUT_OVER | Refusal.NOTHING_TO_APPROVE | Refusal.NOTHING_TO_PROMOTE:
            return [f"See its status, and what you can do: berth rollout status {rollout}"]
        case _:
            return []


_WAITING = {
    INBOX: "Acknowledge the events: berth inbox {tenant}, then berth inbox ack {tenant} EVENT_ID...",
    DELIVERIES: "Wait until the events are delivered, or resume what is paused: berth connections list {tenant}",
}
"""Advice about unfinished events, by the place where they wait."""


def _not_empty(answer: ApiAnswer, code: ExitCode) -> ApiProblem:
    tenant, messages = answer.body["tenantId"], answer.body["messages"]
    places = [place for place in (INBOX, DELIVERIES) if place in messages]
    queues = {name: held for name, held in messages.items() if name not in places}
    counts = [
        f"  {queue}: {held['visible']} visible, {held['inFlight']} in flight, {held['delayed']} delayed"
        for queue, held in queues.items()
    ]
    advice: list[str] = []
    if queues:
        advice.append(f"Receive the messages, or wait until they are received: berth delete {tenant} --drain SECONDS")
    for place in places:
        number = messages[place]["visible"]
        counts.append(f"  {place}: {'at least ' if number >= MAX_COUNTED else ''}{number}")
        # --drain waits for queues only.
        advice.append(_WAITING[place].format(tenant=tenant))
    kinds = " and ".join(kind for kind, held in (("messages", queues), ("events", places)) if held)
    advice.append(f"Or delete them with the tenant: berth delete {tenant} --force")
    line = f"Tenant {tenant} still has {kinds}, so nothing was deleted."
    return ApiProblem(line, code, answer.body, [*counts, *advice])
