"""Mail with events by SES, and what SES reports about it later: only if there is an address that mail comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aws_cdk import Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_events as event_rules
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_ses as ses
from constructs import Construct

from orchestrator.adapters.ses_reports import CONFIGURATION_SET_TAG, DETAIL_TYPES
from orchestrator.tenants.credentials import Access
from stacks.common.capability import Capability
from stacks.common.dead_letters import DeadLetters, dead_letter_queue
from stacks.common.functions import BerthFunction, FunctionKit
from stacks.common.graphs import graph
from stacks.common.permissions import allow, names_of
from stacks.events.connections import allow_changing_connections
from stacks.events.table import EventsTable

_SECONDS = 30
_RECIPIENTS_TOO = (
    "While an account is in the sandbox of SES, SES asks for the permission on the recipient's identity, too. The "
    "condition allows mail from one address only."
)


class Mail(Capability):
    """``sender`` is the address that mail comes from. SES must have verified the address or its domain."""

    def __init__(
        self, scope: Construct, construct_id: str, *, kit: FunctionKit, events: EventsTable, sender: str
    ) -> None:
        super().__init__(scope, construct_id)
        self._sender = sender
        self._configuration_set = ses.ConfigurationSet(
            self, "ConfigurationSet", configuration_set_name=names_of(self).events
        )
        self._configuration_set.add_event_destination(
            "Reports",
            # SES sends to no other bus than the account's default one.
            destination=ses.EventDestination.event_bus(
                event_rules.EventBus.from_event_bus_name(self, "DefaultBus", "default")
            ),
            events=[ses.EmailSendingEvent.BOUNCE, ses.EmailSendingEvent.COMPLAINT],
        )
        self._not_processed = dead_letter_queue(self, "NotProcessed", encryption=kit.encryption)
        self._process_bounces = self._make_process_bounces(kit, events)

    @property
    def functions(self) -> Sequence[BerthFunction]:
        return (self._process_bounces,)

    @property
    def dead_letters(self) -> Sequence[DeadLetters]:
        return (
            DeadLetters(
                self._not_processed,
                "bounces and complaints",
                "BouncesNotProcessed",
                "SES has reported mails that came back, or complaints about them, and the function process_bounces "
                "could not disable their connections, so mail is still sent there. The messages are the reports. Look "
                "at the function's log, fix the cause, then invoke the function with each message as its payload.",
            ),
        )

    @property
    def widgets(self) -> Sequence[cloudwatch.IWidget]:
        reports = self._process_bounces
        return (
            graph(
                "Mail: reports by SES",
                reports.counted("MailBounces", statistic="Sum", label="bounces"),
                reports.counted("MailComplaints", statistic="Sum", label="complaints"),
            ),
        )

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables of a function that sends mail."""
        return {"BERTH_MAIL_CONFIGURATION_SET": self._configuration_set.configuration_set_name}

    def allow_sending(self, role: iam.Role) -> None:
        """Let a role send mail from the address only. The address itself, or its domain, is the verified identity."""
        stack, from_the_address = Stack.of(self), {"StringEquals": {"ses:FromAddress": self._sender}}
        allow(
            role,
            ["ses:SendEmail"],
            stack.format_arn(service="ses", resource="identity", resource_name="*"),
            conditions=from_the_address,
            wildcard_because=_RECIPIENTS_TOO,
        )
        configuration_set = stack.format_arn(
            service="ses",
            resource="configuration-set",
            resource_name=self._configuration_set.configuration_set_name,
        )
        allow(role, ["ses:SendEmail"], configuration_set, conditions=from_the_address)

    def _make_process_bounces(self, kit: FunctionKit, events: EventsTable) -> BerthFunction:
        """Disables connections whose mail came back for good."""
        function = BerthFunction(
            self,
            "ProcessBounces",
            kit=kit,
            name="process_bounces",
            timeout_seconds=_SECONDS,
            environment={"BERTH_EVENTS_TABLE": events.name},
            # The function is called asynchronously: Lambda retries it twice, and then sends the event to this queue.
            dead_letters=self._not_processed,
        )
        kit.encryption.allow_queues(function.role, Access.SEND)
        allow_changing_connections(function.role, table=kit.table, events=events)
        event_rules.Rule(
            self,
            "Reported",
            description="SES reports a mail with an event of a tenant that came back, or a complaint about one.",
            event_pattern=event_rules.EventPattern(
                source=["aws.ses"],
                detail_type=list(DETAIL_TYPES),
                detail={"mail": {"tags": {CONFIGURATION_SET_TAG: [self._configuration_set.configuration_set_name]}}},
            ),
            targets=[
                targets.LambdaFunction(
                    function.function,
                    dead_letter_queue=self._not_processed,
                    retry_attempts=10,
                    max_event_age=Duration.hours(24),
                )
            ],
        )
        return function
