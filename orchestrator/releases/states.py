"""Which release of each tier is current, and which releases were withdrawn: the facts about releases that change.

A release itself never changes, and functions keep it for as long as they run. Its state is one row of its own, which is
read whenever a release is chosen, and never kept. So a promotion or a withdrawal takes effect with the next choice.

The current release of the tier ``standard`` follows from that row and from the version that is deployed:

| `berth:promotion` | the current release                                                                          |
|-------------------|----------------------------------------------------------------------------------------------|
| `onDeploy`        | the deployed version, or the release that an operator has promoted since that was deployed     |
| `afterRollout`    | the release that was promoted last, by an operator or by a rollout of the fleet that succeeded |

A release that operators have published in this tier becomes current only by a promotion, and in both modes it stays so
until another promotion: a deployment of Berth must not take tenants' own resources out of new tenants.

Nothing is deployed in other tiers. There, the release that was published last counts as the deployed version. With
`afterRollout`, the tier's first release is current until another one was promoted.

If the current release was withdrawn, the newest earlier release of the tier that was not withdrawn is current: a
withdrawal never gives new tenants a newer release, and in the tier ``standard`` never one of Berth's in place of an
operator's, which has other resources. A deployment writes nothing, so its rollback has nothing to undo.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import TypeVar

from orchestrator.common.errors import Unsettled
from orchestrator.common.tiers import STANDARD
from orchestrator.common.versions import is_older, order
from orchestrator.releases.ports import Releases, ReleaseStates
from orchestrator.releases.records import (
    Promotion,
    RecordedReleaseChange,
    Release,
    ReleaseOrder,
    ReleaseState,
    Withdrawal,
)
from orchestrator.releases.template_contract import is_operators

T = TypeVar("T")
_MAX_TRIES = 25


class PromotionMode(StrEnum):
    """When a release becomes current by itself: the setting ``berth:promotion``."""

    ON_DEPLOY = "onDeploy"
    AFTER_ROLLOUT = "afterRollout"


@dataclass(frozen=True, slots=True)
class Choice:
    """The releases of one tier that may be chosen at this moment."""

    current: str | None
    """The release that new tenants get; ``None`` if the tier has no release that was not withdrawn."""
    withdrawn: Mapping[str, Withdrawal] = field(default_factory=dict)
    """The withdrawn releases of all tiers, by version."""
    candidate: str | None = None
    """The release that a rollout moves tenants to by default."""
    tier: str = STANDARD


class PublishedVersions:
    """The versions of releases.

    A list of all releases costs as much as their notes are long, so the versions of Berth's own releases are kept: they
    are published only by deployments, and a deployment replaces the processes of functions. So the versions are
    complete once they include the deployed one. A process of the previous version may miss the new release, and lists
    again before it finds none. Operators publish at any time, so their releases are listed each time.
    """

    def __init__(self, releases: Releases, listed: Sequence[Release] | None = None) -> None:
        """``listed`` are all releases, if they have just been listed."""
        self.releases = releases
        self._own: Collection[str] = ()
        self._listed = listed

    def listed(self) -> Sequence[Release]:
        return self.releases.releases() if self._listed is None else self._listed

    def newest_own(self, withdrawn: Collection[str], *, deployed: str, before: str | None = None) -> str | None:
        """The newest of Berth's own releases that is none of these and is older than ``before``."""
        if deployed in self._own and (found := newest(self._own, withdrawn, before)):
            return found
        self._own = frozenset(each for each in self.in_tier(STANDARD) if not is_operators(each))
        return newest(self._own, withdrawn, before)

    def in_tier(self, tier: str) -> list[str]:
        """The tier's releases, in the order in which they were published."""
        found = [release for release in self.listed() if release.tier == tier]
        return [each.version for each in sorted(found, key=lambda each: (each.published_at, order(each.version)))]


def newest(versions: Iterable[str], withdrawn: Collection[str], before: str | None) -> str | None:
    available = (each for each in versions if each not in withdrawn and (before is None or is_older(each, than=before)))
    return max(available, key=order, default=None)


@dataclass(frozen=True, slots=True)
class ReleaseChooser:
    """Reads the state of releases for those who choose one. Every call reads the row again."""

    states: ReleaseStates
    published: PublishedVersions
    deployed: str
    """The release that the deployment has published."""
    mode: PromotionMode

    def choose(self, tier: str = STANDARD) -> Choice:
        chooser = self if tier == STANDARD else self._among(self.published.listed())
        return chooser._choose_in(self.states.state(), tier)

    def choices(self, releases: Sequence[Release]) -> dict[str, Choice]:
        """The choice in each tier. ``releases`` are all releases; only the state is read."""
        among, state = self._among(releases), self.states.state()
        return {tier: among._choose_in(state, tier) for tier in among.tiers()}

    def _among(self, listed: Sequence[Release]) -> ReleaseChooser:
        return replace(self, published=PublishedVersions(self.published.releases, listed))

    def _choose_in(self, state: ReleaseState, tier: str) -> Choice:
        current = self.current_in(state, tier) or self.newest_available(state, tier)
        deployed = self.deployed_in(tier)
        # Moving a fleet from an operator's release to the deployed one would be a downgrade, which nobody means by
        # default.
        is_downgrade = tier == STANDARD and current is not None and is_operators(current)
        deployed_first = self.mode is PromotionMode.AFTER_ROLLOUT and deployed not in state.withdrawn
        return Choice(current, state.withdrawn, deployed if deployed_first and not is_downgrade else current, tier)

    def withdrawal(self, version: str) -> Withdrawal | None:
        return self.states.state().withdrawn.get(version)

    def tiers(self) -> list[str]:
        """The tiers that have releases. The tier ``standard`` has the deployed version."""
        return sorted({STANDARD, *(release.tier for release in self.published.listed())})

    def tier_of(self, version: str) -> str:
        """The tier of a release. The deployed version may not be published yet."""
        release = self.published.releases.release(version) if version != self.deployed else None
        return release.tier if release else STANDARD

    def deployed_in(self, tier: str) -> str | None:
        """The deployed version; in other tiers, the release that was published last."""
        if tier == STANDARD:
            return self.deployed
        published = self.published.in_tier(tier)
        return published[-1] if published else None

    def promoted_in(self, state: ReleaseState, tier: str) -> str | None:
        """The release of the tier that is current unless it was withdrawn."""
        promotion, deployed = state.promotions.get(tier), self.deployed_in(tier)
        if promotion is None:
            # Where publishing promotes nothing, new tenants of a tier must have a release all the same.
            first = tier != STANDARD and self.mode is PromotionMode.AFTER_ROLLOUT
            return next(iter(self.published.in_tier(tier)), None) if first else deployed
        # A promotion lasts until another version is deployed, unless deployments promote nothing, or the release is an
        # operator's beside those that are deployed.
        is_beside = tier == STANDARD and is_operators(promotion.version)
        lasts = self.mode is PromotionMode.AFTER_ROLLOUT or is_beside
        return promotion.version if lasts or promotion.instead_of == deployed else deployed

    def current_in(self, state: ReleaseState, tier: str) -> str | None:
        """The tier's current release in that state.

        ``None`` if it and all earlier releases, in the tier ``standard`` those of its kind, were withdrawn.
        """
        promoted = self.promoted_in(state, tier)
        if promoted is None or promoted not in state.withdrawn:
            return promoted
        return self._newest(state, tier, before=promoted, of_operators=is_operators(promoted))

    def newest_available(self, state: ReleaseState, tier: str) -> str | None:
        """The newest release of the tier that was not withdrawn. Withdrawing the last one is refused.

        In the tier ``standard`` one of Berth's is preferred: an operator's may never have been tried.
        """
        if tier != STANDARD:
            return self._newest(state, tier, of_operators=True)
        own = self._newest(state, tier, of_operators=False)
        return own or self._newest(state, tier, of_operators=True) or self.deployed

    def promoted(self, state: ReleaseState, version: str, *, by: str, at: datetime, reason: str) -> ReleaseState:
        """The state after the release was promoted in its tier."""
        tier = self.tier_of(version)
        instead_of = self.deployed_in(tier) if self.mode is PromotionMode.ON_DEPLOY else None
        promotion = Promotion(version, at, by, reason, instead_of)
        return replace(state, promotions={**state.promotions, tier: promotion})

    def _newest(self, state: ReleaseState, tier: str, *, of_operators: bool, before: str | None = None) -> str | None:
        if tier == STANDARD and not of_operators:
            return self.published.newest_own(state.withdrawn, deployed=self.deployed, before=before)
        versions = self.published.in_tier(tier)
        kind = (each for each in versions if tier != STANDARD or is_operators(each))
        return newest(kind, state.withdrawn, before)


def withdrawn(state: ReleaseState, version: str, *, by: str, at: datetime, reason: str) -> ReleaseState:
    return replace(state, withdrawn={**state.withdrawn, version: Withdrawal(at, by, reason)})


def reinstated(state: ReleaseState, version: str) -> ReleaseState:
    return replace(state, withdrawn={name: each for name, each in state.withdrawn.items() if name != version})


@dataclass(frozen=True, slots=True)
class StateChange:
    """A change of the releases' state, and its entry in the history. Equal states change nothing."""

    before: ReleaseState
    after: ReleaseState
    entry: RecordedReleaseChange


def change_state(states: ReleaseStates, decide: Callable[[ReleaseState], StateChange | T]) -> StateChange | T:
    """Write the change that ``decide`` makes of the state, or return whatever else it returns.

    The write is conditional on the revision that was read, so that no two changes overwrite each other.
    """
    for _ in range(_MAX_TRIES):
        decided = decide(states.state())
        if not isinstance(decided, StateChange) or decided.after == decided.before:
            return decided
        if states.change(decided.after, decided.entry):
            return decided
    raise Unsettled("The state of the releases is being changed by other requests. Try again.")


@dataclass(frozen=True, slots=True)
class Promoter:
    """Promotes a release without an operator: after a rollout, and when deployments cease to promote releases."""

    chooser: ReleaseChooser

    @property
    def is_automatic(self) -> bool:
        return self.chooser.mode is PromotionMode.AFTER_ROLLOUT

    def after_rollout(self, version: str, *, by: str, at: datetime, allow_downgrade: bool) -> bool:
        """Make the release current, unless it was withdrawn or is older. ``False`` if it was withdrawn.

        An older release becomes current only by a rollout that was allowed to move tenants back.
        """

        def decide(state: ReleaseState) -> StateChange | bool:
            if version in state.withdrawn:
                return False
            tier = self.chooser.tier_of(version)
            current = self.chooser.current_in(state, tier)
            goes_back = current is not None and is_older(version, than=current) and not allow_downgrade
            if goes_back or self.chooser.promoted_in(state, tier) == version:
                return True
            return self._promoted(state, version, by=by, at=at, reason="")

        return change_state(self.chooser.states, decide) is not False

    def keep_current(self, *, deployed_before: str | None, request: str, by: str, at: datetime) -> None:
        """Promote the releases that are current as long as deployments promote releases, one per tier.

        This is done once per ``request``: a request that is repeated must not undo what operators have promoted since.
        """

        def decide(state: ReleaseState) -> StateChange | None:
            if state.kept_by == request:
                return None
            before = replace(
                self.chooser, deployed=deployed_before or self.chooser.deployed, mode=PromotionMode.ON_DEPLOY
            )
            reason = "berth:promotion was set to afterRollout"
            version = before.promoted_in(state, STANDARD) or before.deployed
            after = replace(state, kept_by=request)
            for tier in self.chooser.tiers():
                if kept := before.promoted_in(state, tier):
                    after = self.chooser.promoted(after, kept, by=by, at=at, reason=reason)
            return StateChange(state, after, RecordedReleaseChange(version, at, ReleaseOrder.PROMOTE, by, reason))

        change_state(self.chooser.states, decide)

    def _promoted(self, state: ReleaseState, version: str, *, by: str, at: datetime, reason: str) -> StateChange:
        after = self.chooser.promoted(state, version, by=by, at=at, reason=reason)
        return StateChange(state, after, RecordedReleaseChange(version, at, ReleaseOrder.PROMOTE, by, reason))
