"""The committed release: the template of version.txt, and its notes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.common.own_versions import template_version
from orchestrator.releases import template_contract as contract
from orchestrator.releases.published import canonical
from orchestrator.releases.template_contract import MAX_NOTES
from stacks.releases.committed import (
    RELEASES,
    ReleaseChanged,
    ReleaseMissing,
    ReleaseUnchanged,
    ReleaseUnexpected,
    notes,
    release_file,
    write_release,
)

Json = dict[str, Any]


def test_a_changed_template_needs_another_version(tenant: Json) -> None:
    version = template_version()
    assert release_file(version).read_bytes() == canonical(tenant), (
        f"The tenant template differs from the released stacks/releases/{version}.json, and a released template "
        "never changes. Bump version.txt, then run `make release`."
    )


def test_only_the_current_release_is_committed_with_its_notes() -> None:
    files = {file.name for file in RELEASES.iterdir() if file.suffix in (".json", ".md")}
    assert files == {f"{template_version()}.json", f"{template_version()}.md"}
    assert notes(template_version())


def test_the_release_has_what_the_code_expects_of_a_template(tenant: Json) -> None:
    version = template_version()
    assert tenant["Outputs"]["Version"]["Value"] == version
    assert tenant["Outputs"].keys() >= {contract.QUEUE_ARN, contract.QUEUE_URL, contract.VERSION}
    recorded = tenant["Resources"][contract.METADATA_RESOURCE]["Properties"]
    assert recorded.keys() >= {contract.TENANT_PARAMETER, contract.QUEUE_ARN, contract.QUEUE_URL, contract.VERSION}
    assert recorded["Version"] == version
    types = {name: resource["Type"] for name, resource in tenant["Resources"].items()}
    assert (
        types.items()
        >= {
            contract.INBOUND_QUEUE: contract.QUEUE_TYPE,
            contract.DEAD_LETTER_QUEUE: contract.QUEUE_TYPE,
            contract.METADATA_RESOURCE: contract.METADATA_TYPE,
        }.items()
    )


# Writing a release, in folders of the tests


def template(version: str, timeout: int = 30) -> Json:
    """A template that names its own version, as all do."""
    return {
        "Outputs": {"Version": {"Value": version}},
        "Resources": {"InboundQueue": {"Properties": {"VisibilityTimeout": timeout}}},
    }


def write(folder: Path, version: str, timeout: int = 30, *, redo: bool = False) -> Path:
    (folder / f"{version}.md").write_text(f"What is new in {version}.\n", encoding="utf-8")
    return write_release(version, template(version, timeout), folder, redo=redo)


def committed(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()}


def test_the_first_release_is_written_into_an_empty_folder_in_its_canonical_form(tmp_path: Path) -> None:
    file = write(tmp_path, "1.0.0")
    assert file == release_file("1.0.0", tmp_path)
    assert file.read_bytes() == canonical(template("1.0.0"))


def test_a_release_that_is_written_again_stays_as_it_is(tmp_path: Path) -> None:
    file = write(tmp_path, "1.0.0")
    before = file.read_bytes()
    assert write(tmp_path, "1.0.0") == file
    assert file.read_bytes() == before


def test_a_changed_template_is_refused_under_the_same_version(tmp_path: Path) -> None:
    file = write(tmp_path, "1.0.0")
    with pytest.raises(ReleaseChanged, match=r"differs from the released 1\.0\.0\.json\. Bump version\.txt, then run"):
        write(tmp_path, "1.0.0", timeout=60)
    assert json.loads(file.read_bytes()) == template("1.0.0")


def test_a_release_that_was_never_published_can_be_replaced(tmp_path: Path) -> None:
    file = write(tmp_path, "1.0.0")
    with pytest.raises(ReleaseChanged, match=r"no control plane has published 1\.0\.0 yet: .*RELEASE_ARGS=--redo"):
        write(tmp_path, "1.0.0", timeout=60)
    assert write(tmp_path, "1.0.0", timeout=60, redo=True) == file
    assert json.loads(file.read_bytes()) == template("1.0.0", timeout=60)


@pytest.mark.parametrize("redo", [False, True])
def test_another_version_is_refused_if_nothing_else_has_changed(tmp_path: Path, redo: bool) -> None:
    write(tmp_path, "1.0.0")
    with pytest.raises(
        ReleaseUnchanged,
        match=r"is that of 1\.0\.0\.json: only the version has changed\. Write 1\.0\.0 into version\.txt again",
    ):
        write(tmp_path, "1.1.0", redo=redo)
    assert release_file("1.0.0", tmp_path).is_file()
    with pytest.raises(ReleaseMissing):
        release_file("1.1.0", tmp_path)


def test_a_changed_template_under_another_version_replaces_the_release_before(tmp_path: Path) -> None:
    write(tmp_path, "1.0.0")
    file = write(tmp_path, "1.1.0", timeout=60)
    assert json.loads(file.read_bytes()) == template("1.1.0", timeout=60)
    assert committed(tmp_path) == {"1.1.0.json", "1.1.0.md"}


def test_a_release_is_not_written_after_a_later_one(tmp_path: Path) -> None:
    write(tmp_path, "0.10.0")
    with pytest.raises(ReleaseUnexpected, match=r"later release 0\.10\.0\.json is committed\. Bump version\.txt past"):
        write(tmp_path, "0.9.5", timeout=60)
    assert release_file("0.10.0", tmp_path).is_file()


@pytest.mark.parametrize("name", ["draft", "1.2", "v1.2.3", "1.2.3-beta", "12345.0.0"])
def test_a_template_whose_name_is_not_a_version_is_refused_and_not_removed(tmp_path: Path, name: str) -> None:
    (tmp_path / f"{name}.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ReleaseUnexpected, match=rf"{name}\.json is among the releases"):
        write(tmp_path, "1.2.3")
    assert f"{name}.json" in committed(tmp_path)


def test_a_version_without_a_release_cannot_be_deployed(tmp_path: Path) -> None:
    write(tmp_path, "1.2.3")
    with pytest.raises(ReleaseMissing, match=r"Version 9\.9\.9 has no release\. Run `make release`"):
        release_file("9.9.9", tmp_path)


@pytest.mark.parametrize("content", ["", "1.2", "v1.2.3", "1.2.3-beta", "../1.2.3", "1.2.3.dev0"])
def test_the_version_of_a_template_is_three_numbers(tmp_path: Path, content: str) -> None:
    file = tmp_path / "version.txt"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=r"which is not a version like 1\.2\.3"):
        template_version(file)


# Notes


def test_the_notes_stand_beside_the_template(tmp_path: Path) -> None:
    write(tmp_path, "1.0.0")
    assert notes("1.0.0", tmp_path) == "What is new in 1.0.0."


def test_a_release_without_notes_is_neither_written_nor_deployed(tmp_path: Path) -> None:
    with pytest.raises(
        ReleaseMissing, match=r"Write into 1\.0\.0\.md, beside the release, what is new in version 1\.0\.0"
    ):
        write_release("1.0.0", template("1.0.0"), tmp_path)
    assert committed(tmp_path) == set()


@pytest.mark.parametrize("text", ["", " \n", "x" * (MAX_NOTES + 1)], ids=["empty", "blank", "too long"])
def test_notes_are_shown_whole_so_they_have_a_limit(tmp_path: Path, text: str) -> None:
    (tmp_path / "1.0.0.md").write_text(text, encoding="utf-8")
    with pytest.raises(ReleaseMissing, match=f"at most {MAX_NOTES} characters"):
        notes("1.0.0", tmp_path)
    (tmp_path / "1.0.0.md").write_text("x" * MAX_NOTES, encoding="utf-8")
    assert notes("1.0.0", tmp_path) == "x" * MAX_NOTES
