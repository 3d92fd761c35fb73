"""The clean-up after a verification on AWS deletes one control plane, and nothing else."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from orchestrator.tenants.names import NAME_MAX_LENGTH, Names
from stacks import clean_up
from stacks.clean_up import PREFIX, CleanUp, Refused

Json = dict[str, Any]

NAMES = Names("berth-verify-12")
NEIGHBOUR = Names("berth-verify-123")
TENANT = "berth-verify-20261116-120000-0a1b"
TENANT_STACK = f"{NAMES.tenant_prefix}{TENANT}-0a1b2c3d"


@cache
def client_of(service: str) -> Any:
    return boto3.Session("test", "test", region_name="eu-west-1").client(service)


class Stacks:
    """CloudFormation of moto, which has neither protected stacks nor stacks that cannot be deleted."""

    def __init__(self) -> None:
        self.protected: set[str] = set()
        self.in_use: set[str] = set()
        """The names of stacks that cannot be deleted."""

    def __getattr__(self, operation: str) -> Any:
        return getattr(client_of("cloudformation"), operation)

    def update_termination_protection(self, **asked: Any) -> None:
        assert asked["EnableTerminationProtection"] is False
        self.protected.discard(asked["StackName"].split("/")[1])

    def delete_stack(self, **asked: Any) -> None:
        name = asked["StackName"].split("/")[1]
        if name in self.protected or name in self.in_use:
            message = "The stack is protected." if name in self.protected else "An export is in use."
            raise ClientError({"Error": {"Code": "ValidationError", "Message": message}}, "DeleteStack")
        client_of("cloudformation").delete_stack(**asked)


class Account:
    """An account with control planes, and the clean-up of one of them."""

    def __init__(self, record: Path) -> None:
        self.record = record
        self.shown: list[str] = []
        self.ran: list[list[str]] = []
        self.list_fails = False
        self.stacks = Stacks()

    def client(self, service: str) -> Any:
        """A client, as from a session."""
        return self.stacks if service == "cloudformation" else client_of(service)

    def has(self, names: Names, *, tag: str | None = None) -> None:
        """Deploys both stacks of a control plane and one of a tenant, with everything that stays after a delete."""
        kept = {"DeletionPolicy": "Retain"}
        for stack in (names.control_plane, names.events):
            resources: Json = {
                "Table": {"Type": "AWS::DynamoDB::Table", **kept, "Properties": a_table(f"{stack}-Table-1")},
                "Bucket": {
                    "Type": "AWS::S3::Bucket",
                    **kept,
                    "Properties": {
                        "BucketName": f"{stack.lower()}-bucket-1",
                        "VersioningConfiguration": {"Status": "Enabled"},
                    },
                },
                "Key": {"Type": "AWS::KMS::Key", **kept, "Properties": {"KeyPolicy": {}}},
                "Queue": {"Type": "AWS::SQS::Queue"},
            }
            self.deploy(stack, resources)
            # moto does not take a key's tags from a template.
            key = self.client("cloudformation").describe_stack_resource(StackName=stack, LogicalResourceId="Key")
            tags = [{"TagKey": "berth-verify", "TagValue": tag or names.control_plane}]
            self.client("kms").tag_resource(KeyId=key["StackResourceDetail"]["PhysicalResourceId"], Tags=tags)
            self.client("s3").put_object(Bucket=f"{stack.lower()}-bucket-1", Key="release", Body=b"1")
            self.client("s3").put_object(Bucket=f"{stack.lower()}-bucket-1", Key="release", Body=b"2")
            self.client("s3").delete_object(Bucket=f"{stack.lower()}-bucket-1", Key="release")
        self.deploy(f"{names.tenant_prefix}{TENANT}-0a1b2c3d", {"Queue": {"Type": "AWS::SQS::Queue"}})

    def deploy(self, stack: str, resources: Json) -> None:
        self.client("cloudformation").create_stack(StackName=stack, TemplateBody=json.dumps({"Resources": resources}))
        self.stacks.protected.add(stack)

    def cleaning(self, names: Names = NAMES) -> CleanUp:
        return CleanUp(names, self, run_berth=self.run_berth, show=self.shown.append)

    def clean(self, names: Names = NAMES) -> list[str]:
        return self.cleaning(names).carry_out(self.record)

    def run_berth(self, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
        self.ran.append(list(words))
        if self.list_fails:
            return subprocess.CompletedProcess(words, 6, "", "Traceback\nThe control plane was not found.\n")
        return subprocess.CompletedProcess(words, 0, json.dumps({"tenants": [{"tenantId": TENANT}]}))

    def everything(self) -> set[str]:
        """The names of all stacks, tables and buckets, and the ids of the keys that are in use."""
        stacks = self.client("cloudformation").describe_stacks()["Stacks"]
        keys = self.client("kms")
        in_use = [
            key["KeyId"]
            for key in keys.list_keys()["Keys"]
            if keys.describe_key(KeyId=key["KeyId"])["KeyMetadata"]["KeyState"] != "PendingDeletion"
        ]
        return {
            *(f"stack {stack['StackName']}" for stack in stacks),
            *(f"table {name}" for name in self.client("dynamodb").list_tables()["TableNames"]),
            *(f"bucket {bucket['Name']}" for bucket in self.client("s3").list_buckets()["Buckets"]),
            *(f"key {key_id}" for key_id in in_use),
        }


def a_table(name: str) -> Json:
    return {
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        "DeletionProtectionEnabled": True,
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    }


@pytest.fixture
def account(tmp_path: Path) -> Iterator[Account]:
    with mock_aws():
        yield Account(tmp_path / "record.json")


@pytest.mark.parametrize("name", ["Berth", "Berth-dev", "berth", "berth-verif", "Berth-verify-12"])
def test_only_control_planes_for_verification_are_deleted(account: Account, name: str) -> None:
    account.has(Names(name))
    before = account.everything()
    with pytest.raises(Refused, match=f"{name} is not one, so nothing was done"):
        account.clean(Names(name))
    assert (account.everything(), account.ran, account.record.exists()) == (before, [], False)


def test_everything_of_the_control_plane_is_deleted_and_nothing_else(account: Account) -> None:
    account.has(NEIGHBOUR)
    account.has(Names("Berth"))
    others = account.everything()
    account.has(NAMES)
    assert account.clean() == []
    assert account.everything() == others
    assert account.ran == [
        ["tenants", "--all", "--json"],
        ["delete", TENANT, "--force", "--yes", "--wait", "--reason", "clean-up"],
    ]


def test_a_second_clean_up_changes_nothing(account: Account) -> None:
    account.has(NAMES)
    account.clean()
    first, recorded = account.everything(), account.record.read_text()
    account.ran.clear()
    assert account.clean() == []
    assert (account.everything(), account.record.read_text(), account.ran) == (first, recorded, [])


def test_stacks_that_an_earlier_clean_up_deleted_need_only_the_record(account: Account) -> None:
    account.has(NAMES)
    stacks = account.client("cloudformation")
    account.cleaning()._write_record(account.record)
    account.stacks.protected.clear()
    for stack in list(stacks.describe_stacks()["Stacks"]):
        stacks.delete_stack(StackName=stack["StackId"])
    assert account.everything()
    assert account.clean() == []
    assert account.everything() == set()


def test_tenants_stacks_are_deleted_if_the_control_plane_cannot_list_its_tenants(account: Account) -> None:
    account.has(NAMES)
    account.list_fails = True
    assert account.clean() == []
    assert account.everything() == set()
    assert "The tenants could not be listed: The control plane was not found." in account.shown


@pytest.mark.parametrize("stuck", [TENANT_STACK, NAMES.events, NAMES.control_plane])
def test_a_stack_that_cannot_be_deleted_is_named_and_keeps_what_it_needs(account: Account, stuck: str) -> None:
    account.has(NAMES)
    account.stacks.in_use = {stuck}
    (left,) = account.clean()
    assert left.startswith(f"Stack {stuck} could not be deleted")
    assert "An export is in use." in left
    there = account.everything()
    assert {f"stack {stuck}", f"stack {NAMES.control_plane}"} <= there
    assert (f"stack {NAMES.events}" in there) == (stuck != NAMES.control_plane)
    assert {f"table {NAMES.control_plane}-Table-1", f"table {NAMES.events}-Table-1"} <= there
    account.stacks.in_use.clear()
    assert account.clean() == []
    assert account.everything() == set()


def test_a_key_without_the_tag_of_the_deployment_is_left_and_named(account: Account) -> None:
    account.has(NAMES, tag="another")
    left = account.clean()
    assert len(left) == 2
    assert all("AWS::KMS::Key" in each and f"no tag berth-verify={NAMES}" in each for each in left)
    assert [each.split()[0] for each in account.everything()] == ["key", "key"]


def test_a_recorded_resource_with_another_name_is_left_and_named(account: Account) -> None:
    account.client("dynamodb").create_table(**a_table("berth-verify-123-Table-1"))
    document = {
        "name": NAMES.control_plane,
        "resources": [{"kind": "AWS::DynamoDB::Table", "name": "berth-verify-123-Table-1"}],
    }
    account.record.write_text(json.dumps(document))
    (left,) = account.clean()
    assert "berth-verify-123-Table-1 does not bear the name berth-verify-12" in left
    assert account.everything() == {"table berth-verify-123-Table-1"}


def test_the_record_of_another_control_plane_is_refused(account: Account) -> None:
    account.has(NAMES)
    before = account.everything()
    account.record.write_text(json.dumps({"name": NEIGHBOUR.control_plane, "resources": []}))
    with pytest.raises(Refused, match="is the record of berth-verify-123, not of berth-verify-12"):
        account.clean()
    assert account.everything() == before


@pytest.mark.parametrize(("left", "code", "said"), [([], 0, "Nothing of"), (["Stack x is there."], 1, "LEFT: Stack x")])
def test_the_exit_code_says_whether_something_is_left(
    left: list[str], code: int, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setattr(CleanUp, "carry_out", lambda _self, _record: left)
    assert clean_up.main(["--name", NAMES.control_plane, "--record", "record.json"]) == code
    assert said in capsys.readouterr().out


def test_another_name_ends_with_2(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    assert clean_up.main(["--name", "Berth", "--record", "record.json"]) == 2
    assert "Only control planes named berth-verify-" in capsys.readouterr().out


def test_the_id_of_a_run_fits_into_the_name() -> None:
    assert len(f"{PREFIX}19876543210") == NAME_MAX_LENGTH
    assert Names.parse(f"{PREFIX}19876543210").is_event_plane_of is None


@pytest.mark.parametrize("stack", ["with_everything", "event_plane"])
def test_every_resource_that_outlives_its_stack_is_known(
    account: Account, request: pytest.FixtureRequest, stack: str
) -> None:
    template: Json = request.getfixturevalue(stack)
    kept = {each["Type"] for each in template["Resources"].values() if each.get("DeletionPolicy") == "Retain"}
    known = account.cleaning()._deleters.keys()
    # The custom resource only stays recorded.
    assert kept - {"Custom::Release"} <= known
    assert kept & known
