"""What API Gateway proves itself with: made by the deployment, told to CloudFormation and to nobody else."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from orchestrator.adapters import custom_resource
from orchestrator.callers import ApiGateway, digest_of
from tests.adapters.handlers.functions import Functions

Told = list[dict[str, Any]]

URL = "https://cloudformation-custom-resource-response-euwest1.s3.eu-west-1.amazonaws.com/answer"


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    """What CloudFormation is told."""
    answers: Told = []
    monkeypatch.setattr(custom_resource, "_put", lambda _url, body: answers.append(json.loads(body)))
    return answers


def event(kind: str) -> dict[str, Any]:
    return {
        "RequestType": kind,
        "ResponseURL": URL,
        "StackId": "arn:aws:cloudformation:eu-west-1:123456789012:stack/Berth/1",
        "RequestId": "request-1",
        "LogicalResourceId": "Proof",
        "ResourceType": "Custom::ApiProof",
        "ResourceProperties": {"Generation": "1"},
    }


@pytest.mark.parametrize("kind", ["Create", "Update"])
def test_a_proof_is_made_with_its_digest_and_cloudformation_is_not_to_show_it(
    functions: Functions, told: Told, kind: str
) -> None:
    functions.deploy("api_proof", event(kind))
    (answer,) = told
    assert (answer["Status"], answer["NoEcho"], answer["PhysicalResourceId"]) == ("SUCCESS", True, "api-proof")
    proof, digest = answer["Data"]["Value"], answer["Data"]["Digest"]
    assert digest == digest_of(proof)
    assert ApiGateway(digest).sent({"stageVariables": {"proof": proof}})


def test_no_proof_is_made_twice_and_all_are_of_the_characters_of_a_stage_variable(
    functions: Functions, told: Told
) -> None:
    for _ in range(50):
        functions.deploy("api_proof", event("Update"))
    proofs = {answer["Data"]["Value"] for answer in told}
    assert len(proofs) == 50
    assert all(re.fullmatch("[A-Za-z0-9_-]{43}", proof) for proof in proofs)


def test_nothing_has_to_be_done_when_it_goes(functions: Functions, told: Told) -> None:
    functions.call("api_proof", event("Delete"))
    (answer,) = told
    assert (answer["Status"], answer["Data"]) == ("SUCCESS", {})


@pytest.mark.usefixtures("lines")
def test_the_proof_is_not_logged(functions: Functions, told: Told, capsys: pytest.CaptureFixture[str]) -> None:
    functions.deploy("api_proof", event("Create"))
    logged = "".join(capsys.readouterr())
    assert "Answered CloudFormation" in logged
    assert told[0]["Data"]["Value"] not in logged


@pytest.mark.usefixtures("lines")
@pytest.mark.parametrize("function", ["get_queue", "operators"])
def test_the_proof_of_an_event_is_not_logged_either(
    functions: Functions, capsys: pytest.CaptureFixture[str], function: str
) -> None:
    for proof in ("what only API Gateway knows", "a guess of it"):
        functions.ask(function, {"routeKey": "GET /releases", "tenantId": "acme", "stageVariables": {"proof": proof}})
        logged = "".join(capsys.readouterr())
        assert '"status"' in logged
        assert proof not in logged


def test_making_it_asks_aws_for_nothing_but_whether_it_is_the_deployment_that_asks(
    functions: Functions, told: Told
) -> None:
    resources = functions.deploy("api_proof", event("Create"))
    assert told
    assert resources.asked == ["resource"]
    assert functions.requests == []
