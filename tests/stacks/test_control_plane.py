"""The control plane's template."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App
from aws_cdk.assertions import Match, Template

from orchestrator.tenants import STACK_NAME_PREFIX
from stacks import functions as functions_module
from stacks.control_plane import ControlPlaneStack
from stacks.project import ROOT, read_version
from stacks.releases import digest, release_file
from stacks.settings import Dependencies, DeploymentMode, Settings
from stacks.tenant_machines import CREATE_TENANT, CREATE_TENANT_FUNCTIONS, create_tenant_definition

Json = dict[str, Any]

TOPIC = "arn:aws:sns:eu-west-1:123456789012:on-call"
PLACEHOLDER = re.compile(r"\$\{(\w+)\}")


@pytest.fixture(scope="module")
def other_settings(tmp_path_factory: pytest.TempPathFactory) -> Template:
    """The control plane with every setting different from its default."""
    layer = tmp_path_factory.mktemp("layer")
    (layer / "python").mkdir()
    settings = Settings(
        await_stack_seconds=7,
        dependencies=Dependencies.LAYER,
        deployment_mode=DeploymentMode.STANDARD,
        alarm_topic_arn=TOPIC,
        log_retention_days=14,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(functions_module, "LAYER", layer)
        app = App(outdir=str(tmp_path_factory.mktemp("assembly")), analytics_reporting=False)
        return Template.from_stack(ControlPlaneStack(app, "Berth", version=read_version(), settings=settings))


def _properties(template: Json, resource_type: str) -> list[Json]:
    return [r.get("Properties", {}) for r in template["Resources"].values() if r["Type"] == resource_type]


# The table


def test_the_table_outlives_the_stack_and_its_mistakes(control_plane_template: Template) -> None:
    control_plane_template.has_resource(
        "AWS::DynamoDB::Table",
        {
            "DeletionPolicy": "Retain",
            "UpdateReplacePolicy": "Retain",
            "Properties": {
                "BillingMode": "PAY_PER_REQUEST",
                "DeletionProtectionEnabled": True,
                "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
                "SSESpecification": {"SSEEnabled": True},
                "TimeToLiveSpecification": Match.absent(),
                "TableName": Match.absent(),
            },
        },
    )


def test_the_table_has_its_keys_and_one_index(control_plane_template: Template) -> None:
    control_plane_template.has_resource_properties(
        "AWS::DynamoDB::Table",
        {
            "KeySchema": [
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "sk", "KeyType": "RANGE"},
            ],
            "GlobalSecondaryIndexes": [
                {
                    "IndexName": "Listing",
                    "KeySchema": [
                        {"AttributeName": "ListingKey", "KeyType": "HASH"},
                        {"AttributeName": "ListingSort", "KeyType": "RANGE"},
                    ],
                    "Projection": {"ProjectionType": "ALL"},
                }
            ],
        },
    )


# The functions


def test_every_function_is_made_alike(control_plane_template: Template, function_ids: dict[str, str]) -> None:
    control_plane_template.resource_properties_count_is(
        "AWS::Lambda::Function",
        {
            "Runtime": "python3.14",
            "Architectures": ["arm64"],
            "MemorySize": 256,
            "TracingConfig": {"Mode": "Active"},
            "LoggingConfig": {"LogFormat": "JSON", "LogGroup": {"Ref": Match.any_value()}},
            "Layers": Match.absent(),
            "Environment": {
                "Variables": {
                    "BERTH_TABLE": {"Ref": Match.any_value()},
                    "BERTH_VERSION": read_version(),
                    "POWERTOOLS_METRICS_NAMESPACE": "Berth",
                    "POWERTOOLS_LOG_LEVEL": "INFO",
                }
            },
        },
        len(function_ids),
    )


@pytest.mark.parametrize(
    ("name", "seconds"),
    [("get_queue", 29), ("start_stack", 30), ("tenant_metadata", 30), ("publish_release", 60), ("begin", 15)],
)
def test_a_function_has_the_time_it_needs(
    control_plane: Json, function_ids: dict[str, str], name: str, seconds: int
) -> None:
    assert control_plane["Resources"][function_ids[name]]["Properties"]["Timeout"] == seconds


def test_every_function_says_its_own_name_in_its_logs(control_plane: Json, function_ids: dict[str, str]) -> None:
    for name, logical_id in function_ids.items():
        variables = control_plane["Resources"][logical_id]["Properties"]["Environment"]["Variables"]
        assert variables["POWERTOOLS_SERVICE_NAME"] == name


@pytest.mark.parametrize(
    ("name", "variables"),
    [
        ("get_queue", {"BERTH_CREATE_MACHINE"}),
        ("start_stack", {"BERTH_STACK_ROLE", "BERTH_METADATA_SERVICE_TOKEN", "BERTH_DEPLOYMENT_MODE"}),
        ("publish_release", {"BERTH_RELEASE_BUCKET"}),
        ("begin", set()),
        ("finish", set()),
    ],
)
def test_a_function_is_told_only_what_it_needs(
    control_plane: Json, function_ids: dict[str, str], name: str, variables: set[str]
) -> None:
    told = control_plane["Resources"][function_ids[name]]["Properties"]["Environment"]["Variables"]
    assert {variable for variable in told if variable.startswith("BERTH_")} - {
        "BERTH_TABLE",
        "BERTH_VERSION",
    } == variables


def test_every_handler_is_there(function_ids: dict[str, str]) -> None:
    for name in function_ids:
        assert "def handler(" in (ROOT / "lambdas" / f"{name}.py").read_text(encoding="utf-8")


def test_only_the_service_token_of_tenant_stacks_has_a_name_of_its_own(
    control_plane: Json, function_ids: dict[str, str]
) -> None:
    named = {name: p["FunctionName"] for name, p in _functions(control_plane, function_ids) if "FunctionName" in p}
    assert named == {"tenant_metadata": "berth-tenant-metadata"}


def test_all_functions_share_one_asset_of_what_they_run(
    assembly: Path, control_plane: Json, function_ids: dict[str, str]
) -> None:
    (key,) = {properties["Code"]["S3Key"] for _, properties in _functions(control_plane, function_ids)}
    asset = assembly / f"asset.{key.removesuffix('.zip')}"
    assert {entry.name for entry in asset.iterdir()} == {"lambdas", "orchestrator"}
    assert (asset / "lambdas" / "get_queue.py").is_file()
    assert (asset / "orchestrator" / "adapters" / "wiring.py").is_file()
    for left_out in ("cli", "local"):
        assert not (asset / "orchestrator" / left_out).exists()
    assert not list(asset.rglob("__pycache__"))


def test_logs_are_kept_for_a_while(control_plane: Json, other_settings: Template) -> None:
    assert {group["RetentionInDays"] for group in _properties(control_plane, "AWS::Logs::LogGroup")} == {90}
    assert {group["RetentionInDays"] for group in _properties(other_settings.to_json(), "AWS::Logs::LogGroup")} == {14}


def test_dependencies_come_as_one_layer(other_settings: Template, function_ids: dict[str, str]) -> None:
    other_settings.resource_count_is("AWS::Lambda::LayerVersion", 1)
    (layer,) = other_settings.find_resources("AWS::Lambda::LayerVersion")
    other_settings.resource_properties_count_is(
        "AWS::Lambda::Function", {"Layers": [{"Ref": layer}]}, len(function_ids)
    )


def test_no_helper_functions_came_along(control_plane: Json, function_ids: dict[str, str]) -> None:
    assert len(_properties(control_plane, "AWS::Lambda::Function")) == len(function_ids) == 10


# The releases


def test_published_templates_are_kept_and_private(control_plane_template: Template) -> None:
    control_plane_template.has_resource(
        "AWS::S3::Bucket",
        {
            "DeletionPolicy": "Retain",
            "UpdateReplacePolicy": "Retain",
            "Properties": {
                "BucketName": Match.absent(),
                "VersioningConfiguration": {"Status": "Enabled"},
                "BucketEncryption": Match.any_value(),
                "PublicAccessBlockConfiguration": {
                    "BlockPublicAcls": True,
                    "BlockPublicPolicy": True,
                    "IgnorePublicAcls": True,
                    "RestrictPublicBuckets": True,
                },
            },
        },
    )
    control_plane_template.has_resource_properties(
        "AWS::S3::BucketPolicy",
        {
            "PolicyDocument": {
                "Statement": [
                    Match.object_like(
                        {
                            "Effect": "Deny",
                            "Action": "s3:*",
                            "Condition": {"Bool": {"aws:SecureTransport": "false"}},
                        }
                    )
                ]
            }
        },
    )


def test_get_queue_is_deployed_after_the_version_that_it_starts_creates_at_is_published(
    control_plane: Json, the_only: Callable[[str], str], function_ids: dict[str, str]
) -> None:
    get_queue = control_plane["Resources"][function_ids["get_queue"]]
    assert the_only("Custom::Release") in get_queue["DependsOn"]


def test_deploying_publishes_the_committed_release(
    assembly: Path, control_plane: Json, the_only: Callable[[str], str], function_ids: dict[str, str]
) -> None:
    release = control_plane["Resources"][the_only("Custom::Release")]
    committed = release_file(read_version())
    properties = release["Properties"]
    assert properties["ServiceToken"] == {"Fn::GetAtt": [function_ids["publish_release"], "Arn"]}
    assert properties["ServiceTimeout"] == "120"
    assert properties["Version"] == read_version()
    assert properties["Digest"] == digest(committed)
    assert (assembly / f"asset.{properties['SourceKey']}").read_bytes() == committed.read_bytes()


def test_what_is_published_stays_published(control_plane: Json, the_only: Callable[[str], str]) -> None:
    release = control_plane["Resources"][the_only("Custom::Release")]
    assert release["DeletionPolicy"] == release["UpdateReplacePolicy"] == "Retain"


# The machine


def test_every_placeholder_of_the_workflow_is_filled_and_none_is_left_over(
    control_plane: Json, the_only: Callable[[str], str]
) -> None:
    in_file = set(PLACEHOLDER.findall(CREATE_TENANT.read_text(encoding="utf-8")))
    assert in_file == {*CREATE_TENANT_FUNCTIONS, "AwaitStackSeconds"}
    machine = control_plane["Resources"][the_only("AWS::StepFunctions::StateMachine")]["Properties"]
    left_to_cloudformation = set(PLACEHOLDER.findall(machine["DefinitionString"]))
    assert left_to_cloudformation == set(machine["DefinitionSubstitutions"]) == set(CREATE_TENANT_FUNCTIONS)


def test_every_placeholder_stands_for_the_function_of_its_name(
    control_plane: Json, the_only: Callable[[str], str], function_ids: dict[str, str]
) -> None:
    machine = control_plane["Resources"][the_only("AWS::StepFunctions::StateMachine")]["Properties"]
    assert machine["DefinitionSubstitutions"] == {
        placeholder: {"Fn::GetAtt": [function_ids[name], "Arn"]}
        for placeholder, name in CREATE_TENANT_FUNCTIONS.items()
    }


def test_how_long_to_wait_for_the_event_is_a_number() -> None:
    definition = json.loads(create_tenant_definition(Settings(await_stack_seconds=7)))
    assert definition["States"]["AwaitStack"]["TimeoutSeconds"] == 7


def test_the_machine_is_logged_and_traced_without_its_task_tokens(control_plane_template: Template) -> None:
    control_plane_template.has_resource_properties(
        "AWS::StepFunctions::StateMachine",
        {
            "LoggingConfiguration": {"Level": "ALL", "IncludeExecutionData": False},
            "TracingConfiguration": {"Enabled": True},
            "StateMachineName": Match.absent(),
        },
    )
    control_plane_template.has_resource_properties(
        "AWS::Logs::LogGroup", {"LogGroupName": Match.string_like_regexp("^/aws/vendedlogs/states/")}
    )


def test_the_deployment_mode_reaches_the_function_that_creates_stacks(
    control_plane: Json, other_settings: Template, function_ids: dict[str, str]
) -> None:
    def mode(template: Json) -> str:
        properties = template["Resources"][function_ids["start_stack"]]["Properties"]
        found: str = properties["Environment"]["Variables"]["BERTH_DEPLOYMENT_MODE"]
        return found

    assert mode(control_plane) == "EXPRESS"
    assert mode(other_settings.to_json()) == "STANDARD"


# CloudFormation's events


def test_settled_tenant_stacks_wake_their_operation(
    control_plane: Json, the_only: Callable[[str], str], function_ids: dict[str, str]
) -> None:
    rule = control_plane["Resources"][the_only("AWS::Events::Rule")]["Properties"]
    pattern = rule["EventPattern"]
    assert pattern["source"] == ["aws.cloudformation"]
    assert pattern["detail-type"] == ["CloudFormation Stack Status Change"]
    assert pattern["detail"]["status-details"] == {"status": [{"anything-but": {"suffix": "_IN_PROGRESS"}}]}
    ((_, parts),) = (condition["prefix"]["Fn::Join"] for condition in pattern["detail"]["stack-id"])
    assert parts[-1] == f":stack/{STACK_NAME_PREFIX}"

    (target,) = rule["Targets"]
    assert target["Arn"] == {"Fn::GetAtt": [function_ids["stack_event"], "Arn"]}
    assert target["RetryPolicy"] == {"MaximumEventAgeInSeconds": 3600, "MaximumRetryAttempts": 8}
    assert target["DeadLetterConfig"] == {"Arn": {"Fn::GetAtt": [the_only("AWS::SQS::Queue"), "Arn"]}}


def test_undelivered_events_are_kept_encrypted_and_reached_by_tls_only(control_plane_template: Template) -> None:
    control_plane_template.has_resource_properties(
        "AWS::SQS::Queue", {"SqsManagedSseEnabled": True, "MessageRetentionPeriod": 14 * 24 * 3600}
    )
    control_plane_template.has_resource_properties(
        "AWS::SQS::QueuePolicy",
        {
            "PolicyDocument": {
                "Statement": Match.array_with(
                    [
                        Match.object_like(
                            {
                                "Effect": "Deny",
                                "Action": "sqs:*",
                                "Condition": {"Bool": {"aws:SecureTransport": "false"}},
                            }
                        )
                    ]
                )
            }
        },
    )


# The API


def test_the_only_route_needs_aws_credentials(control_plane: Json) -> None:
    (route,) = _properties(control_plane, "AWS::ApiGatewayV2::Route")
    assert route["RouteKey"] == "GET /tenants/{tenantId}/queue"
    assert route["AuthorizationType"] == "AWS_IAM"


def test_the_route_calls_get_queue(control_plane: Json, function_ids: dict[str, str]) -> None:
    (integration,) = _properties(control_plane, "AWS::ApiGatewayV2::Integration")
    assert integration["IntegrationUri"] == {"Fn::GetAtt": [function_ids["get_queue"], "Arn"]}
    assert integration["PayloadFormatVersion"] == "2.0"


def test_the_api_is_throttled_and_logged(control_plane: Json) -> None:
    (stage,) = _properties(control_plane, "AWS::ApiGatewayV2::Stage")
    assert stage["StageName"] == "$default"
    assert stage["DefaultRouteSettings"]["ThrottlingRateLimit"] > 0
    assert stage["DefaultRouteSettings"]["ThrottlingBurstLimit"] > 0
    assert {"requestId", "caller", "route", "status"} <= set(json.loads(stage["AccessLogSettings"]["Format"]))


# The alarms


def test_every_function_has_its_alarms(control_plane: Json, function_ids: dict[str, str]) -> None:
    watched = {
        (alarm["Dimensions"][0]["Value"]["Ref"], alarm["MetricName"])
        for alarm in _properties(control_plane, "AWS::CloudWatch::Alarm")
        if alarm["Namespace"] == "AWS/Lambda"
    }
    assert watched == {(function, metric) for function in function_ids.values() for metric in ("Errors", "Throttles")}


def test_the_machine_and_the_undelivered_events_have_their_alarms(
    control_plane: Json, the_only: Callable[[str], str]
) -> None:
    watched = {
        alarm["MetricName"]: alarm["Dimensions"][0]["Value"]
        for alarm in _properties(control_plane, "AWS::CloudWatch::Alarm")
        if alarm["Namespace"] != "AWS/Lambda"
    }
    machine = {"Ref": the_only("AWS::StepFunctions::StateMachine")}
    assert watched == {
        "ExecutionsFailed": machine,
        "ExecutionsTimedOut": machine,
        "ExecutionsAborted": machine,
        "ApproximateNumberOfMessagesVisible": {"Fn::GetAtt": [the_only("AWS::SQS::Queue"), "QueueName"]},
    }


def test_alarms_say_what_to_do_and_are_quiet_when_nothing_runs(control_plane: Json) -> None:
    for alarm in _properties(control_plane, "AWS::CloudWatch::Alarm"):
        assert alarm["AlarmDescription"].count(".") >= 2, "what it means, and what to do"
        assert alarm["TreatMissingData"] == "notBreaching"
        assert alarm["Threshold"] == 1
        assert "Metrics" not in alarm, "the emulator knows no metric math"


def test_alarms_notify_the_topic_if_there_is_one(control_plane: Json, other_settings: Template) -> None:
    assert all("AlarmActions" not in alarm for alarm in _properties(control_plane, "AWS::CloudWatch::Alarm"))
    alarms = _properties(other_settings.to_json(), "AWS::CloudWatch::Alarm")
    assert alarms
    assert all(alarm["AlarmActions"] == [TOPIC] for alarm in alarms)


# What the deployment says


def test_the_deployment_says_where_things_are(control_plane: Json) -> None:
    assert set(control_plane["Outputs"]) == {
        "ApiUrl",
        "TableName",
        "GetQueueFunctionName",
        "CreateTenantMachineArn",
        "ReleaseBucketName",
        "Version",
    }
    assert control_plane["Outputs"]["Version"]["Value"] == read_version()


def _functions(template: Json, function_ids: dict[str, str]) -> list[tuple[str, Json]]:
    return [(name, template["Resources"][logical_id]["Properties"]) for name, logical_id in function_ids.items()]
