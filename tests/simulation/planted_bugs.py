"""Planted bugs: ways in which a promise was once broken, or might be. The checks have to find each of them.

Most take something out of the product that keeps a promise. Each has the faults and actions that show it soonest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from orchestrator.adapters import migration
from orchestrator.adapters.migration import Seen
from orchestrator.common.errors import StackNotOurs
from orchestrator.common.stack_arns import name_of
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.writes import Check, Condition, Equals, RowExists, any_of
from orchestrator.reconciling import checking, settling, surveying
from orchestrator.reconciling.health import SETTLING_EVERY
from orchestrator.reconciling.ports import SurveyedStack
from orchestrator.reconciling.settling import Settling, run_of
from orchestrator.releases.records import Release
from orchestrator.tenants import (
    admission,
    creating,
    deleting,
    get_queue,
    lifecycle,
    operation_transitions,
    operations,
    order_results,
    own_stack,
    provisioning,
    queue_metadata,
    reviews,
    tenant_queue,
    tenant_stack,
    updating,
)
from orchestrator.tenants.decisions import Deleted, StartCreate
from orchestrator.tenants.history import RecordedChange
from orchestrator.tenants.lifecycle import Lifecycle
from orchestrator.tenants.names import Names
from orchestrator.tenants.order_results import OrderResult
from orchestrator.tenants.outcomes import Done, GaveUp, NotReady
from orchestrator.tenants.ports import Pin, Publication
from orchestrator.tenants.ready import Ready
from orchestrator.tenants.records import Audit, Lock, Metadata, Operation, Queue, Request, Run, Status
from orchestrator.tenants.resource_requests import Claim, TenantQueueRequest
from orchestrator.tenants.stack_ports import Stack
from orchestrator.tenants.stack_resources import Requester
from orchestrator.tenants.stack_status import StackCondition, condition
from orchestrator.tenants.writes import Append, Transition
from tests.fakes import NAMES, VERSION, FakeClock, FakeExecutions, InMemoryTable
from tests.simulation import world
from tests.simulation.actions import (
    ATTACKS,
    CONCURRENT,
    DELETES_WITH_MESSAGES,
    LEGACY_TENANTS,
    ORDERS_BEFORE_BEGIN,
    RECREATED_TENANTS,
    RETRIES,
    STACKS_CHANGED_BY_HAND,
    STACKS_DELETED_BY_HAND,
    TEAMS_AND_OPERATORS,
    Action,
    admitted_long_ago,
    all_at_once,
    all_of_them_die,
    ask,
    create,
    create_and_delete,
    delete,
    delete_the_stack_by_hand,
    receive,
    send,
    team_creates,
    team_updates,
    upgrade,
)
from tests.simulation.environment import Environment
from tests.simulation.faults import (
    ABORTED_EXECUTIONS,
    CRASHES,
    FAILING_STACKS,
    LOST_RESULTS,
    NO_FAULTS,
    ORPHANED_CALLS,
    REPEATED_EVENTS,
    STALE_COUNTS,
    Faults,
)
from tests.simulation.planting import Bug, all_of, always, replacing, wrapping

Table = InMemoryTable


# Locks and fences


def _whoever_owns_it(method: str) -> Bug:
    """A write of a run goes through even though another run owns the tenant, or nobody."""

    @wrapping(method, Table)
    def write(fenced: Any, self: InMemoryTable, run: Run, *args: Any, **named: Any) -> None:
        others = self.lock(run.tenant)
        self.plant_lock(run.tenant, run)
        fenced(self, run, *args, **named)
        if others and others.run.execution != run.execution:
            self.plant_lock(run.tenant, others.run)

    return write


@wrapping("begin", Table)
def _begin_with_a_lock_that_is_held(begin: Any, self: InMemoryTable, run: Run, **named: Any) -> Any:
    lock = self.lock(run.tenant)
    if lock and lock.run.execution != run.execution:
        self.plant_lock(run.tenant, None)
    return begin(self, run, **named)


@wrapping("fail", Table)
def _keep_the_lock_after_a_failure(fail: Any, self: InMemoryTable, run: Run, *args: Any, **named: Any) -> Any:
    lock = self.lock(run.tenant)
    recorded = fail(self, run, *args, **named)
    self.plant_lock(run.tenant, lock.run if lock else None)
    return recorded


@wrapping("remember_started", Table)
def _free_the_lock_early(remember: Any, self: InMemoryTable, run: Run, task_token: str, **started: Any) -> None:
    remember(self, run, task_token, **started)
    self.plant_lock(run.tenant, None)


def _old_enough(holder: Lock, *, clock: FakeClock, **_: object) -> bool:
    return clock.now() - holder.run.started_at > operations.CHECK_HOLDER_AFTER


# Serving


@wrapping("record_queue", Table)
def _metadata_before_the_end(record: Any, self: InMemoryTable, tenant: TenantId, **named: Any) -> Any:
    """The stack itself says at which version it is, before anybody has seen that its queue can be used."""
    recorded = record(self, tenant, **named)
    metadata = self.metadata(tenant)
    self.change_metadata(tenant, version=(metadata and metadata.version) or VERSION)
    return recorded


@wrapping("begin", Table)
def _delete_without_withdrawing(begin: Any, self: InMemoryTable, run: Run, **named: Any) -> Any:
    holder = begin(self, run, **named)
    self.change_metadata(run.tenant, withdrawn_by=None)
    return holder


def _without_restoring(method: str) -> Bug:
    @wrapping(method, Table)
    def write(original: Any, *args: Any, **named: Any) -> Any:
        return original(*args, **{**named, "restore": False})

    return write


def _ready_if_known(metadata: Metadata | None) -> Ready | None:
    known = metadata and metadata.queue and metadata.version
    return Ready(metadata.queue, metadata.version) if metadata and known else None  # type: ignore[arg-type]


@wrapping("publish", Table)
def _publish_a_stack_that_has_gone(
    publish: Any, self: InMemoryTable, run: Run, publication: Publication, **named: Any
) -> None:
    self.change_metadata(run.tenant, gone_stack_id=None)
    publish(self, run, publication, **named)


def _forget_the_queue_of_any_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    @wrapping("forget_queue", Table)
    def careless(forget: Any, self: InMemoryTable, tenant: TenantId, *, stack_id: str, **_: Any) -> Any:
        metadata = self.metadata(tenant)
        return forget(self, tenant, stack_id=metadata.stack_id or "" if metadata else stack_id)

    def forget_queue(tenant: TenantId, *, stack_id: str, ledger: InMemoryTable, **_: Any) -> bool:
        return ledger.forget_queue(tenant, stack_id=stack_id)

    careless(monkeypatch)
    replacing("forget_queue", forget_queue, queue_metadata)(monkeypatch)


# The ends of operations


@wrapping("settle", Settling)
def _settle_without_asking(settle: Any, self: Settling, given: Run, **named: Any) -> Any:
    """An event says that the execution has ended, so it has; the index says so, too."""

    class Over(FakeExecutions):
        def is_over(self, execution: str) -> bool:  # noqa: ARG002
            return True

    return settle(replace(self, executions=Over()), given, **named)


@wrapping("inspect_stack", settling)
def _settle_an_update_by_its_status_alone(inspect: Any, run: Run, *, stacks: Any, **named: Any) -> Any:
    stack: Stack | None = stacks.find(NAMES.stack_of(run.tenant))
    stands = stack and condition(stack.status) in (StackCondition.DONE, StackCondition.DONE_AT_OLD_VERSION)
    if run.attempt.operation is Operation.UPDATE and stack and stands and stack.queue:
        return Done(stack.stack_id, stack.queue, run.attempt.version)
    return inspect(run, stacks=stacks, **named)


def _trust_the_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every listed operation counts as unfinished and is ended, whatever its row says."""
    not_overtaken = operation_transitions.not_overtaken

    def or_its_own(run: Run) -> Condition:
        return any_of(not_overtaken(run), Equals("execution", run.execution))

    def begun(self: Settling, tenant: TenantId, execution: str) -> Run | None:
        audits = self.reader.audits(tenant)
        return next((run_of(audit) for audit in audits if audit.execution == execution), None)

    monkeypatch.setattr(Settling, "_begun", begun)
    monkeypatch.setattr(operation_transitions, "not_overtaken", or_its_own)


def _no_schedule(self: Environment) -> None:
    """An event that is lost leaves its operation open."""
    self.later(SETTLING_EVERY, self._on_schedule)


# Deleted tenants stay deleted


def _retry_whatever_was_deleted(self: Lifecycle, tenant: TenantId, by: str) -> OrderResult | None:
    """The latest operation is tried again, and counts as if somebody had asked for the tenant only now."""
    latest = max(self.reader.audits(tenant), key=lambda audit: audit.updated_at, default=None)
    if latest is None or latest.status is Status.SUCCESS:
        return None
    request = replace(latest.request, by=by, explicit=True, asked_at=None)
    metadata = self.reader.metadata(tenant)
    return self._order(tenant, latest.operation, latest.version or self.version, request, metadata)


@wrapping("decide", provisioning)
def _create_what_was_deleted(decide: Any, *args: Any, **named: Any) -> Any:
    decision = decide(*args, **named)
    attempts = [audit.attempt for audit in args[1] if audit.operation is Operation.CREATE and audit.version == args[2]]
    return StartCreate(1 + max(attempts, default=0)) if isinstance(decision, Deleted) else decision


_revive_unasked = all_of(
    replacing("Request", lambda by="": Request(by=by, explicit=True), provisioning), _create_what_was_deleted
)
"""A call for a deleted tenant's queue is taken for one for the tenant."""


@wrapping("create", Lifecycle)
def _update_of_a_resource_asks_for_the_tenant(create: Any, *args: Any, **named: Any) -> Any:
    return create(*args, **{**named, "explicit": True})


# Stacks, their names and their owners


def _tenant_of_prefix(self: Names, stack_id: str) -> TenantId:
    name = name_of(stack_id)
    if not name.startswith(self.tenant_prefix):
        raise StackNotOurs(name)
    return TenantId(name.removeprefix(self.tenant_prefix))


_names_without_a_digest = all_of(
    replacing("stack_of", lambda self, tenant: f"{self.tenant_prefix}{tenant}", Names),
    replacing("tenant_of", _tenant_of_prefix, Names),
)


def _is_any_tenants(_self: surveying.Surveying, each: SurveyedStack) -> bool:
    """Every stack with a tenant parameter counts as this control plane's."""
    return each.stack.tenant_id is not None


def _by_name(tenant: TenantId, _metadata: Metadata | None, stacks: Any) -> Any:
    return stacks.find(stacks.names.stack_of(tenant))


@wrapping("start", creating)
def _same_token_for_every_create(start: Any, *args: Any, **named: Any) -> Any:
    return start(*args, **{**named, "clock": FakeClock()})


@wrapping("_usable", tenant_stack)
def _give_up_what_is_listed_late(usable: Any, *given: Any) -> Done | NotReady | GaveUp:
    outcome: Done | NotReady = usable(*given)
    listed_late = isinstance(outcome, NotReady) and outcome != NotReady()
    return GaveUp(outcome.reason) if isinstance(outcome, NotReady) and listed_late else outcome


@wrapping("_own_queue", queue_metadata)
def _refuse_what_is_listed_late(own_queue: Any, tenant: TenantId, *args: Any) -> Queue:
    queue: Queue | None = own_queue(tenant, *args)
    if queue is None:
        raise StackNotOurs(f"Tenant {tenant}: CloudFormation lists no queue.")
    return queue


def _make_changes_by_their_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """A change set is executed by its name, whoever created it."""

    def review(run: Run, stack: Stack, release: Release, *, stacks: Any, drafting: Any) -> None:
        name = run.attempt.client_token
        stacks.create_change_set(run.tenant, stack.stack_id, release=release, name=name)
        drafting.ledger.remember_change_set(run, name)

    monkeypatch.setattr(updating, "_review", review)
    monkeypatch.setattr(updating, "not_asked_for", always(None))


@wrapping("remember_change_set", Table)
def _remember_names_of_changes(remember: Any, self: InMemoryTable, run: Run, change_set: str) -> None:
    """The name cannot be guessed, but those that are drawn up can be listed."""
    remember(self, run, change_set.split("/")[1])


# Messages


@wrapping("check_messages", deleting)
def _count_messages_once(check: Any, run: Run, *, empty_since: datetime | None, **named: Any) -> Any:
    """However long it takes until CloudFormation can delete the stack."""
    return None if empty_since is not None else check(run, empty_since=empty_since, **named)


# Adopting


@wrapping("adopt", Table)
def _adopt_despite_the_lock(adopt: Any, self: InMemoryTable, writes: Transition) -> Any:
    (check,) = (write for write in writes if isinstance(write, Check))
    lock = self.lock(check.key.tenant)
    self.plant_lock(check.key.tenant, None)
    try:
        return adopt(self, writes)
    finally:
        self.plant_lock(check.key.tenant, lock.run if lock else None)


_adopt_during_an_operation = all_of(_adopt_despite_the_lock, replacing("why_not_now", always(None), migration))


@wrapping("seen", Table)
def _take_all_operations_for_earlier(read: Any, self: InMemoryTable, tenant: TenantId) -> Seen:
    seen: Seen = read(self, tenant)
    return replace(seen, earlier=frozenset(seen.audits))


_adopt_berths_own_operations = all_of(
    _take_all_operations_for_earlier, replacing("Missing", always(RowExists()), migration)
)


# Resources of other teams, labels and pins


def _created_last(resource: Requester, _metadata: Metadata | None, audits: list[Audit]) -> bool:
    creates = [audit for audit in audits if audit.operation is Operation.CREATE]
    latest = max(creates, key=lambda audit: audit.updated_at, default=None)
    return latest is not None and latest.request.requester == resource


def _owner_once_served(metadata: Metadata | None, _audits: object) -> Requester | None:
    """The owner of a tenant is recorded when a create succeeds."""
    served = metadata is not None and metadata.was_served
    return metadata.created_by if metadata is not None and served else None


@wrapping("describe", Table)
def _describe_what_is_somebody_elses_by_now(describe: Any, *args: Any, **named: Any) -> Any:
    """A slow resource writes what it was allowed to write when it looked."""
    return describe(*args, **{**named, "only_if": None})


@wrapping("describe", Table)
def _lose_what_is_said_before_a_create_begins(describe: Any, *args: Any, **named: Any) -> Any:
    said = {"labels": None, "pin": Pin()} if named.get("asked_for") else {}
    return describe(*args, **{**named, **said})


@wrapping("apply", Table)
def _describe_without_a_trace(apply: Any, self: InMemoryTable, transition: Transition) -> Any:
    traces = [each for each in transition if isinstance(each, Append) and isinstance(each.entry, RecordedChange)]
    return apply(self, [each for each in transition if each not in traces])


@wrapping("answer", tenant_queue)
def _believe_that_it_was_confirmed(
    doubting: Any, claim: Claim, asked: TenantQueueRequest, *, confirmed: bool, **named: Any
) -> Any:
    """An event says so itself."""
    if not confirmed:
        return doubting(claim, asked, confirmed=False, **named)
    return tenant_queue.settle(asked, since=named["since"], lifecycle=named["lifecycle"])


@dataclass(frozen=True)
class PlantedBug:
    """A bug, what it is found out by, and where that takes the least time."""

    bug: Bug
    found: str
    faults: Faults | None = None
    actions: tuple[Action, ...] | None = None


SLOW = Faults(slow=0.9, suspend=0.6)
LONG_ORPHANED_CALLS = replace(ORPHANED_CALLS, cut_short=0.02, suspend=0.7, stack_hangs=0.3, lost_settlements=1.0)
NOT_ITS_OWN_TENANT = "end twice|overwrites what came after|but the tenant belongs to|takes the lock by table"
AT_WORK = "takes the lock of .*, which is at work"
BROUGHT_BACK = "brings back a deleted tenant, which nobody asked for"
INHERITED = "brings back a deleted tenant as the one that was created at"
LOST = "messages that nobody has received"
NOT_ITS_OWN = "which was never in a stack of its own"
BUGS = {
    "publish is not fenced": PlantedBug(_whoever_owns_it("publish"), NOT_ITS_OWN_TENANT, CRASHES),
    "remove is not fenced": PlantedBug(_whoever_owns_it("remove"), NOT_ITS_OWN_TENANT, CRASHES),
    "a lock that is held is taken": PlantedBug(
        _begin_with_a_lock_that_is_held, f"{AT_WORK}|say Started|is served, not|has the history", None, CONCURRENT
    ),
    "every holder counts as dead": PlantedBug(
        replacing("is_dead", always(True), operations), AT_WORK, None, CONCURRENT
    ),
    "a delete does not withdraw": PlantedBug(_delete_without_withdrawing, "is served, not None"),
    "a refused delete leaves its tenant withdrawn": PlantedBug(
        _without_restoring("fail"), "None is served, not", None, DELETES_WITH_MESSAGES
    ),
    "a failure keeps the lock": PlantedBug(_keep_the_lock_after_a_failure, "but \\[\\] say Started"),
    "metadata before the end": PlantedBug(_metadata_before_the_end, "is served, not None"),
    "the lock is freed early": PlantedBug(_free_the_lock_early, "say Started"),
    "a lock is taken over without asking": PlantedBug(
        replacing("is_dead", _old_enough, operations), AT_WORK, LOST_RESULTS, CONCURRENT
    ),
    "an operation is settled without asking": PlantedBug(_settle_without_asking, AT_WORK, LOST_RESULTS),
    "aborted counts as over": PlantedBug(
        replacing("is_over", lambda self, execution: not self.is_running(execution), FakeExecutions),
        f"{AT_WORK}|{INHERITED}",
        LONG_ORPHANED_CALLS,
        CONCURRENT,
    ),
    "an update is settled by its status": PlantedBug(
        _settle_an_update_by_its_status_alone, "has succeeded, but the stack is at", FAILING_STACKS
    ),
    "getQueue overlooks a delete": PlantedBug(replacing("ready", _ready_if_known, get_queue), "answer is Ready"),
    "a retry brings back the deleted": PlantedBug(
        replacing("retry", _retry_whatever_was_deleted, Lifecycle), BROUGHT_BACK, REPEATED_EVENTS, RETRIES
    ),
    "a failure overwrites what came later": PlantedBug(
        all_of(*(replacing(rule, always(None), operation_transitions) for rule in ("not_overtaken", "not_in_the_way"))),
        "overwrites what came after|end twice",
        CRASHES,
        RETRIES,
    ),
    "the index is trusted": PlantedBug(_trust_the_index, "end twice", ABORTED_EXECUTIONS),
    "stacks' names have no digest": PlantedBug(_names_without_a_digest, "tenants are in each other's way"),
    "stacks are known by their parameters": PlantedBug(
        replacing("_is_named", _is_any_tenants, surveying.Surveying), "is another control plane's"
    ),
    "a create is never refused": PlantedBug(
        replacing("refusal", always(None), operations), "a deleted tenant", REPEATED_EVENTS
    ),
    "a stray call brings back the deleted": PlantedBug(
        _revive_unasked, "is deleted, and the answer is Provisioning|which nobody asked for"
    ),
    "a refused create is published": PlantedBug(
        replacing("_may_be_served", always(True), Settling),
        "serves a tenant that is to be deleted",
        ABORTED_EXECUTIONS,
        (all_of_them_die,),
    ),
    "any stack's queue is forgotten": PlantedBug(_forget_the_queue_of_any_stack, "takes the queue of", REPEATED_EVENTS),
    "nothing is settled": PlantedBug(
        replacing("settle", always(settling.NothingToSettle()), Settling), "for ever", ABORTED_EXECUTIONS
    ),
    "nothing is settled on a schedule": PlantedBug(
        replacing("_on_schedule", _no_schedule, Environment), "for ever", ABORTED_EXECUTIONS
    ),
    "a stack is published that has gone": PlantedBug(
        _publish_a_stack_that_has_gone, "there is no stack|gone with its stack", None, STACKS_DELETED_BY_HAND
    ),
    "messages are counted once": PlantedBug(_count_messages_once, LOST, STALE_COUNTS, DELETES_WITH_MESSAGES),
    "the first zero is believed": PlantedBug(
        replacing("EMPTY_FOR", timedelta(), world), LOST, STALE_COUNTS, DELETES_WITH_MESSAGES
    ),
    "an update believes the first zero": PlantedBug(
        replacing("left", timedelta(), updating.EmptyCheck),
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
        replacing("same_content", always(False), operations),
        "is served, not",
        None,
        (create, upgrade, upgrade, admitted_long_ago),
    ),
    "a tenant is brought back at the control plane's version": PlantedBug(
        replacing("version_to_create", lambda _metadata, _audits, current, _: current, lifecycle, provisioning),
        "vanished at .*, and was brought back at",
        None,
        STACKS_DELETED_BY_HAND,
    ),
    "a tenant is adopted while an operation is at it": PlantedBug(
        all_of(_adopt_during_an_operation, replacing("why_not_now", always(None), migration)),
        "adopts what belongs to",
        SLOW,
        LEGACY_TENANTS,
    ),
    "Berth's own operations are adopted": PlantedBug(
        _adopt_berths_own_operations, "which is Berth's own", None, LEGACY_TENANTS
    ),
    "stacks are found by their names only": PlantedBug(
        replacing("find_stack", _by_name, own_stack),
        "has deleted, but there is|several stacks|there is no stack",
        None,
        LEGACY_TENANTS,
    ),
    "a tenant is forgotten whose stack is not known": PlantedBug(
        replacing("why_not_adopted", always(None), deleting, order_results, settling),
        "has deleted, but there is",
        None,
        LEGACY_TENANTS,
    ),
    "a tenant whose stack is not known gets a second one": PlantedBug(
        replacing("has_unknown_stack", always(False), tenant_stack),
        "several stacks",
        None,
        (admitted_long_ago, all_at_once, ask),
    ),
    "a dead delete leaves its tenant withdrawn": PlantedBug(
        _without_restoring("begin"), "None is served, not", ABORTED_EXECUTIONS, CONCURRENT
    ),
    "any resource describes a tenant": PlantedBug(
        replacing("other_owner", always(None), tenant_queue),
        "describes .*, which was brought into being by",
        None,
        TEAMS_AND_OPERATORS,
    ),
    "a create that failed is nobody's": PlantedBug(
        replacing("owner_of", _owner_once_served, admission),
        "describes .*, which was brought into being by",
        None,
        TEAMS_AND_OPERATORS,
    ),
    "a slow resource describes a tenant": PlantedBug(
        _describe_what_is_somebody_elses_by_now,
        "describes .*, which was brought into being by",
        SLOW,
        (team_creates, team_creates, ask, create, team_updates),
    ),
    "any resource brings back a tenant": PlantedBug(
        replacing("_deleted_for", always(True), admission),
        "brings back .*, which was deleted by",
        None,
        TEAMS_AND_OPERATORS,
    ),
    "every event is believed": PlantedBug(
        replacing("is_confirmed", always(True), tenant_queue), "forged event", None, TEAMS_AND_OPERATORS
    ),
    "an event is believed that it was confirmed": PlantedBug(
        _believe_that_it_was_confirmed, "forged event", None, TEAMS_AND_OPERATORS
    ),
    "an event about any resource is believed": PlantedBug(
        replacing(
            "is_confirmed", lambda claim, resources: resources.resource(claim.resource) is not None, tenant_queue
        ),
        "forged event",
        None,
        TEAMS_AND_OPERATORS,
    ),
    "who created last is the creator": PlantedBug(
        replacing("is_owner", _created_last, admission, tenant_queue),
        "deletes .*, which was brought into being by",
        STALE_COUNTS,
        RECREATED_TENANTS,
    ),
    "who creates a tenant again inherits its life": PlantedBug(
        replacing("_is_created_as_new", always(False), operation_transitions),
        INHERITED,
        None,
        RECREATED_TENANTS,
    ),
    "labels are lost before a create begins": PlantedBug(
        _lose_what_is_said_before_a_create_begins, "was asked for with", None, ORDERS_BEFORE_BEGIN
    ),
    "a pin leaves no trace": PlantedBug(_describe_without_a_trace, "without a trace", None, ORDERS_BEFORE_BEGIN),
    "a create that has not begun is overlooked": PlantedBug(
        replacing("record_create", always(True), lifecycle),
        "Tenant .* does not exist.* had been accepted before",
        actions=(create_and_delete, ask),
    ),
    "the last to begin has its way": PlantedBug(
        replacing("_deleted_since", always(False), admission),
        BROUGHT_BACK,
        Faults(slow=0.6, suspend=0.5),
        (create, create, create, delete, create_and_delete),
    ),
    "events are believed": PlantedBug(
        replacing("_queue_to_record", lambda _tenant, _stack, response, *_: response, queue_metadata),
        NOT_ITS_OWN,
        None,
        ATTACKS,
    ),
    "a queue that is listed late is given up": PlantedBug(
        _give_up_what_is_listed_late, "was late to list", Faults(stale=1.0), (create, create, delete)
    ),
    "a stack whose queue is listed late is refused": PlantedBug(
        _refuse_what_is_listed_late, "may not provide", ABORTED_EXECUTIONS
    ),
    "any stack of that name is adopted": PlantedBug(
        replacing("is_ours", always(True), own_stack, checking),
        f"{NOT_ITS_OWN}|which somebody else made|there is no stack",
        None,
        ATTACKS,
    ),
    "changes are made by a name that can be guessed": PlantedBug(
        _make_changes_by_their_name, "which is no release's", None, ATTACKS
    ),
    "changes are made by a name that can be listed": PlantedBug(
        all_of(_remember_names_of_changes, replacing("not_asked_for", always(None), updating)),
        "which is no release's",
        None,
        ATTACKS,
    ),
    "a stack that was changed by hand is taken for the recorded one": PlantedBug(
        replacing("_same_moment", always(True), reviews), "takes away a queue with", NO_FAULTS, STACKS_CHANGED_BY_HAND
    ),
    "every create has the same token": PlantedBug(
        _same_token_for_every_create,
        "CloudFormation was asked",
        NO_FAULTS,
        (create, delete_the_stack_by_hand, delete_the_stack_by_hand),
    ),
}
