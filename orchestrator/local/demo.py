"""A demonstration of one minute: a tenant gets its queue, and a rollout moves three tenants to a new release."""

from __future__ import annotations

from rich.console import Console

from orchestrator.cli.errors import ExitCode
from orchestrator.common.tenant_ids import TenantId
from orchestrator.local.showing import Show

TENANT = TenantId("acme")
OTHERS = (TenantId("globex"), TenantId("hooli"))


def main(console: Console) -> None:
    console.print("A tenant gets its queue, and a rollout moves a small fleet, on an emulator of AWS.\n")
    with Show.on(console) as show:
        _show(show)
    console.print(
        "\nNext: [bold]make up[/] keeps a control plane running, for you to try [bold].venv/bin/berth[/]. "
        "[bold]make tour[/] shows the rest."
    )


def _show(show: Show) -> None:
    show.chapter(f"A platform asks for tenant {TENANT}'s queue, until it is there:")
    queue_url = show.ask_until_ready(TENANT)
    show.chapter("It sends a message through the queue, and receives it:")
    show.send_and_receive(queue_url, f"Hello, {TENANT}!")

    show.provision(OTHERS)
    better, worse = show.publish_releases()
    rollout = ("rollout", "start", "--stages", "1,rest", "--bake", "1", "--watch")
    show.chapter(f"There are two more tenants now. A rollout moves one tenant to release {better}, then the rest:")
    show.berth(*rollout, "--to", better)
    show.chapter(f"Release {worse} cannot be deployed. Its rollout halts after the first tenant, and says why:")
    show.berth(*rollout, "--to", worse, ends_with=ExitCode.FAILED)
    show.chapter("The queues of all tenants are in service, also of the one whose update failed:")
    show.berth("tenants")
