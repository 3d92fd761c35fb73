"""Finding the tenants that a rollout may be about, in a listing that changes while it is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.common.errors import Unsettled
from orchestrator.common.tenant_ids import TenantId
from orchestrator.rollouts.selecting import Candidate
from orchestrator.tenants.fleet import LISTED_STATES, state_of
from orchestrator.tenants.records import Audit, Metadata, TenantState

if TYPE_CHECKING:
    from orchestrator.tenants.ports import FleetReader, TenantReader

MAX_PASSES = 10
"""How often the fleet is listed before planning is given up."""

_PAGE = 1_000
_ROUNDS = 5
_WITHOUT_A_QUEUE = frozenset({TenantState.UNKNOWN, TenantState.FAILED})


def read_tenant(tenant: TenantId, reader: TenantReader) -> tuple[Metadata | None, Sequence[Audit]]:
    """A tenant's rows, audits before metadata, as getQueue does: what finishes in between is then seen as finished.

    What begins in between is not: a tenant whose delete begins just then seems to have no queue for no reason. So a
    tenant that seems to have none is read until it is the same twice.
    """
    audits, metadata = reader.audits(tenant), reader.metadata(tenant)
    for _ in range(_ROUNDS):
        if state_of(metadata, audits) not in _WITHOUT_A_QUEUE:
            break
        before, (audits, metadata) = (audits, metadata), (reader.audits(tenant), reader.metadata(tenant))
        if before == (audits, metadata):
            break
    return metadata, audits


@dataclass(frozen=True, slots=True)
class TenantFinder:
    fleet: FleetReader
    tenants: TenantReader

    def everybody(self) -> dict[TenantId, Candidate]:
        """All tenants, each as it was last seen.

        States are listed one after the other, so a tenant that changes state at the wrong moment is in none of them.
        The fleet is therefore listed until a whole pass finds nobody who was overlooked before.
        """
        found = self.in_one_pass()
        for _ in range(1, MAX_PASSES):
            seen = self.in_one_pass()
            # A tenant that is being created was not overlooked: it was not there. Otherwise a fleet to which tenants
            # are added all the time could not be planned for.
            overlooked = [
                tenant
                for tenant, candidate in seen.items()
                if tenant not in found and candidate.state is not TenantState.PROVISIONING
            ]
            found |= seen
            if not overlooked:
                return found
        raise Unsettled(
            f"The fleet changes too fast to be planned for: listed {MAX_PASSES} times, and each time tenants were "
            "found that were not listed before. Ask again."
        )

    def in_one_pass(self) -> dict[TenantId, Candidate]:
        """Every tenant that the index lists, except for those that change state meanwhile."""
        return {candidate.tenant: candidate for candidate in self._listed()}

    def looked_up(self, tenants: Iterable[TenantId]) -> Iterator[Candidate]:
        """These tenants as their own rows say. A tenant without rows is left out."""
        for tenant in tenants:
            metadata, audits = read_tenant(tenant, self.tenants)
            if metadata is None and not audits:
                continue
            state = state_of(metadata, audits)
            if metadata is None:
                yield Candidate(tenant, state, None, None, {})
            else:
                yield Candidate(tenant, state, metadata.version, metadata.pinned_version, metadata.labels)

    def _listed(self) -> Iterator[Candidate]:
        for state in LISTED_STATES:
            after: str | None = None
            while page := self.fleet.tenants_in(state, after=after, limit=_PAGE):
                for listed in page:
                    yield Candidate(listed.tenant, listed.state, listed.version, listed.pinned_version, listed.labels)
                if len(page) < _PAGE:
                    break
                after = page[-1].position
