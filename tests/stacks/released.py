"""The resources of the released control plane: the type of each logical id.

Run ``python -m tests.stacks.released REVISION`` after a release, to rewrite ``released.json``.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict

from stacks.project import ROOT

RELEASED = Path(__file__).parent / "released.json"

KEY = "arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
EVERYTHING: Mapping[str, str] = {"kmsKeyArn": KEY, "credentialsSeconds": "1800", "rolloutOnPublish": "true"}
"""The settings that add resources."""


class Released(TypedDict):
    defaults: dict[str, str]
    """The resources with the default settings."""
    added: dict[str, str]
    """The further resources that the settings ``EVERYTHING`` add."""


def released() -> Released:
    found: Released = json.loads(RELEASED.read_text(encoding="utf-8"))
    return found


def main() -> None:
    (revision,) = sys.argv[1:] or sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(["git", "archive", revision], cwd=ROOT, capture_output=True, check=True).stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as sources:
            sources.extractall(folder, filter="data")
        defaults = _resources(folder, {})
        added = {name: kind for name, kind in _resources(folder, EVERYTHING).items() if name not in defaults}
    RELEASED.write_text(json.dumps({"defaults": defaults, "added": added}, indent=1) + "\n", encoding="utf-8")


def _resources(sources: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Synthesise with the sources of that revision, in the way the CDK's command line does."""
    context = {"berth:dependencies": "host", **{f"berth:{name}": value for name, value in settings.items()}}
    with tempfile.TemporaryDirectory() as assembly:
        environment = os.environ | {
            "PYTHONPATH": sources,
            "CDK_OUTDIR": assembly,
            "CDK_CONTEXT_JSON": json.dumps(context),
            "JSII_NODE": str(Path(sys.executable).parent / "node"),
        }
        subprocess.run([sys.executable, "-m", "stacks.app"], cwd=sources, env=environment, check=True)
        template = json.loads((Path(assembly) / "Berth.template.json").read_text(encoding="utf-8"))
    return {name: resource["Type"] for name, resource in sorted(template["Resources"].items())}


if __name__ == "__main__":
    main()
