"""Pairs of a role and an action: those that templates grant, those that were used, and those in docs/permissions.md.

The name of a role is the file name of the function's handler or of the machine's workflow.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.e2e.enforced.control_plane import ATTACKER, Enforced
from tests.stacks.policies import listed, statements

Json = dict[str, Any]
Pair = tuple[str, str]

PAGE = Path(__file__).parents[3] / "docs" / "permissions.md"
NOT_EVALUATED = ("kms", "logs", "xray")
"""Services that the emulator does not call with Berth's roles, except KMS for tenants' secrets."""
OTHER_ROLES = {
    "MachinesCreateRole": "machine create_tenant",
    "MachinesUpdateRole": "machine update_tenant",
    "MachinesDeleteRole": "machine delete_tenant",
    "RolloutsMachineRole": "machine rollout",
    "TenantQueueProviderMachineRole": "machine tenant_queue",
    "PurgingMachineRole": "machine purge_events",
    "QueueAccessRole": "credentials for a queue",
    "AccessRole": "credentials for events",
    "StackRole": "stack role",
}
"""The roles that do not belong to functions, by their logical ids without the hash."""


STACKS = ("Berth", "BerthEvents")


def granted(template: Json) -> set[Pair]:
    """The permissions of a stack's roles."""
    named = _roles(template)
    pairs = {
        (named[role], action) for role, statement in statements(template) for action in listed(statement["Action"])
    }
    return {(role, action) for role, action in pairs if action.split(":")[0] not in NOT_EVALUATED}


def seen(enforced: Enforced) -> set[Pair]:
    """The permissions that these roles have used so far, without attacks."""
    named: dict[str, str] = {}
    for stack in STACKS:
        file = enforced.root.emulator.home / "cdk.out" / f"{stack}.template.json"
        roles = _roles(json.loads(file.read_text(encoding="utf-8")))
        pages = enforced.root.client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=stack)
        for page in pages:
            for each in page["StackResourceSummaries"]:
                if each["LogicalResourceId"] in roles:
                    named[each["PhysicalResourceId"]] = roles[each["LogicalResourceId"]]
    found = set()
    for each in enforced.decisions():
        session = re.fullmatch(r"arn:aws:sts::\d+:assumed-role/([^/]+)/(.*)", each.principal)
        if each.allowed and session and session[2] != ATTACKER and session[1] in named:
            found.add((named[session[1]], each.action))
    return {(role, action) for role, action in found if action.split(":")[0] not in NOT_EVALUATED}


def on_the_page(heading: str) -> set[Pair]:
    """The pairs in the table under a heading of the page."""
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| ")][1:]
    return {(role.strip(" `"), action) for role, actions, *_ in rows for action in re.findall(r"`([^`]+)`", actions)}


def _roles(template: Json) -> dict[str, str]:
    """The names of the roles, by their logical ids."""
    functions = [
        each["Properties"] for each in template["Resources"].values() if each["Type"] == "AWS::Lambda::Function"
    ]
    others = {
        role: OTHER_ROLES.get(role[:-8], role)
        for role, each in template["Resources"].items()
        if each["Type"] == "AWS::IAM::Role"
    }
    return others | {each["Role"]["Fn::GetAtt"][0]: each["Handler"].split(".")[-2] for each in functions}
