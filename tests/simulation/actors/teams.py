"""Stacks of other teams, each with one Custom::TenantQueue in it, and what CloudFormation asks Berth on their behalf.

A stack is created, updated or deleted, one operation at a time, and may be deployed again under the same name.
CloudFormation rolls back what fails: a create by a delete, an update by an update to the properties before. When a
resource has become another tenant, CloudFormation asks to delete the tenant before. It shows what it is doing, a little
late at times. Others send events as well, in the name of whatever stack they know.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from orchestrator.common.stack_arns import Location, StackArn
from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.resource_requests import (
    Claim,
    Kind,
    TenantQueueRequest,
    parse_claim,
    parse_tenant_queue_request,
)
from orchestrator.tenants.stack_ports import ResourceState, StackResources
from orchestrator.tenants.stack_resources import StackResource
from orchestrator.tenants.tenant_queue import AnsweredBefore, NotConfirmed, NotProvided, Provided, Waiting
from tests.simulation.actors.callers import Caller, Role
from tests.simulation.world import watched

if TYPE_CHECKING:
    from tests.simulation.environment import Environment

Properties = dict[str, Any]

HERE = Location.parse("aws:eu-west-1:000000000000")
LOGICAL_ID = "Queue"
POLL_SECONDS = 3
PATIENT_AFTER_SECONDS = 60
"""From then on the simulation polls less often than the machine does, to save time."""
MAX_FAILURES = 12
"""A step of the machine may fail this often in a row."""
_CLAIMED = 0.5
"""How many of those who forge an event say that CloudFormation has confirmed it."""
MAX_LAG_SECONDS = 15
"""How much later CloudFormation may show that it has begun something."""


@dataclass
class TeamStack:
    name: str
    number: int
    properties: Properties | None = None
    """The properties of its resource, while there is one."""
    busy: bool = False
    physical_id: str = ""
    status: str = ""
    """The status of the stack."""
    shown: ResourceState | None = None
    """The state of the resource that CloudFormation shows."""
    requests: int = 0
    """How often the resource was to be changed."""

    @property
    def stack_id(self) -> str:
        return f"arn:aws:cloudformation:{HERE.region}:{HERE.account}:stack/{self.name}/{self.number}"

    def event(self, kind: Kind, properties: Properties, before: Properties | None = None) -> dict[str, Any]:
        more: dict[str, Any] = {} if kind is Kind.CREATE else {"PhysicalResourceId": self.physical_id}
        if before is not None:
            more["OldResourceProperties"] = before
        return an_event(self.stack_id, kind, properties) | more

    def show(self, status: str, at: datetime) -> None:
        self.shown = ResourceState("Custom::TenantQueue", status, self.physical_id, at)


def an_event(stack_id: str, kind: Kind, properties: Properties) -> dict[str, Any]:
    return {
        "RequestType": kind.value,
        "StackId": stack_id,
        "RequestId": "request",
        "LogicalResourceId": LOGICAL_ID,
        "ResponseURL": "https://answers.example/",
        "ResourceProperties": properties,
    }


@dataclass
class Poll:
    """One request that is polled until it is answered."""

    claim: Claim
    request: TenantQueueRequest
    since: datetime
    version: str
    """The version of the code that answers."""
    answered: Callable[[bool], None]
    forged_for: Idle | None = None
    """The stack whose event it pretends to be. If that is changed later, an event in its name may be its own."""
    confirmed: bool = False
    failures: int = 0


@dataclass(frozen=True)
class Idle:
    """The state that CloudFormation shows of a stack that is not being changed."""

    shown: ResourceState | None
    status: str

    def resource(self, _resource: StackResource) -> ResourceState | None:
        return self.shown

    def stack_status(self, _stack: StackArn) -> str:
        return self.status

    def stack_output(self, _stack: StackArn, _name: str) -> None:
        return None


@dataclass
class Teams:
    """Implements :class:`orchestrator.tenants.ports.StackResources`, too."""

    env: Environment
    stacks: list[TeamStack] = field(default_factory=list)
    quiet: bool = False
    """True once no more requests are made."""

    def create(self, properties: Properties, version: str) -> None:
        self._deploy(f"team-{len(self.stacks) + 1}", properties, version)

    def deploy_again(self, said: Properties, version: str) -> None:
        """Deploy a stack that was deleted, which then has another id, for the tenant that its resource was."""
        names = {stack.name for stack in self.stacks if stack.properties or stack.busy}
        gone = self._one_of([stack for stack in self.stacks if stack.name not in names])
        if gone:
            self._deploy(gone.name, {"TenantId": gone.physical_id, **said}, version)

    def update(self, properties: Properties, version: str) -> None:
        """Change some properties of one team's resource."""
        stack = self._one_of([stack for stack in self.stacks if stack.properties and not stack.busy])
        if stack and stack.properties:
            after = {name: value for name, value in {**stack.properties, **properties}.items() if value is not None}
            self._update(stack, stack.properties, after, version)

    def delete(self, version: str) -> None:
        stack = self._one_of([stack for stack in self.stacks if stack.properties and not stack.busy])
        if stack and stack.properties:
            self._delete(stack, stack.properties, version, "DELETE_IN_PROGRESS")

    def forge(self, kind: Kind, properties: Properties, physical_id: str, version: str) -> None:
        """Somebody invokes the function directly, in the name of a stack that rests, or of one that never was."""
        nobody = TeamStack("nobody", 1)
        stack = self._one_of([stack for stack in self.stacks if not stack.busy]) or nobody
        event = an_event(stack.stack_id, kind, properties) | {"PhysicalResourceId": physical_id}
        self._ask(stack, event, version, lambda _answered: None, forged=True)

    def _one_of(self, stacks: list[TeamStack]) -> TeamStack | None:
        return self.env.rng.choice(stacks) if stacks else None

    # CloudFormation's descriptions

    def resource(self, resource: StackResource) -> ResourceState | None:
        stack = self._named(resource.stack)
        return stack.shown if stack and resource.logical_id == LOGICAL_ID else None

    def stack_status(self, stack: StackArn) -> str | None:
        found = self._named(stack)
        return found.status if found else None

    def stack_output(self, _stack: StackArn, _name: str) -> None:
        """Only the control plane's own stack is asked for an output, and these are stacks of other teams."""

    def _named(self, stack: StackArn) -> TeamStack | None:
        return next((each for each in self.stacks if each.stack_id == str(stack)), None)

    # The operations of CloudFormation

    def _deploy(self, name: str, properties: Properties, version: str) -> None:
        stack = TeamStack(name, len(self.stacks) + 1)
        self.stacks.append(stack)
        stack.busy, stack.properties, stack.status = True, properties, "CREATE_IN_PROGRESS"

        def answered(provided: bool) -> None:
            stack.physical_id = properties["TenantId"]
            if provided and not self._something_else_fails():
                self._settled(stack, "CREATE_COMPLETE")
            else:
                self.env.checks.seen["Create of a resource is rolled back"] += 1
                self._delete(stack, properties, version, "ROLLBACK_IN_PROGRESS")

        self._ask(stack, stack.event(Kind.CREATE, properties), version, answered)

    def _update(self, stack: TeamStack, before: Properties, after: Properties, version: str) -> None:
        stack.busy, stack.properties, stack.status = True, after, "UPDATE_IN_PROGRESS"
        old = before if before["TenantId"] != after["TenantId"] else None
        new = after if old else None

        def answered(provided: bool) -> None:
            stack.physical_id = after["TenantId"] if provided else stack.physical_id
            if provided and not self._something_else_fails():
                self._clean_up(stack, old, version, "UPDATE_COMPLETE")
                return
            self.env.checks.seen["Update of a resource is rolled back"] += 1
            stack.properties, stack.status = before, "UPDATE_ROLLBACK_IN_PROGRESS"
            undo = stack.event(Kind.UPDATE, before, after)

            def undone(_provided: bool) -> None:
                stack.physical_id = before["TenantId"]
                self._clean_up(stack, new if provided else None, version, "UPDATE_ROLLBACK_COMPLETE")

            # Nobody says which one CloudFormation shows while it goes back.
            stack.physical_id = self.env.rng.choice((stack.physical_id, before["TenantId"]))
            self._ask(stack, undo, version, undone)

        self._ask(stack, stack.event(Kind.UPDATE, after, before), version, answered)

    def _clean_up(self, stack: TeamStack, properties: Properties | None, version: str, done: str) -> None:
        """The resource is another tenant now, and the tenant before is to be deleted."""
        stack.show("UPDATE_COMPLETE", self.env.clock.now())
        if properties is None:
            self._settled(stack, done)
            return
        stack.status = f"{done}_CLEANUP_IN_PROGRESS"
        event = stack.event(Kind.DELETE, properties) | {"PhysicalResourceId": properties["TenantId"]}
        self._ask(stack, event, version, lambda _deleted: self._settled(stack, done), shows=False)

    def _delete(self, stack: TeamStack, properties: Properties, version: str, status: str) -> None:
        stack.busy, stack.status = True, status

        def answered(deleted: bool) -> None:
            stack.properties = None if deleted else properties
            self._settled(stack, "DELETE_COMPLETE" if deleted else "DELETE_FAILED")

        self._ask(stack, stack.event(Kind.DELETE, properties), version, answered)

    def _settled(self, stack: TeamStack, status: str) -> None:
        stack.busy, stack.status = False, status
        stack.show(status, self.env.clock.now())

    def _something_else_fails(self) -> bool:
        return self.env.rng.random() < self.env.faults.other_failures

    # The machine that polls until there is an answer

    def _ask(
        self,
        stack: TeamStack,
        event: dict[str, Any],
        version: str,
        answered: Callable[[bool], None],
        *,
        shows: bool = True,
        forged: bool = False,
    ) -> None:
        claim, asked = parse_claim(event, HERE), parse_tenant_queue_request(event)
        self.env.checks.seen["forged" if forged else f"{asked.kind} of a resource"] += 1
        self.env.trace("somebody else" if forged else stack.stack_id, f"{asked.kind} of its resource", asked)
        if shows and not forged:
            self._begin_to_show(stack, f"{asked.kind.value.upper()}_IN_PROGRESS")
        self.env.tick()
        rests = Idle(stack.shown, stack.status) if forged else None
        # Whoever forges an event can also say that it was confirmed.
        confirmed = forged and self.env.rng.random() < _CLAIMED
        self._step(Poll(claim, asked, self.env.clock.now(), version, answered, rests, confirmed))

    def _begin_to_show(self, stack: TeamStack, status: str) -> None:
        stack.requests += 1
        now = self.env.clock.now()
        if self.env.rng.random() < self.env.faults.stale:
            self.env.checks.seen["shown late"] += 1
            delay, this = self.env.rng.uniform(1, MAX_LAG_SECONDS), stack.requests
            # Late, but in order: what has begun since then is shown already.
            self.env.later(delay, lambda: stack.show(status, now) if stack.busy and stack.requests == this else None)
        else:
            stack.show(status, now)

    def _step(self, poll: Poll) -> None:
        if self.quiet:
            return
        env, asked = self.env, poll.request
        wants_it = asked.kind is Kind.CREATE or (asked.kind is Kind.UPDATE and asked.replaces is not None)
        role = Role.FORGER if poll.forged_for else Role.TEAM
        caller = Caller(role, asked.tenant, asked.request.by, wants_it, poll.since, resource=asked.request.resource)
        env.checks.of[asked.tenant].requests.says()
        shows: StackResources = poll.forged_for or self
        resources = watched("stacks", shows, env.around(caller))
        use_cases = env.use_cases_of(caller, version=poll.version, stack_resources=resources)

        def step() -> object:
            return use_cases.answer_tenant_queue(poll.claim, asked, confirmed=poll.confirmed, since=poll.since)

        env.call(caller, step, partial(self._over, poll))

    def _over(self, poll: Poll, outcome: object, error: Exception | None) -> None:
        self.env.checks.of[poll.request.tenant].requests.has_said()
        if error is not None:
            poll.failures += 1
            if poll.failures < MAX_FAILURES:
                self.env.later(self.env.rng.uniform(1, 20), partial(self._step, poll))
                return
            outcome = NotProvided(str(error))
        poll.failures = 0
        if isinstance(outcome, Waiting):
            poll.confirmed = outcome.confirmed
            waited = (self.env.clock.now() - poll.since).total_seconds()
            times = 1 if waited < PATIENT_AFTER_SECONDS else 10
            self.env.later(POLL_SECONDS * times, partial(self._step, poll))
            return
        by = "somebody else" if poll.forged_for else poll.request.request.by
        self.env.trace(by, f"{poll.request.kind} is answered", outcome)
        if poll.forged_for:
            self.env.checks.seen[f"forged: {type(outcome).__name__}"] += 1
            return
        assert not isinstance(outcome, NotConfirmed | AnsweredBefore), f"{by}: {outcome}"
        self.env.checks.seen[f"{poll.request.kind} of a resource: {type(outcome).__name__}"] += 1
        poll.answered(isinstance(outcome, Provided))


def properties(tenant: TenantId, **more: Any) -> Properties:
    return {"TenantId": tenant.value, **more}
