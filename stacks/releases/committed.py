"""The tenant template of every released version, one file per version.

A released template never changes: tenants' stacks are made from it, and a rollback returns to it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orchestrator.common.errors import BerthError
from orchestrator.common.versions import VERSION_PATTERN, order
from orchestrator.releases.published import canonical
from orchestrator.releases.template_contract import MAX_NOTES
from stacks.project import ROOT

RELEASES = Path(__file__).resolve().parent
CHANGELOG = ROOT / "CHANGELOG.md"


class ReleaseChanged(BerthError):
    """The template differs from the one already released under the same version."""


class ReleaseMissing(BerthError):
    """The version has no committed template."""


class ReleaseUnexpected(BerthError):
    """A release would be written that is older than a committed one, or a template's file name is not a version."""


def release_file(version: str, releases: Path = RELEASES) -> Path:
    file = releases / f"{version}.json"
    if not file.is_file():
        raise ReleaseMissing(f"Version {version} has no release. Run `make release`, then commit {file.name}.")
    return file


def releases_up_to(version: str, releases: Path = RELEASES) -> list[Path]:
    """The committed releases, oldest first. The last is that of ``version``.

    Later releases are left out: somebody goes back to that version. Those that were published stay published.
    """
    newest = release_file(version, releases)
    return [file for file in _committed(releases) if _numbers(file) <= _numbers(newest)]


def _committed(releases: Path) -> list[Path]:
    return sorted(releases.glob("*.json"), key=_numbers)


def _numbers(file: Path) -> tuple[int, ...]:
    """The sort key of a release: 0.10.0 comes after 0.9.0."""
    if not re.fullmatch(VERSION_PATTERN, file.stem):
        raise ReleaseUnexpected(f"{file.name} is among the releases, but its name is not a version, like 1.2.3.json.")
    return order(file.stem)


def notes(version: str, *, current: str, changelog: Path = CHANGELOG) -> str:
    """The changelog's section about a version, up to its first subsection, which has the details.

    The current version must have a section, older ones need not.
    """
    text = changelog.read_text(encoding="utf-8")
    section = re.search(rf"^## {re.escape(version)}(?![0-9.])[^\n]*\n(.*?)(?=^##|\Z)", text, re.MULTILINE | re.DOTALL)
    if section is None and version == current:
        raise ReleaseMissing(
            f"Version {version} has no section in {changelog.name}. Add one that says what the version changes."
        )
    found = section[1].strip() if section else ""
    return found if len(found) <= MAX_NOTES else found[: MAX_NOTES - 1] + "…"


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def write_release(version: str, template: Mapping[str, Any], releases: Path = RELEASES, *, redo: bool = False) -> Path:
    """Write the file of the version. A file that exists with other content is changed only with ``redo``.

    ``redo`` is for a release that no control plane has published. Those that have refuse another template.
    """
    file = releases / f"{version}.json"
    later = [each.name for each in _committed(releases) if not file.exists() and _numbers(each) > _numbers(file)]
    if later:
        raise ReleaseUnexpected(
            f"Releases after version {version} are committed: {', '.join(later)}. Bump version.txt past these."
        )
    content = canonical(template)
    if file.exists() and file.read_bytes() != content and not redo:
        raise ReleaseChanged(
            f"The tenant template differs from the released {file.name}. Bump version.txt, then run `make release`. If "
            f"no control plane has published {version} yet: make release RELEASE_ARGS=--redo"
        )
    file.write_bytes(content)
    return file
