"""Actions, in one place: a page that says what will be done, and the form that does it.

An action is planned first (its page), and done when somebody sends that page's form. The plan is made again then, so
that what has changed meanwhile is seen. Its page shows the command that does the same, and, for what destroys
something, wants the name or the number to be typed. A form works once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from starlette.responses import Response
from starlette.routing import Route

from orchestrator.cli.api import Document
from orchestrator.cli.errors import ApiProblem, ExitCode
from orchestrator.cli.next_step import NextStep
from orchestrator.common.input_limits import REASON_MAX_LENGTH
from orchestrator.console.page import page
from orchestrator.console.visit import Console, Mistake, Visit

ONCE_FIELD = "once"
TYPED_FIELD = "typed"
_READ_ONLY = "This console is read-only. Start it without --read-only to change anything."


@dataclass(frozen=True, slots=True)
class Field:
    """One input of an action's form."""

    name: str
    label: str
    kind: Literal["text", "number", "check", "choice", "area", "secret"] = "text"
    value: str = ""
    choices: Sequence[str] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    """The text of each choice that is not shown as it is."""
    hint: str = ""
    required: bool = False
    longest: int = 200


REASON = Field("reason", "Reason", hint="Recorded in the history with your name.", longest=REASON_MAX_LENGTH)


@dataclass(frozen=True, slots=True)
class Done:
    """The result of an action: a sentence, and the page to go to."""

    notice: str
    go_to: str


@dataclass(frozen=True, slots=True)
class Issued:
    """The result of an action that makes a secret. It is the answer to the form itself, so that the secret is shown
    once: no address leads to it, browsers do not store it, and a form works once."""

    title: str
    name: str
    """The kind of secret, such as: API key."""
    secret: str = field(repr=False)
    facts: Mapping[str, str]
    notes: Sequence[str]
    commands: Sequence[str]
    """Commands to go on with. None of them has the secret."""
    back: str


Send = Callable[[Visit, Mapping[str, str]], Done | Issued]
"""Sends the request of an action. Gets the fields of the form."""


@dataclass(frozen=True, slots=True)
class Action:
    """An action on one thing, as it would be done now."""

    title: str
    step: NextStep
    effect: str
    """The effect of the action, in whole sentences."""
    send: Send
    back: str
    """The page of the thing."""
    touches: Sequence[str] = ()
    """The names of what the action will touch."""
    fields: Sequence[Field] = field(default=(REASON,))
    typed: str | None = None
    """The text that has to be typed, for an action that destroys something."""
    typed_is: str = ""
    """The meaning of that text, such as: the tenant's id."""

    @property
    def shown(self) -> tuple[object, ...]:
        """The part of the action that a person confirms. If the action has become another one since, such as the
        approval of the next stage, it is not confirmed."""
        return self.title, self.effect, tuple(self.touches), self.typed


Plan = Callable[[Visit], Action]


def routes(console: Console, path: str, plan: Plan) -> list[Route]:
    """The page of an action and its form, which are at the same path."""

    return [
        page(console, path, lambda visit: _show(visit, plan(visit))),
        page(console, path, lambda visit: _send(visit, plan(visit)), method="POST"),
    ]


def _show(visit: Visit, action: Action, error: str | None = None, *, status: int = 422) -> Response:
    refused = action.step.refusal or (_READ_ONLY if visit.console.read_only else None)
    return visit.show(
        "action.html",
        status=409 if refused else status if error else 200,
        action=action,
        refused=refused,
        error=error,
        once="" if refused else visit.session.confirmation(visit.here, action.shown),
        given=visit.form if error else {},
    )


def _send(visit: Visit, action: Action) -> Response:
    if action.step.refusal:
        return _show(visit, action)
    shown = visit.session.spend(visit.form.get(ONCE_FIELD, ""), visit.here)
    if shown is None:
        return visit.show("sent_already.html", status=409, action=action)
    if shown != action.shown:
        return _show(
            visit, action, "Something has changed since this page was made, so nothing was done. Read it again."
        )
    if action.typed is not None and visit.form.get(TYPED_FIELD, "").strip() != action.typed:
        return _show(visit, action, f"That is not {action.typed_is}, so nothing was done.")
    mistake, done = Mistake(), None
    try:
        with mistake.noted():
            done = action.send(visit, {name: value.strip() for name, value in visit.form.items()})
    except ApiProblem as error:
        if error.code is not ExitCode.REFUSED:
            raise
        # The form is shown again, so that what was typed is not lost.
        return _show(visit, action, "\n".join([str(error), *error.advice]), status=409)
    if done is None:
        return _show(visit, action, mistake.text)
    if isinstance(done, Issued):
        return visit.show("issued.html", issued=done)
    return visit.go_to(done.go_to, done.notice)


def reason_in(fields: Mapping[str, str]) -> str | None:
    return fields.get("reason") or None


def checked(fields: Mapping[str, str], name: str) -> bool:
    return fields.get(name) == "on"


def outcome(answer: Document) -> str:
    """The API's answer to an order, as a sentence."""
    if "detail" in answer:
        return str(answer["detail"])
    if execution := answer.get("execution"):
        attempt = f"{answer['operation']} {answer.get('version') or ''}".strip()
        return f"{attempt} was started: {re.split('[/:]', execution)[-1]}"
    return "Done."
