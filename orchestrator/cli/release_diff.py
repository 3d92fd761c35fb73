"""`berth release diff`: what changes in a tenant's stack between two published releases, property by property.

Only a change set says what CloudFormation makes of a change, such as the replacement of a queue: see `berth rollout
plan`.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Annotated

import typer

from orchestrator.api.release_models import GetReleaseChanges
from orchestrator.api.release_routes import GET_RELEASE_CHANGES
from orchestrator.cli import completing, render
from orchestrator.cli.api import Document
from orchestrator.cli.invocation import Invocation, Json
from orchestrator.cli.problems import problem
from orchestrator.cli.release_changes import show_changes
from orchestrator.common.errors import InvalidRequest
from orchestrator.common.versions import VERSION_PATTERN

_FOUND = 200


def diff(
    context: typer.Context,
    before: Annotated[
        str,
        typer.Argument(
            metavar="FROM", help="The earlier release.", show_default=False, autocompletion=completing.versions
        ),
    ],
    after: Annotated[
        str,
        typer.Argument(metavar="TO", help="The later release.", show_default=False, autocompletion=completing.versions),
    ],
    as_json: Json = False,
) -> None:
    """Show what changes in a tenant's stack between two releases.

    The control plane compares the templates that were published. Whether
    CloudFormation would replace a resource is shown by berth rollout plan.
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
    for version in (before, after):
        if not re.fullmatch(VERSION_PATTERN, version):
            raise InvalidRequest(f"{version!a} is not a version like 1.2.3.")
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
