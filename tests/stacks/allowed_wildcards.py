"""Where a policy may have a wildcard, and why. There are no others."""

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
    "composite alarms are told of only to those who may see all alarms": frozenset(
        {"cloudwatch:DescribeAlarms", "cloudwatch:DescribeAlarmHistory"}
    ),
    "the account's own limits": frozenset(
        {"cloudformation:DescribeAccountLimits", "lambda:GetAccountSettings", "cloudwatch:GetMetricStatistics"}
    ),
    "all stacks are listed only to those who may describe all of them": frozenset(
        {"cloudformation:DescribeStacks", "cloudformation:ListStacks"}
    ),
    "drift detections have ids, and are no resources": frozenset(
        {"cloudformation:DescribeStackDriftDetectionStatus", "cloudformation:BatchDescribeTypeConfigurations"}
    ),
}
"""What may be done on `*`, by the reason: none of it takes a narrower resource."""

MANY: Mapping[str, str] = {
    "tenant stacks": "tenants come and go, and their stacks begin alike",
    "all stacks": "any team's stack may ask for a tenant's queue",
    "tenant queues": "CloudFormation names them after the stacks",
    "published templates": "each version has an object of its own",
    "rollouts' lists": "each stage of each rollout has one",
    "rollouts' results": "each run of the map has some",
    "executions of create_tenant": "each operation is one",
    "executions of update_tenant": "each operation is one",
    "executions of delete_tenant": "each operation is one",
    "executions of tenant_queue": "each request is one",
    "executions of rollout": "each attempt of a rollout is one",
    "turns in rollouts": "each tenant's turn is one",
    "the API's stage": "there is one, and AWS does not say how its `$` is spelled in an ARN",
    "routes with ids": "callers are trusted with all tenants, rollouts and reconciliations, or with none",
}
"""Resources that end in a wildcard, or have one within: of a kind that is named, and of which there are many."""

NOT_ASKED_FOR: Mapping[str, str] = {
    "lambda.amazonaws.com": (
        "Lambda does not document that it says for which function or account it takes on an execution role, so a "
        "condition could keep every function from starting. A role can be given only to functions of its own account."
    ),
    "cloudformation.amazonaws.com": (
        "AWS documents these conditions for StackSets, not for the service role of a stack, so they are a setting. "
        "Only who may pass the role can have CloudFormation use it, and that is given for tenants' stacks alone."
    ),
}
"""Services that take on roles without saying on whose behalf."""
