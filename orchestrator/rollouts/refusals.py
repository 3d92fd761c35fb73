"""The reasons why requests about rollouts are refused, with their messages."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.releases.records import Release, Withdrawal
from orchestrator.rollouts.records import Rollout, Stage
from orchestrator.tenants.admission import Refusal, Refused


def unknown_rollout(rollout: str) -> Refused:
    return Refused(
        Refusal.UNKNOWN_ROLLOUT, f"No such rollout: {rollout}. List them: berth rollout list", {"rolloutId": rollout}
    )


def moved_nothing(rollout: str) -> Refused:
    return Refused(
        Refusal.UNKNOWN_ROLLOUT,
        f"Rollout {rollout} is a dry run, which moved no tenant, so there is nothing to undo. List the rollouts: berth "
        "rollout list",
        {"rolloutId": rollout},
    )


def release_withdrawn(version: str, withdrawal: Withdrawal, *, retried: str | None = None) -> Refused:
    """``retried`` is the rollout whose failed tenants were to be moved again, if there is one."""
    instead = (
        f"Move its tenants back: berth rollout start --undo {retried}"
        if retried
        else "Choose another release: berth releases"
    )
    return Refused(Refusal.RELEASE_WITHDRAWN, f"{withdrawal.sentence(version)}, so no tenant is moved to it. {instead}")


def other_tier(release: Release, wanted: str | None) -> Refused:
    return Refused(
        Refusal.OTHER_TIER,
        f"Release {release.version} is of the tier {release.tier}, not of {wanted}. A rollout moves only tenants of "
        "its release's tier. See the releases: berth releases",
    )


def nothing_to_promote(rollout: Rollout, number: int, stages: Sequence[Stage]) -> Refused:
    current = stages[rollout.current_stage - 1]
    return Refused(
        Refusal.NOTHING_TO_PROMOTE,
        f"Rollout {rollout.id}: stage {number} neither bakes nor awaits approval. The rollout is {rollout.status}, in "
        f"stage {current.number} ({current.status}).",
        {"rolloutId": rollout.id},
    )


def not_approved(rollout: Rollout, number: int) -> Refused:
    """A promotion that does not say so passes no approval."""
    return Refused(
        Refusal.NOTHING_TO_PROMOTE,
        f"Rollout {rollout.id}: stage {number} awaits approval, so it was not promoted. Approve it: berth rollout "
        f"approve {rollout.id} --stage {number}",
        {"rolloutId": rollout.id, "awaitingStage": number},
    )


def cannot_be(rollout: Rollout, changed: str) -> Refused:
    return Refused(
        Refusal.ROLLOUT_OVER,
        f"Rollout {rollout.id} is {rollout.status}, so it cannot be {changed}.",
        {"rolloutId": rollout.id, "rolloutStatus": rollout.status.value},
    )


def undone(rollout: Rollout, undo: str) -> Refused:
    """The rollout counts its tenants as moved, so it would not move those again that the undo has moved back."""
    return Refused(
        Refusal.ROLLOUT_OVER,
        f"Rollout {rollout.id} was undone by rollout {undo}, so it can be neither resumed nor retried. To move its "
        "tenants again, start a new rollout: berth rollout start",
        {"rolloutId": rollout.id, "rolloutStatus": rollout.status.value},
    )


def not_over(rollout: Rollout) -> Refused:
    return Refused(
        Refusal.ROLLOUT_IN_THE_WAY,
        f"Rollout {rollout.id} is still {rollout.status}. Wait until it has ended, or abort it first.",
        {"rolloutId": rollout.id},
    )
