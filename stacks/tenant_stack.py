"""The stack of a tenant: an inbound queue with a dead-letter queue, and a custom resource that writes its metadata.

The CDK never deploys this stack. It is synthesised to a template, published as a release, and deployed by the control
plane for each tenant. Berth's own release is this stack and nothing else (``stacks/tenants/template.py``). Platforms
subclass it to give their tenants more, and import it from ``berth.cdk``, which is in the wheel:

    class ShopTenant(TenantStack):
        def __init__(self, scope: Construct, construct_id: str) -> None:
            super().__init__(scope, construct_id, version="2.1.0")
            files = s3.Bucket(self, "Files")
            CfnOutput(self, "FilesBucket", value=files.bucket_name)

Every output is answered by getQueue. A template that does not keep the contract fails when it is synthesised, with the
same findings as those of ``berth release check``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import jsii
from aws_cdk import (
    Aws,
    CfnCondition,
    CfnOutput,
    CfnParameter,
    CfnResource,
    CustomResource,
    DefaultStackSynthesizer,
    Duration,
    Fn,
    IPolicyValidationContext,
    IPolicyValidationPlugin,
    PolicyValidationPluginReport,
    PolicyViolatingResource,
    PolicyViolation,
    Stack,
    Stage,
    Tags,
    Validations,
)
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs
from constructs import Construct, IConstruct

from orchestrator.common.tenant_ids import TENANT_ID_MAX_LENGTH, TENANT_ID_PATTERN
from orchestrator.releases import template_contract as contract
from orchestrator.releases.checking import Surroundings, check_operators_template, check_template
from orchestrator.releases.findings import Finding, Rule

# A message keeps its age when it moves to the dead-letter queue. The dead-letter queue has the longest retention of SQS
# and the inbound queue a shorter one, so that a message does not expire soon after it moved.
_INBOUND_RETENTION_DAYS = 4
_DEAD_LETTER_RETENTION_DAYS = 14


@jsii.implements(IPolicyValidationPlugin)
class _Contract:
    """Checks the templates of tenants' stacks when they are synthesised, as `berth release check` does."""

    def __init__(self, file: str, check: Callable[[object, Surroundings], Sequence[Finding]]) -> None:
        self._file = file
        self._check = check

    @property
    def name(self) -> str:
        return "berth"

    @property
    def version(self) -> str | None:
        return None

    @property
    def rule_ids(self) -> list[str] | None:
        return [rule.value for rule in Rule]

    def validate(self, context: IPolicyValidationContext) -> PolicyValidationPluginReport:
        violations = [
            _violation(path, finding)
            for path in context.template_paths
            if Path(path).name == self._file
            for finding in self._check(json.loads(Path(path).read_text(encoding="utf-8")), Surroundings())
        ]
        return PolicyValidationPluginReport(success=not violations, violations=violations)


def _violation(path: str, finding: Finding) -> PolicyViolation:
    section, _, rest = finding.place.partition(".")
    name, _, place = rest.partition(".")
    return PolicyViolation(
        rule_name=finding.rule.value,
        description=finding.problem,
        fix=finding.advice,
        violating_resources=[
            PolicyViolatingResource(
                resource_logical_id=name or section or "Template",
                template_path=path,
                locations=[place or finding.place],
            )
        ],
    )


class TenantStack(Stack):
    """One tenant's resources. CloudFormation chooses the names, so a deleted queue can be created again at once.

    ``version`` is the release that the template is published as. A changed template needs another one.
    """

    _IS_OPERATORS: ClassVar[bool] = True

    def __init__(
        self, scope: Construct, construct_id: str, *, version: str, description: str | None = None, **stack: Any
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            description=description or "A tenant's inbound queue, with a dead-letter queue.",
            # The template has no assets, so it needs no bootstrapped account.
            synthesizer=DefaultStackSynthesizer(generate_bootstrap_version_rule=False),
            analytics_reporting=False,
            **stack,
        )
        check = check_operators_template if self._IS_OPERATORS else check_template
        stage = Stage.of(self)
        assert stage is not None  # noqa: S101 - a stack is always in an app
        Validations.of(stage).add_plugins(_Contract(self.template_file, check))
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
            allowed_pattern=contract.FUNCTION_ARN_PATTERN,
            constraint_description="must be the ARN of a Lambda function",
        )

        kms_key = CfnParameter(
            self,
            contract.KMS_KEY_PARAMETER,
            description=(
                "The key that the queues are encrypted with. Without one, SQS encrypts them with a key of its own."
            ),
            default="",
            allowed_pattern=f"^$|{contract.KEY_ARN_PATTERN}",
            constraint_description="must be the ARN of a KMS key, or empty",
        )
        has_key = CfnCondition(
            self, "HasKey", expression=Fn.condition_not(Fn.condition_equals(kms_key.value_as_string, ""))
        )
        self._encryption = {
            "KmsMasterKeyId": Fn.condition_if(has_key.logical_id, kms_key.value_as_string, Aws.NO_VALUE),
            "SqsManagedSseEnabled": Fn.condition_if(has_key.logical_id, False, True),
        }

        self.tenant_id = tenant_id.value_as_string
        """The tenant's id, as a reference: every tenant's stack has another one."""
        self.kms_key_arn = kms_key.value_as_string
        """The ARN of the control plane's KMS key, or an empty text: the condition ``HasKey`` says which."""
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
        self.inbound_queue, self.dead_letter_queue = inbound_queue, dead_letter_queue
        for queue in (inbound_queue, dead_letter_queue):
            Tags.of(queue).add(contract.TENANT_TAG, tenant_id.value_as_string)
            Tags.of(queue).add("berth:release", version)

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
