"""Stacks of other teams, each with one Custom::TenantQueue in it, and what CloudFormation asks Berth on their behalf.

A stack is created, updated or deleted, one operation at a time. CloudFormation rolls back what fails: a create by a
delete, an update by an update to the properties before. When a resource has become another tenant, CloudFormation asks
to delete the tenant before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from orchestrator.errors import Throttled
from orchestrator.limits import TENANT_QUEUE_RESOURCES
from orchestrator.resource_requests import Kind, TenantQueueRequest, parse_tenant_queue_request
from orchestrator.tenant_queue import NotProvided, Provided, Waiting, settle
from orchestrator.tenants import TenantId
from tests.simulation.callers import Caller, Role

if TYPE_CHECKING:
    from tests.simulation.harbour import Harbour

Properties = dict[str, Any]

POLL_SECONDS = 3
PATIENT_AFTER_SECONDS = 60
"""From then on the simulation polls less often than the machine does, to save time."""
MAX_FAILURES = 12
"""A step of the machine may fail this often in a row."""


@dataclass
class TeamStack:
    number: int
    properties: Properties | None = None
    """The properties of its resource, while there is one."""
    busy: bool = False

    @property
    def stack_id(self) -> str:
        return f"arn:aws:cloudformation:eu-west-1:000000000000:stack/team-{self.number}/{self.number}"

    def event(self, kind: Kind, properties: Properties, before: Properties | None = None) -> dict[str, Any]:
        more = {"OldResourceProperties": before} if before is not None else {}
        return {
            "RequestType": kind.value,
            "StackId": self.stack_id,
            "RequestId": "request",
            "LogicalResourceId": "Queue",
            "ResponseURL": "https://answers.example/",
            "ResourceProperties": properties,
            **more,
        }


@dataclass
class Poll:
    """One request of CloudFormation, until it has its answer."""

    asked: TenantQueueRequest
    since: datetime
    version: str
    """The version of the code that answers."""
    answered: Callable[[bool], None]
    failures: int = 0


@dataclass
class Teams:
    harbour: Harbour
    stacks: list[TeamStack] = field(default_factory=list)
    quiet: bool = False
    """Nobody asks for anything any more."""

    def create(self, properties: Properties, version: str) -> None:
        stack = TeamStack(len(self.stacks) + 1)
        self.stacks.append(stack)
        self._create(stack, properties, version)

    def update(self, properties: Properties, version: str) -> None:
        """Change some properties of one team's resource."""
        stack = self._one_of([stack for stack in self.stacks if stack.properties and not stack.busy])
        if stack and stack.properties:
            after = {name: value for name, value in {**stack.properties, **properties}.items() if value is not None}
            self._update(stack, stack.properties, after, version)

    def delete(self, version: str) -> None:
        stack = self._one_of([stack for stack in self.stacks if stack.properties and not stack.busy])
        if stack and stack.properties:
            self._delete(stack, stack.properties, version)

    def _one_of(self, stacks: list[TeamStack]) -> TeamStack | None:
        return self.harbour.chance.choice(stacks) if stacks else None

    # How CloudFormation goes on

    def _create(self, stack: TeamStack, properties: Properties, version: str) -> None:
        stack.busy, stack.properties = True, properties

        def answered(provided: bool) -> None:
            if provided and not self._something_else_fails():
                stack.busy = False
            else:
                self.harbour.guard.seen["Create of a resource is rolled back"] += 1
                self._delete(stack, properties, version)

        self._ask(stack, stack.event(Kind.CREATE, properties), version, answered)

    def _update(self, stack: TeamStack, before: Properties, after: Properties, version: str) -> None:
        stack.busy, stack.properties = True, after
        old = before if before["TenantId"] != after["TenantId"] else None
        new = after if old else None

        def answered(provided: bool) -> None:
            if provided and not self._something_else_fails():
                self._clean_up(stack, old, version)
                return
            self.harbour.guard.seen["Update of a resource is rolled back"] += 1
            stack.properties = before
            undo = stack.event(Kind.UPDATE, before, after)
            self._ask(stack, undo, version, lambda _undone: self._clean_up(stack, new if provided else None, version))

        self._ask(stack, stack.event(Kind.UPDATE, after, before), version, answered)

    def _clean_up(self, stack: TeamStack, properties: Properties | None, version: str) -> None:
        """The resource is another tenant now, and the tenant before is to be deleted."""
        if properties is None:
            stack.busy = False
            return

        def answered(_deleted: bool) -> None:
            stack.busy = False

        self._ask(stack, stack.event(Kind.DELETE, properties), version, answered)

    def _delete(self, stack: TeamStack, properties: Properties, version: str) -> None:
        stack.busy = True

        def answered(deleted: bool) -> None:
            stack.busy = False
            stack.properties = None if deleted else properties

        self._ask(stack, stack.event(Kind.DELETE, properties), version, answered)

    def _something_else_fails(self) -> bool:
        return self.harbour.chance.random() < self.harbour.weather.other_failures

    # How the machine goes on until there is an answer

    def _ask(self, stack: TeamStack, event: dict[str, Any], version: str, answered: Callable[[bool], None]) -> None:
        asked = parse_tenant_queue_request(event)
        self.harbour.guard.seen[f"{asked.kind} of a resource"] += 1
        self.harbour.tell(stack.stack_id, f"{asked.kind} of its resource", asked)
        self.harbour.tick()
        self._step(Poll(asked, self.harbour.clock.now(), version, answered))

    def _step(self, poll: Poll) -> None:
        if self.quiet:
            return
        harbour, asked = self.harbour, poll.asked
        wants_it = asked.kind is Kind.CREATE or (asked.kind is Kind.UPDATE and asked.replaces is not None)
        caller = Caller(Role.TEAM, asked.tenant, asked.request.by, wants_it, poll.since)
        harbour.guard.of[asked.tenant].asked.says()
        lifecycle = harbour.lifecycle_of(harbour.ports_of(caller), poll.version, TENANT_QUEUE_RESOURCES)
        harbour.call(caller, lambda: settle(asked, since=poll.since, lifecycle=lifecycle), partial(self._over, poll))

    def _over(self, poll: Poll, answer: object, error: Exception | None) -> None:
        self.harbour.guard.of[poll.asked.tenant].asked.has_said()
        if isinstance(error, Throttled):
            answer, error = Waiting(), None
        if error is not None:
            poll.failures += 1
            if poll.failures < MAX_FAILURES:
                self.harbour.later(self.harbour.chance.uniform(1, 20), partial(self._step, poll))
                return
            answer = NotProvided(str(error))
        poll.failures = 0
        if isinstance(answer, Waiting):
            waited = (self.harbour.clock.now() - poll.since).total_seconds()
            times = 1 if waited < PATIENT_AFTER_SECONDS else 10
            self.harbour.later(POLL_SECONDS * times, partial(self._step, poll))
            return
        self.harbour.tell(poll.asked.request.by, f"{poll.asked.kind} is answered", answer)
        self.harbour.guard.seen[f"{poll.asked.kind} of a resource: {type(answer).__name__}"] += 1
        poll.answered(isinstance(answer, Provided))


def properties(tenant: TenantId, **more: Any) -> Properties:
    return {"TenantId": tenant.value, **more}
