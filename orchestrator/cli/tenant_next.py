"""The next steps with a tenant."""

from __future__ import annotations

from collections.abc import Collection

from orchestrator.cli.api import Document
from orchestrator.cli.next_step import NextStep
from orchestrator.tenants.records import ALLOW_REPLACEMENT, Operation, Status, TenantState


def tenant_steps(tenant: Document, *, withdrawn: Collection[str] = ()) -> list[NextStep]:
    """Everything that can be done with a tenant, and why what cannot be done now cannot.

    ``withdrawn`` are the releases that are withdrawn now, as far as they are known.
    """
    name, state = tenant["tenantId"], TenantState(tenant["state"])
    running = tenant["currentOperation"]
    deleted = "The tenant was deleted." if state is TenantState.DELETED else None
    busy = f"Another operation is running: {running['operation']}." if running else None
    # Labels and pins may be changed during any other operation than a delete.
    is_going = state is TenantState.DELETING or (state is TenantState.FAILED and _is_being_deleted(tenant))
    going = "The tenant is being deleted." if is_going else None
    no_queue = None if tenant["queueUrl"] is not None else "It has no queue in service."
    pinned = tenant["pinnedVersion"]
    is_pinned = f"It is pinned to {pinned}. Remove its pin first." if pinned else None
    failed = _failed_operation(tenant)
    return [
        NextStep("retry", "Retry it", f"berth retry {name}", busy or _why_no_retry(failed, withdrawn)),
        NextStep(
            "upgrade",
            "Move it to a release",
            f"berth upgrade {name}",
            deleted or busy or no_queue,
            suggested=False,
        ),
        NextStep(
            "move",
            "Move it to another tier",
            f"berth move {name} --tier TIER",
            deleted or busy or no_queue or is_pinned,
            suggested=False,
        ),
        NextStep("pin", "Pin it to a release", f"berth pin {name} VERSION", deleted or going, suggested=False),
        NextStep(
            "unpin",
            "Remove its pin",
            f"berth unpin {name}",
            deleted or going or (None if pinned else "It is not pinned."),
            suggested=False,
        ),
        NextStep("label", "Change its labels", f"berth label {name} NAME=VALUE", deleted or going, suggested=False),
        NextStep(
            "create",
            "Create it again, with a new queue",
            f"berth create {name}",
            busy or (None if state is TenantState.DELETED else "It was not deleted."),
        ),
        NextStep("delete", "Delete it", f"berth delete {name}", deleted or busy, suggested=False),
    ]


def _why_no_retry(failed: Document | None, withdrawn: Collection[str]) -> str | None:
    if failed is None:
        return "Its latest operation has not failed."
    if failed["operation"] != Operation.DELETE and failed["version"] in withdrawn:
        return f"Release {failed['version']} was withdrawn. Move the tenant to another one."
    return None


def _failed_operation(tenant: Document) -> Document | None:
    """The latest operation, if it failed and can be retried."""
    latest: Document | None = tenant["audits"][-1] if tenant["audits"] else None
    if latest is None or latest["status"] != Status.FAILURE:
        return None
    # A retry never deletes a tenant that is in service.
    if latest["operation"] == Operation.DELETE and tenant["queueUrl"] is not None:
        return None
    return latest


def next_steps(tenant: Document) -> list[str]:
    """The commands to show for a tenant that needs an operator; none for one that does not."""
    name = tenant["tenantId"]
    retry = f"Retry: berth retry {name}"
    match TenantState(tenant["state"]):
        case TenantState.UPDATE_FAILED if _would_lose_data(tenant):
            return [*_stay(tenant), f"Retry, once its cause is removed: berth retry {name}"]
        case TenantState.UPDATE_FAILED:
            return [retry, *(f"Or {step[0].lower()}{step[1:]}" for step in _stay(tenant))]
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
    return [f"Leave it at {version}: berth upgrade {name} --to {version}"]


def _would_lose_data(tenant: Document) -> bool:
    """True if the latest operation was refused because it would replace or remove a queue or other data. The same
    operation is refused again until the data or the release is another one."""
    failed = _failed_operation(tenant)
    cause = failed["rootCause"] if failed else None
    return cause is not None and ALLOW_REPLACEMENT in cause["reason"]


def _is_being_deleted(tenant: Document) -> bool:
    """True if a delete of the tenant failed, and nobody has created the tenant again since."""
    latest = max(tenant["audits"], key=lambda audit: str(audit["updatedAt"]), default=None)
    return latest is not None and latest["operation"] == Operation.DELETE and latest["status"] == Status.FAILURE
