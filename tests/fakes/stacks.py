"""CloudFormation, in memory: stacks, their events and change sets."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from orchestrator.common.errors import Conflict, Throttled
from orchestrator.common.tenant_ids import WARM_PREFIX, TenantId
from orchestrator.releases.records import Release
from orchestrator.releases.template_contract import TENANT_PARAMETER
from orchestrator.tenants.outcomes import Done
from orchestrator.tenants.records import Queue
from orchestrator.tenants.stack_ports import Change, ChangeSet, ChangeSetState, ResourceEvent, Stack
from tests.fakes.examples import A_DIGEST, NAMES, NOON, QUEUE, VERSION, parameters_of, stack_arn

QUEUE_TYPE = "AWS::SQS::Queue"


@dataclass
class FakeStack:
    """One stack, living or deleted, and its events, newest first."""

    stack: Stack
    client_token: str
    """The client token of the request that is under way, or of the latest one."""
    template_url: str = ""
    events: list[ResourceEvent] = field(default_factory=list)
    change_sets: dict[str, tuple[ChangeSet, str]] = field(default_factory=dict)
    """By id, each with the template that it is about."""
    direct: tuple[str, Mapping[str, str]] | None = None
    """The template and parameters of an update that is under way without a change set."""

    @property
    def was_kept_ready(self) -> bool:
        """True if the stack was made for no tenant. It learns its tenant by an update."""
        return WARM_PREFIX in self.stack.stack_id


class FakeStacks:
    """CloudFormation. A requested change is under way until :meth:`settle` is called."""

    names = NAMES

    def __init__(self) -> None:
        self.all: dict[str, FakeStack] = {}
        """By stack id, deleted ones included."""
        self.failures: deque[str] = deque()
        """Reasons for which the next creations and updates fail and are rolled back."""
        self.rollback_failures: deque[str] = deque()
        """Reasons for which undoing the next updates fails, too."""
        self.delete_failures: deque[str] = deque()
        """Reasons for which the next deletions fail."""
        self._drawn_up = 0
        self.digests: dict[str, str] = {}
        """The digests of templates that are no releases, by URL."""
        self.would_change: tuple[Change, ...] = ()
        """The changes in the next change sets, besides that of the version."""
        self.review_takes = 0
        """How often a change set is looked at before it is drawn up."""
        self.throttled_calls = 0
        """How many of the next calls are refused."""
        self.resources: dict[str, Queue | None] = {}
        """The queues that CloudFormation lists in stacks whose outputs say otherwise, or say nothing yet."""
        self.other_queues: dict[str, dict[str, Queue]] = {}
        """The queues besides the inbound queue that CloudFormation lists, by stack id and logical id."""
        self.calls: list[str] = []
        self.now: datetime = NOON
        """When the next events happen."""

    @property
    def living(self) -> list[Stack]:
        return [fake.stack for fake in self.all.values() if fake.stack.status != "DELETE_COMPLETE"]

    def find(self, name_or_id: str) -> Stack | None:
        self._called("find")
        if name_or_id in self.all:
            return self.all[name_or_id].stack
        return next((stack for stack in self.living if _same(_name(stack.stack_id), name_or_id)), None)

    def queue(self, stack_id: str) -> Queue | None:
        self._called("queue")
        if stack_id not in self.all or self.all[stack_id].stack.status == "DELETE_COMPLETE":
            return None
        return self.resources.get(stack_id, self.all[stack_id].stack.queue)

    def queues(self, stack_id: str) -> Mapping[str, Queue]:
        self._called("queues")
        if stack_id not in self.all or self.all[stack_id].stack.status == "DELETE_COMPLETE":
            return {}
        inbound = self.resources.get(stack_id, self.all[stack_id].stack.queue)
        return {**({"InboundQueue": inbound} if inbound else {}), **self.other_queues.get(stack_id, {})}

    def stack_with(self, queue: Queue) -> Stack | None:
        self._called("stack_with")
        for stack in self.living:
            inbound = self.resources.get(stack.stack_id, stack.queue)
            listed = [*([inbound] if inbound else []), *self.other_queues.get(stack.stack_id, {}).values()]
            if queue.arn in {each.arn for each in listed}:
                return stack
        return None

    def create(self, tenant: TenantId, *, release: Release, client_token: str) -> str | None:
        self._called("create")
        for stack in self.living:
            if _same(_name(stack.stack_id), NAMES.stack_of(tenant)):
                same_request = self.all[stack.stack_id].client_token == client_token
                return stack.stack_id if same_request else None
        stack_id = self.stack_id(tenant)
        self.plant(
            Stack(
                *(stack_id, "CREATE_IN_PROGRESS", "", tenant.value, None, None),
                ours=True,
                parameters=parameters_of(tenant, release),
                changed_at=self.now,
            ),
            client_token,
            release.template_url,
        )
        return stack_id

    def delete(self, stack_id: str, *, client_token: str) -> None:
        self._called("delete")
        if stack_id in self.all and self.all[stack_id].stack.status != "DELETE_COMPLETE":
            self._begin(stack_id, "DELETE_IN_PROGRESS", client_token)

    def update(self, tenant: TenantId, stack_id: str, *, release: Release, template: str, client_token: str) -> bool:  # noqa: ARG002 - the port's
        self._called("update")
        self._refuse_while_at_work(stack_id)
        fake = self.all[stack_id]
        parameters = parameters_of(tenant, release)
        if release.template_url == fake.template_url and parameters == fake.stack.parameters:
            return False
        fake.change_sets = {}
        fake.direct = (release.template_url, parameters)
        self._begin(stack_id, "UPDATE_IN_PROGRESS", client_token)
        return True

    def create_change_set(self, tenant: TenantId, stack_id: str, *, release: Release, name: str) -> str | None:
        self._called("create_change_set")
        fake = self._named(_name(stack_id))
        if fake is None or self._id_of(fake, name):
            return None
        same = release.template_url == fake.template_url and not self.would_change
        same &= not fake.was_kept_ready or fake.stack.tenant_id == tenant.value
        reason = "The submitted information didn't contain changes." if same else ""
        state = ChangeSetState.EMPTY if same else ChangeSetState.READY
        return self.add_changes(
            fake.stack.stack_id,
            name,
            release.template_url,
            state=state,
            reason=reason,
            changes=() if same else self.would_change,
            parameters=parameters_of(tenant, release),
        )

    def find_change_set(self, stack_id: str, change_set: str) -> ChangeSet | None:
        self._called("changes")
        fake = self.all[stack_id]
        found = self._id_of(fake, change_set)
        if found and self.review_takes:
            self.review_takes -= 1
            return replace(fake.change_sets[found][0], state=ChangeSetState.PENDING)
        return fake.change_sets[found][0] if found else None

    def template_digest(self, stack_id: str, change_set: str) -> str | None:
        self._called("template_digest")
        fake = self.all[stack_id]
        found = self._id_of(fake, change_set)
        if found is None:
            raise Conflict(f"ChangeSet [{change_set}] does not exist")
        return self.digests.get(fake.change_sets[found][1], A_DIGEST)

    def execute_change_set(self, stack_id: str, change_set: str, *, client_token: str) -> None:
        self._called("execute_change_set")
        fake = self.all[stack_id]
        found = self._id_of(fake, change_set)
        self._refuse_while_at_work(stack_id)
        if found is None:
            raise Conflict(f"ChangeSet [{change_set}] does not exist")
        drawn_up, template_url = fake.change_sets[found]
        if drawn_up.state is not ChangeSetState.READY:
            raise Conflict(f"ChangeSet [{change_set}] is in {drawn_up.state.name} status")
        fake.change_sets = {found: (replace(drawn_up, state=ChangeSetState.EXECUTED), template_url)}
        fake.direct = None
        self._begin(stack_id, "UPDATE_IN_PROGRESS", client_token)

    def delete_change_set(self, stack_id: str, change_set: str) -> None:
        self._called("delete_change_set")
        fake = self.all[stack_id]
        fake.change_sets.pop(self._id_of(fake, change_set) or "", None)

    def _id_of(self, fake: FakeStack, change_set: str) -> str | None:
        """The id of the change set with that id or name."""
        return next((each for each in fake.change_sets if change_set in (each, each.split("/")[1])), None)

    def _refuse_while_at_work(self, stack_id: str) -> None:
        """Refuse the call as CloudFormation does, for example if somebody is deleting the stack by hand."""
        status = self.all[stack_id].stack.status
        if status == "DELETE_COMPLETE":
            raise Conflict("Stack does not exist")
        if status.endswith("_IN_PROGRESS"):
            raise Conflict(f"Stack is in {status} state and can not be updated")

    def roll_back(self, stack_id: str, *, client_token: str) -> None:
        self._called("roll_back")
        self._refuse_while_at_work(stack_id)
        self._begin(stack_id, "UPDATE_ROLLBACK_IN_PROGRESS", client_token)

    def continue_rollback(self, stack_id: str, *, client_token: str) -> None:
        self._called("continue_rollback")
        self._refuse_while_at_work(stack_id)
        self._begin(stack_id, "UPDATE_ROLLBACK_IN_PROGRESS", client_token)

    def events(self, stack_id: str) -> Iterable[ResourceEvent]:
        self._called("events")
        return list(self.all[stack_id].events)

    def as_of_now(self) -> FakeStacks:
        """A copy of the stacks as they are now, for a list that lags."""
        then = FakeStacks()
        then.all = {stack_id: replace(fake) for stack_id, fake in self.all.items()}
        return then

    # Arranging

    def add_changes(self, stack_id: str, name: str, template_url: str, **drawn_up: Any) -> str:
        """Create a change set as somebody else would, and return its id."""
        self._drawn_up += 1
        change_set = f"arn:aws:cloudformation:eu-west-1:000000000000:changeSet/{name}/{self._drawn_up}"
        self.all[stack_id].change_sets[change_set] = (ChangeSet(change_set, stack_id, **drawn_up), template_url)
        return change_set

    def stack_id(self, tenant: TenantId) -> str:
        """The id that the next stack of this tenant gets."""
        return stack_arn(tenant, len(self.all) + 1)

    def plant(self, stack: Stack, client_token: str = "", template_url: str = "") -> Stack:
        self.all[stack.stack_id] = FakeStack(stack, client_token, template_url)
        self._tell(stack.stack_id, stack.status)
        return stack

    def plant_done(
        self,
        tenant: TenantId,
        *,
        version: str | None = VERSION,
        status: str = "CREATE_COMPLETE",
        template_url: str = "",
        queue: Queue | None = QUEUE,
        ours: bool = True,
    ) -> Stack:
        """Add a stack that was there before the test begins."""
        return self.plant(
            Stack(self.stack_id(tenant), status, "", tenant.value, queue, version, ours=ours), template_url=template_url
        )

    def let_stand(self, tenant: TenantId, done: Done, parameters: Mapping[str, str] | None = None) -> None:
        """Add the stack of an operation's result."""
        stack = Stack(done.stack_id, "CREATE_COMPLETE", "", tenant.value, done.queue, done.version, ours=True)
        self.plant(replace(stack, parameters=parameters or {}))

    def change(self, stack_id: str, status: str, reason: str = "", **changes: object) -> None:
        fake = self.all[stack_id]
        fake.stack = replace(fake.stack, status=status, status_reason=reason, **changes)  # type: ignore[arg-type]
        self._tell(stack_id, status, reason)

    def settle(self, *, queue: Queue = QUEUE, version: str = VERSION) -> None:
        """End everything that is under way. A new stack is at ``version``."""
        for stack in self.living:
            stack_id = stack.stack_id
            if stack.status == "DELETE_IN_PROGRESS":
                self._end_delete(stack_id)
            elif stack.status == "CREATE_IN_PROGRESS" and self.failures:
                self.fail_resource(stack_id, "CREATE_FAILED", self.failures.popleft())
                self.change(stack_id, "ROLLBACK_IN_PROGRESS", "Failed to create: [InboundQueue].")
                self.change(stack_id, "ROLLBACK_COMPLETE")
            elif stack.status == "CREATE_IN_PROGRESS":
                self.change(stack_id, "CREATE_COMPLETE", queue=queue, version=version)
            elif stack.status == "UPDATE_IN_PROGRESS":
                self._end_update(stack_id)
            elif stack.status == "UPDATE_ROLLBACK_IN_PROGRESS":
                self._end_rollback(stack_id)

    def _end_update(self, stack_id: str) -> None:
        fake = self.all[stack_id]
        if self.failures:
            self.fail_resource(stack_id, "UPDATE_FAILED", self.failures.popleft())
            self.change(stack_id, "UPDATE_ROLLBACK_IN_PROGRESS", "Failed to update: [InboundQueue].")
            self._end_rollback(stack_id)
            return
        fake.template_url, parameters = self.requested(fake)
        learned = {"tenant_id": parameters.get(TENANT_PARAMETER)} if fake.was_kept_ready else {}
        self.change(
            stack_id, "UPDATE_COMPLETE", version=version_of(fake.template_url), parameters=parameters, **learned
        )

    @staticmethod
    def requested(fake: FakeStack) -> tuple[str, dict[str, str]]:
        """The template and the parameters that the stack is being changed to."""
        if fake.direct:
            return fake.direct[0], dict(fake.direct[1])
        drawn_up = fake.change_sets.values()
        (executed,) = ((url, made) for made, url in drawn_up if made.state is ChangeSetState.EXECUTED)
        return executed[0], dict(executed[1].parameters)

    @classmethod
    def executed(cls, fake: FakeStack) -> str:
        """The template that the stack is being changed to."""
        return cls.requested(fake)[0]

    def _end_rollback(self, stack_id: str) -> None:
        if self.rollback_failures:
            self.fail_resource(stack_id, "UPDATE_FAILED", self.rollback_failures.popleft())
            self.change(stack_id, "UPDATE_ROLLBACK_FAILED", "Failed to update: [InboundQueue].")
        else:
            self.change(stack_id, "UPDATE_ROLLBACK_COMPLETE")

    def _end_delete(self, stack_id: str) -> None:
        if self.delete_failures:
            self.fail_resource(stack_id, "DELETE_FAILED", self.delete_failures.popleft())
            self.change(stack_id, "DELETE_FAILED", "Failed to delete: [InboundQueue].")
        else:
            self.change(stack_id, "DELETE_COMPLETE")

    def _named(self, name: str) -> FakeStack | None:
        living = (self.all[stack.stack_id] for stack in self.living if _same(_name(stack.stack_id), name))
        return next(living, None)

    def _begin(self, stack_id: str, status: str, client_token: str) -> None:
        """Begin an operation. A role that was given once is used for all later operations on the stack."""
        self.all[stack_id].client_token = client_token
        changed = {} if status == "DELETE_IN_PROGRESS" else {"changed_at": self.now}
        self.change(stack_id, status, ours=True, **changed)

    def fail_resource(self, stack_id: str, status: str, reason: str) -> None:
        self._add(stack_id, "InboundQueue", QUEUE_TYPE, status, reason)

    def _tell(self, stack_id: str, status: str, reason: str = "") -> None:
        self._add(stack_id, _name(stack_id), "AWS::CloudFormation::Stack", status, reason)

    def _add(self, stack_id: str, resource: str, resource_type: str, status: str, reason: str) -> None:
        fake = self.all[stack_id]
        is_stack = resource_type == "AWS::CloudFormation::Stack"
        event = ResourceEvent(self.now, resource, resource_type, status, reason, is_stack, False, fake.client_token)
        fake.events.insert(0, event)

    def _called(self, method: str) -> None:
        self.calls.append(method)
        if self.throttled_calls:
            self.throttled_calls -= 1
            raise Throttled(f"{method}: Rate exceeded")


def version_of(template_url: str) -> str:
    """The version at the end of a template's URL, as the examples' releases have it."""
    return template_url.rpartition("/")[2].removesuffix(".json")


def _name(stack_id: str) -> str:
    return stack_id.split("/")[1]


def _same(name: str, other: str) -> bool:
    """Compare names without regard to case: code that relied on their case could take two tenants for one."""
    return name.casefold() == other.casefold()
