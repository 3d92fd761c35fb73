"""`berth release diff`: what changes in a tenant's stack between two releases, property by property.

It compares the templates in this installation, so it needs no control plane. Only a change set says what CloudFormation
makes of a change, such as the replacement of a queue: see `berth rollout plan`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from orchestrator.cli import render
from orchestrator.cli.invocation import Invocation, Json
from orchestrator.cli.release_changes import show_changes
from orchestrator.common.errors import InvalidRequest
from orchestrator.common.versions import VERSION_PATTERN, order
from orchestrator.releases.comparing import changes_between

TEMPLATES = Path(__file__).resolve().parents[2] / "stacks" / "releases"
"""The folder with the templates of the releases."""


def known_versions() -> list[str]:
    """The releases whose templates are in this installation, the oldest first."""
    return sorted((path.stem for path in TEMPLATES.glob("*.json")), key=order)


def _matching_versions(incomplete: str) -> list[str]:
    """The versions that a shell completes, the newest first."""
    return [version for version in reversed(known_versions()) if version.startswith(incomplete)]


def diff(
    context: typer.Context,
    before: Annotated[
        str,
        typer.Argument(
            metavar="FROM", help="The earlier release.", show_default=False, autocompletion=_matching_versions
        ),
    ],
    after: Annotated[
        str,
        typer.Argument(metavar="TO", help="The later release.", show_default=False, autocompletion=_matching_versions),
    ],
    as_json: Json = False,
) -> None:
    """Show what changes in a tenant's stack between two releases.

    The templates of this installation are compared. Whether CloudFormation would
    replace a resource is shown by berth rollout plan.
    """
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        changes = [each.as_document() for each in changes_between(template_of(before), template_of(after))]
        if as_json:
            render.show_json({"from": before, "to": after, "changes": changes})
        elif not changes:
            render.show_line(f"The stacks of {before} and {after} are the same, except for the description.")
        else:
            show_changes(changes)
            render.note("Which queues would be replaced is shown by: berth rollout plan")


def template_of(version: str) -> Mapping[str, Any]:
    file = TEMPLATES / f"{version}.json"
    if not re.fullmatch(VERSION_PATTERN, version) or not file.is_file():
        known = ", ".join(known_versions())
        raise InvalidRequest(f"There is no template of version {version!a} here. Versions: {known}.")
    template: Mapping[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return template
