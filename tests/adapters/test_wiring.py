"""Which adapter serves which use case, and with which settings."""

from __future__ import annotations

import json

import pytest
from botocore.stub import ANY, Stubber

from orchestrator.adapters.ports import AwsPorts
from orchestrator.adapters.settings import Settings
from orchestrator.common.errors import MissingSetting, Throttled
from orchestrator.composition import UseCases
from orchestrator.tenants.credentials import Access, session_policy
from tests.adapters.conftest import TABLE, client
from tests.fakes import A_KEY, ACME, NAMES, NOON, QUEUE, VERSION, a_release
from tests.present import present

SETTINGS = {
    "BERTH_NAME": "Berth",
    "BERTH_TABLE": TABLE,
    "BERTH_VERSION": "0.10.0",
    "BERTH_TEMPLATE_VERSION": VERSION,
    "BERTH_LINGER_SECONDS": "60",
    "BERTH_RELEASE_BUCKET": "releases",
    "BERTH_STACK_ROLE": "arn:aws:iam::000000000000:role/tenant-stacks",
    "BERTH_METADATA_SERVICE_TOKEN": "arn:aws:lambda:eu-west-1:0:function:metadata",
}

ASKED_BESIDES = ("RoleArn", "RoleSessionName", "SourceIdentity", "Tags", "DurationSeconds")
"""The parameters of the STS request besides the session's policy."""


def ports_without(*names: str) -> AwsPorts:
    return AwsPorts(Settings({name: value for name, value in SETTINGS.items() if name not in names}))


@pytest.mark.usefixtures("aws")
def test_functions_of_the_rollout_machine_do_not_need_its_arn() -> None:
    of_the_machine = UseCases(ports_without("BERTH_ROLLOUT_MACHINE"))
    for name in ("advancing", "gate", "reviewing"):
        assert getattr(of_the_machine, name)


@pytest.mark.usefixtures("aws")
def test_functions_that_start_rollouts_know_the_version() -> None:
    assert UseCases(ports_without()).release_chooser.deployed == VERSION
    with pytest.raises(MissingSetting, match="BERTH_TEMPLATE_VERSION"):
        _ = UseCases(ports_without("BERTH_TEMPLATE_VERSION")).rollouts.choose()


def test_the_parameters_of_tenants_templates() -> None:
    assert ports_without().parameters(ACME, a_release()) == {
        "TenantId": "acme",
        "MetadataServiceToken": "arn:aws:lambda:eu-west-1:0:function:metadata",
    }
    keyed = AwsPorts(Settings(SETTINGS | {"BERTH_KMS_KEY": A_KEY}))
    assert keyed.parameters(ACME, a_release(parameters=["KmsKeyArn"]))["KmsKeyArn"] == A_KEY
    with pytest.raises(MissingSetting, match="BERTH_METADATA_SERVICE_TOKEN"):
        _ = ports_without("BERTH_METADATA_SERVICE_TOKEN").parameters


@pytest.mark.usefixtures("aws")
@pytest.mark.parametrize(
    ("response", "keys"),
    [
        ({"BERTH_KMS_KEY": A_KEY, "BERTH_FORMER_KMS_KEYS": "former,first"}, [A_KEY, "former", "first"]),
        ({"BERTH_FORMER_KMS_KEYS": "former"}, ["former"]),
        ({"BERTH_KMS_KEY": A_KEY}, [A_KEY]),
    ],
    ids=["changed", "removed", "the first one"],
)
def test_sessions_may_use_the_key_of_now_and_former_keys(
    response: dict[str, str], keys: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.adapters.ports.client", client)
    role = {"BERTH_QUEUE_ACCESS_ROLE": "arn:aws:iam::000000000000:role/access", "BERTH_CREDENTIALS_SECONDS": "900"}
    issuer = present(AwsPorts(Settings(SETTINGS | role | response)).credentials)
    policy = session_policy(QUEUE, Access.RECEIVE, kms_keys=keys)
    with Stubber(client("sts")) as sts:
        given = dict.fromkeys(("AccessKeyId", "SecretAccessKey", "SessionToken"), "x" * 16)
        sent = {"Policy": json.dumps(policy)} | dict.fromkeys(ASKED_BESIDES, ANY)
        sts.add_response("assume_role", {"Credentials": {**given, "Expiration": NOON}}, sent)
        issuer.issue(ACME, QUEUE, Access.RECEIVE, source_identity="ada")


@pytest.mark.usefixtures("dynamodb")
@pytest.mark.parametrize("stacks", ["stacks", "writable_stacks"])
def test_throttling_by_cloudformation_slows_rollouts_down(stacks: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.adapters.ports.client", client)
    ports = ports_without()
    assert ports.rollout_table.throttles() == 0
    with Stubber(client("cloudformation")) as cloudformation:
        cloudformation.add_client_error("describe_stacks", "Throttling", "Rate exceeded")
        with pytest.raises(Throttled):
            getattr(ports, stacks).find(NAMES.stack_of(ACME))
    assert ports.rollout_table.throttles() == 1


@pytest.mark.usefixtures("dynamodb")
def test_throttling_of_an_operator_who_looks_at_a_stack_does_not_slow_rollouts_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("orchestrator.adapters.ports.client", client)
    ports = ports_without()
    with Stubber(client("cloudformation")) as cloudformation:
        cloudformation.add_client_error("describe_stacks", "Throttling", "Rate exceeded")
        with pytest.raises(Throttled):
            ports.observed_stacks.find(NAMES.stack_of(ACME))
    assert ports.rollout_table.throttles() == 0
