"""Tenants of the pool, with exactly the permissions that are deployed: they join it, leave it and are deleted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.tiers import POOLED, STANDARD
from tests.e2e.enforced.control_plane import Enforced
from tests.e2e.enforced.pairs import seen
from tests.e2e.operators import call, create, delete, ended

ONE, OTHER = TenantId("enforced-pooled-1"), TenantId("enforced-pooled-2")


@pytest.fixture
def pooled_by_default(enforced: Enforced) -> Iterator[Enforced]:
    """getQueue puts new tenants into the pool, as with ``berth:defaultTier=pooled``. It needs no other permission."""
    functions, name = enforced.root.client("lambda"), enforced.root.function("get_queue")
    before = functions.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
    functions.update_function_configuration(
        FunctionName=name, Environment={"Variables": {**before, "BERTH_DEFAULT_TIER": POOLED}}
    )
    yield enforced
    functions.update_function_configuration(FunctionName=name, Environment={"Variables": before})


def test_tenants_join_the_pool_and_leave_it(pooled_by_default: Enforced) -> None:
    enforced = pooled_by_default
    root, platform, operator = enforced.root, enforced.platform, enforced.operator

    # One joins by its first getQueue, the other because an operator creates it.
    joined = platform.ask(ONE)
    assert (joined.status, joined.body["messageGroupId"]) == (200, ONE.value)
    assert create(operator, OTHER, tier=POOLED, labels={"plan": "free"}).status == 200
    assert platform.ask(OTHER).body["queueUrl"] == joined.body["queueUrl"], "there is one queue"
    writes = ("ConditionCheckItem", "PutItem", "UpdateItem")
    used = seen(enforced)
    for role in ("get_queue", "operators"):
        assert {(role, f"dynamodb:{action}") for action in writes} <= used

    # One moves out of the pool, and the other is deleted from it.
    moved = call(operator, "POST", f"/tenants/{ONE}/move", body={"tier": STANDARD})
    assert ended(root, moved) == "SUCCEEDED"
    own = platform.ask(ONE).body
    assert own["formerQueue"]["queueUrl"] == joined.body["queueUrl"] != own["queueUrl"]
    for tenant in (OTHER, ONE):
        assert ended(root, delete(operator, tenant)) == "SUCCEEDED"
        assert platform.ask(tenant).status == 410
    assert enforced.denials() == []
