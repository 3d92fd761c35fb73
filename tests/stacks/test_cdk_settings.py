"""Settings are read once, and an invalid setting stops the deployment before it starts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App

from stacks.project import ROOT
from stacks.setting_values import SettingInvalid
from stacks.settings import KNOWN, Dependencies, Settings, Tracing
from tests.stacks.conftest import ADOPTER

TOPIC = "arn:aws:sns:eu-west-1:123456789012:on-call"


def settings(context: dict[str, Any], layer: Path, code: Path = ROOT) -> Settings:
    return Settings.from_context(App(context=context).node, layer, code)


def test_the_defaults_are_for_aws(tmp_path: Path) -> None:
    assert settings({}, tmp_path) == Settings(
        await_stack_seconds=120,
        stack_events=True,
        await_review_seconds=3,
        retry_after_seconds=5,
        dependencies=Dependencies.LAYER,
        alarm_topic_arn=None,
        dashboard=False,
        log_retention_days=90,
        get_queue_concurrency=None,
        credentials_seconds=None,
        rollout_concurrency=50,
        linger_seconds=60,
        rollout_on_publish=False,
        api_proof_generation=1,
        max_tenants=1900,
        creates_per_minute=60,
        create_on_get_queue=True,
    )


def test_values_may_be_texts_from_the_command_line_or_numbers_from_a_file(tmp_path: Path) -> None:
    rest = {
        "berth:dependencies": "host",
        "berth:adopterArn": ADOPTER,
        "berth:alarmTopicArn": TOPIC,
        "berth:getQueueConcurrency": "16",
        "berth:tenantMetadataConcurrency": "5",
        "berth:awaitReviewSeconds": "5",
        "berth:retryAfterSeconds": "9",
        "berth:stackEvents": "false",
        "berth:credentialsSeconds": "900",
        "berth:rolloutConcurrency": "8",
        "berth:lingerSeconds": "2",
        "berth:rolloutOnPublish": "true",
        "berth:apiProofGeneration": "2",
        "berth:maxTenants": "5000",
        "berth:createsPerMinute": "10",
        "berth:createOnGetQueue": "false",
        "berth:tracing": "active",
        "berth:dashboard": "true",
    }
    expected = Settings(
        await_stack_seconds=2,
        stack_events=False,
        await_review_seconds=5,
        retry_after_seconds=9,
        dependencies=Dependencies.HOST,
        adopter_arn=ADOPTER,
        alarm_topic_arn=TOPIC,
        log_retention_days=7,
        get_queue_concurrency=16,
        tenant_metadata_concurrency=5,
        credentials_seconds=900,
        rollout_concurrency=8,
        linger_seconds=2,
        rollout_on_publish=True,
        api_proof_generation=2,
        max_tenants=5000,
        creates_per_minute=10,
        create_on_get_queue=False,
        tracing=Tracing.ACTIVE,
        dashboard=True,
    )
    assert settings({"berth:awaitStackSeconds": "2", "berth:logRetentionDays": "7", **rest}, tmp_path) == expected
    assert settings({"berth:awaitStackSeconds": 2, "berth:logRetentionDays": 7, **rest}, tmp_path) == expected


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("berth:awaitStackSeconds", "soon", "must be a whole number"),
        ("berth:awaitStackSeconds", "2.5", "must be a whole number"),
        ("berth:awaitStackSeconds", "0", "must be 1 to 3600 seconds"),
        ("berth:awaitStackSeconds", "86400", "must be 1 to 3600 seconds"),
        ("berth:awaitReviewSeconds", "0", "must be 1 to 3600 seconds"),
        ("berth:dependencies", "docker", "must be layer or host"),
        ("berth:tracing", "on", "must be passthrough or active"),
        ("berth:adopterArn", "ada", "must be the ARN of an IAM role or user"),
        ("berth:alarmTopicArn", "on-call", "must be the ARN of an SNS topic"),
        ("berth:alarmTopicArn", "", "must be the ARN of an SNS topic"),
        ("berth:logRetentionDays", "91", "one of 1, 3, 5, 7, 14, 30"),
        ("berth:getQueueConcurrency", "-1", "must be a whole number, and not negative"),
        ("berth:tenantMetadataConcurrency", "-1", "must be a whole number, and not negative"),
        ("berth:credentialsSeconds", "899", "must be 900 to 3600 seconds"),
        ("berth:credentialsSeconds", "3601", "must be 900 to 3600 seconds"),
        ("berth:credentialsSeconds", "-900", "must be 900 to 3600 seconds"),
        ("berth:rolloutConcurrency", "0", "must be 1 to 1000 tenants"),
        ("berth:rolloutConcurrency", "1001", "must be 1 to 1000 tenants"),
        ("berth:rolloutConcurrency", "many", "must be a whole number"),
        ("berth:lingerSeconds", "0", "must be 1 to 300 seconds"),
        ("berth:lingerSeconds", "301", "must be 1 to 300 seconds"),
        ("berth:lingerSeconds", "a minute", "must be a whole number"),
        ("berth:apiProofGeneration", "0", "must be 1 to 999999999"),
        ("berth:apiProofGeneration", "next", "must be a whole number"),
        ("berth:rolloutOnPublish", "yes", "must be true or false"),
        ("berth:rolloutOnPublish", "1", "must be true or false"),
        ("berth:maxTenants", "0", "must be 1 to 1000000"),
        ("berth:warmPool", "101", "at most 100 stacks in all tiers together"),
        ("berth:warmPool", "standard=60,gold=41", "at most 100 stacks in all tiers together"),
        ("berth:warmPool", "-1", "a number of stacks, or numbers by tier, like standard=5,gold=2"),
        ("berth:warmPool", "few", "a number of stacks, or numbers by tier, like standard=5,gold=2"),
        ("berth:warmPool", "Gold=5", "a number of stacks, or numbers by tier, like standard=5,gold=2"),
        ("berth:warmPool", "gold=5,gold=6", "a number of stacks, or numbers by tier, like standard=5,gold=2"),
        ("berth:warmPool", "5,standard=6", "a number of stacks, or numbers by tier, like standard=5,gold=2"),
        ("berth:warmPool", {"gold": 1.5}, "a number of stacks, or numbers by tier, like standard=5,gold=2"),
        ("berth:maxTenants", "-1", "must be 1 to 1000000"),
        ("berth:maxTenants", "many", "must be a whole number"),
        ("berth:createsPerMinute", "-1", "must be 0 to 600"),
        ("berth:createsPerMinute", "601", "must be 0 to 600"),
        ("berth:createOnGetQueue", "no", "must be true or false"),
    ],
)
def test_the_message_about_an_invalid_setting_names_it_and_says_what_is_valid(
    tmp_path: Path, key: str, value: str, message: str
) -> None:
    with pytest.raises(SettingInvalid, match=f"{key} is .*{message}"):
        settings({key: value}, tmp_path)


def test_a_missing_layer_stops_the_deployment(tmp_path: Path) -> None:
    with pytest.raises(SettingInvalid, match=r"run `python -m stacks\.build` first"):
        settings({}, tmp_path / "not-built")


def test_outdated_code_stops_the_deployment(tmp_path: Path) -> None:
    with pytest.raises(SettingInvalid, match=r"python -m stacks\.build"):
        settings({}, tmp_path, code=tmp_path)


def test_no_layer_is_needed_where_dependencies_come_from_the_host(tmp_path: Path) -> None:
    found = settings({"berth:dependencies": "host"}, tmp_path / "not-built")
    assert found.dependencies is Dependencies.HOST


@pytest.mark.parametrize("seconds", ["0", 0])
def test_zero_seconds_switch_credentials_off(tmp_path: Path, seconds: object) -> None:
    assert settings({"berth:credentialsSeconds": seconds}, tmp_path).credentials_seconds is None


@pytest.mark.parametrize("seconds", [900, 3600])
def test_credentials_may_last_from_15_minutes_to_an_hour(tmp_path: Path, seconds: int) -> None:
    assert settings({"berth:credentialsSeconds": seconds}, tmp_path).credentials_seconds == seconds


@pytest.mark.parametrize("at_once", [1, "1000"])
def test_the_concurrency_of_rollouts_may_be_1_to_1000(tmp_path: Path, at_once: object) -> None:
    assert settings({"berth:rolloutConcurrency": at_once}, tmp_path).rollout_concurrency == int(str(at_once))


@pytest.mark.parametrize(
    ("value", "expected"), [(True, True), (False, False), ("true", True), ("false", False), (None, False)]
)
def test_rollouts_on_publish_are_off_unless_switched_on(tmp_path: Path, value: object, expected: bool) -> None:
    context = {} if value is None else {"berth:rolloutOnPublish": value}
    assert settings(context, tmp_path).rollout_on_publish is expected


def test_a_misspelt_setting_stops_the_deployment(tmp_path: Path) -> None:
    with pytest.raises(SettingInvalid, match=r"There is no setting berth:nmae\. Did you mean berth:name\?"):
        settings({"berth:nmae": "Berth-dev"}, tmp_path)


def test_context_of_other_tools_is_ignored(tmp_path: Path) -> None:
    assert settings({"@aws-cdk/core:something": True, "theirs:name": "x"}, tmp_path) == Settings()


def test_the_page_lists_every_setting_except_those_for_the_emulator() -> None:
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `(berth:\w+)`", page, re.MULTILINE))
    assert KNOWN - listed == {
        "berth:dependencies",
        "berth:loopbackDestinations",
        "berth:responseUrlPrefix",
        "berth:stackEvents",
    }
    assert listed <= KNOWN


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("5", {"standard": 5}),
        (5, {"standard": 5}),
        ("0", {}),
        (0, {}),
        ("", {}),
        ("standard=5, gold=2", {"standard": 5, "gold": 2}),
        ("gold=2", {"gold": 2}),
        ("5,gold=2", {"standard": 5, "gold": 2}),
        ({"standard": 5, "gold": 2, "silver": 0}, {"standard": 5, "gold": 2}),
    ],
    ids=str,
)
def test_stacks_are_kept_ready_by_tier(value: object, expected: dict[str, int], tmp_path: Path) -> None:
    assert settings({"berth:warmPool": value}, tmp_path).warm_pool == expected


def test_a_number_of_stacks_is_for_the_default_tier(tmp_path: Path) -> None:
    assert settings({"berth:warmPool": "5", "berth:defaultTier": "gold"}, tmp_path).warm_pool == {"gold": 5}
