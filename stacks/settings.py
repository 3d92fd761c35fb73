"""What may differ between two deployments of the same version: read once, from the CDK's context."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import Enum
from pathlib import Path
from typing import TypeVar

from constructs import Node

from orchestrator.api.rollout_routes import MAX_CONCURRENCY
from orchestrator.common.errors import BerthError, InvalidName
from orchestrator.tenants.names import DEFAULT_NAME, Names
from stacks.common.function_code import is_current
from stacks.project import CODE, LAYER

_TOPIC_ARN = re.compile(r"arn:[a-z-]+:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,256}")
_KEY_ARN = re.compile(
    r"arn:[a-z-]+:kms:(?P<region>[a-z0-9-]+):(?P<account>[0-9]{12}):key/"
    r"([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|mrk-[0-9a-f]{32})"
)
_URL_PREFIX = re.compile(r"https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?/([!-~]*/)?")
# The only retentions CloudWatch Logs knows, up to ten years.
_LOG_RETENTION_DAYS = frozenset(
    (1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653)
)

_OURS = "berth:"
NAME = "berth:name"
LEGACY_STACK_PREFIXES = "berth:legacyStackPrefixes"
_MAX_LEGACY_PREFIXES = 5
"""Every prefix makes every policy longer, and IAM bounds those."""
KNOWN = frozenset(
    {
        "berth:alarmTopicArn",
        "berth:apiProofGeneration",
        "berth:awaitReviewSeconds",
        "berth:awaitStackSeconds",
        "berth:createOnGetQueue",
        "berth:createsPerMinute",
        "berth:credentialsSeconds",
        "berth:dependencies",
        "berth:deploymentMode",
        "berth:emptyForSeconds",
        "berth:formerKmsKeyArns",
        "berth:getQueueConcurrency",
        "berth:kmsKeyArn",
        "berth:legacyStackPrefixes",
        "berth:lingerSeconds",
        "berth:logRetentionDays",
        "berth:maxTenants",
        "berth:name",
        "berth:responseUrlPrefix",
        "berth:rolloutConcurrency",
        "berth:rolloutOnPublish",
        "berth:stackRoleSource",
        "berth:tenantMetadataConcurrency",
    }
)
"""All there are. Those that README.md does not list are for the emulator."""
_MAX_FORMER_KEYS = 5
"""Every key makes the policy of every session longer, and STS bounds that."""
MOST_GENERATIONS = 999_999_999
MAX_TENANTS_AT_MOST = 1_000_000


class SettingInvalid(BerthError):
    """A setting in the CDK context cannot be used; the message says which, and what would do."""


class Dependencies(Enum):
    """Where the functions find the packages they import."""

    LAYER = "layer"
    """In a Lambda layer, built beforehand by ``python -m stacks.build``."""
    HOST = "host"
    """In the interpreter that runs them: the local emulator's own environment."""


class DeploymentMode(Enum):
    """How CloudFormation brings about a tenant's stack."""

    EXPRESS = "EXPRESS"
    STANDARD = "STANDARD"


@dataclass(frozen=True)
class Settings:
    names: Names = field(default_factory=Names)
    """What the control plane is called, and how the names of an earlier system's stacks begin. Several control planes
    can be in one account and region, each by its own name."""
    await_stack_seconds: int = 60
    """How long AwaitStack waits for CloudFormation's event before it looks itself."""
    await_review_seconds: int = 3
    """How long an update waits for CloudFormation to draw up what would change, before it looks."""
    dependencies: Dependencies = Dependencies.LAYER
    deployment_mode: DeploymentMode = DeploymentMode.EXPRESS
    alarm_topic_arn: str | None = None
    """The SNS topic that alarms notify; without it they only change colour."""
    kms_key_arn: str | None = None
    """The customer's own key, for table, bucket, queues and logs; without it, AWS's keys are used."""
    former_kms_key_arns: tuple[str, ...] = ()
    """Keys from before this one. Queues of tenants that have not been updated since are encrypted with them."""
    log_retention_days: int = 90
    get_queue_concurrency: int | None = None
    """Reserved for getQueue and its upper bound, so that a storm of calls cannot starve the machines' functions."""
    tenant_metadata_concurrency: int | None = None
    """Reserved for the custom resource in tenants' stacks: without a function free for it, they fail."""
    credentials_seconds: int | None = None
    """How long temporary credentials for a queue are good for; without it, getQueue gives none."""
    rollout_concurrency: int = 50
    """How many tenants a rollout moves at once at most, whatever is asked for."""
    linger_seconds: int = 60
    """For how long a function may still be at work after its execution was aborted or timed out."""
    empty_for_seconds: int = 60
    """For how long a tenant's queues have to look empty before a delete believes it: as long as SQS takes to count."""
    rollout_on_publish: bool = False
    """Whether a deployment ends by moving every tenant to the release that it has published."""
    api_proof_generation: int = 1
    """Another number has the deployment make anew what API Gateway proves itself with."""
    max_tenants: int = 1_900
    """How many tenants may be created. CloudFormation lets an account have 2,000 stacks unless that quota is raised.

    ``make deploy`` asks for the quota, and sets this where nobody has.
    """
    creates_per_minute: int = 60
    """How many creates each caller of getQueue may start per minute; 0 for as many as it likes."""
    create_on_get_queue: bool = True
    """Whether asking for the queue of a tenant that is not there creates the tenant."""

    stack_role_source: bool = False
    """Whether CloudFormation has to say which stack it takes on the tenants' service role for."""

    response_url_prefix: str | None = None
    """How the addresses begin at which an emulator's CloudFormation takes answers; on AWS they are known."""

    @classmethod
    def from_context(
        cls, context: Node, layer: Path = LAYER, code: Path = CODE, environment: Mapping[str, str] = os.environ
    ) -> Settings:
        """``environment`` is where the CDK says which account and region it is about to deploy to."""
        _check_all_are_known(context)
        settings = cls(
            names=name_in(context),
            await_stack_seconds=_seconds(context, "berth:awaitStackSeconds", cls.await_stack_seconds),
            await_review_seconds=_seconds(context, "berth:awaitReviewSeconds", cls.await_review_seconds),
            dependencies=_choice(context, "berth:dependencies", Dependencies.LAYER),
            deployment_mode=_choice(context, "berth:deploymentMode", DeploymentMode.EXPRESS),
            alarm_topic_arn=_topic_arn(context, "berth:alarmTopicArn"),
            kms_key_arn=_key_arn(context, "berth:kmsKeyArn", environment),
            former_kms_key_arns=_key_arns(context, "berth:formerKmsKeyArns", environment),
            log_retention_days=_retention(context, "berth:logRetentionDays", cls.log_retention_days),
            get_queue_concurrency=_concurrency(context, "berth:getQueueConcurrency"),
            tenant_metadata_concurrency=_concurrency(context, "berth:tenantMetadataConcurrency"),
            credentials_seconds=_credentials(context, "berth:credentialsSeconds"),
            rollout_concurrency=_at_once(context, "berth:rolloutConcurrency", cls.rollout_concurrency),
            # What ended waits as long in a queue, and a little longer: SQS holds a message back for 15 minutes at most.
            linger_seconds=_seconds(context, "berth:lingerSeconds", cls.linger_seconds, at_most=300),
            empty_for_seconds=_seconds(context, "berth:emptyForSeconds", cls.empty_for_seconds, at_most=300),
            stack_role_source=_flag(context, "berth:stackRoleSource", default=cls.stack_role_source),
            response_url_prefix=_url_prefix(context, "berth:responseUrlPrefix"),
            rollout_on_publish=_flag(context, "berth:rolloutOnPublish", default=cls.rollout_on_publish),
            api_proof_generation=_generation(context, "berth:apiProofGeneration", cls.api_proof_generation),
            max_tenants=_number(context, "berth:maxTenants", cls.max_tenants, at_least=1, at_most=MAX_TENANTS_AT_MOST),
            # The tenants are kept in one row per caller, which must not grow large.
            creates_per_minute=_number(context, "berth:createsPerMinute", cls.creates_per_minute, at_most=600),
            create_on_get_queue=_flag(context, "berth:createOnGetQueue", default=cls.create_on_get_queue),
        )
        if settings.dependencies is Dependencies.LAYER and not (layer.is_dir() and is_current(code)):
            raise SettingInvalid(
                "The functions are not built, or were built from other code: run `python -m stacks.build` first (`make "
                "deploy` does), or set berth:dependencies=host where they run in an interpreter that has all they need."
            )
        return settings


def _check_all_are_known(context: Node) -> None:
    """A setting that is misspelt would be left out without a word."""
    for key in context.get_all_context():
        if key.startswith(_OURS) and key not in KNOWN:
            meant = get_close_matches(key, KNOWN, n=1)
            raise SettingInvalid(
                f"There is no setting {key}.{f' Did you mean {meant[0]}?' if meant else ''} README.md lists them all."
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
        return Names.parse(DEFAULT_NAME if value is None else value)
    except InvalidName as invalid:
        raise SettingInvalid(f"{NAME}: {invalid}") from None


def _texts(context: Node, key: str, *, at_most: int) -> list[str]:
    """Several values: a list in cdk.json, separated by commas on the command line."""
    value = context.try_get_context(key)
    texts = value.split(",") if isinstance(value, str) else value or []
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts) or len(texts) > at_most:
        raise SettingInvalid(f"{key} is {value!r}; it must be at most {at_most} texts, separated by commas.")
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
    # Zero means "not set", and would mean "never run" to Lambda.
    concurrency = _integer(context, key, 0)
    if concurrency < 0:
        raise SettingInvalid(f"{key} is {concurrency}; it must be a whole number above zero.")
    return concurrency or None


def _credentials(context: Node, key: str) -> int | None:
    # STS gives no session for less than 15 minutes, and a role that is taken on by another role none for more than 1 h.
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
    if not 1 <= generation <= MOST_GENERATIONS:
        raise SettingInvalid(f"{key} is {generation}; it must be 1 to {MOST_GENERATIONS}.")
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


def _url_prefix(context: Node, key: str) -> str | None:
    value = context.try_get_context(key)
    if value is None:
        return None
    # With the slash after the host: without it, another host could begin in the same way.
    if not isinstance(value, str) or not _URL_PREFIX.fullmatch(value):
        raise SettingInvalid(f"{key} is {value!r}; it must be a URL with a host and a path that ends with a slash.")
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
    # Where the CDK does not know yet where it deploys to, it does not say.
    region = environment.get("CDK_DEFAULT_REGION") or match["region"]
    account = environment.get("CDK_DEFAULT_ACCOUNT") or match["account"]
    if (match["region"], match["account"]) != (region, account):
        raise SettingInvalid(
            f"{key} is {value!r}; it must be a key of the account and region that are deployed to: {account}, {region}."
        )
    return str(value)
