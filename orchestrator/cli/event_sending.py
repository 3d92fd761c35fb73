"""`berth events send`: sends one event as a producer of a tenant would, with an API key."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from orchestrator.api.event_routes import SEND_EVENT, SendEvent
from orchestrator.cli import render
from orchestrator.cli.event_types import checked_type
from orchestrator.cli.events_api import ask, reason, secret_from
from orchestrator.cli.invocation import Invocation, Json
from orchestrator.common.errors import InvalidRequest
from orchestrator.events.api_keys import is_key

KEY_VARIABLE = "BERTH_KEY"

EXAMPLES = """\
[bold]Examples[/]
  export BERTH_KEY=...                                 see berth keys create
  berth events send --type order.created order.json
  echo '{"order": 42}' | berth events send --type order.created

[bold]Without berth[/]
  curl -H "X-Api-Key: $BERTH_KEY" -H Content-Type:application/json \\
    -d '{"event_type": "order.created", "payload": {"order": 42}}' $URL/events
"""


def send(
    context: typer.Context,
    event_type: Annotated[
        str,
        typer.Option("--type", metavar="TYPE", help="The event's type, such as order.created.", callback=checked_type),
    ],
    file: Annotated[str, typer.Argument(metavar="FILE", help="The payload, a JSON object. - is standard input.")] = "-",
    key_file: Annotated[
        str | None,
        typer.Option(metavar="FILE", help=f"Where the API key is. Default: the variable {KEY_VARIABLE}."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Send an event, to try an API key.

    The key says whose event it is. It needs the scope write. It is not an
    argument, because shells record those.
    """
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        key = _key(key_file)
        request = SendEvent(event_type=event_type, payload=_payload_in(file))
        accepted = ask(here, here.find(), SEND_EVENT, request, key=key)
        if as_json:
            render.show_json(accepted)
        else:
            render.show_pairs({"event id": accepted["event_id"], "status": accepted["status"]})


def _key(file: str | None) -> str:
    """The key from the file or the variable. A message never has it: HTTP libraries quote headers that they refuse."""
    key = secret_from(file, "API key").strip() if file else os.environ.get(KEY_VARIABLE, "").strip()
    if not key:
        raise InvalidRequest(
            f"There is no API key: set {KEY_VARIABLE}, or use --key-file. "
            "Make a key: berth keys create TENANT --name NAME --scope write"
        )
    if not is_key(key):
        where = ascii(file) if file else f"The variable {KEY_VARIABLE}"
        raise InvalidRequest(
            f"{where} does not hold an API key alone. A key is bk_, the name of the environment, _ and 43 characters."
        )
    return key


def _payload_in(file: str) -> dict[str, Any]:
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"The payload cannot be read from {file!a}: {reason(error)}") from None
    try:
        payload = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        payload = None
    if not isinstance(payload, dict):
        raise InvalidRequest('The payload is not a JSON object, such as {"order": 42}.')
    return payload


def _refuse(constant: str) -> NoReturn:
    """NaN and Infinity are not JSON."""
    raise ValueError(constant)
