"""A fleet of tenants, and an operator's requests about rollouts, by the deployed API."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from orchestrator.client.transport import ApiAnswer
from orchestrator.common.tenant_ids import TenantId
from tests.e2e.deployed import Deployed, eventually
from tests.e2e.operators import call, create, ended


def a_fleet(berth: Deployed, name: str, size: int, version: str | None = None) -> list[TenantId]:
    """Create tenants with the fleet's name as a label, at the control plane's version or at the given one."""
    tenants = [TenantId(f"{name}-{number:02}") for number in range(1, size + 1)]

    def provision(tenant: TenantId) -> None:
        body = {"version": version} if version else {}
        assert ended(berth, create(berth, tenant, labels={"fleet": name}, **body)) == "SUCCEEDED"
        if version:
            assert call(berth, "DELETE", f"/tenants/{tenant}/pin").status == 200

    # The concurrency that the emulator can handle on two cores.
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(provision, tenants))
    return tenants


def stages(*sizes: str, concurrency: int = 4, tolerated: str = "0", **more: Any) -> list[dict[str, Any]]:
    return [
        {"size": size, "maxConcurrency": concurrency, "tolerated": tolerated, "bakeSeconds": 0, **more}
        for size in sizes
    ]


def start(berth: Deployed, fleet: str, **body: Any) -> ApiAnswer:
    """Start a rollout over this fleet; by default in the usual three stages, without baking."""
    given = {"labels": {"fleet": fleet}, "stages": stages("1", "10%", "rest")} | body
    return call(berth, "POST", "/rollouts", body=given)


def started(berth: Deployed, fleet: str, **body: Any) -> str:
    answer = start(berth, fleet, **body)
    assert answer.status == 202, answer.body
    return str(answer.body["rolloutId"])


def order(berth: Deployed, rollout: str, verb: str) -> ApiAnswer:
    return call(berth, "POST", f"/rollouts/{rollout}/{verb}")


def rollout_of(berth: Deployed, rollout: str) -> Any:
    answer = call(berth, "GET", f"/rollouts/{rollout}")
    assert answer.status == 200, answer.body
    return answer.body


def until(berth: Deployed, rollout: str, *statuses: str) -> Any:
    """The rollout, once it has one of these statuses."""

    def look() -> Any:
        shown = rollout_of(berth, rollout)
        return shown if shown["status"] in statuses else None

    return eventually(look, what=f"rollout {rollout} is {' or '.join(statuses)}")


def over(berth: Deployed, rollout: str) -> Any:
    """The rollout, once it has ended. Also checks that its execution ended with the matching status."""
    shown = until(berth, rollout, "SUCCEEDED", "FAILED", "HALTED", "ABORTED")
    wanted = "SUCCEEDED" if shown["status"] == "SUCCEEDED" else "FAILED"
    assert berth.ended(shown["execution"])["status"] == wanted
    return shown


def once_begun(berth: Deployed, rollout: str) -> Any:
    """The rollout, once some but not all of its tenants have had their turns."""

    def look() -> Any:
        shown = rollout_of(berth, rollout)
        return shown if 0 < shown["succeeded"] < shown["total"] else None

    return eventually(look, what=f"rollout {rollout} is half-way", pause=0.05)


def versions(berth: Deployed, tenants: Iterable[TenantId]) -> dict[str, str | None]:
    """The version in each tenant's own row."""
    found = {tenant: berth.table.metadata(tenant) for tenant in tenants}
    return {tenant.value: metadata.version if metadata else None for tenant, metadata in found.items()}
