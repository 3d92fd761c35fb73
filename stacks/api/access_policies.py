"""Managed policies to attach to the roles of platforms, senders, receivers, operators and teams."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from orchestrator.api.route import AnyRoute, Audience
from orchestrator.api.routes import ROUTES
from stacks.api.declared_api import STAGE
from stacks.api.gateway import Api
from stacks.common.capability import Capability, Output
from stacks.common.functions import BerthFunction
from stacks.common.permissions import acknowledge_wildcard, allow_finding_its_stack, statement

_PARAMETER = re.compile(r"\{\w+\}")

_ALL_OR_NONE = (
    "The wildcard is for the id of a tenant, a rollout or a reconciliation: callers may use all of them, or none."
)


_BY_CLOUDFORMATION = {"ForAnyValue:StringEquals": {"aws:CalledVia": ["cloudformation.amazonaws.com"]}}


class AccessPolicies(Capability):
    def __init__(self, scope: Construct, construct_id: str, *, api: Api, tenant_queue: BerthFunction) -> None:
        super().__init__(scope, construct_id)
        self.platform = self._policy(
            "Platform", api, "Ask Berth for tenants' queues, and nothing else.", Audience.PLATFORM
        )
        self.sender = self._policy(
            "Sender", api, "Get temporary credentials to send to tenants' queues, and nothing else.", Audience.SENDER
        )
        self.receiver = self._policy(
            "Receiver",
            api,
            "Get temporary credentials to receive from tenants' queues, and nothing else.",
            Audience.RECEIVER,
        )
        self.operator = self._policy(
            "Operator",
            api,
            # The description is incomplete. A change would replace the policy, and the new policy is attached to
            # nobody.
            "Create, upgrade, retry, delete and look at Berth's tenants, ask for their queues, and roll releases out.",
            # The order is the same as in the deployed policies.
            Audience.OPERATOR,
            Audience.PLATFORM,
            Audience.SENDER,
            Audience.RECEIVER,
        )
        # The command line finds the API in the outputs of the control plane's stack.
        allow_finding_its_stack(self.operator)
        # For the principal that deploys a stack with a Custom::TenantQueue, or for the stack's service role: in both
        # cases the condition key aws:CalledVia names CloudFormation. The policy does not allow a direct call of the
        # function.
        self.team = iam.ManagedPolicy(
            self,
            "Team",
            description="Have tenants' queues in stacks, by Custom::TenantQueue, and nothing else.",
            statements=[statement(["lambda:InvokeFunction"], [tenant_queue.arn], _BY_CLOUDFORMATION)],
        )

    @property
    def outputs(self) -> Sequence[Output]:
        return (
            Output("PlatformPolicyArn", self.platform.managed_policy_arn),
            Output("SenderPolicyArn", self.sender.managed_policy_arn),
            Output("ReceiverPolicyArn", self.receiver.managed_policy_arn),
            Output("OperatorPolicyArn", self.operator.managed_policy_arn),
            Output("TeamPolicyArn", self.team.managed_policy_arn),
        )

    def _policy(self, name: str, api: Api, description: str, *audiences: Audience) -> iam.ManagedPolicy:
        """A policy that allows the routes for these audiences."""
        routes = [route for audience in audiences for route in ROUTES if route.audience is audience]
        return policy_for_routes(self, name, api_id=api.id, description=description, routes=routes)


def policy_for_routes(
    scope: Construct, construct_id: str, *, api_id: str, description: str, routes: Iterable[AnyRoute]
) -> iam.ManagedPolicy:
    resources = [_resource(scope, api_id, route) for route in routes]
    policy = iam.ManagedPolicy(
        scope, construct_id, description=description, statements=[statement(["execute-api:Invoke"], resources)]
    )
    for resource in resources:
        if "*" in resource:
            acknowledge_wildcard(policy, resource, _ALL_OR_NONE)
    return policy


def _resource(scope: Construct, api_id: str, route: AnyRoute) -> str:
    path = _PARAMETER.sub("*", route.path)
    return Stack.of(scope).format_arn(
        service="execute-api", resource=api_id, resource_name=f"{STAGE}/{route.method}{path}"
    )
