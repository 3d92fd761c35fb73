"""The event plane's template. Tests of what both stacks share are beside those of the control plane."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from aws_cdk.assertions import Template

from orchestrator.api.connection_routes import LIST_TROUBLES
from orchestrator.api.event_plane_routes import EVENT_ROUTES, INGEST_ROUTES
from orchestrator.api.event_read_routes import GET_CREDENTIALS
from orchestrator.api.event_usage_routes import LIST_PURGES
from orchestrator.api.route import Audience, Rate
from orchestrator.common.callers import PROOF_VARIABLE
from orchestrator.common.own_versions import berth_version
from orchestrator.events.content import Packed, content_key
from orchestrator.events.plans import Plan, time_to_live
from orchestrator.tenants.names import Names
from stacks.api.throttles import THROTTLES
from tests.fakes.events import ACME_LIFE
from tests.stacks.conftest import OF_FUNCTIONS
from tests.stacks.event_plane import Json, properties, the_only, variables_of
from tests.stacks.policies import listed, spelled, statements
from tests.stacks.released import KEY
from tests.stacks.test_alarms import alarms_of

PUBLIC = ("POST /forms/{formId}", "OPTIONS /forms/{formId}", "ANY /hooks/{sourceId}")
FACING_THE_INTERNET = ("ingest", "receive", "tenant_events")


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
    assert [each.rpartition(":")[2] for each in asked] == [name] * 2


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
    assert event_plane["Outputs"]["Version"]["Value"] == berth_version()
    assert not [output for output in event_plane["Outputs"].values() if "Export" in output]


def test_the_stack_is_far_below_the_maximum_number_of_resources(event_plane: Json) -> None:
    assert len(event_plane["Resources"]) < 400


# Tables and buckets


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
    here = "arn:<AWS::Partition>:cloudformation:<AWS::Region>:<AWS::AccountId>"
    assert (stack["Action"], spelled(stack["Resource"])) == (
        "cloudformation:DescribeStacks",
        f"{here}:stack/BerthEvents/*",
    )


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


# Alarms and the dashboard


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
