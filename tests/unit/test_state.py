"""A tenant's state is derived once: getQueue, the list, admission and the ledger never disagree about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import permutations, product

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
)
from orchestrator.tenants.fleet import tenant_detail
from orchestrator.tenants.ready import Ready
from orchestrator.tenants.records import Audit, Metadata, Operation, Status
from orchestrator.tenants.records import TenantState as State
from orchestrator.tenants.state import is_deleted, state_of
from tests.fakes import ACME, NEXT_VERSION, NOON, VERSION, InMemoryTable, an_audit, some_metadata

WITHDRAWN = replace(some_metadata(), withdrawn_by="a delete")
EMPTY = Metadata(ACME, None, None, None, None, None)
ANSWERS = {
    State.READY: (Ready,),
    State.UPDATING: (Ready,),
    State.UPDATE_FAILED: (Ready,),
    State.DELETING: (BeingDeleted,),
    State.DELETED: (Deleted,),
    State.PROVISIONING: (Wait,),
    State.UNKNOWN: (StartCreate,),
    # StartCreate where another release than the one that failed is tried.
    State.FAILED: (Failed, StartCreate),
}


def histories() -> Iterator[tuple[Metadata | None, Sequence[Audit]]]:
    """Every way in which up to three operations can have come to where they are, in every order."""
    kinds = [
        (Operation.CREATE, VERSION),
        (Operation.CREATE, NEXT_VERSION),
        (Operation.UPDATE, NEXT_VERSION),
        (Operation.DELETE, None),
    ]
    for length in range(4):
        for operations in permutations(kinds, length):
            for statuses in product(Status, repeat=length):
                audits = [
                    an_audit(status, operation, version=version, at=NOON + timedelta(minutes=number))
                    for number, ((operation, version), status) in enumerate(zip(operations, statuses, strict=True))
                ]
                for metadata in (None, EMPTY, some_metadata(), WITHDRAWN):
                    yield metadata, audits
                    yield metadata, [replace(audit, revived_by="a create") for audit in audits]


def test_get_queue_follows_the_state() -> None:
    for metadata, audits in histories():
        state = state_of(metadata, audits)
        assert isinstance(decide(metadata, audits, VERSION), ANSWERS[state]), (state, metadata, audits)


def test_a_read_only_get_queue_follows_the_state() -> None:
    answers = ANSWERS | {State.UNKNOWN: (Unknown, NotProvisioned), State.FAILED: (Failed,)}
    for metadata, audits in histories():
        state = state_of(metadata, audits)
        assert isinstance(decide_read_only(metadata, audits, VERSION), answers[state]), (state, metadata, audits)


def test_a_tenant_that_is_not_served_is_deleted_for_admission_if_that_is_its_state() -> None:
    for metadata, audits in histories():
        if metadata is None or not metadata.published:
            assert is_deleted(audits) is (state_of(metadata, audits) is State.DELETED), (metadata, audits)


def test_a_running_create_is_shown_although_an_older_one_has_ended_since() -> None:
    """getQueue says wait, and so does everybody else."""
    table = InMemoryTable()
    running = an_audit(Status.STARTED, version=NEXT_VERSION, at=NOON)
    table.plant_audit(running)
    table.plant_audit(an_audit(Status.FAILURE, version=VERSION, at=NOON + timedelta(minutes=1)))
    assert decide(None, table.audits(ACME), NEXT_VERSION) == Wait(running.execution)
    assert tenant_detail(ACME, table).state is State.PROVISIONING


@pytest.mark.parametrize("metadata", [None, EMPTY])
def test_after_a_version_bump_a_failed_tenant_is_failed_until_the_create_of_the_next_release_begins(
    metadata: Metadata | None,
) -> None:
    """getQueue starts that create, because the next release may mend it; from its first moment nobody says FAILED."""
    failed = an_audit(Status.FAILURE, version=VERSION, at=NOON)
    assert decide(metadata, [failed], NEXT_VERSION) == StartCreate(1)
    assert state_of(metadata, [failed]) is State.FAILED
    for moment in (NOON - timedelta(minutes=1), NOON + timedelta(minutes=1)):
        begun = an_audit(Status.STARTED, version=NEXT_VERSION, at=moment)
        assert state_of(metadata, [failed, begun]) is State.PROVISIONING
        assert decide(metadata, [failed, begun], NEXT_VERSION) == Wait(begun.execution)
