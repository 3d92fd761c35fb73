"""The commands that an operator can run next on a tenant whose latest operation failed."""

from __future__ import annotations

from orchestrator.cli.api import Document
from orchestrator.tenants.records import Operation, Status, TenantState


def next_steps(tenant: Document) -> list[str]:
    """The commands for a tenant that needs an operator; none for one that does not."""
    name = tenant["tenantId"]
    retry = f"Retry: berth retry {name}"
    match TenantState(tenant["state"]):
        case TenantState.UPDATE_FAILED:
            return [retry, *_stay(tenant)]
        case TenantState.FAILED if _is_being_deleted(tenant):
            return [retry]
        case TenantState.FAILED:
            return [retry, f"Or give it up: berth delete {name}"]
        case TenantState.UNKNOWN:
            return [f"Create it again: berth create {name}"]
        case TenantState.DELETED:
            return [f"Create it again, with a new queue: berth create {name}"]
        case _:
            return []


def _stay(tenant: Document) -> list[str]:
    """The update to the tenant's own version, which repairs its stack and ends the failure, unless a pin forbids it."""
    name, version = tenant["tenantId"], tenant["version"]
    if version is None or tenant["pinnedVersion"] not in (None, version):
        return []
    return [f"Or leave it at {version}: berth upgrade {name} --to {version}"]


def _is_being_deleted(tenant: Document) -> bool:
    """True if a delete of the tenant failed, and nobody has created the tenant again since."""
    latest = max(tenant["audits"], key=lambda audit: str(audit["updatedAt"]), default=None)
    return latest is not None and latest["operation"] == Operation.DELETE and latest["status"] == Status.FAILURE
