"""What CloudFormation needs to make, change and delete the resources of tenants' stacks, by its registry of types.

Written down, because the registry takes seconds to load; a test compares it (``tests/stacks/test_stack_role.py``).
"""

from __future__ import annotations

HANDLER_PERMISSIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "AWS::SQS::Queue": {
        "create": (
            "sqs:CreateQueue",
            "sqs:GetQueueUrl",
            "sqs:GetQueueAttributes",
            "sqs:ListQueueTags",
            "sqs:TagQueue",
        ),
        "update": (
            "sqs:SetQueueAttributes",
            "sqs:GetQueueAttributes",
            "sqs:ListQueueTags",
            "sqs:TagQueue",
            "sqs:UntagQueue",
        ),
        "delete": ("sqs:DeleteQueue", "sqs:GetQueueAttributes"),
    },
    "AWS::SQS::QueuePolicy": {
        "create": ("sqs:SetQueueAttributes",),
        "update": ("sqs:SetQueueAttributes",),
        "delete": ("sqs:SetQueueAttributes",),
    },
}
