"""``python -m stacks.deploy``: ``cdk deploy`` with the same arguments, and with what the account allows.

``make deploy`` runs it. Whoever calls ``cdk deploy`` instead gets the settings' defaults.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from boto3.session import Session
from botocore.exceptions import BotoCoreError, ClientError

from stacks.concurrency import SETTING, Account, Choice, choose
from stacks.project import ROOT

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_lambda import LambdaClient

STACK = "Berth"
SETTINGS_FILES = (Path.home() / ".cdk.json", ROOT / "cdk.json", ROOT / "cdk.context.json")


def is_set(arguments: Sequence[str], files: Iterable[Path] = SETTINGS_FILES) -> bool:
    """Whether somebody has said how much concurrency is reserved, on the command line or in the CDK's files."""
    return any(SETTING in argument for argument in arguments) or any(_names_setting(file) for file in files)


def _names_setting(file: Path) -> bool:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return False  # The CDK says what is wrong with a file.
    return isinstance(found, dict) and (SETTING in found or SETTING in (found.get("context") or {}))


def ask(functions: LambdaClient, stacks: CloudFormationClient) -> Account:
    limits = functions.get_account_settings()["AccountLimit"]
    reserved = _reserved(functions, stacks)
    return Account(limits["ConcurrentExecutions"], limits["UnreservedConcurrentExecutions"], reserved)


def _reserved(functions: LambdaClient, stacks: CloudFormationClient) -> int:
    """What the deployment before has reserved for getQueue."""
    try:
        (stack,) = stacks.describe_stacks(StackName=STACK)["Stacks"]
    except ClientError as error:
        if error.response.get("Error", {}).get("Code") == "ValidationError":
            return 0  # It is the first.
        raise
    outputs = {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}
    name = outputs.get("GetQueueFunctionName")
    if name is None:
        return 0
    return functions.get_function_concurrency(FunctionName=name).get("ReservedConcurrentExecutions", 0)


def chosen(profile: str | None) -> Choice:
    try:
        # The CDK heeds AWS_REGION, which the SDK for Python does not know.
        session = Session(profile_name=profile, region_name=os.environ.get("AWS_REGION") or None)
        account = ask(session.client("lambda"), session.client("cloudformation"))
    except (BotoCoreError, ClientError) as error:
        return Choice(
            None,
            f"No concurrency is reserved for getQueue, because the account could not be asked: {error}. "
            f"To reserve some all the same: -c {SETTING}=N.",
        )
    return choose(account)


def main() -> None:
    arguments = sys.argv[1:]
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--profile")
    profile = parser.parse_known_args(arguments)[0].profile
    options: list[str] = []
    if not is_set(arguments):
        choice = chosen(profile)
        sys.stdout.write(f"{choice.told}\n")
        sys.stdout.flush()
        if choice.concurrency is not None:
            options = ["--context", f"{SETTING}={choice.concurrency}"]
    command = ["cdk", "deploy", STACK, *options, *arguments]
    sys.exit(subprocess.run(command, cwd=ROOT, check=False).returncode)  # noqa: S603 - the CDK of the environment


if __name__ == "__main__":
    main()
