"""The one table that remembers tenants, operations, releases and rollouts."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from constructs import Construct

from orchestrator.adapters.keys import (
    CREATES_PREFIX,
    HISTORY_PREFIX,
    LISTED_ROLLOUTS,
    LISTING_INDEX,
    RECONCILIATIONS,
    RELEASES,
    ROLLOUT_PREFIX,
    TENANT_PREFIX,
    UNFINISHED_OPERATIONS,
    pace_key,
    registry_key,
)
from stacks.permissions import allow

TENANT_ROWS = f"{TENANT_PREFIX}*"
HISTORY_ROWS = f"{HISTORY_PREFIX}*"
RELEASE_ROWS = RELEASES
ROLLOUT_ROWS = f"{ROLLOUT_PREFIX}*"
REGISTRY_ROWS = registry_key()["pk"]["S"]
"""Which rollouts have a claim on tenants now."""
PACE_ROWS = pace_key()["pk"]["S"]
"""How often CloudFormation has throttled, which slows rollouts down."""
RECONCILIATION_ROWS = RECONCILIATIONS
CREATES_ROWS = f"{CREATES_PREFIX}*"
"""How many creates each caller has started in the current minute."""

LISTED_TENANTS = "TENANT#*"
"""The partitions of the index that tenants are listed in, whatever their state."""
LISTED_IN_ROLLOUTS = (LISTED_ROLLOUTS, ROLLOUT_ROWS)
"""Those that rollouts are listed in, and the failed tenants of each."""


class TenantTable(Construct):
    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(scope, construct_id)
        self._table = dynamodb.Table(
            self,
            "Table",
            partition_key=_string("pk"),
            sort_key=_string("sk"),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            encryption=dynamodb.TableEncryption.AWS_MANAGED,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            # Without the table nobody knows which tenants exist.
            deletion_protection=True,
            removal_policy=RemovalPolicy.RETAIN,
            resource_policy=iam.PolicyDocument(statements=[_nobody_changes_history()]),
        )
        self._table.add_global_secondary_index(
            index_name=LISTING_INDEX,
            partition_key=_string("ListingKey"),
            sort_key=_string("ListingSort"),
            projection_type=dynamodb.ProjectionType.ALL,
        )

    @property
    def name(self) -> str:
        return self._table.table_name

    def allow(self, role: iam.Role, *operations: str, rows: str | Sequence[str]) -> None:
        """Let a role do these operations on these rows only."""
        self._allow(role, operations, self._table.table_arn, [rows] if isinstance(rows, str) else rows)

    def allow_listing(self, role: iam.Role) -> None:
        """Let a role list tenants, by way of the index."""
        self._allow(role, ["Query"], f"{self._table.table_arn}/index/{LISTING_INDEX}", [LISTED_TENANTS])

    def allow_counting_tenants(self, role: iam.Role) -> None:
        """Let a role see how many tenants there are, and none of them."""
        allow(
            role,
            ["dynamodb:Query"],
            f"{self._table.table_arn}/index/{LISTING_INDEX}",
            conditions={
                "ForAllValues:StringLike": {"dynamodb:LeadingKeys": [LISTED_TENANTS]},
                "StringEquals": {"dynamodb:Select": "COUNT"},
            },
        )

    def allow_counting_creates(self, role: iam.Role) -> None:
        """Let a role count the creates that each caller starts."""
        self.allow(role, "UpdateItem", rows=CREATES_ROWS)

    def allow_listing_unfinished(self, role: iam.Role) -> None:
        """Let a role list the operations that say Started."""
        self._allow(role, ["Query"], f"{self._table.table_arn}/index/{LISTING_INDEX}", [UNFINISHED_OPERATIONS])

    def allow_listing_rollouts(self, role: iam.Role) -> None:
        self._allow(role, ["Query"], f"{self._table.table_arn}/index/{LISTING_INDEX}", LISTED_IN_ROLLOUTS)

    def allow_noting_throttles(self, role: iam.Role) -> None:
        """For every function that asks CloudFormation for something, and is told to come back later."""
        self.allow(role, "UpdateItem", rows=PACE_ROWS)

    def _allow(self, role: iam.Role, operations: Sequence[str], resource: str, partitions: Sequence[str]) -> None:
        allow(
            role,
            [f"dynamodb:{operation}" for operation in operations],
            resource,
            conditions={"ForAllValues:StringLike": {"dynamodb:LeadingKeys": list(partitions)}},
        )


def _nobody_changes_history() -> iam.PolicyStatement:
    """Whatever an identity's own policies allow. What a put may not overwrite, its condition says: no policy can."""
    return iam.PolicyStatement(
        sid="HistoryIsAppendOnly",
        effect=iam.Effect.DENY,
        principals=[iam.AnyPrincipal()],
        actions=[
            "dynamodb:UpdateItem",
            "dynamodb:DeleteItem",
            "dynamodb:BatchWriteItem",
            "dynamodb:PartiQLUpdate",
            "dynamodb:PartiQLDelete",
        ],
        # The table itself: its ARN cannot be named in its own policy, which is made with it.
        resources=["*"],
        conditions={"ForAnyValue:StringLike": {"dynamodb:LeadingKeys": [HISTORY_ROWS]}},
    )


def _string(name: str) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)
