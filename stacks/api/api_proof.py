"""The secret by which API Gateway proves itself to the functions of the API.

The deployment generates the secret once. Only API Gateway's stage has it; the functions have its digest.
"""

from __future__ import annotations

from aws_cdk import Aws, CustomResource
from constructs import Construct

from stacks.common.functions import DEPLOYMENT_TIMEOUT, BerthFunction, FunctionKit
from stacks.common.permissions import allow


class ApiProof(Construct):
    def __init__(
        self, scope: Construct, construct_id: str, *, kit: FunctionKit, api: str, stage: str, generation: int
    ) -> None:
        super().__init__(scope, construct_id)
        self.make = BerthFunction(
            self,
            "ApiProof",
            kit=kit,
            name="api_proof",
            # Asking CloudFormation may take 8 seconds and more, and responding to it 21.
            timeout_seconds=60,
            environment={"BERTH_API": api, "BERTH_API_STAGE": stage},
        )
        self.make.allow_verifying_requests("DescribeStacks")
        allow(
            self.make.role,
            ["apigateway:GET"],
            f"arn:{Aws.PARTITION}:apigateway:{Aws.REGION}::/apis/{api}/stages/*",
            wildcard_because="The API has one stage. AWS does not document how the $ in its name is spelled in an ARN.",
        )
        self._proof = CustomResource(
            self,
            "Proof",
            resource_type="Custom::ApiProof",
            service_token=self.make.arn,
            service_timeout=DEPLOYMENT_TIMEOUT,
            properties={"Generation": str(generation)},
        )

    @property
    def value(self) -> str:
        return self._proof.get_att_string("Value")

    @property
    def digest(self) -> str:
        return self._proof.get_att_string("Digest")
