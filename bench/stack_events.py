"""CloudFormation's events about tenants' stacks, which the emulator does not send.

Tests and benchmarks that count what an operation does on AWS deploy with ``berth:stackEvents=true`` and send them.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from orchestrator.adapters.dynamodb import keys
from orchestrator.common.tenant_ids import TenantId


@dataclass
class StackEvents:
    client: Callable[[str], Any]
    table: str
    function: str
    """The name of the function stack_event."""
    _sent: set[str] = field(default_factory=set)
    """The task tokens that were waiting when an event was sent."""

    def send(self, tenant: TenantId) -> bool:
        """Send the event, once per wait, if an operation waits for the tenant's stack and the stack has settled."""
        lock = self.client("dynamodb").get_item(TableName=self.table, Key=keys.lock_key(tenant), ConsistentRead=True)
        waiting = {name: value.get("S") for name, value in lock.get("Item", {}).items()}
        token, stack_id = waiting.get("TaskToken"), waiting.get("StartedStack")
        if token is None or stack_id is None or token in self._sent:
            return False
        (stack,) = self.client("cloudformation").describe_stacks(StackName=stack_id)["Stacks"]
        if stack["StackStatus"].endswith("_IN_PROGRESS"):
            return False
        self._sent.add(token)
        detail = {"stack-id": stack_id, "status-details": {"status": stack["StackStatus"]}}
        event = {"source": "aws.cloudformation", "detail-type": "CloudFormation Stack Status Change", "detail": detail}
        self.client("lambda").invoke(FunctionName=self.function, Payload=json.dumps(event))
        return True
