"""`berth create`, `upgrade`, `move`, `label`, `pin`, `unpin`, `retry`, `delete`.

:mod:`orchestrator.cli.ordering` sends the requests, and :mod:`orchestrator.cli.bulk_orders` those for many tenants.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.api.fields import or_unset
from orchestrator.api.tenant_models import (
    CreateTenant,
    DeleteTenant,
    LabelTenant,
    MoveTenant,
    PinTenant,
    RetryTenant,
    UnpinTenant,
    UpgradeTenant,
)
from orchestrator.api.tenant_routes import (
    CREATE_TENANT,
    DELETE_TENANT,
    LABEL_TENANT,
    MOVE_TENANT,
    PIN_TENANT,
    RETRY_TENANT,
    UNPIN_TENANT,
    UPGRADE_TENANT,
)
from orchestrator.cli import completing, selection
from orchestrator.cli.api import Api
from orchestrator.cli.bulk_orders import carry_out_on_all
from orchestrator.cli.invocation import NOT_ASKED, Json, Reason, Tenant, Timeout
from orchestrator.cli.ordering import carry_out
from orchestrator.cli.selection import LABEL_RULE, Selection, labels_of
from orchestrator.common.input_limits import MAX_LABELS
from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.deadlines import DEADLINE, MAX_DRAIN_SECONDS

if TYPE_CHECKING:
    from orchestrator.client.transport import ApiAnswer

OneTenant = Annotated[
    str | None,
    typer.Argument(
        metavar="TENANT",
        help="The tenant's id. Or select tenants by options.",
        show_default=False,
        autocompletion=completing.tenant_ids,
    ),
]
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
        typer.Option(
            metavar="VERSION",
            help="Create the tenant at this release, and pin it.",
            autocompletion=completing.available_versions,
        ),
    ] = None,
    tier: Annotated[
        str | None,
        typer.Option(
            metavar="TIER",
            help="Create the tenant in this tier, at the tier's current release. Default: the control plane's own.",
            autocompletion=completing.tiers,
        ),
    ] = None,
    unpin: Annotated[bool, typer.Option("--unpin", help="Remove the tenant's pin.")] = False,
    label: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help=f"Label the tenant; may be repeated, up to {MAX_LABELS} times. Replaces its present labels. "
            f"{LABEL_RULE}",
        ),
    ] = None,
    reason: Reason = None,
    wait: Wait = False,
    timeout: Timeout = _TIMEOUT,
    as_json: Json = False,
) -> None:
    """Create a tenant, also one that was deleted.

    A new tenant takes a stack that is kept ready, if there is one.

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
                tier=or_unset(tier),
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
            metavar="VERSION",
            help="The release to move to. Default: the tenant's pin, else the current release.",
            autocompletion=completing.available_versions,
        ),
    ] = None,
    allow_downgrade: Annotated[
        bool, typer.Option("--allow-downgrade", help="Allow a release that is older than the tenant's.")
    ] = False,
    allow_replacement: Annotated[
        bool,
        typer.Option("--allow-replacement", help="Allow a change that replaces or removes a queue and its messages."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help=f"Do not ask to confirm --allow-replacement. {NOT_ASKED}")] = False,
    reason: Reason = None,
    wait: Wait = False,
    timeout: Timeout = _TIMEOUT,
    as_json: Json = False,
) -> None:
    """Move a tenant to another release.

    Its queue stays in service during the upgrade, also if the upgrade fails.
    """

    def request(tenant_id: TenantId) -> UpgradeTenant:
        return UpgradeTenant(
            tenant_id=tenant_id.value,
            version=or_unset(to),
            allow_downgrade=allow_downgrade,
            allow_replacement=allow_replacement,
            reason=or_unset(reason),
        )

    carry_out(
        context,
        tenant,
        lambda api, tenant_id: api.send_request(UPGRADE_TENANT, request(tenant_id)),
        timeout=timeout if wait else None,
        as_json=as_json,
        warning=None if yes else lambda tenant_id: UPGRADE_TENANT.warning(request(tenant_id)),
    )


def move(
    context: typer.Context,
    tenant: Tenant,
    tier: Annotated[
        str,
        typer.Option(metavar="TIER", help="The tier to move to: see berth releases.", autocompletion=completing.tiers),
    ],
    reason: Reason = None,
    wait: Wait = False,
    timeout: Timeout = _TIMEOUT,
    as_json: Json = False,
) -> None:
    """Move a tenant to the current release of another tier.

    Its queue stays in service during the move, also if the move fails.
    A move that would replace or remove a queue, a table, a bucket or another
    resource with data fails.
    """
    carry_out(
        context,
        tenant,
        lambda api, tenant_id: api.send_request(
            MOVE_TENANT, MoveTenant(tenant_id=tenant_id.value, tier=tier, reason=or_unset(reason))
        ),
        timeout=timeout if wait else None,
        as_json=as_json,
    )


def pin(
    context: typer.Context,
    tenant: Tenant,
    version: Annotated[
        str,
        typer.Argument(
            metavar="VERSION",
            help="A published release: see berth releases.",
            show_default=False,
            autocompletion=completing.available_versions,
        ),
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


def label(
    context: typer.Context,
    tenant: Tenant,
    changes: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME=VALUE|NAME-...", help=f"Labels to set, and labels to remove. {LABEL_RULE}", show_default=False
        ),
    ],
    reason: Reason = None,
    as_json: Json = False,
) -> None:
    """Set and remove labels of a tenant: berth label acme plan=gold trial-

    The other labels stay. To select tenants by label, see berth tenants --label.
    """
    sets = labels_of([each for each in changes if "=" in each], hint="NAME=VALUE")
    removes = [each.removesuffix("-") for each in changes if "=" not in each]
    for each in changes:
        if "=" not in each and not each.removesuffix("-"):
            raise typer.BadParameter(f"{each!a} names no label.", param_hint="'NAME-'")
        if "=" not in each and not each.endswith("-"):
            raise typer.BadParameter(
                f"{each!a} neither sets a label ({each}=VALUE) nor removes one ({each}-).", param_hint="'NAME=VALUE'"
            )
    if both := sorted(sets.keys() & set(removes)):
        raise typer.BadParameter(f"{both[0]!a} is both set and removed.", param_hint="'NAME=VALUE'")
    carry_out(
        context,
        tenant,
        lambda api, tenant_id: api.send_request(
            LABEL_TENANT,
            LabelTenant(
                tenant_id=tenant_id.value,
                set=or_unset(sets or None),
                remove=or_unset(removes or None),
                reason=or_unset(reason),
            ),
        ),
        timeout=None,
        as_json=as_json,
        can_wait=False,
    )


def retry(
    context: typer.Context,
    tenant: OneTenant = None,
    state: selection.State = None,
    version: selection.Version = None,
    label: selection.Labels = None,
    pinned: selection.Pinned = None,
    tier: selection.Tier = None,
    yes: Annotated[bool, typer.Option("--yes", help=f"Do not ask to confirm a selection. {NOT_ASKED}")] = False,
    reason: Reason = None,
    wait: Wait = False,
    timeout: Timeout = _TIMEOUT,
    as_json: Json = False,
) -> None:
    """Repeat the latest operation of a tenant, or of all selected tenants, if it failed.

    The operation runs with the same options as before.
    """

    def order(api: Api, tenant_id: TenantId) -> ApiAnswer:
        return api.send_request(RETRY_TENANT, RetryTenant(tenant_id=tenant_id.value, reason=or_unset(reason)))

    selected = Selection.of(state, version, label, pinned, tier)
    check_one_or_selected(tenant, selected)
    if tenant is not None:
        carry_out(context, tenant, order, timeout=timeout if wait else None, as_json=as_json)
        return
    carry_out_on_all(
        context,
        selected,
        order,
        does="repeats the latest operation, if it failed, of",
        confirmed=yes,
        timeout=timeout if wait else None,
        as_json=as_json,
    )


def delete(
    context: typer.Context,
    tenant: OneTenant = None,
    state: selection.State = None,
    version: selection.Version = None,
    label: selection.Labels = None,
    pinned: selection.Pinned = None,
    tier: selection.Tier = None,
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
    yes: Annotated[
        bool, typer.Option("--yes", help=f"Do not ask to confirm --force or a selection. {NOT_ASKED}")
    ] = False,
    reason: Reason = None,
    wait: Wait = False,
    timeout: Timeout = _TIMEOUT,
    as_json: Json = False,
) -> None:
    """Delete a tenant, or all selected tenants, unless there are messages in the queue.

    Events in the tenant's inbox count as messages.
    The tenant's history is kept. Only berth create brings the tenant back.
    """
    if drain and force:
        raise typer.BadParameter("cannot be combined with --force.", param_hint="'--drain'")

    def order(api: Api, tenant_id: TenantId) -> ApiAnswer:
        return api.send_request(
            DELETE_TENANT,
            DeleteTenant(tenant_id=tenant_id.value, force=force, drain_seconds=drain or 0, reason=or_unset(reason)),
        )

    selected = Selection.of(state, version, label, pinned, tier)
    check_one_or_selected(tenant, selected)
    if tenant is not None:
        carry_out(
            context,
            tenant,
            order,
            timeout=timeout if wait else None,
            as_json=as_json,
            warning=_warning_about_force if force and not yes else None,
        )
        return
    carry_out_on_all(
        context,
        selected,
        order,
        does="deletes, with every message in the queues and all events," if force else "deletes",
        confirmed=yes,
        timeout=timeout if wait else None,
        as_json=as_json,
    )


def _warning_about_force(tenant: TenantId) -> str:
    return f"This deletes tenant {tenant} and every message in its queue, and its events."


def check_one_or_selected(tenant: str | None, selected: Selection) -> None:
    """Refuse a command that names neither a tenant nor a selection, or both."""
    if tenant is None and not selected:
        raise typer.BadParameter(
            "name a tenant, or select tenants by --state, --version, --label, --pinned or --tier.",
            param_hint="'TENANT'",
        )
    if tenant is not None and selected:
        raise typer.BadParameter(
            "cannot be combined with --state, --version, --label, --pinned or --tier.", param_hint="'TENANT'"
        )
