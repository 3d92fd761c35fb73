"""The tenant template of every released version, one file a version.

A released template never changes: tenants run on it, and a rollback goes back to it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orchestrator.errors import BerthError

RELEASES = Path(__file__).resolve().parent


class ReleaseChanged(BerthError):
    """The template differs from the one already released under the same version."""


class ReleaseMissing(BerthError):
    """The version has no committed template."""


def canonical(template: Mapping[str, Any]) -> bytes:
    """The one spelling of a template: what is committed, published and digested."""
    return (json.dumps(template, indent=2, sort_keys=True) + "\n").encode()


def release_file(version: str, releases: Path = RELEASES) -> Path:
    file = releases / f"{version}.json"
    if not file.is_file():
        raise ReleaseMissing(f"Version {version} has no release: run `make release`, then commit {file.name}.")
    return file


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def write_release(version: str, template: Mapping[str, Any], releases: Path = RELEASES) -> Path:
    """Write the version's file, or find that it is there already; never change it."""
    file = releases / f"{version}.json"
    content = canonical(template)
    if file.exists() and file.read_bytes() != content:
        raise ReleaseChanged(
            f"The tenant template differs from the released {file.name}. Bump version.txt, then run `make release`."
        )
    file.write_bytes(content)
    return file
