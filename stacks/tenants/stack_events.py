"""CloudFormation's events about tenants' stacks, which resume the operations that wait for them."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Duration, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from constructs import Construct

from stacks.common.capability import Capability
from stacks.common.dead_letters import DeadLetters, dead_letter_queue
from stacks.common.functions import BerthFunction, FunctionKit
from stacks.common.permissions import (
    acknowledge,
    allow,
    allow_on_tenant_queues,
    allow_reading_tenant_stacks,
    names_of,
)
from stacks.common.table import TENANT_ROWS
from stacks.tenants.machines import TenantMachines
from stacks.tenants.stack_role import TenantStackRole


class StackEvents(Capability):
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        kit: FunctionKit,
        machines: TenantMachines,
        stack_role: TenantStackRole,
    ) -> None:
        super().__init__(scope, construct_id)
        self._stack_event = BerthFunction(self, "StackEvent", kit=kit, name="stack_event")
        stack_role.add_to_environment_of(self._stack_event)
        kit.table.allow(self._stack_event.role, "GetItem", rows=TENANT_ROWS)
        kit.table.allow_noting_throttles(self._stack_event.role)
        # The operation is resumed with what became of its stack.
        allow_reading_tenant_stacks(self._stack_event.role, "DescribeStackEvents")
        allow_on_tenant_queues(self._stack_event.role, "GetQueueAttributes")
        allow(self._stack_event.role, ["states:SendTaskSuccess"], *machines.arns)

        self._undelivered = dead_letter_queue(self, "Undelivered", encryption=kit.encryption)
        acknowledge(self._undelivered, "AwsSolutions-SQS3", "This is itself the dead-letter queue of an event rule.")
        events.Rule(
            self,
            "Settled",
            description="A tenant's stack has reached a status in which CloudFormation is not working on it.",
            event_pattern=events.EventPattern(
                source=["aws.cloudformation"],
                detail_type=["CloudFormation Stack Status Change"],
                detail={
                    "stack-id": [{"prefix": prefix} for prefix in self._tenant_stack_id_prefixes],
                    "status-details": {"status": [{"anything-but": {"suffix": "_IN_PROGRESS"}}]},
                },
            ),
            targets=[
                targets.LambdaFunction(
                    self._stack_event.function,
                    dead_letter_queue=self._undelivered,
                    retry_attempts=8,
                    # By then the operation has long asked CloudFormation itself.
                    max_event_age=Duration.hours(1),
                )
            ],
        )

    @property
    def functions(self) -> Sequence[BerthFunction]:
        return (self._stack_event,)

    @property
    def dead_letters(self) -> Sequence[DeadLetters]:
        return (
            DeadLetters(
                self._undelivered,
                "events about tenants' stacks",
                "EventsUndelivered",
                "CloudFormation's events did not reach the function stack_event. Operations still finish, a little "
                "later, because each also asks CloudFormation itself. The attributes of the messages name the cause: "
                "fix it, then purge the queue.",
            ),
        )

    @property
    def _tenant_stack_id_prefixes(self) -> list[str]:
        return [
            Stack.of(self).format_arn(service="cloudformation", resource="stack", resource_name=prefix)
            for prefix in names_of(self).prefixes
        ]
