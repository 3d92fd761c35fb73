"""Purge the events and the configuration of tenants that were deleted."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_events as event_rules
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from orchestrator.adapters.dynamodb.event_keys import LISTED_PURGES, LISTED_SETTINGS
from orchestrator.tenants.credentials import Access
from stacks.common.alarms import PERIOD, Alarm
from stacks.common.capability import Capability, Output
from stacks.common.dead_letters import DeadLetters, dead_letter_queue
from stacks.common.functions import BerthFunction, FunctionKit
from stacks.common.graphs import executions_graph
from stacks.common.permissions import allow
from stacks.common.table import TENANT_ROWS
from stacks.events.contents import Contents
from stacks.events.rows import (
    CHANGE_ROWS,
    CONFIGURATION_ROWS,
    DELIVERY_ROWS,
    EVENT_ROWS,
    FORM_ROWS,
    KEY_ROWS,
    LIFE_ATTRIBUTES,
    REPLAY_ROWS,
    SOURCE_ROWS,
)
from stacks.events.table import EventsTable
from stacks.settings import Settings
from stacks.tenants.machines import machine

_PURGE_SECONDS = 300
_FIND_SECONDS = 300
_FIND_EVERY = Duration.hours(1)


class Purging(Capability):
    """``delete_tenant`` is the machine whose success makes a tenant's events superfluous.

    The permissions of purge_events say which kinds of rows a purge can delete. They cannot name the epoch, which is
    made at run time.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        kit: FunctionKit,
        events: EventsTable,
        contents: Contents,
        delete_tenant: sfn.StateMachine,
        settings: Settings,
    ) -> None:
        super().__init__(scope, construct_id)
        self._kit = kit
        self._settle_seconds = settings.purge_settle_seconds
        self._purge_events = self._make_purge_events(events, contents)
        self._machine = machine(
            self,
            "Machine",
            stem="purge_events",
            functions={self._purge_events.name: self._purge_events},
            kit=kit,
            settings=settings,
        )
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
    def alarms(self) -> Sequence[Alarm]:
        return (
            Alarm(
                "PurgesStuck",
                self._find_purges.counted("PurgesStuck", statistic="Maximum", period=PERIOD),
                "The events of a deleted tenant are not purged 6 hours after the delete. `berth events purges` shows "
                "which, and why.",
            ),
        )

    @property
    def widgets(self) -> Sequence[cloudwatch.IWidget]:
        return (executions_graph("Events: purges", self._machine),)

    @property
    def outputs(self) -> Sequence[Output]:
        return (Output("PurgeEventsMachineArn", self._machine.state_machine_arn),)

    def _make_purge_events(self, events: EventsTable, contents: Contents) -> BerthFunction:
        function = BerthFunction(
            self,
            "PurgeEvents",
            kit=self._kit,
            name="purge_events",
            timeout_seconds=_PURGE_SECONDS,
            environment={
                "BERTH_EVENTS_TABLE": events.name,
                "BERTH_PURGE_SETTLE_SECONDS": str(self._settle_seconds),
                **contents.environment,
            },
        )
        role = function.role
        self._kit.table.allow(
            role,
            *("GetItem", "Query", "UpdateItem", "DeleteItem"),
            rows=[CONFIGURATION_ROWS, KEY_ROWS, SOURCE_ROWS, FORM_ROWS],
        )
        events.allow(role, "Query", "BatchWriteItem", rows=[EVENT_ROWS, DELIVERY_ROWS, CHANGE_ROWS, REPLAY_ROWS])
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
            environment={"BERTH_PURGE_MACHINE": self._machine.state_machine_arn},
            # The function is called asynchronously: Lambda retries it twice, and then sends the event to this queue.
            dead_letters=self._not_found,
        )
        role = function.role
        self._kit.encryption.allow_queues(role, Access.SEND)
        self._kit.table.allow(role, "GetItem", "PutItem", "DeleteItem", rows=CONFIGURATION_ROWS)
        self._kit.table.allow_index(role, LISTED_SETTINGS, LISTED_PURGES)
        self._kit.table.allow_attributes(role, *LIFE_ATTRIBUTES, rows=TENANT_ROWS)
        allow(role, ["states:StartExecution"], self._machine.state_machine_arn)
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
