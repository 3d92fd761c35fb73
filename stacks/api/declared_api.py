"""An HTTP API with declared routes: its stage, throttles, access log, and the proof that API Gateway sent an event."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk.aws_apigatewayv2_authorizers import HttpIamAuthorizer
from aws_cdk.aws_apigatewayv2_integrations import HttpLambdaIntegration
from constructs import Construct

from orchestrator.api.route import AnyRoute, Audience, Rate
from orchestrator.common.callers import PROOF_VARIABLE
from stacks.api.api_proof import ApiProof
from stacks.api.throttles import ORDERS, THROTTLES
from stacks.common.alarms import PERIOD
from stacks.common.functions import BerthFunction, FunctionKit
from stacks.common.log_groups import log_group
from stacks.common.permissions import acknowledge

STAGE = "$default"

# API Gateway gives up a second later. A late response is better than a stopped call that the caller repeats.
API_TIMEOUT_SECONDS = 29

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


@dataclass(frozen=True, slots=True)
class Served:
    """A route as API Gateway has it, and the function behind it."""

    key: str
    """The method and the path: ``GET /tenants/{tenantId}``."""
    rate: Rate
    function: BerthFunction
    checked_by_function: str | None = None
    """How the function checks the caller, for routes that API Gateway lets everybody call."""

    @classmethod
    def of(cls, function: BerthFunction, routes: Iterable[AnyRoute]) -> list[Served]:
        return [cls(each.key, each.rate, function, _CHECKED_BY_FUNCTION.get(each.audience)) for each in routes]


_CHECKED_BY_FUNCTION = {
    Audience.TENANT: "Tenants have API keys and no AWS credentials. The function checks the key before anything else.",
    Audience.PUBLIC: (
        "Providers and browsers have no credentials of ours. The function checks the signature of a webhook, and the "
        "origin of a form."
    ),
}


class DeclaredApi:
    """Not a construct of its own: the ids of its parts, which a deployed API has, are those of the capability."""

    def __init__(
        self,
        scope: Construct,
        *,
        kit: FunctionKit,
        name: str,
        description: str,
        routes: Sequence[Served],
        proof_generation: int,
        permission_per_route: bool = True,
    ) -> None:
        """``permission_per_route``: whether API Gateway may call a function for each of its routes, or for all of them.

        Lambda limits the size of a function's policy to 20 KB, which is about 50 permissions.
        """
        self._permission_per_route = permission_per_route
        self._api = apigateway.HttpApi(
            scope,
            "Api",
            api_name=name,
            description=description,
            create_default_stage=False,
            default_authorizer=HttpIamAuthorizer(),
        )
        proof = ApiProof(scope, "Proof", kit=kit, api=self._api.api_id, stage=STAGE, generation=proof_generation)
        self.make_proof = proof.make
        functions = list(dict.fromkeys(each.function for each in routes))
        added = [
            route
            for function in functions
            for route in self._add_routes(function, [each for each in routes if each.function is function])
        ]
        stage = apigateway.HttpStage(
            scope,
            "Stage",
            http_api=self._api,
            stage_name=STAGE,
            auto_deploy=True,
            # Every route has its own throttle. This one is for a route that somebody adds by hand.
            throttle=apigateway.ThrottleSettings(rate_limit=ORDERS.per_second, burst_limit=ORDERS.burst),
        )
        # A stage can only have settings for routes that exist.
        stage.node.add_dependency(*added)
        access_log = log_group(scope, "AccessLog", days=kit.log_retention_days, encryption=kit.encryption)
        resource = stage.node.default_child
        assert isinstance(resource, apigateway.CfnStage)  # noqa: S101 - what the construct is made of
        resource.access_log_settings = apigateway.CfnStage.AccessLogSettingsProperty(
            destination_arn=access_log.log_group_arn, format=json.dumps(_ACCESS_LOG)
        )
        resource.route_settings = {
            route.key: {"ThrottlingRateLimit": throttle.per_second, "ThrottlingBurstLimit": throttle.burst}
            for route in routes
            if (throttle := THROTTLES[route.rate])
        }
        # A deployment updates the functions before the routes, and the routes before the stage. While it replaces the
        # proof, the functions refuse all requests until the stage has the new proof, too.
        resource.stage_variables = {PROOF_VARIABLE: proof.value}
        for function in functions:
            function.function.add_environment("BERTH_API_PROOF_DIGEST", proof.digest)
        self.id = self._api.api_id
        self.url = stage.url

    def server_errors(self, label: str | None = None) -> cloudwatch.Metric:
        return self._api.metric_server_error(period=PERIOD, label=label, statistic="Sum")

    def client_errors(self, label: str | None = None) -> cloudwatch.Metric:
        return self._api.metric_client_error(period=PERIOD, label=label, statistic="Sum")

    def _add_routes(self, function: BerthFunction, routes: Iterable[Served]) -> Iterable[apigateway.HttpRoute]:
        integration = HttpLambdaIntegration(
            function.node.id,
            function.function,
            payload_format_version=apigateway.PayloadFormatVersion.VERSION_2_0,
            scope_permission_to_route=self._permission_per_route,
        )
        for route in routes:
            method, _, path = route.key.partition(" ")
            open_to_all = apigateway.HttpNoneAuthorizer() if route.checked_by_function else None
            for added in self._api.add_routes(
                path=path,
                methods=[apigateway.HttpMethod(method)],
                integration=integration,
                authorizer=open_to_all,
            ):
                if route.checked_by_function:
                    acknowledge(added, "AwsSolutions-APIG4", route.checked_by_function)
                yield added
