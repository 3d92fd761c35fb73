"""The proof that API Gateway sends: the deployment creates it and returns it only to CloudFormation."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from orchestrator.adapters import custom_resource
from orchestrator.common.callers import ApiGateway, digest_of
from orchestrator.common.errors import Throttled
from tests.adapters.handlers.functions import Functions

Answers = list[dict[str, Any]]

URL = "https://cloudformation-custom-resource-response-euwest1.s3.eu-west-1.amazonaws.com/answer"


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Answers:
    """The responses to CloudFormation."""
    answers: Answers = []
    monkeypatch.setattr(custom_resource, "_put", lambda _url, body: answers.append(json.loads(body)))
    return answers


def event(kind: str, generation: int = 1, *, before: int = 1) -> dict[str, Any]:
    old = {"OldResourceProperties": {"Generation": str(before)}} if kind == "Update" else {}
    return {
        **old,
        "RequestType": kind,
        "ResponseURL": URL,
        "StackId": "arn:aws:cloudformation:eu-west-1:123456789012:stack/Berth/1",
        "RequestId": "request-1",
        "LogicalResourceId": "Proof",
        "ResourceType": "Custom::ApiProof",
        "ResourceProperties": {"Generation": str(generation)},
    }


class Stage:
    """The stage of the API, with the proof that it has."""

    def __init__(self, functions: Functions, answers: Answers, proof: str | None = None) -> None:
        self.functions, self.answers, self.has = functions, answers, proof
        functions.ports.api_stage = self

    def proof(self) -> str | None:
        return self.has

    def deploy(self, asked: dict[str, Any], stack: str | None = None) -> str:
        """The proof that the functions have the digest of afterwards."""
        self.functions.deploy("api_proof", asked, stack=stack)
        proof: str = self.answers[-1]["Data"]["Value"]
        assert self.answers[-1]["Data"]["Digest"] == digest_of(proof)
        return proof


UNDOING = "UPDATE_ROLLBACK_IN_PROGRESS"


def test_a_deployment_keeps_the_proof_of_the_stage(functions: Functions, answers: Answers) -> None:
    assert Stage(functions, answers, "the first").deploy(event("Update")) == "the first"


def test_another_generation_gets_another_proof(functions: Functions, answers: Answers) -> None:
    assert Stage(functions, answers, "the first").deploy(event("Update", 2)) != "the first"


def test_a_rollback_before_the_stage_keeps_the_proof_of_the_stage(functions: Functions, answers: Answers) -> None:
    stage = Stage(functions, answers, "the first")
    stage.deploy(event("Update", 2))
    assert stage.deploy(event("Update", 1, before=2), stack=UNDOING) == stage.has


def test_a_rollback_after_the_stage_keeps_the_proof_of_the_stage(functions: Functions, answers: Answers) -> None:
    stage = Stage(functions, answers, "the first")
    stage.has = stage.deploy(event("Update", 2))
    assert stage.deploy(event("Update", 1, before=2), stack=UNDOING) == stage.has


def test_a_stage_that_cannot_be_read_is_an_error_so_that_lambda_retries(functions: Functions, answers: Answers) -> None:
    functions.throttle("GetStage")
    with pytest.raises(Throttled):
        functions.deploy("api_proof", event("Update"))
    assert answers == []


@pytest.mark.parametrize("kind", ["Create", "Update"])
def test_a_proof_has_its_digest_and_is_hidden_by_cloudformation(
    functions: Functions, answers: Answers, kind: str
) -> None:
    functions.deploy("api_proof", event(kind, 2))
    (answer,) = answers
    assert (answer["Status"], answer["NoEcho"], answer["PhysicalResourceId"]) == ("SUCCESS", True, "api-proof")
    proof, digest = answer["Data"]["Value"], answer["Data"]["Digest"]
    assert digest == digest_of(proof)
    assert ApiGateway(digest).sent({"stageVariables": {"proof": proof}})


def test_proofs_are_unique_and_valid_stage_variables(functions: Functions, answers: Answers) -> None:
    for _ in range(50):
        functions.deploy("api_proof", event("Update", 2))
    proofs = {answer["Data"]["Value"] for answer in answers}
    assert len(proofs) == 50
    assert all(re.fullmatch("[A-Za-z0-9_-]{43}", proof) for proof in proofs)


def test_a_delete_does_nothing(functions: Functions, answers: Answers) -> None:
    functions.call("api_proof", event("Delete"))
    (answer,) = answers
    assert (answer["Status"], answer["Data"]) == ("SUCCESS", {})


@pytest.mark.usefixtures("lines")
def test_the_proof_is_not_logged(functions: Functions, answers: Answers, capsys: pytest.CaptureFixture[str]) -> None:
    functions.deploy("api_proof", event("Create"))
    logged = "".join(capsys.readouterr())
    assert "Answered CloudFormation" in logged
    assert answers[0]["Data"]["Value"] not in logged


@pytest.mark.usefixtures("lines")
@pytest.mark.parametrize("function", ["get_queue", "operators"])
def test_the_proof_of_an_event_is_not_logged(
    functions: Functions, capsys: pytest.CaptureFixture[str], function: str
) -> None:
    for proof in ("what only API Gateway knows", "a guess of it"):
        functions.ask(function, {"routeKey": "GET /releases", "tenantId": "acme", "stageVariables": {"proof": proof}})
        logged = "".join(capsys.readouterr())
        assert '"status"' in logged
        assert proof not in logged


def test_a_new_proof_needs_only_the_confirmation_of_the_deployment(functions: Functions, answers: Answers) -> None:
    resources = functions.deploy("api_proof", event("Create"))
    assert answers
    assert resources.asked == ["resource", "stack_status"]
    assert functions.requests == []
