"""A tenant's queue, for stacks of other teams: ``TenantQueue(self, "Acme", tenant_id="acme").queue``.

Other teams import it from ``berth.cdk``, which is in the wheel.

The control plane must be deployed in the same account and region. Without the CDK, write in the template:
``Type: Custom::TenantQueue`` with ``ServiceToken: !ImportValue BerthTenantQueueServiceToken``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from aws_cdk import CustomResource, Duration, Fn
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from orchestrator.tenants.names import DEFAULT_NAME, Names
from orchestrator.tenants.resource_requests import OnDelete

# The maximum of CloudFormation. The control plane always responds earlier.
_SERVICE_TIMEOUT = Duration.seconds(3600)


class TenantQueue(Construct):
    """Provisions the tenant if it does not exist, and provides its queue.

    ``version`` pins the tenant to a release. Only the resource that created the tenant may set ``version`` and
    ``labels``. ``on_delete`` says what happens to the tenant when this resource is deleted: the tenant is retained,
    unless ``on_delete`` asks for its deletion and this resource created it. ``control_plane`` is the name of the
    tenant's control plane, if there are several in the account and region. ``kms_key_arn`` is the key of that control
    plane, if it has one: grants on the queue then include the use of the key.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        tenant_id: str,
        version: str | None = None,
        labels: Mapping[str, str] | None = None,
        on_delete: OnDelete | Literal["retain", "delete"] = OnDelete.RETAIN,
        control_plane: str = DEFAULT_NAME,
        kms_key_arn: str | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        properties: dict[str, object] = {"TenantId": tenant_id, "OnDelete": OnDelete(on_delete).value}
        if version is not None:
            properties["Version"] = version
        if labels is not None:
            properties["Labels"] = dict(labels)
        resource = CustomResource(
            self,
            "Resource",
            resource_type="Custom::TenantQueue",
            service_token=Fn.import_value(Names.parse(control_plane).service_token_export),
            service_timeout=_SERVICE_TIMEOUT,
            properties=properties,
        )
        self.queue_url = resource.get_att_string("QueueUrl")
        self.queue_arn = resource.get_att_string("QueueArn")
        self.queue = sqs.Queue.from_queue_attributes(
            self, "Queue", queue_arn=self.queue_arn, queue_url=self.queue_url, key_arn=kms_key_arn
        )
