"""Tenants of the system before Berth: its stacks, and its rows in the table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from orchestrator.adapters.dynamodb import keys
from orchestrator.common.tenant_ids import TenantId
from tests.e2e.deployed import Deployed, eventually

TEMPLATE = Path(__file__).parent / "fixtures" / "legacy_tenant.template.json"
WHEN = "2020-08-31T16:02:16.808Z"
VERSION = "0.0.9"
PREFIX = "old-tenant-"
"""The prefix of the stacks' names."""
EXECUTION = "arn:aws:states:us-east-1:000000000000:execution:long-ago:1"


def stack_named(berth: Deployed, name: str) -> Any:
    (stack,) = berth.client("cloudformation").describe_stacks(StackName=name)["Stacks"]
    return stack


def an_old_stack(berth: Deployed, tenant: TenantId, name: str) -> dict[str, str]:
    """Create the stack, and return its outputs: both queues."""
    berth.client("cloudformation").create_stack(
        StackName=name,
        TemplateBody=TEMPLATE.read_text(),
        Parameters=[{"ParameterKey": "TenantId", "ParameterValue": tenant.value}],
    )
    eventually(
        lambda: True if stack_named(berth, name)["StackStatus"] == "CREATE_COMPLETE" else None,
        what=f"the old stack {name} is there",
    )
    return {output["OutputKey"]: output["OutputValue"] for output in stack_named(berth, name)["Outputs"]}


def old_metadata(berth: Deployed, tenant: TenantId, queues: Mapping[str, str]) -> None:
    """Write a row without a stack id, a state and index attributes, and with ``UpdateAt`` instead of ``UpdatedAt``."""
    texts = {"CreatedAt": WHEN, "UpdateAt": WHEN, "Version": VERSION, **queues}
    _put(berth, keys.metadata_key(tenant), texts)


def old_audit(berth: Deployed, tenant: TenantId, operation: str = "CREATE", status: str = "Success") -> None:
    """Write an audit row without an attempt, and without a version in its key."""
    texts = {"UpdatedAt": WHEN, "Status": status, "Execution": EXECUTION}
    _put(berth, keys.key(keys.tenant_pk(tenant), f"AUDIT#{operation}"), texts)


def _put(berth: Deployed, key: Mapping[str, Any], texts: Mapping[str, str]) -> None:
    item = {**key, **{name: {"S": text} for name, text in texts.items()}}
    berth.client("dynamodb").put_item(TableName=berth.outputs["TableName"], Item=item)


def a_legacy_tenant(berth: Deployed, name: str, stack_name: str | None = None) -> TenantId:
    """Create a tenant in service, in a stack with the given name or else with the name that Berth derives."""
    tenant = TenantId(name)
    old_metadata(berth, tenant, an_old_stack(berth, tenant, stack_name or berth.names.stack_of(tenant)))
    old_audit(berth, tenant)
    return tenant


def a_legacy_fleet(berth: Deployed, names: Iterable[str]) -> list[TenantId]:
    """Create tenants in stacks with names that Berth does not derive."""
    _ = berth.client("cloudformation"), berth.client("dynamodb")  # Creating a client is not thread-safe.
    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(lambda name: a_legacy_tenant(berth, name, f"{PREFIX}{name}"), names))
