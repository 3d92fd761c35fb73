"""The stage of the API, which alone has what API Gateway proves itself with."""

from __future__ import annotations

from typing import Any

from botocore.exceptions import ClientError

from orchestrator.adapters.aws import error_code, throttling
from orchestrator.common.callers import PROOF_VARIABLE


class ApiStage:
    def __init__(self, client: Any, api: str, stage: str) -> None:
        self._client = client
        self._api = api
        self._stage = stage

    def proof(self) -> str | None:
        """What the stage has now; ``None`` while there is no stage, or while it has none."""
        try:
            with throttling():
                stage = self._client.get_stage(ApiId=self._api, StageName=self._stage)
        except ClientError as error:
            if error_code(error) == "NotFoundException":
                return None
            raise
        proof: str | None = stage.get("StageVariables", {}).get(PROOF_VARIABLE)
        return proof
