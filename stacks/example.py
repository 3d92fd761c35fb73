"""An example of another team's stack, which uses a tenant's queue without knowing how Berth provisions it.

Deploy it beside the control plane: ``cdk deploy BerthExample --app "python -m stacks.example" -c tenantId=acme``.
With ``-c berth:name=NAME`` it uses the control plane NAME, and the stack is called NAMEExample.
"""

from __future__ import annotations

from aws_cdk import App, CfnOutput, Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from orchestrator.tenants.names import DEFAULT_NAME
from orchestrator.tenants.resource_requests import OnDelete
from stacks.settings import name_in
from stacks.tenant_queue import TenantQueue


class ExampleStack(Stack):
    """A role that may send to one tenant's queue, and outputs with the queue's URL and ARN."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        tenant_id: str,
        on_delete: OnDelete = OnDelete.RETAIN,
        control_plane: str = DEFAULT_NAME,
    ) -> None:
        super().__init__(scope, construct_id, analytics_reporting=False)
        tenant = TenantQueue(
            self,
            "TenantQueue",
            tenant_id=tenant_id,
            labels={"team": "example"},
            on_delete=on_delete,
            control_plane=control_plane,
        )
        producer = iam.Role(self, "Producer", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        tenant.queue.grant_send_messages(producer)
        CfnOutput(self, "QueueUrl", value=tenant.queue_url)
        CfnOutput(self, "QueueArn", value=tenant.queue_arn)


def main() -> None:
    app = App(analytics_reporting=False)
    tenant_id = app.node.try_get_context("tenantId") or "example"
    control_plane = name_in(app.node).control_plane
    ExampleStack(app, f"{control_plane}Example", tenant_id=str(tenant_id), control_plane=control_plane)
    app.synth()


if __name__ == "__main__":
    main()
