"""Attacks that the deployed permissions must deny."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from botocore.exceptions import ClientError

from orchestrator.adapters.dynamodb.keys import LISTING_INDEX, UNFINISHED_OPERATIONS, creates_key, listed_tenants
from orchestrator.api.queue_routes import GET_QUEUE
from orchestrator.api.routes import ROUTES
from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.credentials import TENANT_TAG
from orchestrator.tenants.records import TenantState
from stacks.common.function_code import function_names
from tests.e2e.deployed import Deployed, eventually
from tests.e2e.enforced.control_plane import ATTACKER, Enforced
from tests.e2e.operators import call

ANYTHING = {"Effect": "Allow", "Action": "*", "Resource": "*"}
KEY = {"pk": {"S": "HISTORY#acme"}, "sk": {"S": "2026-01-01T00:00:00.000Z#1"}}
FUNCTIONS = sorted(function_names() - {"start_rollout", "process_bounces"})
"""All but those that are deployed only with certain settings."""
APPENDING = {
    *("begin", "finish", "record_failure", "close_execution", "reconcile"),
    *("operators", "settle_tenant_queue", "tenant_metadata"),
}
"""The functions that append to history."""
UPDATE: dict[str, Any] = {
    "UpdateExpression": "SET #status = :status",
    "ExpressionAttributeNames": {"#status": "Status"},
    "ExpressionAttributeValues": {":status": {"S": "Failure"}},
}


def denied(call: Any, **request: Any) -> bool:
    try:
        call(**request)
    except ClientError as error:
        return error.response["Error"]["Code"] in ("AccessDenied", "AccessDeniedException")
    return False


def table_of(principal: Deployed) -> tuple[Any, str]:
    return principal.client("dynamodb"), principal.outputs["TableName"]


@pytest.fixture(scope="module")
def platform(enforced: Enforced) -> Deployed:
    policy = enforced.root.outputs["PlatformPolicyArn"]
    return enforced.principal("attacking-platform", policies=[policy], attacks=True)


@pytest.fixture(scope="module")
def operator(enforced: Enforced) -> Deployed:
    policy = enforced.root.outputs["OperatorPolicyArn"]
    return enforced.principal("attacking-operator", policies=[policy], attacks=True)


@pytest.fixture(scope="module")
def administrator(enforced: Enforced) -> Deployed:
    return enforced.principal("attacking-administrator", statements=[ANYTHING], attacks=True)


# The API


@pytest.mark.parametrize("route", [route.key for route in ROUTES if route is not GET_QUEUE])
def test_a_platform_may_only_ask_for_queues(platform: Deployed, route: str) -> None:
    method, path = re.sub(r"\{\w+\}", "acme", route).split(" ")
    assert platform.api().request(method, path).status == 403


def test_a_caller_without_a_policy_may_not_ask_for_a_queue(enforced: Enforced) -> None:
    nobody = enforced.principal("attacking-nobody", attacks=True)
    method, path = GET_QUEUE.key.replace("{tenantId}", "acme").split(" ")
    assert nobody.api().request(method, path).status == 403


def test_platforms_and_operators_may_not_invoke_functions_directly(platform: Deployed, operator: Deployed) -> None:
    for caller in (platform, operator):
        for function in (caller.outputs["GetQueueFunctionName"], caller.outputs["OperatorsFunctionName"]):
            assert denied(caller.client("lambda").invoke, FunctionName=function, Payload=b"{}")


@pytest.fixture(scope="module")
def tenants(enforced: Enforced) -> tuple[TenantId, TenantId]:
    first, second = TenantId("denied-1"), TenantId("denied-2")
    for tenant in (first, second):
        enforced.root.ask(tenant)
    for tenant in (first, second):
        assert enforced.root.settled(tenant).status == 200
    return first, second


def test_credentials_allow_only_one_kind_of_access_to_one_queue(
    enforced: Enforced, tenants: tuple[TenantId, TenantId]
) -> None:
    own, other = (str(enforced.platform.ask(tenant).body["queueUrl"]) for tenant in tenants)
    sender, receiver = (enforced.with_credentials(tenants[0], access) for access in ("send", "receive"))
    sender.send_message(QueueUrl=own, MessageBody="hello")
    assert receiver.receive_message(QueueUrl=own)["Messages"]

    assert denied(sender.send_message, QueueUrl=other, MessageBody="hello")
    assert denied(receiver.receive_message, QueueUrl=other)
    assert denied(sender.receive_message, QueueUrl=own)
    assert denied(receiver.send_message, QueueUrl=own, MessageBody="hello")
    assert denied(sender.delete_queue, QueueUrl=own)


def test_a_sender_gets_no_credentials_to_receive_and_a_receiver_none_to_send(
    enforced: Enforced, tenants: tuple[TenantId, TenantId]
) -> None:
    for policy, access in (("SenderPolicyArn", "receive"), ("ReceiverPolicyArn", "send")):
        caller = enforced.principal(f"wants-to-{access}", policies=[enforced.root.outputs[policy]], attacks=True)
        assert caller.api().request("POST", f"/tenants/{tenants[0]}/queue/credentials/{access}").status == 403
        assert caller.api().request("GET", f"/tenants/{tenants[0]}/queue").status == 403


def test_only_get_queue_may_assume_the_role_for_queues_and_only_with_a_tag_and_a_source_identity(
    enforced: Enforced, administrator: Deployed, tenants: tuple[TenantId, TenantId]
) -> None:
    function = enforced.root.outputs["GetQueueFunctionName"]
    settings = enforced.root.client("lambda").get_function_configuration(FunctionName=function)["Environment"]
    request: dict[str, Any] = {
        "RoleArn": settings["Variables"]["BERTH_QUEUE_ACCESS_ROLE"],
        "RoleSessionName": "attacker",
        "Tags": [{"Key": TENANT_TAG, "Value": tenants[0].value}],
        "SourceIdentity": "somebody",
    }
    assert denied(administrator.client("sts").assume_role, **request)

    taken_over = enforced.function("get_queue").client("sts")
    taken_over.assume_role(**request)
    untagged, anonymous = (
        {name: request[name] for name in request if name != omitted} for omitted in ("Tags", "SourceIdentity")
    )
    assert denied(taken_over.assume_role, **untagged)
    assert denied(taken_over.assume_role, **anonymous)


# The table


def test_an_operator_may_not_access_the_table(operator: Deployed) -> None:
    dynamodb, table = table_of(operator)
    assert denied(dynamodb.get_item, TableName=table, Key=KEY)
    assert denied(dynamodb.put_item, TableName=table, Item=KEY)
    assert denied(dynamodb.scan, TableName=table)


HISTORIES = {
    "a tenant's": KEY,
    "a rollout's": {**KEY, "pk": {"S": "HISTORY#ROLLOUT#20261116-083000-1a2b"}},
}
ELSEWHERE: dict[str, Any] = {"pk": {"S": "ELSEWHERE"}, "sk": {"S": "ROW"}}


@pytest.fixture(scope="module", params=HISTORIES)
def history(enforced: Enforced, request: pytest.FixtureRequest) -> dict[str, Any]:
    """A row of history. The account's root can write it."""
    dynamodb, table = table_of(enforced.root)
    row = {**HISTORIES[request.param], "Status": {"S": "Success"}}
    dynamodb.put_item(TableName=table, Item=row)
    return row


def changes(dynamodb: Any, table: str, row: dict[str, Any]) -> dict[str, tuple[Any, dict[str, Any]]]:
    """Every way to change, overwrite or delete a row."""
    key, over = {name: row[name] for name in ("pk", "sk")}, {**row, "Status": {"S": "Failure"}}
    where = f"WHERE pk = '{key['pk']['S']}' AND sk = '{key['sk']['S']}'"
    values = f"{{'pk': '{key['pk']['S']}', 'sk': '{key['sk']['S']}x', 'Status': 'Failure'}}"
    transact, batch, partiql = dynamodb.transact_write_items, dynamodb.batch_write_item, dynamodb.execute_statement
    put, update, delete = (
        {"Put": {"TableName": table, "Item": over}},
        {"Update": {"TableName": table, "Key": key, **UPDATE}},
        {"Delete": {"TableName": table, "Key": key}},
    )
    return {
        "put": (dynamodb.put_item, {"TableName": table, "Item": over}),
        "update": (dynamodb.update_item, {"TableName": table, "Key": key, **UPDATE}),
        "delete": (dynamodb.delete_item, {"TableName": table, "Key": key}),
        "put in a batch": (batch, {"RequestItems": {table: [{"PutRequest": {"Item": over}}]}}),
        "delete in a batch": (batch, {"RequestItems": {table: [{"DeleteRequest": {"Key": key}}]}}),
        "put in a transaction": (transact, {"TransactItems": [put]}),
        "update in a transaction": (transact, {"TransactItems": [update]}),
        "delete in a transaction": (transact, {"TransactItems": [delete]}),
        "insert by PartiQL": (partiql, {"Statement": f'INSERT INTO "{table}" VALUE {values}'}),
        "update by PartiQL": (partiql, {"Statement": f'UPDATE "{table}" SET "Status" = \'Failure\' {where}'}),
        "delete by PartiQL": (partiql, {"Statement": f'DELETE FROM "{table}" {where}'}),
    }


def test_an_administrator_may_not_write_history(
    enforced: Enforced, administrator: Deployed, history: dict[str, Any]
) -> None:
    dynamodb, table = table_of(administrator)
    key = {name: history[name] for name in ("pk", "sk")}
    assert dynamodb.get_item(TableName=table, Key=key)["Item"] == history, "reading is allowed"
    assert not [
        way for way, (change, request) in changes(dynamodb, table, ELSEWHERE).items() if denied(change, **request)
    ]

    allowed = [
        way for way, (change, request) in changes(dynamodb, table, history).items() if not denied(change, **request)
    ]
    assert allowed == []
    for write in ("Put", "Update", "Delete"):
        (hidden,) = changes(dynamodb, table, history)[f"{write.lower()} in a transaction"][1]["TransactItems"]
        harmless = {"Put": {"TableName": table, "Item": ELSEWHERE}}
        assert denied(dynamodb.transact_write_items, TransactItems=[harmless, hidden])

    root, _ = table_of(enforced.root)
    assert root.get_item(TableName=table, Key=key)["Item"] == history


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_may_not_change_history(enforced: Enforced, history: dict[str, Any], name: str) -> None:
    """The functions that append may overwrite a row. The next test shows that this is detected."""
    dynamodb, table = table_of(enforced.function(name))
    puts = {"put", "put in a transaction"} if name in APPENDING else set()
    allowed = {
        way
        for way, (change, request) in changes(dynamodb, table, history).items()
        if way not in puts and not denied(change, **request)
    }
    assert allowed == set()
    root, _ = table_of(enforced.root)
    key = {name: history[name] for name in ("pk", "sk")}
    assert root.get_item(TableName=table, Key=key)["Item"] == history


def test_a_row_of_history_that_a_function_overwrote_is_reported_as_altered(
    enforced: Enforced, tenants: tuple[TenantId, TenantId]
) -> None:
    tenant = tenants[1]
    dynamodb, table = table_of(enforced.function("finish"))
    root, _ = table_of(enforced.root)
    rows = root.query(
        TableName=table,
        KeyConditionExpression="pk = :pk",
        ExpressionAttributeValues={":pk": {"S": f"HISTORY#{tenant}"}},
    )["Items"]
    before = call(enforced.operator, "GET", f"/tenants/{tenant}").body["history"]
    assert [entry["altered"] for entry in before] == [False] * len(rows)

    dynamodb.put_item(TableName=table, Item={**rows[0], "Request": {"S": '{"by": "somebody else"}'}})

    after = call(enforced.operator, "GET", f"/tenants/{tenant}").body["history"]
    assert [entry["altered"] for entry in after] == [True, *[False] * (len(rows) - 1)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_may_access_only_its_own_rows(enforced: Enforced, name: str) -> None:
    dynamodb, table = table_of(enforced.function(name))
    elsewhere = {"pk": {"S": "ELSEWHERE"}, "sk": {"S": "ROW"}}
    assert denied(dynamodb.get_item, TableName=table, Key=elsewhere)
    assert denied(dynamodb.put_item, TableName=table, Item=elsewhere)
    assert denied(dynamodb.update_item, TableName=table, Key=elsewhere)
    assert denied(dynamodb.delete_item, TableName=table, Key=elsewhere)
    assert denied(dynamodb.scan, TableName=table)
    assert denied(
        dynamodb.query,
        TableName=table,
        KeyConditionExpression="pk = :pk",
        ExpressionAttributeValues={":pk": {"S": "ELSEWHERE"}},
    )


def test_get_queue_may_count_tenants_but_not_list_them(enforced: Enforced, tenants: tuple[TenantId, TenantId]) -> None:
    dynamodb, table = table_of(enforced.function("get_queue"))
    listed: dict[str, Any] = {
        "TableName": table,
        "IndexName": LISTING_INDEX,
        "KeyConditionExpression": "ListingKey = :key",
        "ExpressionAttributeValues": {":key": {"S": listed_tenants(TenantState.READY)}},
    }
    assert dynamodb.query(**listed, Select="COUNT")["Count"] >= len(tenants)
    assert denied(dynamodb.query, **listed)
    assert denied(dynamodb.query, **listed, Select="ALL_ATTRIBUTES")
    listed["ExpressionAttributeValues"] = {":key": {"S": UNFINISHED_OPERATIONS}}
    assert denied(dynamodb.query, **listed, Select="COUNT")


def of_one_partition(pk: str) -> dict[str, Any]:
    return {"KeyConditionExpression": "pk = :pk", "ExpressionAttributeValues": {":pk": {"S": pk}}}


def test_get_queue_may_change_only_the_counts_of_creates(enforced: Enforced) -> None:
    """With stacks that are kept ready it may also change tenants: see ``tests/stacks/test_permissions.py``."""
    dynamodb, table = table_of(enforced.function("get_queue"))
    counted = creates_key("an attacker's caller")
    dynamodb.update_item(TableName=table, Key=counted, **UPDATE)
    assert "Item" in dynamodb.get_item(TableName=table, Key=counted)
    assert denied(dynamodb.query, TableName=table, **of_one_partition(counted["pk"]["S"]))
    assert denied(dynamodb.delete_item, TableName=table, Key=counted)
    assert denied(dynamodb.delete_item, TableName=table, Key={**counted, "pk": {"S": "TENANT_ID#acme"}})
    for partition in ("RELEASE", "CREATES", "TENANT_ID#acme"):
        assert denied(dynamodb.update_item, TableName=table, Key={**counted, "pk": {"S": partition}}, **UPDATE)


def test_a_transaction_that_includes_rows_of_others_is_denied(enforced: Enforced) -> None:
    dynamodb, table = table_of(enforced.function("tenant_metadata"))
    own = {"pk": {"S": "TENANT_ID#acme"}, "sk": {"S": "ATTACKED"}}
    assert "Item" not in dynamodb.get_item(TableName=table, Key=own)
    rows = [{"Update": {"TableName": table, "Key": key, **UPDATE}} for key in (own, {**own, "pk": {"S": "RELEASE"}})]
    assert denied(dynamodb.transact_write_items, TransactItems=rows)


# CloudFormation and Step Functions


def test_a_stack_has_only_the_permissions_of_its_creator(enforced: Enforced) -> None:
    stacks_only = {"Effect": "Allow", "Action": "cloudformation:*", "Resource": "*"}
    attacker = enforced.principal("attacking-by-stack", statements=[stacks_only], attacks=True)
    queue = {"Resources": {"Queue": {"Type": "AWS::SQS::Queue"}}}
    assert _ended(attacker, "attacking-queue", queue) == "ROLLBACK_COMPLETE"
    assert any(each.action == "sqs:CreateQueue" and not each.allowed for each in enforced.decisions())


def test_the_policy_for_teams_does_not_allow_a_direct_call(enforced: Enforced) -> None:
    function = enforced.root.outputs["TenantQueueServiceToken"]
    stacks_only = {"Effect": "Allow", "Action": "cloudformation:*", "Resource": "*"}
    policy = enforced.root.outputs["TeamPolicyArn"]
    team = enforced.principal("team", policies=[policy], statements=[stacks_only], attacks=True)

    assert denied(team.client("lambda").invoke, FunctionName=function, Payload=b"{}")
    queue = {"Type": "Custom::TenantQueue", "Properties": {"ServiceToken": function, "TenantId": "of-a-team"}}
    assert _ended(team, "team", {"Resources": {"Queue": queue}}) == "CREATE_COMPLETE"
    by_team = [each for each in enforced.decisions() if "/team/" in each.principal and each.resource == function]
    assert [each.allowed for each in by_team][:2] == [False, True]


def test_a_machine_has_only_the_permissions_of_its_role(enforced: Enforced) -> None:
    trust = {"Effect": "Allow", "Principal": {"Service": "states.amazonaws.com"}, "Action": "sts:AssumeRole"}
    role = enforced.root.client("iam").create_role(
        RoleName="powerless", AssumeRolePolicyDocument=json.dumps({"Statement": [trust]})
    )["Role"]["Arn"]
    call = {
        "Type": "Task",
        "QueryLanguage": "JSONata",
        "Resource": "arn:aws:states:::lambda:invoke",
        "Arguments": {"FunctionName": enforced.root.outputs["TenantQueueServiceToken"]},
        "End": True,
    }
    machines = enforced.root.client("stepfunctions")
    # The session has the name of the machine.
    machine = machines.create_state_machine(
        name=ATTACKER, roleArn=role, definition=json.dumps({"StartAt": "Call", "States": {"Call": call}})
    )["stateMachineArn"]
    execution = machines.start_execution(stateMachineArn=machine)["executionArn"]
    assert enforced.root.ended(execution)["error"] == "States.Permissions"


def _ended(caller: Deployed, stack: str, template: dict[str, Any]) -> str:
    cloudformation = caller.client("cloudformation")
    cloudformation.create_stack(StackName=stack, TemplateBody=json.dumps(template))

    def status() -> str | None:
        (found,) = cloudformation.describe_stacks(StackName=stack)["Stacks"]
        return None if found["StackStatus"].endswith("_IN_PROGRESS") else str(found["StackStatus"])

    return eventually(status, what=f"stack {stack} has ended")


def test_start_stack_may_not_create_a_stack_with_another_role_template_or_name(enforced: Enforced) -> None:
    cloudformation = enforced.function("start_stack").client("cloudformation")
    template = "https://s3.amazonaws.com/somewhere/else.json"
    assert denied(cloudformation.create_stack, StackName="berth-tenant-evil", TemplateURL=template)
    other = "arn:aws:iam::000000000000:role/administrator"
    assert denied(cloudformation.create_stack, StackName="berth-tenant-evil", TemplateURL=template, RoleARN=other)
    own = enforced.root.client("lambda").get_function_configuration(FunctionName=enforced.root.function("start_stack"))
    role = own["Environment"]["Variables"]["BERTH_STACK_ROLE"]
    assert denied(cloudformation.create_stack, StackName="berth-tenant-evil", TemplateURL=template, RoleARN=role)
    assert denied(cloudformation.create_stack, StackName="Evil", TemplateURL=template, RoleARN=role)


def test_a_function_may_not_start_machines_of_others(enforced: Enforced) -> None:
    machines = enforced.function("tenant_metadata").client("stepfunctions")
    assert denied(machines.start_execution, stateMachineArn=enforced.root.outputs["DeleteTenantMachineArn"], input="{}")
