"""Purge the events and the configuration of tenants that were deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aws_cdk import Duration
from aws_cdk import aws_events as event_rules
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from orchestrator.adapters.dynamodb.event_keys import LISTED_PURGES, LISTED_SETTINGS
from orchestrator.tenants.credentials import Access
from stacks.common.capability import Capability
from stacks.common.dead_letters import DeadLetters, dead_letter_queue
from stacks.common.functions import BerthFunction, FunctionKit
from stacks.common.table import TENANT_ROWS
from stacks.events.contents import Contents
from stacks.events.rows import (
    CONFIGURATION_ROWS,
    EVENT_ROWS,
    FORM_ROWS,
    KEY_ROWS,
    LIFE_ATTRIBUTES,
    SOURCE_ROWS,
)
from stacks.events.table import EventsTable

_PURGE_SECONDS = 300
_FIND_SECONDS = 300
_FIND_EVERY = Duration.hours(1)


class Purging(Capability):
    """``delete_tenant`` is the machine whose success makes a tenant's events superfluous."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        kit: FunctionKit,
        events: EventsTable,
        contents: Contents,
        delete_tenant: sfn.StateMachine,
    ) -> None:
        super().__init__(scope, construct_id)
        self._kit = kit
        self._purge_events = self._make_purge_events(events, contents)
        self._not_found = dead_letter_queue(self, "NotFound", encryption=kit.encryption)
        self._find_purges = self._make_find_purges()
        self._find_after(delete_tenant)

    @property
    def functions(self) -> Sequence[BerthFunction]:
        return (self._purge_events, self._find_purges)

    @property
    def dead_letters(self) -> Sequence[DeadLetters]:
        return (
            DeadLetters(
                self._not_found,
                "searches for deleted tenants",
                "PurgesNotFound",
                "The function find_purges did not run, or failed on every try. The next run, within the hour, makes up "
                "for it. Look at its log, then purge the queue.",
            ),
        )

    @property
    def by_name(self) -> Mapping[str, BerthFunction]:
        """The functions that a state machine calls, by their names."""
        return {each.name: each for each in self.functions}

    def _make_purge_events(self, events: EventsTable, contents: Contents) -> BerthFunction:
        function = BerthFunction(
            self,
            "PurgeEvents",
            kit=self._kit,
            name="purge_events",
            timeout_seconds=_PURGE_SECONDS,
            environment={"BERTH_EVENTS_TABLE": events.name, **contents.environment},
        )
        role = function.role
        self._kit.table.allow(
            role,
            *("GetItem", "Query", "UpdateItem", "DeleteItem"),
            rows=[CONFIGURATION_ROWS, KEY_ROWS, SOURCE_ROWS, FORM_ROWS],
        )
        self._kit.table.allow_attributes(role, *LIFE_ATTRIBUTES, rows=TENANT_ROWS)
        events.allow(role, "Query", "BatchWriteItem", "DeleteItem", rows=EVENT_ROWS)
        contents.allow_listing(role)
        contents.allow(role, "DeleteObject")
        return function

    def _make_find_purges(self) -> BerthFunction:
        function = BerthFunction(
            self,
            "FindPurges",
            kit=self._kit,
            name="find_purges",
            timeout_seconds=_FIND_SECONDS,
            # The function is called asynchronously: Lambda retries it twice, and then sends the event to this queue.
            dead_letters=self._not_found,
        )
        role = function.role
        self._kit.encryption.allow_queues(role, Access.SEND)
        self._kit.table.allow(role, "GetItem", "PutItem", "UpdateItem", rows=CONFIGURATION_ROWS)
        self._kit.table.allow_index(role, LISTED_SETTINGS, LISTED_PURGES)
        self._kit.table.allow_attributes(role, *LIFE_ATTRIBUTES, rows=TENANT_ROWS)
        return function

    def _find_after(self, delete_tenant: sfn.StateMachine) -> None:
        event_rules.Rule(
            self,
            "Deleted",
            description="A tenant was deleted.",
            event_pattern=event_rules.EventPattern(
                source=["aws.states"],
                detail_type=["Step Functions Execution Status Change"],
                detail={"status": ["SUCCEEDED"], "stateMachineArn": [delete_tenant.state_machine_arn]},
            ),
            targets=[self._target(max_age=Duration.hours(1))],
        )
        event_rules.Rule(
            self,
            "Hourly",
            description="Finds deleted tenants whose events are not purged yet, in case an event was lost.",
            schedule=event_rules.Schedule.rate(_FIND_EVERY),
            targets=[self._target(max_age=Duration.minutes(5))],
        )

    def _target(self, *, max_age: Duration) -> targets.LambdaFunction:
        return targets.LambdaFunction(
            self._find_purges.function, dead_letter_queue=self._not_found, retry_attempts=2, max_event_age=max_age
        )
