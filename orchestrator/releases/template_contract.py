"""The code's expectations of a tenant's template, in every release: parameters, logical ids, types, outputs, limits.

``stacks/tenant_stack.py`` makes Berth's own template from these names. Operators bring their own templates:
:mod:`orchestrator.releases.checking` checks every one of them against this contract, on the command line, in the API
and when the CDK synthesises it.
"""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.common.tenant_ids import TENANT_ID_MAX_LENGTH, TENANT_ID_PATTERN
from orchestrator.common.versions import is_older

# Parameters

TENANT_PARAMETER = "TenantId"
SERVICE_TOKEN_PARAMETER = "MetadataServiceToken"  # noqa: S105 - a parameter's name
KMS_KEY_PARAMETER = "KmsKeyArn"
"""A template need not declare it."""

ALWAYS_GIVEN = frozenset({TENANT_PARAMETER, SERVICE_TOKEN_PARAMETER})

FUNCTION_ARN_PATTERN = r"^arn:[a-z-]+:lambda:[a-z0-9-]+:[0-9]{12}:function:[A-Za-z0-9_-]+$"
KEY_ARN_PATTERN = r"^arn:[a-z-]+:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+$"
CONSTRAINTS: Mapping[str, Mapping[str, object]] = {
    TENANT_PARAMETER: {"AllowedPattern": TENANT_ID_PATTERN, "MaxLength": TENANT_ID_MAX_LENGTH},
    SERVICE_TOKEN_PARAMETER: {"AllowedPattern": FUNCTION_ARN_PATTERN},
    KMS_KEY_PARAMETER: {"AllowedPattern": f"^$|{KEY_ARN_PATTERN}"},
}
"""The constraints of parameters that refuse no value of Berth. A template may have these, and no others."""

# Resources, by their logical ids

INBOUND_QUEUE = "InboundQueue"
"""The tenant's queue."""

DEAD_LETTER_QUEUE = "DeadLetterQueue"
"""The queue of messages that nobody could handle. Tenants from before Berth have none of that name."""

OUTBOUND_QUEUE = "OutboundQueue"
"""A second queue that only tenants from before Berth have."""

QUEUE_TYPE = "AWS::SQS::Queue"

TENANT_TAG = "berth:tenant-id"
"""The tag of the tenant's queue, with the tenant's id. Temporary credentials work only for a queue that has it."""

METADATA_RESOURCE = "TenantMetadata"
"""The resource that records the stack's queue in the tenant's metadata."""

METADATA_TYPE = "Custom::TenantMetadata"

# Outputs, and the properties of the metadata resource that have the same names and values

QUEUE_ARN = "InboundQueueArn"
QUEUE_URL = "InboundQueueUrl"
VERSION = "Version"

# Outputs for people

DEAD_LETTER_QUEUE_ARN = "DeadLetterQueueArn"
DEAD_LETTER_QUEUE_URL = "DeadLetterQueueUrl"

OWN_OUTPUTS = frozenset({QUEUE_ARN, QUEUE_URL, VERSION})
"""The outputs that are fields of the tenant's record. All other outputs are the tenant's resources."""

# Templates of operators

FIRST_VERSION_OF_OPERATORS = "2.0.0"
"""Berth's own releases have versions before this one, and the operators' releases have this one or a later one. So a
deployment of Berth never meets a version that an operator has published, and never moves a tenant from an operator's
release to one of its own, which would be a downgrade."""


def is_operators(version: str) -> bool:
    """True for the version of a release that operators publish, and false for one that comes with Berth."""
    return not is_older(version, than=FIRST_VERSION_OF_OPERATORS)


SECTIONS = frozenset(
    {
        "AWSTemplateFormatVersion",
        "Conditions",
        "Description",
        "Mappings",
        "Metadata",
        "Outputs",
        "Parameters",
        "Resources",
    }
)
"""The sections that a template may have. A Transform would let a macro change the template after it was checked,
and Rules would refuse tenants."""

FUNCTIONS = frozenset(
    {
        "Fn::And",
        "Fn::Base64",
        "Fn::Cidr",
        "Fn::Equals",
        "Fn::FindInMap",
        "Fn::GetAZs",
        "Fn::GetAtt",
        "Fn::If",
        "Fn::Join",
        "Fn::Not",
        "Fn::Or",
        "Fn::Select",
        "Fn::Split",
        "Fn::Sub",
    }
)
"""The functions that a template may use. Others read values of other stacks, or need a macro."""

MAX_TEMPLATE_BYTES = 1_000_000
"""CloudFormation reads templates of up to 1 MB from S3."""
MAX_DIRECT_BYTES = 51_200
"""The maximum number of bytes of a template in a request to CloudFormation. Longer ones are read from S3, and every
tenant's update is reviewed by a change set of its own."""
MAX_RESOURCES = 500
MAX_OUTPUTS = 60
"""CloudFormation allows 200. Every output is in the tenant's record, which getQueue reads with each call."""
MAX_OUTPUT_BYTES = 1_024
"""The maximum length of an output's value in CloudFormation."""
MAX_NOTES = 4_000
"""The maximum length of a release's notes."""

DATA_TYPES = frozenset(
    {
        "AWS::Cognito::UserPool",
        "AWS::DocDB::DBCluster",
        "AWS::DynamoDB::GlobalTable",
        "AWS::DynamoDB::Table",
        "AWS::EFS::FileSystem",
        "AWS::ElastiCache::CacheCluster",
        "AWS::ElastiCache::ReplicationGroup",
        "AWS::ElastiCache::ServerlessCache",
        "AWS::KMS::Key",
        "AWS::Kinesis::Stream",
        "AWS::Logs::LogGroup",
        "AWS::Neptune::DBCluster",
        "AWS::OpenSearchService::Domain",
        "AWS::RDS::DBCluster",
        "AWS::RDS::DBInstance",
        "AWS::S3::Bucket",
        "AWS::SSM::Parameter",
        "AWS::SecretsManager::Secret",
    }
)
"""Types of resources, besides queues, that hold data of a tenant. An update that replaces or removes one is refused
unless the request allows it."""

QUEUE_POLICY_TYPE = "AWS::SQS::QueuePolicy"
QUEUE_INLINE_POLICY_TYPE = "AWS::SQS::QueueInlinePolicy"
