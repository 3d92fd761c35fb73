"""Which release is current, and which releases were withdrawn: the facts about releases that change.

A release itself never changes, and functions keep it for as long as they run. Its state is one row of its own, which is
read whenever a release is chosen, and never kept. So a promotion or a withdrawal takes effect with the next choice.

The current release follows from that row and from the version that is deployed:

| `berth:promotion` | the current release                                                                          |
|-------------------|----------------------------------------------------------------------------------------------|
| `onDeploy`        | the deployed version, or the release that an operator has promoted since that was deployed     |
| `afterRollout`    | the release that was promoted last, by an operator or by a rollout of the fleet that succeeded |

A release that operators have published themselves becomes current only by a promotion, and in both modes it stays so
until another promotion: a deployment of Berth must not take tenants' own resources out of new tenants.

If the current release was withdrawn, the newest earlier release that was not withdrawn is current: a withdrawal never
gives new tenants a newer release, and never one of Berth's in place of an operator's, which has other resources. A
deployment writes nothing, so its rollback has nothing to undo.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import TypeVar

from orchestrator.common.errors import Unsettled
from orchestrator.common.versions import is_older, order
from orchestrator.releases.ports import Releases, ReleaseStates
from orchestrator.releases.records import Promotion, RecordedReleaseChange, ReleaseOrder, ReleaseState, Withdrawal
from orchestrator.releases.template_contract import is_operators

T = TypeVar("T")
_MAX_TRIES = 25


class PromotionMode(StrEnum):
    """When a release becomes current by itself: the setting ``berth:promotion``."""

    ON_DEPLOY = "onDeploy"
    AFTER_ROLLOUT = "afterRollout"


@dataclass(frozen=True, slots=True)
class Choice:
    """The releases that may be chosen at this moment."""

    current: str
    """The release that new tenants get."""
    withdrawn: Mapping[str, Withdrawal] = field(default_factory=dict)
    candidate: str = ""
    """The release that a rollout moves tenants to by default."""


class PublishedVersions:
    """The versions of all releases, which are needed while the current release is withdrawn.

    A list of all releases costs as much as their notes are long, so the versions are kept. Berth's own releases are
    published only by deployments, and a deployment replaces the processes of functions. So the versions are complete
    once they include the deployed one. A process of the previous version may miss the new release, and lists again
    before it finds none. Operators publish at any time, so their releases are listed each time.
    """

    def __init__(self, releases: Releases) -> None:
        self._releases = releases
        self._kept: Collection[str] = ()

    def newest_without(
        self, withdrawn: Collection[str], *, deployed: str, before: str | None = None, of_operators: bool = False
    ) -> str | None:
        """The newest release of Berth, or of operators, that is none of these and is older than ``before``."""
        is_complete = deployed in self._kept and not of_operators
        if is_complete and (found := _newest(self._kept, withdrawn, before, of_operators=of_operators)):
            return found
        self._kept = frozenset(release.version for release in self._releases.releases())
        return _newest(self._kept, withdrawn, before, of_operators=of_operators)


def _newest(
    versions: Iterable[str], withdrawn: Collection[str], before: str | None, *, of_operators: bool
) -> str | None:
    kind = (each for each in versions if is_operators(each) is of_operators and each not in withdrawn)
    return max((each for each in kind if before is None or is_older(each, than=before)), key=order, default=None)


@dataclass(frozen=True, slots=True)
class ReleaseChooser:
    """Reads the state of releases for those who choose one. Every call reads the row again."""

    states: ReleaseStates
    published: PublishedVersions
    deployed: str
    """The version of the control plane."""
    mode: PromotionMode

    def choose(self) -> Choice:
        state = self.states.state()
        current = self.current_in(state) or self.newest_available(state)
        # Moving a fleet from an operator's release to the deployed one would be a downgrade, which nobody means by
        # default.
        deployed_first = (
            self.mode is PromotionMode.AFTER_ROLLOUT
            and self.deployed not in state.withdrawn
            and not is_operators(current)
        )
        return Choice(current, state.withdrawn, self.deployed if deployed_first else current)

    def withdrawal(self, version: str) -> Withdrawal | None:
        return self.states.state().withdrawn.get(version)

    def current_in(self, state: ReleaseState) -> str | None:
        """The current release in that state; ``None`` if it and all earlier releases of its kind were withdrawn."""
        promoted = promoted_in(state, self.deployed, self.mode)
        if promoted not in state.withdrawn:
            return promoted
        return self.published.newest_without(
            state.withdrawn, deployed=self.deployed, before=promoted, of_operators=is_operators(promoted)
        )

    def newest_available(self, state: ReleaseState) -> str:
        """The newest release that was not withdrawn. Withdrawing the last one is refused, so there is one.

        One of Berth's is preferred: an operator's may never have been tried.
        """
        newest = self.published.newest_without
        own = newest(state.withdrawn, deployed=self.deployed)
        return own or newest(state.withdrawn, deployed=self.deployed, of_operators=True) or self.deployed


def promoted_in(state: ReleaseState, deployed: str, mode: PromotionMode) -> str:
    """The release that is current unless it was withdrawn."""
    promotion = state.promotion
    if promotion is None:
        return deployed
    # A promotion lasts until another version is deployed, unless deployments promote nothing, or the release is an
    # operator's.
    lasts = mode is PromotionMode.AFTER_ROLLOUT or is_operators(promotion.version)
    counts = lasts or promotion.instead_of == deployed
    return promotion.version if counts else deployed


def promoted(
    state: ReleaseState, version: str, *, by: str, at: datetime, reason: str, deployed: str, mode: PromotionMode
) -> ReleaseState:
    instead_of = deployed if mode is PromotionMode.ON_DEPLOY else None
    return replace(state, promotion=Promotion(version, at, by, reason, instead_of))


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
            current = self.chooser.current_in(state)
            goes_back = current is not None and is_older(version, than=current) and not allow_downgrade
            if goes_back or promoted_in(state, self.chooser.deployed, self.chooser.mode) == version:
                return True
            return self._promoted(state, version, by=by, at=at, reason="")

        return change_state(self.chooser.states, decide) is not False

    def keep_current(self, *, deployed_before: str | None, request: str, by: str, at: datetime) -> None:
        """Promote the release that is current as long as deployments promote releases.

        This is done once per ``request``: a request that is repeated must not undo what operators have promoted since.
        """

        def decide(state: ReleaseState) -> StateChange | None:
            if state.kept_by == request:
                return None
            version = promoted_in(state, deployed_before or self.chooser.deployed, PromotionMode.ON_DEPLOY)
            reason = "berth:promotion was set to afterRollout"
            change = self._promoted(state, version, by=by, at=at, reason=reason)
            return replace(change, after=replace(change.after, kept_by=request))

        change_state(self.chooser.states, decide)

    def _promoted(self, state: ReleaseState, version: str, *, by: str, at: datetime, reason: str) -> StateChange:
        chooser = self.chooser
        after = promoted(state, version, by=by, at=at, reason=reason, deployed=chooser.deployed, mode=chooser.mode)
        return StateChange(state, after, RecordedReleaseChange(version, at, ReleaseOrder.PROMOTE, by, reason))
