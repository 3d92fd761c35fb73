"""Reads single settings from the CDK's context, each with its checks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from typing import TypeVar

from constructs import Node

from orchestrator.api.rollout_models import MAX_CONCURRENCY
from orchestrator.common.errors import BerthError
from orchestrator.common.tiers import TIER_PATTERN
from orchestrator.events.api_keys import ENVIRONMENT_PATTERN

_TOPIC_ARN = re.compile(r"arn:[a-z-]+:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,256}")
_ROLE_ARN = re.compile(r"arn:[a-z-]+:iam::[0-9]{12}:(role|user)/[A-Za-z0-9+=,.@_/-]{1,512}")
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

_POLICY_ARN = re.compile(r"arn:[a-z-]+:iam::(?P<account>aws|[0-9]{12}):policy/[A-Za-z0-9+=,.@_/-]{1,512}", re.ASCII)
_MAX_STACK_POLICIES = 5
"""IAM attaches up to 10 managed policies to a role."""
_MAX_FORMER_KEYS = 5
"""Every key makes the policy of every session longer, and STS limits the size of that policy."""
MAX_GENERATIONS = 999_999_999


class SettingInvalid(BerthError):
    """A setting in the CDK context is invalid. The message names it and says what would be valid."""


def texts(context: Node, key: str, *, at_most: int) -> list[str]:
    """A setting with several values: a list in cdk.json, separated by commas on the command line."""
    value = context.try_get_context(key)
    texts = value.split(",") if isinstance(value, str) else value or []
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts) or len(texts) > at_most:
        raise SettingInvalid(f"{key} is {value!r}; it must be at most {at_most} values, separated by commas.")
    return [text.strip() for text in texts if text.strip()]


def integer(context: Node, key: str, default: int) -> int:
    # On the command line every value is a string; in cdk.json it may be a number.
    value = context.try_get_context(key)
    if value is None:
        return default
    try:
        return int(str(value))
    except ValueError:
        raise SettingInvalid(f"{key} is {value!r}; it must be a whole number.") from None


def seconds(context: Node, key: str, default: int, *, at_most: int = 3600) -> int:
    seconds = integer(context, key, default)
    if not 1 <= seconds <= at_most:
        raise SettingInvalid(f"{key} is {seconds}; it must be 1 to {at_most} seconds.")
    return seconds


def number(context: Node, key: str, default: int, *, at_least: int = 0, at_most: int) -> int:
    number = integer(context, key, default)
    if not at_least <= number <= at_most:
        raise SettingInvalid(f"{key} is {number}; it must be {at_least} to {at_most}.")
    return number


def concurrency(context: Node, key: str) -> int | None:
    # Here zero means "not set". To Lambda it would mean "never run".
    concurrency = integer(context, key, 0)
    if concurrency < 0:
        raise SettingInvalid(
            f"{key} is {concurrency}; it must be a whole number, and not negative (0: none is reserved)."
        )
    return concurrency or None


def deliver_concurrency(context: Node, key: str) -> int | None:
    reserved = concurrency(context, key)
    # Each of the two queues needs two, the minimum of Lambda.
    if reserved is not None and reserved < _MIN_DELIVER_CONCURRENCY:
        raise SettingInvalid(
            f"{key} is {reserved}; it must be at least {_MIN_DELIVER_CONCURRENCY}, or 0 (none is reserved)."
        )
    return reserved


def credentials(context: Node, key: str) -> int | None:
    # A session of STS lasts at least 15 minutes, and at most one hour if the caller is itself an assumed role.
    seconds = integer(context, key, 0)
    if seconds and not 900 <= seconds <= 3600:
        raise SettingInvalid(f"{key} is {seconds}; it must be 900 to 3600 seconds, or 0 for no credentials.")
    return seconds or None


def at_once(context: Node, key: str, default: int) -> int:
    at_once = integer(context, key, default)
    if not 1 <= at_once <= MAX_CONCURRENCY:
        raise SettingInvalid(f"{key} is {at_once}; it must be 1 to {MAX_CONCURRENCY} tenants.")
    return at_once


def generation(context: Node, key: str, default: int) -> int:
    generation = integer(context, key, default)
    if not 1 <= generation <= MAX_GENERATIONS:
        raise SettingInvalid(f"{key} is {generation}; it must be 1 to {MAX_GENERATIONS}.")
    return generation


def flag(context: Node, key: str, *, default: bool) -> bool:
    value = context.try_get_context(key)
    if value is None:
        return default
    if isinstance(value, bool):
        return value
    if value not in ("true", "false"):
        raise SettingInvalid(f"{key} is {value!r}; it must be true or false.")
    return bool(value == "true")


def events_environment(context: Node, key: str, default: str) -> str:
    value = context.try_get_context(key)
    if value is None:
        return default
    if not isinstance(value, str) or not re.fullmatch(ENVIRONMENT_PATTERN, value):
        raise SettingInvalid(f"{key} is {value!r}; it must be 1 to 16 lower-case letters, such as live or test.")
    return value


def tier(context: Node, key: str, default: str) -> str:
    value = context.try_get_context(key)
    if value is None:
        return default
    if not isinstance(value, str) or not re.fullmatch(TIER_PATTERN, value):
        raise SettingInvalid(
            f"{key} is {value!r}; it must be the name of a tier: a lower-case letter, and then up to 23 lower-case "
            "letters, digits and dashes."
        )
    return value


def sizes(context: Node, key: str, default_tier: str, *, at_most: int) -> dict[str, int]:
    """Numbers by tier: ``gold=2,standard=5``, or an object in cdk.json. A number alone is for the default tier."""
    value = context.try_get_context(key)
    given = _pairs(value, default_tier)
    if given is None or not all(re.fullmatch(TIER_PATTERN, tier) for tier in given):
        raise SettingInvalid(
            f"{key} is {value!r}; it must be a number of stacks, or numbers by tier, like standard=5,gold=2."
        )
    if sum(given.values()) > at_most:
        raise SettingInvalid(f"{key} is {value!r}; it must be at most {at_most} stacks in all tiers together.")
    return {tier: size for tier, size in given.items() if size}


def _pairs(value: object, default_tier: str) -> dict[str, int] | None:
    """``None`` if the value has another form, a number that is not whole or is negative, or names a tier twice."""
    if isinstance(value, Mapping):
        pairs = [(str(tier), str(size)) for tier, size in value.items()]
    else:
        texts = str("" if value is None else value).split(",")
        split = [text.strip().rpartition("=") for text in texts if text.strip()]
        pairs = [(tier.strip() if equals else default_tier, size) for tier, equals, size in split]
    if len(dict(pairs)) < len(pairs) or not all(re.fullmatch(r"\s*[0-9]{1,9}\s*", size, re.ASCII) for _, size in pairs):
        return None
    return {tier: int(size) for tier, size in pairs}


def retention(context: Node, key: str, default: int) -> int:
    days = integer(context, key, default)
    if days not in _LOG_RETENTION_DAYS:
        allowed = ", ".join(map(str, sorted(_LOG_RETENTION_DAYS)))
        raise SettingInvalid(f"{key} is {days}; CloudWatch Logs keeps logs for one of {allowed} days.")
    return days


Choice = TypeVar("Choice", bound=Enum)


def choice(context: Node, key: str, default: Choice) -> Choice:
    value = context.try_get_context(key)
    if value is None:
        return default
    try:
        return type(default)(value)
    except ValueError:
        allowed = " or ".join(choice.value for choice in type(default))
        raise SettingInvalid(f"{key} is {value!r}; it must be {allowed}.") from None


def policy_arns(context: Node, key: str, environment: Mapping[str, str]) -> tuple[str, ...]:
    values = texts(context, key, at_most=_MAX_STACK_POLICIES)
    for value in values:
        match = _POLICY_ARN.fullmatch(value)
        account = environment.get("CDK_DEFAULT_ACCOUNT")
        if match is None or (account and match["account"] not in ("aws", account)):
            raise SettingInvalid(
                f"{key} has {value!r}; it must be the ARN of a managed policy of AWS or of the target account, like "
                f"arn:aws:iam::{account or '111122223333'}:policy/tenants."
            )
    return tuple(dict.fromkeys(values))


def url_prefix(context: Node, key: str) -> str | None:
    value = context.try_get_context(key)
    if value is None:
        return None
    # The slash after the host is required: otherwise the name of another host could start with the prefix.
    if not isinstance(value, str) or not _URL_PREFIX.fullmatch(value):
        raise SettingInvalid(f"{key} is {value!r}; it must be a URL with a host and a path that ends with a slash.")
    return value


def mail_address(context: Node, key: str) -> str | None:
    value = context.try_get_context(key)
    if value is None:
        return None
    if not isinstance(value, str) or not _MAIL_ADDRESS.fullmatch(value):
        raise SettingInvalid(
            f"{key} is {value!r}; it must be a mail address that is verified in SES, or whose domain is."
        )
    return value


def topic_arn(context: Node, key: str) -> str | None:
    value = context.try_get_context(key)
    if value is None:
        return None
    if not isinstance(value, str) or not _TOPIC_ARN.fullmatch(value):
        raise SettingInvalid(f"{key} is {value!r}; it must be the ARN of an SNS topic.")
    return value


def role_arn(context: Node, key: str) -> str | None:
    value = context.try_get_context(key)
    if value is not None and (not isinstance(value, str) or not _ROLE_ARN.fullmatch(value)):
        raise SettingInvalid(f"{key} is {value!r}; it must be the ARN of an IAM role or user.")
    return value


def key_arn(context: Node, key: str, environment: Mapping[str, str]) -> str | None:
    value = context.try_get_context(key)
    return None if value is None else checked_key_arn(value, key, environment)


def key_arns(context: Node, key: str, environment: Mapping[str, str]) -> tuple[str, ...]:
    values = texts(context, key, at_most=_MAX_FORMER_KEYS)
    return tuple(checked_key_arn(value, key, environment) for value in values)


def checked_key_arn(value: object, key: str, environment: Mapping[str, str]) -> str:
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
