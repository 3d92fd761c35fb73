"""One tenant's rows against its stack: every way in which the two may differ, and what would be done about it."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from orchestrator.reconciling.classifying import STANDS, Observation, classify, drifted, foreign_stack
from orchestrator.reconciling.records import Finding, Kind, Remedy
from orchestrator.releases.published import same_content
from orchestrator.tenants.records import Audit, Lock, Metadata, Operation, Status
from orchestrator.tenants.stack_ports import Stack
from orchestrator.tenants.stack_status import StackCondition, condition
from orchestrator.tenants.state import is_delete_in_effect
from tests.fakes import (
    ACME,
    NAMES,
    NEXT_VERSION,
    NOON,
    OTHER_QUEUE,
    QUEUE,
    VERSION,
    a_release,
    a_run,
    an_audit,
    some_metadata,
    stack_arn,
)
from tests.unit.reconciling.world import A_MINUTE
from tests.unit.test_stack_status import SORTED

RELEASES = {version: a_release(version) for version in (VERSION, NEXT_VERSION)}
METADATA = some_metadata()
STACK = Stack(stack_arn(), "CREATE_COMPLETE", "", ACME.value, QUEUE, VERSION, ours=True)
LOCK = Lock(a_run(), None)
CREATED = an_audit(Status.SUCCESS)
CREATE_FAILED = an_audit(Status.FAILURE)
UPDATE_FAILED = an_audit(Status.FAILURE, Operation.UPDATE, version=NEXT_VERSION, at=NOON + A_MINUTE)
DELETED = an_audit(Status.SUCCESS, Operation.DELETE, version=None, at=NOON + A_MINUTE)
DELETE_FAILED = replace(DELETED, status=Status.FAILURE)
REVIVED = replace(DELETED, revived_by="a create")
WITHDRAWN = replace(METADATA, withdrawn_by="a delete")
UNPUBLISHED = replace(METADATA, version=None)
OTHER_STACK = replace(STACK, stack_id=stack_arn(number=2))


def looked(
    metadata: Metadata | None = METADATA,
    audits: tuple[Audit, ...] = (CREATED,),
    stack: Stack | None = STACK,
    *,
    lock: Lock | None = None,
    gone: bool = False,
    ours: bool = True,
    **more: Any,
) -> Observation:
    """The outputs of a stack name the queue that is among its resources, unless something else is said."""
    own_queue = more.get("own_queue", stack.queue if stack else None)
    return Observation(ACME, NAMES.stack_of(ACME), metadata, audits, lock, stack, gone, ours, own_queue)


def stack_that_is(status: str, **more: Any) -> Stack:
    return replace(STACK, status=status, **more)


OLDER_THAN_BERTH = replace(METADATA, version="0.0.9")
ADOPTED_STACK = replace(STACK, tenant_id=None, queue=None, version=None, ours=False)
"""As a template of an earlier system may have it: it says neither for whom it is, nor which queue it has."""

CASES: dict[str, tuple[Observation, tuple[Kind, Remedy] | None]] = {
    # Tenants that were adopted
    "an adopted tenant": (looked(OLDER_THAN_BERTH, stack=ADOPTED_STACK, own_queue=QUEUE), None),
    "an adopted tenant whose stack has another queue": (
        looked(OLDER_THAN_BERTH, stack=ADOPTED_STACK, own_queue=OTHER_QUEUE),
        (Kind.METADATA_DIFFERS, Remedy.NONE),
    ),
    "an adopted tenant whose stack is gone, with its queue": (
        looked(OLDER_THAN_BERTH, stack=None, gone=True),
        (Kind.MISSING_STACK, Remedy.RECREATE),
    ),
    "a tenant that is older than Berth, and at its old version": (
        looked(OLDER_THAN_BERTH, stack=replace(STACK, version="0.0.9")),
        None,
    ),
    "a stack that says nothing, and that nobody was served from": (
        looked(replace(METADATA, stack_id=stack_arn(number=2)), stack=ADOPTED_STACK),
        (Kind.FOREIGN_STACK, Remedy.NONE),
    ),
    # Nobody is disturbed
    "all is well": (looked(), None),
    "nothing is known, and nothing is there": (looked(None, (), None), None),
    "an operation owns it": (looked(stack=None, gone=True, lock=LOCK), None),
    "an operation owns it, whose stack is foreign": (looked(stack=replace(STACK, tenant_id=None), lock=LOCK), None),
    "CloudFormation is at its stack": (looked(stack=stack_that_is("UPDATE_IN_PROGRESS"), gone=True), None),
    "CloudFormation is at an orphan": (looked(None, (DELETED,), stack_that_is("DELETE_IN_PROGRESS")), None),
    # Someone else's stack
    "a stack of another tenant": (looked(stack=replace(STACK, tenant_id="other")), (Kind.FOREIGN_STACK, Remedy.NONE)),
    "a stack that somebody made for a tenant that is not known": (
        looked(None, (), STACK, ours=False),
        (Kind.FOREIGN_STACK, Remedy.NONE),
    ),
    "a stack that somebody made for a tenant that was deleted": (
        looked(None, (DELETED,), STACK, ours=False),
        (Kind.FOREIGN_STACK, Remedy.NONE),
    ),
    "a stack that somebody made where a served tenant's stack was": (
        looked(stack=replace(OTHER_STACK, queue=OTHER_QUEUE), ours=False),
        (Kind.FOREIGN_STACK, Remedy.NONE),
    ),
    "a stack that somebody made, which an operation is about to refuse": (
        looked(None, (), ours=False, lock=LOCK),
        None,
    ),
    "served, the stack's outputs name a queue that it does not have": (
        looked(stack=replace(STACK, queue=OTHER_QUEUE), own_queue=QUEUE),
        (Kind.METADATA_DIFFERS, Remedy.NONE),
    ),
    "served, the stack is another, whose outputs name a queue that it does not have": (
        looked(stack=OTHER_STACK, own_queue=None),
        (Kind.METADATA_DIFFERS, Remedy.NONE),
    ),
    "a stack of nobody": (looked(None, (), replace(STACK, tenant_id=None)), (Kind.FOREIGN_STACK, Remedy.NONE)),
    "another case": (looked(stack=replace(STACK, tenant_id="Acme")), (Kind.FOREIGN_STACK, Remedy.NONE)),
    # Served, and no stack
    "served, stack and queue are gone": (looked(stack=None, gone=True), (Kind.MISSING_STACK, Remedy.RECREATE)),
    "served, the stack was deleted": (
        looked(stack=stack_that_is("DELETE_COMPLETE"), gone=True),
        (Kind.MISSING_STACK, Remedy.RECREATE),
    ),
    "served, the queue outlived its stack": (looked(stack=None), (Kind.MISSING_STACK, Remedy.NONE)),
    "served, from before stacks were recorded": (
        looked(replace(METADATA, stack_id=None), stack=None, gone=True),
        (Kind.MISSING_STACK, Remedy.NONE),
    ),
    # Served, and no queue
    "served, the queue vanished": (looked(gone=True), (Kind.VANISHED_QUEUE, Remedy.NONE)),
    "served, the queue vanished under a stack that says none": (
        looked(stack=replace(STACK, queue=None), gone=True),
        (Kind.VANISHED_QUEUE, Remedy.NONE),
    ),
    "served, the queue vanished and an update failed": (
        looked(stack=stack_that_is("UPDATE_ROLLBACK_FAILED"), gone=True),
        (Kind.VANISHED_QUEUE, Remedy.NONE),
    ),
    # Served, and the stack does not stand
    "served, somebody left the stack broken": (
        looked(stack=stack_that_is("DELETE_FAILED")),
        (Kind.BROKEN_STACK, Remedy.NONE),
    ),
    "served, its update failed and says so": (
        looked(audits=(CREATED, UPDATE_FAILED), stack=stack_that_is("UPDATE_ROLLBACK_FAILED")),
        None,
    ),
    # Served, and something differs
    "served, the stack has another queue": (
        looked(stack=replace(STACK, queue=OTHER_QUEUE)),
        (Kind.METADATA_DIFFERS, Remedy.CORRECT),
    ),
    "served, the stack has another queue, and the one on record is gone": (
        looked(stack=replace(STACK, queue=OTHER_QUEUE), gone=True),
        (Kind.METADATA_DIFFERS, Remedy.CORRECT),
    ),
    "served, the stack is another": (looked(stack=OTHER_STACK), (Kind.METADATA_DIFFERS, Remedy.CORRECT)),
    "served, the stack is at another version": (
        looked(stack=replace(STACK, version=NEXT_VERSION)),
        (Kind.METADATA_DIFFERS, Remedy.CORRECT),
    ),
    "served, the stack was undone to another version": (
        looked(stack=stack_that_is("UPDATE_ROLLBACK_COMPLETE", version=NEXT_VERSION)),
        (Kind.METADATA_DIFFERS, Remedy.CORRECT),
    ),
    "served, the stack says no queue": (
        looked(stack=replace(STACK, queue=None)),
        (Kind.METADATA_DIFFERS, Remedy.NONE),
    ),
    "served, the stack says another queue and no version": (
        looked(stack=replace(STACK, queue=OTHER_QUEUE, version=None)),
        (Kind.METADATA_DIFFERS, Remedy.NONE),
    ),
    "served, from before stacks were recorded, with the same queue": (looked(replace(METADATA, stack_id=None)), None),
    "served, the stack is from before versions": (looked(stack=replace(STACK, version=None)), None),
    "served, an update failed half-way": (
        looked(audits=(CREATED, UPDATE_FAILED), stack=stack_that_is("UPDATE_ROLLBACK_FAILED", queue=OTHER_QUEUE)),
        None,
    ),
    "served, an update failed and was undone": (
        looked(audits=(CREATED, UPDATE_FAILED), stack=stack_that_is("UPDATE_ROLLBACK_COMPLETE")),
        None,
    ),
    "served, at a version of which nobody knows": (
        looked(replace(METADATA, version="9.9.9"), stack=replace(STACK, version="9.9.9")),
        (Kind.UNKNOWN_VERSION, Remedy.UPGRADE),
    ),
    "served, though it was deleted once": (looked(audits=(CREATED, DELETED)), None),
    # Not served, and no stack
    "its queue vanished with its stack": (looked(None, (CREATED,), None), (Kind.MISSING_STACK, Remedy.CREATE)),
    "its queue was forgotten": (
        looked(replace(METADATA, queue=None, version=None, stack_id=None), (CREATED,), None),
        (Kind.MISSING_STACK, Remedy.CREATE),
    ),
    "it was deleted": (looked(None, (CREATED, DELETED), None), None),
    "it was deleted, revived and created": (
        looked(None, (replace(CREATED, updated_at=NOON + 2 * A_MINUTE), REVIVED), None),
        (Kind.MISSING_STACK, Remedy.CREATE),
    ),
    "its create failed": (looked(None, (CREATE_FAILED,), None), None),
    "its delete failed": (looked(WITHDRAWN, (CREATED, DELETE_FAILED), None), None),
    "it was never created, only an update was refused": (looked(None, (UPDATE_FAILED,), None), None),
    # Not served, and a stack
    "it was deleted, and its stack stands": (
        looked(None, (CREATED, DELETED)),
        (Kind.ORPHAN_STACK, Remedy.DELETE),
    ),
    "it was deleted, and remains are there": (
        looked(None, (DELETED,), stack_that_is("ROLLBACK_COMPLETE")),
        (Kind.ORPHAN_STACK, Remedy.DELETE),
    ),
    "nobody knows it, and its stack stands": (looked(None, ()), (Kind.ORPHAN_STACK, Remedy.CREATE)),
    "nobody knows it but its own stack": (looked(UNPUBLISHED, ()), (Kind.ORPHAN_STACK, Remedy.CREATE)),
    "nobody knows it, and its stack never lived": (
        looked(None, (), stack_that_is("ROLLBACK_COMPLETE")),
        (Kind.ORPHAN_STACK, Remedy.NONE),
    ),
    "it was created, is not on record, and its stack stands": (
        looked(None, (CREATED,)),
        (Kind.METADATA_DIFFERS, Remedy.CREATE),
    ),
    "it was created, is not on record, and its stack is broken": (
        looked(None, (CREATED,), stack_that_is("DELETE_FAILED")),
        (Kind.METADATA_DIFFERS, Remedy.NONE),
    ),
    "its create failed, and remains are there": (
        looked(UNPUBLISHED, (CREATE_FAILED,), stack_that_is("ROLLBACK_COMPLETE")),
        None,
    ),
    "its delete failed, and the stack is broken": (
        looked(WITHDRAWN, (CREATED, DELETE_FAILED), stack_that_is("DELETE_FAILED")),
        None,
    ),
}


def classified(case: Observation) -> Finding | None:
    return classify(case, RELEASES)


@pytest.mark.parametrize("name", CASES)
def test_a_tenant_is_classified(name: str) -> None:
    case, expected = CASES[name]
    finding = classified(case)
    assert (finding and (finding.kind, finding.remedy)) == expected


@pytest.mark.parametrize("name", [name for name, (_, expected) in CASES.items() if expected])
def test_a_finding_has_its_subject_and_advice(name: str) -> None:
    finding = classified(CASES[name][0])
    assert finding is not None
    assert finding.detail
    assert finding.subject == (NAMES.stack_of(ACME) if finding.kind is Kind.FOREIGN_STACK else ACME.value)
    assert bool(finding.advice) == (finding.remedy is Remedy.NONE)
    assert not finding.repaired
    assert str(finding) == f"{finding.kind}: {finding.subject}: {finding.detail}"


def test_the_differences_are_named() -> None:
    finding = classified(looked(stack=replace(OTHER_STACK, queue=OTHER_QUEUE, version=NEXT_VERSION)))
    assert finding is not None
    for value in (QUEUE.url, OTHER_QUEUE.url, STACK.stack_id, OTHER_STACK.stack_id, VERSION, NEXT_VERSION):
        assert value in finding.detail


def test_versions_with_the_same_content_do_not_differ() -> None:
    """Moving between them is recorded without a word to CloudFormation."""
    same = {version: a_release(version, content="the same") for version in (VERSION, NEXT_VERSION)}
    assert classify(looked(stack=replace(STACK, version=NEXT_VERSION)), same) is None
    assert classify(looked(stack=replace(STACK, version=NEXT_VERSION)), RELEASES) is not None


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("a", "b", True),
        ("a", "a", True),
        ("a", "c", False),
        ("a", "unknown", False),
        ("unknown", "unknown", False),
        ("a", None, False),
        (None, None, False),
        ("no content", "neither", False),
    ],
)
def test_versions_are_compared_by_the_content_of_published_releases(
    one: str | None, other: str | None, same: bool
) -> None:
    contents = {"a": "x", "b": "x", "c": "y", "no content": "", "neither": ""}
    releases = {version: a_release(version, content=content) for version, content in contents.items()}
    assert same_content(one, other, releases.get) is same
    assert same_content(other, one, releases.get) is same


def test_the_finding_about_a_foreign_stack_names_its_tenant() -> None:
    assert "made for other" in foreign_stack("a-name", replace(STACK, tenant_id="other")).detail
    assert "made for something else" in foreign_stack("a-name", replace(STACK, tenant_id=None)).detail


def test_the_advice_is_not_to_rename_a_stack() -> None:
    advice = foreign_stack("a-name", replace(STACK, tenant_id="other")).advice
    assert "ename" not in advice
    assert "CloudTrail" in advice


def test_the_finding_about_drift_has_a_command_that_shows_it() -> None:
    finding = drifted(STACK, "2 of its resources")
    assert (finding.kind, finding.subject, finding.remedy) == (Kind.DRIFTED, ACME.value, Remedy.NONE)
    assert "2 of its resources" in finding.detail
    assert STACK.stack_id in finding.advice
    assert drifted(replace(STACK, tenant_id=None), "").subject == STACK.stack_id


# Whatever is found


def everything(count: int, seed: int = 20261116) -> list[Observation]:
    """Rows and stacks in any combination, also in such as should never be."""
    random_ = random.Random(seed)
    statuses = [status for group in SORTED.values() for status in sorted(group)] + ["REFACTOR_COMPLETE"]
    audits = [
        an_audit(status, operation, version=version, at=NOON + minutes * A_MINUTE, revived_by=by)
        for status, operation, version, minutes, by in product(
            Status, Operation, (VERSION, NEXT_VERSION, None), (0, 1, 2), (None, "a create")
        )
        if by is None or operation is Operation.DELETE
    ]
    metadata = [
        None,
        *(
            replace(METADATA, queue=queue, version=version, withdrawn_by=by, stack_id=stack)
            for queue, version, by, stack in product(
                (None, QUEUE, OTHER_QUEUE),
                (None, VERSION, "9.9.9"),
                (None, "a delete"),
                (None, STACK.stack_id, OTHER_STACK.stack_id),
            )
        ),
    ]

    def a_stack() -> Stack | None:
        if random_.random() < 0.2:
            return None
        return Stack(
            random_.choice((STACK.stack_id, OTHER_STACK.stack_id)),
            random_.choice(statuses),
            "",
            random_.choice((ACME.value, ACME.value, ACME.value, "other", None)),
            random_.choice((QUEUE, QUEUE, OTHER_QUEUE, None)),
            random_.choice((VERSION, NEXT_VERSION, "9.9.9", None)),
            ours=True,
        )

    def some_audits() -> list[Audit]:
        """One a row: of deletes there is one, of others one a version."""
        rows = {
            (audit.operation, audit.operation is not Operation.DELETE and audit.version): audit
            for audit in random_.sample(audits, random_.randrange(4))
        }
        return list(rows.values())

    return [
        Observation(
            ACME,
            NAMES.stack_of(ACME),
            random_.choice(metadata),
            some_audits(),
            LOCK if random_.random() < 0.1 else None,
            a_stack(),
            queue_is_gone=random_.random() < 0.3,
            stack_is_ours=random_.random() < 0.8,
            own_queue=random_.choice((QUEUE, OTHER_QUEUE, None)),
        )
        for _ in range(count)
    ]


@pytest.fixture(scope="module")
def all_classified() -> list[tuple[Observation, Finding | None]]:
    return [(case, classified(case)) for case in everything(8_000)]


Classified = list[tuple[Observation, Finding | None]]


ELSEWHERE = {Kind.UNFINISHED, Kind.DRIFTED, Kind.NOT_ADOPTED, Kind.STALLED_ROLLOUT}
"""Findings that comparing one tenant's rows with its stack does not produce."""


def test_the_cases_cover_every_kind_and_remedy_of_a_tenant(all_classified: Classified) -> None:
    found = [finding for _, finding in all_classified if finding]
    assert {finding.kind for finding in found} == set(Kind) - ELSEWHERE
    assert {finding.remedy for finding in found} == set(Remedy) - {Remedy.SETTLE}


def test_a_tenant_that_is_being_changed_has_no_finding(all_classified: Classified) -> None:
    busy = [
        finding
        for case, finding in all_classified
        if case.lock or (case.stack and condition(case.stack.status) is StackCondition.WORKING)
    ]
    assert len(busy) > 500
    assert not any(busy)


def test_only_a_deleted_tenant_that_is_not_served_is_deleted(all_classified: Classified) -> None:
    for case, finding in all_classified:
        if finding and finding.remedy is Remedy.DELETE:
            assert not (case.metadata and case.metadata.published)
            assert any(audit.operation is Operation.DELETE and audit.status is Status.SUCCESS for audit in case.audits)


def test_a_deleted_tenant_is_not_restored(all_classified: Classified) -> None:
    for case, finding in all_classified:
        if finding and finding.remedy is Remedy.CREATE:
            assert not is_delete_in_effect(case.audits)


def test_a_queue_that_exists_is_not_forgotten(all_classified: Classified) -> None:
    for case, finding in all_classified:
        if finding and finding.remedy is Remedy.RECREATE:
            assert case.queue_is_gone
            assert case.live_stack is None


def test_metadata_is_corrected_only_from_a_healthy_stack_with_complete_outputs(all_classified: Classified) -> None:
    for case, finding in all_classified:
        if finding and finding.remedy is Remedy.CORRECT:
            assert case.stack is not None
            assert condition(case.stack.status) in STANDS
            assert case.stack.queue
            assert case.stack.version
            assert is_its_own(case)
            assert case.stack_is_ours
            assert case.stack.queue == case.own_queue


def is_its_own(case: Observation) -> bool:
    """The stack says whose it is; or it is from before Berth, says nothing, and the tenant is served from it."""
    stack, metadata = case.live_stack, case.metadata
    if stack is None or stack.tenant_id is not None or metadata is None:
        return stack is not None and stack.tenant_id == ACME.value
    return metadata.version is not None and metadata.stack_id == stack.stack_id


def test_a_foreign_stack_is_never_changed(all_classified: Classified) -> None:
    foreign = [
        finding
        for case, finding in all_classified
        if finding and case.live_stack and not (is_its_own(case) and case.stack_is_ours)
    ]
    assert foreign
    assert {finding.remedy for finding in foreign} == {Remedy.NONE}
