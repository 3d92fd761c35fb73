"""A demonstration of one minute: a tenant gets its queue, a fleet a release, and an order its receivers."""

from __future__ import annotations

import json

from rich.console import Console

from orchestrator.cli.errors import ExitCode
from orchestrator.common.tenant_ids import TenantId
from orchestrator.local.receiver import Receiver
from orchestrator.local.showing_events import EventShow

TENANT = TenantId("acme")
OTHERS = (TenantId("globex"), TenantId("hooli"))


def main(console: Console) -> None:
    console.print("A tenant gets its queue, a fleet a release, and an order its receivers, on an emulator of AWS.\n")
    with EventShow.on(console) as show, Receiver.on_loopback(failures=1) as receiver:
        _show(show, receiver)
    console.print(
        "\nNext: [bold]make up[/] keeps a control plane running, for you to try [bold].venv/bin/berth[/]. "
        "[bold]make tour[/] shows the rest."
    )


def _show(show: EventShow, receiver: Receiver) -> None:
    show.chapter(f"A platform asks for tenant {TENANT}'s queue, until it is there:")
    show.begin_provisioning([TENANT, *OTHERS])
    queue_url = show.ask_until_ready(TENANT)
    show.chapter("It sends a message through the queue, and receives it:")
    show.send_and_receive(queue_url, f"Hello, {TENANT}!")

    tenant = TENANT.value
    set_up = (
        ("events", "settings", tenant, "--plan", "free", "--no-inbox"),
        ("connections", "create", tenant, "--name", "Queue"),
        ("connections", "create", tenant, "--name", "Shop", "--webhook", receiver.url, "--retry", "1"),
        ("keys", "create", tenant, "--name", "Checkout", "--scope", "write", "--scope", "read"),
    )
    with show.meanwhile(*set_up) as done:
        _roll_out(show)
    _, _, webhook, key = done.result()
    receiver.secret = webhook["secret"]

    show.chapter(f"Events of {TENANT} go to its queue and to a webhook. An operator has set that up meanwhile:")
    for command in set_up:
        show.show_command(command)
    show.chapter("An order comes in. Its event is kept once that is answered with 202:")
    order = {"event_type": "order.created", "payload": {"order": 42, "total": "19.90"}}
    event_id = show.post("/events", json.dumps(order).encode(), expected=202, Authorization=f"Bearer {key['key']}")
    show.chapter("Both receive it. The webhook's receiver is out of order at first:")
    show.receive_event(queue_url, event_id)
    show.receive_hook(receiver)
    show.receive_hook(receiver)
    show.await_status(key["key"], event_id, "delivered")
    show.chapter("Every try is on record:")
    show.berth("attempts", tenant, event_id)


def _roll_out(show: EventShow) -> None:
    show.provision(OTHERS)
    better, worse = show.publish_releases()
    rollout = ("rollout", "start", "--stages", "1,rest", "--bake", "1", "--watch")
    show.chapter(f"There are two more tenants now. A rollout moves one tenant to release {better}, then the rest:")
    show.berth(*rollout, "--to", better)
    show.chapter(f"Release {worse} cannot be deployed. Its rollout halts after the first tenant, and says why:")
    show.berth(*rollout, "--to", worse, ends_with=ExitCode.FAILED)
    show.chapter("The queues of all tenants are in service, also of the one whose update failed:")
    show.berth("tenants")
