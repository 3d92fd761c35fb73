"""Everything that Berth does: the whole life of a tenant, a fleet on the move, and what goes wrong on the way."""

from __future__ import annotations

from rich.console import Console

from orchestrator.cli.errors import ExitCode
from orchestrator.common.tenant_ids import TenantId
from orchestrator.local.showing import Show

TENANT = TenantId("acme")
OTHERS = tuple(TenantId(name) for name in ("globex", "hooli", "initech", "soylent"))


def main(console: Console) -> None:
    console.print("The life of a tenant, and a fleet on the move. Everything is real but the cloud.\n")
    with Show.on(console) as show:
        better, worse = _the_life_of_a_tenant(show)
        _a_fleet_on_the_move(show, better, worse)
        _what_goes_wrong(show)
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
    show.chapter("The tenant is served all the same, as before:")
    show.ask(TENANT)

    show.chapter("A message is waiting in the queue, so the tenant is not deleted:")
    show.send(queue_url, "Not handled yet")
    show.berth("delete", TENANT.value, ends_with=ExitCode.REFUSED)
    show.chapter("Unless the operator insists:")
    show.berth("delete", TENANT.value, "--force", "--yes", "--wait")
    show.chapter("A deleted tenant stays deleted, whoever asks for its queue:")
    show.ask(TENANT)
    show.chapter("Until someone creates it again:")
    show.berth("create", TENANT.value, "--reason", "They are back", "--wait")

    show.chapter("All of it is on record:")
    show.berth("tenant", TENANT.value)
    return better, worse


def _a_fleet_on_the_move(show: Show, better: str, worse: str) -> None:
    show.chapter(f"More tenants have come. What would moving all of them to {better} change?")
    show.provision(OTHERS)
    show.berth("rollout", "plan", "--to", better, "--all")
    show.chapter("A canary first, then a few, then the rest:")
    rollout = ("rollout", "start", "--stages", "1,40%,rest", "--concurrency", "2", "--bake", "3", "--watch")
    show.berth(*rollout, "--to", better)
    show.chapter(f"Release {worse} gets no further than the canary:")
    show.berth(*rollout, "--to", worse, ends_with=ExitCode.FAILED)
    show.chapter("So that is where the fleet is:")
    show.berth("releases")


def _what_goes_wrong(show: Show) -> None:
    lost = OTHERS[0]
    show.chapter(f"Somebody deletes the stack of {lost} by hand. That is noticed, and put right:")
    show.delete_stack(lost)
    show.berth("reconcile")
    show.chapter("And is the control plane itself well?")
    show.berth("doctor")
