"""`berth release check` and `berth release publish`."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.errors import ExitCode
from orchestrator.releases.published import canonical
from orchestrator.releases.template_contract import MAX_TEMPLATE_BYTES
from tests.fakes.templates import example_template, queue_template
from tests.unit.cli.conftest import Scene


@pytest.fixture
def template(tmp_path: Path) -> Path:
    return written(tmp_path / "template.json", queue_template())


def written(file: Path, content: Any) -> Path:
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return file


# Checking


def test_a_template_without_a_version_is_checked_here(scene: Scene, tmp_path: Path) -> None:
    file = written(tmp_path / "template.json", {"Resources": {}})
    result = scene.berth("release", "check", str(file), "--json", exits=ExitCode.ATTENTION)
    checked = json.loads(result.stdout)
    assert (checked["version"], checked["offline"]) == (None, True)
    assert {each["rule"] for each in checked["findings"]} >= {"format"}


def an_assembly(folder: Path, **stacks: dict[str, Any]) -> Path:
    """A folder as cdk synth writes it."""
    folder.mkdir(exist_ok=True)
    artifacts: dict[str, Any] = {"Tree": {"type": "cdk:tree", "properties": {"file": "tree.json"}}}
    for name, template in stacks.items():
        file = written(folder / f"{name}.template.json", template)
        artifacts[name] = {"type": "aws:cloudformation:stack", "properties": {"templateFile": file.name}}
    written(folder / "manifest.json", {"version": "1", "artifacts": artifacts})
    return folder


def test_the_folder_of_the_cdk_is_read(scene: Scene, tmp_path: Path) -> None:
    folder = an_assembly(tmp_path, Tenant=queue_template())
    scene.berth("release", "check", str(folder), exits=ExitCode.OK)


@pytest.mark.parametrize("content", ["not JSON", "[]", "7", '{"a": "\\ud800"}', "[" * 100_000, "x" * 2_000_001])
def test_a_file_that_is_no_template_is_refused(scene: Scene, tmp_path: Path, content: str) -> None:
    file = written(tmp_path / "template.json", content)
    for command in ("check", "publish"):
        more = ["--version", "2.1.0"] if command == "publish" else []
        result = scene.berth("release", command, str(file), *more, exits=ExitCode.BAD_USAGE)
        assert "template.json" in result.stderr


@pytest.mark.parametrize("levels", [100, 5_000])
def test_a_template_that_is_nested_too_deeply_is_refused_as_such(scene: Scene, tmp_path: Path, levels: int) -> None:
    file = written(tmp_path / "template.json", '{"a":' * levels + "1" + "}" * levels)
    for arguments in (
        ("check", str(file)),
        ("check", str(file), "--offline"),
        ("publish", str(file), "--version", "2.1.0"),
    ):
        result = scene.berth("release", *arguments, exits=ExitCode.BAD_USAGE)
        assert "template.json: the value is nested too deeply" in result.stderr


# Publishing


def test_publishing_again_changes_nothing_and_another_template_is_refused(scene: Scene, template: Path) -> None:
    arguments = ("release", "publish", str(template), "--version", "2.1.0", "--json")
    assert json.loads(scene.berth(*arguments, exits=ExitCode.OK).stdout)["status"] == "PUBLISHED"
    assert json.loads(scene.berth(*arguments, exits=ExitCode.OK).stdout)["status"] == "UNCHANGED"
    changed = queue_template()
    changed["Description"] = "Changed."
    written(template, changed)
    refused = json.loads(scene.berth(*arguments, exits=ExitCode.REFUSED).stdout)
    assert refused["type"] == "urn:berth:problem:release-immutable"


def test_a_template_with_findings_is_refused_with_all_of_them(scene: Scene, tmp_path: Path) -> None:
    file = written(tmp_path / "template.json", example_template())
    arguments = ("release", "publish", str(file), "--version", "2.1.0")
    result = scene.berth(*arguments, exits=ExitCode.REFUSED)
    assert "Resources.Files: The service role" in result.stdout
    assert "Resources.Orders: The service role" in result.stdout
    assert result.stderr == "Error: Release 2.1.0 was not published: the template has 2 findings.\n"
    document = json.loads(scene.berth(*arguments, "--json", exits=ExitCode.REFUSED).stdout)
    assert [each["place"] for each in document["findings"]] == ["Resources.Files", "Resources.Orders"]
    assert scene.api.world.templates.published == {}


@pytest.mark.parametrize("version", ["newest", "2.1", "../2.1.0", ""])
def test_the_version_must_be_one(scene: Scene, template: Path, version: str) -> None:
    scene.berth("release", "publish", str(template), "--version", version, exits=ExitCode.BAD_USAGE)
    assert scene.connected_to == []


def test_publishing_an_older_release_than_the_current_one_warns(scene: Scene, tmp_path: Path) -> None:
    def publish(version: str) -> str:
        path = written(tmp_path / f"{version}.json", queue_template(version))
        arguments = ("release", "publish", str(path), "--version", version, "--tier", "gold", "--allow-replacement")
        return scene.berth(*arguments, exits=ExitCode.OK).stdout

    publish("3.1.0")
    scene.api.clock.advance(timedelta(minutes=1))
    assert " ".join(publish("3.0.5").split()) == (
        "Release 3.0.5 is published. New tenants of the tier gold get 3.0.5, instead of 3.1.0. Warning: 3.0.5 is older "
        "than 3.1.0. To go back: berth release promote 3.1.0"
    )
    assert re.search(r"was published with this template at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\.", publish("3.0.5"))


def long_template(size: int) -> dict[str, Any]:
    """A template whose published form has this number of bytes."""
    template = queue_template()
    template["Metadata"] = {"Notes": ""}
    template["Metadata"]["Notes"] = "x" * (size - len(canonical(template)))
    return template


def test_the_longest_template_is_published_and_a_longer_one_is_not_sent(scene: Scene, tmp_path: Path) -> None:
    longest = written(tmp_path / "longest.json", long_template(MAX_TEMPLATE_BYTES))
    assert (
        json.loads(
            scene.berth("release", "publish", str(longest), "--version", "2.1.0", "--json", exits=ExitCode.OK).stdout
        )["status"]
        == "PUBLISHED"
    )
    scene.connected_to.clear()
    longer = written(tmp_path / "longer.json", long_template(MAX_TEMPLATE_BYTES + 1))
    refused = scene.berth("release", "publish", str(longer), "--version", "2.2.0", exits=ExitCode.BAD_USAGE)
    assert "longer.json: The template has 1,000,001 bytes when it is published; CloudFormation takes" in refused.stderr
    checked = scene.berth("release", "check", str(longer), exits=ExitCode.ATTENTION)
    assert "The template has 1,000,001 bytes when it is published" in checked.stdout
    assert scene.connected_to == []
    far_too_long = written(tmp_path / "far.json", long_template(3 * MAX_TEMPLATE_BYTES))
    refused = scene.berth("release", "check", str(far_too_long), exits=ExitCode.BAD_USAGE)
    assert "far.json is too long for a template: CloudFormation takes 1,000,000 bytes." in refused.stderr


def test_a_check_says_with_which_options_to_publish(scene: Scene, tmp_path: Path) -> None:
    folder = an_assembly(tmp_path / "my app", Tenant=queue_template(), Other={"Resources": {}})
    options = ("--tier", "gold", "--template-stack", "Tenant", "--allow-replacement")
    checked = scene.berth("release", "check", str(folder), *options, exits=ExitCode.OK)
    command = f"berth release publish '{folder}' --version 2.1.0 {' '.join(options)}"
    assert checked.stderr == f"Publish it: {command}\n"


def test_a_check_finds_a_version_that_is_taken(scene: Scene, template: Path) -> None:
    scene.berth("release", "publish", str(template), "--version", "2.1.0", exits=ExitCode.OK)
    scene.berth("release", "check", str(template), exits=ExitCode.OK)
    changed = queue_template()
    changed["Description"] = "Changed."
    written(template, changed)
    refused = scene.berth("release", "check", str(template), exits=ExitCode.ATTENTION)
    assert "no    version: " in refused.stdout
    assert "Release 2.1.0 was published before, with another template" in refused.stdout


def test_promoting_it_lasts_and_the_list_says_so(scene: Scene, template: Path) -> None:
    scene.berth("release", "publish", str(template), "--version", "2.1.0", exits=ExitCode.OK)
    scene.berth("release", "promote", "2.1.0", exits=ExitCode.OK)
    result = scene.berth("releases", exits=ExitCode.OK)
    assert "New tenants get 2.1.0, which is yours, until another release is promoted" in result.stderr


def test_releases_of_operators_are_compared_by_the_control_plane(scene: Scene, template: Path) -> None:
    scene.berth("release", "publish", str(template), "--version", "2.1.0", exits=ExitCode.OK)
    scene.api.world.published_templates.templates["2.1.0"] = json.dumps(queue_template())
    result = scene.berth("release", "diff", "0.2.0", "2.1.0", exits=ExitCode.OK)
    assert "InboundQueue (AWS::SQS::Queue): added" in result.stdout
    scene.api.world.published_templates.templates["2.1.0"] = None
    refused = scene.berth("release", "diff", "0.2.0", "2.1.0", exits=ExitCode.BAD_USAGE)
    assert "not as it was published" in refused.stderr
    unknown = scene.berth("release", "diff", "2.1.0", "9.9.9")
    assert unknown.exit_code != ExitCode.OK
