"""`berth release diff`."""

from __future__ import annotations

import json

import pytest

from orchestrator.cli.errors import ExitCode
from tests.fakes import a_release
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


@pytest.fixture(autouse=True)
def _templates(scene: Scene) -> None:
    publish_templates(scene)


def publish_templates(scene: Scene) -> None:
    for version, template in (("0.9.0", BEFORE), ("0.10.0", AFTER), ("0.10.1", {**AFTER, "Description": "three"})):
        scene.api.world.table.record_release(a_release(version))
        scene.api.world.published_templates.templates[version] = json.dumps(template)


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


def test_the_same_stack(scene: Scene) -> None:
    result = scene.berth("release", "diff", "0.10.0", "0.10.1")
    assert result.stdout == "The stacks of 0.10.0 and 0.10.1 are the same, except for the description.\n"


def test_a_release_that_was_never_published_is_refused(scene: Scene) -> None:
    result = scene.berth("release", "diff", "0.9.0", "9.9.9", exits=ExitCode.BAD_USAGE)
    assert "Version 9.9.9 was never published." in result.stderr


@pytest.mark.parametrize("version", ["newest", "../0.9.0", "0.9.0.dev0"])
def test_a_text_that_is_no_version_is_not_sent(scene: Scene, version: str) -> None:
    result = scene.berth("release", "diff", "0.9.0", version, exits=ExitCode.BAD_USAGE)
    assert result.stderr == f"Error: '{version}' is not a version like 1.2.3.\n"
    assert scene.connected_to == []
