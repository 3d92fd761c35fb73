"""`berth create`, `upgrade`, `pin`, `unpin`, `retry`, `delete`. :mod:`orchestrator.cli.ordering` sends the requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from orchestrator.api.fields import or_unset
from orchestrator.api.tenant_models import (
    CreateTenant,
    DeleteTenant,
    PinTenant,
    RetryTenant,
    UnpinTenant,
    UpgradeTenant,
)
from orchestrator.api.tenant_routes import (
    CREATE_TENANT,
    DELETE_TENANT,
    PIN_TENANT,
    RETRY_TENANT,
    UNPIN_TENANT,
    UPGRADE_TENANT,
)
from orchestrator.cli.invocation import NOT_ASKED, Json, Reason, Tenant, Timeout
from orchestrator.cli.ordering import carry_out
from orchestrator.tenants.deadlines import DEADLINE, MAX_DRAIN_SECONDS

Wait = Annotated[
    bool,
    typer.Option(
        "--wait/--no-wait", help="Wait until the operation has ended. If another one is running, wait for that first."
    ),
]
_TIMEOUT = int(DEADLINE.total_seconds())


def create(
    context: typer.Context,
    tenant: Tenant,
    version: Annotated[
        str | None,
        typer.Option(metavar="VERSION", help="Create the tenant at this release, and pin it."),
    ] = None,
    unpin: Annotated[bool, typer.Option("--unpin", help="Remove the tenant's pin.")] = False,
    label: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Label the tenant; may be repeated. Replaces its present labels."),
    ] = None,
    reason: Reason = None,
    wait: Wait = False,
    timeout: Timeout = _TIMEOUT,
    as_json: Json = False,
) -> None:
    """Create a tenant, also one that was deleted.

    If the tenant exists, only its pin and its labels are changed. To move it, see berth upgrade.
    """
    if version and unpin:
        raise typer.BadParameter("cannot be combined with --unpin.", param_hint="'--version'")
    labels = labels_of(label) if label else None
    carry_out(
        context,
        tenant,
        lambda api, tenant_id: api.send_request(
            CREATE_TENANT,
            CreateTenant(
                tenant_id=tenant_id.value,
                version=None if unpin else or_unset(version),
                labels=or_unset(labels),
                reason=or_unset(reason),
            ),
        ),
        timeout=timeout if wait else None,
        as_json=as_json,
    )


def upgrade(
    context: typer.Context,
    tenant: Tenant,
    to: Annotated[
        str | None,
        typer.Option(
            metavar="VERSION", help="The release to move to. Default: the tenant's pin, else the current release."
        ),
    ] = None,
    allow_downgrade: Annotated[
        bool, typer.Option("--allow-downgrade", help="Allow a release that is older than the tenant's.")
    ] = False,
    allow_replacement: Annotated[
        bool,
        typer.Option("--allow-replacement", help="Allow a change that replaces or removes a queue and its messages."),
    ] = False,
    reason: Reason = None,
    wait: Wait = False,
    timeout: Timeout = _TIMEOUT,
    as_json: Json = False,
) -> None:
    """Move a tenant to another release.

    Its queue stays in service during the upgrade, also if the upgrade fails.
    """
    carry_out(
        context,
        tenant,
        lambda api, tenant_id: api.send_request(
            UPGRADE_TENANT,
            UpgradeTenant(
                tenant_id=tenant_id.value,
                version=or_unset(to),
                allow_downgrade=allow_downgrade,
                allow_replacement=allow_replacement,
                reason=or_unset(reason),
            ),
        ),
        timeout=timeout if wait else None,
        as_json=as_json,
    )


def pin(
    context: typer.Context,
    tenant: Tenant,
    version: Annotated[
        str, typer.Argument(metavar="VERSION", help="A published release: see berth releases.", show_default=False)
    ],
    reason: Reason = None,
    as_json: Json = False,
) -> None:
    """Pin a tenant to a release.

    From then on neither berth upgrade nor a rollout moves it to another release.
    The pin itself does not move the tenant: see berth upgrade.
    """
    carry_out(
        context,
        tenant,
        lambda api, tenant_id: api.send_request(
            PIN_TENANT, PinTenant(tenant_id=tenant_id.value, version=version, reason=or_unset(reason))
        ),
        timeout=None,
        as_json=as_json,
        can_wait=False,
    )


def unpin(
    context: typer.Context,
    tenant: Tenant,
    reason: Reason = None,
    as_json: Json = False,
) -> None:
    """Remove a tenant's pin.

    The tenant stays at its release until the next berth upgrade or rollout.
    """
    carry_out(
        context,
        tenant,
        lambda api, tenant_id: api.send_request(
            UNPIN_TENANT, UnpinTenant(tenant_id=tenant_id.value, reason=or_unset(reason))
        ),
        timeout=None,
        as_json=as_json,
        can_wait=False,
    )


def retry(
    context: typer.Context,
    tenant: Tenant,
    reason: Reason = None,
    wait: Wait = False,
    timeout: Timeout = _TIMEOUT,
    as_json: Json = False,
) -> None:
    """Repeat the tenant's latest operation, if it failed.

    The operation runs with the same options as before.
    """
    carry_out(
        context,
        tenant,
        lambda api, tenant_id: api.send_request(
            RETRY_TENANT, RetryTenant(tenant_id=tenant_id.value, reason=or_unset(reason))
        ),
        timeout=timeout if wait else None,
        as_json=as_json,
    )


def delete(
    context: typer.Context,
    tenant: Tenant,
    drain: Annotated[
        int | None,
        typer.Option(
            metavar="SECONDS",
            min=1,
            max=MAX_DRAIN_SECONDS,
            help=f"First wait this long for receivers to empty the queue: at most {MAX_DRAIN_SECONDS}.",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Also delete the messages in the queue, and all events.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help=f"Do not ask for confirmation of --force. {NOT_ASKED}")] = False,
    reason: Reason = None,
    wait: Wait = False,
    timeout: Timeout = _TIMEOUT,
    as_json: Json = False,
) -> None:
    """Delete a tenant and its queue, unless there are messages in the queue.

    Events in the tenant's inbox count as messages.
    The tenant's history is kept. Only berth create brings the tenant back.
    """
    if drain and force:
        raise typer.BadParameter("cannot be combined with --force.", param_hint="'--drain'")
    carry_out(
        context,
        tenant,
        lambda api, tenant_id: api.send_request(
            DELETE_TENANT,
            DeleteTenant(tenant_id=tenant_id.value, force=force, drain_seconds=drain or 0, reason=or_unset(reason)),
        ),
        timeout=timeout if wait else None,
        as_json=as_json,
        lost="every message in its queue, and its events" if force and not yes else None,
    )


def labels_of(options: Sequence[str]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for option in options:
        name, equals, value = option.partition("=")
        if not (name and equals):
            raise typer.BadParameter(f"{option!a} is not of the form NAME=VALUE.", param_hint="'--label'")
        if name in labels:
            raise typer.BadParameter(f"{name!a} is given twice.", param_hint="'--label'")
        labels[name] = value
    return labels
