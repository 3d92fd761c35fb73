"""The committed release: the tenants' template of version.txt, and its notes.

A released template never changes: tenants' stacks are made from it, and a rollback returns to it. So a changed template
needs another version, and another version is refused without a changed template: every tenant would count as outdated,
and a rollout would change nothing. Releases before the committed one are in the history of the repository, and control
planes keep those that they have published.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orchestrator.common.errors import BerthError
from orchestrator.common.versions import VERSION_PATTERN, is_older
from orchestrator.releases.published import canonical, content_digest
from orchestrator.releases.template_contract import MAX_NOTES

RELEASES = Path(__file__).resolve().parent


class ReleaseChanged(BerthError):
    """The template differs from the one already released under the same version."""


class ReleaseUnchanged(BerthError):
    """The version is another one, and nothing else has changed."""


class ReleaseMissing(BerthError):
    """The version has no committed template, or no notes."""


class ReleaseUnexpected(BerthError):
    """A release would be written that is older than the committed one, or a template's file name is not a version."""


def release_file(version: str, releases: Path = RELEASES) -> Path:
    file = releases / f"{version}.json"
    if not file.is_file():
        raise ReleaseMissing(f"Version {version} has no release. Run `make release`, then commit {file.name}.")
    return file


def notes(version: str, releases: Path = RELEASES) -> str:
    """The release notes, which operators read in `berth releases`: what is new in the template."""
    file = _notes_file(version, releases)
    found = file.read_text(encoding="utf-8").strip() if file.is_file() else ""
    if not 0 < len(found) <= MAX_NOTES:
        raise ReleaseMissing(
            f"Write into {file.name}, beside the release, what is new in version {version} of the tenants' template: "
            f"at least a sentence, and at most {MAX_NOTES} characters."
        )
    return found


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def write_release(version: str, template: Mapping[str, Any], releases: Path = RELEASES, *, redo: bool = False) -> Path:
    """Write the file of the version in place of the one before. A file of the same version is changed only with
    ``redo``, which is for a release that no control plane has published. Those that have refuse another template.
    """
    file, content = releases / f"{version}.json", canonical(template)
    if file.exists() and file.read_bytes() != content and not redo:
        raise ReleaseChanged(
            f"The tenant template differs from the released {file.name}. Bump version.txt, then run `make release`. If "
            f"no control plane has published {version} yet: make release RELEASE_ARGS=--redo"
        )
    before = [each for each in releases.glob("*.json") if each != file]
    for each in before:
        _check_is_replaced(each, version, content)
    notes(version, releases)
    file.write_bytes(content)
    for each in before:
        each.unlink()
        _notes_file(each.stem, releases).unlink(missing_ok=True)
    return file


def _check_is_replaced(before: Path, version: str, content: bytes) -> None:
    """Raises an error if the release that is committed is not earlier than the version, or has the same template."""
    if not re.fullmatch(VERSION_PATTERN, before.stem):
        raise ReleaseUnexpected(f"{before.name} is among the releases, but its name is not a version, like 1.2.3.json.")
    if not is_older(before.stem, than=version):
        raise ReleaseUnexpected(f"The later release {before.name} is committed. Bump version.txt past it.")
    if content_digest(before.read_bytes(), before.stem) == content_digest(content, version):
        raise ReleaseUnchanged(
            f"The tenant template is that of {before.name}: only the version has changed. Write {before.stem} into "
            "version.txt again. A release with the same template would make all tenants outdated for nothing."
        )


def _notes_file(version: str, releases: Path) -> Path:
    return releases / f"{version}.md"
