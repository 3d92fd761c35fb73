"""The output of commands with --json matches docs/cli-output.json."""

from __future__ import annotations

import json
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from orchestrator.cli.commands import COMMANDS
from orchestrator.cli.errors import ControlPlaneNotFound, ExitCode
from orchestrator.rollouts.records import StageStatus
from orchestrator.tenants.ready import Ready
from tests.documents import CONTROL_PLANE
from tests.fakes import ACME, NOON, QUEUE, VERSION
from tests.unit.cli.conftest import BERTH, Scene
from tests.unit.cli.test_main import commands_below

DOCS = Path(__file__).parents[3] / "docs"


@cache
def registry() -> Registry[Any]:
    documents = {
        "cli-output.json": json.loads((DOCS / "cli-output.json").read_text()),
        "openapi.json": CONTROL_PLANE.json,
    }
    return Registry().with_resources(
        (name, Resource.from_contents(document, default_specification=DRAFT202012))
        for name, document in documents.items()
    )


def check(kind: str, text: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(text)
    schema = {"$ref": f"cli-output.json#/$defs/{kind.replace(' ', '%20')}"}
    Draft202012Validator(schema, registry=registry()).validate(document)
    return document


@pytest.mark.parametrize(
    "command",
    [
        "status",
        "create new",
        "create acme",
        "create acme --label plan=gold",
        "upgrade acme",
        "upgrade acme --to 0.1.0",
        "move acme --tier standard",
        "delete acme",
        "delete nobody",
        "delete --version 0.1.0 --yes",
        "retry --state READY --yes",
        "label acme plan=gold",
        "label acme plan-",
        "pin acme 0.2.0",
        "unpin acme",
        "get-queue acme",
        "tenant acme",
        "tenant acme --live",
        "tenants",
        "releases",
        "releases 0.1.0",
        "release diff 0.1.0 0.2.0",
        "release check docs/templates/queue-bucket-table.json --offline",
        "rollout plan --no-wait",
        "rollout start",
        "rollout start --to 0.1.0",
        "rollout list",
        "doctor",
        "reconcile --dry-run --no-wait",
        "adopt --dry-run",
    ],
)
def test_a_document_is_as_documented(scene: Scene, command: str) -> None:
    scene.has()
    scene.queue_answers(Ready(QUEUE, VERSION))
    words = command.split()
    kind = " ".join(words[:2]) if words[0] in ("rollout", "release") else words[0]
    result = scene.berth(*words, "--json")
    if kind != "retry":  # There is nothing to retry.
        assert result.exit_code == ExitCode.OK
    check(kind, result.stdout)


def test_every_command_of_the_control_plane_has_a_schema() -> None:
    described = json.loads((DOCS / "cli-output.json").read_text())["$defs"].keys() - {"error", "bulk"}
    of_events = {name for name, command in COMMANDS.items() if command.panel == COMMANDS["events"].panel}
    found = {
        " ".join(path)
        for path, command in commands_below(BERTH)
        if any(parameter.name == "as_json" for parameter in command.params) and path[0] not in of_events
    }
    assert found == described


@pytest.mark.parametrize(
    "command", ["status", "watch", "pause", "resume", "abort --yes", "change --concurrency 2", "promote --stage 1"]
)
def test_documents_about_a_rollout(scene: Scene, command: str) -> None:
    scene.has()
    scene.berth("rollout", "start", exits=ExitCode.OK)
    if command in ("watch", "resume"):
        scene.berth("rollout", "pause", exits=ExitCode.OK)
    if command.startswith("promote"):
        scene.api.stage_is_now(1, status=StageStatus.BAKING, baked_until=NOON + timedelta(hours=1))
    check(f"rollout {command.split()[0]}", scene.berth("rollout", *command.split(), "--json").stdout)


@pytest.mark.parametrize(
    ("command", "code", "kind"),
    [
        ("tenant nobody", ExitCode.GONE, "urn:berth:problem:unknown-tenant"),
        ("tenant a/b", ExitCode.BAD_USAGE, "urn:berth:cli:bad-usage"),
        ("tenants --state HAPPY", ExitCode.BAD_USAGE, "urn:berth:cli:bad-usage"),
        ("tenants --no-such-option", ExitCode.BAD_USAGE, "urn:berth:cli:bad-usage"),
        ("tenants --label nosuch=x", ExitCode.BAD_USAGE, "urn:berth:cli:bad-usage"),
        ("tenant", ExitCode.BAD_USAGE, "urn:berth:cli:bad-usage"),
        ("no-such-command", ExitCode.BAD_USAGE, "urn:berth:cli:bad-usage"),
        ("--local --region x tenants", ExitCode.BAD_USAGE, "urn:berth:cli:bad-usage"),
        ("upgrade acme --to 0.0.1", ExitCode.BAD_USAGE, "urn:berth:problem:unknown-release"),
        ("delete acme --force", ExitCode.BAD_USAGE, "urn:berth:cli:bad-usage"),
        ("retry acme", ExitCode.REFUSED, "urn:berth:problem:nothing-to-retry"),
        ("rollout status", ExitCode.GONE, "urn:berth:cli:gone"),
        ("rollout start --tenant zzz", ExitCode.BAD_USAGE, "urn:berth:problem:unknown-selection"),
        ("rollout start --share lots", ExitCode.BAD_USAGE, "urn:berth:cli:bad-usage"),
        ("create acme --version newest", ExitCode.BAD_USAGE, "urn:berth:problem:invalid-request"),
    ],
)
def test_every_error_has_the_same_shape(scene: Scene, command: str, code: ExitCode, kind: str) -> None:
    scene.has()
    result = scene.berth(*command.split(), "--json", exits=code)
    error = check("error", result.stdout)
    assert (error["type"], error["exitCode"]) == (kind, code)
    assert result.stderr != ""


def test_an_operation_that_failed_has_its_record(scene: Scene) -> None:
    scene.has()
    scene.meanwhile = [scene.api.begin, scene.api.fail]
    error = check("error", scene.berth("upgrade", "acme", "--wait", "--json").stdout)
    assert (error["record"]["tenantId"], error["record"]["operation"]) == (ACME.value, "UPDATE")
    assert error["advice"] == [
        "Retry: berth retry acme",
        "Or leave it at 0.1.0: berth upgrade acme --to 0.1.0",
        "Full history: berth tenant acme",
    ]


def test_a_control_plane_that_is_not_there(scene: Scene) -> None:
    scene.trouble = ControlPlaneNotFound("Nothing there.")
    assert check("error", scene.berth("tenants", "-o", "json").stdout)["type"] == "urn:berth:cli:no-control-plane"


def test_without_json_a_usage_error_prints_no_document(scene: Scene) -> None:
    assert scene.berth("tenants", "--state", "HAPPY").stdout == ""
