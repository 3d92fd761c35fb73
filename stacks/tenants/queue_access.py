"""Temporary credentials for tenants' queues, if they are switched on.

getQueue assumes the role of this module with a session tag that names the tenant, and returns the credentials of the
session. The credentials work only for queues with the same tag, or that were kept ready for a new tenant. The session's
source identity names the caller, and CloudTrail shows it with every use of the credentials.
"""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_iam as iam
from constructs import Construct

from orchestrator.common.tenant_ids import WARM_PREFIX
from orchestrator.tenants.credentials import ACTIONS, TENANT_TAG, Access
from stacks.common.encryption import Encryption
from stacks.common.functions import BerthFunction
from stacks.common.permissions import allow, allow_on_tenant_queues

_THE_SESSIONS_TENANT = f"${{aws:PrincipalTag/{TENANT_TAG}}}"
_KEPT_READY = f"{WARM_PREFIX}*"
"""A tenant that takes a stack that was kept ready has its queue before the queue has the tenant's tag. Then only the
policy of the session, which names the one queue, keeps the session from the queues of other such stacks."""


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
        get_queue_role = iam.ArnPrincipal(get_queue.role.role_arn)
        only_this_tag = {"ForAllValues:StringEquals": {"aws:TagKeys": [TENANT_TAG]}}
        tenant_named, caller_named = {f"aws:RequestTag/{TENANT_TAG}": "?*"}, {"sts:SourceIdentity": "?*"}
        role = iam.Role(
            self,
            "Role",
            description="Sends to or receives from the queue of the one tenant that its session is tagged with.",
            assumed_by=get_queue_role.with_conditions({**only_this_tag, "StringLike": tenant_named | caller_named}),
            max_session_duration=Duration.hours(1),
        )
        # Each action has only the conditions that AWS documents for it.
        for action, conditions in (
            ("sts:TagSession", {**only_this_tag, "StringLike": tenant_named}),
            ("sts:SetSourceIdentity", {"StringLike": caller_named}),
        ):
            allowed = iam.PolicyStatement(actions=[action], principals=[get_queue_role], conditions=conditions)
            _trust_of(role).add_statements(allowed)
        actions = [action.removeprefix("sqs:") for access in ACTIONS.values() for action in access]
        allow_on_tenant_queues(
            role,
            *actions,
            conditions={"StringLike": {f"aws:ResourceTag/{TENANT_TAG}": [_THE_SESSIONS_TENANT, _KEPT_READY]}},
        )

        encryption.allow_queues(role, Access.SEND, Access.RECEIVE)
        encryption.allow_queues_with_former_keys(role, Access.SEND, Access.RECEIVE)
        for name, value in {**encryption.environment, **encryption.former_environment}.items():
            get_queue.function.add_environment(name, value)

        allow(get_queue.role, ["sts:AssumeRole", "sts:TagSession", "sts:SetSourceIdentity"], role.role_arn)
        get_queue.function.add_environment("BERTH_QUEUE_ACCESS_ROLE", role.role_arn)
        get_queue.function.add_environment("BERTH_CREDENTIALS_SECONDS", str(seconds))


def _trust_of(role: iam.Role) -> iam.PolicyDocument:
    trust = role.assume_role_policy
    assert trust is not None  # noqa: S101 - only an imported role has none
    return trust
