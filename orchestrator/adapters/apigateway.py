"""The stage of the API. One of its variables is the proof by which functions recognize API Gateway as the caller."""

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
        """The proof in the stage's variables; ``None`` if there is no stage or the stage has no such variable."""
        try:
            with throttling():
                stage = self._client.get_stage(ApiId=self._api, StageName=self._stage)
        except ClientError as error:
            if error_code(error) == "NotFoundException":
                return None
            raise
        proof: str | None = stage.get("StageVariables", {}).get(PROOF_VARIABLE)
        return proof
