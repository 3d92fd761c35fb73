"""What API Gateway proves itself with to the functions of the API.

It is made by the deployment, once, and known to API Gateway alone: the stage has it, the functions have its digest.
"""

from __future__ import annotations

from aws_cdk import CustomResource
from constructs import Construct

from stacks.functions import DEPLOYMENT_TIMEOUT, BerthFunction, FunctionKit


class ApiProof(Construct):
    def __init__(self, scope: Construct, construct_id: str, *, kit: FunctionKit, generation: int) -> None:
        super().__init__(scope, construct_id)
        self.make = BerthFunction(
            self,
            "ApiProof",
            kit=kit,
            name="api_proof",
            # Asking CloudFormation may take 8 of them and more, and answering it 21.
            timeout_seconds=60,
        )
        self.make.answer_the_deployment()
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
