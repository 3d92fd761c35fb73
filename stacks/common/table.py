"""The one table, with all tenants, operations, releases and rollouts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aws_cdk import RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from constructs import Construct

from orchestrator.adapters.dynamodb.keys import (
    CREATE_TURNS,
    CREATES_PREFIX,
    EXPIRY,
    HISTORY_PREFIX,
    LISTED_ROLLOUTS,
    LISTING_INDEX,
    RECONCILIATIONS,
    RELEASE_STATE,
    RELEASES,
    RELISTINGS,
    REVIEWS,
    ROLLOUT_PREFIX,
    TENANT_PREFIX,
    UNFINISHED_OPERATIONS,
    pace_key,
    pool_key,
    registry_key,
    tenant_count_key,
)
from stacks.common.capability import Capability, Output
from stacks.common.encryption import Encryption
from stacks.common.permissions import allow, allow_consuming_stream

TENANT_ROWS = f"{TENANT_PREFIX}*"
HISTORY_ROWS = f"{HISTORY_PREFIX}*"
RELISTING_ROWS = RELISTINGS
"""The changes of tenants' places in the index, read by lists of the fleet meanwhile."""
RELEASE_ROWS = RELEASES
RELEASE_STATE_ROWS = RELEASE_STATE
"""Which release is current, and which were withdrawn."""
REVIEW_ROWS = REVIEWS
"""The reviews of updates that are kept for other tenants."""
ROLLOUT_ROWS = f"{ROLLOUT_PREFIX}*"
REGISTRY_ROWS = registry_key()["pk"]["S"]
"""The unfinished rollouts, which have a claim on their tenants."""
PACE_ROWS = pace_key()["pk"]["S"]
"""How often CloudFormation throttled. Rollouts slow down when it does."""
POOL_ROWS = pool_key()["pk"]["S"]
"""The stacks that are kept ready."""
CREATE_TURN_ROWS = CREATE_TURNS
"""The turns of creates, and the tickets of those that wait."""
RECONCILIATION_ROWS = RECONCILIATIONS
CREATES_ROWS = f"{CREATES_PREFIX}*"
"""The number of creates that each caller has started in the current minute."""
TENANT_COUNT_ROWS = tenant_count_key()["pk"]["S"]
"""The number of tenants when they were last counted, and of the creates that were started since."""

_READING = frozenset({"GetItem", "Query", "ConditionCheckItem"})

LISTED_TENANTS = "TENANT#*"
"""The partitions of the index that list tenants, one per state."""
LISTED_IN_ROLLOUTS = (LISTED_ROLLOUTS, ROLLOUT_ROWS)
"""The partitions of the index that list rollouts, and the failed tenants of each rollout."""


class TenantTable(Capability):
    def __init__(self, scope: Construct, construct_id: str, *, encryption: Encryption) -> None:
        super().__init__(scope, construct_id)
        self._encryption = encryption
        self._policy = iam.PolicyDocument(statements=[_deny_bulk_writes_of_history()])
        self._appending: dict[str, str] = {}
        """The ARNs of the roles that may append to history, by the path of the role."""
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
            # Berth's own events are published from the stream. A change is told apart by the image before it.
            stream=dynamodb.StreamViewType.NEW_AND_OLD_IMAGES,
            # Outcomes of rollouts, requested reconciliations and changes of the index expire. Rows of tenants and of
            # history do not.
            time_to_live_attribute=EXPIRY,
            # Without the table nobody knows which tenants exist.
            deletion_protection=True,
            removal_policy=RemovalPolicy.RETAIN,
            resource_policy=self._policy,
        )
        encryption.encrypt_after_policies(self._table)
        self._table.add_global_secondary_index(
            index_name=LISTING_INDEX,
            partition_key=_string("ListingKey"),
            sort_key=_string("ListingSort"),
            projection_type=dynamodb.ProjectionType.ALL,
        )

    @property
    def name(self) -> str:
        return self._table.table_name

    @property
    def outputs(self) -> Sequence[Output]:
        return (Output("TableName", self.name),)

    @property
    def used_by_other_stacks(self) -> Sequence[str]:
        return (self._table.table_name, self._table.table_arn, self.stream_arn)

    @property
    def stream_arn(self) -> str:
        arn = self._table.table_stream_arn
        assert arn is not None  # noqa: S101 - the table has a stream
        return arn

    def allow_consuming_stream(self, role: iam.Role) -> None:
        """Let Lambda read the stream with the role of the function that consumes it.

        A stream cannot be limited to some rows. Lambda's filter holds back all records that the function does not need.
        """
        allow_consuming_stream(role, self.stream_arn)
        self._encryption.allow_table(role, writing=False)

    def allow(self, role: iam.Role, *operations: str, rows: str | Sequence[str]) -> None:
        """Let a role call these operations, on these rows only."""
        self._allow(role, operations, self._table.table_arn, [rows] if isinstance(rows, str) else rows)

    def allow_appending(self, role: iam.Role, *, along_with: Sequence[str] = ()) -> None:
        """Let a role append to history, and put the rows ``along_with`` which history is written in one transaction.

        One statement allows both, so it works whether AWS evaluates each put of a transaction by itself or all of them
        together.
        """
        self.allow(role, "PutItem", rows=[*along_with, HISTORY_ROWS])
        self._appending[role.node.path] = role.role_arn

    def protect_history(self, adopter: str | None) -> None:
        """Deny all other roles to write history, whatever their policies allow. Call this last, and once.

        ``adopter`` is the role with which an operator runs `berth adopt`.
        """
        appending = [*self._appending.values(), *([adopter] if adopter else [])]
        self._policy.add_statements(_deny_others_to_write_history(appending), _deny_changes_of_history(appending))

    def allow_listing(self, role: iam.Role) -> None:
        """Let a role list tenants through the index."""
        self.allow_index(role, LISTED_TENANTS)

    def allow_index(self, role: iam.Role, *partitions: str) -> None:
        """Let a role query these partitions of the index."""
        self._allow(role, ["Query"], f"{self._table.table_arn}/index/{LISTING_INDEX}", partitions)

    def allow_attributes(self, role: iam.Role, *attributes: str, rows: str) -> None:
        """Let a role read these attributes of rows, one row at a time, and no others."""
        allow(
            role,
            ["dynamodb:GetItem"],
            self._table.table_arn,
            conditions={
                "ForAllValues:StringLike": {"dynamodb:LeadingKeys": [rows]},
                # DynamoDB requires the keys of the table to be among them.
                "ForAllValues:StringEquals": {"dynamodb:Attributes": ["pk", "sk", *attributes]},
                # ForAllValues is true for a request that names none, and which reads all.
                "Null": {"dynamodb:LeadingKeys": "false", "dynamodb:Attributes": "false"},
                # AWS documents this key for Query and Scan, and uses it in its examples for GetItem.
                "StringEqualsIfExists": {"dynamodb:Select": "SPECIFIC_ATTRIBUTES"},
            },
        )
        self._encryption.allow_table(role, writing=False)

    def allow_counting_tenants(self, role: iam.Role) -> None:
        """Let a role count the tenants, without reading them."""
        allow(
            role,
            ["dynamodb:Query"],
            f"{self._table.table_arn}/index/{LISTING_INDEX}",
            conditions={
                "ForAllValues:StringLike": {"dynamodb:LeadingKeys": [LISTED_TENANTS]},
                "StringEquals": {"dynamodb:Select": "COUNT"},
            },
        )
        self._encryption.allow_table(role, writing=False)

    def allow_choosing_releases(self, role: iam.Role) -> None:
        """Let a role find out which release is current, and which were withdrawn."""
        self.allow(role, "GetItem", rows=RELEASE_STATE_ROWS)
        # The releases are listed if one was withdrawn, to find the newest earlier one.
        self.allow(role, "GetItem", "Query", rows=RELEASE_ROWS)

    def allow_promoting_releases(self, role: iam.Role) -> None:
        """Let a role change which release is current, and which are withdrawn. The history records each change."""
        self.allow_choosing_releases(role)
        self.allow_appending(role, along_with=[RELEASE_STATE_ROWS])

    def allow_keeping_the_count(self, role: iam.Role) -> None:
        """Let a role read and change the kept number of tenants."""
        self.allow(role, "UpdateItem", rows=TENANT_COUNT_ROWS)

    def allow_counting_creates(self, role: iam.Role) -> None:
        """Let a role count the creates that each caller starts."""
        self.allow(role, "GetItem", "UpdateItem", rows=CREATES_ROWS)

    def allow_listing_unfinished(self, role: iam.Role) -> None:
        """Let a role list the operations whose status is Started."""
        self.allow_index(role, UNFINISHED_OPERATIONS)

    def allow_listing_rollouts(self, role: iam.Role) -> None:
        self.allow_index(role, *LISTED_IN_ROLLOUTS)

    def allow_noting_throttles(self, role: iam.Role) -> None:
        """Let a role record that CloudFormation throttled it."""
        self.allow(role, "UpdateItem", rows=PACE_ROWS)

    def allow_turns(self, role: iam.Role) -> None:
        """Let a role give turns to creates, take them back, and see how often CloudFormation throttled."""
        self.allow(role, "GetItem", "Query", "PutItem", "DeleteItem", rows=CREATE_TURN_ROWS)
        self.allow(role, "GetItem", rows=PACE_ROWS)

    def allow_taking_warm_stacks(self, role: iam.Role) -> None:
        """Let a role give stacks that are kept ready to new tenants, in one transaction with the tenant's records."""
        self.allow(role, "GetItem", rows=POOL_ROWS)
        self.allow(role, "BatchGetItem", "ConditionCheckItem", rows=TENANT_ROWS)
        self.allow_appending(role, along_with=[TENANT_ROWS, RELISTING_ROWS])

    def _allow(self, role: iam.Role, operations: Sequence[str], resource: str, partitions: Sequence[str]) -> None:
        allow(
            role,
            [f"dynamodb:{operation}" for operation in operations],
            resource,
            conditions={"ForAllValues:StringLike": {"dynamodb:LeadingKeys": list(partitions)}},
        )
        self._encryption.allow_table(role, writing=not _READING.issuperset(operations))


def _deny_bulk_writes_of_history() -> iam.PolicyStatement:
    """These operations write without a condition. Everybody is denied them; the control plane does not use them."""
    return _denied(
        "NobodyWritesHistoryInBulk",
        ["BatchWriteItem", "PartiQLInsert", "PartiQLUpdate", "PartiQLDelete"],
        {"ForAnyValue:StringLike": _HISTORY},
    )


def _deny_others_to_write_history(appending: Sequence[str]) -> iam.PolicyStatement:
    return _denied(
        "OnlyBerthAppendsToHistory",
        ["PutItem", "UpdateItem", "DeleteItem"],
        {"ForAnyValue:StringLike": _HISTORY, "ArnNotEquals": {"aws:PrincipalArn": list(appending)}},
    )


def _deny_changes_of_history(appending: Sequence[str]) -> iam.PolicyStatement:
    """The roles that append may not update or delete. The condition of each put prevents overwriting; a policy cannot.

    These roles write history in transactions that also update and delete other rows. AWS does not document whether it
    evaluates each write of a transaction with its own key or with the keys of all writes. So this statement denies only
    requests whose keys are all of history.
    """
    return _denied(
        "HistoryIsAppendOnly",
        ["UpdateItem", "DeleteItem"],
        {
            "ForAllValues:StringLike": _HISTORY,
            # ForAllValues is true for a request without keys.
            "Null": {"dynamodb:LeadingKeys": "false"},
            "ArnEquals": {"aws:PrincipalArn": list(appending)},
        },
    )


_HISTORY = {"dynamodb:LeadingKeys": [HISTORY_ROWS]}


def _denied(sid: str, operations: Sequence[str], conditions: Mapping[str, Mapping[str, Any]]) -> iam.PolicyStatement:
    return iam.PolicyStatement(
        sid=sid,
        effect=iam.Effect.DENY,
        principals=[iam.AnyPrincipal()],
        actions=[f"dynamodb:{operation}" for operation in operations],
        # In a table's own policy, `*` is the table. The policy is created with the table, so it cannot name its ARN.
        resources=["*"],
        conditions=conditions,
    )


def _string(name: str) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)
