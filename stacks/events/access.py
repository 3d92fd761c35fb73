"""Temporary credentials with which tenants' own programs read their events, if credentials are switched on.

The function of operators assumes the role of this module with a session tag that names the tenant. Two policies limit
the session: the role's own, to rows of the tenant that the tag names; and the session policy, to one life of it.
"""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_iam as iam
from constructs import Construct

from orchestrator.adapters.dynamodb.event_keys import EVENT_PREFIX
from orchestrator.adapters.event_access import TABLE_ACTIONS, TENANT_TAG
from stacks.common.encryption import Encryption
from stacks.common.functions import BerthFunction
from stacks.common.permissions import allow
from stacks.events.table import EventsTable

_TENANT = f"${{aws:PrincipalTag/{TENANT_TAG}}}"


class EventAccess(Construct):
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        issuer: BerthFunction,
        events: EventsTable,
        encryption: Encryption,
        seconds: int,
    ) -> None:
        super().__init__(scope, construct_id)
        issuers_role = iam.ArnPrincipal(issuer.role.role_arn)
        only_this_tag = {"ForAllValues:StringEquals": {"aws:TagKeys": [TENANT_TAG]}}
        tenant_named, caller_named = {f"aws:RequestTag/{TENANT_TAG}": "?*"}, {"sts:SourceIdentity": "?*"}
        role = iam.Role(
            self,
            "Role",
            description="Reads the events of the one tenant that its session is tagged with.",
            assumed_by=issuers_role.with_conditions({**only_this_tag, "StringLike": tenant_named | caller_named}),
            max_session_duration=Duration.hours(1),
        )
        trust = role.assume_role_policy
        assert trust is not None  # noqa: S101 - only an imported role has none
        # Each action has only the conditions that AWS documents for it.
        for action, conditions in (
            ("sts:TagSession", {**only_this_tag, "StringLike": tenant_named}),
            ("sts:SetSourceIdentity", {"StringLike": caller_named}),
        ):
            trust.add_statements(
                iam.PolicyStatement(actions=[action], principals=[issuers_role], conditions=conditions)
            )
        events.allow(role, *_operations(TABLE_ACTIONS), rows=f"{EVENT_PREFIX}{_TENANT}#*")
        events.allow_indexes(role, rows=f"{_TENANT}#*")

        allow(issuer.role, ["sts:AssumeRole", "sts:TagSession", "sts:SetSourceIdentity"], role.role_arn)
        for name, value in {
            "BERTH_EVENT_ACCESS_ROLE": role.role_arn,
            "BERTH_EVENTS_TABLE_ARN": events.arn,
            "BERTH_CREDENTIALS_SECONDS": str(seconds),
            **encryption.environment,
        }.items():
            issuer.function.add_environment(name, value)


def _operations(actions: tuple[str, ...]) -> list[str]:
    return [action.removeprefix("dynamodb:") for action in actions]
