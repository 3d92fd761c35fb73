"""Temporary credentials for tenants' queues, where they are switched on.

getQueue takes on the role of this module with a tag that names the tenant, and hands the session's credentials on.
They reach the queues that have the same tag, whatever they are asked for.
"""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_iam as iam
from constructs import Construct

from orchestrator.credentials import ACTIONS, TENANT_TAG
from stacks.functions import BerthFunction
from stacks.permissions import allow, allow_on_tenant_queues


class QueueAccess(Construct):
    def __init__(self, scope: Construct, construct_id: str, *, get_queue: BerthFunction, seconds: int) -> None:
        super().__init__(scope, construct_id)
        get_queue_with_a_tenant = iam.ArnPrincipal(get_queue.role.role_arn).with_conditions(
            {
                "ForAllValues:StringEquals": {"aws:TagKeys": [TENANT_TAG]},
                "StringLike": {f"aws:RequestTag/{TENANT_TAG}": "?*"},
            }
        )
        role = iam.Role(
            self,
            "Role",
            description="Sends to or receives from the queue of the one tenant that its session is tagged with.",
            assumed_by=get_queue_with_a_tenant.with_session_tags(),
            max_session_duration=Duration.hours(1),
        )
        actions = [action.removeprefix("sqs:") for access in ACTIONS.values() for action in access]
        allow_on_tenant_queues(
            role,
            *actions,
            conditions={
                "StringEquals": {f"aws:ResourceTag/{TENANT_TAG}": f"${{aws:PrincipalTag/{TENANT_TAG}}}"},
            },
        )

        allow(get_queue.role, ["sts:AssumeRole", "sts:TagSession"], role.role_arn)
        get_queue.function.add_environment("BERTH_QUEUE_ACCESS_ROLE", role.role_arn)
        get_queue.function.add_environment("BERTH_CREDENTIALS_SECONDS", str(seconds))
