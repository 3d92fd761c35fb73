"""The two versions of an installation: that of Berth, and that of the tenants' template that comes with it.

They change independently of each other. A new version of Berth may have the same template, and then no tenant needs an
update. Functions have both versions as environment variables, and do not use this module.
"""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path

from orchestrator.common.versions import VERSION_PATTERN

_ROOT = Path(__file__).resolve().parents[2]
"""The checkout, or the package ``berth`` of an installed wheel."""
PROJECT = _ROOT / "pyproject.toml"
TEMPLATE_VERSION = _ROOT / "version.txt"


def berth_version() -> str:
    """The version of Berth. A checkout has it in pyproject.toml, a wheel in its metadata.

    The metadata of an editable installation, which a checkout has, is as old as the installation.
    """
    if PROJECT.is_file():
        version: str = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["version"]
        return version
    return metadata.version("berth")


def template_version(file: Path = TEMPLATE_VERSION) -> str:
    """The version of the tenants' template, which is the version of the release that a deployment publishes."""
    version = file.read_text(encoding="utf-8").strip()
    if not re.fullmatch(VERSION_PATTERN, version):
        raise ValueError(f"{file.name} contains {version!r}, which is not a version like 1.2.3.")
    return version
