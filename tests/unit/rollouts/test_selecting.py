"""Selecting the tenants of a rollout, their order and their stages; and the reasons why others are skipped."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.common.tenant_ids import TenantId
from orchestrator.rollouts.records import Item, Result, Share, Skip, Skipped, TenantOutcome
from orchestrator.rollouts.selecting import (
    MAX_NAMED,
    Candidate,
    Selected,
    divide,
    in_order,
    select,
    select_for_retry,
    select_for_undo,
)
from orchestrator.tenants.records import TenantState
from tests.fakes import ACME, NEXT_VERSION, NOON, VERSION
from tests.unit.rollouts.world import LAST_VERSION, ROLLOUT, a_spec, a_stage_spec, tenant, tenants

HUNDRED = tenants(100)


def a_candidate(
    who: TenantId = ACME,
    *,
    state: TenantState = TenantState.READY,
    version: str | None = VERSION,
    pin: str | None = None,
    labels: Mapping[str, str] | None = None,
) -> Candidate:
    return Candidate(who, state, version, pin, labels or {})


def an_outcome(
    who: TenantId = ACME, *, version: str = NEXT_VERSION, from_version: str | None = VERSION
) -> TenantOutcome:
    return TenantOutcome(ROLLOUT, 1, Item(who, version), Result.SUCCEEDED, NOON, from_version=from_version)


def chosen(selected: Selected) -> list[str]:
    return [item.tenant.value for item in selected.items]


def of_the_fleet(*fleet: Candidate, version: str = NEXT_VERSION, **spec: Any) -> Selected:
    return select(a_spec(version=version, **spec), version, fleet)


def those(*candidates: Candidate) -> dict[TenantId, Candidate]:
    return {candidate.tenant: candidate for candidate in candidates}


# Skipped tenants


@pytest.mark.parametrize(
    ("candidate", "why"),
    [
        (a_candidate(version=NEXT_VERSION), Skip.CURRENT),
        (a_candidate(version=NEXT_VERSION, pin=VERSION), Skip.CURRENT),
        (a_candidate(version=LAST_VERSION), Skip.NEWER),
        (a_candidate(pin=VERSION), Skip.PINNED),
        (a_candidate(pin=LAST_VERSION), Skip.PINNED),
        (a_candidate(state=TenantState.UPDATING, pin=VERSION), Skip.PINNED),
        (a_candidate(state=TenantState.DELETING, version=NEXT_VERSION), Skip.CURRENT),
        (a_candidate(state=TenantState.DELETING, version=LAST_VERSION), Skip.NEWER),
        (a_candidate(state=TenantState.FAILED, version=None), Skip.NOT_PROVISIONED),
        (a_candidate(state=TenantState.UNKNOWN, version=None), Skip.NOT_PROVISIONED),
        (a_candidate(state=TenantState.READY, version=None), Skip.NOT_PROVISIONED),
        (a_candidate(state=TenantState.DELETED, version=None), Skip.DELETED),
    ],
)
def test_a_tenant_that_cannot_or_need_not_be_moved_is_skipped_with_the_reason(candidate: Candidate, why: Skip) -> None:
    selected = of_the_fleet(candidate)

    assert chosen(selected) == []
    assert selected.skipped == {why: Skipped(1, ("acme",))}


@pytest.mark.parametrize(
    "candidate",
    [
        a_candidate(),
        a_candidate(state=TenantState.UPDATE_FAILED),
        a_candidate(pin=NEXT_VERSION),
        a_candidate(version="made-by-hand"),
    ],
)
def test_a_tenant_that_is_served_at_another_version_is_selected(candidate: Candidate) -> None:
    assert of_the_fleet(candidate).items == [Item(ACME, NEXT_VERSION)]


BUSY = [
    a_candidate(state=TenantState.PROVISIONING, version=None),
    a_candidate(state=TenantState.UPDATING),
    a_candidate(state=TenantState.UPDATING, version=NEXT_VERSION),
    a_candidate(state=TenantState.DELETING),
]


@pytest.mark.parametrize("candidate", BUSY)
def test_a_busy_tenant_is_selected_because_its_update_waits(candidate: Candidate) -> None:
    assert of_the_fleet(candidate).items == [Item(ACME, NEXT_VERSION)]


@pytest.mark.parametrize("candidate", BUSY)
def test_a_dry_run_skips_busy_tenants(candidate: Candidate) -> None:
    assert of_the_fleet(candidate, dry_run=True).skipped == {Skip.BUSY: Skipped(1, ("acme",))}


def test_a_downgrade_has_to_be_allowed() -> None:
    newer = a_candidate(version=LAST_VERSION)

    assert chosen(of_the_fleet(newer)) == []
    assert chosen(of_the_fleet(newer, allow_downgrade=True)) == ["acme"]


def test_allowing_downgrades_does_not_override_pins() -> None:
    pinned = a_candidate(version=LAST_VERSION, pin=LAST_VERSION)

    assert of_the_fleet(pinned, allow_downgrade=True).skipped == {Skip.PINNED: Skipped(1, ("acme",))}


def test_all_skipped_tenants_are_counted_and_a_few_are_named() -> None:
    selected = of_the_fleet(*(a_candidate(who, pin=VERSION) for who in reversed(HUNDRED)))

    assert selected.skipped[Skip.PINNED].count == 100
    assert selected.skipped[Skip.PINNED].tenants == tuple(who.value for who in HUNDRED[:MAX_NAMED])


# Requested tenants


def test_without_a_list_all_tenants_are_selected() -> None:
    selected = of_the_fleet(*(a_candidate(who) for who in HUNDRED))

    assert sorted(chosen(selected)) == [who.value for who in HUNDRED]
    assert selected.skipped == {}


def test_a_list_selects_only_the_named_tenants() -> None:
    selected = of_the_fleet(*(a_candidate(who) for who in HUNDRED), tenants=(HUNDRED[3], HUNDRED[7]))

    assert sorted(chosen(selected)) == ["t004", "t008"]
    assert selected.skipped == {}


def test_a_named_tenant_that_does_not_exist_is_reported() -> None:
    selected = of_the_fleet(a_candidate(), tenants=(ACME, tenant("nobody")))

    assert chosen(selected) == ["acme"]
    assert selected.skipped == {Skip.UNKNOWN: Skipped(1, ("nobody",))}


def test_labels_select_only_tenants_with_all_of_them() -> None:
    fleet = [
        a_candidate(tenant("both"), labels={"team": "billing", "tier": "gold", "more": "x"}),
        a_candidate(tenant("one"), labels={"team": "billing"}),
        a_candidate(tenant("other-value"), labels={"team": "billing", "tier": "silver"}),
        a_candidate(tenant("none")),
    ]

    selected = of_the_fleet(*fleet, labels={"team": "billing", "tier": "gold"})

    assert chosen(selected) == ["both"]
    assert selected.skipped == {}, "who it is not about is not left out"


def test_a_tenant_that_is_listed_twice_is_selected_once() -> None:
    selected = of_the_fleet(a_candidate(), a_candidate(state=TenantState.UPDATING), a_candidate())

    assert chosen(selected) == ["acme"]
    assert selected.skipped == {}


@pytest.mark.parametrize(("share", "size"), [("1", 1), ("30", 30), ("500", 100)])
def test_a_share_may_be_a_number(share: str, size: int) -> None:
    fleet = [a_candidate(who) for who in HUNDRED]

    assert len(chosen(of_the_fleet(*fleet, share=Share(int(share))))) == size


@pytest.mark.parametrize(("percent", "of", "size"), [(10, 100, 10), (1, 3, 1), (50, 3, 2), (100, 3, 3), (34, 100, 34)])
def test_a_share_may_be_a_percentage_and_is_rounded_up(percent: int, of: int, size: int) -> None:
    fleet = [a_candidate(who) for who in HUNDRED[:of]]

    assert len(chosen(of_the_fleet(*fleet, share=Share(percent, percent=True)))) == size


@given(st.integers(1, 100), st.integers(1, 100), st.booleans(), st.booleans(), st.integers(0, 60))
def test_a_larger_share_contains_the_smaller_one_and_selection_is_deterministic(
    one: int, another: int, one_percent: bool, another_percent: bool, total: int
) -> None:
    fleet = [a_candidate(who) for who in HUNDRED[:total]]
    shares = [Share(one, one_percent), Share(another, another_percent)]

    smaller, larger = sorted((chosen(of_the_fleet(*fleet, share=share)) for share in shares), key=len)

    assert larger[: len(smaller)] == smaller


def test_a_share_counts_only_tenants_that_can_be_moved() -> None:
    fleet = [a_candidate(who, pin=VERSION if who in HUNDRED[:50] else None) for who in HUNDRED]

    selected = of_the_fleet(*fleet, share=Share(10, percent=True))

    assert len(selected.items) == 5
    assert selected.skipped[Skip.PINNED].count == 50


# Order


@given(st.randoms(use_true_random=False))
def test_the_order_does_not_depend_on_the_order_of_the_list(chance: random.Random) -> None:
    fleet = [a_candidate(who) for who in HUNDRED]
    expected = chosen(of_the_fleet(*fleet))
    chance.shuffle(fleet)

    assert chosen(of_the_fleet(*fleet)) == expected


def test_the_order_is_not_alphabetical_and_differs_per_release() -> None:
    fleet = [a_candidate(who) for who in HUNDRED]

    orders = [chosen(of_the_fleet(*fleet, version=version)) for version in (NEXT_VERSION, LAST_VERSION)]

    assert orders[0] != orders[1]
    assert sorted(orders[0]) not in orders


# Undo and retry


def test_undo_selects_each_tenant_with_its_earlier_version() -> None:
    moved = [an_outcome(tenant("a"), from_version="0.0.9"), an_outcome(tenant("b"))]
    fleet = those(a_candidate(tenant("a"), version=NEXT_VERSION), a_candidate(tenant("b"), version=NEXT_VERSION))

    selected = select_for_undo(a_spec(version=None, allow_downgrade=True), moved, fleet)

    assert sorted((item.tenant.value, item.version) for item in selected.items) == [("a", "0.0.9"), ("b", VERSION)]


def test_undo_may_select_all_tenants_with_one_version() -> None:
    moved = [an_outcome(tenant("a"), from_version="0.0.9"), an_outcome(tenant("b"))]
    fleet = those(a_candidate(tenant("a"), version=NEXT_VERSION), a_candidate(tenant("b"), version=NEXT_VERSION))

    selected = select_for_undo(a_spec(version=LAST_VERSION), moved, fleet)

    assert {item.version for item in selected.items} == {LAST_VERSION}


@pytest.mark.parametrize(
    ("now", "why"),
    [
        ([a_candidate(version=LAST_VERSION)], Skip.MOVED_SINCE),
        ([a_candidate(version=None, state=TenantState.FAILED)], Skip.MOVED_SINCE),
        ([a_candidate(version=VERSION)], Skip.CURRENT),
        ([a_candidate(version=NEXT_VERSION, pin=NEXT_VERSION)], Skip.PINNED),
        ([a_candidate(version=None, state=TenantState.DELETED)], Skip.DELETED),
        ([], Skip.DELETED),
    ],
)
def test_undo_skips_a_tenant_that_is_no_longer_at_the_rollouts_version(now: Iterable[Candidate], why: Skip) -> None:
    selected = select_for_undo(a_spec(version=None, allow_downgrade=True), [an_outcome()], those(*now))

    assert chosen(selected) == []
    assert selected.skipped == {why: Skipped(1, ("acme",))}


@pytest.mark.parametrize("version", [VERSION, NEXT_VERSION])
@pytest.mark.parametrize("state", [TenantState.UPDATING, TenantState.DELETING])
def test_undo_selects_a_busy_tenant_at_the_rollouts_version(state: TenantState, version: str) -> None:
    busy = those(a_candidate(version=version, state=state))

    selected = select_for_undo(a_spec(version=None, allow_downgrade=True), [an_outcome()], busy)

    deleted_where_it_was = state is TenantState.DELETING and version == VERSION
    assert chosen(selected) == ([] if deleted_where_it_was else ["acme"])


def test_undo_does_not_select_tenants_that_the_rollout_did_not_move() -> None:
    at_release = those(a_candidate(version=NEXT_VERSION))

    selected = select_for_undo(a_spec(version=None, allow_downgrade=True), [an_outcome(from_version=None)], at_release)

    assert chosen(selected) == []


def test_undo_for_some_labels_ignores_other_tenants() -> None:
    moved = [an_outcome(tenant("a")), an_outcome(tenant("b")), an_outcome(tenant("c"))]
    fleet = those(
        a_candidate(tenant("a"), version=NEXT_VERSION, labels={"team": "billing"}),
        a_candidate(tenant("b"), version=LAST_VERSION),
        a_candidate(tenant("c"), version=NEXT_VERSION, pin=NEXT_VERSION),
    )

    selected = select_for_undo(a_spec(version=None, allow_downgrade=True, labels={"team": "billing"}), moved, fleet)

    assert chosen(selected) == ["a"]
    assert selected.skipped == {}


def test_retry_selects_each_tenant_with_its_original_target() -> None:
    failed = [an_outcome(tenant("a")), an_outcome(tenant("b"), version=LAST_VERSION)]
    fleet = those(
        a_candidate(tenant("a"), state=TenantState.UPDATE_FAILED),
        a_candidate(tenant("b"), state=TenantState.UPDATE_FAILED),
        a_candidate(tenant("c")),
    )

    selected = select_for_retry(a_spec(), failed, fleet)

    assert sorted((item.tenant.value, item.version) for item in selected.items) == [
        ("a", NEXT_VERSION),
        ("b", LAST_VERSION),
    ]


def test_retry_skips_tenants_that_were_moved_or_deleted_since() -> None:
    failed = [an_outcome(tenant("a")), an_outcome(tenant("b"))]

    selected = select_for_retry(a_spec(), failed, those(a_candidate(tenant("a"), version=NEXT_VERSION)))

    assert chosen(selected) == []
    assert selected.skipped == {Skip.CURRENT: Skipped(1, ("a",)), Skip.DELETED: Skipped(1, ("b",))}


# Stages


@pytest.mark.parametrize(
    ("sizes", "total", "expected"),
    [
        ([Share(1), Share(10, True), None], 100, [1, 10, 89]),
        ([Share(1), Share(10, True), None], 15, [1, 2, 12]),
        ([Share(50, True), Share(50, True), None], 9, [5, 4, 0]),
        ([Share(1), Share(10, True), None], 1, [1, 0, 0]),
        ([Share(7), None], 3, [3, 0]),
        ([None], 4, [4]),
        ([Share(1), None], 0, [0, 0]),
    ],
)
def test_stages_take_shares_of_all_tenants_and_the_last_takes_the_rest(
    sizes: list[Share | None], total: int, expected: list[int]
) -> None:
    items = [Item(who, NEXT_VERSION) for who in HUNDRED[:total]]

    divided = divide(items, [a_stage_spec(size) for size in sizes])

    assert [len(stage) for stage in divided] == expected


SHARES = st.builds(Share, st.integers(1, 100), st.booleans())


@given(st.integers(0, 100), st.lists(SHARES, max_size=9))
def test_no_tenant_is_in_two_stages_and_none_is_lost(total: int, sizes: list[Share]) -> None:
    items = in_order([Item(who, NEXT_VERSION) for who in HUNDRED[:total]], NEXT_VERSION)

    divided = divide(items, [*(a_stage_spec(size) for size in sizes), a_stage_spec()])

    assert [item for stage in divided for item in stage] == items
    assert all(len(stage) <= size.size_of(total) for stage, size in zip(divided, sizes, strict=False))


@given(SHARES, st.integers(0, 1_000))
def test_sizes_are_rounded_up_and_bounds_are_rounded_down(share: Share, total: int) -> None:
    assert min(total, 1) <= share.size_of(total) <= total
    if share.percent:
        assert share.bound_of(total) * 100 <= share.number * total
    else:
        assert share.bound_of(total) == share.number
