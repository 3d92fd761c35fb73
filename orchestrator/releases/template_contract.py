"""What the code expects of a tenant's template, in every release: parameters, logical ids, types and outputs.

``stacks/tenants/template.py`` makes the template from these names. A test compares every released template with them.
"""

from __future__ import annotations

# Parameters

TENANT_PARAMETER = "TenantId"
SERVICE_TOKEN_PARAMETER = "MetadataServiceToken"  # noqa: S105 - a parameter's name
KMS_KEY_PARAMETER = "KmsKeyArn"
"""Releases before 0.7.0 do not declare it."""

ALWAYS_GIVEN = frozenset({TENANT_PARAMETER, SERVICE_TOKEN_PARAMETER})

# Resources, by their logical ids

INBOUND_QUEUE = "InboundQueue"
"""The tenant's queue."""

DEAD_LETTER_QUEUE = "DeadLetterQueue"
"""The queue of messages that nobody could handle. Tenants from before 0.1.0 have none of that name."""

OUTBOUND_QUEUE = "OutboundQueue"
"""A second queue that only tenants from before 0.1.0 have."""

QUEUE_TYPE = "AWS::SQS::Queue"

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
