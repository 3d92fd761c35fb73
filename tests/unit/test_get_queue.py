"""The use case around the decision: what it reads, what it starts, and when it asks about executions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from orchestrator.common.errors import Unsettled
from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.deadlines import LEGACY_MAX_RUN_TIME
from orchestrator.tenants.decisions import BeingDeleted, Deleted, Failed, NotProvisioned, Unknown
from orchestrator.tenants.outcomes import Begun, GaveUp
from orchestrator.tenants.ports import Pin, Publication
from orchestrator.tenants.provisioning import CHECK_EXECUTION_AFTER, Provisioning
from orchestrator.tenants.ready import Ready
from orchestrator.tenants.records import START_GRACE_PERIOD, Attempt, Audit, Metadata, Operation, Request, Status
from tests.fakes import (
    ACME,
    EXPLICIT,
    NOON,
    QUEUE,
    QUEUE_TABOO,
    VERSION,
    FakeExecutions,
    InMemoryTable,
    World,
    a_release,
    a_run,
    an_attempt,
    an_audit,
    execution_arn,
    some_metadata,
    take,
)

FIRST = execution_arn(an_attempt(1).name)
SECOND = execution_arn(an_attempt(2).name)
THIRD = execution_arn(an_attempt(3).name)

A_MOMENT = timedelta(milliseconds=1)


class Asking(World):
    """getQueue, where one release is published."""

    def __init__(self, **fakes: Any) -> None:
        super().__init__(published=[VERSION], **fakes)

    def publish(self) -> None:
        self.table.plant_metadata(some_metadata())

    def begin_what_was_started(self) -> Begun | GaveUp:
        """The first step of the execution that was started last."""
        attempt, request = self.executions.started[-1]
        run = a_run(attempt.number, version=attempt.version, request=request, started_at=self.clock.now())
        began = self.begin(run)
        assert isinstance(began, Begun | GaveUp)
        return began


@pytest.fixture
def world() -> Asking:
    return Asking()


class CountingReader(InMemoryTable):
    def __init__(self) -> None:
        super().__init__()
        self.reads: list[str] = []

    def metadata(self, tenant: TenantId) -> Metadata | None:
        self.reads.append("metadata")
        return super().metadata(tenant)

    def audits(self, tenant: TenantId) -> Sequence[Audit]:
        self.reads.append("audits")
        return super().audits(tenant)


def test_a_ready_tenant_costs_one_read_of_its_metadata_and_nothing_else() -> None:
    table, executions = CountingReader(), FakeExecutions()
    table.plant_metadata(some_metadata())

    answer = Asking(table=table, executions=executions).get_queue(ACME)

    assert answer == Ready(QUEUE, VERSION)
    assert table.reads == ["metadata"]
    assert not executions.inputs
    assert not executions.asked_about


def test_audits_are_read_before_metadata_so_that_a_create_finishing_in_between_is_never_taken_for_vanished() -> None:
    class FinishesInBetween(InMemoryTable):
        def audits(self, tenant: TenantId) -> Sequence[Audit]:
            seen = list(super().audits(tenant))
            self.publish(run, Publication("stack-1", QUEUE, VERSION, None), at=NOON)
            return seen

    table, executions, run = FinishesInBetween(), FakeExecutions(), a_run()
    take(table, run)

    assert isinstance(Asking(table=table, executions=executions).get_queue(ACME), Ready)
    assert not executions.inputs


def test_an_unknown_tenant_is_started_as_the_first_attempt_at_the_current_version(world: Asking) -> None:
    assert world.get_queue(ACME) == Provisioning(FIRST)
    assert world.executions.started == [(an_attempt(1), Request())]


def test_a_tenant_that_is_pinned_is_started_at_the_version_of_its_pin(world: Asking) -> None:
    world.table.plant_metadata(some_metadata(queue=None, version=None, pinned_version="0.0.7"))
    world.get_queue(ACME)
    assert world.executions.started == [(an_attempt(1, version="0.0.7"), Request())]


def vanished(version: str) -> Metadata:
    return replace(some_metadata(queue=None, version=None, last_version=version), stack_id=None)


def test_a_tenant_whose_queue_has_vanished_is_started_at_the_version_that_it_had(world: Asking) -> None:
    world.table.record_release(a_release("0.0.7"))
    world.table.plant_metadata(vanished("0.0.7"))
    world.get_queue(ACME)
    assert world.executions.started == [(an_attempt(1, version="0.0.7"), Request())]


def test_a_failed_create_at_the_version_that_a_tenant_had_is_not_retried_at_the_current_version(
    world: Asking,
) -> None:
    world.table.record_release(a_release("0.0.7"))
    world.table.plant_metadata(vanished("0.0.7"))
    failed = an_audit(Status.FAILURE, version="0.0.7")
    world.table.plant_audit(failed)
    assert world.get_queue(ACME) == Failed(failed)


def test_a_tenant_is_created_at_the_current_version_if_its_former_version_was_never_published(world: Asking) -> None:
    world.table.plant_metadata(vanished("0.0.7"))
    world.get_queue(ACME)
    assert world.executions.started == [(an_attempt(1), Request())]


def test_a_failed_create_at_the_pin_is_not_retried_at_the_current_version(world: Asking) -> None:
    world.table.plant_metadata(some_metadata(queue=None, version=None, pinned_version="0.0.7"))
    world.table.plant_audit(an_audit(Status.FAILURE, version="0.0.7"))
    assert isinstance(world.get_queue(ACME), Failed)
    assert not world.executions.started


def test_the_execution_gets_the_caller_and_a_request_that_is_not_explicit(world: Asking) -> None:
    world.get_queue(ACME, by="arn:aws:sts::000000000000:assumed-role/platform")
    ((_, request),) = world.executions.started
    assert request == Request(by="arn:aws:sts::000000000000:assumed-role/platform", explicit=False)


def test_starting_writes_nothing(world: Asking) -> None:
    world.get_queue(ACME)
    assert not world.table.audits(ACME)
    assert not world.table.history(ACME)
    assert world.table.lock(ACME) is None


def test_any_number_of_callers_start_one_execution(world: Asking) -> None:
    answers = {world.get_queue(ACME) for _ in range(20)}
    assert answers == {Provisioning(FIRST)}
    assert len(world.executions.inputs) == 1


def test_callers_before_and_after_the_first_record_get_the_same_execution(world: Asking) -> None:
    before = world.get_queue(ACME)
    assert world.begin_what_was_started() == Begun()
    assert world.get_queue(ACME) == before == Provisioning(FIRST)


def test_two_tenants_have_two_executions(world: Asking) -> None:
    assert world.get_queue(ACME) != world.get_queue(TenantId.parse("Acme"))


def test_an_execution_that_was_aborted_before_it_recorded_anything_does_not_block_the_tenant(world: Asking) -> None:
    world.get_queue(ACME)
    world.executions.end(FIRST)
    assert world.get_queue(ACME) == Provisioning(SECOND)
    world.executions.end(SECOND)
    assert world.get_queue(ACME) == Provisioning(THIRD)
    assert world.executions.inputs[THIRD]["attempt"] == 3


class EndsWhileStarting(FakeExecutions):
    """The execution that is asked for ends before it can be started again, having recorded its outcome."""

    def __init__(self, table: InMemoryTable, *, published: bool) -> None:
        super().__init__()
        self._table, self._published = table, published

    def start(self, attempt: Attempt, request: Request) -> str | None:
        run = a_run()
        if self._table.lock(ACME):
            raise AssertionError("started twice")
        take(self._table, run)
        if self._published:
            self._table.publish(run, Publication("stack-1", QUEUE, VERSION, None), at=NOON)
        else:
            self._table.fail(run, QUEUE_TABOO, NOON)
        super().start(attempt, request)
        self.end(execution_arn(attempt.name))
        return super().start(attempt, request)


def test_a_create_that_finished_in_between_is_ready() -> None:
    table = InMemoryTable()
    answer = Asking(table=table, executions=EndsWhileStarting(table, published=True)).get_queue(ACME)
    assert answer == Ready(QUEUE, VERSION)


def test_a_create_that_failed_in_between_is_returned_as_failed_and_not_retried() -> None:
    table = InMemoryTable()
    executions = EndsWhileStarting(table, published=False)
    answer = Asking(table=table, executions=executions).get_queue(ACME)
    assert isinstance(answer, Failed)
    assert answer.audit.root_cause == QUEUE_TABOO
    assert len(executions.inputs) == 1


def test_the_execution_of_a_recent_operation_is_not_checked(world: Asking) -> None:
    take(world.table, a_run(started_at=NOON))
    world.clock.advance(CHECK_EXECUTION_AFTER)
    assert world.get_queue(ACME) == Provisioning(FIRST)
    assert not world.executions.asked_about


def test_a_stale_started_is_checked_and_waited_for_while_its_execution_runs(world: Asking) -> None:
    world.get_queue(ACME)
    take(world.table, a_run(started_at=NOON))
    world.clock.advance(CHECK_EXECUTION_AFTER + A_MOMENT)
    assert world.get_queue(ACME) == Provisioning(FIRST)
    assert world.executions.asked_about == [FIRST]


def test_a_stale_started_whose_execution_is_gone_is_followed_by_the_next_attempt(world: Asking) -> None:
    world.get_queue(ACME)
    take(world.table, a_run(started_at=NOON))
    world.executions.end(FIRST)
    world.clock.advance(CHECK_EXECUTION_AFTER + A_MOMENT)
    assert world.get_queue(ACME) == Provisioning(SECOND)


def test_a_create_of_an_earlier_system_is_waited_for_as_long_as_an_adoption_waits_for_it(world: Asking) -> None:
    """Its machines cannot be asked. A second create beside it would make a second stack."""
    started = an_audit(Status.STARTED, version=None, at=NOON)
    earlier = "arn:aws:states:eu-west-1:000000000000:execution:deploy-tenant-stack:acme"
    world.table.plant_audit(replace(started, execution=earlier), numbered=False)
    world.clock.advance(LEGACY_MAX_RUN_TIME)
    assert world.get_queue(ACME) == Provisioning(earlier)
    assert not world.executions.inputs
    world.clock.advance(A_MOMENT)
    assert world.get_queue(ACME) == Provisioning(FIRST)


@pytest.mark.parametrize("status", [Status.SUCCESS, Status.FAILURE])
def test_only_started_is_ever_checked(world: Asking, status: Status) -> None:
    world.table.plant_audit(an_audit(status))
    world.clock.advance(timedelta(days=365))
    world.get_queue(ACME)
    assert not world.executions.asked_about


def test_a_failed_create_starts_nothing(world: Asking) -> None:
    world.table.plant_audit(an_audit(Status.FAILURE, root_cause=QUEUE_TABOO))
    assert isinstance(world.get_queue(ACME), Failed)
    assert not world.executions.inputs


@pytest.mark.parametrize(("status", "answer"), [(Status.STARTED, BeingDeleted), (Status.SUCCESS, Deleted)])
def test_a_deleted_tenant_is_never_started(world: Asking, status: Status, answer: type) -> None:
    world.table.plant_audit(an_audit(status, Operation.DELETE, version=None))
    assert isinstance(world.get_queue(ACME), answer)
    assert not world.executions.inputs


def test_a_tenant_is_being_deleted_from_the_deletes_first_moment(world: Asking) -> None:
    world.publish()
    delete = a_run(operation=Operation.DELETE)
    take(world.table, delete)
    answer = world.get_queue(ACME)
    assert isinstance(answer, BeingDeleted)
    assert answer.audit.execution == delete.execution


def test_a_tenant_whose_delete_was_refused_is_served_as_before(world: Asking) -> None:
    world.publish()
    delete = a_run(operation=Operation.DELETE)
    take(world.table, delete)
    world.table.fail(delete, QUEUE_TABOO, NOON, restore=True)
    assert world.get_queue(ACME) == Ready(QUEUE, VERSION)


def test_a_tenant_whose_delete_failed_half_way_is_failed_and_not_created_again(world: Asking) -> None:
    world.publish()
    delete = a_run(operation=Operation.DELETE)
    take(world.table, delete)
    world.table.fail(delete, QUEUE_TABOO, NOON)
    answer = world.get_queue(ACME)
    assert isinstance(answer, Failed)
    assert (answer.audit.operation, answer.audit.root_cause) == (Operation.DELETE, QUEUE_TABOO)
    assert not world.executions.inputs


def test_a_delete_whose_execution_is_dead_is_failed_and_the_tenant_is_not_created_again(world: Asking) -> None:
    world.publish()
    take(world.table, a_run(operation=Operation.DELETE))
    world.clock.advance(CHECK_EXECUTION_AFTER + A_MOMENT)
    assert isinstance(world.get_queue(ACME), Failed)
    assert not world.executions.inputs


def test_a_create_before_a_later_delete_is_refused_and_the_tenant_stays_deleted(world: Asking) -> None:
    world.get_queue(ACME)  # starts an execution, which has not begun when someone deletes the tenant
    delete = a_run(operation=Operation.DELETE)
    take(world.table, delete)
    world.table.remove(delete, at=NOON)

    assert isinstance(world.begin_what_was_started(), GaveUp)
    world.table.fail(a_run(), QUEUE_TABOO, world.clock.now() + A_MOMENT)

    assert isinstance(world.get_queue(ACME), Deleted)
    assert len(world.executions.inputs) == 1


class NothingCanBeStarted(FakeExecutions):
    """Every name has been used."""

    def start(self, attempt: Attempt, request: Request) -> str | None:
        super().start(attempt, request)
        self.running.clear()
        return super().start(attempt, request)


def test_an_error_names_the_executions_when_every_attempt_has_already_ended() -> None:
    executions = NothingCanBeStarted()
    with pytest.raises(Unsettled, match=r"acme.*create-acme-.*-0\.1\.0-25"):
        Asking(executions=executions).get_queue(ACME)
    assert len(executions.inputs) == 25


def test_a_published_tenant_is_served_even_while_its_create_is_recorded_as_running(world: Asking) -> None:
    take(world.table, a_run())
    world.publish()
    assert world.get_queue(ACME) == Ready(QUEUE, VERSION)


class TestFinding:
    """The same answers, and nothing is started."""

    def test_a_published_queue_is_found_with_one_read(self) -> None:
        world = Asking()
        world.publish()
        assert world.get_queue.find(ACME) == world.get_queue(ACME) == Ready(QUEUE, VERSION)

    def test_find_starts_no_create_for_a_tenant_without_a_queue(self) -> None:
        world = Asking()
        assert world.get_queue.find(ACME) == NotProvisioned(asking_provisions=True)
        assert world.executions.started == []

    def test_find_starts_no_create_for_a_queue_that_has_vanished(self) -> None:
        world = Asking()
        world.table.plant_audit(an_audit(Status.SUCCESS))
        assert world.get_queue.find(ACME) == NotProvisioned(asking_provisions=True)
        assert world.executions.started == []

    @pytest.mark.parametrize(
        ("audit", "expected"),
        [
            (an_audit(Status.STARTED), Provisioning),
            (an_audit(Status.FAILURE, root_cause=QUEUE_TABOO), Failed),
            (an_audit(Status.STARTED, Operation.DELETE), BeingDeleted),
            (an_audit(Status.SUCCESS, Operation.DELETE), Deleted),
        ],
        ids=["being created", "failed", "being deleted", "deleted"],
    )
    def test_find_returns_the_reason_why_there_is_no_queue(self, audit: Audit, expected: type) -> None:
        world = Asking()
        world.table.plant_audit(audit)
        found = world.get_queue.find(ACME)
        assert isinstance(found, expected)
        assert found == world.get_queue(ACME)
        assert world.executions.started == []


# Where getQueue only looks


@pytest.fixture
def looking() -> Asking:
    world = Asking()
    world.settings.create_on_get_queue = False
    return world


def test_a_read_only_get_queue_creates_no_tenant(looking: Asking) -> None:
    assert looking.get_queue(ACME) == Unknown()
    assert not looking.executions.inputs
    assert not looking.executions.asked_about


def test_a_tenant_whose_create_an_operator_has_just_requested_is_provisioning(looking: Asking) -> None:
    looking.table.describe(ACME, labels=None, pin=Pin(), request=EXPLICIT, at=NOON, asked_for=an_attempt(2))
    assert looking.get_queue(ACME) == Provisioning(SECOND)
    looking.clock.advance(START_GRACE_PERIOD)
    assert looking.get_queue(ACME) == Unknown()


def test_a_tenant_that_an_operator_has_created_is_waited_for_and_served(looking: Asking) -> None:
    take(looking.table, a_run())
    assert looking.get_queue(ACME) == Provisioning(FIRST)
    looking.table.publish(a_run(), Publication("stack-1", QUEUE, VERSION, None), at=NOON)
    assert looking.get_queue(ACME) == Ready(QUEUE, VERSION)


def test_a_read_only_get_queue_leaves_dead_operations_to_the_reconciler(looking: Asking) -> None:
    take(looking.table, a_run(started_at=NOON))
    looking.clock.advance(CHECK_EXECUTION_AFTER + A_MOMENT)
    assert looking.get_queue(ACME) == Provisioning(FIRST)
    assert not looking.executions.asked_about
    looking.table.fail(a_run(), QUEUE_TABOO, looking.clock.now())
    assert isinstance(looking.get_queue(ACME), Failed)
    assert not looking.executions.inputs


def test_a_read_only_get_queue_does_not_create_a_vanished_queue_again(looking: Asking) -> None:
    looking.table.plant_audit(an_audit(Status.SUCCESS))
    assert looking.get_queue(ACME) == NotProvisioned()
    assert not looking.executions.inputs


def test_find_is_the_same_where_get_queue_is_read_only(looking: Asking) -> None:
    assert looking.get_queue.find(ACME) == Unknown()
    looking.table.plant_audit(an_audit(Status.SUCCESS))
    assert looking.get_queue.find(ACME) == NotProvisioned(asking_provisions=False)
    looking.publish()
    assert looking.get_queue.find(ACME) == Ready(QUEUE, VERSION)


class TestAPinToAWithdrawnRelease:
    """Its create would be refused, so getQueue starts none, and says who can help."""

    @pytest.fixture
    def pinned(self) -> World:
        world = World(version="0.2.0", published=["0.1.0", "0.2.0"])
        world.table.plant_metadata(Metadata(ACME, None, None, None, NOON, NOON, pinned_version="0.2.0"))
        world.releasing.withdraw("0.2.0", "ada")
        return world

    def test_no_create_is_started(self, pinned: World) -> None:
        assert pinned.get_queue(ACME) == NotProvisioned(withdrawn="0.2.0")
        assert pinned.get_queue.find(ACME) == NotProvisioned(withdrawn="0.2.0")
        assert pinned.executions.started == []

    def test_without_the_pin_the_tenant_gets_the_current_release(self, pinned: World) -> None:
        pinned.table.plant_metadata(Metadata(ACME, None, None, None, NOON, NOON))
        assert isinstance(pinned.get_queue(ACME), Provisioning)
        assert pinned.executions.started[-1][0].version == "0.1.0"
