"""getQueue's decision: one test for every row of its table, and for what the rows leave open."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from orchestrator.tenants.decisions import (
    BeingDeleted,
    Deleted,
    Failed,
    NotProvisioned,
    StartCreate,
    Unknown,
    Wait,
    decide,
    decide_read_only,
    version_to_create,
)
from orchestrator.tenants.ready import Ready, ready
from orchestrator.tenants.records import Audit, Metadata, Operation, Status
from tests.fakes import ACME, NOON, QUEUE, QUEUE_TABOO, VERSION, an_audit

PUBLISHED = Metadata(ACME, QUEUE, "stack-1", VERSION, NOON, NOON)
UNPUBLISHED = replace(PUBLISHED, version=None)
WITHDRAWN = replace(PUBLISHED, withdrawn_by="a delete's execution")
NOT_SERVED = [
    pytest.param(None, id="none"),
    pytest.param(UNPUBLISHED, id="unpublished"),
    pytest.param(replace(PUBLISHED, queue=None), id="without a queue"),
    pytest.param(WITHDRAWN, id="withdrawn"),
]

DELETING = an_audit(Status.STARTED, Operation.DELETE, version=None)
DELETED = an_audit(Status.SUCCESS, Operation.DELETE, version=None)
DELETE_FAILED = an_audit(Status.FAILURE, Operation.DELETE, version=None, root_cause=QUEUE_TABOO)
CREATING = an_audit(Status.STARTED)
CREATED = an_audit(Status.SUCCESS)
CREATE_FAILED = an_audit(Status.FAILURE, root_cause=QUEUE_TABOO)
OLD_CREATES = [an_audit(status, version=None) for status in Status]
"""Creates in rows from before keys had versions."""


REVIVED = replace(DELETED, revived_by="the execution of a create")


def later(audit: Audit) -> Audit:
    return replace(audit, updated_at=audit.updated_at + timedelta(hours=1))


# The rows of the table, in its order.


@pytest.mark.parametrize("metadata", [*NOT_SERVED, pytest.param(PUBLISHED, id="published")])
def test_a_tenant_whose_delete_has_started_is_being_deleted_whatever_its_metadata_says(
    metadata: Metadata | None,
) -> None:
    assert decide(metadata, [CREATED, DELETING], VERSION) == BeingDeleted(DELETING)


@pytest.mark.parametrize(
    "audits",
    [
        pytest.param([], id="no operation"),
        pytest.param([CREATING], id="create started"),
        pytest.param([CREATED], id="create succeeded"),
        pytest.param([CREATE_FAILED], id="create failed"),
        pytest.param([an_audit(Status.STARTED, Operation.UPDATE)], id="update started"),
        pytest.param([an_audit(Status.SUCCESS, Operation.UPDATE)], id="update succeeded"),
        pytest.param([an_audit(Status.FAILURE, Operation.UPDATE)], id="update failed"),
        pytest.param([DELETE_FAILED], id="delete failed"),
        pytest.param([REVIVED, later(CREATED)], id="created after a delete"),
    ],
)
def test_a_published_tenant_is_served_whatever_its_operations_say(audits: list[Audit]) -> None:
    assert decide(PUBLISHED, audits, VERSION) == Ready(QUEUE, VERSION)


def test_a_published_tenant_is_served_even_while_outdated() -> None:
    assert decide(PUBLISHED, [CREATED], "9.0.0") == Ready(QUEUE, VERSION)


@pytest.mark.parametrize("metadata", NOT_SERVED)
def test_an_unknown_tenant_is_created_by_the_first_attempt(metadata: Metadata | None) -> None:
    assert decide(metadata, [], VERSION) == StartCreate(1, is_new=True)


@pytest.mark.parametrize("metadata", NOT_SERVED)
def test_a_tenant_whose_create_has_started_is_waited_for(metadata: Metadata | None) -> None:
    assert decide(metadata, [CREATING], VERSION) == Wait(CREATING.execution)


@pytest.mark.parametrize("metadata", NOT_SERVED)
def test_a_failed_create_is_returned_with_its_root_cause(metadata: Metadata | None) -> None:
    decision = decide(metadata, [CREATE_FAILED], VERSION)
    assert decision == Failed(CREATE_FAILED)
    assert isinstance(decision, Failed)
    assert decision.audit.root_cause == QUEUE_TABOO


@pytest.mark.parametrize("metadata", NOT_SERVED)
def test_a_queue_that_vanished_after_its_create_is_created_again(metadata: Metadata | None) -> None:
    assert decide(metadata, [replace(CREATED, attempt=4)], VERSION) == StartCreate(5)


@pytest.mark.parametrize("metadata", NOT_SERVED)
def test_a_deleted_tenant_stays_deleted(metadata: Metadata | None) -> None:
    assert decide(metadata, [CREATED, later(DELETED)], VERSION) == Deleted(later(DELETED))


@pytest.mark.parametrize("metadata", NOT_SERVED)
def test_a_failed_delete_is_returned_with_its_root_cause(metadata: Metadata | None) -> None:
    assert decide(metadata, [CREATED, later(DELETE_FAILED)], VERSION) == Failed(later(DELETE_FAILED))


# Versions


@pytest.mark.parametrize("old", ["0.0.9", "0.2.0", None], ids=["older", "newer", "before versions"])
def test_a_create_that_failed_at_another_version_does_not_prevent_a_create(old: str | None) -> None:
    assert decide(None, [an_audit(Status.FAILURE, version=old, attempt=7)], VERSION) == StartCreate(1)


@pytest.mark.parametrize("old", ["0.0.9", "0.2.0", None], ids=["older", "newer", "before versions"])
def test_a_create_that_has_started_at_another_version_is_waited_for(old: str | None) -> None:
    started = an_audit(Status.STARTED, version=old)
    assert decide(None, [started], VERSION) == Wait(started.execution)


@pytest.mark.parametrize("old", ["0.0.9", None], ids=["older", "before versions"])
def test_a_running_create_of_another_version_is_waited_for_even_if_this_version_failed(old: str | None) -> None:
    started = an_audit(Status.STARTED, version=old)
    assert decide(None, [CREATE_FAILED, started], VERSION) == Wait(started.execution)


def test_a_vanished_queue_from_before_versions_is_created_by_the_first_attempt() -> None:
    assert decide(None, [an_audit(Status.SUCCESS, version=None)], VERSION) == StartCreate(1)


def test_attempts_are_counted_for_each_version_alone() -> None:
    audits = [an_audit(Status.FAILURE, version="0.0.9", attempt=7), an_audit(Status.SUCCESS, attempt=2)]
    assert decide(None, audits, VERSION) == StartCreate(3)


def test_an_update_neither_prevents_a_create_nor_counts_as_its_attempt() -> None:
    assert decide(None, [an_audit(Status.STARTED, Operation.UPDATE, attempt=3)], VERSION) == StartCreate(1)


# Create after delete


for_each_create = pytest.mark.parametrize(
    "create", [CREATING, CREATED, CREATE_FAILED], ids=["started", "succeeded", "failed"]
)


@for_each_create
def test_operations_before_a_delete_do_not_count(create: Audit) -> None:
    assert decide(None, [create, later(DELETED)], VERSION) == Deleted(later(DELETED))


@for_each_create
def test_a_create_that_did_not_revive_the_tenant_leaves_it_deleted_however_late_it_came(create: Audit) -> None:
    assert decide(None, [DELETED, later(create)], VERSION) == Deleted(DELETED)


def test_a_create_that_was_refused_because_the_tenant_is_deleted_does_not_make_it_failed() -> None:
    refused = later(an_audit(Status.FAILURE, attempt=2))
    assert decide(UNPUBLISHED, [DELETED, refused], VERSION) == Deleted(DELETED)


@pytest.mark.parametrize("delete", [REVIVED, replace(REVIVED, status=Status.FAILURE)], ids=["deleted", "delete failed"])
def test_a_superseded_delete_is_not_in_effect(delete: Audit) -> None:
    assert decide(None, [delete, later(CREATING)], VERSION) == Wait(CREATING.execution)
    assert decide(None, [delete, later(CREATE_FAILED)], VERSION) == Failed(later(CREATE_FAILED))
    assert decide(None, [delete, later(replace(CREATED, attempt=2))], VERSION) == StartCreate(3)
    assert decide(None, [delete], VERSION) == StartCreate(1)


@pytest.mark.parametrize("create", OLD_CREATES, ids=lambda audit: audit.status)
def test_a_create_from_before_versions_revives_by_coming_after_the_delete(create: Audit) -> None:
    assert not isinstance(decide(None, [DELETED, later(create)], VERSION), Deleted)


@pytest.mark.parametrize("create", OLD_CREATES, ids=lambda audit: audit.status)
def test_a_create_from_before_versions_does_not_revive_by_coming_before_the_delete_or_with_it(create: Audit) -> None:
    assert decide(None, [create, later(DELETED)], VERSION) == Deleted(later(DELETED))
    assert decide(None, [create, DELETED], VERSION) == Deleted(DELETED)


def test_a_tenant_that_was_created_again_before_versions_were_recorded_has_that_creates_state() -> None:
    started, failed, succeeded = (
        later(an_audit(status, version=None)) for status in (Status.STARTED, Status.FAILURE, Status.SUCCESS)
    )
    assert decide(None, [DELETED, started], VERSION) == Wait(started.execution)
    assert decide(None, [DELETED, failed], VERSION) == StartCreate(1)
    assert decide(None, [DELETED, succeeded], VERSION) == StartCreate(1)


# Started, but no longer running


def test_an_abandoned_create_is_followed_by_the_next_attempt() -> None:
    started = an_audit(Status.STARTED, attempt=3)
    assert decide(None, [started], VERSION, abandoned={started.execution}) == StartCreate(4)


def test_an_abandoned_create_of_another_version_is_followed_by_the_first_attempt_of_this_one() -> None:
    started = an_audit(Status.STARTED, version="0.0.9", attempt=3)
    assert decide(None, [started], VERSION, abandoned={started.execution}) == StartCreate(1)


def test_only_the_abandoned_execution_counts_as_abandoned() -> None:
    assert decide(None, [CREATING], VERSION, abandoned={"another execution"}) == Wait(CREATING.execution)


def test_an_abandoned_delete_counts_as_failed_and_does_not_restore_the_tenant() -> None:
    assert decide(None, [CREATED, later(DELETING)], VERSION, abandoned={DELETING.execution}) == Failed(later(DELETING))


# Where asking creates nothing


@pytest.mark.parametrize("metadata", NOT_SERVED)
def test_read_only_a_tenant_that_nobody_has_created_is_unknown(metadata: Metadata | None) -> None:
    assert decide_read_only(metadata, [], VERSION) == Unknown()


@pytest.mark.parametrize("metadata", NOT_SERVED)
def test_read_only_a_tenant_whose_queue_has_vanished_is_not_provisioned(metadata: Metadata | None) -> None:
    assert decide_read_only(metadata, [CREATED], VERSION) == NotProvisioned()


def test_read_only_a_create_that_failed_at_an_earlier_version_is_failed() -> None:
    failed = an_audit(Status.FAILURE, version="0.0.9", root_cause=QUEUE_TABOO)
    assert decide_read_only(None, [failed], VERSION) == Failed(failed)
    assert decide_read_only(None, [failed, later(CREATED)], VERSION) == NotProvisioned()


@pytest.mark.parametrize(
    ("metadata", "audits"),
    [
        pytest.param(PUBLISHED, [CREATED], id="served"),
        pytest.param(None, [CREATING], id="being created"),
        pytest.param(None, [CREATE_FAILED], id="failed"),
        pytest.param(WITHDRAWN, [CREATED, DELETING], id="being deleted"),
        pytest.param(None, [CREATED, DELETED], id="deleted"),
    ],
)
def test_read_only_all_other_decisions_are_the_same(metadata: Metadata | None, audits: list[Audit]) -> None:
    assert decide_read_only(metadata, audits, VERSION) == decide(metadata, audits, VERSION)


# One more tenant, or one that is there


def test_only_a_tenant_without_records_is_new() -> None:
    assert decide(None, [], VERSION) == StartCreate(1, is_new=True)
    assert decide(UNPUBLISHED, [], VERSION) == StartCreate(1, is_new=True)
    assert decide(None, [CREATED], VERSION) == StartCreate(2, is_new=False)


# The short cut


@pytest.mark.parametrize("metadata", NOT_SERVED)
def test_the_short_cut_serves_nothing_that_is_not_published(metadata: Metadata | None) -> None:
    assert ready(metadata) is None


# The version that a tenant is created at

CURRENT, BEFORE, LONG_BEFORE = "0.9.0", "0.8.0", "0.7.0"
UPDATED = later(an_audit(Status.SUCCESS, Operation.UPDATE, version=BEFORE))
VANISHED = replace(PUBLISHED, queue=None, version=None, last_version=BEFORE)
HISTORIES: dict[str, tuple[Metadata | None, list[Audit], str]] = {
    "nothing is known": (None, [], CURRENT),
    "its create failed": (None, [an_audit(Status.FAILURE, version=BEFORE)], CURRENT),
    "it is being created": (None, [an_audit(Status.STARTED, version=BEFORE)], CURRENT),
    "it was created": (None, [an_audit(Status.SUCCESS, version=BEFORE)], BEFORE),
    "it was updated": (None, [an_audit(Status.SUCCESS, version=LONG_BEFORE), UPDATED], BEFORE),
    "its update failed": (
        None,
        [an_audit(Status.SUCCESS, version=BEFORE), later(an_audit(Status.FAILURE, Operation.UPDATE, version=CURRENT))],
        BEFORE,
    ),
    "the row says it": (VANISHED, [an_audit(Status.FAILURE, version=BEFORE, attempt=2)], BEFORE),
    "it is pinned": (replace(VANISHED, pinned_version=LONG_BEFORE), [UPDATED], LONG_BEFORE),
    "it was deleted": (None, [an_audit(Status.SUCCESS, version=BEFORE), later(DELETED)], CURRENT),
    "it was deleted and came back": (
        None,
        [
            an_audit(Status.SUCCESS, version=LONG_BEFORE),
            later(replace(DELETED, revived_by="a create")),
            later(later(an_audit(Status.SUCCESS, version=BEFORE))),
        ],
        BEFORE,
    ),
    "it was deleted, and what came after it failed": (
        None,
        [
            an_audit(Status.SUCCESS, version=LONG_BEFORE),
            later(replace(DELETED, revived_by="a create")),
            later(later(an_audit(Status.FAILURE, version=BEFORE))),
        ],
        CURRENT,
    ),
    "its delete failed": (None, [an_audit(Status.SUCCESS, version=BEFORE), later(DELETE_FAILED)], BEFORE),
    "it is from before versions": (None, [an_audit(Status.SUCCESS, version=None)], CURRENT),
}


@pytest.mark.parametrize(("metadata", "audits", "expected"), HISTORIES.values(), ids=HISTORIES)
def test_a_tenant_is_created_at_its_pin_or_the_version_that_it_had_or_else_the_current_one(
    metadata: Metadata | None, audits: list[Audit], expected: str
) -> None:
    assert version_to_create(metadata, audits, CURRENT, lambda _version: True) == expected


def test_a_tenant_is_not_created_at_a_version_that_was_never_published() -> None:
    assert version_to_create(VANISHED, [UPDATED], CURRENT, lambda version: version != BEFORE) == CURRENT


def test_the_current_version_need_not_be_looked_up() -> None:
    def nobody_asks(_version: str) -> bool:
        raise AssertionError

    assert version_to_create(None, [], CURRENT, nobody_asks) == CURRENT
    assert version_to_create(replace(VANISHED, last_version=CURRENT), [], CURRENT, nobody_asks) == CURRENT


def test_the_short_cut_serves_what_is_published() -> None:
    assert ready(PUBLISHED) == Ready(QUEUE, VERSION)


def test_metadata_is_published_exactly_when_it_is_served() -> None:
    assert PUBLISHED.published
    assert not UNPUBLISHED.published
    assert not replace(PUBLISHED, queue=None).published
    assert not WITHDRAWN.published
