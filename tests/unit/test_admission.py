"""Which operation may run on which tenant: one table, and what holds in every cell of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import product

import pytest

from orchestrator.tenants.admission import Refusal, Refused, refusal
from orchestrator.tenants.records import Attempt, Audit, Metadata, Operation, Request, Status
from orchestrator.tenants.state import is_delete_in_effect, is_deleted
from tests.fakes import ACME, EXPLICIT, NOON, a_release, an_audit, some_metadata

OLDER, HERE, NEWER = "0.9.0", "0.10.0", "0.11.0"
"""As text, the older one would sort last."""

AN_HOUR = timedelta(hours=1)
NOTHING_MORE = Request()


@dataclass(frozen=True)
class Asked:
    operation: Operation
    version: str
    request: Request = NOTHING_MORE


@dataclass(frozen=True)
class Records:
    metadata: Metadata | None
    audits: tuple[Audit, ...] = ()


ASKED = {
    "create": Asked(Operation.CREATE, NEWER),
    "explicit create": Asked(Operation.CREATE, NEWER, EXPLICIT),
    "update to the same": Asked(Operation.UPDATE, HERE),
    "upgrade": Asked(Operation.UPDATE, NEWER),
    "downgrade": Asked(Operation.UPDATE, OLDER),
    "allowed downgrade": Asked(Operation.UPDATE, OLDER, Request(allow_downgrade=True)),
    "upgrade with everything else allowed": Asked(
        Operation.UPDATE, NEWER, Request(explicit=True, allow_downgrade=True, allow_replacement=True, force=True)
    ),
    "delete": Asked(Operation.DELETE, NEWER),
}

READY = some_metadata(version=HERE)
UNPUBLISHED = some_metadata(version=None)
WITHDRAWN = replace(READY, withdrawn_by="a delete")
CREATED = an_audit(Status.SUCCESS, version=HERE)
DELETED = an_audit(Status.SUCCESS, Operation.DELETE, at=NOON + AN_HOUR)
BEFORE_VERSIONS = replace(CREATED, version=None)

SITUATIONS = {
    "never heard of": Records(None),
    "being created": Records(UNPUBLISHED, (an_audit(Status.STARTED, version=HERE),)),
    "not created": Records(UNPUBLISHED, (an_audit(Status.FAILURE, version=HERE),)),
    "not created, before there was metadata": Records(None, (replace(BEFORE_VERSIONS, status=Status.FAILURE),)),
    "ready": Records(READY, (CREATED,)),
    "ready, all that is known": Records(READY),
    "at a version of another making": Records(replace(READY, version="2020-08-31"), (CREATED,)),
    "being updated": Records(READY, (CREATED, an_audit(Status.STARTED, Operation.UPDATE, version=NEWER))),
    "not updated": Records(READY, (CREATED, an_audit(Status.FAILURE, Operation.UPDATE, version=NEWER))),
    "pinned here": Records(replace(READY, pinned_version=HERE), (CREATED,)),
    "pinned ahead": Records(replace(READY, pinned_version=NEWER), (CREATED,)),
    "pinned back": Records(replace(READY, pinned_version=OLDER), (CREATED,)),
    "being deleted": Records(WITHDRAWN, (CREATED, replace(DELETED, status=Status.STARTED))),
    "not deleted, served again": Records(READY, (CREATED, replace(DELETED, status=Status.FAILURE))),
    "not deleted, half gone": Records(WITHDRAWN, (CREATED, replace(DELETED, status=Status.FAILURE))),
    "half gone, then created": Records(
        WITHDRAWN, (CREATED, replace(DELETED, status=Status.FAILURE, revived_by="a create"))
    ),
    "deleted": Records(None, (CREATED, DELETED)),
    "deleted, then asked for": Records(
        UNPUBLISHED, (CREATED, DELETED, an_audit(Status.FAILURE, version=NEWER, at=NOON + 2 * AN_HOUR))
    ),
    "deleted, its row says more": Records(replace(READY, pinned_version=HERE), (CREATED, DELETED)),
    "created again": Records(READY, (CREATED, replace(DELETED, revived_by="a create"))),
    "created again, before versions": Records(
        READY, (replace(BEFORE_VERSIONS, updated_at=NOON + 2 * AN_HOUR), replace(DELETED, version=None))
    ),
    "deleted, before versions": Records(None, (BEFORE_VERSIONS, replace(DELETED, version=None))),
    "its queue has vanished": Records(replace(READY, version=None, queue=None, stack_id=None), (CREATED,)),
}

UNKNOWN, GONE, NO_QUEUE = Refusal.UNKNOWN_TENANT, Refusal.TENANT_DELETED, Refusal.NOT_PROVISIONED
PINNED, BACK, YES = Refusal.PINNED, Refusal.DOWNGRADE, None

# One column for each of ASKED, in its order, without the delete, which may always run.
TABLE: dict[str, tuple[Refusal | None, ...]] = {
    "never heard of": (YES, YES, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN),
    "being created": (YES, YES, NO_QUEUE, NO_QUEUE, NO_QUEUE, NO_QUEUE, NO_QUEUE),
    "not created": (YES, YES, NO_QUEUE, NO_QUEUE, NO_QUEUE, NO_QUEUE, NO_QUEUE),
    "not created, before there was metadata": (YES, YES, NO_QUEUE, NO_QUEUE, NO_QUEUE, NO_QUEUE, NO_QUEUE),
    "ready": (YES, YES, YES, YES, BACK, YES, YES),
    "ready, all that is known": (YES, YES, YES, YES, BACK, YES, YES),
    "at a version of another making": (YES, YES, YES, YES, YES, YES, YES),
    "being updated": (YES, YES, YES, YES, BACK, YES, YES),
    "not updated": (YES, YES, YES, YES, BACK, YES, YES),
    "pinned here": (YES, YES, YES, PINNED, PINNED, PINNED, PINNED),
    "pinned ahead": (YES, YES, PINNED, YES, PINNED, PINNED, YES),
    "pinned back": (YES, YES, PINNED, PINNED, BACK, YES, PINNED),
    "being deleted": (GONE, YES, NO_QUEUE, NO_QUEUE, NO_QUEUE, NO_QUEUE, NO_QUEUE),
    "not deleted, served again": (YES, YES, YES, YES, BACK, YES, YES),
    "not deleted, half gone": (GONE, YES, NO_QUEUE, NO_QUEUE, NO_QUEUE, NO_QUEUE, NO_QUEUE),
    "half gone, then created": (YES, YES, NO_QUEUE, NO_QUEUE, NO_QUEUE, NO_QUEUE, NO_QUEUE),
    "deleted": (GONE, YES, GONE, GONE, GONE, GONE, GONE),
    "deleted, then asked for": (GONE, YES, GONE, GONE, GONE, GONE, GONE),
    "deleted, its row says more": (GONE, PINNED, GONE, GONE, GONE, GONE, GONE),
    "created again": (YES, YES, YES, YES, BACK, YES, YES),
    "created again, before versions": (YES, YES, YES, YES, BACK, YES, YES),
    "deleted, before versions": (GONE, YES, GONE, GONE, GONE, GONE, GONE),
    "its queue has vanished": (YES, YES, NO_QUEUE, NO_QUEUE, NO_QUEUE, NO_QUEUE, NO_QUEUE),
}

CELLS = [
    pytest.param(SITUATIONS[situation], asked, expected, id=f"{situation} - {name}")
    for situation, row in TABLE.items()
    for (name, asked), expected in zip(ASKED.items(), (*row, YES), strict=True)
]

EVERY_PAIR = list(product(SITUATIONS.values(), ASKED.values()))


def ask(records: Records, asked: Asked, *, published: bool = True) -> Refused | None:
    return refusal(
        Attempt(ACME, asked.operation, asked.version, 1),
        asked.request,
        asked_at=NOON,
        metadata=records.metadata,
        audits=records.audits,
        release=a_release(asked.version) if published else None,
    )


def test_the_table_has_a_row_for_every_situation() -> None:
    assert TABLE.keys() == SITUATIONS.keys()


@pytest.mark.parametrize(("records", "asked", "expected"), CELLS)
def test_which_operations_may_run_in_which_state(records: Records, asked: Asked, expected: Refusal | None) -> None:
    refused = ask(records, asked)
    assert (refused.kind if refused else None) == expected


def test_every_operation_but_a_delete_needs_a_published_release() -> None:
    for records, asked in EVERY_PAIR:
        refused = ask(records, asked, published=False)
        if asked.operation is Operation.DELETE:
            assert refused is None
        else:
            assert refused is not None
            assert refused.kind is Refusal.UNKNOWN_RELEASE
            assert asked.version in refused.reason


def test_every_refusal_names_the_tenant_and_has_advice() -> None:
    reasons = {
        refused.reason
        for (records, asked), published in product(EVERY_PAIR, [True, False])
        if (refused := ask(records, asked, published=published))
    }
    assert len(reasons) > 6
    for reason in reasons:
        assert "acme" in reason
        assert "berth " in reason or "pin first" in reason


def test_only_an_explicit_create_restores_a_deleted_tenant() -> None:
    deleted = SITUATIONS["deleted"]
    everything_else = Request(
        by="ada",
        explicit=False,
        labels={"team": "billing"},
        pin=NEWER,
        allow_downgrade=True,
        allow_replacement=True,
        force=True,
        drain_seconds=60,
    )
    refused = ask(deleted, Asked(Operation.CREATE, NEWER, everything_else))
    assert refused is not None
    assert refused.kind is Refusal.TENANT_DELETED
    assert ask(deleted, Asked(Operation.CREATE, NEWER, replace(everything_else, explicit=True))) is None


def test_a_refused_downgrade_names_both_versions() -> None:
    refused = ask(SITUATIONS["ready"], ASKED["downgrade"])
    assert refused is not None
    assert HERE in refused.reason
    assert OLDER in refused.reason


def test_a_refused_move_names_the_pin() -> None:
    refused = ask(SITUATIONS["pinned ahead"], ASKED["downgrade"])
    assert refused is not None
    assert NEWER in refused.reason
    assert OLDER in refused.reason


@pytest.mark.parametrize("status", [Status.STARTED, Status.FAILURE])
def test_a_tenant_is_deleted_only_if_its_delete_succeeded(status: Status) -> None:
    assert not is_deleted([CREATED, replace(DELETED, status=status)])


@pytest.mark.parametrize("status", list(Status))
def test_a_delete_is_in_effect_whatever_its_status_until_the_tenant_is_created_again(status: Status) -> None:
    delete = replace(DELETED, status=status)
    assert is_delete_in_effect([CREATED, delete])
    assert not is_delete_in_effect([CREATED, replace(delete, revived_by="a create")])
    assert not is_delete_in_effect([CREATED])


def test_a_later_create_supersedes_a_delete_only_if_it_is_marked() -> None:
    later = an_audit(Status.SUCCESS, version=NEWER, at=DELETED.updated_at + AN_HOUR)
    assert is_deleted([CREATED, DELETED, later])
    assert not is_deleted([CREATED, replace(DELETED, revived_by=later.execution), later])
