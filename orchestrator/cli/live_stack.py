"""A tenant's records beside its stack as it is now: for `berth tenant --live` and the console's page of a tenant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from orchestrator.api.comparison_routes import COMPARE_TENANT, CompareTenant
from orchestrator.cli import render
from orchestrator.cli.api import Api, Document
from orchestrator.cli.problems import problem
from orchestrator.common.tenant_ids import TenantId
from orchestrator.reconciling.comparing import Agreement
from orchestrator.reconciling.records import Remedy

if TYPE_CHECKING:
    from orchestrator.client.retrying import Retrying

_FOUND = 200


@dataclass(frozen=True, slots=True)
class Value:
    """One value of a tenant, as it is recorded and as the stack has it."""

    name: str
    recorded: str | None
    in_stack: str | None
    differs: bool


def values(tenant: Document, compared: Document) -> list[Value]:
    """The values that the records and the stack both have, with those of the template's own outputs."""
    stack = compared["stack"] or {}
    recorded, outputs = tenant.get("resources") or {}, stack.get("resources") or {}
    pairs = [
        ("release", tenant["version"], stack.get("version")),
        ("queue url", tenant["queueUrl"], stack.get("queueUrl")),
        ("queue arn", tenant["queueArn"], stack.get("queueArn")),
        ("stack", tenant["stackId"], stack.get("stackId")),
        *((name, recorded.get(name), outputs.get(name)) for name in sorted({*recorded, *outputs})),
    ]
    is_certain = compared["agreement"] == Agreement.DIFFERS
    return [Value(name, here, there, is_certain and here != there) for name, here, there in pairs if here or there]


def verdict(compared: Document) -> str:
    """Whether the records and the stack agree, as a sentence."""
    match Agreement(compared["agreement"]):
        case Agreement.DIFFERS:
            return f"The records and the stack differ: {compared['finding']['detail']}"
        case Agreement.CHANGING:
            return "The tenant is being changed. Until that has ended, its records and its stack may differ."
        case Agreement.AGREES if compared["stack"] is None:
            return "The tenant has no stack, and its records say so, too."
        case Agreement.AGREES:
            return "The records and the stack agree."


def repair(compared: Document) -> str | None:
    """The command that repairs the difference; ``None`` if there is none."""
    finding = compared["finding"]
    if finding is None or finding["remedy"] == Remedy.NONE:
        return None
    return f"berth reconcile --only {compared['tenantId']}"


def compare(api: Api, tenant: TenantId, retrying: Retrying) -> Document:
    answer = retrying(partial(api.send_request, COMPARE_TENANT, CompareTenant(tenant_id=tenant.value)))
    if answer.status != _FOUND:
        raise problem(answer, can_wait=False)
    return answer.body


def show(tenant: Document, compared: Document) -> None:
    render.show_line("\nStack now", "bold")
    stack = compared["stack"]
    if stack:
        render.show_pairs(
            {
                "status": stack["status"],
                "reason": stack["statusReason"],
                "changed": render.moment(stack["changedAt"]) if stack["changedAt"] else None,
                **_differences(values(tenant, compared)),
            }
        )
    render.show_line(verdict(compared), "bold red" if compared["agreement"] == Agreement.DIFFERS else "")
    if compared["finding"] and compared["finding"]["advice"]:
        render.note(compared["finding"]["advice"])
    if command := repair(compared):
        render.note(f"Repair it: {command}")


def _differences(found: Sequence[Value]) -> dict[str, str]:
    """The values that differ. The others are shown with the records already."""
    return {
        each.name: f"{each.in_stack or 'none'}, recorded: {each.recorded or 'none'}" for each in found if each.differs
    }
