"""Fingerprints: an update to the template and parameters that a stack was made from has nothing to do."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from orchestrator.common.errors import LostOwnership
from orchestrator.common.tenant_ids import TenantId
from orchestrator.releases.published import fingerprint, stack_parameters
from orchestrator.releases.records import Release
from orchestrator.releases.template_contract import KMS_KEY_PARAMETER
from orchestrator.tenants.operations import CHECK_HOLDER_AFTER
from orchestrator.tenants.order_results import Accepted, OrderResult, Unchanged
from orchestrator.tenants.outcomes import Begun, Busy, Done, GaveUp, Published
from orchestrator.tenants.ready import Ready
from orchestrator.tenants.records import Lock, Metadata, Operation, Request, Run
from orchestrator.tenants.writes import Transition
from tests.fakes import (
    ACME,
    DONE,
    NEXT_VERSION,
    NOON,
    QUEUE,
    VERSION,
    InMemoryTable,
    Operations,
    a_release,
    a_run,
    parameters_of,
    some_metadata,
    stack_arn,
)
from tests.unit.test_operations import A_MOMENT

UPDATE = a_run(operation=Operation.UPDATE, version=NEXT_VERSION)
BACK = a_run(operation=Operation.UPDATE, version=VERSION, request=Request(allow_downgrade=True))
SAME_CONTENT = "the same but for its version"


@pytest.fixture
def world() -> Operations:
    """A tenant at a release, and another release that is really another."""
    made = Operations()
    made.create()
    made.clock.advance(A_MOMENT)
    return made


@pytest.fixture
def alike() -> Operations:
    """A tenant at a release, and another release that differs from it only in its version."""
    made = Operations()
    made.table = InMemoryTable()
    for version in (VERSION, NEXT_VERSION):
        made.table.record_release(a_release(version, content=SAME_CONTENT))
    made.create()
    made.clock.advance(A_MOMENT)
    return made


# The fingerprint


def test_each_tenant_and_each_content_has_a_fingerprint_of_its_own() -> None:
    releases, tenants = [a_release(), a_release(NEXT_VERSION)], [ACME, TenantId.parse("other")]
    assert len({fingerprint(release, parameters_of(tenant)) for release in releases for tenant in tenants}) == 4


def test_a_fingerprint_knows_neither_the_version_nor_the_order_of_parameters() -> None:
    one = fingerprint(a_release(VERSION, content="x"), {"a": "1", "b": "2"})
    assert one == fingerprint(a_release(NEXT_VERSION, content="x", digest="e" * 64), {"b": "2", "a": "1"})


def test_a_release_from_before_contents_were_recorded_has_none() -> None:
    assert fingerprint(a_release(content=""), parameters_of(ACME)) is None


# Nothing to do


def test_an_update_that_would_change_nothing_but_the_version_is_done_without_cloudformation(alike: Operations) -> None:
    before = alike.metadata_of()
    assert alike.begin(UPDATE) == Done(stack_arn(), QUEUE, NEXT_VERSION)
    assert alike.metadata_of() == before
    assert alike.table.lock(ACME) == Lock(UPDATE, None)
    assert not alike.stacks.calls


def test_an_update_that_would_change_nothing_touches_nothing(alike: Operations) -> None:
    before = alike.metadata_of()
    assert alike.begin(UPDATE) == Done(stack_arn(), QUEUE, NEXT_VERSION)
    assert alike.metadata_of().deployed == before.deployed


def test_an_update_that_is_done_already_is_so_however_often_it_begins(alike: Operations) -> None:
    assert alike.begin(UPDATE) == alike.begin(UPDATE) == Done(stack_arn(), QUEUE, NEXT_VERSION)
    assert len([entry for entry in alike.table.history(ACME) if entry.execution == UPDATE.execution]) == 1


def test_an_update_that_is_done_already_is_finished_as_any_other(alike: Operations) -> None:
    done = alike.begin(UPDATE)
    assert isinstance(done, Done)
    assert alike.finish(UPDATE, done) == Published()
    assert alike.decision() == Ready(QUEUE, NEXT_VERSION)
    assert alike.table.lock(ACME) is None
    assert alike.begin(BACK) == Done(stack_arn(), QUEUE, VERSION)


@pytest.mark.parametrize("missing", ["queue", "stack_id"])
def test_an_update_of_a_stack_that_is_not_known_in_full_is_not_done_already(alike: Operations, missing: str) -> None:
    unknown: dict[str, Any] = {missing: None}
    alike.table.plant_metadata(replace(alike.metadata_of(), **unknown))
    assert isinstance(alike.begin(UPDATE), Begun | GaveUp)


@pytest.mark.parametrize("operation", [Operation.CREATE, Operation.DELETE])
def test_only_an_update_is_done_already(alike: Operations, operation: Operation) -> None:
    before = alike.metadata_of().deployed
    assert alike.begin(a_run(operation=operation, version=NEXT_VERSION)) == Begun()
    assert alike.metadata_of().deployed == before


# Something to do


def test_an_update_to_another_content_touches_the_stack_before_it_begins(world: Operations) -> None:
    assert world.begin(UPDATE) == Begun()
    assert world.metadata_of().deployed is None
    assert world.decision() == Ready(QUEUE, VERSION)


def test_an_update_with_other_parameters_is_a_change_also_at_the_same_content(alike: Operations) -> None:
    alike.parameters = partial(stack_parameters, service_token="another function")
    assert alike.begin(UPDATE) == Begun()
    assert alike.metadata_of().deployed is None


def test_the_parameters_are_the_tenants_own(alike: Operations) -> None:
    asked_for: list[TenantId] = []

    def parameters(tenant: TenantId, release: Release) -> dict[str, str]:
        asked_for.append(tenant)
        return parameters_of(tenant, release)

    alike.parameters = parameters
    alike.begin(UPDATE)
    assert asked_for == [ACME]


@pytest.mark.parametrize("deployed", [None, "something else"])
def test_an_update_of_a_stack_that_was_made_from_who_knows_what_begins(world: Operations, deployed: str | None) -> None:
    world.table.plant_metadata(some_metadata(deployed=deployed))
    assert world.begin(UPDATE) == Begun()
    assert world.metadata_of().deployed is None


def test_an_update_to_a_release_from_before_contents_were_recorded_begins_and_leaves_no_fingerprint() -> None:
    world = Operations()
    world.table = InMemoryTable()
    world.table.record_release(a_release(NEXT_VERSION, content=""))
    world.table.plant_metadata(some_metadata(deployed="something"))
    assert world.begin(UPDATE) == Begun()
    assert world.metadata_of().deployed is None
    world.finish(UPDATE, replace(DONE, version=NEXT_VERSION))
    assert world.metadata_of().deployed is None


@pytest.mark.parametrize(
    "run",
    [a_run(operation=Operation.UPDATE, version="9.9.9"), a_run(operation=Operation.UPDATE, version=VERSION)],
    ids=["unknown release", "downgrade"],
)
def test_a_refused_update_leaves_no_fingerprint(world: Operations, run: Run) -> None:
    world.table.plant_metadata(some_metadata(version=NEXT_VERSION, deployed="something"))
    assert isinstance(world.begin(run), GaveUp)
    assert world.metadata_of().deployed is None


def test_a_waiting_operation_touches_nothing(world: Operations) -> None:
    world.begin(a_run(operation=Operation.DELETE))
    assert isinstance(world.begin(UPDATE), Busy)
    assert world.metadata_of().deployed is not None


# Faults after that


def test_an_update_that_dies_after_it_touched_the_stack_leaves_no_fingerprint_and_the_next_one_begins(
    world: Operations,
) -> None:
    world.begin(UPDATE)
    world.clock.advance(CHECK_HOLDER_AFTER + A_MOMENT)
    assert world.begin(replace(BACK, started_at=world.clock.now())) == Begun()
    assert world.metadata_of().deployed is None


def test_an_update_that_fails_after_it_touched_the_stack_leaves_no_fingerprint_and_the_next_one_begins(
    world: Operations,
) -> None:
    world.begin(UPDATE)
    world.record_failure(UPDATE)
    assert world.metadata_of().deployed is None
    assert world.begin(BACK) == Begun()


def test_beginning_again_after_touching_is_not_touching_again_but_going_on(world: Operations) -> None:
    assert world.begin(UPDATE) == world.begin(UPDATE) == Begun()
    assert world.metadata_of().deployed is None


def test_an_update_that_begins_takes_the_record_of_the_stack_with_it(world: Operations) -> None:
    before = world.metadata_of()
    world.table.change_metadata(ACME, stack_changed_at=NOON)
    world.begin(UPDATE)
    lock = world.table.lock(ACME)
    assert lock is not None
    assert (lock.deployed, lock.stack_changed_at) == (before.deployed, NOON)
    assert (world.metadata_of().deployed, world.metadata_of().stack_changed_at) == (None, None)


class Overtaken(InMemoryTable):
    """A table whose tenant somebody changes right before the update takes the lock."""

    def __init__(self, **changes: Any) -> None:
        super().__init__()
        self._changes = changes

    def apply(self, transition: Transition) -> bool:
        self.change_metadata(ACME, **self._changes)
        return super().apply(transition)


def overtaken(metadata: Metadata, **changes: Any) -> Overtaken:
    table = Overtaken(**changes)
    table.record_release(a_release(NEXT_VERSION))
    table.plant_metadata(metadata)
    return table


def test_an_update_whose_pin_is_lifted_while_it_begins_takes_the_record_of_the_stack_with_it(world: Operations) -> None:
    pinned = some_metadata(version=VERSION, pinned_version=VERSION, deployed="something")
    world.table = overtaken(pinned, pinned_version=None)
    assert world.begin(UPDATE) == Begun()
    lock = world.table.lock(ACME)
    assert lock is not None
    assert (lock.deployed, world.metadata_of().deployed) == ("something", None)


@pytest.mark.parametrize(
    "read",
    ["something", None, fingerprint(a_release(NEXT_VERSION), parameters_of(ACME))],
    ids=["moved", "no record", "nothing to change"],
)
def test_an_update_does_not_begin_with_a_record_that_another_operation_has_just_replaced(
    world: Operations, read: str | None
) -> None:
    world.table = overtaken(some_metadata(deployed=read), deployed="something else")
    with pytest.raises(LostOwnership):
        world.begin(UPDATE)
    assert world.table.lock(ACME) is None
    assert world.metadata_of().deployed == "something else"


# Finish


def test_finishing_records_what_the_stack_is_made_from(world: Operations) -> None:
    assert world.metadata_of().deployed == fingerprint(a_release(VERSION), parameters_of(ACME))
    world.begin(UPDATE)
    world.finish(UPDATE, replace(DONE, version=NEXT_VERSION))
    assert world.metadata_of().deployed == fingerprint(a_release(NEXT_VERSION), parameters_of(ACME))


@pytest.mark.parametrize("found", [VERSION, "0.0.9"], ids=["published", "never published"])
def test_a_stack_that_was_found_at_another_version_was_made_from_who_knows_what(found: str) -> None:
    world = Operations()
    run = a_run(version=NEXT_VERSION)
    world.begin(run)
    world.finish(run, replace(DONE, version=found))
    assert (world.metadata_of().version, world.metadata_of().deployed) == (found, None)


def test_a_later_update_of_a_stack_that_was_found_begins() -> None:
    world = Operations()
    run = a_run(version=NEXT_VERSION)
    world.begin(run)
    world.finish(run, replace(DONE, version=VERSION))
    assert world.begin(UPDATE) == Begun()


def test_a_finish_that_lost_the_lock_records_no_fingerprint(world: Operations) -> None:
    world.begin(UPDATE)
    world.clock.advance(CHECK_HOLDER_AFTER + A_MOMENT)
    world.begin(replace(BACK, started_at=world.clock.now()))
    with pytest.raises(LostOwnership):
        world.finish(UPDATE, replace(DONE, version=NEXT_VERSION))
    assert world.metadata_of().deployed is None


# A key that is changed while operations are under way

KNOWS_KEYS = a_release("0.7.0", parameters=[KMS_KEY_PARAMETER])
NO_OTHER = a_release("0.7.1", parameters=[KMS_KEY_PARAMETER], content=KNOWS_KEYS.content)
CREATE_WITH_KEY = a_run(version=KNOWS_KEYS.version)
DONE_WITH_KEY = replace(DONE, version=KNOWS_KEYS.version)
OLD_KEY, NEW_KEY = (
    partial(stack_parameters, service_token="a function", kms_key=key) for key in ("the old key", "the new key")
)


@pytest.fixture
def keyed() -> Operations:
    """A release that takes the key, and a later one that differs from it only in its version."""
    made = Operations()
    made.table.record_release(KNOWS_KEYS)
    made.table.record_release(NO_OTHER)
    made.parameters = OLD_KEY
    return made


def upgrade(world: Operations) -> OrderResult:
    world.settings.template_version = KNOWS_KEYS.version
    return world.lifecycle.upgrade(ACME, None, Request(by="ada"))


def create_while_another_key_is_deployed(world: Operations) -> None:
    world.begin(CREATE_WITH_KEY)
    world.parameters = NEW_KEY
    world.finish(CREATE_WITH_KEY, DONE_WITH_KEY, made_with=OLD_KEY)
    world.clock.advance(A_MOMENT)


def test_the_fingerprint_has_the_key_that_the_stack_was_made_with(keyed: Operations) -> None:
    create_while_another_key_is_deployed(keyed)
    assert keyed.metadata_of().deployed == fingerprint(KNOWS_KEYS, OLD_KEY(ACME, KNOWS_KEYS))


def test_a_key_that_was_deployed_before_the_create_ended_is_brought_by_an_upgrade(keyed: Operations) -> None:
    create_while_another_key_is_deployed(keyed)
    assert isinstance(upgrade(keyed), Accepted)


def test_a_key_that_was_deployed_before_the_create_ended_is_brought_by_the_next_release(keyed: Operations) -> None:
    create_while_another_key_is_deployed(keyed)
    assert keyed.begin(a_run(operation=Operation.UPDATE, version=NO_OTHER.version)) == Begun()


def test_a_stack_that_has_the_key_is_not_upgraded_to_where_it_is(keyed: Operations) -> None:
    keyed.begin(CREATE_WITH_KEY)
    keyed.finish(CREATE_WITH_KEY, DONE_WITH_KEY, made_with=OLD_KEY)
    keyed.clock.advance(A_MOMENT)
    assert isinstance(upgrade(keyed), Unchanged)


def test_while_cloudformation_throttles_the_tenant_is_served_and_its_key_is_not_known(keyed: Operations) -> None:
    keyed.begin(CREATE_WITH_KEY)
    keyed.table.record_queue(ACME, stack_id=stack_arn(), queue=QUEUE, at=NOON)
    keyed.finish(CREATE_WITH_KEY, DONE_WITH_KEY, throttled=True)
    keyed.clock.advance(A_MOMENT)
    assert keyed.decision() == Ready(QUEUE, KNOWS_KEYS.version)
    assert keyed.metadata_of().deployed is None
    assert isinstance(upgrade(keyed), Accepted)


def test_an_event_of_the_stack_that_comes_again_does_not_keep_a_new_key_from_it(keyed: Operations) -> None:
    keyed.begin(CREATE_WITH_KEY)
    keyed.finish(CREATE_WITH_KEY, DONE_WITH_KEY, made_with=OLD_KEY)
    keyed.table.record_queue(ACME, stack_id=stack_arn(), queue=QUEUE, at=keyed.clock.now())
    assert keyed.metadata_of().deployed is None
    keyed.clock.advance(A_MOMENT)
    keyed.parameters = NEW_KEY
    assert isinstance(upgrade(keyed), Accepted)
