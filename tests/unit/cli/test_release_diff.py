"""`berth release diff`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.cli import release_diff
from orchestrator.cli.errors import ExitCode
from tests.unit.cli.conftest import Scene

QUEUE = {"Type": "AWS::SQS::Queue", "Properties": {"VisibilityTimeout": 30, "Tags": [{"Key": "a"}]}}
BEFORE = {
    "Description": "one",
    "Resources": {"Queue": QUEUE, "Old": {"Type": "AWS::SQS::QueuePolicy"}},
    "Outputs": {"Url": {"Value": "x"}},
}
AFTER = {
    "Description": "two",
    "Resources": {
        "Queue": {
            "Type": "AWS::SQS::Queue",
            "Properties": {"VisibilityTimeout": 60, "Tags": [{"Key": "a"}], "Fifo": True},
        },
        "New": {"Type": "AWS::SQS::Queue"},
    },
    "Outputs": {"Url": {"Value": "y"}},
}


@pytest.fixture
def templates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release_diff, "TEMPLATES", tmp_path)
    for version, template in (("0.9.0", BEFORE), ("0.10.0", AFTER), ("0.10.1", {**AFTER, "Description": "three"})):
        (tmp_path / f"{version}.json").write_text(json.dumps(template))


@pytest.mark.usefixtures("templates")
def test_changes_are_shown_property_by_property(scene: Scene) -> None:
    result = scene.berth("release", "diff", "0.9.0", "0.10.0", exits=ExitCode.OK)
    assert result.stdout.splitlines() == [
        "New (AWS::SQS::Queue): added",
        "Old (AWS::SQS::QueuePolicy): removed",
        "Queue (AWS::SQS::Queue)",
        "  Properties.Fifo: none -> true",
        "  Properties.VisibilityTimeout: 30 -> 60",
        "Url (Output)",
        '  Value: "x" -> "y"',
    ]
    assert "replace" not in result.stdout
    assert scene.connected_to == []


@pytest.mark.usefixtures("templates")
def test_json_has_both_versions_and_every_change(scene: Scene) -> None:
    shown = json.loads(scene.berth("release", "diff", "0.9.0", "0.10.0", "--json").stdout)
    assert (shown["from"], shown["to"]) == ("0.9.0", "0.10.0")
    assert shown["changes"][3] == {
        "section": "Resources",
        "logicalId": "Queue",
        "resourceType": "AWS::SQS::Queue",
        "path": "Properties.VisibilityTimeout",
        "change": "changed",
        "before": 30,
        "after": 60,
    }
    assert "before" not in shown["changes"][0]


@pytest.mark.usefixtures("templates")
def test_the_same_stack(scene: Scene) -> None:
    result = scene.berth("release", "diff", "0.10.0", "0.10.1")
    assert result.stdout == "The stacks of 0.10.0 and 0.10.1 are the same, except for the description.\n"


@pytest.mark.usefixtures("templates")
@pytest.mark.parametrize("version", ["0.1.0", "newest", "../0.9.0"])
def test_a_version_that_is_not_there(scene: Scene, version: str) -> None:
    result = scene.berth("release", "diff", "0.9.0", version, exits=ExitCode.BAD_USAGE)
    assert result.stderr.endswith("Versions: 0.9.0, 0.10.0, 0.10.1.\n")


def test_the_releases_of_this_checkout(scene: Scene) -> None:
    result = scene.berth("release", "diff", "0.6.0", "0.7.0", exits=ExitCode.OK)
    assert "InboundQueue (AWS::SQS::Queue)" in result.stdout
