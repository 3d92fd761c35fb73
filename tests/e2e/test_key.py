"""A control plane with the customer's key: what is encrypted with it, and how tenants get and lose it.

The emulator stores the settings of keys, but encrypts nothing. The tests depend on each other, in this order.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from orchestrator.common.tenant_ids import TenantId
from orchestrator.local.deployment import deploy
from orchestrator.local.emulator import Emulator, free_port
from tests.e2e.deployed import Deployed
from tests.e2e.operators import EARLIER, a_tenant, an_earlier_release, ended, run, upgrade

ACME = TenantId("acme")
OWN = "SqsManagedSseEnabled"


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    emulator = Emulator(port=free_port(), home=tmp_path_factory.mktemp("key"))
    emulator.start()
    try:
        yield emulator
    finally:
        emulator.stop()


@pytest.fixture(scope="module")
def key(emulator: Emulator) -> str:
    return str(Deployed(emulator, {}).client("kms").create_key()["KeyMetadata"]["Arn"])


@pytest.fixture(scope="module")
def berth(emulator: Emulator, key: str) -> Deployed:
    deployed = Deployed(emulator, deploy(emulator, lambda _step: None, kmsKeyArn=key))
    an_earlier_release(deployed)
    return deployed


def attributes(berth: Deployed, url: str) -> dict[str, str]:
    shown: dict[str, str] = berth.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    return shown


def queues_of(berth: Deployed, tenant: TenantId) -> list[dict[str, str]]:
    outputs = {each["OutputKey"]: each["OutputValue"] for each in berth.stack(tenant)["Outputs"]}
    return [attributes(berth, outputs[name]) for name in ("InboundQueueUrl", "DeadLetterQueueUrl")]


def test_the_control_planes_queues_and_logs_are_encrypted_with_the_key(berth: Deployed, key: str) -> None:
    """The emulator ignores the encryption of tables and buckets in templates."""
    assert attributes(berth, berth.outputs["EndedExecutionsQueueUrl"])["KmsMasterKeyId"] == key
    groups = berth.client("logs").describe_log_groups(logGroupNamePrefix="/aws/vendedlogs/states/Berth")["logGroups"]
    assert {group["kmsKeyId"] for group in groups} == {key}


def test_a_release_without_the_parameter_is_deployed_without_the_key(berth: Deployed) -> None:
    a_tenant(berth, ACME.value, EARLIER)
    for queue in queues_of(berth, ACME):
        assert "KmsMasterKeyId" not in queue


def test_a_tenant_gets_the_key_with_a_release_that_has_the_parameter(berth: Deployed, key: str) -> None:
    url = berth.ask(ACME).body["queueUrl"]
    berth.client("sqs").send_message(QueueUrl=url, MessageBody="from before")
    assert ended(berth, upgrade(berth, ACME, berth.release)) == "SUCCEEDED"
    assert [queue["KmsMasterKeyId"] for queue in queues_of(berth, ACME)] == [key, key]
    assert berth.ask(ACME).body["queueUrl"] == url, "the queue is the same"
    assert len(berth.client("sqs").receive_message(QueueUrl=url)["Messages"]) == 1
    a_tenant(berth, "globex", berth.release)
    assert [queue["KmsMasterKeyId"] for queue in queues_of(berth, TenantId("globex"))] == [key, key]
    assert upgrade(berth, ACME, berth.release).status == 200, "there is nothing to upgrade"


def test_a_session_for_the_queue_may_use_the_key(berth: Deployed, key: str) -> None:
    function = berth.client("lambda").get_function_configuration(FunctionName=berth.outputs["GetQueueFunctionName"])
    assert function["Environment"]["Variables"]["BERTH_KMS_KEY"] == key
    given = berth.api().request("POST", f"/tenants/{ACME}/queue/credentials/send", query={}, body=None)
    assert given.status == 200, given.body


def test_when_the_key_is_removed_the_release_is_stored_again_and_an_upgrade_removes_it_from_a_tenant(
    berth: Deployed,
) -> None:
    bucket = berth.outputs["ReleaseBucketName"]
    kept = f"tenant-stack/{berth.release}/"

    def versions() -> int:
        return len(berth.client("s3").list_object_versions(Bucket=bucket, Prefix=kept)["Versions"])

    before = versions()
    outputs = deploy(berth.emulator, lambda _step: None)
    assert outputs["TableName"] == berth.outputs["TableName"]
    assert versions() == before + 1
    plan = run(berth, "--local", "reconcile", "--dry-run", "--json")
    assert plan.returncode == 0, plan.stdout
    assert ended(berth, upgrade(berth, ACME, berth.release)) == "SUCCEEDED"
    for queue in queues_of(berth, ACME):
        assert not queue.get("KmsMasterKeyId")
        assert queue[OWN] == "true"
