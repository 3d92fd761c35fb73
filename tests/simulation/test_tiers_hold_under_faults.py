"""Tenants of several tiers, and moves between them, under faults: a tenant is always of the tier of its release.

The actions have a set of their own, so that the other runs stay as their seeds have drawn them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.tiers import STANDARD
from orchestrator.common.writes import Update
from orchestrator.releases.states import ReleaseChooser
from orchestrator.tenants import operation_transitions, operations
from orchestrator.tenants.records import Operation, Run
from orchestrator.tenants.writes import MetadataKey
from tests.fakes import a_release
from tests.simulation.actions import (
    Action,
    abort,
    admitted_long_ago,
    ask,
    delete,
    delete_the_stack_by_hand,
    retry,
    survey,
    upgrade,
)
from tests.simulation.environment import Environment
from tests.simulation.planting import Bug, wrapping
from tests.simulation.seeded_run import Broken, SeededRun

SEEDS = range(150)
BUG_SEEDS = range(400)
OTHER_TIERS = {"gold": "5.0.0", "silver": "6.0.0"}
TIERS = (STANDARD, *OTHER_TIERS)


def create_in_a_tier(env: Environment, tenant: TenantId, version: str) -> None:
    _publish(env)
    env.people.create_in(tenant, version, env.rng.choice(TIERS))


def move(env: Environment, tenant: TenantId, version: str) -> None:
    _publish(env)
    env.people.move(tenant, version, env.rng.choice(TIERS))


def _publish(env: Environment) -> None:
    for tier, version in OTHER_TIERS.items():
        env.table.record_release(a_release(version, tier=tier))


ACTIONS: tuple[Action, ...] = (
    *(move, move, move, move, create_in_a_tier, create_in_a_tier, upgrade, retry, retry, ask),
    *(delete, abort, abort, admitted_long_ago, delete_the_stack_by_hand, survey),
)


def play_all(seeds: range) -> Counter[str]:
    seen: Counter[str] = Counter()
    for seed in seeds:
        run = SeededRun(seed, actions=ACTIONS)
        run.play()
        seen += run.seen
    return seen


def test_a_tenant_is_of_the_tier_of_its_release_whatever_happens() -> None:
    seen = play_all(SEEDS)
    moves = {f"{operation} in another tier" for operation in (Operation.CREATE, Operation.UPDATE)}
    assert moves | {"UPDATE Success", "UPDATE Failure", "Refused"} <= set(seen)


@wrapping("begun", operation_transitions)
def _the_tier_changes_before_the_stack_has_moved(original: Any, run: Run, *args: Any, **named: Any) -> Any:
    writes, release = original(run, *args, **named), named.get("release")
    if run.attempt.operation is not Operation.UPDATE or release is None:
        return writes
    return [
        replace(write, sets={**write.sets, "recorded_tier": release.tier})
        if isinstance(write, Update) and isinstance(write.key, MetadataKey)
        else write
        for write in writes
    ]


@wrapping("choose", ReleaseChooser)
def _the_current_release_of_another_tier_is_chosen(original: Any, self: ReleaseChooser, _tier: str = STANDARD) -> Any:
    return original(self, STANDARD)


@wrapping("_in_its_tier", operations)
def _the_tier_is_not_published(original: Any, *args: Any) -> Any:
    return replace(original(*args), tier=None)


BUGS: dict[str, tuple[Bug, str]] = {
    "the tier changes before the stack has moved": (
        _the_tier_changes_before_the_stack_has_moved,
        "at a release of another tier",
    ),
    "the current release of another tier is chosen": (
        _the_current_release_of_another_tier_is_chosen,
        "was accepted for the tier",
    ),
    "the tier is not published with the version": (_the_tier_is_not_published, "at a release of another tier"),
}


@pytest.mark.parametrize(("bug", "found"), list(BUGS.values()), ids=BUGS)
def test_a_planted_bug_is_found(bug: Bug, found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bug(monkeypatch)
    with pytest.raises(Broken, match=f"(?s)seed [0-9]+: .*{found}"):
        play_all(BUG_SEEDS)
