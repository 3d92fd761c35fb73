"""All wildcards that policies may have, each with its reason."""

from __future__ import annotations

from collections.abc import Mapping

WITHOUT_RESOURCES: Mapping[str, frozenset[str]] = {
    "X-Ray": frozenset(
        {
            "xray:PutTraceSegments",
            "xray:PutTelemetryRecords",
            "xray:GetSamplingRules",
            "xray:GetSamplingTargets",
        }
    ),
    "log delivery": frozenset(
        {
            "logs:CreateLogDelivery",
            "logs:GetLogDelivery",
            "logs:UpdateLogDelivery",
            "logs:DeleteLogDelivery",
            "logs:ListLogDeliveries",
            "logs:PutResourcePolicy",
            "logs:DescribeResourcePolicies",
            "logs:DescribeLogGroups",
        }
    ),
    "composite alarms are described only to callers that may describe all alarms": frozenset(
        {"cloudwatch:DescribeAlarms", "cloudwatch:DescribeAlarmHistory"}
    ),
    "the account's quotas": frozenset(
        {"cloudformation:DescribeAccountLimits", "lambda:GetAccountSettings", "cloudwatch:GetMetricStatistics"}
    ),
    "stacks are listed only to callers that may describe all stacks": frozenset(
        {"cloudformation:DescribeStacks", "cloudformation:ListStacks"}
    ),
    "drift detections have ids, but are not resources": frozenset(
        {"cloudformation:DescribeStackDriftDetectionStatus", "cloudformation:BatchDescribeTypeConfigurations"}
    ),
    "Lambda finds a table's stream among all streams": frozenset({"dynamodb:ListStreams"}),
}
"""The actions that are allowed on `*`, by the reason: they accept no narrower resource."""

MANY: Mapping[str, str] = {
    "tenant stacks": "tenants are created at run time, and their stacks share a prefix",
    "Berth's own stacks, by their names": "the command line does not know their ids",
    "all stacks": "any team's stack may ask for a tenant's queue",
    "tenant queues": "CloudFormation names queues after their stacks",
    "published templates": "each version has its own object",
    "contents": "each large event has its own object",
    "rollouts' lists": "each stage of each rollout has a list",
    "rollouts' results": "each run of the map state has results",
    "executions of create_tenant": "each operation is an execution",
    "executions of update_tenant": "each operation is an execution",
    "executions of delete_tenant": "each operation is an execution",
    "executions of tenant_queue": "each request is an execution",
    "executions of rollout": "each attempt of a rollout is an execution",
    "turns in rollouts": "each tenant's turn is an execution",
    "the API's stage": "the API has one stage, and AWS does not document how its `$` is spelled in an ARN",
    "routes with ids": "callers are trusted with all tenants, rollouts and reconciliations, or with none",
}
"""Resources with a wildcard in their ARN, by their kind: there are many of each kind."""

WITHOUT_CONDITION: Mapping[str, str] = {
    "lambda.amazonaws.com": (
        "Lambda does not document that it sends the function or account for which it assumes an execution role, so a "
        "condition could keep every function from starting. Only functions of the same account can have the role."
    ),
    "cloudformation.amazonaws.com": (
        "AWS documents these conditions for StackSets, not for the service role of a stack, so they are a setting. "
        "CloudFormation uses the role only for callers that may pass it, and those may pass it only for tenants' "
        "stacks."
    ),
}
"""Services that assume roles without a condition on the account, each with the reason."""
