"""Log groups. Logs expire and are deleted with the stack; records that must be kept are in the table."""

from __future__ import annotations

from aws_cdk import RemovalPolicy
from aws_cdk import aws_logs as logs
from constructs import Construct

from stacks.common.encryption import Encryption
from stacks.common.permissions import names_of

FUNCTION_ERRORS = "FunctionErrors"
EXECUTIONS_DIED = "ExecutionsDied"
_CALL_FAILED = '{ $.type = "platform.report" && $.record.status != "success" }'
"""Lambda's last line about a call. At the system log level WARN, Lambda writes it only if the call failed: by an error,
a timeout or a lack of memory."""
_EXECUTION_DIED = '{ $.type = "ExecutionTimedOut" || $.type = "ExecutionAborted" }'


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


def count_failed_calls(group: logs.LogGroup) -> None:
    """Count the failed calls of the function that writes to the group."""
    _count(group, FUNCTION_ERRORS, _CALL_FAILED)


def count_dead_executions(group: logs.LogGroup) -> None:
    """Count the executions that ended without a last state, of the machine that writes to the group."""
    _count(group, EXECUTIONS_DIED, _EXECUTION_DIED)


def _count(group: logs.LogGroup, metric: str, pattern: str) -> None:
    """Count lines in a metric of the whole control plane.

    The metric has no dimension, so that one alarm watches all groups. Neither the filter nor a metric without values
    costs anything.
    """
    group.add_metric_filter(
        metric,
        filter_pattern=logs.FilterPattern.literal(pattern),
        metric_namespace=names_of(group).metrics,
        metric_name=metric,
        metric_value="1",
    )
