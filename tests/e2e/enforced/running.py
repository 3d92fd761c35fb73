"""Runs a control plane with permissions enforced."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from orchestrator.local.deployment import deploy
from orchestrator.local.emulator import ACCOUNT, REGION, Emulator, free_port
from tests.e2e.deployed import Deployed
from tests.e2e.enforced.control_plane import Enforced


@contextmanager
def running(home: Path, settings: Callable[[Emulator], Mapping[str, str]]) -> Iterator[Enforced]:
    """A control plane with these settings, which may depend on what is made in the emulator before."""
    emulator = Emulator(port=free_port(), home=home, keep_state=False, server="tests.e2e.enforced.server")
    emulator.start()
    try:
        root = Deployed(emulator, deploy(emulator, lambda _step: None, **settings(emulator)))
        _put_what_the_emulator_ignores(root)
        yield Enforced(root)
    finally:
        emulator.stop()


def _put_what_the_emulator_ignores(root: Deployed) -> None:
    """Set the table's policy and the roles' boundaries, because the emulator ignores both in the template."""
    template = json.loads((root.emulator.home / "cdk.out" / "Berth.template.json").read_text())
    stack = root.client("cloudformation").get_paginator("list_stack_resources").paginate(StackName="Berth")
    resources = {
        each["LogicalResourceId"]: each["PhysicalResourceId"]
        for page in stack
        for each in page["StackResourceSummaries"]
    }
    tables = [each for each in template["Resources"].values() if each["Type"] == "AWS::DynamoDB::Table"]
    (policy,) = [table["Properties"]["ResourcePolicy"]["PolicyDocument"] for table in tables]
    root.client("dynamodb").put_resource_policy(
        ResourceArn=f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{root.outputs['TableName']}",
        Policy=json.dumps(_resolved(policy, resources)),
    )
    for name, each in template["Resources"].items():
        if boundary := each.get("Properties", {}).get("PermissionsBoundary"):
            root.client("iam").put_role_permissions_boundary(
                RoleName=resources[name], PermissionsBoundary=resources[boundary["Ref"]]
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
