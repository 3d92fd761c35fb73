"""Templates with more than queues, with exactly the permissions that the operator has named at deployment.

The control plane has two such policies. One lets tenants' stacks have a parameter that is called Settings. The other
allows far too much, as a careless operator's would.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from orchestrator.adapters.sessions import session_without_profile
from orchestrator.common.tenant_ids import TenantId
from orchestrator.local.emulator import Emulator
from tests.e2e.deployed import Deployed
from tests.e2e.enforced.control_plane import ATTACKER, Enforced
from tests.e2e.enforced.running import running
from tests.e2e.enforced.test_denied import denied
from tests.e2e.operators import call, create, delete, ended, tenant_of, upgrade
from tests.fakes.templates import queue_template
from tests.registry import OPERATORS_HANDLER_PERMISSIONS

FIRST, SECOND, OTHER = "2.1.0", "2.2.0", "2.3.0"
PARAMETER = "AWS::SSM::Parameter"
NEEDED = sorted({action for actions in OPERATORS_HANDLER_PERMISSIONS[PARAMETER].values() for action in actions})
SETTINGS = {
    "Effect": "Allow",
    "Action": NEEDED,
    "Resource": "arn:aws:ssm:*:*:parameter/berth-tenant-*/Settings",
}
CARELESS = {
    "Effect": "Allow",
    "Action": ["cloudformation:*", "dynamodb:*", "iam:*", "lambda:*", "sqs:*", "sts:*"],
    "Resource": "*",
}


def policies(emulator: Emulator) -> dict[str, str]:
    iam = session_without_profile(emulator.session_settings()).client("iam", endpoint_url=emulator.endpoint)
    arns = []
    for name, statement in (("settings", SETTINGS), ("careless", CARELESS)):
        document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        arns.append(iam.create_policy(PolicyName=name, PolicyDocument=document)["Policy"]["Arn"])
    return {"stackPolicyArns": ",".join(arns)}


@pytest.fixture(scope="module")
def with_policies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Enforced]:
    with running(tmp_path_factory.mktemp("with-policies"), policies) as enforced:
        yield enforced
        assert {each.resource.rpartition("/")[2] for each in enforced.denials()} <= {"Secrets"}


def published(enforced: Enforced, version: str, logical_id: str, value: str) -> str:
    """A release whose tenants have a parameter, besides their queues."""
    template = queue_template(version)
    template["Resources"][logical_id] = {
        "Type": PARAMETER,
        "Properties": {
            "Type": "String",
            "Name": {"Fn::Sub": f"/${{AWS::StackName}}/{logical_id}"},
            "Value": value,
        },
    }
    template["Outputs"][logical_id] = {"Value": {"Ref": logical_id}}
    answer = call(enforced.operator, "PUT", f"/releases/{version}", body={"template": template})
    assert (answer.status, answer.body["status"]) == (200, "PUBLISHED")
    return version


def test_a_resource_that_a_policy_allows_is_made_changed_and_deleted(with_policies: Enforced) -> None:
    root, operator, tenant = with_policies.root, with_policies.operator, TenantId("allowed")
    assert (
        ended(root, create(operator, tenant, version=published(with_policies, FIRST, "Settings", "a"))) == "SUCCEEDED"
    )
    name = tenant_of(operator, tenant)["resources"]["Settings"]
    assert name == f"/{root.names.stack_of(tenant)}/Settings"
    assert call(operator, "DELETE", f"/tenants/{tenant}/pin").status == 200
    assert ended(root, upgrade(operator, tenant, published(with_policies, SECOND, "Settings", "b"))) == "SUCCEEDED"
    assert root.client("ssm").get_parameter(Name=name)["Parameter"]["Value"] == "b"
    assert ended(root, delete(operator, tenant)) == "SUCCEEDED"
    used = {each.action for each in with_policies.decisions() if f"parameter{name}" in each.resource and each.allowed}
    assert set(NEEDED) <= used
    assert with_policies.denials() == []


def test_a_policy_is_needed_for_every_type_of_resource(with_policies: Enforced) -> None:
    template = queue_template(OTHER)
    template["Resources"]["Topic"] = {"Type": "AWS::SNS::Topic"}
    checked = call(with_policies.operator, "POST", f"/releases/{OTHER}/check", body={"template": template})
    assert [each["rule"] for each in checked.body["findings"]] == ["resource-types"]


@pytest.fixture(scope="module")
def stack_role(with_policies: Enforced) -> Deployed:
    """An attacker with the role of tenants' stacks: as if a template could make any request."""
    return with_policies.root.acting_as(with_policies.root.stack_role, ATTACKER)


LAMBDA = {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
TRUST = json.dumps({"Version": "2012-10-17", "Statement": [LAMBDA]})
ATTACKS: Mapping[str, tuple[str, str, dict[str, Any]]] = {
    "make a role": ("iam", "create_role", {"RoleName": "mine", "AssumeRolePolicyDocument": TRUST}),
    "make a stack": ("cloudformation", "create_stack", {"StackName": "berth-tenant-mine", "TemplateBody": "{}"}),
    "delete a stack": ("cloudformation", "delete_stack", {"StackName": "Berth"}),
    "make a queue of another name": ("sqs", "create_queue", {"QueueName": "mine"}),
    "make a table of another name": (
        "dynamodb",
        "create_table",
        {
            "TableName": "mine",
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            "BillingMode": "PAY_PER_REQUEST",
        },
    ),
    "change Berth's function": ("lambda", "delete_function", {"FunctionName": "berth-tenant-metadata"}),
    "invoke the function of teams": ("lambda", "invoke", {"FunctionName": "berth-tenant-queue", "Payload": b"{}"}),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_policy_lets_a_template_reach_anything_but_tenants_resources(stack_role: Deployed, attack: str) -> None:
    service, operation, request = ATTACKS[attack]
    assert denied(getattr(stack_role.client(service), operation), **request)


def test_no_policy_lets_a_template_read_or_delete_berths_table(stack_role: Deployed) -> None:
    dynamodb, table = stack_role.client("dynamodb"), stack_role.outputs["TableName"]
    assert denied(dynamodb.scan, TableName=table)
    assert denied(dynamodb.delete_table, TableName=table)


def test_the_boundary_leaves_tenants_resources_to_the_policies(stack_role: Deployed) -> None:
    """Otherwise the attacks above could be denied for another reason."""
    queue = stack_role.client("sqs").create_queue(QueueName="berth-tenant-any-queue")["QueueUrl"]
    stack_role.client("sqs").delete_queue(QueueUrl=queue)


def test_an_operation_says_what_the_policies_do_not_allow(with_policies: Enforced) -> None:
    """The check of a template looks only for the action. CloudFormation finds that the name is another one."""
    root, operator, tenant = with_policies.root, with_policies.operator, TenantId("not-allowed")
    version = published(with_policies, OTHER, "Secrets", "a")
    assert ended(root, create(operator, tenant, version=version)) == "FAILED"
    cause = tenant_of(operator, tenant)["rootCause"]
    assert cause["resource"] == "Secrets"
    assert "is not authorized to perform" in cause["reason"]
    assert "ssm:PutParameter" in cause["reason"]
