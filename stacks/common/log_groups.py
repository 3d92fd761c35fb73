"""Log groups. Logs expire and are deleted with the stack; records that must be kept are in the table."""

from __future__ import annotations

from aws_cdk import RemovalPolicy
from aws_cdk import aws_logs as logs
from constructs import Construct

from stacks.common.encryption import Encryption


def log_group(
    scope: Construct, construct_id: str, *, days: int, encryption: Encryption, name: str | None = None
) -> logs.LogGroup:
    group = logs.LogGroup(
        scope,
        construct_id,
        log_group_name=name,
        encryption_key=encryption.key,
        removal_policy=RemovalPolicy.DESTROY,
    )
    resource = group.node.default_child
    assert isinstance(resource, logs.CfnLogGroup)  # noqa: S101 - what the construct is made of
    # The construct takes an enum of names ("THREE_MONTHS"); the setting is in days, as in CloudWatch.
    resource.retention_in_days = days
    return group
