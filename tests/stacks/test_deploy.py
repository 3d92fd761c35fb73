"""The settings that `make deploy` chooses by the account's quotas, and the command that it runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.session import Session
from botocore.stub import Stubber

from orchestrator.tenants.fleet import LISTED_STATES
from orchestrator.tenants.names import Names
from stacks import build, deploy, diff
from stacks.deploy import (
    CHOICES,
    ask_for_concurrency,
    ask_for_stacks,
    chosen,
    count_tenants,
    outputs_of,
    value_of,
)
from stacks.deploying import concurrency, tenant_cap
from stacks.deploying.choices import Choice
from stacks.deploying.concurrency import Account
from stacks.settings import Settings

SETTINGS = list(CHOICES)
for_each_setting = pytest.mark.parametrize("setting", SETTINGS)

# The maximum number of tenants


@pytest.mark.parametrize(
    ("stack_limit", "tenants", "cap"),
    [(2_000, 0, 1_900), (2_000, 1_899, 1_900), (10_000, 2_500, 9_500), (10, 0, 10), (5_000_000, 0, 1_000_000)],
)
def test_the_maximum_number_of_tenants_is_95_percent_of_the_quota_of_stacks(
    stack_limit: int, tenants: int, cap: int
) -> None:
    choice = tenant_cap.choose(stack_limit, tenants)
    assert choice.value == cap
    for text in (f"{cap} tenants", f"{stack_limit} stacks", "berth:maxTenants"):
        assert text in choice.message
    assert "no further tenant" not in choice.message


@pytest.mark.parametrize("tenants", [1_900, 2_500])
def test_an_operator_is_warned_if_no_further_tenant_can_be_created(tenants: int) -> None:
    choice = tenant_cap.choose(2_000, tenants)
    for text in (
        f"there are {tenants} tenants",
        "no further tenant will be created",
        "raise the quota",
        "-c berth:maxTenants=N",
    ):
        assert text in choice.message


def test_the_maximum_is_chosen_even_if_the_tenants_cannot_be_counted() -> None:
    choice = tenant_cap.choose(10_000, None)
    assert choice.value == 9_500
    assert "could not be read" in choice.message


def test_the_default_maximum_fits_the_default_quota() -> None:
    assert tenant_cap.choose(2_000, 0).value == Settings.max_tenants


# Settings that are already set


@for_each_setting
@pytest.mark.parametrize(
    "arguments",
    [
        ["-c", "{}=5"],
        ["--context", "{}=0"],
        ["--context={}=5"],
        ["--profile", "prod", "-c", "berth:alarmTopicArn=a", "-c={}=5"],
    ],
)
def test_a_setting_on_the_command_line_is_kept(setting: str, arguments: list[str]) -> None:
    assert value_of(setting, [argument.format(setting) for argument in arguments], files=[]) in ("0", "5")


@for_each_setting
@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"context": {"{}": 5}}, 5),
        ({"context": {"{}": 0}}, 0),
        ({"{}": "5"}, "5"),
        ({"context": {"berth:createsPerMinute": 5}}, None),
        ({"context": None}, None),
        ([], None),
    ],
)
def test_a_setting_in_the_cdks_files_is_kept(tmp_path: Path, setting: str, content: object, expected: object) -> None:
    file = tmp_path / "cdk.json"
    file.write_text(json.dumps(content).replace("{}", setting))
    assert value_of(setting, ["-c", "berth:alarmTopicArn=a"], files=[tmp_path / "missing.json", file]) == expected


def test_a_file_that_is_not_json_is_ignored_because_the_cdk_reports_it(tmp_path: Path) -> None:
    file = tmp_path / "cdk.json"
    file.write_text("{")
    assert value_of(concurrency.GET_QUEUE.setting, [], files=[file]) is None


def test_the_command_line_overrides_the_files_and_the_last_value_wins(tmp_path: Path) -> None:
    file = tmp_path / "cdk.json"
    file.write_text(json.dumps({"context": {"berth:name": "Berth-file"}}))
    assert value_of("berth:name", [], files=[file]) == "Berth-file"
    arguments = ["-c", "berth:name=Berth-a", "--context", "berth:name=Berth-b", "--context", "berth:names=Berth-c"]
    assert value_of("berth:name", arguments, files=[file]) == "Berth-b"


# Reading the account


def stubbed(service: str) -> tuple[Any, Stubber]:
    keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "eu-west-1"}
    client = Session().create_client(service, **keys)
    stubber = Stubber(client)
    stubber.activate()
    return client, stubber


def test_before_the_first_deployment_there_are_no_outputs() -> None:
    stacks, stub = stubbed("cloudformation")
    stub.add_client_error("describe_stacks", "ValidationError", "Stack with id Berth does not exist")
    assert outputs_of(stacks, "Berth") == {}


def test_the_outputs_of_the_previous_deployment_are_read() -> None:
    stacks, stub = stubbed("cloudformation")
    outputs = [{"OutputKey": "TableName", "OutputValue": "tenants"}]
    stack = {"StackName": "Berth-dev", "CreationTime": 0, "StackStatus": "CREATE_COMPLETE", "Outputs": outputs}
    stub.add_response("describe_stacks", {"Stacks": [stack]}, {"StackName": "Berth-dev"})
    assert outputs_of(stacks, "Berth-dev") == {"TableName": "tenants"}


@pytest.mark.parametrize(
    ("outputs", "reserved", "account"),
    [
        ({}, [], Account(1000, 950)),
        ({"GetQueueFunctionName": "get-queue"}, [None], Account(1000, 950)),
        ({"GetQueueFunctionName": "get-queue"}, [50], Account(1000, 950, 50)),
        ({"GetQueueFunctionName": "get-queue", "IngestFunctionName": "ingest"}, [50, 30], Account(1000, 950, 80)),
    ],
    ids=["first deployment", "none reserved", "some reserved", "with the event plane"],
)
def test_the_reservations_of_the_previous_deployment_are_read(
    outputs: dict[str, str], reserved: list[int | None], account: Account
) -> None:
    functions, stub = stubbed("lambda")
    limit = {"ConcurrentExecutions": 1000, "UnreservedConcurrentExecutions": 950}
    stub.add_response("get_account_settings", {"AccountLimit": limit})
    for name, number in zip(outputs.values(), reserved, strict=True):
        reserved = {} if number is None else {"ReservedConcurrentExecutions": number}
        stub.add_response("get_function_concurrency", reserved, {"FunctionName": name})
    assert ask_for_concurrency(functions, outputs) == account


def test_the_quota_of_stacks_is_found_on_a_later_page() -> None:
    stacks, stub = stubbed("cloudformation")
    others = [{"Name": "StackOutputsLimit", "Value": 200}]
    stub.add_response("describe_account_limits", {"AccountLimits": others, "NextToken": "more"}, {})
    limits = [{"Name": "StackLimit", "Value": 5000}]
    stub.add_response("describe_account_limits", {"AccountLimits": limits}, {"NextToken": "more"})
    assert ask_for_stacks(stacks) == 5000


def test_before_the_first_deployment_there_are_no_tenants() -> None:
    table, _ = stubbed("dynamodb")
    assert count_tenants(table, {}) == 0


@pytest.mark.parametrize("code", ["AccessDeniedException", "ThrottlingException"])
def test_the_number_of_tenants_is_unknown_if_the_table_cannot_be_read(code: str) -> None:
    table, stub = stubbed("dynamodb")
    stub.add_client_error("query", code)
    assert count_tenants(table, {"TableName": "tenants"}) is None


def test_the_tenants_of_the_previous_deployment_are_counted() -> None:
    table, stub = stubbed("dynamodb")
    for count in range(len(LISTED_STATES)):
        stub.add_response("query", {"Count": count})
    assert count_tenants(table, {"TableName": "tenants"}) == sum(range(len(LISTED_STATES)))


@for_each_setting
def test_the_default_is_kept_with_a_reason_if_the_quota_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    def denied(_session: object, _names: object) -> Choice:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "not you"}}, "GetAccountSettings")

    monkeypatch.setitem(CHOICES, setting, denied)  # type: ignore[arg-type]
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    choice = chosen(setting, None, Names())
    assert choice.value is None
    for text in ("could not be read", "not you", f"-c {setting}=N"):
        assert text in choice.message


@for_each_setting
def test_a_missing_profile_keeps_the_default_because_the_cdk_reports_it(setting: str) -> None:
    choice = chosen(setting, "no-such-profile", Names())
    assert choice.value is None
    assert "no-such-profile" in choice.message


# The command

ANNOUNCED = "Deploying."
BUILT = "Built."


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> None:
    """`make deploy` without an account and without a build."""
    monkeypatch.setattr(deploy, "describe", lambda _profile, _stacks, **_how: ANNOUNCED)
    monkeypatch.setattr(build, "main", lambda: sys.stdout.write(f"{BUILT}\n"))


CHOSEN = [Choice(number, f"{number}.") for number in (50, 40, 30, 20, 10, 1900)]


@pytest.mark.parametrize(
    ("arguments", "choices", "passed"),
    [
        ([], CHOSEN, [50, 40, 30, 20, 10, 1900]),
        ([], [Choice(None, "None."), *CHOSEN[1:]], [None, 40, 30, 20, 10, 1900]),
        (["-c", f"{SETTINGS[-1]}=7", "--profile", "prod"], CHOSEN[:-1], [50, 40, 30, 20, 10]),
        (["-c", f"{SETTINGS[0]}=7"], [Choice(None, "Not read.")] * 5, [None] * 6),
        ([each for setting in SETTINGS for each in ("-c", f"{setting}=7")], [], []),
    ],
    ids=["chosen", "one kept at its default", "one set", "the other set, quota not read", "all set"],
)
@pytest.mark.usefixtures("command")
def test_the_cdk_gets_the_chosen_settings_and_the_operators_arguments(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    choices: list[Choice],
    passed: list[int | None],
) -> None:
    commands = []

    def run(command: list[str], **_: object) -> object:
        commands.append(command)
        return SimpleNamespace(returncode=3)

    remaining = list(choices)
    monkeypatch.setattr(sys, "argv", ["deploy", *arguments])
    monkeypatch.setattr(deploy, "chosen", lambda _setting, _profile, _names: remaining.pop(0))
    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(SystemExit) as ended:
        deploy.main()
    assert ended.value.code == 3
    given = [("--context", f"{name}={value}") for name, value in zip(SETTINGS, passed, strict=False) if value]
    assert commands == [
        ["cdk", "deploy", "Berth", "BerthEvents", *(each for pair in given for each in pair), *arguments]
    ]
    lines = [ANNOUNCED, BUILT, *(choice.message for choice in choices)]
    assert capsys.readouterr().out == "".join(f"{line}\n" for line in lines)


@pytest.mark.usefixtures("command")
def test_the_named_control_plane_is_read_and_deployed(monkeypatch: pytest.MonkeyPatch) -> None:
    read, commands = [], []

    def run(command: list[str], **_: object) -> object:
        commands.append(command)
        return SimpleNamespace(returncode=0)

    def choose(setting: str, _profile: str | None, names: Names) -> Choice:
        read.append((setting, names))
        return Choice(None, "Nothing.")

    monkeypatch.setattr(sys, "argv", ["deploy", "-c", "berth:name=Berth-dev"])
    monkeypatch.setattr(deploy, "chosen", choose)
    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(SystemExit):
        deploy.main()
    assert read == [(setting, Names("Berth-dev")) for setting in SETTINGS]
    assert commands == [["cdk", "deploy", "Berth-dev", "Berth-devEvents", "-c", "berth:name=Berth-dev"]]


@pytest.mark.usefixtures("command")
def test_without_events_only_the_control_plane_is_deployed(monkeypatch: pytest.MonkeyPatch) -> None:
    commands = []

    def run(command: list[str], **_: object) -> object:
        commands.append(command)
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(sys, "argv", ["deploy", "-c", "berth:events=false"])
    asked = []

    def choose(setting: str, _profile: str | None, _names: Names) -> Choice:
        asked.append(setting)
        return Choice(None, "Nothing.")

    monkeypatch.setattr(deploy, "chosen", choose)
    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(SystemExit):
        deploy.main()
    assert asked == ["berth:getQueueConcurrency", "berth:maxTenants"]
    assert commands == [["cdk", "deploy", "Berth", "-c", "berth:events=false"]]


@pytest.mark.parametrize(
    ("given", "passed"),
    [
        (["-c", "berth:events=false"], ["--method", "change-set", "-c", "berth:events=false"]),
        (["-c", "berth:events=false", "--method=template"], ["-c", "berth:events=false", "--method=template"]),
        (["-c", "berth:events=false", "-m", "auto"], ["-c", "berth:events=false", "-m", "auto"]),
    ],
    ids=["by a change set", "another method", "its short name"],
)
@pytest.mark.usefixtures("command")
def test_a_comparison_has_the_settings_of_a_deployment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], given: list[str], passed: list[str]
) -> None:
    commands = []

    def run(command: list[str], **_: object) -> object:
        commands.append(command)
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(sys, "argv", ["diff", *given])
    monkeypatch.setattr(deploy, "chosen", lambda setting, _profile, _names: Choice(7, f"{setting}."))
    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(SystemExit) as ended:
        diff.main()
    assert ended.value.code == 0
    chosen_here = ["--context", "berth:getQueueConcurrency=7", "--context", "berth:maxTenants=7"]
    assert commands == [["cdk", "diff", "Berth", *chosen_here, *passed]]
    assert capsys.readouterr().out.endswith(
        "Nothing was deployed. `make deploy` with the same CDK_ARGS deploys this.\n"
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("berth:maxTenant=5", r"There is no setting berth:maxTenant\. Did you mean berth:maxTenants\?"),
        ("name=Berth-dev", r"There is no setting name\. Did you mean berth:name\?"),
        ("berth:maxTenants", r"The setting berth:maxTenants has no value\. Give it one: -c berth:maxTenants=VALUE"),
    ],
    ids=["misspelt", "without the prefix", "without a value"],
)
def test_a_mistaken_setting_is_refused_before_the_account_is_read(
    monkeypatch: pytest.MonkeyPatch, given: str, message: str
) -> None:
    monkeypatch.setattr(sys, "argv", ["deploy", "-c", given])
    with pytest.raises(SystemExit, match=message):
        deploy.main()


def test_an_invalid_name_is_refused_before_the_account_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["deploy", "-c", "berth:name=berth-tenant"])
    with pytest.raises(SystemExit, match="berth:name: 'berth-tenant' cannot be the name"):
        deploy.main()
