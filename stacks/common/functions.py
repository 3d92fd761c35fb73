"""The construct of every Berth function: the shared runtime and code, its own log group and its own role."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from aws_cdk import Aws, Duration, IgnoreMode
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from orchestrator.common.tiers import STANDARD
from orchestrator.releases.states import PromotionMode
from orchestrator.tenants.names import Names
from stacks.common.encryption import Encryption
from stacks.common.function_code import LEFT_OUT, PACKAGES, handler_of
from stacks.common.log_groups import log_group
from stacks.common.permissions import acknowledge, acknowledge_wildcard, allow, names_of
from stacks.common.table import TenantTable
from stacks.project import CODE, LAYER, PYTHON_VERSION, ROOT
from stacks.settings import Dependencies, Settings, Tracing

WHOLE_FLEET_MEGABYTES = 1769
"""The memory of functions that list the whole fleet while a caller waits. With it comes one whole processor."""

DEPLOYMENT_TIMEOUT = Duration.seconds(300)
"""How long CloudFormation waits for a custom resource of the control plane. Lambda retries a function that failed after
one minute, and again after two more."""

_TRACING = {Tracing.PASSIVE: lambda_.Tracing.PASS_THROUGH, Tracing.ACTIVE: lambda_.Tracing.ACTIVE}

# Patterns in the syntax of .gitignore.
_NOT_FUNCTION_CODE = ("/*", *(f"!/{name}" for name in PACKAGES), *(f"/{path}" for path in LEFT_OUT), "__pycache__")


@dataclass(frozen=True, slots=True)
class FunctionKit:
    """The parts that all functions of a stack share. Each stack needs its own kit, because it uploads its own code."""

    code: lambda_.Code
    runtime: lambda_.Runtime
    architecture: lambda_.Architecture
    layers: tuple[lambda_.LayerVersion, ...]
    table: TenantTable
    encryption: Encryption
    version: str
    """The version of Berth."""
    template_version: str | None
    """The version of the tenants' template. Functions of the event plane choose no release, and have none."""
    log_retention_days: int
    tracing: lambda_.Tracing
    linger_seconds: int
    response_url_prefix: str | None
    promotion: PromotionMode
    default_tier: str

    @classmethod
    def create(
        cls,
        scope: Construct,
        *,
        table: TenantTable,
        encryption: Encryption,
        version: str,
        settings: Settings,
        template_version: str | None = None,
    ) -> FunctionKit:
        runtime = lambda_.Runtime(f"python{PYTHON_VERSION}", lambda_.RuntimeFamily.PYTHON)
        architecture = lambda_.Architecture.ARM_64
        layers: tuple[lambda_.LayerVersion, ...] = ()
        if settings.dependencies is Dependencies.LAYER:
            dependencies = lambda_.LayerVersion(
                scope,
                "Dependencies",
                code=lambda_.Code.from_asset(str(LAYER)),
                compatible_runtimes=[runtime],
                compatible_architectures=[architecture],
            )
            layers = (dependencies,)
            code = lambda_.Code.from_asset(str(CODE))
        else:
            code = lambda_.Code.from_asset(str(ROOT), exclude=list(_NOT_FUNCTION_CODE), ignore_mode=IgnoreMode.GIT)
        return cls(
            code=code,
            runtime=runtime,
            architecture=architecture,
            layers=layers,
            table=table,
            encryption=encryption,
            version=version,
            template_version=template_version,
            log_retention_days=settings.log_retention_days,
            tracing=_TRACING[settings.tracing],
            linger_seconds=settings.linger_seconds,
            response_url_prefix=settings.response_url_prefix,
            promotion=settings.promotion,
            default_tier=settings.default_tier,
        )


class BerthFunction(Construct):
    """A function. Its handler is the module ``name`` in a folder of ``lambdas/``."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        kit: FunctionKit,
        name: str,
        timeout_seconds: int = 15,
        memory_megabytes: int = 256,
        environment: Mapping[str, str] | None = None,
        function_name: str | None = None,
        reserved_concurrency: int | None = None,
        dead_letters: sqs.Queue | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        self.name = name
        self.logs = log_group(self, "Logs", days=kit.log_retention_days, encryption=kit.encryption)
        self.role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        allow(self.role, ["logs:CreateLogStream", "logs:PutLogEvents"], self.logs.log_group_arn)
        self.function = lambda_.Function(
            self,
            "Function",
            function_name=function_name,
            description=f"Berth {kit.version}: {name}",
            code=kit.code,
            handler=handler_of(name),
            runtime=kit.runtime,
            architecture=kit.architecture,
            layers=list(kit.layers),
            memory_size=memory_megabytes,
            timeout=Duration.seconds(timeout_seconds),
            reserved_concurrent_executions=reserved_concurrency,
            dead_letter_queue=dead_letters,
            role=self.role,
            log_group=self.logs,
            logging_format=lambda_.LoggingFormat.JSON,
            application_log_level_v2=lambda_.ApplicationLogLevel.INFO,
            # Lambda's own lines about a call without an error are longer than the function's.
            system_log_level_v2=lambda_.SystemLogLevel.WARN,
            tracing=kit.tracing,
            environment={
                "BERTH_NAME": names_of(self).control_plane,
                "BERTH_TABLE": kit.table.name,
                "BERTH_VERSION": kit.version,
                "BERTH_LINGER_SECONDS": str(kit.linger_seconds),
                "BERTH_LOCATION": f"{Aws.PARTITION}:{Aws.REGION}:{Aws.ACCOUNT_ID}",
                "BERTH_SERVICE": name,
                "BERTH_METRICS_NAMESPACE": names_of(self).metrics,
                **({"BERTH_TEMPLATE_VERSION": kit.template_version} if kit.template_version else {}),
                **_legacy_prefixes(names_of(self)),
                **({"BERTH_RESPONSE_URL_PREFIX": kit.response_url_prefix} if kit.response_url_prefix else {}),
                **({"BERTH_DEFAULT_TIER": kit.default_tier} if kit.default_tier != STANDARD else {}),
                **({"BERTH_PROMOTION": kit.promotion.value} if kit.promotion is not PromotionMode.ON_DEPLOY else {}),
                **(environment or {}),
            },
        )
        acknowledge(self.function, "AwsSolutions-L1", "The functions run on the newest Python that the tests run on.")
        acknowledge_wildcard(self.role, "*", "X-Ray has no resources to name: its Put actions only take `*`.")

    @property
    def arn(self) -> str:
        return self.function.function_arn

    def allow_verifying_requests(self, *operations: str) -> None:
        """Let the function check that a request comes from this deployment, by a resource in the function's own stack.

        Anybody else who may invoke the function can send the same event. ``operations`` are further CloudFormation
        operations that the function may call on that stack.
        """
        self.function.add_environment("BERTH_STACK_ID", Aws.STACK_ID)
        actions = [f"cloudformation:{operation}" for operation in ("DescribeStackResource", *operations)]
        allow(self.role, actions, Aws.STACK_ID)

    def counted(
        self, metric: str, *, statistic: str, period: Duration | None = None, label: str | None = None
    ) -> cloudwatch.Metric:
        """A metric that the function emits with ``lambdas.observing.count``."""
        return cloudwatch.Metric(
            namespace=names_of(self).metrics,
            metric_name=metric,
            dimensions_map={"service": self.name},
            statistic=statistic,
            period=period,
            label=label,
        )


def _legacy_prefixes(names: Names) -> dict[str, str]:
    return {"BERTH_LEGACY_STACK_PREFIXES": ",".join(names.legacy_prefixes)} if names.legacy_prefixes else {}
