"""`make console`: the console on a local control plane with a fleet to look at."""

from __future__ import annotations

import json

from rich.console import Console as Terminal

from orchestrator.cli.console import place_of
from orchestrator.cli.control_plane import Options
from orchestrator.cli.deployed import Deployment
from orchestrator.console.server import serve
from orchestrator.console.visit import Console
from orchestrator.local.console import Steps
from orchestrator.local.fleet import Fleet, FleetMaker
from orchestrator.local.receiver import Receiver
from orchestrator.local.showing_events import EventShow

SIZE = 30
EVENTS = 3


def main(terminal: Terminal, *, size: int = SIZE, browser: bool = True) -> None:
    terminal.print("A fleet of tenants in all states, on an emulator of AWS, and the console to look at it.\n")
    with EventShow.on(terminal) as show, Receiver.on_loopback(failures=10_000) as receiver:
        fleet = Fleet.of(size)
        with Steps.on(terminal) as steps:
            steps("Publishing two more releases")
            better, worse = show.publish_releases()
            maker = FleetMaker(show.api, show.send, steps)
            maker.make(fleet, better=better, worse=worse)
            steps("Sending events that their receiver refuses")
            _send_events(show, fleet.ready[0], receiver)
            maker.keep_busy(fleet)
        control_plane = Deployment(Options(local=True), show.emulator)
        shown = Console(control_plane, place_of(control_plane))
        serve(shown, port=0, browser=browser, say=lambda line: terminal.print(line, soft_wrap=True, highlight=False))


def _send_events(show: EventShow, tenant: str, receiver: Receiver) -> None:
    set_up = (
        ("events", "settings", tenant, "--plan", "free"),
        (
            "connections",
            "create",
            tenant,
            "--name",
            "Shop",
            "--webhook",
            receiver.url,
            "--retry",
            "1",
            "--retry",
            "3600",
        ),
        ("keys", "create", tenant, "--name", "Checkout", "--scope", "write"),
    )
    with show.meanwhile(*set_up) as done:
        _, webhook, key = done.result()
    receiver.secret = webhook["secret"]
    for number in range(EVENTS):
        order = {"event_type": "order.created", "payload": {"order": number}}
        show.post("/events", json.dumps(order).encode(), expected=202, Authorization=f"Bearer {key['key']}")
