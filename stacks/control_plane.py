"""Berth's control plane: everything that exists once, independent of the number of tenants."""

from __future__ import annotations

from aws_cdk import Stack
from constructs import Construct

from stacks.api.access_policies import AccessPolicies
from stacks.api.gateway import Api
from stacks.common.alarms import alarms_of_all
from stacks.common.capability import Capability
from stacks.common.encryption import Encryption
from stacks.common.functions import FunctionKit
from stacks.common.plane import compose
from stacks.common.table import TenantTable
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
    def __init__(self, scope: Construct, *, version: str, template_version: str, settings: Settings) -> None:
        """``version`` is that of Berth, ``template_version`` that of the release which the deployment publishes."""
        super().__init__(
            scope,
            settings.names.control_plane,
            description=f"Berth {version}: gives every tenant its own inbound queue.",
            analytics_reporting=False,
            # Without the control plane nobody knows which stack belongs to which tenant.
            termination_protection=True,
        )
        self.names = settings.names
        self.encryption = encryption = Encryption(
            self, "Encryption", key_arn=settings.kms_key_arn, former_key_arns=settings.former_kms_key_arns
        )
        self.table = table = TenantTable(self, "Tenants", encryption=encryption)
        kit = FunctionKit.create(
            self,
            table=table,
            encryption=encryption,
            version=version,
            template_version=template_version,
            settings=settings,
        )
        releases = ReleasePublisher(self, "Releases", kit=kit, version=template_version)
        stack_role = TenantStackRole(self, "StackRole", kit=kit, settings=settings)
        self.machines = machines = TenantMachines(
            self,
            "Machines",
            kit=kit,
            settings=settings,
            stack_role=stack_role,
            releases=releases,
        )
        stack_events = StackEvents(self, "StackEvents", kit=kit, machines=machines, stack_role=stack_role)
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
            settings=settings,
        )
        behind_api: list[Capability] = [table, releases, stack_role, machines, stack_events, rollouts, reconciliation]
        # Callers know the API's URL, which depends on this id. The id is from the time when the API had only getQueue.
        api = Api(
            self,
            "QueueApi",
            kit=kit,
            machines=machines,
            releases=releases,
            rollouts=rollouts,
            reconciliation=reconciliation,
            stack_role=stack_role,
            dead_letters=[each for capability in behind_api for each in capability.dead_letters],
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
        capabilities = [api, access, provider, *behind_api]
        automatic = None
        if settings.rollout_on_publish:
            automatic = AutomaticRollout(self, "AutomaticRollout", kit=kit, rollouts=rollouts, version=template_version)
            capabilities.append(automatic)
        compose(self, capabilities, version=version, settings=settings, other_alarms=alarms_of_all(self))
        if automatic is not None:
            automatic.start_after(self.node.children)
        table.protect_history(settings.adopter_arn)
        # Exported with and without the event plane: its stack can then be added and removed without a change here.
        for value in (*table.used_by_other_stacks, machines.delete.state_machine_arn):
            self.export_value(value)
