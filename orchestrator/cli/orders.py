"""`berth create`, `upgrade`, `pin`, `retry`, `delete`: what can be asked for. :mod:`orchestrator.cli.ordering` asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from orchestrator.cli.invocation import NOT_ASKED, Json, Reason, Tenant, Timeout
from orchestrator.cli.ordering import carry_out
from orchestrator.tenants.deadlines import DEADLINE, MOST_DRAIN_SECONDS

Wait = Annotated[
    bool,
    typer.Option("--wait/--no-wait", help="Wait until it has ended; also for another operation that is in the way."),
]
_TIMEOUT = int(DEADLINE.total_seconds())


def create(
    context: typer.Context,
    tenant: Tenant,
    version: Annotated[
        str | None,
        typer.Option(metavar="VERSION", help="Pin the tenant to this release: it is created at it, and stays there."),
    ] = None,
    unpin: Annotated[bool, typer.Option("--unpin", help="Lift the tenant's pin.")] = False,
    label: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Label the tenant; may be repeated. The labels it has are replaced."),
    ] = None,
    reason: Reason = None,
    wait: Wait = False,
    timeout: Timeout = _TIMEOUT,
    as_json: Json = False,
) -> None:
    """Create a tenant, also one that was deleted.

    Of a tenant that is there, pin and labels are changed, and nothing else: see berth upgrade.
    """
    if version and unpin:
        raise typer.BadParameter("it does not go with --unpin.", param_hint="'--version'")
    labels = labels_of(label) if label else None
    carry_out(
        context,
        tenant,
        lambda api, tenant_id: api.create(tenant_id, pin=version, unpin=unpin, labels=labels, reason=reason),
        timeout=timeout if wait else None,
        as_json=as_json,
    )


def upgrade(
    context: typer.Context,
    tenant: Tenant,
    to: Annotated[
        str | None,
        typer.Option(
            metavar="VERSION", help="The release to move to: unless told otherwise the pinned, else the current one."
        ),
    ] = None,
    allow_downgrade: Annotated[
        bool, typer.Option("--allow-downgrade", help="Also if that release is older than the tenant's.")
    ] = False,
    allow_replacement: Annotated[
        bool,
        typer.Option("--allow-replacement", help="Also if that replaces or removes a queue, with the messages in it."),
    ] = False,
    reason: Reason = None,
    wait: Wait = False,
    timeout: Timeout = _TIMEOUT,
    as_json: Json = False,
) -> None:
    """Move a tenant to another release.

    It is served all the while, and also when that fails.
    """
    carry_out(
        context,
        tenant,
        lambda api, tenant_id: api.upgrade(
            tenant_id, to, allow_downgrade=allow_downgrade, allow_replacement=allow_replacement, reason=reason
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

    Neither berth upgrade nor a rollout moves it to another one then.
    The pin itself moves nothing: see berth upgrade.
    """
    carry_out(
        context,
        tenant,
        lambda api, tenant_id: api.pin(tenant_id, version, reason=reason),
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
    """Lift a tenant's pin.

    It stays where it is until the next berth upgrade or rollout.
    """
    carry_out(
        context,
        tenant,
        lambda api, tenant_id: api.unpin(tenant_id, reason=reason),
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
    """Try again what failed.

    That is the latest operation on the tenant, as it was asked for.
    """
    carry_out(
        context,
        tenant,
        lambda api, tenant_id: api.retry(tenant_id, reason=reason),
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
            max=MOST_DRAIN_SECONDS,
            help=f"Give receivers this long to empty the queue before it goes: at most {MOST_DRAIN_SECONDS}.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Delete the messages in the queue, too.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help=f"Do not ask whether --force is meant. {NOT_ASKED}")] = False,
    reason: Reason = None,
    wait: Wait = False,
    timeout: Timeout = _TIMEOUT,
    as_json: Json = False,
) -> None:
    """Delete a tenant and its queue, unless there are messages in it.

    What happened stays on record. Only berth create brings the tenant back.
    """
    if drain and force:
        raise typer.BadParameter("it does not go with --force.", param_hint="'--drain'")
    carry_out(
        context,
        tenant,
        lambda api, tenant_id: api.delete(tenant_id, force=force, drain_seconds=drain, reason=reason),
        timeout=timeout if wait else None,
        as_json=as_json,
        lost="every message in its queue" if force and not yes else None,
    )


def labels_of(given: Sequence[str]) -> Mapping[str, str]:
    labels: dict[str, str] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not (name and equals):
            raise typer.BadParameter(f"{each!a} is not of the form NAME=VALUE.", param_hint="'--label'")
        if name in labels:
            raise typer.BadParameter(f"{name!a} is given twice.", param_hint="'--label'")
        labels[name] = value
    return labels
