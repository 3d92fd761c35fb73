"""The operators' orders about releases: promote one, withdraw one, reinstate one that was withdrawn.

Each order is one conditional write of the releases' state, together with its entry in the history. Nothing else has to
happen for it to take effect: choosing a release reads that state, and so do rollouts, before each tenant and
before each step. Waking the rollouts that wait only makes them halt sooner.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from orchestrator.common.tiers import STANDARD
from orchestrator.releases.records import RecordedReleaseChange, ReleaseOrder, ReleaseState, Withdrawal
from orchestrator.releases.states import (
    StateChange,
    change_state,
    reinstated,
    withdrawn,
)
from orchestrator.releases.template_contract import is_operators
from orchestrator.tenants.admission import Refusal, Refused
from orchestrator.tenants.fleet import LISTED_STATES, list_tenants

if TYPE_CHECKING:
    from orchestrator.common.times import Clock
    from orchestrator.releases.ports import Releases
    from orchestrator.releases.states import ReleaseChooser
    from orchestrator.rollouts.ports import RolloutExecutions, RolloutLedger
    from orchestrator.rollouts.records import Rollout
    from orchestrator.tenants.ports import FleetReader

MAX_LISTED = 100
"""The maximum number of tenants that the answer to a withdrawal lists."""


class ReleaseStatus(StrEnum):
    """The effect of an order on a release."""

    PROMOTED = "PROMOTED"
    WITHDRAWN = "WITHDRAWN"
    REINSTATED = "REINSTATED"
    UNCHANGED = "UNCHANGED"


_STATUS = {
    ReleaseOrder.PROMOTE: ReleaseStatus.PROMOTED,
    ReleaseOrder.WITHDRAW: ReleaseStatus.WITHDRAWN,
    ReleaseOrder.REINSTATE: ReleaseStatus.REINSTATED,
}


@dataclass(frozen=True, slots=True)
class ReleaseOrdered:
    """The release is as requested. The status is UNCHANGED if it was so before."""

    version: str
    order: ReleaseOrder
    status: ReleaseStatus
    before: str
    """The release of the same tier that was current before the order."""
    current: str
    withdrawal: Withdrawal | None = None
    """The withdrawal of the release, if it is withdrawn now."""
    tenants: Sequence[str] = ()
    """Only after a withdrawal: tenants that are at the release, at most :data:`MAX_LISTED`."""
    has_more_tenants: bool = False
    rollouts: Sequence[str] = ()
    """Only after a withdrawal: the rollouts that were moving tenants to the release. They halt."""
    tier: str = STANDARD


@dataclass(frozen=True, slots=True)
class Releasing:
    chooser: ReleaseChooser
    releases: Releases
    fleet: FleetReader
    rollouts: RolloutLedger
    executions: RolloutExecutions
    clock: Clock

    def promote(self, version: str, by: str, *, reason: str = "") -> ReleaseOrdered | Refused:
        """Make the release current. One that was withdrawn has to be reinstated first."""

        def decide(state: ReleaseState) -> ReleaseState | Refused:
            if withdrawal := state.withdrawn.get(version):
                return _reinstate_first(version, withdrawal)
            if self.chooser.promoted_in(state, self.chooser.tier_of(version)) == version:
                return state
            return self.chooser.promoted(state, version, by=by, at=self.clock.now(), reason=reason)

        return self._change(version, ReleaseOrder.PROMOTE, by, reason, decide)

    def withdraw(self, version: str, by: str, *, reason: str = "") -> ReleaseOrdered | Refused:
        """Let nothing choose the release any more. Tenants that are at it stay there and are served.

        A withdrawal stays as it was recorded first, so that its reason and its operator are those of the decision.
        """

        def decide(state: ReleaseState) -> ReleaseState | Refused:
            if version in state.withdrawn:
                return state
            after = withdrawn(state, version, by=by, at=self.clock.now(), reason=reason)
            tier = self.chooser.tier_of(version)
            return after if self.chooser.current_in(after, tier) else _last_release(version, tier)

        return self._change(version, ReleaseOrder.WITHDRAW, by, reason, decide)

    def reinstate(self, version: str, by: str, *, reason: str = "") -> ReleaseOrdered | Refused:
        """Take the withdrawal back. The release is current again if it would be current without the withdrawal."""

        def decide(state: ReleaseState) -> ReleaseState:
            return reinstated(state, version) if version in state.withdrawn else state

        return self._change(version, ReleaseOrder.REINSTATE, by, reason, decide)

    def _change(
        self,
        version: str,
        order: ReleaseOrder,
        by: str,
        reason: str,
        decide: Callable[[ReleaseState], ReleaseState | Refused],
    ) -> ReleaseOrdered | Refused:
        if self.releases.release(version) is None:
            return Refused(
                Refusal.UNKNOWN_RELEASE,
                f"Version {version} was never published. See the published versions: berth releases",
            )

        def change(state: ReleaseState) -> StateChange | Refused:
            after = decide(state)
            if isinstance(after, Refused):
                return after
            return StateChange(state, after, RecordedReleaseChange(version, self.clock.now(), order, by, reason))

        changed = change_state(self.chooser.states, change)
        return changed if isinstance(changed, Refused) else self._ordered(version, order, changed.before, changed.after)

    def _ordered(self, version: str, order: ReleaseOrder, state: ReleaseState, after: ReleaseState) -> ReleaseOrdered:
        tenants: Sequence[str] = ()
        halting: Sequence[Rollout] = ()
        if order is ReleaseOrder.WITHDRAW:
            # The same for a release that was withdrawn before: that request may have died before it woke the rollouts.
            halting = self._wake_rollouts(version)
            tenants = self._tenants_at(version)
        return ReleaseOrdered(
            version,
            order,
            _STATUS[order] if after != state else ReleaseStatus.UNCHANGED,
            before=self._current(version, state),
            current=self._current(version, after),
            tier=self.chooser.tier_of(version),
            withdrawal=after.withdrawn.get(version),
            tenants=tenants[:MAX_LISTED],
            has_more_tenants=len(tenants) > MAX_LISTED,
            rollouts=[rollout.id for rollout in halting],
        )

    def _current(self, version: str, state: ReleaseState) -> str:
        """The current release of the tier that this release belongs to."""
        tier = self.chooser.tier_of(version)
        return self.chooser.current_in(state, tier) or self.chooser.newest_available(state, tier) or version

    def _tenants_at(self, version: str) -> list[str]:
        """The first tenants at the release, in the order of their ids; one more than are listed."""
        found: list[str] = []
        for state in LISTED_STATES:
            listed = list_tenants(self.fleet, state=state, version=version, limit=MAX_LISTED + 1)
            found += [each.tenant.value for each in listed.tenants]
        return sorted(found)[: MAX_LISTED + 1]

    def _wake_rollouts(self, version: str) -> list[Rollout]:
        """Wake the executions that wait for an operator, so that they find the release withdrawn, and halt."""
        active = [self.rollouts.rollout(each) for each in sorted(self.rollouts.registry().active)]
        found = [rollout for rollout in active if rollout is not None and rollout.spec.version == version]
        for rollout in found:
            if rollout.task_token is not None:
                self.executions.wake(rollout.task_token)
        return found


def _reinstate_first(version: str, withdrawal: Withdrawal) -> Refused:
    return Refused(
        Refusal.RELEASE_WITHDRAWN,
        f"{withdrawal.sentence(version)}, so it was not promoted. If it is good after all, reinstate it "
        f"first: berth release reinstate {version}",
    )


def _last_release(version: str, tier: str) -> Refused:
    return Refused(
        Refusal.LAST_RELEASE,
        f"Release {version} was not withdrawn: no earlier release of the tier {tier} is left that new tenants could "
        f"get{' in place of it' if is_operators(version) else ''}. Promote another release first: "
        "berth release promote VERSION. See which there are: berth releases",
    )
