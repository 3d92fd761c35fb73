"""getQueue over HTTP: ``GET /tenants/{tenantId}/queue``, for callers with AWS credentials."""

from __future__ import annotations

import json

from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk.aws_apigatewayv2_authorizers import HttpIamAuthorizer
from aws_cdk.aws_apigatewayv2_integrations import HttpLambdaIntegration
from constructs import Construct

from stacks.functions import BerthFunction, FunctionKit
from stacks.log_groups import log_group
from stacks.permissions import allow
from stacks.settings import Settings
from stacks.table import TENANT_ROWS
from stacks.tenant_machines import EXECUTIONS_ARE_MANY, TenantMachines

# Well under an account's 10,000 a second, which all its HTTP APIs share.
_REQUESTS_PER_SECOND = 500
_BURST = 1000
# API Gateway gives up a second later. A call that waits its turn behind others is better late than killed and repeated.
_GIVEN_UP_AFTER_SECONDS = 29

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


class QueueApi(Construct):
    def __init__(
        self, scope: Construct, construct_id: str, *, kit: FunctionKit, machines: TenantMachines, settings: Settings
    ) -> None:
        super().__init__(scope, construct_id)
        self.get_queue = BerthFunction(
            self,
            "GetQueue",
            kit=kit,
            name="get_queue",
            timeout_seconds=_GIVEN_UP_AFTER_SECONDS,
            reserved_concurrency=settings.get_queue_concurrency,
            environment={"BERTH_CREATE_MACHINE": machines.create.state_machine_arn},
        )
        kit.table.allow(self.get_queue.role, "GetItem", "Query", rows=TENANT_ROWS)
        allow(self.get_queue.role, ["states:StartExecution"], machines.create.state_machine_arn)
        allow(
            self.get_queue.role,
            ["states:DescribeExecution"],
            machines.create_executions,
            wildcard_because=EXECUTIONS_ARE_MANY,
        )

        api = apigateway.HttpApi(
            self,
            "Api",
            api_name="berth",
            description=f"Berth {kit.version}: a tenant's queue.",
            create_default_stage=False,
            default_authorizer=HttpIamAuthorizer(),
        )
        api.add_routes(
            path="/tenants/{tenantId}/queue",
            methods=[apigateway.HttpMethod.GET],
            integration=HttpLambdaIntegration(
                "GetQueue",
                self.get_queue.function,
                payload_format_version=apigateway.PayloadFormatVersion.VERSION_2_0,
            ),
        )
        stage = apigateway.HttpStage(
            self,
            "Stage",
            http_api=api,
            stage_name="$default",
            auto_deploy=True,
            throttle=apigateway.ThrottleSettings(rate_limit=_REQUESTS_PER_SECOND, burst_limit=_BURST),
        )
        access_log = log_group(self, "AccessLog", days=kit.log_retention_days)
        resource = stage.node.default_child
        assert isinstance(resource, apigateway.CfnStage)  # noqa: S101 - what the construct is made of
        resource.access_log_settings = apigateway.CfnStage.AccessLogSettingsProperty(
            destination_arn=access_log.log_group_arn, format=json.dumps(_ACCESS_LOG)
        )
        self.url = stage.url
