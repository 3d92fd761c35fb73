"""The customer's key encrypts everything that stores data, and each role may use the key only for its own work."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App
from aws_cdk.assertions import Template

from orchestrator.common.own_versions import berth_version, template_version
from stacks.common.function_code import handler_of
from stacks.control_plane import ControlPlaneStack
from stacks.events.stack import EventsStack
from stacks.project import ROOT
from stacks.setting_values import SettingInvalid
from stacks.settings import Dependencies, Settings
from tests.stacks.policies import documents, listed, spelled, statements
from tests.stacks.released import KEY

Json = dict[str, Any]

VIA = "kms:ViaService"
READS_TABLE = {"kms:Decrypt", "kms:DescribeKey"}
WRITES_TABLE = READS_TABLE | {"kms:Encrypt", "kms:GenerateDataKey", "kms:ReEncryptFrom", "kms:ReEncryptTo"}
READS_OBJECTS = {"kms:Decrypt"}
WRITES_OBJECTS = READS_OBJECTS | {"kms:GenerateDataKey"}


@pytest.fixture(params=["with_key", "events_with_key"])
def encrypted(request: pytest.FixtureRequest) -> Json:
    """Each of the two stacks with the customer's key."""
    template: Json = request.getfixturevalue(request.param)
    return template


def resources(template: Json, kind: str) -> list[Json]:
    found = [each["Properties"] for each in template["Resources"].values() if each["Type"] == kind]
    assert found
    return found


# Encrypted resources


def test_the_table_is_encrypted_with_the_key(encrypted: Json) -> None:
    (table,) = resources(encrypted, "AWS::DynamoDB::Table")
    assert table["SSESpecification"] == {"SSEEnabled": True, "SSEType": "KMS", "KMSMasterKeyId": KEY}


def test_the_bucket_is_encrypted_with_the_key_and_uses_a_bucket_key(encrypted: Json) -> None:
    (bucket,) = resources(encrypted, "AWS::S3::Bucket")
    (rule,) = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert rule == {
        "BucketKeyEnabled": True,
        "ServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": KEY},
    }


def test_every_queue_is_encrypted_with_the_key(encrypted: Json) -> None:
    for queue in resources(encrypted, "AWS::SQS::Queue"):
        assert (queue["KmsMasterKeyId"], queue["SqsManagedSseEnabled"]) == (KEY, False)


def test_every_log_group_is_encrypted_with_the_key(encrypted: Json) -> None:
    for group in resources(encrypted, "AWS::Logs::LogGroup"):
        assert group["KmsKeyId"] == KEY


def test_there_are_no_other_resources_that_store_data(encrypted: Json) -> None:
    stores_data = {"AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::SQS::Queue", "AWS::Logs::LogGroup"}
    others = {"AWS::SNS::Topic", "AWS::Kinesis::Stream", "AWS::SecretsManager::Secret", "AWS::SSM::Parameter"}
    kinds = {each["Type"] for each in encrypted["Resources"].values()}
    assert stores_data <= kinds
    assert not others & kinds


def test_without_a_key_the_template_does_not_mention_kms(with_everything: Json, with_key: Json) -> None:
    # The notes of releases may mention keys.
    checked = [each for each in with_everything["Resources"].values() if each["Type"] != "Custom::Release"]
    assert "kms" not in json.dumps(checked).lower()
    assert set(with_everything["Resources"]) <= set(with_key["Resources"]), "a key replaces no resource"
    added = set(with_key["Resources"]) - set(with_everything["Resources"])
    assert {with_key["Resources"][each]["Type"] for each in added} == {"AWS::IAM::Policy"}


# Permissions on the key


def uses_of(template: Json) -> dict[str, dict[str, set[str]]]:
    """The actions on the key that each role may use, by the service through which it uses them."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for role, statement in statements(template):
        actions = {action for action in listed(statement["Action"]) if action.startswith("kms:")}
        if actions:
            (condition,) = statement["Condition"].values()
            found[role][spelled(condition["kms:ViaService"]).partition(".")[0]] |= actions
    return found


def test_roles_may_use_only_this_key_and_only_through_a_service(encrypted: Json) -> None:
    uses = [
        statement
        for _, statement in documents(encrypted)
        if any(action.startswith("kms:") for action in listed(statement["Action"]))
        # Secrets are encrypted without another service: tests/stacks/test_event_plane.py.
        if "kms:EncryptionContext:tenant" not in json.dumps(statement)
    ]
    assert uses
    for statement in uses:
        assert statement["Effect"] == "Allow"
        assert listed(statement["Resource"]) == [KEY]
        assert not [action for action in listed(statement["Action"]) if "*" in action]
        (operator,) = statement["Condition"]
        assert operator == "StringEquals"
        (service,) = statement["Condition"][operator].values()
        assert spelled(service) in {f"{each}.<AWS::Region>.<AWS::URLSuffix>" for each in ("dynamodb", "s3", "sqs")}


def policies_for_the_key(template: Json) -> dict[str, Json]:
    """The policies that let a role use the key, by their logical ids."""
    return {
        name: resource
        for name, resource in template["Resources"].items()
        if resource["Type"] == "AWS::IAM::Policy" and "kms:ViaService" in json.dumps(resource["Properties"])
    }


def test_resources_are_encrypted_only_after_all_roles_may_use_the_key(encrypted: Json) -> None:
    """A deployment may add the key to a control plane that is in use."""
    policies = policies_for_the_key(encrypted)
    assert policies
    for resource in encrypted["Resources"].values():
        if resource["Type"] in {"AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::SQS::Queue"}:
            assert set(policies) <= set(resource["DependsOn"])
    for policy in policies.values():
        assert {action.partition(":")[0] for each in _statements(policy) for action in listed(each["Action"])} == {
            "kms"
        }


def test_dependencies_have_no_cycle(encrypted: Json) -> None:
    resources = encrypted["Resources"]
    dependencies = {name: set(_mentioned(resource)) & set(resources) - {name} for name, resource in resources.items()}
    assert set(TopologicalSorter(dependencies).static_order()) == set(resources)


def _mentioned(value: Any) -> Iterator[str]:
    """All texts in a resource and the references in them, which include the logical ids that it depends on."""
    match value:
        case str():
            yield value
            yield from re.findall(r"\$\{([A-Za-z0-9]+)", value)
        case dict():
            for each in value.values():
                yield from _mentioned(each)
        case list():
            for each in value:
                yield from _mentioned(each)


def test_another_key_has_other_policies_so_that_the_former_key_works_until_the_end_of_the_deployment(
    with_key: Json, tmp_path: Path
) -> None:
    settings = Settings(kms_key_arn=KEY.replace("1234abcd", "abcd1234"), dependencies=Dependencies.HOST)
    changed = synthesised(settings, tmp_path)
    assert policies_for_the_key(changed)
    assert not set(policies_for_the_key(changed)) & set(policies_for_the_key(with_key))


def _statements(policy: Json) -> list[Json]:
    statements: list[Json] = policy["Properties"]["PolicyDocument"]["Statement"]
    return statements


def actions_of(template: Json, role: str, service: str) -> set[str]:
    return {
        action
        for holder, statement in statements(template)
        if holder == role
        for action in listed(statement["Action"])
        if action.startswith(f"{service}:")
    }


def test_permissions_on_the_key_for_the_table_match_those_on_the_table(with_key: Json) -> None:
    roles = {role for role, _ in statements(with_key)}
    reading = {f"dynamodb:{operation}" for operation in ("GetItem", "Query", "ConditionCheckItem")}
    for role in roles:
        on_table = actions_of(with_key, role, "dynamodb")
        expected = set() if not on_table else READS_TABLE if on_table <= reading else WRITES_TABLE
        assert uses_of(with_key)[role]["dynamodb"] == expected, role


def test_permissions_on_the_key_for_the_bucket_match_those_on_the_bucket(with_key: Json) -> None:
    for role in {role for role, _ in statements(with_key)}:
        on_objects = actions_of(with_key, role, "s3")
        expected = set() if not on_objects else WRITES_OBJECTS if "s3:PutObject" in on_objects else READS_OBJECTS
        assert uses_of(with_key)[role]["s3"] == expected, role


def function_role(template: Json, name: str) -> str:
    (role,) = (
        each["Properties"]["Role"]["Fn::GetAtt"][0]
        for each in template["Resources"].values()
        if each["Type"] == "AWS::Lambda::Function" and each["Properties"]["Handler"] == handler_of(name)
    )
    return str(role)


def test_only_roles_that_send_or_receive_may_use_the_key_for_queues(with_key: Json) -> None:
    on_queues = {role: uses["sqs"] for role, uses in uses_of(with_key).items() if uses.get("sqs")}
    (access,) = (
        name
        for name, resource in with_key["Resources"].items()
        if name.startswith("QueueAccessRole") and resource["Type"] == "AWS::IAM::Role"
    )
    assert on_queues == {
        function_role(with_key, "close_execution"): {"kms:Decrypt"},
        # Lambda sends failed events to the dead-letter queue with the permissions of the function.
        function_role(with_key, "reconcile"): {"kms:GenerateDataKey", "kms:Decrypt"},
        # The role behind temporary credentials.
        access: {"kms:GenerateDataKey", "kms:Decrypt"},
    }


def test_the_stack_role_may_not_use_the_key(with_key: Json) -> None:
    """The role creates queues that are encrypted with the key, but it neither sends nor receives messages."""
    boundaries = [each for each in with_key["Resources"].values() if each["Type"] == "AWS::IAM::ManagedPolicy"]
    assert "kms" not in json.dumps(boundaries)
    stack_roles = {role for role, statement in statements(with_key) if "sqs:CreateQueue" in listed(statement["Action"])}
    assert stack_roles
    assert not stack_roles & {role for role, uses in uses_of(with_key).items() if any(uses.values())}


# Former keys

FORMER = [KEY.replace("1234abcd", f"1234000{number}") for number in (1, 2)]


@pytest.fixture(scope="module", params=[KEY, None], ids=["another key", "no key"])
def both_after_keys(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Json, Json]:
    """The control plane and the event plane after a change of the key, or without a key any more."""
    settings = Settings(
        kms_key_arn=request.param,
        former_kms_key_arns=(*FORMER, KEY) if request.param else tuple(FORMER),
        dependencies=Dependencies.HOST,
        credentials_seconds=900,
    )
    app = App(outdir=str(tmp_path_factory.mktemp("assembly")), analytics_reporting=False)
    control_plane = ControlPlaneStack(
        app, version=berth_version(), template_version=template_version(), settings=settings
    )
    event_plane = EventsStack(app, control_plane=control_plane, version=berth_version(), settings=settings)
    return Template.from_stack(control_plane).to_json(), Template.from_stack(event_plane).to_json()


@pytest.fixture(scope="module")
def after_keys(both_after_keys: tuple[Json, Json]) -> Json:
    return both_after_keys[0]


@pytest.fixture(scope="module")
def events_after_keys(both_after_keys: tuple[Json, Json]) -> Json:
    return both_after_keys[1]


def synthesised(settings: Settings, directory: Path) -> Json:
    app = App(outdir=str(directory), analytics_reporting=False)
    return Template.from_stack(
        ControlPlaneStack(app, version=berth_version(), template_version=template_version(), settings=settings)
    ).to_json()


def test_former_keys_may_be_used_only_for_queues_and_to_read_published_templates(after_keys: Json) -> None:
    """Operators' own templates stay encrypted with the key that they were published with."""
    for key in FORMER:
        uses = {
            (role, tuple(sorted(listed(statement["Action"]))), spelled(statement["Condition"]["StringEquals"][VIA]))
            for role, statement in statements(after_keys)
            if key in listed(statement["Resource"])
        }
        (access,) = (role for role, _, _ in uses if role.startswith("QueueAccessRole"))
        via = "sqs.<AWS::Region>.<AWS::URLSuffix>"
        assert uses == {
            (access, ("kms:Decrypt", "kms:GenerateDataKey"), via),
            (function_role(after_keys, "close_execution"), ("kms:Decrypt",), via),
            *(
                (function_role(after_keys, name), ("kms:Decrypt",), "s3.<AWS::Region>.<AWS::URLSuffix>")
                for name in ("start_stack", "review_tenant", "operators")
            ),
        }


def test_functions_of_events_may_read_what_was_stored_with_a_former_key(events_after_keys: Json) -> None:
    """Messages that were sent, and contents of events that were stored, before the key was changed."""
    for key in FORMER:
        uses: dict[str, set[tuple[str, str]]] = defaultdict(set)
        for role, statement in statements(events_after_keys):
            # Secrets are decrypted without another service: tests/stacks/test_event_plane.py.
            if key in listed(statement["Resource"]) and "StringEquals" in statement["Condition"]:
                via = spelled(statement["Condition"]["StringEquals"][VIA]).partition(".")[0]
                uses[role] |= {(via, action) for action in listed(statement["Action"])}
        received, read = ("sqs", "kms:Decrypt"), ("s3", "kms:Decrypt")
        expected = {
            "deliver_events": {received, read, ("sqs", "kms:GenerateDataKey")},
            "redispatch_events": {received, read},
            "recover_deliveries": {received},
            **{each: {read} for each in ("dispatch_events", "sweep_deliveries", "tenant_events", "event_operators")},
        }
        assert uses == {function_role(events_after_keys, name): each for name, each in expected.items()}


def test_only_get_queue_knows_the_former_keys(after_keys: Json) -> None:
    found = {
        each["Properties"]["Handler"]: each["Properties"]["Environment"]["Variables"]["BERTH_FORMER_KMS_KEYS"]
        for each in after_keys["Resources"].values()
        if "BERTH_FORMER_KMS_KEYS" in each.get("Properties", {}).get("Environment", {}).get("Variables", {})
    }
    assert found == {"lambdas.api.get_queue.handler": ",".join(FORMER)}


def former_keys_in(tmp_path: Path, value: object, **environment: str) -> tuple[str, ...]:
    context = {"berth:formerKmsKeyArns": value, "berth:dependencies": "host"}
    return Settings.from_context(App(context=context).node, tmp_path, environment=environment).former_kms_key_arns


def test_former_keys_are_a_list_or_a_text_separated_by_commas(tmp_path: Path) -> None:
    assert former_keys_in(tmp_path, FORMER) == former_keys_in(tmp_path, ", ".join(FORMER)) == tuple(FORMER)
    assert former_keys_in(tmp_path, "") == former_keys_in(tmp_path, None) == ()


@pytest.mark.parametrize("value", ["alias/berth", f"{KEY},*", f"{KEY}*", 7, [7], ",".join([KEY] * 6)])
def test_invalid_former_keys_stop_the_deployment(tmp_path: Path, value: object) -> None:
    with pytest.raises(SettingInvalid, match="berth:formerKmsKeyArns"):
        former_keys_in(tmp_path, value)


def test_a_former_key_of_another_account_stops_the_deployment(tmp_path: Path) -> None:
    with pytest.raises(SettingInvalid, match="must be a key of the target account and region"):
        former_keys_in(tmp_path, KEY, CDK_DEFAULT_ACCOUNT="1" * 12)


# Functions that know the key


def test_functions_that_create_or_compare_tenants_stacks_know_the_key(with_key: Json) -> None:
    variables_of = {
        each["Properties"]["Handler"].split(".")[-2]: each["Properties"]["Environment"]["Variables"]
        for each in with_key["Resources"].values()
        if each["Type"] == "AWS::Lambda::Function"
    }
    with_the_key = {name for name, variables in variables_of.items() if variables.get("BERTH_KMS_KEY") == KEY}
    with_parameters = {name for name, variables in variables_of.items() if "BERTH_METADATA_SERVICE_TOKEN" in variables}
    assert {"start_stack", "review_tenant", "begin", "finish", "reconcile"} <= with_parameters
    assert with_the_key == with_parameters | {"get_queue"}


def test_a_change_of_the_key_stores_every_release_again(with_key: Json, with_everything: Json) -> None:
    published = [each["Properties"] for each in with_key["Resources"].values() if each["Type"] == "Custom::Release"]
    assert published
    assert {each["KmsKeyArn"] for each in published} == {KEY}
    before = [each for each in with_everything["Resources"].values() if each["Type"] == "Custom::Release"]
    assert not [each for each in before if "KmsKeyArn" in each["Properties"]]


# The setting


def key_in(tmp_path: Path, value: object, **environment: str) -> str | None:
    context = {"berth:kmsKeyArn": value, "berth:dependencies": "host"}
    return Settings.from_context(App(context=context).node, tmp_path, environment=environment).kms_key_arn


@pytest.mark.parametrize("key", [KEY, KEY.replace("1234abcd-12ab-34cd-56ef-1234567890ab", f"mrk-{'0f' * 16}")])
def test_the_setting_is_the_arn_of_a_key(tmp_path: Path, key: str) -> None:
    assert key_in(tmp_path, key) == key
    assert key_in(tmp_path, key, CDK_DEFAULT_ACCOUNT="123456789012", CDK_DEFAULT_REGION="eu-west-1") == key


@pytest.mark.parametrize(
    "key",
    [
        *("", "1234abcd-12ab-34cd-56ef-1234567890ab", "alias/berth", KEY.replace("key/", "alias/"), f"{KEY}\n"),
        *(KEY.replace(":kms:", ":sns:"), KEY.replace("123456789012", "*"), f"{KEY}*", KEY[:-1], 7),
    ],
)
def test_anything_else_stops_the_deployment(tmp_path: Path, key: object) -> None:
    with pytest.raises(SettingInvalid, match=r"berth:kmsKeyArn is .* must be the ARN of a KMS key"):
        key_in(tmp_path, key)


@pytest.mark.parametrize("elsewhere", [{"CDK_DEFAULT_ACCOUNT": "1" * 12}, {"CDK_DEFAULT_REGION": "eu-central-1"}])
def test_a_key_of_another_account_or_region_stops_the_deployment(tmp_path: Path, elsewhere: dict[str, str]) -> None:
    with pytest.raises(SettingInvalid, match="must be a key of the target account and region"):
        key_in(tmp_path, KEY, **elsewhere)


# The key policy


@pytest.fixture(scope="session")
def key_policy() -> dict[str, Json]:
    """The statements of the key policy in docs/encryption.md, by their Sid."""
    page = (ROOT / "docs" / "encryption.md").read_text(encoding="utf-8")
    policy = json.loads(page.partition("```json\n")[2].partition("```")[0])
    return {statement["Sid"]: statement for statement in policy["Statement"]}


def test_the_documented_key_policy_allows_every_service_that_uses_the_key_directly(
    key_policy: dict[str, Json], with_key: Json
) -> None:
    """EventBridge sends to queues, and CloudWatch stores logs. All other services use the permissions of a role."""
    senders = {
        statement["Principal"]["Service"]
        for _, statement in documents(with_key)
        if "sqs:SendMessage" in listed(statement["Action"]) and "Service" in statement.get("Principal", {})
    }
    assert senders == {"events.amazonaws.com"}
    services = {
        statement["Principal"]["Service"] for statement in key_policy.values() if "Service" in statement["Principal"]
    }
    assert services == {*senders, "logs.REGION.amazonaws.com"}
    assert set(key_policy["EventBridge"]["Action"]) == {"kms:GenerateDataKey", "kms:Decrypt"}
    assert key_policy["CloudWatchLogs"]["Condition"] == {
        "ArnLike": {"kms:EncryptionContext:aws:logs:arn": "arn:aws:logs:REGION:ACCOUNT:log-group:*"}
    }
    assert key_policy["Roles"]["Principal"] == {"AWS": "arn:aws:iam::ACCOUNT:root"}
