"""The event settings of a tenant: its plan, its inbox, its index by type. They cost money, so operators decide them.

A tenant accepts events once it has settings. Settings belong to one creation of the tenant: after a delete and another
create they are void, and new settings begin a new epoch.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace

from orchestrator.common.errors import Unsettled
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import Clock
from orchestrator.events.plans import PLANS, Plan
from orchestrator.events.ports import ConfigurationTable, Tenants
from orchestrator.events.records import EventSettings, TenantEpoch
from orchestrator.events.refusals import EventRefusal, Refused

ROUNDS = 5
"""How often a change is computed again because another change came first."""
_EPOCH_BYTES = 8


@dataclass(frozen=True, slots=True)
class SettingsChange:
    """The settings to change. ``None`` leaves a setting as it is."""

    plan: Plan | None = None
    inbox: bool | None = None
    type_index: bool | None = None
    tenant_name: str | None = None


def new_epoch() -> str:
    return secrets.token_hex(_EPOCH_BYTES)


class Configuring:
    def __init__(
        self,
        *,
        table: ConfigurationTable,
        tenants: Tenants,
        clock: Clock,
        make_epoch: Callable[[], str] = new_epoch,
    ) -> None:
        self._table = table
        self._tenants = tenants
        self._clock = clock
        self._make_epoch = make_epoch

    def settings_of(self, tenant: TenantId) -> EventSettings | Refused:
        """The settings of a living tenant."""
        incarnation = self._tenants.incarnation(tenant)
        if incarnation is None:
            return _unknown_tenant(tenant)
        settings = self._table.settings(tenant)
        if settings is None or settings.incarnation != incarnation:
            return Refused(
                EventRefusal.NO_SETTINGS,
                tenant,
                f"Tenant {tenant} has no event settings, so it accepts no events. An operator can make them: "
                f"berth events settings {tenant} --plan free",
            )
        return settings

    def change_settings(self, tenant: TenantId, change: SettingsChange) -> EventSettings | Refused:
        """Change the settings, or make them if this creation of the tenant has none."""
        for _ in range(ROUNDS):
            incarnation = self._tenants.incarnation(tenant)
            if incarnation is None:
                return _unknown_tenant(tenant)
            there = self._table.settings(tenant)
            if there is not None and there.incarnation == incarnation:
                settings = self._changed(there, change)
                if settings == there:
                    return there
            else:
                settings = self._made(tenant, incarnation, change)
            if self._table.put_settings(settings, replaced=there):
                return settings
        raise unsettled(tenant)

    def _made(self, tenant: TenantId, incarnation: str, change: SettingsChange) -> EventSettings:
        plan, now = change.plan or Plan.FREE, self._clock.now()
        return EventSettings(
            life=TenantEpoch(tenant, self._make_epoch()),
            incarnation=incarnation,
            plan=plan,
            shards=PLANS[plan].shards,
            inbox=change.inbox is not False,
            type_index=change.type_index is not False,
            created_at=now,
            updated_at=now,
            tenant_name=change.tenant_name or "",
        )

    def _changed(self, there: EventSettings, change: SettingsChange) -> EventSettings:
        plan = change.plan or there.plan
        changed = replace(
            there,
            plan=plan,
            # Never fewer: events are in all shards that the tenant has ever had.
            shards=max(there.shards, PLANS[plan].shards),
            inbox=there.inbox if change.inbox is None else change.inbox,
            type_index=there.type_index if change.type_index is None else change.type_index,
            tenant_name=there.tenant_name if change.tenant_name is None else change.tenant_name,
        )
        if changed == there:
            return there
        return replace(changed, updated_at=self._clock.now(), revision=there.revision + 1)


def unsettled(tenant: TenantId) -> Unsettled:
    return Unsettled(f"Tenant {tenant}: its configuration is being changed by other requests. Try again.")


def _unknown_tenant(tenant: TenantId) -> Refused:
    return Refused(
        EventRefusal.UNKNOWN_TENANT,
        tenant,
        f"There is no tenant {tenant} that could have events: it does not exist, is still being created, or is being "
        f"deleted. See: berth tenant {tenant}",
    )
