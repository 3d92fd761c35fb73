"""Direct invocations of the API's functions cannot forge the caller."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from orchestrator.common.callers import NOBODY_KNOWN
from orchestrator.common.tenant_ids import TenantId
from tests.e2e.deployed import Deployed
from tests.e2e.operators import a_tenant, call

ADA = "arn:aws:sts::000000000000:assumed-role/operator/ada"


def as_ada(route: str, tenant: TenantId, **more: Any) -> dict[str, Any]:
    """An event like API Gateway's, without the proof."""
    return {
        "version": "2.0",
        "routeKey": route,
        "pathParameters": {"tenantId": tenant.value},
        "requestContext": {"authorizer": {"iam": {"userArn": ADA}}},
        "isBase64Encoded": False,
        **more,
    }


@pytest.fixture(scope="module")
def tenant(berth: Deployed) -> TenantId:
    return a_tenant(berth, "in-somebody-elses-name")


@pytest.mark.parametrize("variables", [None, {}, {"proof": "guessed"}], ids=json.dumps)
def test_a_forged_operators_request_is_refused(berth: Deployed, tenant: TenantId, variables: object) -> None:
    event = as_ada("DELETE /tenants/{tenantId}", tenant, stageVariables=variables)
    answer = berth.invoke(berth.outputs["OperatorsFunctionName"], event)
    assert answer["statusCode"] == 403
    assert json.loads(answer["body"])["type"] == "urn:berth:problem:not-through-the-api"
    assert berth.ask(tenant).status == 200


@pytest.mark.parametrize("access", ["send", "receive"])
def test_a_forged_request_for_credentials_is_refused(berth: Deployed, tenant: TenantId, access: str) -> None:
    route = f"POST /tenants/{{tenantId}}/queue/credentials/{access}"
    answer = berth.invoke(berth.outputs["GetQueueFunctionName"], as_ada(route, tenant))
    assert answer["statusCode"] == 403
    assert "accessKeyId" not in answer["body"]


def test_a_create_by_a_forged_request_is_not_recorded_under_the_forged_name(berth: Deployed) -> None:
    tenant = TenantId("asked-for-directly")
    berth.invoke(berth.outputs["GetQueueFunctionName"], as_ada("GET /tenants/{tenantId}/queue", tenant))
    assert berth.settled(tenant).status == 200
    shown = call(berth, "GET", f"/tenants/{tenant}").body
    assert {entry["requestedBy"] for entry in shown["history"]} == {NOBODY_KNOWN}


def test_the_caller_is_the_one_that_api_gateway_reports_whatever_the_caller_sends(berth: Deployed) -> None:
    """The caller cannot set the stage's variables."""
    tenant = TenantId("asked-for-by-http")
    answer = call(berth, "GET", f"/tenants/{tenant}/queue", query={"stageVariables": "x", "proof": "y"})
    assert answer.status == 202
    assert berth.settled(tenant).status == 200
    shown = call(berth, "GET", f"/tenants/{tenant}").body
    assert NOBODY_KNOWN not in {entry["requestedBy"] for entry in shown["history"]}


@pytest.mark.parametrize(("name", "kind"), [("publish_release", "Custom::Release"), ("api_proof", "Custom::ApiProof")])
def test_only_a_deployment_can_publish_a_release_or_create_a_proof(berth: Deployed, name: str, kind: str) -> None:
    """The event is like CloudFormation's, for a deployment that has ended."""
    described = berth.client("cloudformation").describe_stack_resources(StackName="Berth")["StackResources"]
    resource = next(each for each in described if each["ResourceType"] == kind)
    key, template = "forged.json", b'{\n  "Resources": {}\n}\n'
    berth.client("s3").put_object(Bucket=berth.outputs["ReleaseBucketName"], Key=key, Body=template)
    properties = {
        "Version": "9999.0.0",
        "Digest": hashlib.sha256(template).hexdigest(),
        "SourceBucket": berth.outputs["ReleaseBucketName"],
        "SourceKey": key,
        "Generation": "2",
    }
    event = {
        "RequestType": "Update",
        "RequestId": "forged",
        "StackId": resource["StackId"],
        "LogicalResourceId": resource["LogicalResourceId"],
        "PhysicalResourceId": resource["PhysicalResourceId"],
        "ResourceType": kind,
        "ResponseURL": f"http://localhost:{berth.emulator.port}/_ministack/cfn-response/forged",
        "ResourceProperties": properties,
    }
    assert "does not confirm" in berth.fault(berth.function(name), event)["errorMessage"]
    assert berth.table.release("9999.0.0") is None


def test_neither_the_stacks_nor_the_functions_show_the_proof_of_their_api(berth: Deployed) -> None:
    apis = {api["Name"]: api["ApiId"] for api in berth.client("apigatewayv2").get_apis()["Items"]}
    stacks = {berth.names.api: berth.names.control_plane, berth.names.events_api: berth.names.events}
    assert apis.keys() == stacks.keys()
    functions = [page["Functions"] for page in berth.client("lambda").get_paginator("list_functions").paginate()]
    proofs = set()
    for name, stack_name in stacks.items():
        (stage,) = berth.client("apigatewayv2").get_stages(ApiId=apis[name])["Items"]
        proof = stage["StageVariables"]["proof"]
        assert len(proof) == 43
        assert proof not in json.dumps(functions)
        (stack,) = berth.client("cloudformation").describe_stacks(StackName=stack_name)["Stacks"]
        assert proof not in json.dumps(stack["Outputs"])
        template = berth.client("cloudformation").get_template(StackName=stack_name)["TemplateBody"]
        assert proof not in json.dumps(template)
        proofs.add(proof)
    assert len(proofs) == len(stacks)
