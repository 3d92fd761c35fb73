"""The actions that CloudFormation needs for the resources of tenants' stacks, as in its registry of types.

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

OPERATORS_HANDLER_PERMISSIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "AWS::SSM::Parameter": {
        "create": ("ssm:PutParameter", "ssm:AddTagsToResource", "ssm:GetParameters"),
        "update": (
            "ssm:PutParameter",
            "ssm:AddTagsToResource",
            "ssm:RemoveTagsFromResource",
            "ssm:GetParameters",
        ),
        "delete": ("ssm:DeleteParameter",),
    },
}
"""The same for a type that only an operator's template has. The stack role needs a policy of the operator for it."""
