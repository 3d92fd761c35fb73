"""The HTTP API for callers with AWS credentials: getQueue for platforms, and the routes for operators."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from aws_cdk import Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from constructs import Construct

from orchestrator.api.route import Audience
from orchestrator.api.routes import ROUTES
from stacks.api.declared_api import API_TIMEOUT_SECONDS, DeclaredApi, Served
from stacks.common.alarms import PERIOD, Alarm
from stacks.common.capability import Capability, Output
from stacks.common.dead_letters import DeadLetters
from stacks.common.functions import WHOLE_FLEET_MEGABYTES, BerthFunction, FunctionKit
from stacks.common.graphs import graph
from stacks.common.limits import limit_creates, limit_tenants
from stacks.common.permissions import (
    allow,
    allow_asking_for_unfinished_work,
    allow_reading_tenant_stacks,
    names_of,
)
from stacks.common.table import HISTORY_ROWS, POOL_ROWS, TENANT_ROWS
from stacks.reconciling.reconciliation import Reconciliation
from stacks.releases.publisher import ReleasePublisher
from stacks.rollouts.machine import RolloutMachine
from stacks.settings import Settings
from stacks.tenants.machines import TenantMachines
from stacks.tenants.stack_role import TenantStackRole

_SLOW_MILLISECONDS = 1000
"""The duration of a slow call of getQueue. Most calls read one row, in about a hundredth of this."""
_SLOW_PERIODS = 3
_SERVER_ERRORS = 5
"""The number of server errors per period that sets off the alarm. After a single error the caller just retries."""

_LIMITS_ARE_THE_ACCOUNTS = (
    "The quotas and the current numbers of stacks and functions belong to the account: the actions take no resource."
)


class Api(Capability):
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        kit: FunctionKit,
        machines: TenantMachines,
        releases: ReleasePublisher,
        rollouts: RolloutMachine,
        reconciliation: Reconciliation,
        stack_role: TenantStackRole,
        dead_letters: Sequence[DeadLetters],
        settings: Settings,
    ) -> None:
        super().__init__(scope, construct_id)
        self.get_queue = self._get_queue(kit, machines, settings)
        self.operators = self._operators(kit, machines, releases, rollouts, reconciliation, stack_role, dead_letters)
        for name, value in settings.warm_pool_environment.items():
            self.operators.function.add_environment(name, value)
        if settings.warm_pool:
            kit.table.allow_taking_warm_stacks(self.operators.role)
        for function in (self.get_queue, self.operators):
            machines.publish_releases_before(function)
        limit_tenants(self.operators, kit=kit, settings=settings)

        self._api = DeclaredApi(
            self,
            kit=kit,
            name=names_of(self).api,
            description=f"Berth {kit.version}: tenants, their queues, and rollouts.",
            routes=[
                *Served.of(self.get_queue, [each for each in ROUTES if each.audience is not Audience.OPERATOR]),
                *Served.of(self.operators, [each for each in ROUTES if each.audience is Audience.OPERATOR]),
            ],
            proof_generation=settings.api_proof_generation,
        )
        self.id = self._api.id
        self.url = self._api.url

    @property
    def functions(self) -> Sequence[BerthFunction]:
        return (self.get_queue, self.operators, self._api.make_proof)

    @property
    def alarms(self) -> Sequence[Alarm]:
        return (
            Alarm(
                "GetQueueSlow",
                self.get_queue.function.metric_duration(period=PERIOD, statistic="p99"),
                f"For a quarter of an hour, one in a hundred calls of getQueue took {_SLOW_MILLISECONDS} ms or more. "
                "Most calls read only one row. Look at DynamoDB's latency and throttles on the dashboard, and at cold "
                "starts after a deployment.",
                threshold=_SLOW_MILLISECONDS,
                periods=_SLOW_PERIODS,
            ),
            Alarm(
                "ApiServerErrors",
                self._api.server_errors(),
                "The API responded with 5xx to several requests: AWS throttled a function, and the callers were told "
                "to try again, or a function failed, which also sets off FunctionErrors. The access log has the routes "
                "and the callers.",
                threshold=_SERVER_ERRORS,
            ),
        )

    @property
    def widgets(self) -> Sequence[cloudwatch.IWidget]:
        get_queue = self.get_queue.function
        percentiles = ("p50", "p90", "p99")
        return (
            graph("getQueue: calls", get_queue.metric_invocations(label="calls")),
            graph(
                "getQueue: latency",
                *(get_queue.metric_duration(statistic=each, label=each) for each in percentiles),
            ),
            graph(
                "getQueue: errors and throttles",
                get_queue.metric_errors(label="errors"),
                get_queue.metric_throttles(label="throttles"),
            ),
            graph(
                "API: refused requests and server errors",
                self._api.client_errors(label="4xx"),
                self._api.server_errors(label="5xx"),
            ),
        )

    @property
    def outputs(self) -> Sequence[Output]:
        return (
            Output("ApiUrl", self.url),
            Output("GetQueueFunctionName", self.get_queue.function.function_name),
            Output("OperatorsFunctionName", self.operators.function.function_name),
        )

    def _get_queue(self, kit: FunctionKit, machines: TenantMachines, settings: Settings) -> BerthFunction:
        get_queue = BerthFunction(
            self,
            "GetQueue",
            kit=kit,
            name="get_queue",
            timeout_seconds=API_TIMEOUT_SECONDS,
            reserved_concurrency=settings.get_queue_concurrency,
            environment={
                # The function starts only creates, but checks the executions of all operations.
                **machines.environment,
                "BERTH_CREATE_ON_GET_QUEUE": "true" if settings.create_on_get_queue else "false",
                "BERTH_RETRY_AFTER_SECONDS": str(settings.retry_after_seconds),
                **(settings.warm_pool_environment if settings.create_on_get_queue else {}),
            },
        )
        kit.table.allow(get_queue.role, "GetItem", "Query", rows=TENANT_ROWS)
        if settings.create_on_get_queue:
            limit_creates(get_queue, kit=kit, settings=settings)
            # A tenant whose queue was deleted is created again at its previous version, if that version was published.
            kit.table.allow_choosing_releases(get_queue.role)
            allow(get_queue.role, ["states:StartExecution"], machines.create.state_machine_arn)
            machines.allow_describing(get_queue.role)
            if settings.warm_pool:
                kit.table.allow_taking_warm_stacks(get_queue.role)
        return get_queue

    def _operators(
        self,
        kit: FunctionKit,
        machines: TenantMachines,
        releases: ReleasePublisher,
        rollouts: RolloutMachine,
        reconciliation: Reconciliation,
        stack_role: TenantStackRole,
        dead_letters: Sequence[DeadLetters],
    ) -> BerthFunction:
        operators = BerthFunction(
            self,
            "Operators",
            kit=kit,
            name="operators",
            memory_megabytes=WHOLE_FLEET_MEGABYTES,
            timeout_seconds=API_TIMEOUT_SECONDS,
            environment={
                **machines.environment,
                **rollouts.environment,
                **reconciliation.environment,
                **stack_role.parameters,
                **stack_role.environment,
                "BERTH_DEAD_LETTER_QUEUES": Stack.of(self).to_json_string(
                    {each.holds: each.queue.queue_url for each in dead_letters}
                ),
            },
        )
        every = (machines.create, machines.update, machines.delete)
        machines.allow_operations(operators.role, kit.table, every, listing=True)
        kit.table.allow(operators.role, "Query", rows=HISTORY_ROWS)
        kit.table.allow_promoting_releases(operators.role)
        releases.allow_publishing(operators.role)
        stack_role.allow_checking_templates(operators)
        rollouts.allow_operating(operators.role)
        reconciliation.allow_asking(operators.role)
        allow_asking_for_unfinished_work(operators.role)
        allow_reading_tenant_stacks(operators.role, "ListStackResources")
        _allow_diagnosing(operators.role, kit, dead_letters)
        return operators


def _allow_diagnosing(role: iam.Role, kit: FunctionKit, dead_letters: Iterable[DeadLetters]) -> None:
    """Let a role diagnose the control plane."""
    kit.table.allow_listing_unfinished(role)
    kit.table.allow(role, "GetItem", rows=POOL_ROWS)
    allow(role, ["sqs:GetQueueAttributes"], *(each.queue.queue_arn for each in dead_letters))
    allow(
        role,
        ["cloudformation:DescribeAccountLimits", "lambda:GetAccountSettings", "cloudwatch:GetMetricStatistics"],
        "*",
        wildcard_because=_LIMITS_ARE_THE_ACCOUNTS,
    )
