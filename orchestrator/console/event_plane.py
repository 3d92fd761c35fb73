"""Code that the pages about events share: requests for one tenant, and actions whose request has only an id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.api.for_operators import for_operators
from orchestrator.api.route import AnyRoute
from orchestrator.cli.api import Document
from orchestrator.cli.errors import ApiProblem, ControlPlaneNotFound
from orchestrator.cli.next_step import NextStep
from orchestrator.common.tenant_ids import TenantId
from orchestrator.console.actions import Action, Done
from orchestrator.console.view import segment
from orchestrator.console.visit import NotThere, Visit


def tenant_of(visit: Visit) -> str:
    """The tenant that the page is about. Pages have it in commands to copy, so it must be a tenant's id."""
    return TenantId.parse(visit.name("tenant")).value


def base_of(tenant: str) -> str:
    return f"/tenants/{segment(tenant)}"


def ask(visit: Visit, route: AnyRoute, **fields: object) -> Document:
    """The answer of the tenants' route for the tenant of the page."""
    return ask_plane(visit, for_operators(route), tenantId=tenant_of(visit), **fields)


def ask_plane(visit: Visit, route: AnyRoute, **fields: object) -> Document:
    """The answer of an operators' route. A control plane without an event plane has no pages about events."""
    try:
        return visit.ask_events(route, **fields)
    except ControlPlaneNotFound as error:
        raise NotThere(str(error)) from None


def is_about(error: ApiProblem, kind: str) -> bool:
    return error.body is not None and str(error.body.get("type", "")).rpartition(":")[2] == kind


def step_for(verb: str, steps: Sequence[NextStep]) -> NextStep:
    for step in steps:
        if step.verb == verb:
            return step
    raise NotThere("There is no such action")


def texts_in(text: str) -> list[str]:
    """The texts that somebody has typed, separated by commas or lines."""
    return [each for part in text.splitlines() for each in (piece.strip() for piece in part.split(",")) if each]


@dataclass(frozen=True, slots=True)
class Subject:
    """Something of a tenant that an action is about."""

    tenant: str
    kind: str
    """The kind of subject, such as: connection."""
    parameter: str
    """The field of requests that has its id."""
    resource_id: str
    name: str
    page: str

    def __str__(self) -> str:
        return f"{self.kind} {self.resource_id} ({self.name}) of tenant {self.tenant}"


@dataclass(frozen=True, slots=True)
class Order:
    """An order whose request has nothing but an id."""

    route: AnyRoute
    title: str
    """``{}`` is the subject's name."""
    effect: str
    outcome: str
    """The end of the sentence that begins with the subject, once the order was sent, such as: is paused."""
    destroys: bool = False
    back: str | None = None
    """The page to go to, if the subject's own page is gone with it."""

    def action(self, subject: Subject, step: NextStep) -> Action:
        def send(visit: Visit, _fields: Mapping[str, str]) -> Done:
            ask(visit, self.route, **{subject.parameter: subject.resource_id})
            return Done(f"The {subject} {self.outcome}.", self.back or subject.page)

        return Action(
            self.title.format(subject.name),
            step,
            self.effect.format(subject),
            send,
            subject.page,
            [str(subject)],
            fields=(),
            typed=subject.resource_id if self.destroys else None,
            typed_is=f"the {subject.kind}'s id",
        )
