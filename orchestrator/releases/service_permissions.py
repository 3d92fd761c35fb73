"""The permissions of the service role of tenants' stacks, as far as a template can be checked for them.

The role may manage queues, and whatever the managed policies allow that the operator named at deployment. A check by
the action that creates a resource finds the policy that was forgotten. It does not replace CloudFormation's own answer:
that a policy allows an action on one resource only, or that another action is missing, shows when a stack is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from orchestrator.releases.template_contract import QUEUE_INLINE_POLICY_TYPE, QUEUE_POLICY_TYPE, QUEUE_TYPE
from orchestrator.releases.template_values import entries, mapping

_ALWAYS_ALLOWED = frozenset({QUEUE_TYPE, QUEUE_POLICY_TYPE, QUEUE_INLINE_POLICY_TYPE})
_CREATING = {
    "AWS::CloudWatch::Alarm": "cloudwatch:PutMetricAlarm",
    "AWS::CloudWatch::Dashboard": "cloudwatch:PutDashboard",
    "AWS::DynamoDB::GlobalTable": "dynamodb:CreateTable",
    "AWS::DynamoDB::Table": "dynamodb:CreateTable",
    "AWS::Events::EventBus": "events:CreateEventBus",
    "AWS::Events::Rule": "events:PutRule",
    "AWS::KMS::Alias": "kms:CreateAlias",
    "AWS::KMS::Key": "kms:CreateKey",
    "AWS::Kinesis::Stream": "kinesis:CreateStream",
    "AWS::Logs::LogGroup": "logs:CreateLogGroup",
    "AWS::S3::Bucket": "s3:CreateBucket",
    "AWS::S3::BucketPolicy": "s3:PutBucketPolicy",
    "AWS::SNS::Subscription": "sns:Subscribe",
    "AWS::SNS::Topic": "sns:CreateTopic",
    "AWS::SNS::TopicPolicy": "sns:SetTopicAttributes",
    "AWS::SSM::Parameter": "ssm:PutParameter",
    "AWS::SecretsManager::Secret": "secretsmanager:CreateSecret",
}
_PREFIXES = {
    "AmazonMQ": "mq",
    "ApiGatewayV2": "apigateway",
    "CertificateManager": "acm",
    "Cognito": "cognito-idp",
    "DocDB": "rds",
    "ElasticLoadBalancingV2": "elasticloadbalancing",
    "Elasticsearch": "es",
    "KinesisFirehose": "firehose",
    "MSK": "kafka",
    "Neptune": "rds",
    "OpenSearchService": "es",
    "StepFunctions": "states",
}
"""The prefix of a service's actions, where it is not the service's name in lower case."""


@dataclass(frozen=True, slots=True)
class Permissions:
    """Patterns of actions that the policies allow, such as ``s3:*``."""

    actions: frozenset[str] = frozenset()

    @classmethod
    def of_policies(cls, documents: Iterable[Mapping[str, Any]]) -> Permissions:
        """The actions that these policies allow on any resource. Their denials are left to IAM."""
        allowed: set[str] = set()
        for document in documents:
            for statement in entries(document.get("Statement", [])):
                if mapping(statement).get("Effect") != "Allow":
                    continue
                allowed |= {"*"} if "NotAction" in statement else set()
                allowed |= {each.lower() for each in entries(statement.get("Action", [])) if isinstance(each, str)}
        return cls(frozenset(allowed))

    def allow_creating(self, resource_type: str) -> bool:
        if resource_type in _ALWAYS_ALLOWED:
            return True
        action = needed_action(resource_type).lower()
        if not action.endswith(":*"):
            return any(fnmatchcase(action, pattern) for pattern in self.actions)
        service = action.removesuffix("*")
        return any(pattern == "*" or pattern.startswith(service) for pattern in self.actions)


def needed_action(resource_type: str) -> str:
    """The action that creates a resource of this type, or all actions of its service if that is not known."""
    if known := _CREATING.get(resource_type):
        return known
    service = resource_type.split("::")[1]
    return f"{_PREFIXES.get(service, service.lower())}:*"
