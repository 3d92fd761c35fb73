"""Synthesised once a session: the templates that the tests look at."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

# The environment's own Node, because the CDK refuses older ones. It has to be known before the CDK is imported.
os.environ.setdefault("JSII_NODE", str(Path(sys.executable).parent / "node"))

from aws_cdk import App
from aws_cdk.assertions import Template

from stacks.app import build
from stacks.project import read_version
from stacks.tenant_stack import tenant_template

Json = dict[str, Any]


@pytest.fixture(scope="session")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The control plane with the settings' defaults, checked by cdk-nag on the way."""
    directory = tmp_path_factory.mktemp("assembly")
    app = App(outdir=str(directory), analytics_reporting=False, context={"berth:dependencies": "host"})
    build(app)
    app.synth()
    return directory


@pytest.fixture(scope="session")
def control_plane(assembly: Path) -> Json:
    template: Json = json.loads((assembly / "Berth.template.json").read_text(encoding="utf-8"))
    return template


@pytest.fixture(scope="session")
def control_plane_template(control_plane: Json) -> Template:
    return Template.from_json(control_plane)


@pytest.fixture(scope="session")
def tenant() -> Json:
    return tenant_template(read_version())


@pytest.fixture(scope="session")
def function_ids(control_plane: Json) -> dict[str, str]:
    """The logical id of every function, by the name of its handler's file."""
    return {
        resource["Properties"]["Handler"].split(".")[1]: logical_id
        for logical_id, resource in control_plane["Resources"].items()
        if resource["Type"] == "AWS::Lambda::Function"
    }


@pytest.fixture(scope="session")
def the_only(control_plane: Json) -> Callable[[str], str]:
    """The logical id of the only resource of a type."""

    def find(resource_type: str) -> str:
        (logical_id,) = (
            found for found, resource in control_plane["Resources"].items() if resource["Type"] == resource_type
        )
        return logical_id

    return find
