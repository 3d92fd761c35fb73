"""The one table that remembers tenants, operations and releases."""

from __future__ import annotations

from aws_cdk import RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from constructs import Construct

from orchestrator.adapters.keys import LISTING_INDEX, RELEASES
from stacks.permissions import allow

TENANT_ROWS = "TENANT_ID#*"
RELEASE_ROWS = RELEASES


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

    def allow(self, role: iam.Role, *operations: str, rows: str) -> None:
        """Let a role do these operations on these rows only; the index is not for functions."""
        allow(
            role,
            [f"dynamodb:{operation}" for operation in operations],
            self._table.table_arn,
            conditions={"ForAllValues:StringLike": {"dynamodb:LeadingKeys": [rows]}},
        )


def _string(name: str) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)
