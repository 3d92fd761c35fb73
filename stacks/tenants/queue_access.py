"""Temporary credentials for tenants' queues, where they are switched on.

getQueue takes on the role of this module with a tag that names the tenant, and hands the session's credentials on.
They reach the queues that have the same tag, whatever they are asked for. The session's source identity names who
asked: CloudTrail has it beside everything that is done with the credentials.
"""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_iam as iam
from constructs import Construct

from orchestrator.tenants.credentials import ACTIONS, TENANT_TAG, Access
from stacks.common.encryption import Encryption
from stacks.common.functions import BerthFunction
from stacks.common.permissions import allow, allow_on_tenant_queues


class QueueAccess(Construct):
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        get_queue: BerthFunction,
        encryption: Encryption,
        seconds: int,
    ) -> None:
        super().__init__(scope, construct_id)
        get_queue_itself = iam.ArnPrincipal(get_queue.role.role_arn)
        only_this_tag = {"ForAllValues:StringEquals": {"aws:TagKeys": [TENANT_TAG]}}
        a_tenant, a_caller = {f"aws:RequestTag/{TENANT_TAG}": "?*"}, {"sts:SourceIdentity": "?*"}
        role = iam.Role(
            self,
            "Role",
            description="Sends to or receives from the queue of the one tenant that its session is tagged with.",
            assumed_by=get_queue_itself.with_conditions({**only_this_tag, "StringLike": a_tenant | a_caller}),
            max_session_duration=Duration.hours(1),
        )
        # Each action has only those conditions that AWS documents for it.
        for action, conditions in (
            ("sts:TagSession", {**only_this_tag, "StringLike": a_tenant}),
            ("sts:SetSourceIdentity", {"StringLike": a_caller}),
        ):
            allowed = iam.PolicyStatement(actions=[action], principals=[get_queue_itself], conditions=conditions)
            _trust_of(role).add_statements(allowed)
        actions = [action.removeprefix("sqs:") for access in ACTIONS.values() for action in access]
        allow_on_tenant_queues(
            role,
            *actions,
            conditions={
                "StringEquals": {f"aws:ResourceTag/{TENANT_TAG}": f"${{aws:PrincipalTag/{TENANT_TAG}}}"},
            },
        )

        encryption.allow_queues(role, Access.SEND, Access.RECEIVE)
        encryption.allow_queues_of_before(role, Access.SEND, Access.RECEIVE)
        for name, value in {**encryption.environment, **encryption.former_environment}.items():
            get_queue.function.add_environment(name, value)

        allow(get_queue.role, ["sts:AssumeRole", "sts:TagSession", "sts:SetSourceIdentity"], role.role_arn)
        get_queue.function.add_environment("BERTH_QUEUE_ACCESS_ROLE", role.role_arn)
        get_queue.function.add_environment("BERTH_CREDENTIALS_SECONDS", str(seconds))


def _trust_of(role: iam.Role) -> iam.PolicyDocument:
    trust = role.assume_role_policy
    assert trust is not None  # noqa: S101 - only an imported role has none
    return trust
