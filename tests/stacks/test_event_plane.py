"""The event plane's template. Tests of what both stacks share are beside those of the control plane."""

from __future__ import annotations

import json
from collections import Counter
from datetime import timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from aws_cdk.assertions import Template

from orchestrator.adapters.dynamodb import delivery_keys, event_keys
from orchestrator.adapters.dynamodb.event_keys import (
    LISTED_CARE,
    LISTED_DISABLED,
    LISTED_FINISHED_PURGES,
    LISTED_PURGES,
    LISTED_SETTINGS,
)
from orchestrator.adapters.dynamodb.event_tenants import DynamoTenants
from orchestrator.adapters.dynamodb.keys import tenant_pk
from orchestrator.api.connection_routes import LIST_TROUBLES
from orchestrator.api.event_plane_routes import EVENT_ROUTES, INGEST_ROUTES
from orchestrator.api.event_read_routes import GET_CREDENTIALS
from orchestrator.api.event_usage_routes import LIST_PURGES
from orchestrator.api.route import Audience, Rate
from orchestrator.common.callers import PROOF_VARIABLE
from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.authorising import REMEMBERED_SECONDS
from orchestrator.events.content import Packed, content_key
from orchestrator.events.plans import Plan, time_to_live
from orchestrator.events.purging import HEARTBEAT_IS_LOST_AFTER
from orchestrator.events.records import TenantEpoch
from orchestrator.tenants.names import Names
from stacks.api.throttles import THROTTLES
from stacks.events.rows import (
    CHANGE_ROWS,
    CONFIGURATION_ROWS,
    CONNECTION_ROWS,
    DELIVERY_ROWS,
    DUE_INDEX_ROWS,
    EVENT_ROWS,
    FORM_ROWS,
    KEY_ROWS,
    LIFE_ATTRIBUTES,
    LIFE_ROWS,
    PARKED_INDEX_ROWS,
    QUEUE_ATTRIBUTES,
    REPETITION_ROWS,
    REPLAY_INDEX_ROWS,
    REPLAY_ROWS,
    SOURCE_ROWS,
)
from stacks.project import read_version
from stacks.settings import Settings
from stacks.tenants.machines import definition
from tests.fakes.events import ACME_LIFE
from tests.stacks.allowed_wildcards import WITHOUT_RESOURCES
from tests.stacks.conftest import OF_FUNCTIONS, functions_in
from tests.stacks.policies import Grants, documents, grants, listed, spelled, statements
from tests.stacks.released import KEY
from tests.stacks.test_alarms import alarms_of
from tests.stacks.test_permissions import EVERY_FUNCTION

Json = dict[str, Any]

PUBLIC = ("POST /forms/{formId}", "OPTIONS /forms/{formId}", "ANY /hooks/{sourceId}")
FACING_THE_INTERNET = ("ingest", "receive", "tenant_events")


def properties(template: Json, resource_type: str) -> list[Json]:
    return [each["Properties"] for each in template["Resources"].values() if each["Type"] == resource_type]


def the_only(template: Json, resource_type: str) -> tuple[str, Json]:
    (found,) = ((name, each) for name, each in template["Resources"].items() if each["Type"] == resource_type)
    return found


def variables_of(template: Json, function: str) -> dict[str, Any]:
    variables: dict[str, Any] = template["Resources"][function]["Properties"]["Environment"]["Variables"]
    return variables


# The stack


def test_without_events_there_is_only_the_control_plane_and_it_is_the_same(
    without_events: Path, control_plane: Json
) -> None:
    """So the event plane can be added and removed without a change of provisioning."""
    manifest = json.loads((without_events / "manifest.json").read_text(encoding="utf-8"))
    stacks = [name for name, each in manifest["artifacts"].items() if each["type"] == "aws:cloudformation:stack"]
    assert stacks == ["Berth"]
    assert json.loads((without_events / "Berth.template.json").read_text(encoding="utf-8")) == control_plane


def test_the_control_plane_asks_the_function_of_this_name_and_no_other(
    control_plane: Json, event_plane: Json, event_function_ids: dict[str, str]
) -> None:
    name = event_plane["Resources"][event_function_ids["unfinished_work"]]["Properties"]["FunctionName"]
    assert name == Names().unfinished_work_function
    asked = [
        spelled(each["Resource"])
        for policy in properties(control_plane, "AWS::IAM::Policy")
        for each in policy["PolicyDocument"]["Statement"]
        if "unfinished" in spelled(each["Resource"])
    ]
    assert [each.rpartition(":")[2] for each in asked] == [name] * 3


def test_it_imports_only_the_table_its_stream_and_the_machine_that_deletes_tenants(
    event_plane: Json, control_plane: Json
) -> None:
    imported = set(_imports(event_plane["Resources"]))
    exported = {
        output["Export"]["Name"]: output["Value"] for output in control_plane["Outputs"].values() if "Export" in output
    }
    assert sorted(spelled(exported[name]) for name in imported) == [
        "<MachinesDelete58688503>",
        "<TenantsTable97BAC775.Arn>",
        "<TenantsTable97BAC775.StreamArn>",
        "<TenantsTable97BAC775>",
    ]


def _imports(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["Fn::ImportValue"]] if "Fn::ImportValue" in value else []
        return own + [name for each in value.values() for name in _imports(each)]
    return [name for each in value for name in _imports(each)] if isinstance(value, list) else []


def test_the_outputs_name_the_resources_and_the_version(event_plane: Json) -> None:
    assert set(event_plane["Outputs"]) == {
        "EventsApiUrl",
        "EventOperatorPolicyArn",
        "EventReceiverPolicyArn",
        "IngestFunctionName",
        "ReceiveFunctionName",
        "TenantEventsFunctionName",
        "EventOperatorsFunctionName",
        "EventsTableName",
        "ContentsBucketName",
        "SecretsKeyArn",
        "PurgeEventsMachineArn",
        "OwnEventsBusArn",
        "DeliverEventsFunctionName",
        "FirstQueueUrl",
        "LaterQueueUrl",
        "Version",
    }
    assert event_plane["Outputs"]["Version"]["Value"] == read_version()
    assert not [output for output in event_plane["Outputs"].values() if "Export" in output]


def test_the_stack_is_far_below_the_maximum_number_of_resources(event_plane: Json) -> None:
    assert len(event_plane["Resources"]) < 400


# What it stores


def test_the_table_is_retained_protected_backed_up_and_expires_rows(event_plane: Json) -> None:
    _, table = the_only(event_plane, "AWS::DynamoDB::Table")
    assert (table["DeletionPolicy"], table["UpdateReplacePolicy"]) == ("Retain", "Retain")
    found = table["Properties"]
    assert found["BillingMode"] == "PAY_PER_REQUEST"
    assert found["DeletionProtectionEnabled"] is True
    assert found["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert found["SSESpecification"] == {"SSEEnabled": True}
    assert found["TimeToLiveSpecification"] == {"AttributeName": "ttl", "Enabled": True}
    assert found["StreamSpecification"] == {"StreamViewType": "NEW_IMAGE"}
    assert "TableName" not in found


def test_the_table_has_its_keys_and_two_indexes_of_keys_only(event_plane: Json) -> None:
    (table,) = properties(event_plane, "AWS::DynamoDB::Table")
    assert [each["AttributeName"] for each in table["KeySchema"]] == ["pk", "sk"]
    indexes = {
        each["IndexName"]: ([key["AttributeName"] for key in each["KeySchema"]], each["Projection"]["ProjectionType"])
        for each in table["GlobalSecondaryIndexes"]
    }
    assert indexes == {
        "status-index": (["GSI1PK", "GSI1SK"], "KEYS_ONLY"),
        "event-type-index": (["GSI2PK", "GSI2SK"], "KEYS_ONLY"),
    }


def test_the_bucket_is_private_and_expires_contents_two_days_after_their_rows(event_plane: Json) -> None:
    _, bucket = the_only(event_plane, "AWS::S3::Bucket")
    assert bucket["DeletionPolicy"] == "Retain"
    found = bucket["Properties"]
    assert set(found["PublicAccessBlockConfiguration"].values()) == {True}
    rules = {rule.get("Prefix"): rule["ExpirationInDays"] for rule in found["LifecycleConfiguration"]["Rules"]}
    assert rules == {None: 92, "8d/": 10, "30d/": 32}
    for plan in Plan:
        # The shortest time of the rules that apply.
        key = content_key(ACME_LIFE, plan, "1", Packed(b"", ""))
        expires = min(days for prefix, days in rules.items() if prefix is None or key.startswith(prefix))
        assert expires == time_to_live(plan).days + 2
    assert "VersioningConfiguration" not in found, "an old version would outlive its tenant"
    _, policy = the_only(event_plane, "AWS::S3::BucketPolicy")
    (denied,) = policy["Properties"]["PolicyDocument"]["Statement"]
    assert denied["Effect"] == "Deny"
    assert denied["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


# Secrets


def test_secrets_have_a_key_of_the_stack_that_is_rotated_and_kept(event_plane: Json) -> None:
    _, key = the_only(event_plane, "AWS::KMS::Key")
    assert key["DeletionPolicy"] == "Retain"
    assert key["Properties"]["EnableKeyRotation"] is True


def test_secrets_are_encrypted_with_the_customers_key_if_there_is_one(events_with_key: Json) -> None:
    assert not properties(events_with_key, "AWS::KMS::Key")
    assert events_with_key["Outputs"]["SecretsKeyArn"]["Value"] == KEY


def test_a_function_uses_the_customers_key_directly_only_for_a_tenants_secrets(events_with_key: Json) -> None:
    direct = {
        (action, spelled(each["Resource"]))
        for _, each in statements(events_with_key)
        for action in listed(each["Action"])
        if action.startswith("kms:") and "kms:ViaService" not in json.dumps(each)
        if each["Condition"]
        == {"Null": {"kms:EncryptionContext:tenant": "false", "kms:EncryptionContext:epoch": "false"}}
    }
    assert direct == {("kms:Encrypt", KEY), ("kms:Decrypt", KEY)}


# The API


def test_tenants_and_the_public_need_no_aws_credentials_and_operators_do(event_plane: Json) -> None:
    by_function = (Audience.TENANT, Audience.PUBLIC)
    expected = {route.key: "NONE" if route.audience in by_function else "AWS_IAM" for route in EVENT_ROUTES}
    found = {
        each["RouteKey"]: each["AuthorizationType"] for each in properties(event_plane, "AWS::ApiGatewayV2::Route")
    }
    assert found == expected
    assert set(found.values()) == {"NONE", "AWS_IAM"}


def test_every_tenants_route_needs_a_scope(event_plane: Json) -> None:
    assert properties(event_plane, "AWS::ApiGatewayV2::Route")
    for route in EVENT_ROUTES:
        assert (route.scope is not None) == (route.audience is Audience.TENANT), route.key


def test_every_route_calls_the_function_that_serves_it(event_plane: Json, event_function_ids: dict[str, str]) -> None:
    def serving(key: str) -> str:
        if key in INGEST_ROUTES:
            return "ingest"
        if key in PUBLIC:
            return "receive"
        is_operators = "/tenants/{tenantId}" in key or key in (LIST_PURGES.key, LIST_TROUBLES.key)
        return "event_operators" if is_operators else "tenant_events"

    called = {}
    for route in properties(event_plane, "AWS::ApiGatewayV2::Route"):
        integration = event_plane["Resources"][route["Target"]["Fn::Join"][1][1]["Ref"]]["Properties"]
        called[route["RouteKey"]] = integration["IntegrationUri"]["Fn::GetAtt"][0]
    assert called == {key: event_function_ids[serving(key)] for key in called}
    assert {route.key for route in EVENT_ROUTES} == set(called)


def test_every_route_has_its_own_throttle_and_the_public_a_throttle_apart(event_plane: Json) -> None:
    (stage,) = properties(event_plane, "AWS::ApiGatewayV2::Stage")
    throttles = {route.key: THROTTLES[route.rate] for route in EVENT_ROUTES}
    public = [route for route in EVENT_ROUTES if route.audience is Audience.PUBLIC]
    assert {route.rate for route in public} == {Rate.SUBMISSIONS}
    assert not [route for route in EVENT_ROUTES if route.rate is Rate.SUBMISSIONS and route not in public]
    assert stage["RouteSettings"] == {
        key: {"ThrottlingRateLimit": each.per_second, "ThrottlingBurstLimit": each.burst}
        for key, each in throttles.items()
    }


def test_a_few_requests_of_strangers_do_not_use_up_the_throttle_of_a_tenants_route() -> None:
    # API Gateway counts requests before the function looks at their keys.
    open_to_all = [route for route in EVENT_ROUTES if route.audience is Audience.TENANT]
    assert open_to_all
    assert all(THROTTLES[route.rate].per_second >= 500 for route in open_to_all)


def test_credentials_for_events_are_throttled_like_those_for_queues() -> None:
    # Each of them starts a session of STS, whose rate limit the whole account shares.
    assert GET_CREDENTIALS.rate is Rate.CREDENTIALS


def test_only_api_gateway_has_the_proof_and_the_functions_have_its_digest(
    event_plane: Json, event_function_ids: dict[str, str]
) -> None:
    proof, _ = the_only(event_plane, "Custom::ApiProof")
    value, digest = ({"Fn::GetAtt": [proof, attribute]} for attribute in ("Value", "Digest"))
    (stage,) = properties(event_plane, "AWS::ApiGatewayV2::Stage")
    assert stage["StageVariables"] == {PROOF_VARIABLE: value}
    has_digest = {
        name
        for name, function in event_function_ids.items()
        if variables_of(event_plane, function).get("BERTH_API_PROOF_DIGEST") == digest
    }
    assert has_digest == {*FACING_THE_INTERNET, "event_operators"}
    assert json.dumps(event_plane).count(json.dumps(value)) == 1


def test_api_gateway_may_call_each_function_for_this_api_only(event_plane: Json) -> None:
    api, _ = the_only(event_plane, "AWS::ApiGatewayV2::Api")
    allowed = [
        each
        for each in properties(event_plane, "AWS::Lambda::Permission")
        if each["Principal"].startswith("apigateway")
    ]
    assert len(allowed) == 4
    assert {spelled(each["SourceArn"]) for each in allowed} == {
        f"arn:<AWS::Partition>:execute-api:<AWS::Region>:<AWS::AccountId>:<{api}>/*/*/*"
    }


def policies_for(event_plane: Json) -> dict[str, list[Json]]:
    """The statements of the managed policies, by who they are for."""
    return {
        name.removeprefix("EventsApi").removeprefix("Api")[:8]: each["Properties"]["PolicyDocument"]["Statement"]
        for name, each in event_plane["Resources"].items()
        if each["Type"] == "AWS::IAM::ManagedPolicy"
    }


def allows_routes_for(statement: Json, *audiences: Audience) -> bool:
    """True if the statement allows the routes for these audiences, and no other."""
    resources = statement["Resource"]
    allowed = [spelled(each).partition("/")[2] for each in (resources if isinstance(resources, list) else [resources])]
    return all(
        any(
            fnmatchcase(f"$default/{route.method}{route.path.replace('{tenantId}', 'acme')}", pattern)
            for pattern in allowed
        )
        == (route.audience in audiences)
        for route in EVENT_ROUTES
    )


def test_a_receiver_may_get_credentials_for_events_and_nothing_else(event_plane: Json) -> None:
    (routes,) = policies_for(event_plane)["Receiver"]
    assert allows_routes_for(routes, Audience.RECEIVER)


def test_an_operator_may_call_every_route_for_operators_and_receivers_and_find_the_api(event_plane: Json) -> None:
    routes, stack = policies_for(event_plane)["Operator"]
    assert allows_routes_for(routes, Audience.OPERATOR, Audience.RECEIVER)
    assert (stack["Action"], spelled(stack["Resource"])) == ("cloudformation:DescribeStacks", "<AWS::StackId>")


# The functions

EVERY_VARIABLE = {
    "BERTH_LINGER_SECONDS",
    "BERTH_LOCATION",
    "BERTH_METRICS_NAMESPACE",
    "BERTH_NAME",
    "BERTH_SERVICE",
    "BERTH_TABLE",
    "BERTH_VERSION",
}
ACCEPTS = {"BERTH_EVENTS_TABLE", "BERTH_CONTENTS_BUCKET", "BERTH_API_PROOF_DIGEST"}
QUEUES = {"BERTH_FIRST_QUEUE", "BERTH_LATER_QUEUE"}
READS = ACCEPTS | QUEUES | {"BERTH_SECRETS_KEY", "BERTH_EVENTS_ENVIRONMENT", "BERTH_OWN_HOSTS"}
DISPATCHES = QUEUES | {"BERTH_EVENTS_TABLE", "BERTH_CONTENTS_BUCKET"}


@pytest.mark.parametrize(
    ("name", "variables"),
    [
        ("ingest", ACCEPTS),
        ("receive", ACCEPTS | {"BERTH_SECRETS_KEY"}),
        ("tenant_events", READS),
        ("event_operators", READS | {"BERTH_DEAD_LETTER_QUEUES"}),
        ("count_usage", {"BERTH_PARKED_RECORDS_QUEUE", "BERTH_PUBLISH_EVENTS_FUNCTION"}),
        ("bill_usage", {"BERTH_EVENTS_TABLE"}),
        ("dispatch_events", DISPATCHES),
        ("deliver_events", DISPATCHES | {"BERTH_SECRETS_KEY", "BERTH_OWN_HOSTS"}),
        ("sweep_deliveries", DISPATCHES),
        ("recover_deliveries", {"BERTH_EVENTS_TABLE"}),
        ("redispatch_events", DISPATCHES),
        ("purge_events", {"BERTH_EVENTS_TABLE", "BERTH_CONTENTS_BUCKET", "BERTH_PURGE_SETTLE_SECONDS"}),
        ("find_purges", {"BERTH_PURGE_MACHINE"}),
        ("unfinished_work", {"BERTH_EVENTS_TABLE"}),
        ("publish_events", {"BERTH_OWN_EVENTS_BUS", "BERTH_PARKED_RECORDS_QUEUE"}),
        ("api_proof", {"BERTH_STACK_ID", "BERTH_API", "BERTH_API_STAGE"}),
    ],
)
def test_a_function_has_only_the_variables_that_it_needs(
    event_plane: Json, event_function_ids: dict[str, str], name: str, variables: set[str]
) -> None:
    found = variables_of(event_plane, event_function_ids[name])
    assert {each for each in found if each.startswith("BERTH_")} - EVERY_VARIABLE == variables
    assert (found["BERTH_NAME"], found["BERTH_METRICS_NAMESPACE"]) == ("Berth", "Berth")


def test_keys_are_of_the_environment_in_the_settings(
    event_plane: Json, events_with_other_settings: Template, event_function_ids: dict[str, str]
) -> None:
    for name in ("tenant_events", "event_operators"):
        function = event_function_ids[name]
        assert variables_of(event_plane, function)["BERTH_EVENTS_ENVIRONMENT"] == "live"
        assert variables_of(events_with_other_settings.to_json(), function)["BERTH_EVENTS_ENVIRONMENT"] == "staging"


def test_concurrency_can_be_reserved_for_each_function_that_faces_the_internet_apart(
    event_plane: Json, events_with_other_settings: Template, event_function_ids: dict[str, str]
) -> None:
    def reserved(template: Json) -> Json:
        functions = {name: template["Resources"][each]["Properties"] for name, each in event_function_ids.items()}
        return {
            name: each["ReservedConcurrentExecutions"]
            for name, each in functions.items()
            if "ReservedConcurrentExecutions" in each
        }

    assert reserved(event_plane) == {}
    assert reserved(events_with_other_settings.to_json()) == {
        "ingest": 30,
        "receive": 20,
        "tenant_events": 10,
        "deliver_events": 8,
        "sweep_deliveries": 1,
    }


# The streams


@pytest.fixture
def mappings(event_plane: Json, event_function_ids: dict[str, str]) -> dict[str, Json]:
    """The mapping of each function that Lambda calls with records of a stream or messages of a queue."""
    names = {logical_id: name for name, logical_id in event_function_ids.items()}
    found = properties(event_plane, "AWS::Lambda::EventSourceMapping")
    return {names[each["FunctionName"]["Ref"]]: each for each in found}


def test_usage_is_counted_from_inserted_events_only(event_plane: Json, mappings: dict[str, Json]) -> None:
    mapping = mappings["count_usage"]
    table, _ = the_only(event_plane, "AWS::DynamoDB::Table")
    assert mapping["EventSourceArn"] == {"Fn::GetAtt": [table, "StreamArn"]}
    pattern, _ = (json.loads(each["Pattern"]) for each in mapping["FilterCriteria"]["Filters"])
    assert pattern == {"eventName": ["INSERT"], "dynamodb": {"Keys": {"pk": {"S": [{"prefix": "TENANT_ID#"}]}}}}


def test_usage_is_counted_no_more_often_than_functions_read_it(mappings: dict[str, Json]) -> None:
    """A batch costs as much as an event: with one per second, a tenant that sends slowly would cost nearly twice."""
    mapping = mappings["count_usage"]
    assert mapping["MaximumBatchingWindowInSeconds"] == REMEMBERED_SECONDS
    assert mapping["BatchSize"] == 500


def test_a_record_that_cannot_be_counted_is_parked_and_blocks_no_other(
    event_plane: Json, mappings: dict[str, Json]
) -> None:
    mapping = mappings["count_usage"]
    assert mapping["BisectBatchOnFunctionError"] is False
    assert mapping["MaximumRetryAttempts"] > 0
    assert mapping["ParallelizationFactor"] > 1
    queue = mapping["DestinationConfig"]["OnFailure"]["Destination"]["Fn::GetAtt"][0]
    assert event_plane["Resources"][queue]["Type"] == "AWS::SQS::Queue"


# Berth's own events


def test_own_events_are_published_from_the_rows_that_say_that_something_ended(mappings: dict[str, Json]) -> None:
    mapping = mappings["publish_events"]
    assert "TenantsTable97BAC775StreamArn" in spelled(mapping["EventSourceArn"])
    history, rollouts, connections = (json.loads(each["Pattern"]) for each in mapping["FilterCriteria"]["Filters"])
    assert history["eventName"] == ["INSERT"]
    assert history["dynamodb"] == {
        "Keys": {"pk": {"S": [{"prefix": "HISTORY#"}]}},
        "NewImage": {"Status": {"S": ["Success", "Failure"]}},
    }
    assert rollouts["dynamodb"] == {
        "Keys": {"pk": {"S": [{"prefix": "ROLLOUT#"}]}, "sk": {"S": ["PLAN"]}},
        "NewImage": {"Status": {"S": ["HALTED", "SUCCEEDED"]}},
    }
    assert connections["dynamodb"] == {
        "Keys": {"sk": {"S": [{"prefix": "CONN#"}]}},
        "NewImage": {"status": {"S": ["disabled"]}},
    }


def test_deliveries_that_failed_for_good_are_published_by_way_of_the_function_that_counts(
    mappings: dict[str, Json],
) -> None:
    """The stream of events should have no third reader."""
    _, deliveries = (json.loads(each["Pattern"]) for each in mappings["count_usage"]["FilterCriteria"]["Filters"])
    assert deliveries == {
        "dynamodb": {"Keys": {"sk": {"S": [{"prefix": "DLV#"}]}}, "NewImage": {"state": {"S": ["failed"]}}}
    }


def test_a_change_is_published_from_the_first_record_on_and_tried_as_long_as_the_stream_has_it(
    event_plane: Json, mappings: dict[str, Json]
) -> None:
    mapping = mappings["publish_events"]
    assert mapping["StartingPosition"] == "TRIM_HORIZON"
    assert (mapping["MaximumRetryAttempts"], mapping["BisectBatchOnFunctionError"]) == (10_000, True)
    assert "MaximumRecordAgeInSeconds" not in mapping
    queue = mapping["DestinationConfig"]["OnFailure"]["Destination"]["Fn::GetAtt"][0]
    assert event_plane["Resources"][queue]["Type"] == "AWS::SQS::Queue"


def test_no_stream_has_more_than_two_readers(mappings: dict[str, Json]) -> None:
    """AWS throttles a third one."""
    readers = Counter(spelled(each["EventSourceArn"]) for each in mappings.values())
    assert max(readers.values()) <= 2


def test_the_bus_has_the_name_of_the_control_plane(event_plane: Json) -> None:
    _, bus = the_only(event_plane, "AWS::Events::EventBus")
    assert bus["Properties"]["Name"] == Names().own_events_bus == "Berth"
    assert "Policy" not in bus["Properties"], "no other account may publish"


def test_the_operators_own_tenant_is_the_only_one_whose_events_the_publisher_may_write(
    events_with_operators_tenant: Json, event_names: dict[str, str]
) -> None:
    functions = functions_in(events_with_operators_tenant)
    function = events_with_operators_tenant["Resources"][functions["publish_events"]]["Properties"]
    assert function["Environment"]["Variables"]["BERTH_OPERATORS_TENANT"] == "operators"
    added = grants(events_with_operators_tenant, function["Role"]["Fn::GetAtt"][0], event_names)
    assert {label: actions for label, actions in added.items() if "table" in label or label == "contents"} == {
        of_tenants("EVENTS#operators"): {"dynamodb:GetItem"},
        "the tenants' table, rows TENANT_ID#operators, only pk, sk, CreatedAt, WithdrawnBy": {"dynamodb:GetItem"},
        of_events("TENANT_ID#operators#*", "IDEM#operators#*"): {"dynamodb:PutItem"},
        "contents": {"s3:PutObject"},
    }
    life = TenantEpoch(TenantId.parse("operators"), "e1")
    assert event_keys.settings_key(life.tenant)["pk"]["S"] == "EVENTS#operators"
    assert fnmatchcase(event_keys.shard_pk(life, 0), "TENANT_ID#operators#*")
    assert fnmatchcase(event_keys.idempotency_key(life, "api", "k")["pk"]["S"], "IDEM#operators#*")


def test_there_is_an_alarm_for_an_operators_tenant_that_accepts_no_events(
    event_plane: Json, events_with_operators_tenant: Json
) -> None:
    added = set(alarms_of(events_with_operators_tenant)) - set(alarms_of(event_plane))
    assert added == {"OperatorsTenantMissing"}
    description = alarms_of(events_with_operators_tenant)["OperatorsTenantMissing"]["AlarmDescription"]
    assert "`berth events settings operators --plan PLAN`" in description


# The end of a tenant


def test_purges_are_looked_for_after_every_delete_and_every_hour(
    event_plane: Json, event_function_ids: dict[str, str]
) -> None:
    find_purges = {"Fn::GetAtt": [event_function_ids["find_purges"], "Arn"]}
    rules = [each for each in properties(event_plane, "AWS::Events::Rule") if each["Targets"][0]["Arn"] == find_purges]
    (pattern,) = (rule["EventPattern"] for rule in rules if "EventPattern" in rule)
    (schedule,) = (rule["ScheduleExpression"] for rule in rules if "ScheduleExpression" in rule)
    assert pattern["source"] == ["aws.states"]
    assert pattern["detail"]["status"] == ["SUCCEEDED"]
    (machine,) = pattern["detail"]["stateMachineArn"]
    assert machine == {"Fn::ImportValue": "Berth:ExportsOutputRefMachinesDelete586885037B384EAA"}
    assert schedule == "rate(1 hour)"
    for rule in rules:
        (target,) = rule["Targets"]
        assert "DeadLetterConfig" in target


def test_the_machine_runs_its_own_workflow_and_may_only_call_its_function(
    event_plane: Json, event_function_ids: dict[str, str], event_names: dict[str, str]
) -> None:
    _, resource = the_only(event_plane, "AWS::StepFunctions::StateMachine")
    machine = resource["Properties"]
    assert machine["DefinitionString"] == definition("purge_events", Settings())
    function = {"Fn::GetAtt": [event_function_ids["purge_events"], "Arn"]}
    assert machine["DefinitionSubstitutions"] == {"PurgeEventsFunctionArn": function}
    allowed = grants(event_plane, machine["RoleArn"]["Fn::GetAtt"][0], event_names)
    assert allowed.pop("*") <= WITHOUT_RESOURCES["X-Ray"] | WITHOUT_RESOURCES["log delivery"]
    assert allowed == {"the function purge_events": {"lambda:InvokeFunction"}}


def test_the_machine_is_traced_and_logs_without_execution_data(event_plane: Json) -> None:
    _, machine = the_only(event_plane, "AWS::StepFunctions::StateMachine")
    assert machine["Properties"]["TracingConfiguration"] == {"Enabled": True}
    assert machine["Properties"]["LoggingConfiguration"]["IncludeExecutionData"] is False


def test_a_purge_waits_longer_than_any_function_of_the_event_plane_runs(
    event_plane: Json, event_function_ids: dict[str, str]
) -> None:
    settle = int(variables_of(event_plane, event_function_ids["purge_events"])["BERTH_PURGE_SETTLE_SECONDS"])
    timeouts = [event_plane["Resources"][each]["Properties"]["Timeout"] for each in event_function_ids.values()]
    assert settle == 900 > 2 * max(timeouts)
    step = event_plane["Resources"][event_function_ids["purge_events"]]["Properties"]["Timeout"]
    assert timedelta(seconds=settle + step) < HEARTBEAT_IS_LOST_AFTER


# What is watched


def test_there_is_an_alarm_for_everything_that_needs_an_operator(event_plane: Json) -> None:
    """Alarms of the control plane are about failed calls, throttled calls and dead executions of the event plane."""
    assert set(alarms_of(event_plane)) == {
        "EventsApiServerErrors",
        "EventStreamLate",
        "EventsPutItemThrottled",
        "UsageNotCounted",
        "UsageNotBilled",
        "PurgesNotFound",
        "PurgesStuck",
        "OwnEventsLate",
        "OwnEventsNotPublished",
        "DispatchLate",
        "DeliveriesLate",
        "DeliveriesLost",
        "DeliveriesNotRecovered",
        "EventsNotRedispatched",
        "DeliveryErrors",
        "RedispatchCutShort",
        "SweepNotRunning",
        "UnreadableRows",
    }


def test_the_operators_function_knows_every_dead_letter_queue(
    event_plane: Json, event_function_ids: dict[str, str]
) -> None:
    known = json.loads(
        spelled(variables_of(event_plane, event_function_ids["event_operators"])["BERTH_DEAD_LETTER_QUEUES"])
    )
    queues = {name for name, each in event_plane["Resources"].items() if each["Type"] == "AWS::SQS::Queue"}
    emptied = {name for name in queues if name.removeprefix("DeliveryQueues")[:-8] in OF_FUNCTIONS}
    assert len(emptied) == len(OF_FUNCTIONS)
    assert {each.strip("<>") for each in known.values()} == queues - emptied


def test_the_dashboard_has_the_name_of_the_stack_and_every_graph_a_title_of_its_own(
    events_with_dashboard: Json,
) -> None:
    (dashboard,) = properties(events_with_dashboard, "AWS::CloudWatch::Dashboard")
    assert dashboard["DashboardName"] == "BerthEvents"
    titles = [each["properties"]["title"] for each in json.loads(spelled(dashboard["DashboardBody"]))["widgets"]]
    assert len(set(titles)) == len(titles)
    assert {"Events: requests", "Events: age of the stream", "Events table: throttled requests"} <= set(titles)


# Permissions

MAX_MANAGED_POLICY = 6_144
"""The quota of characters of a managed policy, without blanks. It cannot be raised."""
LONGEST = {"<AWS::Partition>": "aws-us-gov", "<AWS::Region>": "ap-southeast-2", "<AWS::AccountId>": "1" * 12}


def test_the_policies_for_the_routes_fit_into_managed_policies(event_plane: Json) -> None:
    for policy in properties(event_plane, "AWS::IAM::ManagedPolicy"):
        resources = [
            spelled(each)
            for statement in policy["PolicyDocument"]["Statement"]
            for each in listed(statement["Resource"])
        ]
        text = json.dumps(resources, separators=(",", ":"))
        for name, value in LONGEST.items():
            text = text.replace(name, value)
        # Other references are ids, which are shorter in AWS. The actions of the statements fit into the rest.
        assert len(text) < MAX_MANAGED_POLICY - 300


CONFIGURATION = [CONFIGURATION_ROWS, KEY_ROWS, SOURCE_ROWS, FORM_ROWS]


def of_tenants(*rows: str) -> str:
    return f"the tenants' table, rows {' and '.join(rows)}"


def of_events(*rows: str) -> str:
    return f"the events' table, rows {' and '.join(rows)}"


LISTED = f"the tenants' index, rows {LISTED_SETTINGS} and {LISTED_PURGES}"

SEES_WHETHER_TENANTS_LIVE: Grants = {
    "the tenants' table, rows TENANT_ID#*, only pk, sk, CreatedAt, WithdrawnBy": {"dynamodb:GetItem"}
}
CHECKS_KEYS: Grants = {
    of_tenants(KEY_ROWS, CONFIGURATION_ROWS): {"dynamodb:GetItem"},
    of_tenants(LIFE_ROWS): {"dynamodb:UpdateItem"},
    **SEES_WHETHER_TENANTS_LIVE,
}
ACCEPTS_EVENTS: Grants = {
    of_events(EVENT_ROWS, REPETITION_ROWS): {"dynamodb:PutItem"},
    "contents": {"s3:PutObject"},
}
READS_AND_CONFIGURES: Grants = {
    of_tenants(*CONFIGURATION): {
        "dynamodb:GetItem",
        "dynamodb:BatchGetItem",
        "dynamodb:Query",
        "dynamodb:PutItem",
        "dynamodb:UpdateItem",
        "dynamodb:DeleteItem",
    },
    "the key for secrets, for a tenant's epoch": {"kms:Encrypt"},
    of_events(EVENT_ROWS): {
        "dynamodb:GetItem",
        "dynamodb:BatchGetItem",
        "dynamodb:Query",
        "dynamodb:PutItem",
        "dynamodb:UpdateItem",
    },
    of_events(CHANGE_ROWS): {"dynamodb:PutItem", "dynamodb:Query"},
    of_events(DELIVERY_ROWS): {"dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query", "dynamodb:PutItem"},
    of_events(REPLAY_ROWS): {"dynamodb:GetItem", "dynamodb:Query", "dynamodb:PutItem"},
    "other tries": {"sqs:SendMessage"},
    "the index by status": {"dynamodb:Query"},
    "the index by type": {"dynamodb:Query"},
    "contents": {"s3:GetObject"},
    "the bucket of contents": {"s3:ListBucket"},
}
RECEIVES = {
    "sqs:ReceiveMessage",
    "sqs:DeleteMessage",
    "sqs:ChangeMessageVisibility",
    "sqs:GetQueueAttributes",
    "sqs:GetQueueUrl",
}
"""The actions with which Lambda polls a queue."""
SENDS_MESSAGES: Grants = {"first tries": {"sqs:SendMessage"}, "other tries": {"sqs:SendMessage"}}
READS_CONTENTS: Grants = {"contents": {"s3:GetObject"}, "the bucket of contents": {"s3:ListBucket"}}
DISPATCHES_EVENTS: Grants = {
    of_tenants(*CONNECTION_ROWS): {"dynamodb:Query"},
    of_events(EVENT_ROWS, DELIVERY_ROWS): {"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"},
    **SENDS_MESSAGES,
    **READS_CONTENTS,
}
CHANGES_DELIVERIES: Grants = {
    of_events(EVENT_ROWS, DELIVERY_ROWS): {
        "dynamodb:GetItem",
        "dynamodb:PutItem",
        "dynamodb:UpdateItem",
        "dynamodb:DeleteItem",
    },
}
CHANGES_CONNECTIONS: Grants = {
    of_tenants(*CONNECTION_ROWS): {"dynamodb:GetItem", "dynamodb:UpdateItem"},
    of_events(CHANGE_ROWS): {"dynamodb:PutItem"},
}
FUNCTIONS: dict[str, Grants] = {
    "ingest": {**CHECKS_KEYS, **ACCEPTS_EVENTS},
    "receive": {
        of_tenants(SOURCE_ROWS, FORM_ROWS, CONFIGURATION_ROWS): {"dynamodb:GetItem"},
        **SEES_WHETHER_TENANTS_LIVE,
        "the key for secrets, for a tenant's epoch": {"kms:Decrypt"},
        **ACCEPTS_EVENTS,
    },
    "tenant_events": {**CHECKS_KEYS, **READS_AND_CONFIGURES},
    "event_operators": {
        **READS_AND_CONFIGURES,
        **SEES_WHETHER_TENANTS_LIVE,
        f"{LISTED} and {LISTED_FINISHED_PURGES} and {LISTED_CARE} and {LISTED_DISABLED}": {"dynamodb:Query"},
        "dead letters: events that were not counted": {"sqs:GetQueueAttributes"},
        "dead letters: counts for bills": {"sqs:GetQueueAttributes"},
        "dead letters: searches for deleted tenants": {"sqs:GetQueueAttributes"},
        "dead letters: Berth's own events": {"sqs:GetQueueAttributes"},
        "dead letters: deliveries that could not be recovered": {"sqs:GetQueueAttributes"},
        "dead letters: redispatches of events": {"sqs:GetQueueAttributes"},
    },
    "count_usage": {
        of_tenants(CONFIGURATION_ROWS): {"dynamodb:BatchGetItem"},
        of_tenants(LIFE_ROWS): {"dynamodb:UpdateItem"},
        "the events' stream": {"dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"},
        "*": EVERY_FUNCTION["*"] | {"dynamodb:ListStreams"},
        "the function publish_events": {"lambda:InvokeFunction"},
        "dead letters: events that were not counted": {
            "sqs:SendMessage",
            "sqs:GetQueueAttributes",
            "sqs:GetQueueUrl",
        },
    },
    "bill_usage": {
        of_tenants(CONFIGURATION_ROWS): {"dynamodb:BatchGetItem"},
        of_tenants(LIFE_ROWS): {"dynamodb:UpdateItem"},
        "the tenants' index, rows EVENTS#SETTINGS": {"dynamodb:Query"},
        f"{of_events(EVENT_ROWS)}, to count them": {"dynamodb:Query"},
        "dead letters: counts for bills": {"sqs:SendMessage"},
    },
    "dispatch_events": {
        **DISPATCHES_EVENTS,
        "the events' stream": {"dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"},
        "*": EVERY_FUNCTION["*"] | {"dynamodb:ListStreams"},
        "batches of the stream": {"sqs:SendMessage", "sqs:GetQueueAttributes", "sqs:GetQueueUrl"},
    },
    "deliver_events": {
        **CHANGES_DELIVERIES,
        **CHANGES_CONNECTIONS,
        **SENDS_MESSAGES,
        **READS_CONTENTS,
        "first tries": RECEIVES | {"sqs:SendMessage"},
        "other tries": RECEIVES | {"sqs:SendMessage"},
        of_tenants(CONFIGURATION_ROWS): {"dynamodb:GetItem"},
        "the tenants' table, rows TENANT_ID#*, only pk, sk, CreatedAt, WithdrawnBy, InboundQueueUrl, Tier": {
            "dynamodb:GetItem"
        },
        "tenant queues": {"sqs:SendMessage"},
        "the key for secrets, for a tenant's epoch": {"kms:Decrypt"},
    },
    "sweep_deliveries": {
        **DISPATCHES_EVENTS,
        **CHANGES_DELIVERIES,
        of_events(DELIVERY_ROWS): {"dynamodb:BatchGetItem"},
        **CHANGES_CONNECTIONS,
        of_tenants(*CONNECTION_ROWS): {
            "dynamodb:Query",
            "dynamodb:GetItem",
            "dynamodb:UpdateItem",
            "dynamodb:BatchGetItem",
        },
        of_tenants(*CONNECTION_ROWS, LIFE_ROWS): {"dynamodb:DeleteItem"},
        f"the tenants' index, rows {LISTED_CARE}": {"dynamodb:Query"},
        f"the index by status, rows {DUE_INDEX_ROWS} and {PARKED_INDEX_ROWS} and {REPLAY_INDEX_ROWS}": {
            "dynamodb:Query"
        },
        of_events(EVENT_ROWS): {"dynamodb:Query"},
        of_events(REPLAY_ROWS): {"dynamodb:BatchGetItem", "dynamodb:PutItem"},
    },
    "recover_deliveries": {**CHANGES_DELIVERIES, "lost messages": RECEIVES},
    "redispatch_events": {
        **DISPATCHES_EVENTS,
        of_events(EVENT_ROWS): {"dynamodb:Query"},
        f"the tenants' index, rows {LISTED_SETTINGS}": {"dynamodb:Query"},
        "batches of the stream": RECEIVES,
        "dead letters: redispatches of events": {"sqs:SendMessage"},
    },
    "purge_events": {
        of_tenants(*CONFIGURATION): {
            "dynamodb:GetItem",
            "dynamodb:Query",
            "dynamodb:UpdateItem",
            "dynamodb:DeleteItem",
        },
        of_events(EVENT_ROWS, DELIVERY_ROWS, CHANGE_ROWS, REPLAY_ROWS): {
            "dynamodb:Query",
            "dynamodb:BatchWriteItem",
        },
        "contents": {"s3:DeleteObject"},
        "the bucket of contents": {"s3:ListBucket"},
    },
    "find_purges": {
        of_tenants(CONFIGURATION_ROWS): {"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:DeleteItem"},
        **SEES_WHETHER_TENANTS_LIVE,
        LISTED: {"dynamodb:Query"},
        "the machine purge_events": {"states:StartExecution"},
        "dead letters: searches for deleted tenants": {"sqs:SendMessage"},
    },
    "unfinished_work": {
        of_tenants(CONFIGURATION_ROWS): {"dynamodb:GetItem", "dynamodb:Query"},
        **SEES_WHETHER_TENANTS_LIVE,
        "the index by status": {"dynamodb:Query"},
        of_events(EVENT_ROWS): {"dynamodb:GetItem", "dynamodb:BatchGetItem"},
    },
    "publish_events": {
        "the tenants' stream": {"dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"},
        "*": EVERY_FUNCTION["*"] | {"dynamodb:ListStreams"},
        "the bus of Berth's own events": {"events:PutEvents"},
        "dead letters: Berth's own events": {"sqs:SendMessage", "sqs:GetQueueAttributes", "sqs:GetQueueUrl"},
    },
    "api_proof": {
        "the stack itself": {"cloudformation:DescribeStackResource", "cloudformation:DescribeStacks"},
        "the API's stage": {"apigateway:GET"},
    },
}


def test_every_function_is_in_the_table(event_function_ids: dict[str, str]) -> None:
    assert set(event_function_ids) == set(FUNCTIONS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_has_exactly_these_permissions(
    event_plane: Json, event_function_ids: dict[str, str], event_names: dict[str, str], name: str
) -> None:
    function = event_plane["Resources"][event_function_ids[name]]["Properties"]
    own_log_group = {f"<{function['LoggingConfig']['LogGroup']['Ref']}.Arn>": "its own log group"}
    role = function["Role"]["Fn::GetAtt"][0]
    assert grants(event_plane, role, event_names | own_log_group) == EVERY_FUNCTION | FUNCTIONS[name]


def test_functions_do_not_share_roles(event_plane: Json, event_function_ids: dict[str, str]) -> None:
    roles = {spelled(event_plane["Resources"][each]["Properties"]["Role"]) for each in event_function_ids.values()}
    assert len(roles) == len(event_function_ids)


@pytest.mark.parametrize("name", ["ingest", "receive"])
def test_a_function_that_takes_events_can_neither_read_nor_change_nor_delete_one(name: str) -> None:
    allowed = {
        action for label, actions in FUNCTIONS[name].items() if "the events' table" in label for action in actions
    }
    assert allowed == {"dynamodb:PutItem"}
    assert FUNCTIONS[name]["contents"] == {"s3:PutObject"}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_function_of_the_event_plane_may_change_a_tenant_or_read_more_of_it_than_its_life(
    event_plane: Json, event_function_ids: dict[str, str], name: str
) -> None:
    """Except for the stream, which cannot be limited to rows: one function reads it, through a filter."""
    role = event_plane["Resources"][event_function_ids[name]]["Properties"]["Role"]["Fn::GetAtt"][0]
    tenant = tenant_pk(TenantId.parse("acme"))
    for holder, statement in statements(event_plane):
        rows = statement.get("Condition", {}).get("ForAllValues:StringLike", {}).get("dynamodb:LeadingKeys")
        if holder != role or "TenantsTable" not in spelled(statement["Resource"]):
            continue
        if "StreamArn" in spelled(statement["Resource"]):
            assert name == "publish_events"
            continue
        assert rows, "every permission on the tenants' table is limited to some rows"
        if any(fnmatchcase(tenant, row) for row in rows):
            assert listed(statement["Action"]) == ["dynamodb:GetItem"]
            attributes = statement["Condition"]["ForAllValues:StringEquals"]["dynamodb:Attributes"]
            # Only the function that sends to tenants' queues also sees where they are.
            allowed = QUEUE_ATTRIBUTES if name == "deliver_events" else LIFE_ATTRIBUTES
            assert set(attributes) == {"pk", "sk", *allowed}


def test_the_life_of_a_tenant_is_read_with_the_attributes_that_the_policy_allows() -> None:
    asked: dict[str, Any] = {}

    class Recorder:
        def get_item(self, **given: Any) -> Json:
            asked.update(given)
            return {}

    client: Any = Recorder()
    DynamoTenants(client, "table").incarnation(TenantId.parse("acme"))
    assert {each.strip() for each in asked["ProjectionExpression"].split(",")} == set(LIFE_ATTRIBUTES)


def test_each_pattern_of_rows_matches_exactly_the_keys_of_its_rows() -> None:
    life = TenantEpoch(TenantId.parse("acme"), "e1")
    in_tenants_table = {
        CONFIGURATION_ROWS: event_keys.configuration_pk(life),
        KEY_ROWS: event_keys.api_key_key("d" * 64)["pk"]["S"],
        SOURCE_ROWS: event_keys.source_key("src_1")["pk"]["S"],
        FORM_ROWS: event_keys.form_key("frm_1")["pk"]["S"],
        "TENANT_ID#*": tenant_pk(life.tenant),
    }
    in_events_table = {
        EVENT_ROWS: event_keys.shard_pk(life, 0),
        REPETITION_ROWS: event_keys.idempotency_key(life, "api", "k")["pk"]["S"],
        DELIVERY_ROWS: delivery_keys.deliveries_pk(life, "1"),
        CHANGE_ROWS: event_keys.changes_pk(life),
    }
    for partitions in (in_tenants_table, in_events_table):
        for rows, own in partitions.items():
            assert [pk for pk in partitions.values() if fnmatchcase(pk, rows)] == [own]
    assert fnmatchcase(event_keys.settings_key(life.tenant)["pk"]["S"], CONFIGURATION_ROWS)
    assert fnmatchcase(event_keys.configuration_pk(life), LIFE_ROWS)
    assert not fnmatchcase(event_keys.settings_key(life.tenant)["pk"]["S"], LIFE_ROWS)


@pytest.mark.parametrize("name", ["ingest", "receive", "count_usage", "bill_usage", "sweep_deliveries"])
def test_a_function_that_notes_something_cannot_change_the_settings_of_a_tenant(
    event_plane: Json, event_function_ids: dict[str, str], name: str
) -> None:
    """The settings have the tenant's plan, and the epoch by which its keys are valid."""
    role = event_plane["Resources"][event_function_ids[name]]["Properties"]["Role"]["Fn::GetAtt"][0]
    settings = event_keys.settings_key(TenantId.parse("acme"))["pk"]["S"]
    for holder, statement in statements(event_plane):
        rows = statement.get("Condition", {}).get("ForAllValues:StringLike", {}).get("dynamodb:LeadingKeys", [])
        if holder == role and any(fnmatchcase(settings, each) for each in rows):
            assert set(listed(statement["Action"])) <= {"dynamodb:GetItem", "dynamodb:BatchGetItem"}


def test_no_policy_allows_a_scan(event_plane: Json) -> None:
    assert not [each for _, each in documents(event_plane) if "dynamodb:Scan" in listed(each["Action"])]
