"""What API Gateway proves itself with to the functions of the API.

It is made by the deployment, once, and known to API Gateway alone: the stage has it, the functions have its digest.
"""

from __future__ import annotations

from aws_cdk import CustomResource, Duration
from constructs import Construct

from stacks.functions import BerthFunction, FunctionKit


class ApiProof(Construct):
    def __init__(self, scope: Construct, construct_id: str, *, kit: FunctionKit, generation: int) -> None:
        super().__init__(scope, construct_id)
        self.make = BerthFunction(
            self,
            "ApiProof",
            kit=kit,
            name="api_proof",
            # Answering CloudFormation may take 21 of them.
            timeout_seconds=30,
        )
        self._proof = CustomResource(
            self,
            "Proof",
            resource_type="Custom::ApiProof",
            service_token=self.make.arn,
            # Lambda tries again after a minute what has failed.
            service_timeout=Duration.seconds(300),
            properties={"Generation": str(generation)},
        )

    @property
    def value(self) -> str:
        return self._proof.get_att_string("Value")

    @property
    def digest(self) -> str:
        return self._proof.get_att_string("Digest")
