"""The resources of the released control plane and event plane: the type of each logical id.

Run ``python -m tests.stacks.released REVISION`` after a release, to rewrite ``released.json``. There is none before
0.10.0, the first release that is upgraded.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypedDict

from stacks.project import ROOT

Json = dict[str, Any]

RELEASED = Path(__file__).parent / "released.json"
CONTROL_PLANE, EVENT_PLANE = "Berth", "BerthEvents"
STACKS = (CONTROL_PLANE, EVENT_PLANE)

KEY = "arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
EVERYTHING: Mapping[str, str] = {"kmsKeyArn": KEY, "credentialsSeconds": "1800", "rolloutOnPublish": "true"}
"""The settings that add resources."""


class Released(TypedDict):
    """One stack of the release."""

    defaults: dict[str, str]
    """The resources with the default settings."""
    added: dict[str, str]
    """The further resources that the settings ``EVERYTHING`` add."""
    left_out: list[str]
    """The resources that those settings leave out."""
    exports: list[str]
    """The names of the exports, which other stacks import."""
    imports: list[str]
    """The names of the exports that the stack imports."""


def released(stack: str) -> Released:
    found: dict[str, Released] = json.loads(RELEASED.read_text(encoding="utf-8"))
    return found[stack]


def main() -> None:
    (revision,) = sys.argv[1:] or sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(["git", "archive", revision], cwd=ROOT, capture_output=True, check=True).stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as sources:
            sources.extractall(folder, filter="data")
        by_default, with_everything = _templates(folder, {}), _templates(folder, EVERYTHING)
    found = {stack: describe(by_default[stack], with_everything[stack]) for stack in STACKS}
    RELEASED.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def describe(by_default: Json, with_everything: Json) -> Released:
    defaults, everything = _resources(by_default), _resources(with_everything)
    return Released(
        defaults=defaults,
        added={name: kind for name, kind in everything.items() if name not in defaults},
        left_out=[name for name in defaults if name not in everything],
        exports=exports_of(with_everything),
        imports=imports_of(with_everything),
    )


def exports_of(template: Json) -> list[str]:
    return sorted(output["Export"]["Name"] for output in template["Outputs"].values() if "Export" in output)


def imports_of(template: Json) -> list[str]:
    return sorted(set(_imported(template["Resources"])))


def _imported(value: Any) -> Iterator[str]:
    match value:
        case {"Fn::ImportValue": name}:
            yield name
        case dict():
            for each in value.values():
                yield from _imported(each)
        case list():
            for each in value:
                yield from _imported(each)


def _resources(template: Json) -> dict[str, str]:
    return {name: resource["Type"] for name, resource in sorted(template["Resources"].items())}


def _templates(sources: str, settings: Mapping[str, str]) -> dict[str, Json]:
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
        return {stack: _template(Path(assembly) / f"{stack}.template.json") for stack in STACKS}


def _template(file: Path) -> Json:
    template: Json = json.loads(file.read_text(encoding="utf-8"))
    return template


if __name__ == "__main__":
    main()
