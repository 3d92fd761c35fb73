"""The table of events."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import RemovalPolicy
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from constructs import Construct

from orchestrator.adapters.dynamodb.event_keys import STATUS_INDEX, TYPE_INDEX
from stacks.common.alarms import PERIOD, Alarm
from stacks.common.capability import Capability, Output
from stacks.common.encryption import Encryption
from stacks.common.graphs import graph
from stacks.common.permissions import allow, allow_consuming_stream

_READING = frozenset({"GetItem", "BatchGetItem", "Query", "ConditionCheckItem"})
_WATCHED = ("PutItem", "UpdateItem", "Query")
"""The operations that accept, acknowledge and list events."""


class EventsTable(Capability):
    """On demand. Rows expire by their attribute ``ttl``. New rows go through the stream."""

    def __init__(self, scope: Construct, construct_id: str, *, encryption: Encryption) -> None:
        super().__init__(scope, construct_id)
        self._encryption = encryption
        self._table = dynamodb.Table(
            self,
            "Table",
            partition_key=_string("pk"),
            sort_key=_string("sk"),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            encryption=(
                dynamodb.TableEncryption.CUSTOMER_MANAGED if encryption.key else dynamodb.TableEncryption.AWS_MANAGED
            ),
            encryption_key=encryption.key,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            time_to_live_attribute="ttl",
            stream=dynamodb.StreamViewType.NEW_IMAGE,
            # An accepted event is never lost, even if somebody removes the stack.
            deletion_protection=True,
            removal_policy=RemovalPolicy.RETAIN,
        )
        encryption.encrypt_after_policies(self._table)
        for index, number in ((STATUS_INDEX, 1), (TYPE_INDEX, 2)):
            self._table.add_global_secondary_index(
                index_name=index,
                partition_key=_string(f"GSI{number}PK"),
                sort_key=_string(f"GSI{number}SK"),
                projection_type=dynamodb.ProjectionType.KEYS_ONLY,
            )

    @property
    def name(self) -> str:
        return self._table.table_name

    @property
    def arn(self) -> str:
        return self._table.table_arn

    @property
    def stream_arn(self) -> str:
        arn = self._table.table_stream_arn
        assert arn is not None  # noqa: S101 - the table has a stream
        return arn

    @property
    def alarms(self) -> Sequence[Alarm]:
        """Reads and acknowledgements that are throttled are answered with 503, and the API has an alarm about that."""
        return (
            Alarm(
                "EventsPutItemThrottled",
                self._throttled("PutItem"),
                "DynamoDB throttled PutItem on the table of events: one tenant uses more than its shards can take, or "
                "one partition of an index is hot. CloudWatch Contributor Insights of the table names the partition. "
                "Give the tenant a plan with more shards: `berth events settings ID --plan PLAN`.",
            ),
        )

    @property
    def widgets(self) -> Sequence[cloudwatch.IWidget]:
        throttled = [self._throttled(operation, label=operation) for operation in _WATCHED]
        return (graph("Events table: throttled requests", *throttled),)

    @property
    def outputs(self) -> Sequence[Output]:
        return (Output("EventsTableName", self.name),)

    def allow(self, role: iam.Role, *operations: str, rows: str | Sequence[str]) -> None:
        """Let a role call these operations, on these rows only."""
        allow(
            role,
            [f"dynamodb:{operation}" for operation in operations],
            self._table.table_arn,
            conditions=_only(rows),
        )
        self._encryption.allow_table(role, writing=not _READING.issuperset(operations))

    def allow_counting(self, role: iam.Role, *, rows: str) -> None:
        """Let a role count rows, without reading them."""
        allow(
            role,
            ["dynamodb:Query"],
            self._table.table_arn,
            conditions={**_only(rows), "StringEquals": {"dynamodb:Select": "COUNT"}},
        )
        self._encryption.allow_table(role, writing=False)

    def allow_index(self, role: iam.Role, index: str, *, rows: Sequence[str] | None = None) -> None:
        """Let a role query one index, for any tenant, or only these partitions of it."""
        conditions = _only(rows) if rows else None
        allow(role, ["dynamodb:Query"], f"{self._table.table_arn}/index/{index}", conditions=conditions)
        self._encryption.allow_table(role, writing=False)

    def allow_indexes(self, role: iam.Role, *, rows: str | None = None) -> None:
        """Let a role query both indexes.

        Their partitions begin with tenants' ids, so ``rows`` can only be the pattern for one tenant.
        """
        indexes = [f"{self._table.table_arn}/index/{index}" for index in (STATUS_INDEX, TYPE_INDEX)]
        allow(role, ["dynamodb:Query"], *indexes, conditions=_only(rows) if rows else None)
        self._encryption.allow_table(role, writing=False)

    def allow_consuming_stream(self, role: iam.Role) -> None:
        """Let Lambda read the stream with the role of the function that consumes it."""
        allow_consuming_stream(role, self.stream_arn)
        self._encryption.allow_table(role, writing=False)

    def _throttled(self, operation: str, label: str | None = None) -> cloudwatch.Metric:
        """Requests that were throttled by the table or by one of its indexes."""
        return cloudwatch.Metric(
            namespace="AWS/DynamoDB",
            metric_name="ThrottledRequests",
            dimensions_map={"TableName": self.name, "Operation": operation},
            statistic="Sum",
            period=PERIOD,
            label=label,
        )


def _only(rows: str | Sequence[str]) -> dict[str, dict[str, object]]:
    return {
        "ForAllValues:StringLike": {"dynamodb:LeadingKeys": [rows] if isinstance(rows, str) else list(rows)},
        # ForAllValues is true for a request without keys.
        "Null": {"dynamodb:LeadingKeys": "false"},
    }


def _string(name: str) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)
