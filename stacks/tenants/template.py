"""The stack of a tenant: an inbound queue with a dead-letter queue, and a custom resource that writes its metadata.

The CDK never deploys this stack. It is synthesised to a template, which is committed under ``stacks/releases/``,
published as a release, and deployed by the control plane for each tenant.
"""

from __future__ import annotations

from collections.abc import Mapping
from tempfile import TemporaryDirectory
from typing import Any

from aws_cdk import (
    App,
    Aws,
    CfnCondition,
    CfnOutput,
    CfnParameter,
    CfnResource,
    CustomResource,
    DefaultStackSynthesizer,
    Duration,
    Fn,
    Stack,
    Tags,
)
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs
from constructs import Construct, IConstruct

from orchestrator.common.tenant_ids import TENANT_ID_MAX_LENGTH, TENANT_ID_PATTERN
from orchestrator.releases import template_contract as contract

KEY_ARN_PATTERN = r"^arn:[a-z-]+:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+$"
FUNCTION_ARN_PATTERN = r"^arn:[a-z-]+:lambda:[a-z0-9-]+:[0-9]{12}:function:[A-Za-z0-9_-]+$"

# A message keeps its age when it moves to the dead-letter queue. The dead-letter queue has the longest retention of SQS
# and the inbound queue a shorter one, so that a message does not expire soon after it moved.
_INBOUND_RETENTION_DAYS = 4
_DEAD_LETTER_RETENTION_DAYS = 14

# The CDK's command line switches these on through the environment. They must not change a release.
_WITHOUT_CDK_METADATA = {
    "aws:cdk:enable-path-metadata": False,
    "aws:cdk:enable-asset-metadata": False,
    "aws:cdk:version-reporting": False,
}


class TenantStack(Stack):
    """One tenant's resources. CloudFormation chooses the names, so a deleted queue can be created again at once."""

    def __init__(self, scope: Construct, construct_id: str, *, version: str) -> None:
        super().__init__(
            scope,
            construct_id,
            description=f"A tenant's inbound queue, provisioned by Berth {version}.",
            # The template has no assets, so it needs no bootstrapped account.
            synthesizer=DefaultStackSynthesizer(generate_bootstrap_version_rule=False),
            analytics_reporting=False,
        )
        tenant_id = CfnParameter(
            self,
            contract.TENANT_PARAMETER,
            description="Whose queue this is.",
            allowed_pattern=TENANT_ID_PATTERN,
            max_length=TENANT_ID_MAX_LENGTH,
            constraint_description=(
                f"must be 1 to {TENANT_ID_MAX_LENGTH} letters, digits and dashes, "
                "beginning and ending with a letter or digit"
            ),
        )
        metadata_service_token = CfnParameter(
            self,
            contract.SERVICE_TOKEN_PARAMETER,
            description="The function that keeps the tenant's metadata true to this stack.",
            allowed_pattern=FUNCTION_ARN_PATTERN,
            constraint_description="must be the ARN of a Lambda function",
        )

        kms_key = CfnParameter(
            self,
            contract.KMS_KEY_PARAMETER,
            description=(
                "The key that the queues are encrypted with. Without one, SQS encrypts them with a key of its own."
            ),
            default="",
            allowed_pattern=f"^$|{KEY_ARN_PATTERN}",
            constraint_description="must be the ARN of a KMS key, or empty",
        )
        has_key = CfnCondition(
            self, "HasKey", expression=Fn.condition_not(Fn.condition_equals(kms_key.value_as_string, ""))
        )
        self._encryption = {
            "KmsMasterKeyId": Fn.condition_if(has_key.logical_id, kms_key.value_as_string, Aws.NO_VALUE),
            "SqsManagedSseEnabled": Fn.condition_if(has_key.logical_id, False, True),
        }

        dead_letter_queue = self._queue(
            contract.DEAD_LETTER_QUEUE, retention_period=Duration.days(_DEAD_LETTER_RETENTION_DAYS)
        )
        # There is no RedriveAllowPolicy: it would name the inbound queue, and the two queues would depend on each
        # other.
        inbound_queue = self._queue(
            contract.INBOUND_QUEUE,
            retention_period=Duration.days(_INBOUND_RETENTION_DAYS),
            visibility_timeout=Duration.seconds(30),
            dead_letter_queue=sqs.DeadLetterQueue(queue=dead_letter_queue, max_receive_count=5),
        )
        for queue in (inbound_queue, dead_letter_queue):
            Tags.of(queue).add("berth:tenant-id", tenant_id.value_as_string)
            Tags.of(queue).add("berth:version", version)

        CustomResource(
            self,
            contract.METADATA_RESOURCE,
            resource_type=contract.METADATA_TYPE,
            service_token=metadata_service_token.value_as_string,
            # Without a timeout, a handler that never responds would block the stack for an hour. Lambda retries after
            # one minute and after two more when it throttles or the handler fails; the timeout leaves time for that.
            service_timeout=Duration.seconds(300),
            properties={
                contract.TENANT_PARAMETER: tenant_id.value_as_string,
                contract.QUEUE_ARN: inbound_queue.queue_arn,
                contract.QUEUE_URL: inbound_queue.queue_url,
                contract.VERSION: version,
            },
        )

        CfnOutput(self, contract.QUEUE_ARN, value=inbound_queue.queue_arn)
        CfnOutput(self, contract.QUEUE_URL, value=inbound_queue.queue_url)
        CfnOutput(self, contract.DEAD_LETTER_QUEUE_ARN, value=dead_letter_queue.queue_arn)
        CfnOutput(self, contract.DEAD_LETTER_QUEUE_URL, value=dead_letter_queue.queue_url)
        CfnOutput(self, contract.VERSION, value=version)

    def _queue(self, name: str, **settings: Any) -> sqs.Queue:
        queue = sqs.Queue(self, name, encryption=sqs.QueueEncryption.SQS_MANAGED, **settings)
        resource = queue.node.default_child
        assert isinstance(resource, CfnResource)  # noqa: S101 - an L2's default child always is one
        for setting, value in self._encryption.items():
            resource.add_property_override(setting, value)
        _deny(queue, "DenyWithoutTls", {"Bool": {"aws:SecureTransport": "false"}})
        _deny(
            queue,
            "DenyOtherAccounts",
            {
                "StringNotEquals": {"aws:PrincipalAccount": self.account},
                # An AWS service that delivers for the account calls as itself, and belongs to no account.
                "BoolIfExists": {"aws:PrincipalIsAWSService": "false"},
            },
        )
        # A changed logical id would replace a queue in use, so the ids do not depend on the CDK's hashing.
        _override_logical_id(queue, name)
        _override_logical_id(queue.node.find_child("Policy"), f"{name}Policy")
        return queue


def tenant_template(version: str) -> dict[str, Any]:
    """The tenant stack as one self-contained template. The same version gives the same template on every machine."""
    with TemporaryDirectory() as assembly:
        app = App(outdir=assembly, analytics_reporting=False, post_cli_context=_WITHOUT_CDK_METADATA)
        stack = TenantStack(app, "Tenant", version=version)
        template: dict[str, Any] = app.synth().get_stack_artifact(stack.artifact_id).template
        return template


def _deny(queue: sqs.Queue, sid: str, conditions: Mapping[str, Mapping[str, str]]) -> None:
    """Deny everybody everything under these conditions."""
    queue.add_to_resource_policy(
        iam.PolicyStatement(
            sid=sid,
            effect=iam.Effect.DENY,
            principals=[iam.AnyPrincipal()],
            actions=["sqs:*"],
            resources=[queue.queue_arn],
            conditions=conditions,
        )
    )


def _override_logical_id(construct: IConstruct, logical_id: str) -> None:
    resource = construct.node.default_child
    assert isinstance(resource, CfnResource)  # noqa: S101 - an L2's default child always is one
    resource.override_logical_id(logical_id)
