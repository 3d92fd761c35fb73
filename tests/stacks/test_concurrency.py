"""What `make deploy` reserves for getQueue: something where the account allows it, and nothing where it does not."""

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

from stacks import deploy
from stacks.concurrency import ENOUGH, SETTING, TOO_FEW, UNRESERVED_AT_LEAST, Account, Choice, choose
from stacks.deploy import STACK, ask, chosen, is_set


@pytest.mark.parametrize(
    ("account", "concurrency"),
    [
        pytest.param(Account(10, 10), None, id="a new account"),
        pytest.param(Account(100, 100), None, id="no room"),
        pytest.param(Account(118, 118), None, id="too little room"),
        pytest.param(Account(120, 120), 10, id="just enough room"),
        pytest.param(Account(150, 150), 25, id="some room"),
        pytest.param(Account(1000, 1000), 50, id="an old account"),
        pytest.param(Account(1000, 110), None, id="others have reserved the rest"),
        pytest.param(Account(1000, 950, get_queues=50), 50, id="deployed before"),
        pytest.param(Account(150, 125, get_queues=25), 25, id="deployed before with some room"),
    ],
)
def test_what_is_reserved_leaves_what_aws_demands_and_room_for_others(
    account: Account, concurrency: int | None
) -> None:
    choice = choose(account)
    assert choice.concurrency == concurrency
    assert str(account.limit) in choice.told
    if concurrency is None:
        assert "No concurrency is reserved for getQueue" in choice.told
        assert "Have the quota raised" in choice.told
    else:
        assert account.unreserved + account.get_queues - concurrency >= UNRESERVED_AT_LEAST + concurrency
        assert TOO_FEW <= concurrency <= ENOUGH
        assert choice.told.startswith(f"{concurrency} of the account's")


@pytest.mark.parametrize(
    "arguments",
    [
        ["-c", f"{SETTING}=5"],
        ["--context", f"{SETTING}=0"],
        [f"--context={SETTING}=5"],
        ["--profile", "prod", "-c", "berth:alarmTopicArn=a", f"-c={SETTING}=5"],
    ],
)
def test_who_has_said_it_on_the_command_line_is_not_overruled(arguments: list[str]) -> None:
    assert is_set(arguments, files=[])


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"context": {SETTING: 5}}, True),
        ({SETTING: "5"}, True),
        ({"context": {"berth:maxTenants": 5}}, False),
        ({"context": None}, False),
        ([], False),
    ],
)
def test_who_has_said_it_in_the_cdks_files_is_not_overruled(tmp_path: Path, content: object, expected: bool) -> None:
    file = tmp_path / "cdk.json"
    file.write_text(json.dumps(content))
    assert is_set(["-c", "berth:alarmTopicArn=a"], files=[tmp_path / "missing.json", file]) is expected


def test_a_file_that_is_no_json_is_left_to_the_cdk(tmp_path: Path) -> None:
    file = tmp_path / "cdk.json"
    file.write_text("{")
    assert not is_set([], files=[file])


class Aws:
    """An account, as its answers are stubbed."""

    def __init__(self, *, unreserved: int, outputs: dict[str, str] | None, reserved: dict[str, int] | None = None):
        session = Session()
        keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "eu-west-1"}
        self.functions: Any = session.create_client("lambda", **keys)
        self.stacks: Any = session.create_client("cloudformation", **keys)
        functions, stacks = Stubber(self.functions), Stubber(self.stacks)
        limit = {"ConcurrentExecutions": 1000, "UnreservedConcurrentExecutions": unreserved}
        functions.add_response("get_account_settings", {"AccountLimit": limit})
        if outputs is None:
            stacks.add_client_error("describe_stacks", "ValidationError", "Stack with id Berth does not exist")
        else:
            told = [{"OutputKey": key, "OutputValue": value} for key, value in outputs.items()]
            stack = {"StackName": STACK, "CreationTime": 0, "StackStatus": "CREATE_COMPLETE", "Outputs": told}
            stacks.add_response("describe_stacks", {"Stacks": [stack]}, {"StackName": STACK})
        if reserved is not None:
            functions.add_response("get_function_concurrency", reserved, {"FunctionName": "get-queue"})
        functions.activate()
        stacks.activate()


@pytest.mark.parametrize(
    ("aws", "account"),
    [
        (Aws(unreserved=1000, outputs=None), Account(1000, 1000)),
        (Aws(unreserved=1000, outputs={}), Account(1000, 1000)),
        (Aws(unreserved=1000, outputs={"GetQueueFunctionName": "get-queue"}, reserved={}), Account(1000, 1000)),
        (
            Aws(
                unreserved=950,
                outputs={"GetQueueFunctionName": "get-queue"},
                reserved={"ReservedConcurrentExecutions": 50},
            ),
            Account(1000, 950, 50),
        ),
    ],
    ids=["first deployment", "another stack", "none reserved", "some reserved"],
)
def test_the_account_is_asked_and_what_the_deployment_before_has_reserved_counts_as_free(
    aws: Aws, account: Account
) -> None:
    assert ask(aws.functions, aws.stacks) == account


def test_an_account_that_cannot_be_asked_gets_none_and_is_told_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object) -> Account:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "not you"}}, "GetAccountSettings")

    monkeypatch.setattr(deploy, "ask", denied)
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    choice = chosen(None)
    assert choice.concurrency is None
    assert "could not be asked" in choice.told
    assert "not you" in choice.told


def test_a_profile_that_is_not_there_is_left_to_the_cdk_to_complain_about() -> None:
    choice = chosen("no-such-profile")
    assert choice.concurrency is None
    assert "no-such-profile" in choice.told


@pytest.mark.parametrize(
    ("arguments", "choice", "passed"),
    [
        ([], Choice(50, "Fifty."), ["--context", f"{SETTING}=50"]),
        ([], Choice(None, "None."), []),
        (["-c", f"{SETTING}=7", "--profile", "prod"], None, ["-c", f"{SETTING}=7", "--profile", "prod"]),
    ],
    ids=["chosen", "none", "set"],
)
def test_the_cdk_is_given_what_was_chosen_and_the_operators_own_arguments(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    choice: Choice | None,
    passed: list[str],
) -> None:
    commands = []

    def run(command: list[str], **_: object) -> object:
        commands.append(command)
        return SimpleNamespace(returncode=3)

    def chooses(profile: str | None) -> Choice:
        assert choice is not None, "the account is not asked"
        assert profile is None
        return choice

    monkeypatch.setattr(sys, "argv", ["deploy", *arguments])
    monkeypatch.setattr(deploy, "chosen", chooses)
    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(SystemExit) as ended:
        deploy.main()
    assert ended.value.code == 3
    assert commands == [["cdk", "deploy", STACK, *passed]]
    assert capsys.readouterr().out == (f"{choice.told}\n" if choice else "")
