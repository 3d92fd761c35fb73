"""`make console`: the console on a local control plane with a fleet to look at."""

from __future__ import annotations

import shlex

from rich.console import Console as Terminal

from orchestrator.api.connection_models import CreateConnection, OfConnection
from orchestrator.api.connection_routes import CREATE_CONNECTION, PAUSE_CONNECTION
from orchestrator.api.event_configuration_models import ChangeSettings, CreateKey
from orchestrator.api.event_configuration_routes import CREATE_KEY, PUT_SETTINGS
from orchestrator.api.event_routes import SEND_EVENT, SendEvent
from orchestrator.api.for_operators import for_operators, of_tenant
from orchestrator.cli.console import place_of
from orchestrator.cli.control_plane import Options
from orchestrator.cli.deployed import Deployment
from orchestrator.common.tenant_ids import TenantId
from orchestrator.console.server import listen_on, serve
from orchestrator.console.visit import Console
from orchestrator.events.delivery.records import DestinationKind
from orchestrator.events.plans import Plan
from orchestrator.events.records import Scope
from orchestrator.local.emulator import DEFAULT_HOME
from orchestrator.local.fleet import SIZE, Fleet, FleetMaker
from orchestrator.local.receiver import Receiver
from orchestrator.local.showing import Show
from orchestrator.local.steps import Steps

HOME = DEFAULT_HOME / "console"
"""A home of its own, so that the demo can be seen while the console is open."""
EVENTS = 3
RETRIES = [1, 310, 3600]
"""The second retry is the first one after five minutes of failures, so the breaker opens, and the connection fails."""


def main(terminal: Terminal, *, size: int = SIZE, port: int = 0, browser: bool = True) -> None:
    # A port that is taken is said now, and not when the fleet is there.
    with listen_on(port) as listener:
        terminal.print("A fleet of tenants in all states, on an emulator of AWS, and the console to look at it.\n")
        with Show.on(terminal, HOME) as show, Receiver.on_loopback(failures=10_000) as receiver:
            control_plane = Deployment(Options(local=True), show.emulator)
            with Steps.on(terminal) as steps:
                steps("Publishing two more releases")
                better, worse = show.publish_releases()
                fleet = Fleet.of(size)
                maker = FleetMaker(show.api, show.send, steps, steps.progress)
                maker.make(fleet, better=better, worse=worse)
                steps("Sending events that their receiver refuses")
                _send_events(control_plane, TenantId.parse(fleet.ready[0]), receiver)
                maker.keep_busy(fleet)

            def say(line: str) -> None:
                terminal.print(line, soft_wrap=True, highlight=False)

            home = shlex.quote(str(HOME))
            say(f"\nThe commands on its pages work in another terminal after: export BERTH_LOCAL_HOME={home}")
            shown = Console(control_plane, place_of(control_plane))
            serve(shown, listener=listener, browser=browser, say=say)


def _send_events(control_plane: Deployment, tenant: TenantId, receiver: Receiver) -> None:
    """Events of one tenant, whose receiver answers with errors, and for one of its connections wait."""
    operator = control_plane.events_api()
    operator.call(PUT_SETTINGS, ChangeSettings(tenant_id=tenant.value, plan=Plan.FREE))
    webhook = CreateConnection(
        name="Shop", destination=DestinationKind.WEBHOOK, address=receiver.url, retry_seconds=RETRIES
    )
    connection = operator.call(for_operators(CREATE_CONNECTION), of_tenant(CREATE_CONNECTION, webhook, tenant))
    receiver.secret = connection.secret or ""
    queue = of_tenant(CREATE_CONNECTION, CreateConnection(name="Own queue"), tenant)
    paused = OfConnection(connection_id=operator.call(for_operators(CREATE_CONNECTION), queue).connection_id)
    operator.call(for_operators(PAUSE_CONNECTION), of_tenant(PAUSE_CONNECTION, paused, tenant))
    key = CreateKey(name="Checkout", scopes=[Scope.WRITE])
    made = operator.call(for_operators(CREATE_KEY), of_tenant(CREATE_KEY, key, tenant))
    sender = control_plane.events_api(made.key)
    for number in range(EVENTS):
        sender.call(SEND_EVENT, SendEvent(event_type="order.created", payload={"order": number}))
