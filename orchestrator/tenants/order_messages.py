"""The messages of answers to operators' requests that several sentences make up."""

from __future__ import annotations

from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.admission import Refusal, Refused
from orchestrator.tenants.decisions import FleetFull, Limited, TooManyCreates
from orchestrator.tenants.records import Metadata, Request


def changes_of(tenant: TenantId, metadata: Metadata, request: Request, *, unpin: bool) -> list[str]:
    """The sentences about what a create has changed of a tenant that exists."""
    changes = [] if request.labels is None else ["Its labels are recorded."]
    if unpin:
        changes.append("It is no longer pinned.")
    elif request.pin and request.pin == metadata.version:
        changes.append("It is now pinned to that version.")
    elif request.pin:
        changes.append(f"It is now pinned to version {request.pin}. Update it: berth upgrade {tenant}")
    return changes


def without_stack(tenant: TenantId) -> Refused:
    return Refused(
        Refusal.NOT_ADOPTED,
        f"Tenant {tenant} is from before Berth, and the stack of its queue is not recorded. The tenant is served, but "
        "it was not upgraded. Adopt it: berth adopt. If no stack has the queue, the tenant has to be deleted and "
        "created again: see A fleet from before Berth in the runbook.",
    )


def refused_by(limited: Limited, tenant: TenantId) -> Refused:
    match limited:
        case FleetFull(tenants, limit):
            return Refused(
                Refusal.FLEET_FULL,
                f"Tenant {tenant} was not created: there are {tenants} tenants, and the maximum is {limit} "
                "(berth:maxTenants). Delete tenants that nobody needs, or deploy with a higher maximum, up to the "
                "account's quota of stacks. See the quota: berth doctor",
                {"tenants": tenants, "maxTenants": limit},
            )
        case TooManyCreates(limit, seconds):
            return Refused(
                Refusal.TOO_MANY_CREATES,
                f"Tenant {tenant} was not created yet: {limit} creates were started within a minute, which is the "
                f"maximum per caller (berth:createsPerMinute). Send the request again in {seconds} seconds.",
                {"retryAfterSeconds": seconds},
            )
