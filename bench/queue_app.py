"""A CDK app with the queues of one tenant, as a platform would write it without Berth.

``cdk deploy --app "python -m bench.queue_app" --context tenant=acme`` deploys the stack of one tenant. Its queues have
the settings of those that Berth makes; it has no custom resource, and nothing records its outputs.
"""

from __future__ import annotations

from aws_cdk import App, CfnOutput, Duration, Stack, Tags
from aws_cdk import aws_sqs as sqs

MODULE = "bench.queue_app"


def stack_name(tenant: str) -> str:
    return f"queue-{tenant}"


def build(app: App) -> Stack:
    tenant = str(app.node.get_context("tenant"))
    stack = Stack(app, stack_name(tenant), analytics_reporting=False)
    dead_letters = sqs.Queue(
        stack,
        "DeadLetterQueue",
        encryption=sqs.QueueEncryption.SQS_MANAGED,
        enforce_ssl=True,
        retention_period=Duration.days(14),
    )
    inbound = sqs.Queue(
        stack,
        "InboundQueue",
        encryption=sqs.QueueEncryption.SQS_MANAGED,
        enforce_ssl=True,
        retention_period=Duration.days(4),
        visibility_timeout=Duration.seconds(30),
        dead_letter_queue=sqs.DeadLetterQueue(queue=dead_letters, max_receive_count=5),
    )
    Tags.of(stack).add("tenant", tenant)
    CfnOutput(stack, "InboundQueueUrl", value=inbound.queue_url)
    CfnOutput(stack, "InboundQueueArn", value=inbound.queue_arn)
    return stack


if __name__ == "__main__":
    own = App(analytics_reporting=False)
    build(own)
    own.synth()
