"""Tenants of the pool, on a control plane whose new tenants are pooled."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from orchestrator.common.tenant_ids import TenantId
from orchestrator.local.deployment import deploy
from orchestrator.local.emulator import Emulator, free_port
from tests.e2e.deployed import Deployed, eventually
from tests.e2e.operators import call

ONE, OTHER = TenantId("pooled-one"), TenantId("pooled-other")


@pytest.fixture(scope="module")
def pooled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    """All tenants share one queue, so that they certainly share it."""
    emulator = Emulator(port=free_port(), home=tmp_path_factory.mktemp("pooled"))
    emulator.start()
    try:
        settings = {"pooledQueues": "1", "defaultTier": "pooled", "events": "false"}
        yield Deployed(emulator, deploy(emulator, lambda _step: None, **settings))
    finally:
        emulator.stop()


def test_two_tenants_share_a_queue_and_one_of_them_moves_out(pooled: Deployed) -> None:
    sqs = pooled.client("sqs")
    answers = {tenant: pooled.ask(tenant) for tenant in (ONE, OTHER)}
    for tenant, answer in answers.items():
        assert answer.status == 200, "at the first call"
        assert answer.body["messageGroupId"] == tenant.value
        assert answer.body["version"] is None
        sqs.send_message(
            QueueUrl=answer.body["queueUrl"], MessageBody=f"for {tenant}", MessageGroupId=answer.body["messageGroupId"]
        )
    (shared,) = {answer.body["queueUrl"] for answer in answers.values()}
    assert not pooled.executions(ONE), "nothing had to be started"

    moved = call(pooled, "POST", f"/tenants/{ONE}/move", body={"tier": "standard", "reason": "it pays"})
    assert moved.status == 202
    assert pooled.ask(ONE).body["queueUrl"] == shared, "until its own queue is there"
    pooled.ended(str(moved.body["execution"]))

    def own() -> dict[str, object] | None:
        body = pooled.ask(ONE).body
        return body if body["queueUrl"] != shared else None

    ready = eventually(own, what="the tenant's own queue")
    assert ready["version"] == pooled.outputs["Version"]
    assert "messageGroupId" not in ready
    former = ready["formerQueue"]
    assert isinstance(former, dict)
    assert former["queueUrl"] == shared
    assert pooled.ask(OTHER).body["queueUrl"] == shared

    received: list[str] = []

    def both() -> list[str] | None:
        got = sqs.receive_message(QueueUrl=shared, MaxNumberOfMessages=10, WaitTimeSeconds=1).get("Messages", [])
        received.extend(message["Body"] for message in got)
        return received if len(received) == 2 else None

    assert sorted(eventually(both, what="the messages of both tenants")) == [f"for {ONE}", f"for {OTHER}"]
    entries = pooled.table.history(ONE)
    assert (entries[0].version, entries[0].status) == ("pooled", "Success")
    assert entries[-1].status == "Success"


def test_a_pooled_tenant_is_deleted_without_its_queue(pooled: Deployed) -> None:
    tenant = TenantId("pooled-and-deleted")
    shared = pooled.ask(tenant).body["queueUrl"]
    refused = call(pooled, "DELETE", f"/tenants/{tenant}", query={"drainSeconds": "60"})
    assert refused.status == 409
    deleted = call(pooled, "DELETE", f"/tenants/{tenant}")
    assert deleted.status == 202
    pooled.ended(str(deleted.body["execution"]))
    assert pooled.settled(tenant).status == 410
    assert pooled.client("sqs").get_queue_attributes(QueueUrl=shared, AttributeNames=["QueueArn"])
