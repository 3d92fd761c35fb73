"""A longer demonstration: the life of one tenant, its events and their deliveries, a rollout, and a repair."""

from __future__ import annotations

import hmac
import json

from rich.console import Console

from orchestrator.cli.errors import ExitCode
from orchestrator.common.tenant_ids import TenantId
from orchestrator.local.receiver import Receiver
from orchestrator.local.showing_events import EventShow

TENANT = TenantId("acme")
OTHERS = tuple(TenantId(name) for name in ("globex", "hooli", "initech", "soylent"))


def main(console: Console) -> None:
    console.print("The life of a tenant, its events, a rollout, and a repair, on an emulator of AWS.\n")
    with EventShow.on(console) as show:
        billing = show.subscribe_to_own_events("tenant.")
        better, worse = _the_life_of_a_tenant(show)
        show.chapter("Billing has heard of that, too: Berth publishes what happens to tenants on an EventBridge bus:")
        show.receive_own_events(billing, 5)
        key = _events_come_in(show)
        _events_go_out(show, key)
        _a_fleet_on_the_move(show, better, worse)
        _a_repair(show)
    console.print("\nNext: [bold]make up[/] keeps a control plane running, for you to try [bold].venv/bin/berth[/].")


def _the_life_of_a_tenant(show: EventShow) -> tuple[str, str]:
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


def _events_come_in(show: EventShow) -> str:
    tenant = TENANT.value
    show.chapter("The tenant gets events, too: an operator chooses a plan, and makes an API key for the tenant's shop:")
    show.berth("events", "settings", tenant, "--plan", "free")
    key = show.values_of("keys", "create", tenant, "--name", "Shop", "--scope", "write", "--scope", "read")["key"]
    show.chapter("The shop sends an order. Once that is answered with 202, the event is kept:")
    order = {"event_type": "order.created", "payload": {"order": 42, "total": "19.90"}}
    order_id = show.post("/events", json.dumps(order).encode(), expected=202, Authorization=f"Bearer {key}")

    show.chapter("A source is an address for webhooks. Here it is for GitHub's, with a secret that both sides know:")
    source = show.values_of("sources", "create", tenant, "--name", "Repository", "--provider", "github")
    show.chapter("A webhook with the right signature is accepted:")
    push = json.dumps({"ref": "refs/heads/main", "repository": {"full_name": "acme/shop"}}).encode()
    signed = {
        "X_Hub_Signature_256": f"sha256={hmac.digest(source['secret'].encode(), push, 'sha256').hex()}",
        "X_GitHub_Event": "push",
        "X_GitHub_Delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958",
    }
    path = f"/hooks/{source['source id']}"
    push_id = show.post(path, push, expected=200, **signed)
    show.chapter("The same signature does not fit another body:")
    show.post(path, push.replace(b"main", b"evil"), expected=401, **signed)

    show.chapter("Both events wait in the tenant's inbox, oldest first:")
    show.berth("inbox", tenant)
    show.chapter("An event with its payload:")
    show.berth("events", "show", tenant, order_id)
    show.chapter("The tenant has handled both, and acknowledges them. The inbox is empty then:")
    show.berth("inbox", "ack", tenant, order_id, push_id)
    show.berth("inbox", tenant)
    return key


def _events_go_out(show: EventShow, key: str) -> None:
    """Parked deliveries and replays wait for the sweep, which runs every minute: both begin before the wait."""
    tenant = TENANT.value

    def send(event_type: str, payload: dict[str, object]) -> str:
        event = json.dumps({"event_type": event_type, "payload": payload}).encode()
        return show.post("/events", event, expected=202, Authorization=f"Bearer {key}")

    with Receiver.on_loopback(failures=0) as shop, Receiver.on_loopback(failures=2) as accounting:
        show.chapter("Events can be delivered instead. Orders go to the shop's webhook, here on this machine:")
        show.berth("events", "settings", tenant, "--no-inbox")
        orders = show.values_of(
            "connections", "create", tenant, "--name", "Shop", "--webhook", shop.url, "--type", "order.paid"
        )
        shop.secret = orders["secret"]
        show.chapter("The connection is paused for maintenance. An order that comes in is parked, and not lost:")
        show.berth("connections", "pause", tenant, orders["id"])
        order_id = send("order.paid", {"order": 42})
        show.await_delivery(key, order_id, "parked")
        show.berth("deliveries", tenant, orders["id"], "--status", "parked")
        show.chapter("Resumed, the connection sends what has waited, within a minute:")
        show.berth("connections", "resume", tenant, orders["id"])

        show.chapter("Invoices go to accounting, which is out of order. After one retry the delivery has failed:")
        invoices = show.values_of(
            *("connections", "create", tenant, "--name", "Accounting", "--webhook", accounting.url),
            *("--type", "invoice.created", "--retry", "1"),
        )
        accounting.secret = invoices["secret"]
        invoice_id = send("invoice.created", {"invoice": 7})
        show.receive_hook(accounting)
        show.receive_hook(accounting)
        show.await_delivery(key, invoice_id, "failed")
        show.berth("deliveries", tenant, invoices["id"])
        show.chapter("Accounting works again, and the invoice is sent once more. Every try is on record:")
        show.berth("resend", tenant, invoice_id)
        show.receive_hook(accounting)
        show.await_delivery(key, invoice_id, "delivered")
        show.berth("attempts", tenant, invoice_id)

        show.chapter("Accounting has lost the last hour, and gets it again. The order that was parked comes, too:")
        replay = ("replay", tenant, "--connection", invoices["id"], "--since", "1h", "--include-delivered", "--yes")
        show.berth(*replay, "--follow")
        show.receive_hook(accounting)
        show.receive_hook(shop)

    with Receiver.on_loopback(failures=0) as local:
        show.chapter("A developer sees events live, and has them forwarded to a program on this machine, signed:")
        with show.listening("listen", tenant, "--forward", local.url) as next_line:
            while "signed with" not in (line := next_line()):
                pass
            local.secret = line.split()[-1]
            # The command shows what comes in after its first look, so the first events may be too early.
            while not show.await_hook(local, seconds=5):
                send("order.shipped", {"order": 42})
            next_line()
            next_line()


def _a_fleet_on_the_move(show: EventShow, better: str, worse: str) -> None:
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


def _a_repair(show: EventShow) -> None:
    lost = OTHERS[0]
    show.chapter(f"Somebody deletes the stack of {lost} by hand. berth reconcile finds and repairs it:")
    show.delete_stack(lost)
    show.berth("reconcile")
    show.chapter("The health of the control plane:")
    show.berth("doctor")
