"""The HTTP API for callers with AWS credentials: getQueue for platforms, and the routes for operators."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from aws_cdk import Stack
from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk.aws_apigatewayv2_authorizers import HttpIamAuthorizer
from aws_cdk.aws_apigatewayv2_integrations import HttpLambdaIntegration
from constructs import Construct

from orchestrator.api.route import AnyRoute, Audience
from orchestrator.api.routes import ROUTES
from orchestrator.common.callers import PROOF_VARIABLE
from stacks.api.api_proof import ApiProof
from stacks.api.throttles import ORDERS, THROTTLES
from stacks.common.alarms import PERIOD, Alarm
from stacks.common.capability import Capability, Output
from stacks.common.dead_letters import DeadLetters
from stacks.common.functions import WHOLE_FLEET_MEGABYTES, BerthFunction, FunctionKit
from stacks.common.graphs import graph, search
from stacks.common.limits import limit_creates, limit_tenants
from stacks.common.log_groups import log_group
from stacks.common.permissions import allow, names_of
from stacks.common.table import HISTORY_ROWS, RELEASE_ROWS, TENANT_ROWS
from stacks.reconciling.reconciliation import Reconciliation
from stacks.rollouts.machine import RolloutMachine
from stacks.settings import Settings
from stacks.tenants.machines import TenantMachines
from stacks.tenants.stack_role import TenantStackRole

STAGE = "$default"

# API Gateway gives up a second later. A late response is better than a stopped call that the caller repeats.
_API_TIMEOUT_SECONDS = 29

_SLOW_MILLISECONDS = 1000
"""The duration of a slow call of getQueue. Most calls read one row, in about a hundredth of this."""
_SLOW_PERIODS = 3
_SERVER_ERRORS = 5
"""The number of server errors per period that sets off the alarm. After a single error the caller just retries."""

_LIMITS_ARE_THE_ACCOUNTS = (
    "The quotas and the current numbers of stacks and functions belong to the account: the actions take no resource."
)

_ACCESS_LOG = {
    "requestId": "$context.requestId",
    "requestTime": "$context.requestTime",
    "caller": "$context.identity.userArn",
    "sourceIp": "$context.identity.sourceIp",
    "route": "$context.routeKey",
    "path": "$context.path",
    "status": "$context.status",
    "latency": "$context.responseLatency",
    "integrationLatency": "$context.integrationLatency",
    "error": "$context.error.message",
    "integrationError": "$context.integrationErrorMessage",
}


class Api(Capability):
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        kit: FunctionKit,
        machines: TenantMachines,
        rollouts: RolloutMachine,
        reconciliation: Reconciliation,
        stack_role: TenantStackRole,
        dead_letters: Sequence[DeadLetters],
        settings: Settings,
    ) -> None:
        super().__init__(scope, construct_id)
        self.get_queue = self._get_queue(kit, machines, settings)
        self.operators = self._operators(kit, machines, rollouts, reconciliation, stack_role, dead_letters)
        for function in (self.get_queue, self.operators):
            machines.publish_releases_before(function)
        limit_tenants(self.operators, settings=settings)

        api = apigateway.HttpApi(
            self,
            "Api",
            api_name=names_of(self).api,
            description=f"Berth {kit.version}: tenants, their queues, and rollouts.",
            create_default_stage=False,
            default_authorizer=HttpIamAuthorizer(),
        )
        self._proof = ApiProof(
            self, "Proof", kit=kit, api=api.api_id, stage=STAGE, generation=settings.api_proof_generation
        )
        routes = [
            *_add_routes(api, self.get_queue, [each for each in ROUTES if each.audience is not Audience.OPERATOR]),
            *_add_routes(api, self.operators, [each for each in ROUTES if each.audience is Audience.OPERATOR]),
        ]
        stage = apigateway.HttpStage(
            self,
            "Stage",
            http_api=api,
            stage_name=STAGE,
            auto_deploy=True,
            # Every route has its own throttle. This one is for a route that somebody adds by hand.
            throttle=apigateway.ThrottleSettings(rate_limit=ORDERS.per_second, burst_limit=ORDERS.burst),
        )
        # A stage can only have settings for routes that exist.
        stage.node.add_dependency(*routes)
        access_log = log_group(self, "AccessLog", days=kit.log_retention_days, encryption=kit.encryption)
        resource = stage.node.default_child
        assert isinstance(resource, apigateway.CfnStage)  # noqa: S101 - what the construct is made of
        resource.access_log_settings = apigateway.CfnStage.AccessLogSettingsProperty(
            destination_arn=access_log.log_group_arn, format=json.dumps(_ACCESS_LOG)
        )
        resource.route_settings = {
            route.key: {"ThrottlingRateLimit": throttle.per_second, "ThrottlingBurstLimit": throttle.burst}
            for route in ROUTES
            if (throttle := THROTTLES[route.rate])
        }
        # A deployment updates the functions before the routes, and the routes before the stage. While it replaces the
        # proof, the functions refuse all requests until the stage has the new proof, too.
        resource.stage_variables = {PROOF_VARIABLE: self._proof.value}
        for function in (self.get_queue, self.operators):
            function.function.add_environment("BERTH_API_PROOF_DIGEST", self._proof.digest)
        self._api = api
        self.id = api.api_id
        self.url = stage.url

    @property
    def functions(self) -> Sequence[BerthFunction]:
        return (self.get_queue, self.operators, self._proof.make)

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
                self._server_errors(),
                "The API responded with 5xx to several requests: AWS throttled a function, and the callers were told "
                "to try again, or a function failed, which sets off its own alarm. The access log has the routes and "
                "the callers.",
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
            _responses_graph(self.get_queue),
            _responses_graph(self.operators),
            graph("API: 5xx", self._server_errors(label="5xx")),
        )

    @property
    def outputs(self) -> Sequence[Output]:
        return (
            Output("ApiUrl", self.url),
            Output("GetQueueFunctionName", self.get_queue.function.function_name),
            Output("OperatorsFunctionName", self.operators.function.function_name),
        )

    def _server_errors(self, label: str | None = None) -> cloudwatch.Metric:
        return self._api.metric_server_error(period=PERIOD, label=label, statistic="Sum")

    def _get_queue(self, kit: FunctionKit, machines: TenantMachines, settings: Settings) -> BerthFunction:
        get_queue = BerthFunction(
            self,
            "GetQueue",
            kit=kit,
            name="get_queue",
            timeout_seconds=_API_TIMEOUT_SECONDS,
            reserved_concurrency=settings.get_queue_concurrency,
            environment={
                # The function starts only creates, but checks the executions of all operations.
                **machines.environment,
                "BERTH_CREATE_ON_GET_QUEUE": "true" if settings.create_on_get_queue else "false",
            },
        )
        kit.table.allow(get_queue.role, "GetItem", "Query", rows=TENANT_ROWS)
        if settings.create_on_get_queue:
            limit_creates(get_queue, kit=kit, settings=settings)
            # A tenant whose queue was deleted is created again at its previous version, if that version was published.
            kit.table.allow(get_queue.role, "GetItem", rows=RELEASE_ROWS)
            allow(get_queue.role, ["states:StartExecution"], machines.create.state_machine_arn)
            machines.allow_describing(get_queue.role)
        return get_queue

    def _operators(
        self,
        kit: FunctionKit,
        machines: TenantMachines,
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
            timeout_seconds=_API_TIMEOUT_SECONDS,
            environment={
                **machines.environment,
                **rollouts.environment,
                **reconciliation.environment,
                **stack_role.parameters,
                "BERTH_DEAD_LETTER_QUEUES": Stack.of(self).to_json_string(
                    {each.holds: each.queue.queue_url for each in dead_letters}
                ),
            },
        )
        machines.allow_operations(operators.role, kit.table, (machines.create, machines.update, machines.delete))
        kit.table.allow(operators.role, "Query", rows=HISTORY_ROWS)
        kit.table.allow(operators.role, "Query", rows=RELEASE_ROWS)
        rollouts.allow_operating(operators.role)
        reconciliation.allow_asking(operators.role)
        _allow_diagnosing(operators.role, kit, dead_letters)
        return operators


def _responses_graph(function: BerthFunction) -> cloudwatch.GraphWidget:
    """Responses with a status of 400 and above, one line per status. The functions count no others."""
    return graph(f"{function.name}: responses other than success", search(function, f'service="{function.name}"'))


def _allow_diagnosing(role: iam.Role, kit: FunctionKit, dead_letters: Iterable[DeadLetters]) -> None:
    """Let a role diagnose the control plane."""
    kit.table.allow_listing_unfinished(role)
    allow(role, ["sqs:GetQueueAttributes"], *(each.queue.queue_arn for each in dead_letters))
    allow(
        role,
        ["cloudformation:DescribeAccountLimits", "lambda:GetAccountSettings", "cloudwatch:GetMetricStatistics"],
        "*",
        wildcard_because=_LIMITS_ARE_THE_ACCOUNTS,
    )


def _add_routes(
    api: apigateway.HttpApi, function: BerthFunction, routes: Iterable[AnyRoute]
) -> Iterator[apigateway.HttpRoute]:
    integration = HttpLambdaIntegration(
        function.node.id, function.function, payload_format_version=apigateway.PayloadFormatVersion.VERSION_2_0
    )
    for route in routes:
        yield from api.add_routes(
            path=route.path, methods=[apigateway.HttpMethod(route.method)], integration=integration
        )
