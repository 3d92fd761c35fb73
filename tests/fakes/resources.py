"""Resources in stacks of other teams, in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from orchestrator.common.errors import Throttled
from orchestrator.common.stack_arns import StackArn
from orchestrator.tenants.resource_requests import Claim, Kind
from orchestrator.tenants.stack_ports import ResourceState
from orchestrator.tenants.stack_resources import StackResource
from tests.fakes.examples import NOON

TYPE = "Custom::TenantQueue"
LONG_AGO = NOON - timedelta(days=1)


@dataclass
class FakeResources:
    states: dict[StackResource, ResourceState] = field(default_factory=dict)
    stacks: dict[StackArn, str] = field(default_factory=dict)
    outputs: dict[tuple[StackArn, str], str] = field(default_factory=dict)
    throttled_calls: int = 0
    """How many of the next calls are refused."""
    asked: list[str] = field(default_factory=list)

    def resource(self, resource: StackResource) -> ResourceState | None:
        self._called("resource")
        return self.states.get(resource)

    def stack_status(self, stack: StackArn) -> str | None:
        self._called("stack_status")
        return self.stacks.get(stack)

    def stack_output(self, stack: StackArn, name: str) -> str | None:
        self._called("stack_output")
        return self.outputs.get((stack, name))

    def _called(self, method: str) -> None:
        self.asked.append(method)
        if self.throttled_calls:
            self.throttled_calls -= 1
            raise Throttled(f"{method}: Rate exceeded")

    # Arranging

    def show(self, claim: Claim) -> None:
        """Let CloudFormation be at what the claim says."""
        doing = {Kind.CREATE: "CREATE", Kind.UPDATE: "UPDATE", Kind.DELETE: "DELETE"}[claim.kind]
        self.states[claim.resource] = ResourceState(TYPE, f"{doing}_IN_PROGRESS", claim.physical_id or "", LONG_AGO)
        self.stacks[claim.resource.stack] = f"{doing}_IN_PROGRESS"

    def put(
        self,
        resource: StackResource,
        status: str,
        physical_id: str = "",
        *,
        stack: str,
        kind: str = TYPE,
        at: datetime = LONG_AGO,
    ) -> None:
        self.states[resource] = ResourceState(kind, status, physical_id, at)
        self.stacks[resource.stack] = stack
