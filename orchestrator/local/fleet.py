"""Makes a fleet to look at: tenants in all states, a rollout under way, and deliveries that fail.

States that last are made by what brings them about: a release that cannot be deployed, a queue that is not empty.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import sleep

from orchestrator.api.fields import EmptyRequest
from orchestrator.api.release_routes import LIST_RELEASES
from orchestrator.api.rollout_requests import StageSpec, StartRollout
from orchestrator.api.rollout_routes import START_ROLLOUT
from orchestrator.api.tenant_models import CreateTenant, DeleteTenant, GetTenant, PinTenant, UpgradeTenant
from orchestrator.api.tenant_routes import CREATE_TENANT, DELETE_TENANT, GET_TENANT, PIN_TENANT, UPGRADE_TENANT
from orchestrator.client.client import Client
from orchestrator.local.errors import LocalError
from orchestrator.tenants.records import TenantState

NAMES = (
    *("acme", "aperture", "blackmesa", "bluth", "cyberdyne", "duff", "dunder", "enron", "globex", "gringotts"),
    *("hooli", "initech", "krusty", "massive", "monarch", "nakatomi", "oscorp", "pawnee", "prestige", "sirius"),
    *("soylent", "stark", "tyrell", "umbrella", "vandelay", "wayne", "weyland", "wonka", "yoyodyne", "zorg"),
)
PLANS = ("gold", "free", "free")
REGIONS = ("eu", "us")
HELD_SECONDS = 900
"""How long a delete waits for a queue that nobody empties, and a rollout bakes: long enough to look at them."""
POLL_SECONDS = 0.5
MAX_POLLS = 1_200
_FOUND = 200


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
        """Those that are created at the first release."""
        return (*self.update_failed, *self.deleted, *self.deleting, *self.upgraded, *self.ready)


class FleetMaker:
    def __init__(self, api: Client, send: Callable[[str, str], None], say: Callable[[str], None]) -> None:
        """``send`` puts a message into the queue at a URL."""
        self._api, self._send, self._say = api, send, say

    def make(self, fleet: Fleet, *, better: str, worse: str) -> str:
        """Make the fleet, and return the id of the rollout that is under way.

        ``better`` is a release after the current one, and ``worse`` one that cannot be deployed.
        """
        first = self._api.call(LIST_RELEASES, EmptyRequest()).deployed
        self._say(f"Creating {len(fleet.at_first)} tenants")
        for number, name in enumerate(fleet.at_first):
            self._create(name, first, {"plan": PLANS[number % 3], "region": REGIONS[number % 2]})
        for name in fleet.failed:
            self._create(name, worse, {"plan": "free"})
        self._await(fleet.at_first, TenantState.READY)
        self._await(fleet.failed, TenantState.FAILED)
        for name in fleet.at_first:
            self._api.call(CREATE_TENANT, CreateTenant(tenant_id=name, version=None))
        self._say("Moving some of them to another release, and some to one that cannot be deployed")
        for name in fleet.upgraded:
            self._api.call(UPGRADE_TENANT, UpgradeTenant(tenant_id=name, version=better))
        for name in fleet.update_failed:
            self._api.call(UPGRADE_TENANT, UpgradeTenant(tenant_id=name, version=worse))
        for name in fleet.deleted:
            self._api.call(DELETE_TENANT, DeleteTenant(tenant_id=name, reason="the contract has ended"))
        self._await(fleet.upgraded, TenantState.READY)
        self._await(fleet.update_failed, TenantState.UPDATE_FAILED)
        self._await(fleet.deleted, TenantState.DELETED)
        for name in fleet.deleting:
            tenant = self._api.call(GET_TENANT, GetTenant(tenant_id=name))
            self._send(tenant.queue_url or "", "Nobody has received this yet.")
            self._api.call(DELETE_TENANT, DeleteTenant(tenant_id=name, drain_seconds=HELD_SECONDS))
        self._api.call(PIN_TENANT, PinTenant(tenant_id=fleet.ready[-1], version=first))
        self._say("Starting a rollout")
        stages = [StageSpec(size="1", bake_seconds=HELD_SECONDS), StageSpec(size="rest", tolerated="1")]
        rollout = self._api.call(START_ROLLOUT, StartRollout(version=better, stages=stages))
        self._await(fleet.deleting, TenantState.DELETING)
        return rollout.rollout_id  # type: ignore[union-attr]  # there is always a tenant to move

    def keep_busy(self, fleet: Fleet) -> None:
        """Create the tenants that are seen being created."""
        for name in fleet.busy:
            self._api.call(CREATE_TENANT, CreateTenant(tenant_id=name, labels={"plan": "free"}))

    def _create(self, name: str, version: str, labels: dict[str, str]) -> None:
        self._api.call(CREATE_TENANT, CreateTenant(tenant_id=name, version=version, labels=labels))

    def _await(self, names: Sequence[str], state: TenantState) -> None:
        waiting = list(names)
        for _ in range(MAX_POLLS):
            states = {name: self._state(name) for name in waiting}
            waiting = [name for name, found in states.items() if found != state]
            if not waiting:
                return
            sleep(POLL_SECONDS)
        raise LocalError(f"These tenants are not {state}: {', '.join(waiting)}. See berth --local tenants.")

    def _state(self, name: str) -> str | None:
        answer = self._api.send_request(GET_TENANT, GetTenant(tenant_id=name))
        return str(answer.body["state"]) if answer.status == _FOUND else None
