"""`berth release diff`: what changes in a tenant's stack between two releases, property by property.

It compares the templates in this installation, so it needs no control plane, unless an operator has published one of
the releases. Only a change set says what CloudFormation makes of a change, such as the replacement of a queue: see
`berth rollout plan`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from orchestrator.api.release_models import GetReleaseChanges
from orchestrator.api.release_routes import GET_RELEASE_CHANGES
from orchestrator.cli import render
from orchestrator.cli.api import Document
from orchestrator.cli.invocation import Invocation, Json
from orchestrator.cli.problems import problem
from orchestrator.cli.release_changes import show_changes
from orchestrator.common.errors import InvalidRequest
from orchestrator.common.versions import VERSION_PATTERN, order
from orchestrator.releases.comparing import changes_between
from orchestrator.releases.template_contract import is_operators

_FOUND = 200
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

    The templates of this installation are compared, and those that you have
    published, as the control plane knows them. Whether CloudFormation would
    replace a resource is shown by berth rollout plan.
    """
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        changes = _changes(here, before, after)
        if as_json:
            render.show_json({"from": before, "to": after, "changes": changes})
        elif not changes:
            render.show_line(f"The stacks of {before} and {after} are the same, except for the description.")
        else:
            show_changes(changes)
            render.note(f"Which queues would be replaced is shown by: berth rollout plan --to {after}")


def _changes(here: Invocation, before: str, after: str) -> list[Document]:
    if not any(re.fullmatch(VERSION_PATTERN, version) and is_operators(version) for version in (before, after)):
        return [each.as_document() for each in changes_between(template_of(before), template_of(after))]
    api = here.connect()
    with here.retrying() as retrying:
        request = GetReleaseChanges(version=after, from_version=before)
        answer = retrying(partial(api.send_request, GET_RELEASE_CHANGES, request))
    if answer.status != _FOUND:
        raise problem(answer)
    found: list[Document] | None = answer.body["changes"]
    if found is None:
        raise InvalidRequest(
            f"Releases {before} and {after} cannot be compared, because one of their templates is not as it was "
            "published. Find out in CloudTrail who has changed or removed it."
        )
    return found


def template_of(version: str) -> Mapping[str, Any]:
    file = TEMPLATES / f"{version}.json"
    if not re.fullmatch(VERSION_PATTERN, version) or not file.is_file():
        known = ", ".join(known_versions())
        raise InvalidRequest(f"There is no template of version {version!a} here. Versions: {known}.")
    template: Mapping[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return template
