"""The automatic rollout, if it is switched on: a deployment ends by starting a rollout of the release it published."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from aws_cdk import CustomResource
from constructs import Construct, IConstruct

from stacks.common.capability import Capability
from stacks.common.functions import DEPLOYMENT_TIMEOUT, BerthFunction, FunctionKit
from stacks.common.table import TENANT_ROWS
from stacks.rollouts.machine import RolloutMachine


class AutomaticRollout(Capability):
    def __init__(
        self, scope: Construct, construct_id: str, *, kit: FunctionKit, rollouts: RolloutMachine, version: str
    ) -> None:
        super().__init__(scope, construct_id)
        self._start_rollout = BerthFunction(
            self,
            "StartRollout",
            kit=kit,
            name="start_rollout",
            # Asking CloudFormation may take 8 seconds and more, and responding to it 21.
            timeout_seconds=120,
            environment=rollouts.environment,
        )
        self._start_rollout.allow_verifying_requests()
        rollouts.allow_starting(self._start_rollout.role)
        # A tenant that the list may have missed is looked up in its own rows.
        kit.table.allow(self._start_rollout.role, "GetItem", "Query", rows=TENANT_ROWS)
        self._rollout = CustomResource(
            self,
            "Rollout",
            resource_type="Custom::Rollout",
            service_token=self._start_rollout.arn,
            # The deployment starts the rollout, and does not wait for its end.
            service_timeout=DEPLOYMENT_TIMEOUT,
            properties={"Version": version},
        )

    @property
    def functions(self) -> Sequence[BerthFunction]:
        return (self._start_rollout,)

    def start_after(self, constructs: Iterable[IConstruct]) -> None:
        """Start the rollout last. A failed deployment is rolled back, and a rollout that has started is not."""
        others = (construct for construct in constructs if construct.node.path != self.node.path)
        self._rollout.node.add_dependency(*others)
