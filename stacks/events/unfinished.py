"""Tells the control plane, before it deletes a tenant, whether the tenant has unfinished events."""

from __future__ import annotations

from collections.abc import Sequence

from constructs import Construct

from orchestrator.adapters.dynamodb.event_keys import STATUS_INDEX
from stacks.common.capability import Capability
from stacks.common.functions import BerthFunction, FunctionKit
from stacks.common.permissions import names_of
from stacks.common.table import TENANT_ROWS
from stacks.events.rows import CONFIGURATION_ROWS, EVENT_ROWS, LIFE_ATTRIBUTES
from stacks.events.table import EventsTable


class UnfinishedWork(Capability):
    """The control plane may invoke the function of this name, in whatever stack it is."""

    def __init__(self, scope: Construct, construct_id: str, *, kit: FunctionKit, events: EventsTable) -> None:
        super().__init__(scope, construct_id)
        self._function = BerthFunction(
            self,
            "UnfinishedWork",
            kit=kit,
            name="unfinished_work",
            function_name=names_of(self).unfinished_work_function,
            environment={"BERTH_EVENTS_TABLE": events.name},
        )
        role = self._function.role
        kit.table.allow(role, "GetItem", "Query", rows=CONFIGURATION_ROWS)
        kit.table.allow_attributes(role, *LIFE_ATTRIBUTES, rows=TENANT_ROWS)
        events.allow_index(role, STATUS_INDEX)
        events.allow(role, "GetItem", "BatchGetItem", rows=EVENT_ROWS)

    @property
    def functions(self) -> Sequence[BerthFunction]:
        return (self._function,)
