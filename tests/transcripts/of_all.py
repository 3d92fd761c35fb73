"""What all commands share: the help of groups, and errors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError, NoRegionError, ProfileNotFound

from orchestrator.api.event_plane_routes import EVENT_ROUTES
from orchestrator.api.openapi import CONTROL_PLANE, EVENT_PLANE
from orchestrator.api.problems import Problem
from orchestrator.api.routes import ROUTES
from orchestrator.cli.errors import ControlPlaneNotFound
from orchestrator.client.transport import ApiAnswer
from orchestrator.common.errors import Conflict, Throttled
from tests.transcripts.script import GROUPS, script
from tests.transcripts.shell import Shell


@script("groups")
def _(shell: Shell) -> None:
    shell.run("")
    shell.run("--version")
    for group in GROUPS:
        shell.run(f"{group} --help".strip())


@script("errors")
def _(shell: Shell) -> None:
    for error in (
        ControlPlaneNotFound("There is no control plane."),
        NoCredentialsError(),
        NoRegionError(),
        ProfileNotFound(profile="prod"),
        EndpointConnectionError(endpoint_url="https://x.invalid"),
        ClientError({"Error": {"Code": "AccessDeniedException", "Message": "Not today."}}, "Query"),
        ClientError({"Error": {"Code": "ResourceNotFoundException", "Message": "Not there."}}, "Query"),
        ClientError({"Error": {"Code": "InternalFailure", "Message": "Not today."}}, "Query"),
        Throttled("Query: Rate exceeded"),
        Conflict("Two\nlines."),
        ZeroDivisionError("division by zero"),
        KeyboardInterrupt(),
    ):
        shell.begin().trouble = error
        shell.run("tenants", f"{type(error).__name__} is raised.")
    shell.begin().trouble = ControlPlaneNotFound("There is no control plane.")
    shell.run("tenants --json")
    shell.begin()
    for line in ("no-such-command", "rollout no-such-command", "tenants --no-such-option", "tenants acme", "tenant"):
        shell.run(line)
        shell.run(f"{line} --json")
    shell.run("--local --region x tenants")
    shell.begin().events = None
    shell.run("keys list acme", "There is no event plane.")
    for status, body in {403: {"message": "Forbidden"}, 404: {"message": "Not Found"}, 500: {}, 413: {}}.items():
        shell.begin().api.interjections = [ApiAnswer(status, body)]
        shell.run("tenant acme", f"Something before the API answers {status}.")


@script("problems")
def _(shell: Shell) -> None:
    """What commands say to the example of each problem."""
    for api, routes, line in ((CONTROL_PLANE, ROUTES, "tenant acme"), (EVENT_PLANE, EVENT_ROUTES, "keys list acme")):
        examples = json.loads(api.examples.read_text(encoding="utf-8"))["problems"]
        seen = {problem.kind: problem for route in routes for problem in route.problems}
        for kind, problem in sorted(seen.items()):
            shell.begin()
            for answer in _answers(problem, examples.get(kind, {})):
                answers = [answer] * 40 if problem.retry else [answer]
                shell.scene.api.interjections = list(answers)
                shell.events.interjections = list(answers)
                shell.run(line, f"The API answers {kind}.", requests=False)


def _answers(problem: Problem, examples: Mapping[str, Mapping[str, Any]]) -> list[ApiAnswer]:
    head = {"type": problem.type, "title": problem.title, "status": problem.status}
    bodies = [{**head, **example} for example in examples.values()] or [{**head, "detail": problem.description}]
    return [ApiAnswer(problem.status, body) for body in bodies]
