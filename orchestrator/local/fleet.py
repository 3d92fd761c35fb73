"""Makes a fleet to look at: tenants in all states, a rollout under way, and deliveries that fail.

States that last are made by what brings them about: a release that cannot be deployed, a queue that is not empty.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import sleep

from orchestrator.api.fields import EmptyRequest
from orchestrator.api.release_routes import LIST_RELEASES
from orchestrator.api.rollout_requests import StageSpec, StartRollout
from orchestrator.api.rollout_routes import START_ROLLOUT
from orchestrator.api.route import AnyRoute
from orchestrator.api.tenant_models import CreateTenant, DeleteTenant, GetTenant, ListTenants, PinTenant, UpgradeTenant
from orchestrator.api.tenant_routes import (
    CREATE_TENANT,
    DELETE_TENANT,
    GET_TENANT,
    LIST_TENANTS,
    PIN_TENANT,
    UPGRADE_TENANT,
)
from orchestrator.client.client import Client
from orchestrator.local.errors import LocalError
from orchestrator.tenants.records import TenantState

NAMES = (
    *("acme", "aperture", "blackmesa", "bluth", "cyberdyne", "duff", "dunder", "enron", "globex", "gringotts"),
    *("hooli", "initech", "krusty", "massive", "monarch", "nakatomi", "oscorp", "pawnee", "prestige", "sirius"),
    *("soylent", "stark", "tyrell", "umbrella", "vandelay", "wayne", "weyland", "wonka", "yoyodyne", "zorg"),
)
SIZE = len(NAMES)
SMALLEST = 10
"""A smaller fleet would not have a tenant in each state."""
PLANS = ("gold", "free", "free")
REGIONS = ("eu", "us")
HELD_SECONDS = 900
"""How long a delete waits for a queue that nobody empties, and a rollout bakes: long enough to look at them."""
POLL_SECONDS = 0.5
MAX_POLLS = 1_200
AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class Fleet:
    """The tenants by what becomes of them."""

    failed: Sequence[str]
    update_failed: Sequence[str]
    deleted: Sequence[str]
    deleting: Sequence[str]
    busy: Sequence[str]
    upgraded: Sequence[str]
    ready: Sequence[str]

    @classmethod
    def of(cls, size: int) -> Fleet:
        """Two tenants fail to be created, and so on: there is at least one of each, and most are ready."""
        names = list(NAMES[:size])
        several = max(1, size // 15)

        def take(number: int) -> Sequence[str]:
            taken, names[:] = names[:number], names[number:]
            return tuple(taken)

        return cls(
            failed=take(several),
            update_failed=take(several),
            deleted=take(1),
            deleting=take(1),
            busy=take(several),
            upgraded=take(len(names) // 3),
            ready=tuple(names),
        )

    @property
    def at_first(self) -> Sequence[str]:
        """The tenants that are created at the first release."""
        return (*self.update_failed, *self.deleted, *self.deleting, *self.upgraded, *self.ready)


class FleetMaker:
    def __init__(
        self,
        api: Client,
        send: Callable[[str, str], None],
        say: Callable[[str], None],
        progress: Callable[[str], None] = lambda _text: None,
    ) -> None:
        """``send`` puts a message into the queue at a URL. ``say`` is told what begins, ``progress`` how far it is."""
        self._api, self._send, self._say, self._progress = api, send, say, progress

    def make(self, fleet: Fleet, *, better: str, worse: str) -> str:
        """Make the fleet, and return the id of the rollout that is under way.

        ``better`` is a release after the current one, and ``worse`` one that cannot be deployed.
        """
        self._say(f"Creating {len(fleet.at_first) + len(fleet.failed)} tenants")
        self._order(
            CREATE_TENANT, [CreateTenant(tenant_id=name, labels=_labels(n)) for n, name in enumerate(fleet.at_first)]
        )
        self._order(
            CREATE_TENANT, [CreateTenant(tenant_id=name, labels=_labels(1), version=worse) for name in fleet.failed]
        )
        self._await(dict.fromkeys(fleet.at_first, TenantState.READY) | dict.fromkeys(fleet.failed, TenantState.FAILED))
        self._say("Moving some of them to another release, and some to one that cannot be deployed")
        self._order(UPGRADE_TENANT, [UpgradeTenant(tenant_id=name, version=better) for name in fleet.upgraded])
        self._order(UPGRADE_TENANT, [UpgradeTenant(tenant_id=name, version=worse) for name in fleet.update_failed])
        self._order(
            DELETE_TENANT, [DeleteTenant(tenant_id=name, reason="the contract has ended") for name in fleet.deleted]
        )
        for name in fleet.deleting:
            tenant = self._api.call(GET_TENANT, GetTenant(tenant_id=name))
            self._send(tenant.queue_url or "", "Nobody has received this yet.")
            self._api.call(DELETE_TENANT, DeleteTenant(tenant_id=name, drain_seconds=HELD_SECONDS))
        self._await(
            dict.fromkeys(fleet.upgraded, TenantState.READY)
            | dict.fromkeys(fleet.update_failed, TenantState.UPDATE_FAILED)
            | dict.fromkeys(fleet.deleted, TenantState.DELETED)
            | dict.fromkeys(fleet.deleting, TenantState.DELETING)
        )
        # The rollout would move tenants whose update has failed, too, and they are there to be looked at.
        first = self._api.call(LIST_RELEASES, EmptyRequest()).deployed
        pinned = (*fleet.update_failed, fleet.ready[-1])
        self._order(PIN_TENANT, [PinTenant(tenant_id=name, version=first) for name in pinned])
        self._say("Starting a rollout")
        stages = [StageSpec(size="1", bake_seconds=HELD_SECONDS), StageSpec(size="rest", tolerated="1")]
        rollout = self._api.call(START_ROLLOUT, StartRollout(version=better, stages=stages))
        return rollout.rollout_id  # type: ignore[union-attr]  # there is always a tenant to move

    def keep_busy(self, fleet: Fleet) -> None:
        """Create the tenants that are seen being created."""
        self._order(CREATE_TENANT, [CreateTenant(tenant_id=name, labels=_labels(1)) for name in fleet.busy])

    def _order(self, route: AnyRoute, requests: Sequence[object]) -> None:
        """Each request takes its time in a function, so several are sent at once."""
        with ThreadPoolExecutor(AT_ONCE) as threads:
            list(threads.map(lambda request: self._api.call(route, request), requests))

    def _await(self, wanted: Mapping[str, TenantState]) -> None:
        """Wait until every tenant has its state. One request asks for all of them: the emulator has work to do."""
        for _ in range(MAX_POLLS):
            states = self._states()
            missing = [name for name, state in wanted.items() if states.get(name) != state]
            if not missing:
                return
            self._progress(f"{len(wanted) - len(missing)} of {len(wanted)}")
            sleep(POLL_SECONDS)
        found = ", ".join(f"{name} ({states.get(name, 'missing')}, not {wanted[name]})" for name in missing)
        raise LocalError(f"The fleet was not made in time. These tenants are not as they should be: {found}.")

    def _states(self) -> dict[str, TenantState]:
        listed = [
            self._api.call(LIST_TENANTS, request).tenants
            for request in (ListTenants(limit=len(NAMES)), ListTenants(limit=len(NAMES), state=TenantState.DELETED))
        ]
        return {tenant.tenant_id: tenant.state for page in listed for tenant in page}


def _labels(number: int) -> dict[str, str]:
    return {"plan": PLANS[number % len(PLANS)], "region": REGIONS[number % len(REGIONS)]}
