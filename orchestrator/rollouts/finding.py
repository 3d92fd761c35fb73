"""Finding the tenants for a rollout, in an index that changes while it is being read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.common.errors import Unsettled
from orchestrator.common.tenant_ids import TenantId
from orchestrator.rollouts.selecting import Candidate
from orchestrator.tenants.fleet import LISTED_STATES
from orchestrator.tenants.records import Audit, Metadata, TenantState
from orchestrator.tenants.state import state_of

if TYPE_CHECKING:
    from orchestrator.tenants.ports import FleetReader, TenantReader

MAX_PASSES = 10
"""The maximum number of times that the fleet is listed for one plan."""

_MAX_TRIES = 5
_WITHOUT_A_QUEUE = frozenset({TenantState.UNKNOWN, TenantState.FAILED})


def read_tenant(tenant: TenantId, reader: TenantReader) -> tuple[Metadata | None, Sequence[Audit]]:
    """Read a tenant's rows.

    Audits are read before metadata, as in getQueue, so that an operation that finishes between the two reads is seen
    as finished. A delete that begins between the two reads is not seen: the tenant then seems to have no queue for no
    reason. A tenant without a queue is therefore read again until two reads are equal.
    """
    audits, metadata = reader.audits(tenant), reader.metadata(tenant)
    for _ in range(_MAX_TRIES):
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

    def all_tenants(self) -> dict[TenantId, Candidate]:
        """All tenants, each in the state in which it was last listed.

        The index is read state by state, so a tenant that changes state at the wrong moment is missed. The fleet is
        therefore listed again until a pass finds no tenant that earlier passes had missed. So a tenant is left out
        only if its state changes three times within two passes. It then stays at its release, and is counted as such.
        """
        found = self.list_once()
        for _ in range(1, MAX_PASSES):
            seen = self.list_once()
            # A tenant that is being created is new, not missed. Otherwise a fleet to which tenants are added all the
            # time could not be planned for.
            missed = [
                tenant
                for tenant, candidate in seen.items()
                if tenant not in found and candidate.state is not TenantState.PROVISIONING
            ]
            found |= seen
            if not missed:
                return found
        raise Unsettled(
            f"The rollout could not be planned, because the fleet changes too fast: it was listed {MAX_PASSES} times, "
            "and each time there were tenants that had not been listed before. Try again."
        )

    def list_once(self) -> dict[TenantId, Candidate]:
        """Every tenant in the index. A tenant that changes state meanwhile may be missed.

        Stacks that are kept ready are no tenants: the pool replaces them when a release becomes current.
        """
        listed = (candidate for state in LISTED_STATES for candidate in self.fleet.tenants_in_brief(state))
        return {candidate.tenant: candidate for candidate in listed if not candidate.tenant.is_warm}

    def look_up(self, tenants: Iterable[TenantId]) -> Iterator[Candidate]:
        """These tenants, read from their own rows. A tenant without rows is omitted."""
        for tenant in tenants:
            metadata, audits = read_tenant(tenant, self.tenants)
            if (metadata is None and not audits) or tenant.is_warm:
                continue
            state = state_of(metadata, audits)
            if metadata is None:
                yield Candidate(tenant, state, None, None, {})
            else:
                yield Candidate(
                    tenant, state, metadata.version, metadata.pinned_version, metadata.labels, metadata.tier
                )
