"""Berth's control plane: everything that exists once, whatever the number of tenants."""

from __future__ import annotations

from aws_cdk import CfnOutput, Stack
from constructs import Construct

from stacks.access_policies import AccessPolicies
from stacks.alarms import Alarms
from stacks.api import Api
from stacks.automatic_rollout import AutomaticRollout
from stacks.functions import FunctionKit
from stacks.queue_access import QueueAccess
from stacks.release_publisher import ReleasePublisher
from stacks.rollouts import RolloutMachine
from stacks.settings import Settings
from stacks.stack_events import StackEvents
from stacks.stack_role import TenantStackRole
from stacks.table import TenantTable
from stacks.tenant_machines import TenantMachines
from stacks.tenant_queue_provider import SERVICE_TOKEN_EXPORT, TenantQueueProvider


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
        rollouts = RolloutMachine(
            self,
            "Rollouts",
            kit=kit,
            settings=settings,
            machines=machines,
            stack_role=stack_role,
            releases=releases.bucket,
        )
        # The API's URL is known to its callers. It hangs on this id, which is from when the API was only getQueue's.
        api = Api(self, "QueueApi", kit=kit, machines=machines, rollouts=rollouts, settings=settings)
        access = AccessPolicies(self, "Access", api=api)
        if settings.credentials_seconds is not None:
            QueueAccess(self, "QueueAccess", get_queue=api.get_queue, seconds=settings.credentials_seconds)
        provider = TenantQueueProvider(self, "TenantQueueProvider", kit=kit, machines=machines, settings=settings)
        # These start creates, so every version that a tenant may be created at has to be published by then.
        for function in (api.get_queue, api.operators, provider.settle_tenant_queue):
            function.function.node.add_dependency(*releases.releases)
        functions = [
            api.get_queue,
            api.operators,
            *machines.functions,
            *rollouts.functions,
            stack_events.stack_event,
            stack_role.tenant_metadata,
            provider.tenant_queue,
            provider.settle_tenant_queue,
            releases.publish_release,
        ]
        automatic = None
        if settings.rollout_on_publish:
            automatic = AutomaticRollout(self, "AutomaticRollout", kit=kit, rollouts=rollouts)
            functions.append(automatic.start_rollout)
        Alarms(
            self,
            "Alarms",
            machines=machines,
            tenant_queue_machine=provider.machine,
            rollout_machine=rollouts.machine,
            functions=functions,
            undelivered_events=stack_events.undelivered,
            topic_arn=settings.alarm_topic_arn,
        )
        if automatic is not None:
            automatic.begin_after(self.node.children)

        CfnOutput(self, "ApiUrl", value=api.url)
        CfnOutput(self, "PlatformPolicyArn", value=access.platform.managed_policy_arn)
        CfnOutput(self, "OperatorPolicyArn", value=access.operator.managed_policy_arn)
        CfnOutput(self, "TableName", value=table.name)
        CfnOutput(self, "GetQueueFunctionName", value=api.get_queue.function.function_name)
        CfnOutput(self, "OperatorsFunctionName", value=api.operators.function.function_name)
        CfnOutput(self, "CreateTenantMachineArn", value=machines.create.state_machine_arn)
        CfnOutput(self, "UpdateTenantMachineArn", value=machines.update.state_machine_arn)
        CfnOutput(self, "DeleteTenantMachineArn", value=machines.delete.state_machine_arn)
        CfnOutput(self, "RolloutMachineArn", value=rollouts.machine.state_machine_arn)
        CfnOutput(self, "TenantQueueServiceToken", value=provider.tenant_queue.arn, export_name=SERVICE_TOKEN_EXPORT)
        CfnOutput(self, "ReleaseBucketName", value=releases.bucket.bucket_name)
        CfnOutput(self, "Version", value=version)
