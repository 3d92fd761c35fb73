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

from lambdas.api.operators import ROUTES as SERVED
from orchestrator.api.route import Audience
from orchestrator.api.routes import ROUTES
from orchestrator.common.callers import PROOF_VARIABLE
from orchestrator.common.own_versions import berth_version, template_version
from orchestrator.releases.states import PromotionMode
from stacks.api.throttles import CREDENTIALS, ORDERS, QUEUES, READS, THROTTLES, Throttle
from stacks.common.function_code import function_names, handler_of
from stacks.control_plane import ControlPlaneStack
from stacks.releases.committed import ReleaseMissing, digest, notes, release_file
from stacks.rollouts.machine import MAP_LABEL, RESULTS
from stacks.settings import Dependencies, Settings
from stacks.tenants.machines import FUNCTIONS_OF, STATEMACHINES, definition
from tests.fakes import NAMES
from tests.stacks.conftest import functions_in

Json = dict[str, Any]

OPERATOR_ROUTES = [route.key for route in ROUTES if route.audience is Audience.OPERATOR]
QUEUE_ROUTES = [route.key for route in ROUTES if route.audience is not Audience.OPERATOR]

PLACEHOLDER = re.compile(r"\$\{(\w+)\}")

NUMBERS_OF = {
    "create_tenant": {"StartStackSeconds", "AwaitStackSeconds"},
    "update_tenant": {"StartStackSeconds", "AwaitStackSeconds", "AwaitReviewSeconds"},
    "delete_tenant": {"StartStackSeconds", "AwaitStackSeconds"},
    "tenant_queue": {"RetryAfterSeconds"},
    "rollout": {"AwaitReviewSeconds"},
}
"""For each workflow's file: the placeholders of numbers."""

OTHERS_OF = {"rollout": {"UpdateTenantMachineArn", "ReleaseBucketName"}}
"""For a workflow's file: the placeholders of neither functions nor numbers."""

EVERY_FUNCTION = {
    "BERTH_LINGER_SECONDS",
    "BERTH_LOCATION",
    "BERTH_METRICS_NAMESPACE",
    "BERTH_NAME",
    "BERTH_SERVICE",
    "BERTH_TABLE",
    "BERTH_TEMPLATE_VERSION",
    "BERTH_VERSION",
}
WORKFLOWS = [stem for stem in FUNCTIONS_OF if stem != "purge_events"]
"""The workflows of the control plane. The event plane has the other one."""
MACHINES = {"BERTH_CREATE_MACHINE", "BERTH_UPDATE_MACHINE", "BERTH_DELETE_MACHINE"}
CREATE_LIMITS = {"BERTH_MAX_TENANTS", "BERTH_CREATES_PER_MINUTE"}
GET_QUEUE = {"BERTH_CREATE_ON_GET_QUEUE", "BERTH_RETRY_AFTER_SECONDS", "BERTH_API_PROOF_DIGEST"}
STACKS = {"BERTH_STACK_ROLE", "BERTH_METADATA_SERVICE_TOKEN"}
ROLLOUTS = {"BERTH_ROLLOUT_MACHINE", "BERTH_RELEASE_BUCKET", "BERTH_ROLLOUT_CONCURRENCY"}


def _properties(template: Json, resource_type: str) -> list[Json]:
    return [r.get("Properties", {}) for r in template["Resources"].values() if r["Type"] == resource_type]


@pytest.mark.parametrize("stack", ["Berth", "BerthEvents"])
def test_each_stack_is_protected_from_deletion(assembly: Path, stack: str) -> None:
    manifest = json.loads((assembly / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["artifacts"][stack]["properties"]["terminationProtection"] is True


# The table


def test_the_table_is_retained_protected_and_backed_up(control_plane_template: Template) -> None:
    control_plane_template.has_resource(
        "AWS::DynamoDB::Table",
        {
            "DeletionPolicy": "Retain",
            "UpdateReplacePolicy": "Retain",
            "Properties": {
                "BillingMode": "PAY_PER_REQUEST",
                "DeletionProtectionEnabled": True,
                "TimeToLiveSpecification": {"AttributeName": "ttl", "Enabled": True},
                "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
                "SSESpecification": {"SSEEnabled": True},
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


def test_all_functions_share_runtime_logging_tracing_and_variables(
    control_plane_template: Template, function_ids: dict[str, str]
) -> None:
    control_plane_template.resource_properties_count_is(
        "AWS::Lambda::Function",
        {
            "Runtime": "python3.13",
            "Architectures": ["arm64"],
            "TracingConfig": {"Mode": "PassThrough"},
            "LoggingConfig": {
                "ApplicationLogLevel": "INFO",
                "LogFormat": "JSON",
                "LogGroup": {"Ref": Match.any_value()},
                "SystemLogLevel": "WARN",
            },
            "Layers": Match.absent(),
            "Environment": {
                "Variables": {
                    "BERTH_NAME": "Berth",
                    "BERTH_TABLE": {"Ref": Match.any_value()},
                    "BERTH_VERSION": berth_version(),
                    "BERTH_TEMPLATE_VERSION": template_version(),
                    "BERTH_LINGER_SECONDS": "60",
                    "BERTH_LOCATION": {
                        "Fn::Join": [
                            "",
                            [{"Ref": "AWS::Partition"}, ":", {"Ref": "AWS::Region"}, ":", {"Ref": "AWS::AccountId"}],
                        ]
                    },
                    "BERTH_METRICS_NAMESPACE": "Berth",
                }
            },
        },
        len(function_ids),
    )


@pytest.mark.parametrize(
    ("name", "seconds"),
    [
        ("get_queue", 29),
        ("operators", 29),
        ("start_stack", 30),
        ("tenant_metadata", 30),
        ("tenant_queue", 30),
        ("settle_tenant_queue", 45),
        ("publish_release", 90),
        ("begin", 15),
        ("advance_rollout", 120),
        ("admit_tenant", 15),
        ("review_tenant", 30),
        ("close_execution", 60),
        ("reconcile", 900),
        ("api_proof", 60),
    ],
)
def test_a_function_has_its_timeout(control_plane: Json, function_ids: dict[str, str], name: str, seconds: int) -> None:
    assert control_plane["Resources"][function_ids[name]]["Properties"]["Timeout"] == seconds


def test_only_functions_that_read_the_whole_fleet_have_more_memory(
    control_plane: Json, function_ids: dict[str, str]
) -> None:
    memory = {name: properties["MemorySize"] for name, properties in _functions(control_plane, function_ids)}
    assert memory == dict.fromkeys(function_ids, 256) | {"reconcile": 512, "operators": 1769, "advance_rollout": 1769}


def test_every_function_logs_its_own_name(plane: Json) -> None:
    for name, logical_id in functions_in(plane).items():
        variables = plane["Resources"][logical_id]["Properties"]["Environment"]["Variables"]
        assert variables["BERTH_SERVICE"] == name


@pytest.mark.parametrize(
    ("name", "variables"),
    [
        ("get_queue", GET_QUEUE | MACHINES | CREATE_LIMITS),
        (
            "operators",
            MACHINES
            | ROLLOUTS
            | {"BERTH_RECONCILE_FUNCTION", "BERTH_DEAD_LETTER_QUEUES", "BERTH_MAX_TENANTS", "BERTH_API_PROOF_DIGEST"}
            # To see whether a stack's parameters differ from those that it would get now.
            | {"BERTH_METADATA_SERVICE_TOKEN"}
            # To tell whether Berth has made a stack that is compared with the records.
            | {"BERTH_STACK_ROLE"},
        ),
        ("close_execution", {"BERTH_METADATA_SERVICE_TOKEN", "BERTH_STACK_ROLE"}),
        ("reconcile", MACHINES | {"BERTH_METADATA_SERVICE_TOKEN", "BERTH_STACK_ROLE", "BERTH_MAX_TENANTS"}),
        ("start_stack", STACKS | {"BERTH_EMPTY_FOR_SECONDS", "BERTH_STACK_EVENTS"}),
        ("publish_release", {"BERTH_RELEASE_BUCKET", "BERTH_SOURCE_BUCKET", "BERTH_STACK_ID"}),
        ("api_proof", {"BERTH_STACK_ID", "BERTH_API", "BERTH_API_STAGE"}),
        ("tenant_queue", {"BERTH_TENANT_QUEUE_MACHINE"}),
        ("settle_tenant_queue", {"BERTH_CREATE_MACHINE", "BERTH_DELETE_MACHINE"} | CREATE_LIMITS),
        ("begin", {"BERTH_METADATA_SERVICE_TOKEN", "BERTH_STACK_ROLE"}),
        ("await_stack", {"BERTH_STACK_ROLE"}),
        ("inspect_stack", {"BERTH_STACK_ROLE"}),
        ("stack_event", {"BERTH_STACK_ROLE"}),
        ("record_failure", {"BERTH_STACK_ROLE"}),
        ("tenant_metadata", {"BERTH_STACK_ROLE"}),
        ("finish", {"BERTH_METADATA_SERVICE_TOKEN", "BERTH_STACK_ROLE"}),
        ("advance_rollout", {"BERTH_RELEASE_BUCKET"}),
        ("await_operator", {"BERTH_RELEASE_BUCKET"}),
        ("admit_tenant", set()),
        ("record_outcome", set()),
        ("review_tenant", STACKS),
    ],
)
def test_a_function_has_only_the_variables_that_it_needs(
    control_plane: Json, function_ids: dict[str, str], name: str, variables: set[str]
) -> None:
    found = control_plane["Resources"][function_ids[name]]["Properties"]["Environment"]["Variables"]
    assert {variable for variable in found if variable.startswith("BERTH_")} - EVERY_FUNCTION == variables


@pytest.mark.parametrize("name", ["get_queue", "operators", "settle_tenant_queue", "reconcile"])
def test_a_function_that_starts_operations_starts_each_on_its_own_machine(
    control_plane: Json, function_ids: dict[str, str], machine_ids: dict[str, str], name: str
) -> None:
    variables = control_plane["Resources"][function_ids[name]]["Properties"]["Environment"]["Variables"]
    for variable in MACHINES & set(variables):
        operation = variable.removeprefix("BERTH_").removesuffix("_MACHINE").lower()
        assert variables[variable] == {"Ref": machine_ids[f"{operation}_tenant"]}


def test_concurrency_can_be_reserved_only_for_get_queue_and_tenant_metadata(
    control_plane: Json, other_settings: Template, function_ids: dict[str, str]
) -> None:
    def reserved(template: Json) -> Json:
        functions = _functions(template, function_ids)
        return {name: p["ReservedConcurrentExecutions"] for name, p in functions if "ReservedConcurrentExecutions" in p}

    assert reserved(control_plane) == {}
    assert reserved(other_settings.to_json()) == {"get_queue": 16, "tenant_metadata": 5}


def test_only_functions_that_are_service_tokens_in_other_stacks_have_fixed_names(
    control_plane: Json, function_ids: dict[str, str]
) -> None:
    named = {name: p["FunctionName"] for name, p in _functions(control_plane, function_ids) if "FunctionName" in p}
    assert named == {"tenant_metadata": "berth-tenant-metadata", "tenant_queue": "berth-tenant-queue"}


def test_all_functions_share_one_asset_without_the_command_line_and_the_emulator(
    assembly: Path, control_plane: Json, event_plane: Json
) -> None:
    functions = [each for plane in (control_plane, event_plane) for each in _properties(plane, "AWS::Lambda::Function")]
    (key,) = {properties["Code"]["S3Key"] for properties in functions}
    asset = assembly / f"asset.{key.removesuffix('.zip')}"
    assert {entry.name for entry in asset.iterdir()} == {"lambdas", "orchestrator"}
    assert (asset / "lambdas" / "api" / "get_queue.py").is_file()
    assert (asset / "orchestrator" / "composition.py").is_file()
    for left_out in ("cli", "local"):
        assert not (asset / "orchestrator" / left_out).exists()
    # Code that is compiled on a developer's machine is for another Python. For AWS, the code is built separately.
    assert not list(asset.rglob("__pycache__"))


def test_logs_are_kept_as_long_as_the_setting_says(plane: Json) -> None:
    assert {group["RetentionInDays"] for group in _properties(plane, "AWS::Logs::LogGroup")} == {90}


def test_logs_are_kept_as_long_as_another_setting_says(
    templates_with_other_settings: tuple[Template, Template],
) -> None:
    for template in templates_with_other_settings:
        assert {group["RetentionInDays"] for group in _properties(template.to_json(), "AWS::Logs::LogGroup")} == {14}


def test_calls_of_functions_are_traced_on_request(templates_with_other_settings: tuple[Template, Template]) -> None:
    for template in templates_with_other_settings:
        functions = _properties(template.to_json(), "AWS::Lambda::Function")
        assert {function["TracingConfig"]["Mode"] for function in functions} == {"Active"}


def test_all_functions_of_a_stack_share_one_layer(templates_with_other_settings: tuple[Template, Template]) -> None:
    for template in templates_with_other_settings:
        template.resource_count_is("AWS::Lambda::LayerVersion", 1)
        (layer,) = template.find_resources("AWS::Lambda::LayerVersion")
        functions = _properties(template.to_json(), "AWS::Lambda::Function")
        assert all(function["Layers"] == [{"Ref": layer}] for function in functions)


def test_both_stacks_upload_the_same_layer(templates_with_other_settings: tuple[Template, Template]) -> None:
    contents = [
        layer["Properties"]["Content"]["S3Key"]
        for template in templates_with_other_settings
        for layer in template.find_resources("AWS::Lambda::LayerVersion").values()
    ]
    assert len(contents) == 2
    assert len(set(contents)) == 1


def test_every_handler_has_a_function_if_its_feature_is_switched_on(
    with_everything: Json, function_ids: dict[str, str], events_with_mail: Json
) -> None:
    handlers = function_names()
    of_events = {function["Handler"] for function in _properties(events_with_mail, "AWS::Lambda::Function")}
    switched_on = _properties(with_everything, "AWS::Lambda::Function")
    assert sorted({function["Handler"] for function in switched_on} | of_events) == sorted(map(handler_of, handlers))
    assert len({function["Handler"] for function in switched_on}) == len(switched_on)
    assert {function["Handler"].split(".")[-2] for function in switched_on} - set(function_ids) == {"start_rollout"}


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


@pytest.mark.parametrize("name", ["get_queue", "operators", "settle_tenant_queue", "reconcile"])
def test_functions_that_start_creates_are_deployed_after_every_release_is_published(
    control_plane: Json, releases: dict[str, str], function_ids: dict[str, str], name: str
) -> None:
    function = control_plane["Resources"][function_ids[name]]
    assert set(releases.values()) <= set(function["DependsOn"])


def test_a_deployment_publishes_the_committed_release(
    assembly: Path, control_plane: Json, releases: dict[str, str], function_ids: dict[str, str]
) -> None:
    version = template_version()
    assert set(releases) == {version}
    properties, committed = control_plane["Resources"][releases[version]]["Properties"], release_file(version)
    assert properties["ServiceToken"] == {"Fn::GetAtt": [function_ids["publish_release"], "Arn"]}
    assert properties["ServiceTimeout"] == "300"
    assert properties["Digest"] == digest(committed)
    assert properties["Notes"] == notes(version)
    assert (assembly / f"asset.{properties['SourceKey']}").read_bytes() == committed.read_bytes()


def test_each_release_is_a_resource_of_its_own(releases: dict[str, str]) -> None:
    for version, logical_id in releases.items():
        assert logical_id.startswith(f"ReleasesRelease{version.replace('.', '')}")


def test_a_published_release_is_retained(control_plane: Json, releases: dict[str, str]) -> None:
    for logical_id in releases.values():
        release = control_plane["Resources"][logical_id]
        assert release["DeletionPolicy"] == release["UpdateReplacePolicy"] == "Retain"


def test_a_version_without_a_release_stops_the_deployment() -> None:
    with pytest.raises(ReleaseMissing, match=r"9999\.0\.0"):
        _stack_of("9999.0.0")


def _stack_of(version: str, **settings: Any) -> dict[str, Any]:
    app = App(analytics_reporting=False)
    given = Settings(dependencies=Dependencies.HOST, **settings)
    stack = ControlPlaneStack(app, version=berth_version(), template_version=version, settings=given)
    template: dict[str, Any] = Template.from_stack(stack).to_json()
    return template


def test_deployments_make_releases_current_unless_the_setting_says_otherwise(control_plane: dict[str, Any]) -> None:
    assert "BERTH_PROMOTION" not in json.dumps(control_plane)
    assert "Custom::CurrentRelease" not in json.dumps(control_plane)
    resources = _stack_of(template_version(), promotion=PromotionMode.AFTER_ROLLOUT)["Resources"]
    (current,) = [name for name, each in resources.items() if each["Type"] == "Custom::CurrentRelease"]
    choosing = [
        each
        for each in resources.values()
        if each["Type"] == "AWS::Lambda::Function"
        and each["Properties"]["Environment"]["Variables"]["BERTH_SERVICE"]
        in ("get_queue", "operators", "reconcile", "settle_tenant_queue")
    ]
    assert len(choosing) == 4
    for function in choosing:
        assert function["Properties"]["Environment"]["Variables"]["BERTH_PROMOTION"] == "afterRollout"
        assert current in function["DependsOn"], "the release that is current has to be recorded first"


# The machines


def test_every_workflow_has_its_machine(machine_ids: dict[str, str]) -> None:
    files = {file.name.removesuffix(".asl.json") for file in STATEMACHINES.iterdir()}
    assert files == set(FUNCTIONS_OF)
    assert set(WORKFLOWS) == set(machine_ids)


@pytest.mark.parametrize("stem", WORKFLOWS)
def test_every_placeholder_of_a_workflow_is_filled_and_none_is_left_over(
    control_plane: Json, machine_ids: dict[str, str], stem: str
) -> None:
    in_file = set(PLACEHOLDER.findall((STATEMACHINES / f"{stem}.asl.json").read_text(encoding="utf-8")))
    others = OTHERS_OF.get(stem, set())
    assert in_file == {*FUNCTIONS_OF[stem], *NUMBERS_OF[stem], *others}
    machine = control_plane["Resources"][machine_ids[stem]]["Properties"]
    for_cloudformation = set(PLACEHOLDER.findall(machine["DefinitionString"]))
    assert for_cloudformation == set(machine["DefinitionSubstitutions"]) == {*FUNCTIONS_OF[stem], *others}


@pytest.mark.parametrize("stem", WORKFLOWS)
def test_every_placeholder_is_filled_with_the_function_of_its_name(
    control_plane: Json, machine_ids: dict[str, str], function_ids: dict[str, str], stem: str
) -> None:
    for placeholder, name in FUNCTIONS_OF[stem].items():
        assert placeholder == f"{name.title().replace('_', '')}FunctionArn"
    filled = control_plane["Resources"][machine_ids[stem]]["Properties"]["DefinitionSubstitutions"]
    assert {placeholder: filled[placeholder] for placeholder in FUNCTIONS_OF[stem]} == {
        placeholder: {"Fn::GetAtt": [function_ids[name], "Arn"]} for placeholder, name in FUNCTIONS_OF[stem].items()
    }


@pytest.mark.parametrize("stem", WORKFLOWS)
def test_a_machine_runs_its_own_workflow(control_plane: Json, machine_ids: dict[str, str], stem: str) -> None:
    machine = control_plane["Resources"][machine_ids[stem]]["Properties"]
    assert machine["DefinitionString"] == definition(stem, Settings())


@pytest.mark.parametrize("stem", ["create_tenant", "update_tenant", "delete_tenant"])
def test_the_timeout_of_await_stack_is_a_number(stem: str) -> None:
    states = json.loads(definition(stem, Settings(await_stack_seconds=7)))["States"]
    assert states["AwaitStack"]["TimeoutSeconds"] == 7


@pytest.mark.parametrize("stem", ["create_tenant", "update_tenant", "delete_tenant"])
@pytest.mark.parametrize(("seconds", "waits"), [(1, 60), (300, 300)])
def test_start_stack_does_not_time_out_while_its_function_may_change_the_stack(
    stem: str, seconds: int, waits: int
) -> None:
    states = json.loads(definition(stem, Settings(await_stack_seconds=seconds)))["States"]
    assert states["StartStack"]["TimeoutSeconds"] == waits


def test_a_tenant_queue_waits_as_long_as_callers_of_get_queue() -> None:
    states = json.loads(definition("tenant_queue", Settings(retry_after_seconds=9)))["States"]
    assert states["AwaitTenant"]["Seconds"] == 9


def test_the_wait_for_the_review_is_a_number() -> None:
    states = json.loads(definition("update_tenant", Settings(await_review_seconds=5)))["States"]
    assert states["AwaitReview"]["Seconds"] == 5


def test_the_concurrency_of_a_rollout_comes_from_its_stage() -> None:
    states = json.loads(definition("rollout", Settings()))["States"]
    assert states["RunStage"]["MaxConcurrencyPath"] == "$.maxConcurrency"
    assert "MaxConcurrency" not in states["RunStage"]


def test_a_rollout_updates_tenants_with_the_machine_that_operators_use(
    control_plane: Json, the_only: Callable[[str], str], machine_ids: dict[str, str]
) -> None:
    filled = control_plane["Resources"][machine_ids["rollout"]]["Properties"]["DefinitionSubstitutions"]
    assert filled["UpdateTenantMachineArn"] == {"Ref": machine_ids["update_tenant"]}
    assert filled["ReleaseBucketName"] == {"Ref": the_only("AWS::S3::Bucket")}


def test_the_permissions_of_the_rollout_machine_match_the_label_and_the_prefix_of_its_map() -> None:
    run_stage = json.loads(definition("rollout", Settings()))["States"]["RunStage"]
    assert run_stage["Label"] == MAP_LABEL
    assert f"{run_stage['ResultWriter']['Parameters']['Prefix']}/*" == RESULTS


def test_the_operators_function_knows_the_machine_and_the_concurrency_of_rollouts(
    control_plane: Json, other_settings: Template, function_ids: dict[str, str], machine_ids: dict[str, str]
) -> None:
    def variables_of(template: Json) -> Json:
        variables: Json = template["Resources"][function_ids["operators"]]["Properties"]["Environment"]["Variables"]
        return variables

    assert variables_of(control_plane)["BERTH_ROLLOUT_MACHINE"] == {"Ref": machine_ids["rollout"]}
    assert variables_of(control_plane)["BERTH_ROLLOUT_CONCURRENCY"] == "50"
    assert variables_of(other_settings.to_json())["BERTH_ROLLOUT_CONCURRENCY"] == "8"


@pytest.mark.parametrize("stem", WORKFLOWS)
def test_a_machine_is_traced_and_logs_to_its_own_group_without_execution_data(
    control_plane: Json, machine_ids: dict[str, str], stem: str
) -> None:
    machine = control_plane["Resources"][machine_ids[stem]]["Properties"]
    assert "StateMachineName" not in machine
    assert machine["TracingConfiguration"] == {"Enabled": True}
    logging = machine["LoggingConfiguration"]
    assert (logging["Level"], logging["IncludeExecutionData"]) == ("ALL", False)
    (destination,) = logging["Destinations"]
    group = destination["CloudWatchLogsLogGroup"]["LogGroupArn"]["Fn::GetAtt"][0]
    name = control_plane["Resources"][group]["Properties"]["LogGroupName"]
    assert name == f"/aws/vendedlogs/states/Berth-{stem.replace('_', '-')}"


# The automatic rollout


def test_a_deployment_starts_no_rollout_by_default(control_plane: Json) -> None:
    assert not _properties(control_plane, "Custom::Rollout")


def test_an_automatic_rollout_moves_to_the_deployed_version(
    with_everything: Json, the_only: Callable[[str], str], machine_ids: dict[str, str]
) -> None:
    (rollout,) = _properties(with_everything, "Custom::Rollout")
    (function_id, function) = _start_rollout(with_everything)
    assert rollout["ServiceToken"] == {"Fn::GetAtt": [function_id, "Arn"]}
    assert rollout["Version"] == template_version()
    assert rollout["ServiceTimeout"] == "300"
    assert function["Timeout"] < 300
    variables = function["Environment"]["Variables"]
    assert {name for name in variables if name.startswith("BERTH_")} == ROLLOUTS | EVERY_FUNCTION | {"BERTH_STACK_ID"}
    assert variables["BERTH_ROLLOUT_MACHINE"] == {"Ref": machine_ids["rollout"]}
    assert variables["BERTH_RELEASE_BUCKET"] == {"Ref": the_only("AWS::S3::Bucket")}


def test_an_automatic_rollout_starts_after_everything_else_is_deployed(
    control_plane: Json, with_everything: Json
) -> None:
    (rollout,) = (r for r in with_everything["Resources"].values() if r["Type"] == "Custom::Rollout")
    assert set(control_plane["Resources"]) <= set(rollout["DependsOn"])


# CloudFormation's events


def test_events_of_tenants_stacks_resume_their_operation(
    control_plane: Json, dead_letter_queues: dict[str, str], function_ids: dict[str, str]
) -> None:
    (rule,) = (
        rule
        for rule in _properties(control_plane, "AWS::Events::Rule")
        if rule.get("EventPattern", {}).get("source") == ["aws.cloudformation"]
    )
    pattern = rule["EventPattern"]
    assert pattern["detail-type"] == ["CloudFormation Stack Status Change"]
    assert pattern["detail"]["status-details"] == {"status": [{"anything-but": {"suffix": "_IN_PROGRESS"}}]}
    ((_, parts),) = (condition["prefix"]["Fn::Join"] for condition in pattern["detail"]["stack-id"])
    assert parts[-1] == f":stack/{NAMES.tenant_prefix}"

    (target,) = rule["Targets"]
    assert target["Arn"] == {"Fn::GetAtt": [function_ids["stack_event"], "Arn"]}
    assert target["RetryPolicy"] == {"MaximumEventAgeInSeconds": 3600, "MaximumRetryAttempts": 8}
    undelivered = dead_letter_queues["events about tenants' stacks"]
    assert target["DeadLetterConfig"] == {"Arn": {"Fn::GetAtt": [undelivered, "Arn"]}}


# The queues


def test_every_queue_is_encrypted_and_accepts_only_tls(plane: Json) -> None:
    queues = {name for name, resource in plane["Resources"].items() if resource["Type"] == "AWS::SQS::Queue"}
    assert queues
    assert {queue["SqsManagedSseEnabled"] for queue in _properties(plane, "AWS::SQS::Queue")} == {True}
    denying = {
        queue["Ref"]
        for policy in _properties(plane, "AWS::SQS::QueuePolicy")
        for statement in policy["PolicyDocument"]["Statement"]
        for queue in policy["Queues"]
        if (statement["Effect"], statement["Action"]) == ("Deny", "sqs:*")
        and statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
        and statement["Principal"] == {"AWS": "*"}
    }
    assert denying == queues


def test_dead_letters_are_kept_for_14_days_and_the_operators_function_knows_all_their_queues(
    control_plane: Json, dead_letter_queues: dict[str, str], ended_executions: str
) -> None:
    """All queues except the queue of ended executions are dead-letter queues."""
    queues = {
        name: resource["Properties"]
        for name, resource in control_plane["Resources"].items()
        if resource["Type"] == "AWS::SQS::Queue"
    }
    assert set(dead_letter_queues.values()) == set(queues) - {ended_executions}
    for queue in dead_letter_queues.values():
        assert queues[queue]["MessageRetentionPeriod"] == 14 * 24 * 3600
        assert "RedrivePolicy" not in queues[queue]


# The API


def test_the_operators_function_serves_all_operator_routes() -> None:
    assert set(OPERATOR_ROUTES) == set(SERVED)


def test_every_route_needs_aws_credentials(control_plane: Json) -> None:
    routes = _properties(control_plane, "AWS::ApiGatewayV2::Route")
    assert {route["AuthorizationType"] for route in routes} == {"AWS_IAM"}


def test_every_route_calls_the_function_that_serves_it(control_plane: Json, function_ids: dict[str, str]) -> None:
    called = {
        route["RouteKey"]: _integration(control_plane, route)["IntegrationUri"]["Fn::GetAtt"][0]
        for route in _properties(control_plane, "AWS::ApiGatewayV2::Route")
    }
    operators = dict.fromkeys(OPERATOR_ROUTES, function_ids["operators"])
    queues = dict.fromkeys(QUEUE_ROUTES, function_ids["get_queue"])
    assert called == {**queues, **operators}


def test_functions_are_called_with_payload_format_2(plane: Json) -> None:
    integrations = _properties(plane, "AWS::ApiGatewayV2::Integration")
    assert {integration["PayloadFormatVersion"] for integration in integrations} == {"2.0"}


def test_the_api_is_throttled_and_logged(plane: Json) -> None:
    (stage,) = _properties(plane, "AWS::ApiGatewayV2::Stage")
    assert stage["StageName"] == "$default"
    assert stage["DefaultRouteSettings"] == _settings_of(ORDERS)
    assert {"requestId", "caller", "route", "status"} <= set(json.loads(stage["AccessLogSettings"]["Format"]))


def test_only_api_gateway_has_the_proof_and_the_functions_have_its_digest(
    control_plane: Json, function_ids: dict[str, str]
) -> None:
    (proof,) = [name for name, each in control_plane["Resources"].items() if each["Type"] == "Custom::ApiProof"]
    value, digest = ({"Fn::GetAtt": [proof, attribute]} for attribute in ("Value", "Digest"))
    (stage,) = _properties(control_plane, "AWS::ApiGatewayV2::Stage")
    assert stage["StageVariables"] == {PROOF_VARIABLE: value}
    has_digest = {
        name
        for name, properties in _functions(control_plane, function_ids)
        if digest in properties["Environment"]["Variables"].values()
    }
    assert has_digest == {"get_queue", "operators"}
    assert json.dumps(control_plane).count(json.dumps(value)) == 1
    assert json.dumps(control_plane).count(json.dumps(digest)) == 2


def test_another_generation_replaces_the_proof(control_plane: Json, other_settings: Template) -> None:
    def generation(template: Json) -> str:
        (proof,) = _properties(template, "Custom::ApiProof")
        return str(proof["Generation"])

    assert generation(control_plane) == "1"
    assert generation(other_settings.to_json()) == "2"


def test_the_access_log_has_no_stage_variables(plane: Json) -> None:
    (stage,) = _properties(plane, "AWS::ApiGatewayV2::Stage")
    assert "stageVariables" not in stage["AccessLogSettings"]["Format"]


def test_every_route_has_its_own_throttle_and_there_are_no_others(
    control_plane: Json,
) -> None:
    routes = {route["RouteKey"] for route in _properties(control_plane, "AWS::ApiGatewayV2::Route")}
    throttles = {route.key: THROTTLES[route.rate] for route in ROUTES}
    assert set(throttles) == routes
    (stage,) = _properties(control_plane, "AWS::ApiGatewayV2::Stage")
    assert stage["RouteSettings"] == {key: _settings_of(throttle) for key, throttle in throttles.items()}


def test_queue_requests_have_the_highest_rate_and_orders_the_lowest() -> None:
    for route in ROUTES:
        operators = READS if route.method == "GET" else ORDERS
        by_audience = {Audience.PLATFORM: QUEUES, Audience.SENDER: CREDENTIALS, Audience.RECEIVER: CREDENTIALS}
        assert THROTTLES[route.rate] is by_audience.get(route.audience, operators), route.key
    assert ORDERS.per_second < READS.per_second < CREDENTIALS.per_second < QUEUES.per_second
    assert ORDERS.burst < READS.burst < CREDENTIALS.burst < QUEUES.burst


def test_the_stage_is_deployed_after_its_routes(plane: Json) -> None:
    resources = plane["Resources"]
    routes = {name for name, resource in resources.items() if resource["Type"] == "AWS::ApiGatewayV2::Route"}
    (stage,) = (each for each in resources.values() if each["Type"] == "AWS::ApiGatewayV2::Stage")
    assert routes <= set(stage["DependsOn"])


def _settings_of(throttle: Throttle) -> Json:
    return {"ThrottlingRateLimit": throttle.per_second, "ThrottlingBurstLimit": throttle.burst}


# Limits on creates


@pytest.mark.parametrize("name", ["get_queue", "settle_tenant_queue"])
def test_functions_that_start_creates_for_callers_know_the_limits(
    control_plane: Json, function_ids: dict[str, str], name: str
) -> None:
    variables = control_plane["Resources"][function_ids[name]]["Properties"]["Environment"]["Variables"]
    assert (variables["BERTH_MAX_TENANTS"], variables["BERTH_CREATES_PER_MINUTE"]) == ("1900", "60")


def test_get_queue_creates_tenants_unless_it_is_switched_off(
    control_plane: Json, without_creates: Json, function_ids: dict[str, str]
) -> None:
    def variables_of(template: Json) -> Json:
        variables: Json = template["Resources"][function_ids["get_queue"]]["Properties"]["Environment"]["Variables"]
        return variables

    assert variables_of(control_plane)["BERTH_CREATE_ON_GET_QUEUE"] == "true"
    assert variables_of(without_creates)["BERTH_CREATE_ON_GET_QUEUE"] == "false"
    assert not CREATE_LIMITS & set(variables_of(without_creates))


# Outputs


EXPORTED_TO_THE_EVENT_PLANE = {
    "ExportsOutputRefTenantsTable97BAC7759F4A1B97": {"Ref": "TenantsTable97BAC775"},
    "ExportsOutputFnGetAttTenantsTable97BAC775ArnE53D8D97": {"Fn::GetAtt": ["TenantsTable97BAC775", "Arn"]},
    "ExportsOutputFnGetAttTenantsTable97BAC775StreamArnF374674C": {"Fn::GetAtt": ["TenantsTable97BAC775", "StreamArn"]},
    "ExportsOutputRefMachinesDelete586885037B384EAA": {"Ref": "MachinesDelete58688503"},
}


def test_the_outputs_name_the_resources_and_the_version(control_plane: Json) -> None:
    assert set(control_plane["Outputs"]) == {
        "ApiUrl",
        "PlatformPolicyArn",
        "SenderPolicyArn",
        "ReceiverPolicyArn",
        "OperatorPolicyArn",
        "TeamPolicyArn",
        "TableName",
        "GetQueueFunctionName",
        "OperatorsFunctionName",
        "CreateTenantMachineArn",
        "UpdateTenantMachineArn",
        "DeleteTenantMachineArn",
        "RolloutMachineArn",
        "ReconcileFunctionName",
        "EndedExecutionsQueueUrl",
        "TenantQueueServiceToken",
        "ReleaseBucketName",
        "TemplateVersion",
        "Version",
        *EXPORTED_TO_THE_EVENT_PLANE,
    }
    assert control_plane["Outputs"]["Version"]["Value"] == berth_version()
    assert control_plane["Outputs"]["TemplateVersion"]["Value"] == template_version()


def test_other_stacks_can_import_only_the_service_token_of_tenant_queues_and_what_the_event_plane_uses(
    control_plane: Json, function_ids: dict[str, str]
) -> None:
    exported = {
        output["Export"]["Name"]: output["Value"] for output in control_plane["Outputs"].values() if "Export" in output
    }
    assert exported == {
        "BerthTenantQueueServiceToken": {"Fn::GetAtt": [function_ids["tenant_queue"], "Arn"]},
        **{f"Berth:{output}": value for output, value in EXPORTED_TO_THE_EVENT_PLANE.items()},
    }


def test_resources_with_data_or_known_addresses_keep_their_logical_ids(
    the_only: Callable[[str], str], function_ids: dict[str, str], machine_ids: dict[str, str]
) -> None:
    assert the_only("AWS::DynamoDB::Table") == "TenantsTable97BAC775"
    assert the_only("AWS::S3::Bucket") == "ReleasesBucketEA8ED4CA"
    assert the_only("AWS::ApiGatewayV2::Api") == "QueueApiF10A4C7B"
    assert machine_ids["create_tenant"] == "MachinesCreate20650091"
    assert function_ids["tenant_metadata"] == "StackRoleTenantMetadataFunction4D8F7984"


def test_the_stack_is_far_below_the_maximum_number_of_resources(control_plane: Json) -> None:
    assert len(control_plane["Resources"]) < 300


def _functions(template: Json, function_ids: dict[str, str]) -> list[tuple[str, Json]]:
    return [(name, template["Resources"][logical_id]["Properties"]) for name, logical_id in function_ids.items()]


def _start_rollout(template: Json) -> tuple[str, Json]:
    ((logical_id, resource),) = (
        (logical_id, resource)
        for logical_id, resource in template["Resources"].items()
        if resource["Type"] == "AWS::Lambda::Function"
        and resource["Properties"]["Handler"] == "lambdas.rollouts.start_rollout.handler"
    )
    return logical_id, resource["Properties"]


def _integration(template: Json, route: Json) -> Json:
    _, (prefix, integration) = route["Target"]["Fn::Join"]
    assert prefix == "integrations/"
    properties: Json = template["Resources"][integration["Ref"]]["Properties"]
    return properties


def test_the_functions_that_know_the_warm_pool_have_its_sizes(
    other_settings: Template, function_ids: dict[str, str]
) -> None:
    resources = other_settings.to_json()["Resources"]
    found = {
        name: variables["BERTH_WARM_POOL"]
        for name, logical_id in function_ids.items()
        if "BERTH_WARM_POOL" in (variables := resources[logical_id]["Properties"]["Environment"]["Variables"])
    }
    # getQueue is read-only there.
    assert found == dict.fromkeys(("operators", "reconcile"), "gold=2,standard=5")
