"""A longer demonstration: the life of one tenant, a rollout, and a repair."""

from __future__ import annotations

from rich.console import Console

from orchestrator.cli.errors import ExitCode
from orchestrator.common.tenant_ids import TenantId
from orchestrator.local.showing import Show

TENANT = TenantId("acme")
OTHERS = tuple(TenantId(name) for name in ("globex", "hooli", "initech", "soylent"))


def main(console: Console) -> None:
    console.print("The life of a tenant, a rollout, and a repair, on an emulator of AWS.\n")
    with Show.on(console) as show:
        better, worse = _the_life_of_a_tenant(show)
        _a_fleet_on_the_move(show, better, worse)
        _a_repair(show)
    console.print("\nNext: [bold]make up[/] keeps a control plane running, for you to try [bold].venv/bin/berth[/].")


def _the_life_of_a_tenant(show: Show) -> tuple[str, str]:
    show.chapter(f"A platform asks for tenant {TENANT}'s queue, until it is there:")
    queue_url = show.ask_until_ready(TENANT)
    show.chapter("It sends a message through the queue, and receives it:")
    show.send_and_receive(queue_url, f"Hello, {TENANT}!")

    better, worse = show.publish_releases()
    show.chapter(f"A release later, an operator moves the tenant to {better}:")
    show.berth("upgrade", TENANT.value, "--to", better, "--wait")
    show.chapter(f"Release {worse} cannot be deployed. The upgrade fails, and says why:")
    show.berth("upgrade", TENANT.value, "--to", worse, "--wait", ends_with=ExitCode.FAILED)
    show.chapter("The tenant's queue is in service as before:")
    show.ask(TENANT)

    show.chapter("A message is waiting in the queue, so the tenant is not deleted:")
    show.send(queue_url, "Not handled yet")
    show.berth("delete", TENANT.value, ends_with=ExitCode.REFUSED)
    show.chapter("With --force it is deleted, with its messages:")
    show.berth("delete", TENANT.value, "--force", "--yes", "--wait")
    show.chapter("getQueue does not create a deleted tenant again:")
    show.ask(TENANT)
    show.chapter("An operator can:")
    show.berth("create", TENANT.value, "--reason", "They are back", "--wait")

    show.chapter("The tenant's history has every operation:")
    show.berth("tenant", TENANT.value)
    return better, worse


def _a_fleet_on_the_move(show: Show, better: str, worse: str) -> None:
    show.chapter(f"There are more tenants now. A dry run shows what moving all of them to {better} would change:")
    show.provision(OTHERS)
    show.berth("rollout", "plan", "--to", better, "--all")
    show.chapter("The rollout moves one tenant first, then a few, then the rest:")
    rollout = ("rollout", "start", "--stages", "1,40%,rest", "--concurrency", "2", "--bake", "3", "--watch")
    show.berth(*rollout, "--to", better)
    show.chapter(f"The rollout of release {worse} halts after the first tenant:")
    show.berth(*rollout, "--to", worse, ends_with=ExitCode.FAILED)
    show.chapter("The number of tenants at each release:")
    show.berth("releases")


def _a_repair(show: Show) -> None:
    lost = OTHERS[0]
    show.chapter(f"Somebody deletes the stack of {lost} by hand. berth reconcile finds and repairs it:")
    show.delete_stack(lost)
    show.berth("reconcile")
    show.chapter("The health of the control plane:")
    show.berth("doctor")
