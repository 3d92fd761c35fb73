"""`berth releases`: the published versions of the tenants' stack."""

from __future__ import annotations

import typer

from orchestrator.cli import render
from orchestrator.cli.invocation import Invocation, Json
from orchestrator.cli.problems import problem

_FOUND = 200
_DIGEST_LENGTH = 12


def releases(context: typer.Context, as_json: Json = False) -> None:
    """List the published releases, newest first.

    The current one is what tenants get unless another is named.
    """
    here: Invocation = context.obj
    with here.telling_errors(as_json=as_json):
        api = here.connect()
        with here.asking() as asking:
            answer = asking(api.releases)
        if answer.status != _FOUND:
            raise problem(answer)
        if as_json:
            render.show_json(answer.body)
            return
        current, published = answer.body["current"], answer.body["releases"]
        table = render.columns("Version", "Published (UTC)", "Digest", "")
        for release in published:
            table.add_row(
                release["version"],
                render.moment(release["publishedAt"], "%Y-%m-%d %H:%M:%S"),
                release["digest"][:_DIGEST_LENGTH],
                "current" if release["version"] == current else "",
            )
        if published:
            render.stdout().print(table)
        if current not in {release["version"] for release in published}:
            render.note(f"The current version, {current}, is not published: wait until it is deployed.")
