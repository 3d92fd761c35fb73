"""The pool: queues of the control plane's own stack, which tenants of the tier ``pooled`` share."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import ArnFormat, Duration, RemovalPolicy, Stack, Tags
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from orchestrator.tenants.pooling import POOL_RETENTION
from stacks.common.capability import Capability, Output
from stacks.common.encryption import Encryption
from stacks.common.functions import BerthFunction
from stacks.common.permissions import names_of
from stacks.common.table import TENANT_ROWS, TenantTable

_DEAD_LETTER_RETENTION_DAYS = 14
POOL_TAG = "berth:pool"


class QueuePool(Capability):
    def __init__(self, scope: Construct, construct_id: str, *, encryption: Encryption, number: int) -> None:
        super().__init__(scope, construct_id)
        names = names_of(self)
        # Tenants stay assigned to their queues, so a queue stays even if a deployment no longer has it.
        kept = {"removal_policy": RemovalPolicy.RETAIN}
        dead_letters = encryption.queue(
            self,
            "DeadLetters",
            queue_name=names.pooled_dead_letters,
            retention_period=Duration.days(_DEAD_LETTER_RETENTION_DAYS),
            **kept,
        )
        self._queues = [
            encryption.queue(
                self,
                f"Queue{each}",
                queue_name=names.pooled_queue(each),
                retention_period=Duration.seconds(int(POOL_RETENTION.total_seconds())),
                visibility_timeout=Duration.seconds(30),
                dead_letter_queue=sqs.DeadLetterQueue(queue=dead_letters, max_receive_count=5),
                **kept,
            )
            for each in range(1, number + 1)
        ]
        for queue in (*self._queues, dead_letters):
            Tags.of(queue).add(POOL_TAG, names.control_plane)

    @property
    def outputs(self) -> Sequence[Output]:
        return (Output("PooledQueueUrls", self._urls),)

    @property
    def _urls(self) -> str:
        return ",".join(queue.queue_url for queue in self._queues)

    def allow_joining(self, function: BerthFunction, table: TenantTable) -> None:
        """Let a function give a new tenant its queue: one transaction of the tenant's rows and its history."""
        function.function.add_environment("BERTH_POOLED_QUEUES", self._urls)
        table.allow(function.role, "UpdateItem", "ConditionCheckItem", rows=TENANT_ROWS)
        table.allow_appending(function.role, along_with=[TENANT_ROWS])


def pooled_queue_arns(scope: Construct, number: int) -> list[str]:
    """The queues of the pool, for another stack: it needs no reference to the control plane's."""
    names = names_of(scope)
    return [
        Stack.of(scope).format_arn(
            service="sqs", resource=names.pooled_queue(each), arn_format=ArnFormat.NO_RESOURCE_NAME
        )
        for each in range(1, number + 1)
    ]
