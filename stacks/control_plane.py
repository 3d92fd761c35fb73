"""Berth's control plane: everything that exists once, whatever the number of tenants."""

from __future__ import annotations

from aws_cdk import CfnOutput, Stack
from constructs import Construct

from stacks.alarms import Alarms
from stacks.functions import FunctionKit
from stacks.queue_api import QueueApi
from stacks.release_publisher import ReleasePublisher
from stacks.settings import Settings
from stacks.stack_events import StackEvents
from stacks.stack_role import TenantStackRole
from stacks.table import TenantTable
from stacks.tenant_machines import TenantMachines


class ControlPlaneStack(Stack):
    def __init__(self, scope: Construct, construct_id: str, *, version: str, settings: Settings) -> None:
        super().__init__(
            scope,
            construct_id,
            description=f"Berth {version}: gives every tenant its own inbound queue.",
            analytics_reporting=False,
        )
        table = TenantTable(self, "Tenants")
        kit = FunctionKit.create(self, table=table, version=version, settings=settings)
        releases = ReleasePublisher(self, "Releases", kit=kit)
        stack_role = TenantStackRole(self, "StackRole", kit=kit)
        machines = TenantMachines(
            self,
            "Machines",
            kit=kit,
            settings=settings,
            stack_role=stack_role,
            releases=releases.bucket,
        )
        stack_events = StackEvents(self, "StackEvents", kit=kit, machines=machines)
        api = QueueApi(self, "QueueApi", kit=kit, machines=machines, settings=settings)
        # getQueue starts creates at the version it is deployed with, so that version has to be published by then.
        api.get_queue.function.node.add_dependency(releases.release)
        Alarms(
            self,
            "Alarms",
            machine=machines.create,
            functions=(
                api.get_queue,
                *machines.functions,
                stack_events.stack_event,
                stack_role.tenant_metadata,
                releases.publish_release,
            ),
            undelivered_events=stack_events.undelivered,
            topic_arn=settings.alarm_topic_arn,
        )

        CfnOutput(self, "ApiUrl", value=api.url)
        CfnOutput(self, "TableName", value=table.name)
        CfnOutput(self, "GetQueueFunctionName", value=api.get_queue.function.function_name)
        CfnOutput(self, "CreateTenantMachineArn", value=machines.create.state_machine_arn)
        CfnOutput(self, "ReleaseBucketName", value=releases.bucket.bucket_name)
        CfnOutput(self, "Version", value=version)
