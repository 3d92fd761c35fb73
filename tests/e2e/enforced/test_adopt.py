"""With the documented permissions, an operator adopts a tenant from before Berth, and Berth upgrades and deletes it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from time import sleep

import pytest
from botocore.exceptions import ClientError

from orchestrator.adapters.aws import SystemClock
from orchestrator.adapters.cloudformation import CloudFormationStacks
from orchestrator.adapters.migration import Migration
from orchestrator.adapters.sqs import SqsQueues
from orchestrator.local.emulator import ACCOUNT, REGION
from orchestrator.tenants.names import Names
from orchestrator.tenants.records import Request
from tests.e2e.deployed import Deployed
from tests.e2e.enforced.control_plane import ADOPTER, Enforced, Statement
from tests.e2e.legacy import PREFIX, VERSION, a_legacy_tenant
from tests.e2e.operators import delete, ended, upgrade

PAGE = Path(__file__).parents[3] / "docs" / "permissions.md"


def statements(enforced: Enforced) -> list[Statement]:
    """The permissions of the page, for this control plane's table."""
    (policy,) = re.findall(r"```json\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names = {"TABLE": enforced.root.outputs["TableName"], "ACCOUNT": ACCOUNT, "REGION": REGION, "PREFIX": PREFIX}
    for name, value in names.items():
        policy = policy.replace(name, value)
    found: list[Statement] = json.loads(policy)["Statement"]
    return found


def migration(caller: Deployed) -> Migration:
    stacks = CloudFormationStacks(caller.client("cloudformation"), names=Names("Berth", (PREFIX,)), service_role="")
    queues, table = SqsQueues(caller.client("sqs")), caller.outputs["TableName"]
    return Migration(caller.client("dynamodb"), table, stacks, stacks.stack_with, queues, SystemClock(), sleep)


def test_no_request_is_denied_while_a_tenant_of_another_name_is_adopted_upgraded_and_deleted(
    enforced: Enforced,
) -> None:
    root, platform, operator = enforced.root, enforced.platform, enforced.operator
    tenant = a_legacy_tenant(root, "from-before", f"{PREFIX}from-before")
    assert platform.ask(tenant).body["version"] == VERSION

    adopting = migration(enforced.principal(ADOPTER, statements=statements(enforced)))
    (plan,) = adopting.find(lambda _line: None)
    assert adopting.adopt(plan, Request(by="berth adopt")) is None
    assert len(root.table.history(tenant)) == 1

    assert ended(root, upgrade(operator, tenant, root.release)) == "SUCCEEDED"
    assert platform.ask(tenant).body["version"] == root.release
    enforced.with_credentials(tenant, "send").send_message(
        QueueUrl=platform.ask(tenant).body["queueUrl"], MessageBody="hello"
    )
    assert ended(root, delete(operator, tenant, force="true")) == "SUCCEEDED"
    assert platform.ask(tenant).status == 410
    assert enforced.denials() == []


def test_another_role_with_the_same_permissions_may_not_write_history(enforced: Enforced) -> None:
    tenant = a_legacy_tenant(enforced.root, "from-before-2", f"{PREFIX}from-before-2")
    other = enforced.principal("another-adopter", statements=statements(enforced), attacks=True)
    adopting = migration(other)
    plans = {plan.tenant_id: plan for plan in adopting.find(lambda _line: None)}
    with pytest.raises(ClientError, match="AccessDenied"):
        adopting.adopt(plans[tenant.value], Request(by="berth adopt"))
    assert enforced.root.table.history(tenant) == []
