"""Custom::TenantQueue: a tenant's queue as a resource in other teams' stacks.

The function that CloudFormation calls passes the request on to a machine, which can wait longer than a function.
"""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Stack
from constructs import Construct

from stacks.common.alarms import PERIOD, Alarm
from stacks.common.capability import Capability, Output
from stacks.common.functions import BerthFunction, FunctionKit
from stacks.common.limits import limit_creates
from stacks.common.permissions import allow, names_of
from stacks.settings import Settings
from stacks.tenants.machines import EXECUTIONS_ARE_MANY, TenantMachines, executions_of, machine


class TenantQueueProvider(Capability):
    def __init__(
        self, scope: Construct, construct_id: str, *, kit: FunctionKit, machines: TenantMachines, settings: Settings
    ) -> None:
        super().__init__(scope, construct_id)
        self._settle_tenant_queue = BerthFunction(
            self,
            "SettleTenantQueue",
            kit=kit,
            name="settle_tenant_queue",
            # Responding to CloudFormation may take 21 seconds.
            timeout_seconds=45,
            environment={
                "BERTH_CREATE_MACHINE": machines.create.state_machine_arn,
                "BERTH_DELETE_MACHINE": machines.delete.state_machine_arn,
            },
        )
        machines.publish_releases_before(self._settle_tenant_queue)
        limit_creates(self._settle_tenant_queue, kit=kit, settings=settings)
        allow(
            self._settle_tenant_queue.role,
            ["cloudformation:DescribeStackResource", "cloudformation:DescribeStacks"],
            Stack.of(self).format_arn(service="cloudformation", resource="stack", resource_name="*/*"),
            wildcard_because="Any team's stack may ask for a tenant's queue, and CloudFormation has to confirm it.",
        )
        machines.allow_operations(self._settle_tenant_queue.role, kit.table, (machines.create, machines.delete))
        self._machine = machine(
            self,
            "Machine",
            stem="tenant_queue",
            functions={self._settle_tenant_queue.name: self._settle_tenant_queue},
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
            environment={"BERTH_TENANT_QUEUE_MACHINE": self._machine.state_machine_arn},
        )
        allow(self.tenant_queue.role, ["states:StartExecution"], self._machine.state_machine_arn)
        allow(
            self.tenant_queue.role,
            ["states:DescribeExecution"],
            executions_of(self._machine),
            wildcard_because=EXECUTIONS_ARE_MANY,
        )

    @property
    def functions(self) -> Sequence[BerthFunction]:
        return (self.tenant_queue, self._settle_tenant_queue)

    @property
    def alarms(self) -> Sequence[Alarm]:
        """There is no alarm for failed executions: an execution fails when another team's request cannot be
        fulfilled, and CloudFormation reports that to the team.
        """
        return (
            Alarm(
                "TenantQueueNotConfirmed",
                self._settle_tenant_queue.counted("RequestNotConfirmed", period=PERIOD, statistic="Sum"),
                "A request for a tenant's queue named a stack, and CloudFormation did not confirm the request. Nothing "
                "was changed. The log of settle_tenant_queue names the stack; CloudTrail says who invoked "
                f"{names_of(self).tenant_queue_function}. Take that permission from them, and give them the managed "
                "policy for teams instead.",
            ),
        )

    @property
    def outputs(self) -> Sequence[Output]:
        export = names_of(self).service_token_export
        return (Output("TenantQueueServiceToken", self.tenant_queue.arn, export_name=export),)
