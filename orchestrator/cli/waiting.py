"""The fleet, what waits for someone, and what is under way: for `berth status` and the first page of the console."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.cli import render
from orchestrator.cli.api import Document
from orchestrator.cli.rollout_view import doing
from orchestrator.common.tiers import STANDARD
from orchestrator.common.versions import is_older
from orchestrator.rollouts.records import RolloutStatus
from orchestrator.tenants.records import TenantState

_GOING_ON = frozenset({RolloutStatus.PENDING, RolloutStatus.RUNNING, RolloutStatus.ABORTING})
FAILED_STATES = (TenantState.FAILED, TenantState.UPDATE_FAILED, TenantState.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Waiting:
    """Something that an operator can do something about, with the command to begin with."""

    what: str
    command: str
    state: TenantState | None = None
    """The state of the tenants that this is about."""
    rollout: str | None = None
    """The rollout that this is about."""


def fleet_of(releases: Document) -> dict[str, Any]:
    """The number of tenants in each state and at each version, from the answer of listReleases."""
    by_state: Counter[str] = Counter()
    by_version: dict[str, int] = {}
    counted = {release["version"]: release["tenants"] for release in releases["releases"]} | dict(releases["elsewhere"])
    for version, tenants in counted.items():
        by_state.update(tenants["byState"])
        if tenants["total"]:
            by_version[version] = tenants["total"]
    return {
        "total": sum(by_version.values()),
        "byState": dict(sorted(by_state.items())),
        "byVersion": by_version,
        "countedAt": releases.get("countedAt"),
    }


def waiting_for_someone(fleet: Document, rollouts: Sequence[Document], releases: Document) -> list[Waiting]:
    """``rollouts`` are the open ones, and ``releases`` is the answer of listReleases."""
    waiting = [
        Waiting(
            f"{render.counted(number, 'tenant is', 'tenants are')} {state}",
            f"berth tenants --state {state}",
            state=state,
        )
        for state in FAILED_STATES
        if (number := fleet["byState"].get(state))
    ]
    waiting += [_of_rollout(rollout) for rollout in rollouts if not _goes_on(rollout)]
    withdrawn = {each["version"] for each in releases["releases"] if each["withdrawn"]}
    for version, number in fleet["byVersion"].items():
        if version in withdrawn:
            what = f"{render.counted(number, 'tenant is', 'tenants are')} at {version}, which was withdrawn"
            waiting.append(Waiting(what, f"berth releases {version}"))
    return [*waiting, *_tenants_behind(fleet, rollouts, releases, withdrawn)]


def rollouts_under_way(rollouts: Sequence[Document]) -> list[Waiting]:
    """The open rollouts that go on by themselves, so that nobody has to do anything."""
    return [_of_rollout(rollout) for rollout in rollouts if _goes_on(rollout)]


def _goes_on(rollout: Document) -> bool:
    return rollout["status"] in _GOING_ON and rollout["awaitingStage"] is None


def _of_rollout(rollout: Document) -> Waiting:
    name = rollout["rolloutId"]
    return Waiting(f"rollout {name} is {doing(rollout).plain}", f"berth rollout status {name}", rollout=name)


def _tenants_behind(
    fleet: Document, rollouts: Sequence[Document], releases: Document, withdrawn: Collection[str]
) -> Iterator[Waiting]:
    """One line per tier about the tenants that a rollout to the tier's current release would move.

    A tenant is counted by its release alone, so those that are pinned count, too: nothing else is known of them here.
    """
    tier_of = {each["version"]: each["tier"] for each in releases["releases"]}
    for tier, current in releases["tiers"].items():
        behind = sum(
            number
            for version, number in fleet["byVersion"].items()
            if version not in withdrawn
            and tier_of.get(version, STANDARD) == tier
            and is_older(version, than=current or "")
        )
        moving = (each for each in rollouts if each["version"] == current or RolloutStatus(each["status"]).active)
        if behind and not any(moving):
            of_tier, option = (f" of the tier {tier}", f" --tier {tier}") if tier != STANDARD else ("", "")
            counted = render.counted(behind, f"tenant{of_tier} is", f"tenants{of_tier} are")
            yield Waiting(
                f"{counted} at an earlier release than {current} (pinned ones included)", f"berth rollout plan{option}"
            )


def findings_waiting(survey: Document | None) -> list[Waiting]:
    """One line about the differences that the latest scheduled survey has found."""
    if not survey or not survey["total"]:
        return []
    what = f"{render.counted(survey['total'], 'difference')} between the records and AWS"
    return [Waiting(what, "berth reconcile --dry-run")]


def troubles_waiting(listed: Document) -> list[Waiting]:
    """One line about the connections whose deliveries fail or wait, from the answer of listTroubledConnections."""
    counts = Counter(each["trouble"] for each in listed["connections"])
    if not counts:
        return []
    number = render.counted(counts.total(), "connection fails or waits", "connections fail or wait")
    by_trouble = ", ".join(f"{number} {trouble}" for trouble, number in counts.items())
    return [Waiting(f"{'at least ' if listed['more'] else ''}{number}: {by_trouble}", "berth doctor")]
