"""The stage of the API: what API Gateway proves itself with is read from there."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from orchestrator.adapters.apigateway import ApiStage
from orchestrator.common.errors import Throttled
from tests.adapters.conftest import client

ASKED = {"ApiId": "api-1", "StageName": "$default"}


@pytest.fixture
def stage() -> ApiStage:
    return ApiStage(client("apigatewayv2"), "api-1", "$default")


@pytest.mark.parametrize(
    ("variables", "proof"),
    [({"StageVariables": {"proof": "a-proof"}}, "a-proof"), ({"StageVariables": {}}, None), ({}, None)],
)
def test_the_proof_is_a_variable_of_the_stage(
    stage: ApiStage, apigateway: Stubber, variables: dict[str, Any], proof: str | None
) -> None:
    apigateway.add_response("get_stage", {"StageName": "$default", **variables}, ASKED)
    assert stage.proof() == proof


def test_without_a_stage_there_is_no_proof(stage: ApiStage, apigateway: Stubber) -> None:
    apigateway.add_client_error("get_stage", "NotFoundException", "Invalid stage identifier specified")
    assert stage.proof() is None


@pytest.mark.parametrize(("code", "error"), [("TooManyRequestsException", Throttled), ("AccessDenied", ClientError)])
def test_a_stage_that_cannot_be_read_is_an_error(
    stage: ApiStage, apigateway: Stubber, code: str, error: type[Exception]
) -> None:
    apigateway.add_client_error("get_stage", code)
    with pytest.raises(error):
        stage.proof()
