"""`berth openapi`: prints the OpenAPI documents."""

from __future__ import annotations

from typing import Annotated

import typer

EXAMPLES = """\
[bold]Examples[/]
  berth openapi > openapi.json
  berth openapi --events > openapi-events.json
"""


def openapi(
    events: Annotated[
        bool, typer.Option("--events", help="Print that of the event plane, in place of the control plane's.")
    ] = False,
) -> None:
    """Print the OpenAPI document of the API that this version of Berth has.

    It needs neither a control plane nor credentials.
    """
    # Imported here because it loads all models, which the help does not need.
    from orchestrator.api.openapi import CONTROL_PLANE, EVENT_PLANE, written

    typer.echo(written(EVENT_PLANE if events else CONTROL_PLANE), nl=False)
