"""Custom::TenantQueue: a tenant's queue as a resource in other teams' stacks.

The function that CloudFormation calls hands the request to a machine, which can wait longer than a function.
"""

from __future__ import annotations

from aws_cdk import Stack
from constructs import Construct

from stacks.common.functions import BerthFunction, FunctionKit
from stacks.common.limits import limit_creates
from stacks.common.permissions import allow, names_of
from stacks.settings import Settings
from stacks.tenants.machines import EXECUTIONS_ARE_MANY, TenantMachines, executions_of, machine


class TenantQueueProvider(Construct):
    def __init__(
        self, scope: Construct, construct_id: str, *, kit: FunctionKit, machines: TenantMachines, settings: Settings
    ) -> None:
        super().__init__(scope, construct_id)
        self.settle_tenant_queue = BerthFunction(
            self,
            "SettleTenantQueue",
            kit=kit,
            name="settle_tenant_queue",
            # Answering CloudFormation may take 21 of them.
            timeout_seconds=45,
            environment={
                "BERTH_CREATE_MACHINE": machines.create.state_machine_arn,
                "BERTH_DELETE_MACHINE": machines.delete.state_machine_arn,
            },
        )
        limit_creates(self.settle_tenant_queue, kit=kit, settings=settings)
        allow(
            self.settle_tenant_queue.role,
            ["cloudformation:DescribeStackResource", "cloudformation:DescribeStacks"],
            Stack.of(self).format_arn(service="cloudformation", resource="stack", resource_name="*/*"),
            wildcard_because="Any team's stack may ask for a tenant's queue, and CloudFormation has to confirm it.",
        )
        machines.allow_orders(self.settle_tenant_queue.role, kit.table, (machines.create, machines.delete))
        self.machine = machine(
            self,
            "Machine",
            stem="tenant_queue",
            functions={self.settle_tenant_queue.name: self.settle_tenant_queue},
            kit=kit,
            settings=settings,
        )
        self.tenant_queue = BerthFunction(
            self,
            "TenantQueue",
            kit=kit,
            name="tenant_queue",
            function_name=names_of(self).tenant_queue_function,
            timeout_seconds=30,
            environment={"BERTH_TENANT_QUEUE_MACHINE": self.machine.state_machine_arn},
        )
        allow(self.tenant_queue.role, ["states:StartExecution"], self.machine.state_machine_arn)
        allow(
            self.tenant_queue.role,
            ["states:DescribeExecution"],
            executions_of(self.machine),
            wildcard_because=EXECUTIONS_ARE_MANY,
        )
