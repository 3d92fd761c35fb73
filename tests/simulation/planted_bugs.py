"""Bugs, put in on purpose: a way in which a promise was once broken, or might be. Each is found out.

Most take something out of the product that keeps a promise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest

from orchestrator.common.errors import StackNotOurs
from orchestrator.common.stack_arns import name_of
from orchestrator.common.tenant_ids import TenantId
from orchestrator.reconciling import reconciler, settling
from orchestrator.reconciling.health import SETTLING_EVERY
from orchestrator.reconciling.ports import UnlistedTenant
from orchestrator.reconciling.settling import Settling, run_of
from orchestrator.releases.records import Release
from orchestrator.tenants import (
    admission,
    creating,
    deleting,
    get_queue,
    lifecycle,
    operations,
    own_stack,
    queue_metadata,
    tenant_queue,
    tenant_stack,
    transitions,
    updating,
)
from orchestrator.tenants.decisions import Ready
from orchestrator.tenants.lifecycle import Lifecycle, Ordered
from orchestrator.tenants.names import Names
from orchestrator.tenants.outcomes import Done, GaveUp, NotReady
from orchestrator.tenants.ports import Pin, Publication, Stack
from orchestrator.tenants.records import Audit, Lock, Metadata, Operation, Queue, RecordedChange, Request, Run, Status
from orchestrator.tenants.resource_requests import Claim, TenantQueueRequest
from orchestrator.tenants.stack_resources import Requester
from orchestrator.tenants.stack_status import StackCondition, condition
from orchestrator.tenants.writes import Append, Condition, Equals, Transition, any_of
from tests.fakes import NAMES, VERSION, FakeClock, FakeExecutions, InMemoryTable
from tests.machines import asl
from tests.machines.files import machine
from tests.simulation.actions import (
    ATTACKS,
    CONCURRENT,
    DELETES_WITH_MESSAGES,
    LEGACY_TENANTS,
    ORDERS_BEFORE_BEGIN,
    RECREATED_TENANTS,
    RETRIES,
    STACKS_DELETED_BY_HAND,
    TEAMS_AND_OPERATORS,
    Action,
    admitted_long_ago,
    adopt,
    all_at_once,
    all_of_them_die,
    ask,
    create,
    create_and_delete,
    delete,
    receive,
    send,
    team_creates,
    team_updates,
    upgrade,
)
from tests.simulation.aws import executions
from tests.simulation.environment import Environment
from tests.simulation.faults import (
    ABORTED_EXECUTIONS,
    CRASHES,
    FAILING_STACKS,
    LOST_RESULTS,
    ORPHANED_CALLS,
    REPEATED_EVENTS,
    STALE_COUNTS,
    Faults,
)

Bug = Callable[[pytest.MonkeyPatch], None]
Table = InMemoryTable


def _whoever_owns_it(method: str) -> Bug:
    """A write of a run goes through even though another run owns the tenant, or nobody."""

    def unfence(monkeypatch: pytest.MonkeyPatch) -> None:
        fenced = getattr(Table, method)

        def write(self: InMemoryTable, run: Run, *args: Any, **named: Any) -> None:
            others = self.lock(run.tenant)
            self.plant_lock(run.tenant, run)
            fenced(self, run, *args, **named)
            if others and others.run.execution != run.execution:
                self.plant_lock(run.tenant, others.run)

        monkeypatch.setattr(Table, method, write)

    return unfence


def _begin_with_a_lock_that_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = Table.begin

    def take(self: InMemoryTable, run: Run, **named: Any) -> Lock | None:
        lock = self.lock(run.tenant)
        if lock and lock.run.execution != run.execution:
            self.plant_lock(run.tenant, None)
        return begin(self, run, **named)

    monkeypatch.setattr(Table, "begin", take)


def _every_holder_counts_as_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "is_dead", lambda *_, **__: True)


def _delete_without_withdrawing(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = Table.begin

    def forgetful(self: InMemoryTable, run: Run, **named: Any) -> Lock | None:
        holder = begin(self, run, **named)
        self.change_metadata(run.tenant, withdrawn_by=None)
        return holder

    monkeypatch.setattr(Table, "begin", forgetful)


def _leave_withdrawn_what_a_refused_delete_withdrew(monkeypatch: pytest.MonkeyPatch) -> None:
    fail = Table.fail
    monkeypatch.setattr(Table, "fail", lambda self, *args, restore: fail(self, *args, restore=False))  # noqa: ARG005


def _keep_the_lock_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    fail = Table.fail

    def keep(self: InMemoryTable, run: Run, *args: Any, **named: Any) -> bool:
        lock = self.lock(run.tenant)
        recorded = fail(self, run, *args, **named)
        self.plant_lock(run.tenant, lock.run if lock else None)
        return recorded

    monkeypatch.setattr(Table, "fail", keep)


def _metadata_before_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stack itself says at which version it is, before anybody has seen that its queue can be used."""
    record = Table.record_queue

    def eager(self: InMemoryTable, tenant: TenantId, **named: Any) -> bool:
        recorded = record(self, tenant, **named)
        metadata = self.metadata(tenant)
        self.change_metadata(tenant, version=(metadata and metadata.version) or VERSION)
        return recorded

    monkeypatch.setattr(Table, "record_queue", eager)


def _free_the_lock_early(monkeypatch: pytest.MonkeyPatch) -> None:
    remember = Table.remember_token

    def forgetful(self: InMemoryTable, run: Run, task_token: str) -> None:
        remember(self, run, task_token)
        self.plant_lock(run.tenant, None)

    monkeypatch.setattr(Table, "remember_token", forgetful)


def _take_over_without_asking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        operations,
        "is_dead",
        lambda holder, *, executions, clock: clock.now() - holder.run.started_at > operations.CHECK_HOLDER_AFTER,  # noqa: ARG005
    )


def _settle_without_asking(monkeypatch: pytest.MonkeyPatch) -> None:
    """An event says that the execution has ended, so it has; the index says so, too."""
    settle = Settling.settle

    class Over(FakeExecutions):
        def is_over(self, execution: str) -> bool:  # noqa: ARG002
            return True

    def trusting(self: Settling, given: Run, **named: Any) -> settling.Settlement:
        return settle(replace(self, executions=Over()), given, **named)

    monkeypatch.setattr(Settling, "settle", trusting)


def _over_as_soon_as_aborted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeExecutions, "is_over", lambda self, execution: not self.is_running(execution))


def _settle_an_update_by_its_status_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    inspect = tenant_stack.inspect_stack

    def hopeful(run: Run, *, stacks: Any, **named: Any) -> Any:
        stack: Stack | None = stacks.find(NAMES.stack_of(run.tenant))
        stands = stack and condition(stack.status) in (StackCondition.DONE, StackCondition.DONE_AT_OLD_VERSION)
        if run.attempt.operation is Operation.UPDATE and stack and stands and stack.queue:
            return Done(stack.stack_id, stack.queue, run.attempt.version)
        return inspect(run, stacks=stacks, **named)

    monkeypatch.setattr(settling, "inspect_stack", hopeful)


def _serve_what_is_being_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    def ready(metadata: Metadata | None) -> Ready | None:
        known = metadata and metadata.queue and metadata.version
        return Ready(metadata.queue, metadata.version) if metadata and known else None  # type: ignore[arg-type]

    monkeypatch.setattr(get_queue, "ready", ready)


def _retry_whatever_was_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The latest operation is tried again, and counts as if somebody had asked for the tenant only now."""

    def retry(self: Lifecycle, tenant: TenantId, by: str) -> Ordered | None:
        latest = max(self.reader.audits(tenant), key=lambda audit: audit.updated_at, default=None)
        if latest is None or latest.status is Status.SUCCESS:
            return None
        request = replace(latest.request, by=by, explicit=True, asked_at=None)
        metadata = self.reader.metadata(tenant)
        return self._order(tenant, latest.operation, latest.version or self.version, request, metadata)

    monkeypatch.setattr(Lifecycle, "retry", retry)


def _failure_over_a_later_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    for rule in ("not_overtaken", "not_in_the_way"):
        monkeypatch.setattr(transitions, rule, lambda _run: None)


def _trust_the_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it lists is taken for unfinished, and is given its end whatever its row says."""
    not_overtaken = transitions.not_overtaken

    def or_its_own(run: Run) -> Condition:
        return any_of(not_overtaken(run), Equals("execution", run.execution))

    def begun(self: Settling, tenant: TenantId, execution: str) -> Run | None:
        audits = self.reader.audits(tenant)
        return next((run_of(audit) for audit in audits if audit.execution == execution), None)

    monkeypatch.setattr(Settling, "_begun", begun)
    monkeypatch.setattr(transitions, "not_overtaken", or_its_own)


def _names_without_a_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    def tenant_of(self: Names, stack_id: str) -> TenantId:
        name = name_of(stack_id)
        if not name.startswith(self.tenant_prefix):
            raise StackNotOurs(name)
        return TenantId(name.removeprefix(self.tenant_prefix))

    monkeypatch.setattr(Names, "stack_of", lambda self, tenant: f"{self.tenant_prefix}{tenant}")
    monkeypatch.setattr(Names, "tenant_of", tenant_of)


def _stacks_by_their_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever was made for a tenant is taken for one of this control plane's."""

    def all_stacks(self: reconciler.Reconciler) -> tuple[dict[str, Stack], dict[str, Stack]]:
        return {each.name: each.stack for each in self.survey.all() if each.stack.tenant_id}, {}

    monkeypatch.setattr(reconciler.Reconciler, "_all_stacks", all_stacks)


def _create_whatever_was_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "refusal", lambda *_, **__: None)


def _revive_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call for a deleted tenant's queue is taken for one for the tenant."""
    monkeypatch.setattr(get_queue, "Request", lambda by="": Request(by=by, explicit=True))
    monkeypatch.setattr(get_queue, "decide", _decide_to_create)


def _decide_to_create(*args: Any, **named: Any) -> Any:
    from orchestrator.tenants.decisions import Deleted, StartCreate, decide

    decision = decide(*args, **named)
    attempts = [audit.attempt for audit in args[1] if audit.operation is Operation.CREATE and audit.version == args[2]]
    return StartCreate(1 + max(attempts, default=0)) if isinstance(decision, Deleted) else decision


def _publish_for_a_refused_create(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Settling, "_may_be_served", lambda _self, _run: True)


def _forget_the_queue_of_any_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    forget = Table.forget_queue

    def careless(self: InMemoryTable, tenant: TenantId, *, stack_id: str, vanished: bool) -> bool:
        metadata = self.metadata(tenant)
        return forget(self, tenant, stack_id=metadata.stack_id or "" if metadata else stack_id, vanished=vanished)

    def forget_queue(tenant: TenantId, *, stack_id: str, ledger: InMemoryTable, **_: Any) -> bool:
        return ledger.forget_queue(tenant, stack_id=stack_id, vanished=True)

    monkeypatch.setattr(Table, "forget_queue", careless)
    monkeypatch.setattr(queue_metadata, "forget_queue", forget_queue)
    monkeypatch.setattr("tests.simulation.aws.cloudformation.forget_queue", forget_queue)


def _never_settle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only who asks again heals what died."""
    monkeypatch.setattr(Settling, "settle", lambda *_, **__: settling.NothingToSettle())


def _settle_only_what_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """No schedule: an event that is lost leaves its operation open."""

    def idle(self: Environment) -> None:
        self.later(SETTLING_EVERY, self._on_schedule)

    monkeypatch.setattr(Environment, "_on_schedule", idle)


# Bugs that there were


def _publish_a_stack_that_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    publish = Table.publish

    def careless(self: InMemoryTable, run: Run, publication: Publication, **named: Any) -> None:
        self.change_metadata(run.tenant, gone_stack_id=None)
        publish(self, run, publication, **named)

    monkeypatch.setattr(Table, "publish", careless)


def _count_messages_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long it takes until CloudFormation can delete the stack."""
    monkeypatch.setitem(asl.states(machine("delete_tenant"))["PauseBeforeStart"], "Next", "StartStack")
    monkeypatch.setattr(deleting, "A_LOOK_IS_GOOD_FOR", timedelta(hours=1), raising=False)


def _believe_the_first_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executions, "EMPTY_FOR", timedelta())


def _updates_believe_the_first_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(updating.Looks, "left", timedelta())


def _update_of_a_resource_asks_for_the_tenant(monkeypatch: pytest.MonkeyPatch) -> None:
    create = Lifecycle.create
    monkeypatch.setattr(Lifecycle, "create", lambda *args, **named: create(*args, **{**named, "explicit": True}))


def _create_takes_the_version_of_the_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "same_content", lambda *_: False)


def _bring_back_at_the_control_planes_version(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (lifecycle, get_queue):
        monkeypatch.setattr(module, "version_to_create", lambda _metadata, _audits, current, _is_published: current)


def _adopt_whoever_is_at_it(monkeypatch: pytest.MonkeyPatch) -> None:
    adopt = Table.adopt

    def hasty(self: InMemoryTable, seen: UnlistedTenant, *args: Any) -> bool:
        lock = self.lock(seen.tenant)
        self.plant_lock(seen.tenant, None)
        try:
            return adopt(self, self.unlisted(seen.tenant) or seen, *args)
        finally:
            self.plant_lock(seen.tenant, lock.run if lock else None)

    monkeypatch.setattr(Table, "adopt", hasty)


def _adopt_berths_own_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    unlisted = Table.unlisted

    def all_earlier(self: InMemoryTable, tenant: TenantId) -> UnlistedTenant | None:
        seen = unlisted(self, tenant)
        everything = frozenset((audit.operation, audit.version) for audit in seen.audits) if seen else frozenset()
        return seen and replace(seen, earlier=everything)

    monkeypatch.setattr(Table, "unlisted", all_earlier)


def _find_stacks_by_their_name_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def by_name(tenant: TenantId, _metadata: Metadata | None, stacks: Any) -> Any:
        return stacks.find(stacks.names.stack_of(tenant))

    monkeypatch.setattr(own_stack, "find_stack", by_name)


def _forget_tenants_whose_stack_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (deleting, lifecycle, settling):
        monkeypatch.setattr(module, "why_not_adopted", lambda *_: None)


def _make_a_second_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tenant_stack, "has_unknown_stack", lambda *_: False)


def _leave_withdrawn_what_a_dead_delete_withdrew(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = Table.begin
    monkeypatch.setattr(Table, "begin", lambda *args, **named: begin(*args, **{**named, "restore": False}))


def _whoever_created_last_is_the_creator(monkeypatch: pytest.MonkeyPatch) -> None:
    def brought_into_being(resource: Requester, _metadata: Metadata | None, audits: list[Audit]) -> bool:
        creates = [audit for audit in audits if audit.operation is Operation.CREATE]
        latest = max(creates, key=lambda audit: audit.updated_at, default=None)
        return latest is not None and latest.request.requester == resource

    for module in (admission, tenant_queue):
        monkeypatch.setattr(module, "brought_into_being", brought_into_being)


def _anybodys_resource_describes_a_tenant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tenant_queue, "other_owner", lambda *_: None)


def _a_create_that_failed_is_nobodys(monkeypatch: pytest.MonkeyPatch) -> None:
    """As before 0.7.0: whose tenant it is, is recorded when a create succeeds."""

    def created_by(metadata: Metadata | None, _audits: object) -> Requester | None:
        served = metadata is not None and metadata.was_served
        return metadata.created_by if metadata is not None and served else None

    monkeypatch.setattr(admission, "owner_of", created_by)


def _describe_what_is_somebody_elses_by_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """A resource that was slow writes what it was allowed to when it looked."""
    describe = Table.describe
    monkeypatch.setattr(Table, "describe", lambda *args, **named: describe(*args, **{**named, "only_if": None}))


def _anybodys_resource_brings_back_a_tenant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "_deleted_for", lambda *_: True)


def _believe_every_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tenant_queue, "is_confirmed", lambda *_: True)


def _believe_that_it_was_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An event says so itself."""
    doubting = tenant_queue.answer

    def answer(claim: Claim, asked: TenantQueueRequest, *, confirmed: bool, **world: Any) -> object:
        if not confirmed:
            return doubting(claim, asked, confirmed=False, **world)
        return tenant_queue.settle(asked, since=world["since"], lifecycle=world["lifecycle"])

    monkeypatch.setattr("tests.simulation.actors.teams.answer", answer)


def _any_stack_that_is_at_work_confirms(monkeypatch: pytest.MonkeyPatch) -> None:
    """CloudFormation is asked about the stack, and not about the resource."""
    monkeypatch.setattr(
        tenant_queue,
        "is_confirmed",
        lambda claim, resources: resources.resource(claim.resource) is not None,
    )


def _lose_what_is_said_before_a_create_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    describe = Table.describe

    def deaf(self: InMemoryTable, tenant: TenantId, **named: Any) -> bool:
        said = {"labels": None, "pin": Pin()} if named.get("asked_for") else {}
        return describe(self, tenant, **{**named, **said})

    monkeypatch.setattr(Table, "describe", deaf)


def _describe_without_a_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    apply = Table.apply

    def without_changes(self: InMemoryTable, transition: Transition) -> bool:
        traces = [each for each in transition if isinstance(each, Append) and isinstance(each.entry, RecordedChange)]
        return apply(self, [each for each in transition if each not in traces])

    monkeypatch.setattr(Table, "apply", without_changes)


def _overlook_a_create_that_has_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lifecycle, "_introduce", lambda *_, **__: True)


def _last_to_begin_has_its_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """A create brings back a tenant although its delete was accepted after the create."""
    monkeypatch.setattr(admission, "_deleted_since", lambda *_: False)


def _same_token_for_every_create(monkeypatch: pytest.MonkeyPatch) -> None:
    start = creating.start
    monkeypatch.setattr(creating, "start", lambda *args, **named: start(*args, **{**named, "clock": FakeClock()}))


def _believe_events(monkeypatch: pytest.MonkeyPatch) -> None:
    """As 0.5.0 did: a stack's queue is what the event says."""
    monkeypatch.setattr(queue_metadata, "_queue_to_record", lambda _tenant, _stack, told, *_: told)


def _give_up_what_is_listed_late(monkeypatch: pytest.MonkeyPatch) -> None:
    usable = tenant_stack._usable

    def hasty(done: Done, stacks: Any, queues: Any) -> Done | NotReady | GaveUp:
        outcome = usable(done, stacks, queues)
        listed_late = isinstance(outcome, NotReady) and outcome != NotReady()
        return GaveUp(outcome.reason) if isinstance(outcome, NotReady) and listed_late else outcome

    monkeypatch.setattr(tenant_stack, "_usable", hasty)


def _refuse_what_is_listed_late(monkeypatch: pytest.MonkeyPatch) -> None:
    own_queue = queue_metadata._own_queue

    def strict(tenant: TenantId, *args: Any) -> Queue:
        queue = own_queue(tenant, *args)
        if queue is None:
            raise StackNotOurs(f"Tenant {tenant}: CloudFormation lists no queue.")
        return queue

    monkeypatch.setattr(queue_metadata, "_own_queue", strict)


def _adopt_any_stack_of_that_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_stack, "is_ours", lambda *_: True)
    monkeypatch.setattr(reconciler, "is_ours", lambda *_: True)


def _make_changes_by_their_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """As 0.5.0 did: whatever bears the name is executed, whoever drew it up."""

    def review(run: Run, stack: Stack | None, release: Release, *, stacks: Any, drafting: Any) -> None:
        if stack is not None and condition(stack.status) in (StackCondition.DONE, StackCondition.DONE_AT_OLD_VERSION):
            name = run.attempt.client_token
            stacks.draw_up_changes(run.tenant, stack.stack_id, release=release, name=name)
            drafting.ledger.remember_changes(run, name)

    monkeypatch.setattr(updating, "review", review)
    monkeypatch.setattr(updating, "not_asked_for", lambda *_, **__: None)


def _make_changes_whatever_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name cannot be guessed, but those that are drawn up can be listed."""
    remember = Table.remember_changes

    def remember_name(self: InMemoryTable, run: Run, change_set: str) -> None:
        remember(self, run, change_set.split("/")[1])

    monkeypatch.setattr(Table, "remember_changes", remember_name)
    monkeypatch.setattr(updating, "not_asked_for", lambda *_, **__: None)


@dataclass(frozen=True)
class PlantedBug:
    """A bug, what it is found out by, and where that takes the least time."""

    bug: Bug
    found: str
    faults: Faults | None = None
    actions: tuple[Action, ...] | None = None


SLOW = Faults(slow=0.9, hold=0.6)
LONG_ORPHANED_CALLS = replace(ORPHANED_CALLS, cut_short=0.02, hold=0.7, stack_hangs=0.3, lost_settlements=1.0)
NOT_ITS_OWN_TENANT = "end twice|overwrites what came after|but the tenant belongs to|takes the lock by table"
AT_WORK = "takes the lock of .*, which is at work"
BROUGHT_BACK = "brings back a deleted tenant, which nobody asked for"
LOST = "messages that nobody has received"
NOT_ITS_OWN = "which was never in a stack of its own"
BUGS = {
    "publish is not fenced": PlantedBug(_whoever_owns_it("publish"), NOT_ITS_OWN_TENANT, CRASHES),
    "remove is not fenced": PlantedBug(_whoever_owns_it("remove"), NOT_ITS_OWN_TENANT, CRASHES),
    "a lock that is held is taken": PlantedBug(_begin_with_a_lock_that_is_held, AT_WORK, None, CONCURRENT),
    "every holder counts as dead": PlantedBug(_every_holder_counts_as_dead, AT_WORK, None, CONCURRENT),
    "a delete does not withdraw": PlantedBug(_delete_without_withdrawing, "is served, not None"),
    "a refused delete leaves its tenant withdrawn": PlantedBug(
        _leave_withdrawn_what_a_refused_delete_withdrew, "None is served, not", None, DELETES_WITH_MESSAGES
    ),
    "a failure keeps the lock": PlantedBug(_keep_the_lock_after_a_failure, "but \\[\\] say Started"),
    "metadata before the end": PlantedBug(_metadata_before_the_end, "is served, not None"),
    "the lock is freed early": PlantedBug(_free_the_lock_early, "say Started"),
    "a lock is taken over without asking": PlantedBug(_take_over_without_asking, AT_WORK, LOST_RESULTS, CONCURRENT),
    "an operation is settled without asking": PlantedBug(_settle_without_asking, AT_WORK, LOST_RESULTS),
    "aborted counts as over": PlantedBug(_over_as_soon_as_aborted, AT_WORK, LONG_ORPHANED_CALLS, CONCURRENT),
    "an update is settled by its status": PlantedBug(
        _settle_an_update_by_its_status_alone, "has succeeded, but the stack is at", FAILING_STACKS
    ),
    "getQueue overlooks a delete": PlantedBug(_serve_what_is_being_deleted, "answer is Ready"),
    "a retry brings back the deleted": PlantedBug(_retry_whatever_was_deleted, BROUGHT_BACK, REPEATED_EVENTS, RETRIES),
    "a failure overwrites what came later": PlantedBug(
        _failure_over_a_later_attempt, "overwrites what came after|end twice", CRASHES, RETRIES
    ),
    "the index is trusted": PlantedBug(_trust_the_index, "end twice", ABORTED_EXECUTIONS),
    "stacks' names have no digest": PlantedBug(_names_without_a_digest, "tenants are in each other's way"),
    "stacks are known by their parameters": PlantedBug(_stacks_by_their_parameters, "is another control plane's"),
    "a create is never refused": PlantedBug(_create_whatever_was_deleted, "a deleted tenant", REPEATED_EVENTS),
    "a stray call brings back the deleted": PlantedBug(
        _revive_unasked, "is deleted, and the answer is Provisioning|which nobody asked for"
    ),
    "a refused create is published": PlantedBug(
        _publish_for_a_refused_create,
        "serves a tenant that is to be deleted",
        ABORTED_EXECUTIONS,
        (all_of_them_die,),
    ),
    "any stack's queue is forgotten": PlantedBug(_forget_the_queue_of_any_stack, "takes the queue of", REPEATED_EVENTS),
    "nothing is settled": PlantedBug(_never_settle, "for ever", ABORTED_EXECUTIONS),
    "nothing is settled on a schedule": PlantedBug(_settle_only_what_is_told, "for ever", ABORTED_EXECUTIONS),
    "a stack is published that has gone": PlantedBug(
        _publish_a_stack_that_has_gone, "there is no stack|gone with its stack", None, STACKS_DELETED_BY_HAND
    ),
    "messages are counted once": PlantedBug(_count_messages_once, LOST, STALE_COUNTS, DELETES_WITH_MESSAGES),
    "the first zero is believed": PlantedBug(_believe_the_first_zero, LOST, STALE_COUNTS, DELETES_WITH_MESSAGES),
    "an update believes the first zero": PlantedBug(
        _updates_believe_the_first_zero,
        "takes away a queue with .* messages",
        STALE_COUNTS,
        (send, send, receive, upgrade),
    ),
    "an update of a resource asks for the tenant": PlantedBug(
        _update_of_a_resource_asks_for_the_tenant,
        f"{BROUGHT_BACK}|deletes .*, which was brought into being by",
        None,
        (team_creates, team_creates, *[team_updates] * 4),
    ),
    "a create takes the version of the stack": PlantedBug(
        _create_takes_the_version_of_the_stack, "is served, not", None, CONCURRENT
    ),
    "a tenant is brought back at the control plane's version": PlantedBug(
        _bring_back_at_the_control_planes_version,
        "vanished at .*, and was brought back at",
        None,
        STACKS_DELETED_BY_HAND,
    ),
    "a tenant is adopted while an operation is at it": PlantedBug(
        _adopt_whoever_is_at_it, "adopts what belongs to", SLOW, (adopt, adopt, all_at_once, upgrade, delete)
    ),
    "Berth's own operations are adopted": PlantedBug(
        _adopt_berths_own_operations, "which is Berth's own", None, LEGACY_TENANTS
    ),
    "stacks are found by their names only": PlantedBug(
        _find_stacks_by_their_name_only,
        "has deleted, but there is|several stacks|there is no stack",
        None,
        LEGACY_TENANTS,
    ),
    "a tenant is forgotten whose stack is not known": PlantedBug(
        _forget_tenants_whose_stack_is_not_known, "has deleted, but there is", None, LEGACY_TENANTS
    ),
    "a tenant whose stack is not known gets a second one": PlantedBug(
        _make_a_second_stack, "several stacks", None, (admitted_long_ago, all_at_once, ask)
    ),
    "a dead delete leaves its tenant withdrawn": PlantedBug(
        _leave_withdrawn_what_a_dead_delete_withdrew, "None is served, not", ABORTED_EXECUTIONS, CONCURRENT
    ),
    "any resource describes a tenant": PlantedBug(
        _anybodys_resource_describes_a_tenant,
        "describes .*, which was brought into being by",
        None,
        TEAMS_AND_OPERATORS,
    ),
    "a create that failed is nobody's": PlantedBug(
        _a_create_that_failed_is_nobodys, "describes .*, which was brought into being by", None, TEAMS_AND_OPERATORS
    ),
    "a slow resource describes a tenant": PlantedBug(
        _describe_what_is_somebody_elses_by_now,
        "describes .*, which was brought into being by",
        SLOW,
        (team_creates, team_creates, ask, create, team_updates),
    ),
    "any resource brings back a tenant": PlantedBug(
        _anybodys_resource_brings_back_a_tenant, "brings back .*, which was deleted by", None, TEAMS_AND_OPERATORS
    ),
    "every event is believed": PlantedBug(_believe_every_event, "forged event", None, TEAMS_AND_OPERATORS),
    "an event is believed that it was confirmed": PlantedBug(
        _believe_that_it_was_confirmed, "forged event", None, TEAMS_AND_OPERATORS
    ),
    "an event about any resource is believed": PlantedBug(
        _any_stack_that_is_at_work_confirms, "forged event", None, TEAMS_AND_OPERATORS
    ),
    "who created last is the creator": PlantedBug(
        _whoever_created_last_is_the_creator,
        "deletes .*, which was brought into being by",
        STALE_COUNTS,
        RECREATED_TENANTS,
    ),
    "labels are lost before a create begins": PlantedBug(
        _lose_what_is_said_before_a_create_begins, "was asked for with", None, ORDERS_BEFORE_BEGIN
    ),
    "a pin leaves no trace": PlantedBug(_describe_without_a_trace, "without a trace", None, ORDERS_BEFORE_BEGIN),
    "a create that has not begun is overlooked": PlantedBug(
        _overlook_a_create_that_has_not_begun,
        "There is no tenant .* had been accepted before",
        actions=(create_and_delete, ask),
    ),
    "the last to begin has its way": PlantedBug(
        _last_to_begin_has_its_way,
        BROUGHT_BACK,
        Faults(slow=0.6, hold=0.5),
        (create, create, create, delete, create_and_delete),
    ),
    "events are believed": PlantedBug(_believe_events, NOT_ITS_OWN, None, ATTACKS),
    "a queue that is listed late is given up": PlantedBug(
        _give_up_what_is_listed_late, "was late to list", ABORTED_EXECUTIONS
    ),
    "a stack whose queue is listed late is refused": PlantedBug(
        _refuse_what_is_listed_late, "may not provide", ABORTED_EXECUTIONS
    ),
    "any stack of that name is adopted": PlantedBug(
        _adopt_any_stack_of_that_name, f"{NOT_ITS_OWN}|which somebody else made|there is no stack", None, ATTACKS
    ),
    "changes are made by a name that can be guessed": PlantedBug(
        _make_changes_by_their_name, "which is no release's", None, ATTACKS
    ),
    "changes are made by a name that can be listed": PlantedBug(
        _make_changes_whatever_they_are, "which is no release's", None, ATTACKS
    ),
    "every create has the same token": PlantedBug(
        _same_token_for_every_create, "CloudFormation was asked", FAILING_STACKS
    ),
}
