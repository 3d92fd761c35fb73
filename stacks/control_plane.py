"""Berth's control plane: everything that exists once, whatever the number of tenants."""

from __future__ import annotations

from aws_cdk import CfnOutput, Stack
from constructs import Construct

from stacks.api.access_policies import AccessPolicies
from stacks.api.gateway import Api
from stacks.common.alarms import Alarms
from stacks.common.dashboard import Dashboard
from stacks.common.encryption import Encryption
from stacks.common.functions import FunctionKit
from stacks.common.table import TenantTable
from stacks.common.watching import (
    watch_api,
    watch_dead_letters,
    watch_functions,
    watch_operations,
    watch_reconciliation,
    watch_rollouts,
    watch_tenant_queues,
)
from stacks.reconciling.reconciliation import Reconciliation
from stacks.releases.publisher import ReleasePublisher
from stacks.rollouts.automatic_rollout import AutomaticRollout
from stacks.rollouts.machine import RolloutMachine
from stacks.settings import Settings
from stacks.tenants.machines import TenantMachines
from stacks.tenants.queue_access import QueueAccess
from stacks.tenants.stack_events import StackEvents
from stacks.tenants.stack_role import TenantStackRole
from stacks.tenants.tenant_queue_provider import TenantQueueProvider


class ControlPlaneStack(Stack):
    def __init__(self, scope: Construct, *, version: str, settings: Settings) -> None:
        super().__init__(
            scope,
            settings.names.control_plane,
            description=f"Berth {version}: gives every tenant its own inbound queue.",
            analytics_reporting=False,
            # Without the control plane nobody can tell whose the tenants' stacks are.
            termination_protection=True,
        )
        self.names = settings.names
        encryption = Encryption(
            self, "Encryption", key_arn=settings.kms_key_arn, former_key_arns=settings.former_kms_key_arns
        )
        table = TenantTable(self, "Tenants", encryption=encryption)
        kit = FunctionKit.create(self, table=table, encryption=encryption, version=version, settings=settings)
        releases = ReleasePublisher(self, "Releases", kit=kit)
        stack_role = TenantStackRole(self, "StackRole", kit=kit, settings=settings)
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
        reconciliation = Reconciliation(
            self,
            "Reconciliation",
            kit=kit,
            machines=machines,
            rollouts=rollouts,
            stack_role=stack_role,
        )
        dead_letters = {
            "events about tenants' stacks": stack_events.undelivered,
            "executions that ended": reconciliation.not_closed,
            "reconciliations": reconciliation.not_run,
        }
        # The API's URL is known to its callers. It hangs on this id, which is from when the API was only getQueue's.
        api = Api(
            self,
            "QueueApi",
            kit=kit,
            machines=machines,
            rollouts=rollouts,
            reconciliation=reconciliation,
            stack_role=stack_role,
            dead_letters=dead_letters,
            settings=settings,
        )
        if settings.credentials_seconds is not None:
            QueueAccess(
                self,
                "QueueAccess",
                get_queue=api.get_queue,
                encryption=encryption,
                seconds=settings.credentials_seconds,
            )
        provider = TenantQueueProvider(self, "TenantQueueProvider", kit=kit, machines=machines, settings=settings)
        access = AccessPolicies(self, "Access", api=api, tenant_queue=provider.tenant_queue)
        # These start creates, so every version that a tenant may be created at has to be published by then.
        for function in (api.get_queue, api.operators, provider.settle_tenant_queue, reconciliation.reconcile):
            function.function.node.add_dependency(*releases.releases)
        functions = [
            api.get_queue,
            api.operators,
            api.proof.make,
            *machines.functions,
            *rollouts.functions,
            stack_events.stack_event,
            reconciliation.close_execution,
            reconciliation.reconcile,
            stack_role.tenant_metadata,
            provider.tenant_queue,
            provider.settle_tenant_queue,
            releases.publish_release,
        ]
        automatic = None
        if settings.rollout_on_publish:
            automatic = AutomaticRollout(self, "AutomaticRollout", kit=kit, rollouts=rollouts)
            functions.append(automatic.start_rollout)
        alarms = Alarms(self, "Alarms", topic_arn=settings.alarm_topic_arn)
        watch_operations(alarms, machines)
        watch_tenant_queues(alarms, provider)
        watch_rollouts(alarms, rollouts.machine)
        watch_functions(alarms, functions)
        watch_api(alarms, api)
        watch_reconciliation(alarms, reconciliation)
        watch_dead_letters(alarms, stack_events=stack_events.undelivered, reconciliation=reconciliation)
        Dashboard(
            self,
            "Dashboard",
            api=api,
            machines=machines,
            rollout_machine=rollouts.machine,
            reconciliation=reconciliation,
            dead_letters=dead_letters,
        )
        if automatic is not None:
            automatic.begin_after(self.node.children)
        table.protect_history()

        CfnOutput(self, "ApiUrl", value=api.url)
        CfnOutput(self, "PlatformPolicyArn", value=access.platform.managed_policy_arn)
        CfnOutput(self, "SenderPolicyArn", value=access.sender.managed_policy_arn)
        CfnOutput(self, "ReceiverPolicyArn", value=access.receiver.managed_policy_arn)
        CfnOutput(self, "OperatorPolicyArn", value=access.operator.managed_policy_arn)
        CfnOutput(self, "TeamPolicyArn", value=access.team.managed_policy_arn)
        CfnOutput(self, "TableName", value=table.name)
        CfnOutput(self, "GetQueueFunctionName", value=api.get_queue.function.function_name)
        CfnOutput(self, "OperatorsFunctionName", value=api.operators.function.function_name)
        CfnOutput(self, "CreateTenantMachineArn", value=machines.create.state_machine_arn)
        CfnOutput(self, "UpdateTenantMachineArn", value=machines.update.state_machine_arn)
        CfnOutput(self, "DeleteTenantMachineArn", value=machines.delete.state_machine_arn)
        CfnOutput(self, "RolloutMachineArn", value=rollouts.machine.state_machine_arn)
        CfnOutput(self, "ReconcileFunctionName", value=reconciliation.reconcile.function.function_name)
        CfnOutput(self, "EndedExecutionsQueueUrl", value=reconciliation.ended.queue_url)
        CfnOutput(
            self,
            "TenantQueueServiceToken",
            value=provider.tenant_queue.arn,
            export_name=settings.names.service_token_export,
        )
        CfnOutput(self, "ReleaseBucketName", value=releases.bucket.bucket_name)
        CfnOutput(self, "Version", value=version)
