"""Finding the tenants for a rollout, in an index that changes while it is being read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from orchestrator.common.tenant_ids import TenantId
from orchestrator.rollouts.selecting import Candidate
from orchestrator.tenants.fleet import LISTED_STATES
from orchestrator.tenants.records import Audit, Metadata, TenantState
from orchestrator.tenants.state import state_of

if TYPE_CHECKING:
    from orchestrator.common.times import Clock
    from orchestrator.tenants.ports import FleetReader, TenantReader

INDEX_LAG = timedelta(minutes=5)
"""The time after which a change is certainly seen in the index, where it is usually seen within a second. It includes
the time between the moment that a function records as the time of a change and the write, and the difference between
the clocks of two functions."""

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
    clock: Clock

    def all_tenants(self) -> dict[TenantId, Candidate]:
        """All tenants, each in the state in which it was listed.

        The index is read state by state, and lags. So a tenant whose place in the index changes meanwhile may be
        missed, however often the index is read. Each such change is recorded in the same transaction, and those records
        do not lag. So a tenant without a record is found in the list, and one with a record by its own rows.
        """
        since = self.clock.now() - INDEX_LAG
        found = self.list_once()
        last = {relisting.tenant: relisting for relisting in self.fleet.relistings(since=since)}
        missed = [tenant for tenant, relisting in last.items() if tenant not in found and not relisting.deleted]
        return found | {candidate.tenant: candidate for candidate in self.look_up(missed)}

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
