"""The settings of a deployment, read once from the CDK's context."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import Enum
from pathlib import Path

from constructs import Node

from orchestrator.common.errors import InvalidName
from orchestrator.common.tiers import STANDARD
from orchestrator.releases.states import PromotionMode
from orchestrator.tenants.names import DEFAULT_NAME, Names
from stacks import setting_values as values
from stacks.common.function_code import is_current
from stacks.project import CODE, LAYER
from stacks.setting_values import SettingInvalid

_PREFIX = "berth:"
NAME = "berth:name"
EVENTS = "berth:events"
LEGACY_STACK_PREFIXES = "berth:legacyStackPrefixes"
_MAX_LEGACY_PREFIXES = 5
"""Every prefix makes every policy longer, and IAM limits the size of policies."""
KNOWN = frozenset(
    {
        "berth:adopterArn",
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
        "berth:promotion",
        "berth:purgeSettleSeconds",
        "berth:receiveConcurrency",
        "berth:responseUrlPrefix",
        "berth:retryAfterSeconds",
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
"""All settings. Those that docs/settings.md does not list are for the emulator."""
MAX_TENANTS_LIMIT = 1_000_000
MAX_WARM_POOL = 100
"""One row lists the stacks that are kept ready, and it must not grow large."""


class Dependencies(Enum):
    """Where the functions find the packages that they import."""

    LAYER = "layer"
    """The packages are in a Lambda layer, built beforehand by ``python -m stacks.build``."""
    HOST = "host"
    """The packages are in the interpreter that runs the functions: the local emulator's own environment."""


class Tracing(Enum):
    """Which calls of the functions X-Ray records. Executions of the machines are always recorded, by X-Ray's rules."""

    PASSIVE = "passthrough"
    """Calls of an execution, and of callers that ask for it, are recorded. X-Ray costs more than the rest of a call."""
    ACTIVE = "active"
    """Lambda also chooses calls to record: one per second and function, and 5 % of the others. That rate is fixed."""


@dataclass(frozen=True)
class Settings:
    names: Names = field(default_factory=Names)
    """The name of the control plane, and the prefixes of an earlier system's stacks. An account and region can have
    several control planes, each under its own name."""
    await_stack_seconds: int = 120
    """How long an operation waits for CloudFormation's event before it asks CloudFormation. A stack of a queue with its
    dead-letter queue takes about 64 seconds."""
    stack_events: bool = True
    """Whether CloudFormation sends events about tenants' stacks. An emulator may send none."""
    retry_after_seconds: int = 5
    """How long callers wait before they ask again for a queue that is being created."""
    await_review_seconds: int = 3
    """How long an update waits for its change set before it asks for it."""
    dependencies: Dependencies = Dependencies.LAYER
    adopter_arn: str | None = None
    """The role with which an operator runs `berth adopt`. Without it, that role must not write history."""
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
    warm_pool: Mapping[str, int] = field(default_factory=dict)
    """How many stacks are kept ready for new tenants, by tier."""
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
        default_tier = values.tier(context, "berth:defaultTier", cls.default_tier)
        settings = cls(
            names=name_in(context),
            await_stack_seconds=values.seconds(context, "berth:awaitStackSeconds", cls.await_stack_seconds),
            stack_events=values.flag(context, "berth:stackEvents", default=cls.stack_events),
            retry_after_seconds=values.seconds(context, "berth:retryAfterSeconds", cls.retry_after_seconds, at_most=60),
            await_review_seconds=values.seconds(context, "berth:awaitReviewSeconds", cls.await_review_seconds),
            dependencies=values.choice(context, "berth:dependencies", Dependencies.LAYER),
            adopter_arn=values.role_arn(context, "berth:adopterArn"),
            alarm_topic_arn=values.topic_arn(context, "berth:alarmTopicArn"),
            dashboard=values.flag(context, "berth:dashboard", default=cls.dashboard),
            kms_key_arn=values.key_arn(context, "berth:kmsKeyArn", environment),
            former_kms_key_arns=values.key_arns(context, "berth:formerKmsKeyArns", environment),
            tracing=values.choice(context, "berth:tracing", Tracing.PASSIVE),
            log_retention_days=values.retention(context, "berth:logRetentionDays", cls.log_retention_days),
            get_queue_concurrency=values.concurrency(context, "berth:getQueueConcurrency"),
            tenant_metadata_concurrency=values.concurrency(context, "berth:tenantMetadataConcurrency"),
            credentials_seconds=values.credentials(context, "berth:credentialsSeconds"),
            rollout_concurrency=values.at_once(context, "berth:rolloutConcurrency", cls.rollout_concurrency),
            # Events of ended executions are delayed in a queue for a little longer than this. SQS allows 15 minutes.
            linger_seconds=values.seconds(context, "berth:lingerSeconds", cls.linger_seconds, at_most=300),
            empty_for_seconds=values.seconds(context, "berth:emptyForSeconds", cls.empty_for_seconds, at_most=300),
            purge_settle_seconds=values.seconds(
                context, "berth:purgeSettleSeconds", cls.purge_settle_seconds, at_most=1200
            ),
            events=values.flag(context, EVENTS, default=cls.events),
            events_environment=values.events_environment(context, "berth:eventsEnvironment", cls.events_environment),
            ingest_concurrency=values.concurrency(context, "berth:ingestConcurrency"),
            receive_concurrency=values.concurrency(context, "berth:receiveConcurrency"),
            tenant_events_concurrency=values.concurrency(context, "berth:tenantEventsConcurrency"),
            deliver_concurrency=values.deliver_concurrency(context, "berth:deliverConcurrency"),
            events_mail_from=values.mail_address(context, "berth:eventsMailFrom"),
            loopback_destinations=values.flag(context, "berth:loopbackDestinations", default=cls.loopback_destinations),
            stack_role_source=values.flag(context, "berth:stackRoleSource", default=cls.stack_role_source),
            stack_policy_arns=values.policy_arns(context, "berth:stackPolicyArns", environment),
            response_url_prefix=values.url_prefix(context, "berth:responseUrlPrefix"),
            promotion=values.choice(context, "berth:promotion", PromotionMode.ON_DEPLOY),
            default_tier=default_tier,
            rollout_on_publish=values.flag(context, "berth:rolloutOnPublish", default=cls.rollout_on_publish),
            api_proof_generation=values.generation(context, "berth:apiProofGeneration", cls.api_proof_generation),
            max_tenants=values.number(
                context, "berth:maxTenants", cls.max_tenants, at_least=1, at_most=MAX_TENANTS_LIMIT
            ),
            # One row per caller lists the tenants that it created within the minute. The row must not grow large.
            creates_per_minute=values.number(context, "berth:createsPerMinute", cls.creates_per_minute, at_most=600),
            warm_pool=values.sizes(context, "berth:warmPool", default_tier, at_most=MAX_WARM_POOL),
            create_on_get_queue=values.flag(context, "berth:createOnGetQueue", default=cls.create_on_get_queue),
        )
        if settings.dependencies is Dependencies.LAYER and not (layer.is_dir() and is_current(code)):
            raise SettingInvalid(
                "The functions are not built, or the code has changed since: run `python -m stacks.build` first (`make "
                "deploy` does that). For the emulator, set berth:dependencies=host instead."
            )
        return settings

    @property
    def warm_pool_environment(self) -> dict[str, str]:
        """The variable of a function that knows the pool of stacks that are kept ready."""
        sizes = ",".join(f"{tier}={size}" for tier, size in sorted(self.warm_pool.items()))
        return {"BERTH_WARM_POOL": sizes} if sizes else {}

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
            f"There is no setting {key}.{f' Did you mean {similar[0]}?' if similar else ''} docs/settings.md lists "
            "all settings."
        )


def name_in(context: Node) -> Names:
    names = parse_name(context.try_get_context(NAME))
    prefixes = values.texts(context, LEGACY_STACK_PREFIXES, at_most=_MAX_LEGACY_PREFIXES)
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
