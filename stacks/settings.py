"""The settings of a deployment, read once from the CDK's context."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import Enum
from pathlib import Path
from typing import TypeVar

from constructs import Node

from orchestrator.api.rollout_models import MAX_CONCURRENCY
from orchestrator.common.errors import BerthError, InvalidName, InvalidTenantId
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.tiers import POOLED, STANDARD, TIER_PATTERN
from orchestrator.events.api_keys import ENVIRONMENT_PATTERN
from orchestrator.releases.states import PromotionMode
from orchestrator.tenants.names import DEFAULT_NAME, Names
from stacks.common.function_code import is_current
from stacks.project import CODE, LAYER

_TOPIC_ARN = re.compile(r"arn:[a-z-]+:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,256}")
_KEY_ARN = re.compile(
    r"arn:[a-z-]+:kms:(?P<region>[a-z0-9-]+):(?P<account>[0-9]{12}):key/"
    r"([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|mrk-[0-9a-f]{32})"
)
_URL_PREFIX = re.compile(r"https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?/([!-~]*/)?")
_MAIL_ADDRESS = re.compile(r"[A-Za-z0-9._+-]{1,64}@[a-z0-9-]+(\.[a-z0-9-]+)+")
_MIN_DELIVER_CONCURRENCY = 4
# The retentions that CloudWatch Logs allows, up to ten years.
_LOG_RETENTION_DAYS = frozenset(
    (1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653)
)

_PREFIX = "berth:"
NAME = "berth:name"
EVENTS = "berth:events"
LEGACY_STACK_PREFIXES = "berth:legacyStackPrefixes"
_MAX_LEGACY_PREFIXES = 5
"""Every prefix makes every policy longer, and IAM limits the size of policies."""
KNOWN = frozenset(
    {
        "berth:alarmTopicArn",
        "berth:apiProofGeneration",
        "berth:awaitReviewSeconds",
        "berth:awaitStackSeconds",
        "berth:createOnGetQueue",
        "berth:createsPerMinute",
        "berth:credentialsSeconds",
        "berth:dashboard",
        "berth:defaultTier",
        "berth:deliverConcurrency",
        "berth:dependencies",
        "berth:deploymentMode",
        "berth:emptyForSeconds",
        EVENTS,
        "berth:eventsEnvironment",
        "berth:eventsMailFrom",
        "berth:formerKmsKeyArns",
        "berth:getQueueConcurrency",
        "berth:ingestConcurrency",
        "berth:kmsKeyArn",
        "berth:legacyStackPrefixes",
        "berth:lingerSeconds",
        "berth:logRetentionDays",
        "berth:loopbackDestinations",
        "berth:maxTenants",
        "berth:name",
        "berth:operatorsTenant",
        "berth:pooledQueues",
        "berth:promotion",
        "berth:purgeSettleSeconds",
        "berth:receiveConcurrency",
        "berth:responseUrlPrefix",
        "berth:rolloutConcurrency",
        "berth:rolloutOnPublish",
        "berth:stackEvents",
        "berth:stackPolicyArns",
        "berth:stackRoleSource",
        "berth:tenantEventsConcurrency",
        "berth:tenantMetadataConcurrency",
        "berth:tracing",
        "berth:warmPool",
    }
)
"""All settings. Those that README.md does not list are for the emulator."""
_POLICY_ARN = re.compile(r"arn:[a-z-]+:iam::(?P<account>aws|[0-9]{12}):policy/[A-Za-z0-9+=,.@_/-]{1,512}", re.ASCII)
_MAX_STACK_POLICIES = 5
"""IAM attaches up to 10 managed policies to a role."""
_MAX_FORMER_KEYS = 5
"""Every key makes the policy of every session longer, and STS limits the size of that policy."""
MAX_GENERATIONS = 999_999_999
MAX_TENANTS_LIMIT = 1_000_000
MAX_POOLED_QUEUES = 20
"""The addresses of all of them are in one environment variable, and Lambda limits the size of all variables."""
MAX_WARM_POOL = 100
"""One row lists the stacks that are kept ready, and it must not grow large."""


class SettingInvalid(BerthError):
    """A setting in the CDK context is invalid. The message names it and says what would be valid."""


class Dependencies(Enum):
    """Where the functions find the packages that they import."""

    LAYER = "layer"
    """In a Lambda layer, built beforehand by ``python -m stacks.build``."""
    HOST = "host"
    """In the interpreter that runs them: the local emulator's own environment."""


class Tracing(Enum):
    """Which calls of the functions X-Ray records. Executions of the machines are always recorded, by X-Ray's rules."""

    PASSIVE = "passthrough"
    """Those of an execution, and of callers that ask for it. X-Ray costs more than all else of a call."""
    ACTIVE = "active"
    """Lambda also chooses calls itself: one per second and function, and 5 % of the others. That rate is fixed."""


class DeploymentMode(Enum):
    """The mode in which CloudFormation deploys a tenant's stack."""

    EXPRESS = "EXPRESS"
    STANDARD = "STANDARD"


@dataclass(frozen=True)
class Settings:
    names: Names = field(default_factory=Names)
    """The name of the control plane, and the prefixes of an earlier system's stacks. An account and region can have
    several control planes, each under its own name."""
    await_stack_seconds: int = 60
    """How long an operation waits for CloudFormation's event before it asks CloudFormation."""
    stack_events: bool = True
    """Whether CloudFormation sends events about tenants' stacks. An emulator may send none."""
    await_review_seconds: int = 3
    """How long an update waits for its change set before it asks for it."""
    dependencies: Dependencies = Dependencies.LAYER
    deployment_mode: DeploymentMode = DeploymentMode.EXPRESS
    alarm_topic_arn: str | None = None
    """The SNS topic that alarms notify. Without it, alarms are only visible in CloudWatch."""
    dashboard: bool = False
    """Whether each stack has a dashboard, which costs as much as 30 alarms."""
    kms_key_arn: str | None = None
    """The customer's own key for table, bucket, queues and logs. Without it, keys of AWS are used."""
    former_kms_key_arns: tuple[str, ...] = ()
    """Previous keys. The queues of tenants that were not updated since are still encrypted with them."""
    log_retention_days: int = 90
    tracing: Tracing = Tracing.PASSIVE
    get_queue_concurrency: int | None = None
    """Concurrency reserved for getQueue, which is also its limit: many calls cannot block the machines' functions."""
    tenant_metadata_concurrency: int | None = None
    """Concurrency reserved for the custom resource in tenants' stacks. The stacks fail if no function is free."""
    credentials_seconds: int | None = None
    """How long temporary credentials for a queue last. Without it, getQueue issues none."""
    rollout_concurrency: int = 50
    """The maximum number of tenants that a rollout moves at once, even if an operator asks for more."""
    linger_seconds: int = 60
    """How long a function may keep running after its execution was aborted or timed out."""
    empty_for_seconds: int = 60
    """How long a tenant's queues must look empty before a delete believes it: SQS's counts are late by about as much.
    """
    purge_settle_seconds: int = 900
    """How long nothing of a deleted tenant must have been found before the purge of its events is finished: longer than
    any function runs.
    """
    promotion: PromotionMode = PromotionMode.ON_DEPLOY
    """When a release becomes current for new tenants: when it is deployed, or after a rollout that succeeded."""
    default_tier: str = STANDARD
    """The tier in which tenants are created if nobody names one."""
    pooled_queues: int = 0
    """The number of queues that tenants of the tier pooled share. Without any, there is no such tier."""
    rollout_on_publish: bool = False
    """Whether a deployment starts a rollout of the release that it published."""
    api_proof_generation: int = 1
    """Another number makes the deployment replace the secret by which API Gateway proves itself to the functions."""
    max_tenants: int = 1_900
    """The maximum number of tenants. The default quota of CloudFormation is 2,000 stacks per account and region.

    ``make deploy`` reads the quota, and sets this unless it is already set.
    """
    creates_per_minute: int = 60
    """How many creates each caller of getQueue may start per minute; 0 for no limit."""
    warm_pool: int = 0
    """How many stacks are kept ready for new tenants."""
    create_on_get_queue: bool = True
    """Whether asking for the queue of an unknown tenant creates the tenant."""

    events: bool = True
    """Whether the event plane is deployed beside the control plane."""
    events_environment: str = "live"
    """The environment that is part of every API key: ``bk_live_...``."""
    ingest_concurrency: int | None = None
    """Concurrency reserved for the function that takes tenants' events, which is also its limit."""
    receive_concurrency: int | None = None
    """The same for the function that takes webhooks and forms: everybody can call it."""
    tenant_events_concurrency: int | None = None
    """The same for the function by which tenants read their events."""
    deliver_concurrency: int | None = None
    """The same for the function that delivers events, shared by its two queues."""
    events_mail_from: str | None = None
    """The address that mail with events comes from, verified in SES. Without it, no connection can send mail."""
    loopback_destinations: bool = False
    """Whether webhooks may be sent to receivers on the machine of the emulator, without TLS."""

    operators_tenant: TenantId | None = None
    """The operators' own tenant, which receives Berth's own events like any other events. Without it, they are only on
    the bus."""

    stack_role_source: bool = False
    """Whether the tenants' service role requires CloudFormation to send the stack for which it assumes the role."""
    stack_policy_arns: tuple[str, ...] = ()
    """Managed policies with which CloudFormation may create resources besides queues in tenants' stacks. Operators who
    publish templates of their own name them."""

    response_url_prefix: str | None = None
    """The prefix of an emulator's response URLs for custom resources. Those of AWS are known."""

    @classmethod
    def from_context(
        cls, context: Node, layer: Path = LAYER, code: Path = CODE, environment: Mapping[str, str] = os.environ
    ) -> Settings:
        """Read all settings. The CDK sets the target account and region in ``environment``."""
        check_all_are_known(context.get_all_context())
        settings = cls(
            names=name_in(context),
            await_stack_seconds=_seconds(context, "berth:awaitStackSeconds", cls.await_stack_seconds),
            stack_events=_flag(context, "berth:stackEvents", default=cls.stack_events),
            await_review_seconds=_seconds(context, "berth:awaitReviewSeconds", cls.await_review_seconds),
            dependencies=_choice(context, "berth:dependencies", Dependencies.LAYER),
            deployment_mode=_choice(context, "berth:deploymentMode", DeploymentMode.EXPRESS),
            alarm_topic_arn=_topic_arn(context, "berth:alarmTopicArn"),
            dashboard=_flag(context, "berth:dashboard", default=cls.dashboard),
            kms_key_arn=_key_arn(context, "berth:kmsKeyArn", environment),
            former_kms_key_arns=_key_arns(context, "berth:formerKmsKeyArns", environment),
            tracing=_choice(context, "berth:tracing", Tracing.PASSIVE),
            log_retention_days=_retention(context, "berth:logRetentionDays", cls.log_retention_days),
            get_queue_concurrency=_concurrency(context, "berth:getQueueConcurrency"),
            tenant_metadata_concurrency=_concurrency(context, "berth:tenantMetadataConcurrency"),
            credentials_seconds=_credentials(context, "berth:credentialsSeconds"),
            rollout_concurrency=_at_once(context, "berth:rolloutConcurrency", cls.rollout_concurrency),
            # Events of ended executions are delayed in a queue for a little longer than this. SQS allows 15 minutes.
            linger_seconds=_seconds(context, "berth:lingerSeconds", cls.linger_seconds, at_most=300),
            empty_for_seconds=_seconds(context, "berth:emptyForSeconds", cls.empty_for_seconds, at_most=300),
            purge_settle_seconds=_seconds(context, "berth:purgeSettleSeconds", cls.purge_settle_seconds, at_most=1200),
            events=_flag(context, EVENTS, default=cls.events),
            events_environment=_events_environment(context, "berth:eventsEnvironment", cls.events_environment),
            ingest_concurrency=_concurrency(context, "berth:ingestConcurrency"),
            receive_concurrency=_concurrency(context, "berth:receiveConcurrency"),
            tenant_events_concurrency=_concurrency(context, "berth:tenantEventsConcurrency"),
            operators_tenant=_tenant(context, "berth:operatorsTenant"),
            deliver_concurrency=_deliver_concurrency(context, "berth:deliverConcurrency"),
            events_mail_from=_mail_address(context, "berth:eventsMailFrom"),
            loopback_destinations=_flag(context, "berth:loopbackDestinations", default=cls.loopback_destinations),
            stack_role_source=_flag(context, "berth:stackRoleSource", default=cls.stack_role_source),
            stack_policy_arns=_policy_arns(context, "berth:stackPolicyArns", environment),
            response_url_prefix=_url_prefix(context, "berth:responseUrlPrefix"),
            promotion=_choice(context, "berth:promotion", PromotionMode.ON_DEPLOY),
            default_tier=_tier(context, "berth:defaultTier", cls.default_tier),
            pooled_queues=_number(context, "berth:pooledQueues", cls.pooled_queues, at_most=MAX_POOLED_QUEUES),
            rollout_on_publish=_flag(context, "berth:rolloutOnPublish", default=cls.rollout_on_publish),
            api_proof_generation=_generation(context, "berth:apiProofGeneration", cls.api_proof_generation),
            max_tenants=_number(context, "berth:maxTenants", cls.max_tenants, at_least=1, at_most=MAX_TENANTS_LIMIT),
            # One row per caller lists the tenants that it created within the minute. The row must not grow large.
            creates_per_minute=_number(context, "berth:createsPerMinute", cls.creates_per_minute, at_most=600),
            warm_pool=_number(context, "berth:warmPool", cls.warm_pool, at_most=MAX_WARM_POOL),
            create_on_get_queue=_flag(context, "berth:createOnGetQueue", default=cls.create_on_get_queue),
        )
        if settings.default_tier == POOLED and not settings.pooled_queues:
            raise SettingInvalid(f"berth:defaultTier is {POOLED}, but there is no pool: set berth:pooledQueues, too.")
        if settings.dependencies is Dependencies.LAYER and not (layer.is_dir() and is_current(code)):
            raise SettingInvalid(
                "The functions are not built, or the code has changed since: run `python -m stacks.build` first (`make "
                "deploy` does that). For the emulator, set berth:dependencies=host instead."
            )
        return settings

    @property
    def destination_environment(self) -> dict[str, str]:
        """The variables of a function that checks or uses the destinations of connections."""
        mail = {"BERTH_EVENTS_MAIL_FROM": self.events_mail_from} if self.events_mail_from else {}
        return mail | ({"BERTH_LOOPBACK_DESTINATIONS": "true"} if self.loopback_destinations else {})


def check_all_are_known(keys: Iterable[str]) -> None:
    """Refuse unknown settings: a misspelt setting would otherwise be ignored silently.

    Keys of other tools have a prefix of their own, so a key without one is a setting of Berth without its prefix.
    """
    for key in keys:
        if key in KNOWN or not (key.startswith(_PREFIX) or _PREFIX + key in KNOWN):
            continue
        similar = get_close_matches(_PREFIX + key.removeprefix(_PREFIX), KNOWN, n=1)
        raise SettingInvalid(
            f"There is no setting {key}.{f' Did you mean {similar[0]}?' if similar else ''} README.md lists all "
            "settings."
        )


def name_in(context: Node) -> Names:
    names = parse_name(context.try_get_context(NAME))
    prefixes = _texts(context, LEGACY_STACK_PREFIXES, at_most=_MAX_LEGACY_PREFIXES)
    try:
        return Names.parse(names.control_plane, prefixes)
    except InvalidName as invalid:
        raise SettingInvalid(f"{LEGACY_STACK_PREFIXES}: {invalid}") from None


def parse_name(value: object) -> Names:
    try:
        names = Names.parse(DEFAULT_NAME if value is None else value)
    except InvalidName as invalid:
        raise SettingInvalid(f"{NAME}: {invalid}") from None
    # Functions and commands accept such a name: a control plane may have got it before there was an event plane.
    if neighbour := names.is_event_plane_of:
        raise SettingInvalid(
            f"{NAME}: {names} is the name of the stack that the event plane of a control plane {neighbour} has. Who "
            f"deploys {neighbour} would overwrite this control plane. Choose a name that does not end with Events."
        )
    return names


def _texts(context: Node, key: str, *, at_most: int) -> list[str]:
    """A setting with several values: a list in cdk.json, separated by commas on the command line."""
    value = context.try_get_context(key)
    texts = value.split(",") if isinstance(value, str) else value or []
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts) or len(texts) > at_most:
        raise SettingInvalid(f"{key} is {value!r}; it must be at most {at_most} values, separated by commas.")
    return [text.strip() for text in texts if text.strip()]


def _integer(context: Node, key: str, default: int) -> int:
    # On the command line every value is a string; in cdk.json it may be a number.
    value = context.try_get_context(key)
    if value is None:
        return default
    try:
        return int(str(value))
    except ValueError:
        raise SettingInvalid(f"{key} is {value!r}; it must be a whole number.") from None


def _seconds(context: Node, key: str, default: int, *, at_most: int = 3600) -> int:
    seconds = _integer(context, key, default)
    if not 1 <= seconds <= at_most:
        raise SettingInvalid(f"{key} is {seconds}; it must be 1 to {at_most} seconds.")
    return seconds


def _number(context: Node, key: str, default: int, *, at_least: int = 0, at_most: int) -> int:
    number = _integer(context, key, default)
    if not at_least <= number <= at_most:
        raise SettingInvalid(f"{key} is {number}; it must be {at_least} to {at_most}.")
    return number


def _concurrency(context: Node, key: str) -> int | None:
    # Here zero means "not set". To Lambda it would mean "never run".
    concurrency = _integer(context, key, 0)
    if concurrency < 0:
        raise SettingInvalid(
            f"{key} is {concurrency}; it must be a whole number, and not negative (0: none is reserved)."
        )
    return concurrency or None


def _deliver_concurrency(context: Node, key: str) -> int | None:
    concurrency = _concurrency(context, key)
    # Each of the two queues needs two, the minimum of Lambda.
    if concurrency is not None and concurrency < _MIN_DELIVER_CONCURRENCY:
        raise SettingInvalid(
            f"{key} is {concurrency}; it must be at least {_MIN_DELIVER_CONCURRENCY}, or 0 (none is reserved)."
        )
    return concurrency


def _credentials(context: Node, key: str) -> int | None:
    # A session of STS lasts at least 15 minutes, and at most one hour if the caller is itself an assumed role.
    seconds = _integer(context, key, 0)
    if seconds and not 900 <= seconds <= 3600:
        raise SettingInvalid(f"{key} is {seconds}; it must be 900 to 3600 seconds, or 0 for no credentials.")
    return seconds or None


def _at_once(context: Node, key: str, default: int) -> int:
    at_once = _integer(context, key, default)
    if not 1 <= at_once <= MAX_CONCURRENCY:
        raise SettingInvalid(f"{key} is {at_once}; it must be 1 to {MAX_CONCURRENCY} tenants.")
    return at_once


def _generation(context: Node, key: str, default: int) -> int:
    generation = _integer(context, key, default)
    if not 1 <= generation <= MAX_GENERATIONS:
        raise SettingInvalid(f"{key} is {generation}; it must be 1 to {MAX_GENERATIONS}.")
    return generation


def _flag(context: Node, key: str, *, default: bool) -> bool:
    value = context.try_get_context(key)
    if value is None:
        return default
    if isinstance(value, bool):
        return value
    if value not in ("true", "false"):
        raise SettingInvalid(f"{key} is {value!r}; it must be true or false.")
    return bool(value == "true")


def _events_environment(context: Node, key: str, default: str) -> str:
    value = context.try_get_context(key)
    if value is None:
        return default
    if not isinstance(value, str) or not re.fullmatch(ENVIRONMENT_PATTERN, value):
        raise SettingInvalid(f"{key} is {value!r}; it must be 1 to 16 lower-case letters, such as live or test.")
    return value


def _tenant(context: Node, key: str) -> TenantId | None:
    value = context.try_get_context(key)
    if value is None or value == "":
        return None
    try:
        return TenantId.parse(value)
    except InvalidTenantId as invalid:
        raise SettingInvalid(f"{key}: {invalid}") from None


def _tier(context: Node, key: str, default: str) -> str:
    value = context.try_get_context(key)
    if value is None:
        return default
    if not isinstance(value, str) or not re.fullmatch(TIER_PATTERN, value):
        raise SettingInvalid(
            f"{key} is {value!r}; it must be the name of a tier: a lower-case letter, and then up to 23 lower-case "
            "letters, digits and dashes."
        )
    return value


def _retention(context: Node, key: str, default: int) -> int:
    days = _integer(context, key, default)
    if days not in _LOG_RETENTION_DAYS:
        allowed = ", ".join(map(str, sorted(_LOG_RETENTION_DAYS)))
        raise SettingInvalid(f"{key} is {days}; CloudWatch Logs keeps logs for one of {allowed} days.")
    return days


Choice = TypeVar("Choice", bound=Enum)


def _choice(context: Node, key: str, default: Choice) -> Choice:
    value = context.try_get_context(key)
    if value is None:
        return default
    try:
        return type(default)(value)
    except ValueError:
        allowed = " or ".join(choice.value for choice in type(default))
        raise SettingInvalid(f"{key} is {value!r}; it must be {allowed}.") from None


def _policy_arns(context: Node, key: str, environment: Mapping[str, str]) -> tuple[str, ...]:
    values = _texts(context, key, at_most=_MAX_STACK_POLICIES)
    for value in values:
        match = _POLICY_ARN.fullmatch(value)
        account = environment.get("CDK_DEFAULT_ACCOUNT")
        if match is None or (account and match["account"] not in ("aws", account)):
            raise SettingInvalid(
                f"{key} has {value!r}; it must be the ARN of a managed policy of AWS or of the target account, like "
                f"arn:aws:iam::{account or '111122223333'}:policy/tenants."
            )
    return tuple(dict.fromkeys(values))


def _url_prefix(context: Node, key: str) -> str | None:
    value = context.try_get_context(key)
    if value is None:
        return None
    # The slash after the host is required: otherwise the name of another host could start with the prefix.
    if not isinstance(value, str) or not _URL_PREFIX.fullmatch(value):
        raise SettingInvalid(f"{key} is {value!r}; it must be a URL with a host and a path that ends with a slash.")
    return value


def _mail_address(context: Node, key: str) -> str | None:
    value = context.try_get_context(key)
    if value is None:
        return None
    if not isinstance(value, str) or not _MAIL_ADDRESS.fullmatch(value):
        raise SettingInvalid(
            f"{key} is {value!r}; it must be a mail address that is verified in SES, or whose domain is."
        )
    return value


def _topic_arn(context: Node, key: str) -> str | None:
    value = context.try_get_context(key)
    if value is None:
        return None
    if not isinstance(value, str) or not _TOPIC_ARN.fullmatch(value):
        raise SettingInvalid(f"{key} is {value!r}; it must be the ARN of an SNS topic.")
    return value


def _key_arn(context: Node, key: str, environment: Mapping[str, str]) -> str | None:
    value = context.try_get_context(key)
    return None if value is None else _checked_key_arn(value, key, environment)


def _key_arns(context: Node, key: str, environment: Mapping[str, str]) -> tuple[str, ...]:
    values = _texts(context, key, at_most=_MAX_FORMER_KEYS)
    return tuple(_checked_key_arn(value, key, environment) for value in values)


def _checked_key_arn(value: object, key: str, environment: Mapping[str, str]) -> str:
    match = _KEY_ARN.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise SettingInvalid(f"{key} is {value!r}; it must be the ARN of a KMS key, not of an alias.")
    # The CDK leaves these out if it does not know its target yet.
    region = environment.get("CDK_DEFAULT_REGION") or match["region"]
    account = environment.get("CDK_DEFAULT_ACCOUNT") or match["account"]
    if (match["region"], match["account"]) != (region, account):
        raise SettingInvalid(
            f"{key} is {value!r}; it must be a key of the target account and region: {account}, {region}."
        )
    return str(value)
