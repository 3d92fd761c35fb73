"""The HTTP API of the event plane, and the functions behind it."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Aws, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from constructs import Construct

from orchestrator.adapters.dynamodb.event_keys import (
    LISTED_CARE,
    LISTED_DISABLED,
    LISTED_FINISHED_PURGES,
    LISTED_PURGES,
    LISTED_SETTINGS,
)
from orchestrator.api.event_plane_routes import EVENT_ROUTES, INGEST_ROUTES
from orchestrator.api.route import Audience
from stacks.api.access_policies import policy_for_routes
from stacks.api.declared_api import API_TIMEOUT_SECONDS, DeclaredApi, Served
from stacks.common.alarms import Alarm
from stacks.common.capability import Capability, Output
from stacks.common.dead_letters import DeadLetters
from stacks.common.functions import BerthFunction, FunctionKit
from stacks.common.graphs import graph
from stacks.common.permissions import allow, allow_finding_its_stack, names_of
from stacks.common.table import TENANT_ROWS
from stacks.events.contents import Contents
from stacks.events.delivery import Delivery
from stacks.events.rows import (
    CHANGE_ROWS,
    CONFIGURATION_ROWS,
    EVENT_ROWS,
    FORM_ROWS,
    KEY_ROWS,
    LIFE_ATTRIBUTES,
    LIFE_ROWS,
    REPETITION_ROWS,
    SOURCE_ROWS,
)
from stacks.events.secrets_key import SecretsKey
from stacks.events.table import EventsTable
from stacks.settings import Settings

_SERVER_ERRORS = 5
"""The number of server errors per period that sets off the alarm. After a single error the caller just retries."""


class EventsApi(Capability):
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        kit: FunctionKit,
        events: EventsTable,
        contents: Contents,
        secrets: SecretsKey,
        delivery: Delivery,
        dead_letters: Sequence[DeadLetters],
        settings: Settings,
    ) -> None:
        super().__init__(scope, construct_id)
        self._kit = kit
        self._events = events
        self._contents = contents
        self._secrets = secrets
        self._delivery = delivery
        self._settings = settings
        self.ingest = self._ingest()
        self.receive = self._receive()
        self.tenant_events = self._tenant_events()
        self.event_operators = self._event_operators(dead_letters)
        for_tenants = [each for each in EVENT_ROUTES if each.audience is Audience.TENANT]
        for_operators = [each for each in EVENT_ROUTES if each.audience is Audience.OPERATOR]
        for_receivers = [each for each in EVENT_ROUTES if each.audience is Audience.RECEIVER]
        self._api = DeclaredApi(
            self,
            kit=kit,
            name=names_of(self).events_api,
            description=f"Berth {kit.version}: events of tenants.",
            routes=[
                *Served.of(self.ingest, [each for each in for_tenants if each.key in INGEST_ROUTES]),
                *Served.of(self.tenant_events, [each for each in for_tenants if each.key not in INGEST_ROUTES]),
                *Served.of(self.event_operators, [*for_operators, *for_receivers]),
                *Served.of(self.receive, [each for each in EVENT_ROUTES if each.audience is Audience.PUBLIC]),
            ],
            proof_generation=settings.api_proof_generation,
            permission_per_route=False,
        )
        for function in (self.tenant_events, self.event_operators):
            function.function.add_environment("BERTH_OWN_HOSTS", self.host)
        self.operator_policy = policy_for_routes(
            self,
            "Operator",
            api_id=self._api.id,
            description="Configure and look at tenants' events.",
            routes=[*for_operators, *for_receivers],
        )
        self.receiver_policy = policy_for_routes(
            self,
            "Receiver",
            api_id=self._api.id,
            description="Get temporary credentials to read tenants' events, and nothing else.",
            routes=for_receivers,
        )
        # The command line finds the API in the outputs of the stack.
        allow_finding_its_stack(self.operator_policy)

    @property
    def functions(self) -> Sequence[BerthFunction]:
        return (self.ingest, self.receive, self.tenant_events, self.event_operators, self._api.make_proof)

    @property
    def alarms(self) -> Sequence[Alarm]:
        return (
            Alarm(
                "EventsApiServerErrors",
                self._api.server_errors(),
                "The Events API responded with 5xx to several requests: AWS throttled a function, and the callers were "
                "told to try again, or a function failed, which also sets off FunctionErrors. The access log has the "
                "routes.",
                threshold=_SERVER_ERRORS,
            ),
        )

    @property
    def widgets(self) -> Sequence[cloudwatch.IWidget]:
        ingest, receive = self.ingest.function, self.receive.function
        percentiles = ("p50", "p90", "p99")
        return (
            graph(
                "Events: requests",
                ingest.metric_invocations(label="by API key"),
                receive.metric_invocations(label="webhooks and forms"),
            ),
            graph(
                "Events: latency of ingest",
                *(ingest.metric_duration(statistic=each, label=each) for each in percentiles),
            ),
            graph(
                "Events: errors and throttles",
                *(
                    function.function.metric_errors(label=f"{function.name} errors")
                    for function in self._facing_internet
                ),
                *(
                    function.function.metric_throttles(label=f"{function.name} throttles")
                    for function in self._facing_internet
                ),
            ),
            graph(
                "Events API: refused requests and server errors",
                self._api.client_errors(label="4xx"),
                self._api.server_errors(label="5xx"),
            ),
        )

    @property
    def outputs(self) -> Sequence[Output]:
        return (
            Output("EventsApiUrl", self._api.url),
            Output("IngestFunctionName", self.ingest.function.function_name),
            Output("ReceiveFunctionName", self.receive.function.function_name),
            Output("TenantEventsFunctionName", self.tenant_events.function.function_name),
            Output("EventOperatorsFunctionName", self.event_operators.function.function_name),
            Output("EventOperatorPolicyArn", self.operator_policy.managed_policy_arn),
            Output("EventReceiverPolicyArn", self.receiver_policy.managed_policy_arn),
        )

    @property
    def host(self) -> str:
        """The host name of the API. No webhook may be sent to it."""
        return f"{self._api.id}.execute-api.{Aws.REGION}.{Aws.URL_SUFFIX}"

    @property
    def _facing_internet(self) -> Sequence[BerthFunction]:
        return (self.ingest, self.receive, self.tenant_events)

    # The functions

    def _ingest(self) -> BerthFunction:
        """Takes events with an API key."""
        function = BerthFunction(
            self,
            "Ingest",
            kit=self._kit,
            name="ingest",
            timeout_seconds=API_TIMEOUT_SECONDS,
            reserved_concurrency=self._settings.ingest_concurrency,
            environment={"BERTH_EVENTS_TABLE": self._events.name, **self._contents.environment},
        )
        self._allow_checking_keys(function.role)
        self._allow_accepting(function.role)
        return function

    def _receive(self) -> BerthFunction:
        """Takes webhooks and forms, from anybody."""
        function = BerthFunction(
            self,
            "Receive",
            kit=self._kit,
            name="receive",
            timeout_seconds=API_TIMEOUT_SECONDS,
            reserved_concurrency=self._settings.receive_concurrency,
            environment={
                "BERTH_EVENTS_TABLE": self._events.name,
                **self._contents.environment,
                **self._secrets.environment,
            },
        )
        role = function.role
        self._kit.table.allow(role, "GetItem", rows=[SOURCE_ROWS, FORM_ROWS, CONFIGURATION_ROWS])
        self._allow_seeing_whether_tenants_live(role)
        self._secrets.allow_decrypting(role)
        self._allow_accepting(role)
        return function

    def _tenant_events(self) -> BerthFunction:
        """Shows a tenant its events and its configuration, with an API key."""
        function = BerthFunction(
            self,
            "TenantEvents",
            kit=self._kit,
            name="tenant_events",
            timeout_seconds=API_TIMEOUT_SECONDS,
            reserved_concurrency=self._settings.tenant_events_concurrency,
            environment=self._environment_of_readers,
        )
        self._allow_checking_keys(function.role)
        self._allow_reading_and_configuring(function.role)
        return function

    def _event_operators(self, dead_letters: Sequence[DeadLetters]) -> BerthFunction:
        """Does the same for operators, for any tenant."""
        function = BerthFunction(
            self,
            "EventOperators",
            kit=self._kit,
            name="event_operators",
            timeout_seconds=API_TIMEOUT_SECONDS,
            environment={
                **self._environment_of_readers,
                "BERTH_DEAD_LETTER_QUEUES": Stack.of(self).to_json_string(
                    {each.holds: each.queue.queue_url for each in dead_letters}
                ),
            },
        )
        self._allow_reading_and_configuring(function.role)
        self._allow_seeing_whether_tenants_live(function.role)
        self._kit.table.allow_index(
            function.role,
            *(LISTED_SETTINGS, LISTED_PURGES, LISTED_FINISHED_PURGES, LISTED_CARE, LISTED_DISABLED),
        )
        allow(function.role, ["sqs:GetQueueAttributes"], *(each.queue.queue_arn for each in dead_letters))
        return function

    # The permissions

    @property
    def _environment_of_readers(self) -> dict[str, str]:
        return {
            "BERTH_EVENTS_TABLE": self._events.name,
            "BERTH_EVENTS_ENVIRONMENT": self._settings.events_environment,
            **self._settings.destination_environment,
            **self._contents.environment,
            **self._secrets.environment,
            **self._delivery.environment_of_resenders,
        }

    def _allow_checking_keys(self, role: iam.Role) -> None:
        """Let a role check API keys, and note their use, as ``orchestrator.events.authorising`` does."""
        self._kit.table.allow(role, "GetItem", rows=[KEY_ROWS, CONFIGURATION_ROWS])
        self._kit.table.allow(role, "UpdateItem", rows=LIFE_ROWS)
        self._allow_seeing_whether_tenants_live(role)

    def _allow_seeing_whether_tenants_live(self, role: iam.Role) -> None:
        self._kit.table.allow_attributes(role, *LIFE_ATTRIBUTES, rows=TENANT_ROWS)

    def _allow_accepting(self, role: iam.Role) -> None:
        """Let a role accept events, as ``orchestrator.events.accepting`` does.

        It cannot read or change any, and sees only whether one is a repetition. It could replace one whose key it
        knows, which no policy can forbid.
        """
        self._events.allow(role, "PutItem", rows=[EVENT_ROWS, REPETITION_ROWS])
        self._events.allow(role, "GetItem", rows=REPETITION_ROWS)
        self._contents.allow(role, "PutObject")

    def _allow_reading_and_configuring(self, role: iam.Role) -> None:
        # One statement for all of these rows: keys, sources, forms and connections are written in one transaction with
        # their listing, and AWS does not document whether it evaluates each write of a transaction by itself.
        self._kit.table.allow(
            role,
            *("GetItem", "BatchGetItem", "Query", "PutItem", "UpdateItem", "DeleteItem"),
            rows=[CONFIGURATION_ROWS, KEY_ROWS, SOURCE_ROWS, FORM_ROWS],
        )
        # Changes are put in the same transactions, into the table of events.
        self._events.allow(role, "PutItem", "Query", rows=CHANGE_ROWS)
        self._secrets.allow_encrypting(role)
        # Events are put to test a connection.
        self._events.allow(role, "GetItem", "BatchGetItem", "Query", "PutItem", "UpdateItem", rows=EVENT_ROWS)
        self._events.allow_indexes(role)
        self._contents.allow(role, "GetObject")
        self._contents.allow_listing(role)
        self._delivery.allow_resending(role)
