"""One control plane with permissions enforced, deployed once by the real CDK (see the package's docstring)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from orchestrator.local.deployment import deploy
from orchestrator.local.emulator import ACCOUNT, REGION, Emulator, free_port
from tests.e2e.deployed import Deployed
from tests.e2e.enforced.control_plane import Enforced
from tests.e2e.legacy import PREFIX


@pytest.fixture(scope="session")
def enforced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Enforced]:
    home = tmp_path_factory.mktemp("enforced")
    with a_control_plane(home, legacyStackPrefixes=PREFIX, pooledQueues="1") as enforced:
        yield enforced


@contextmanager
def a_control_plane(home: Path, **settings: str) -> Iterator[Enforced]:
    emulator = Emulator(port=free_port(), home=home, keep_state=False, server="tests.e2e.enforced.server")
    emulator.start()
    try:
        root = Deployed(emulator, deploy(emulator, lambda _step: None, **settings))
        _put_policy_of_table(root)
        enforced = Enforced(root)
        yield enforced
        # This includes requests after the end of a test, such as events of its executions.
        assert enforced.denials() == []
    finally:
        emulator.stop()


@pytest.fixture(scope="session")
def modules() -> set[str]:
    """The modules of this folder that have run in this process."""
    return set()


@pytest.fixture(scope="module", autouse=True)
def _record_module(request: pytest.FixtureRequest, modules: set[str]) -> None:
    modules.add(request.path.stem)


def _put_policy_of_table(root: Deployed) -> None:
    """Set the table's policy, because the emulator ignores it in the template."""
    template = json.loads((root.emulator.home / "cdk.out" / "Berth.template.json").read_text())
    tables = [each for each in template["Resources"].values() if each["Type"] == "AWS::DynamoDB::Table"]
    (policy,) = [table["Properties"]["ResourcePolicy"]["PolicyDocument"] for table in tables]
    stack = root.client("cloudformation").get_paginator("list_stack_resources").paginate(StackName="Berth")
    resources = {
        each["LogicalResourceId"]: each["PhysicalResourceId"]
        for page in stack
        for each in page["StackResourceSummaries"]
    }
    root.client("dynamodb").put_resource_policy(
        ResourceArn=f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{root.outputs['TableName']}",
        Policy=json.dumps(_resolved(policy, resources)),
    )


def _resolved(part: Any, resources: Mapping[str, str]) -> Any:
    """The policy with the references to roles replaced by their ARNs."""
    match part:
        case {"Fn::GetAtt": [role, "Arn"]}:
            return f"arn:aws:iam::{ACCOUNT}:role/{resources[role]}"
        case dict():
            return {name: _resolved(value, resources) for name, value in part.items()}
        case list():
            return [_resolved(value, resources) for value in part]
    return part
