"""Where it is switched on: a deployment ends by moving every tenant to the release that it has published."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from aws_cdk import CustomResource
from constructs import Construct, IConstruct

from stacks.common.capability import Capability
from stacks.common.functions import DEPLOYMENT_TIMEOUT, BerthFunction, FunctionKit
from stacks.rollouts.machine import RolloutMachine


class AutomaticRollout(Capability):
    def __init__(self, scope: Construct, construct_id: str, *, kit: FunctionKit, rollouts: RolloutMachine) -> None:
        super().__init__(scope, construct_id)
        self._start_rollout = BerthFunction(
            self,
            "StartRollout",
            kit=kit,
            name="start_rollout",
            # Asking CloudFormation may take 8 of them and more, and answering it 21.
            timeout_seconds=120,
            environment=rollouts.environment,
        )
        self._start_rollout.answer_the_deployment()
        rollouts.allow_starting(self._start_rollout.role)
        self._rollout = CustomResource(
            self,
            "Rollout",
            resource_type="Custom::Rollout",
            service_token=self._start_rollout.arn,
            # It is started here, not waited for.
            service_timeout=DEPLOYMENT_TIMEOUT,
            properties={"Version": kit.version},
        )

    @property
    def functions(self) -> Sequence[BerthFunction]:
        return (self._start_rollout,)

    def begin_after(self, everything: Iterable[IConstruct]) -> None:
        """A deployment that fails is undone, a rollout that has begun is not: so it begins when all else is done."""
        self._rollout.node.add_dependency(*(each for each in everything if each.node.path != self.node.path))
