"""``python -m stacks.deploy``: ``cdk deploy`` with the same arguments, and with settings that fit the account's quotas.

``make deploy`` runs it. Before it builds anything, it prints where it deploys to and what will change there. Plain
``cdk deploy`` builds nothing, and uses the defaults of the settings. :mod:`stacks.diff` does the same for ``cdk diff``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from boto3.session import Session
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    EndpointConnectionError,
    InvalidRegionError,
    NoRegionError,
)

from orchestrator.adapters.dynamodb.release_states import ReleaseStateTable
from orchestrator.adapters.dynamodb.tenants import DynamoTable
from orchestrator.common.errors import BerthError
from orchestrator.common.own_versions import berth_version, template_version
from orchestrator.tenants.names import Names
from stacks import build
from stacks.deploying import concurrency, tenant_cap
from stacks.deploying.announcement import Release, StackNow, Target, announce
from stacks.deploying.choices import Choice
from stacks.project import ROOT
from stacks.releases.committed import digest, release_file
from stacks.setting_values import SettingInvalid
from stacks.settings import EVENTS, NAME, Settings, check_all_are_known, parse_name

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_cloudformation.type_defs import StackTypeDef
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_lambda import LambdaClient

SETTINGS_FILES = (Path.home() / ".cdk.json", ROOT / "cdk.json", ROOT / "cdk.context.json")


def value_of(setting: str, arguments: Sequence[str], files: Iterable[Path] = SETTINGS_FILES) -> object:
    """The value of a setting on the command line or in the CDK's files; ``None`` if it is not set."""
    given = [option.partition("=") for option in _given_settings(arguments)]
    # If a setting is given twice, the CDK takes the later value.
    typed = [value for name, _, value in given if name == setting]
    values = chain(typed[-1:], (_value_in(file, setting) for file in files))
    return next((value for value in values if value is not None), None)


def check_settings(arguments: Sequence[str]) -> None:
    """Refuse settings on the command line that do not exist or have no value. The app finds them, too, but only after
    the build."""
    given = _given_settings(arguments)
    check_all_are_known(option.partition("=")[0] for option in given)
    for option in given:
        if "=" not in option:
            raise SettingInvalid(f"The setting {option} has no value. Give it one: -c {option}=VALUE")


def _given_settings(arguments: Sequence[str]) -> list[str]:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("-c", "--context", action="append", default=[])
    given: list[str] = parser.parse_known_args(arguments)[0].context
    return given


def _value_in(file: Path, setting: str) -> object:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None  # The CDK reports what is wrong with the file.
    if not isinstance(found, dict):
        return None
    return (found.get("context") or {}).get(setting, found.get(setting))


def outputs_of(stacks: CloudFormationClient, stack_name: str) -> Mapping[str, str]:
    """The outputs of the previous deployment of a stack; empty if this is the first."""
    stack = _describe(stacks, stack_name)
    return _outputs(stack) if stack else {}


def _describe(stacks: CloudFormationClient, stack_name: str) -> StackTypeDef | None:
    try:
        (stack,) = stacks.describe_stacks(StackName=stack_name)["Stacks"]
    except ClientError as error:
        if error.response.get("Error", {}).get("Code") == "ValidationError":
            return None
        raise
    return stack


def _outputs(stack: StackTypeDef) -> dict[str, str]:
    return {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}


def look(session: Session, stack_names: Sequence[str]) -> Target:
    """The account and region that the CDK will deploy to, and the named stacks there. The first has the table."""
    caller = session.client("sts").get_caller_identity()
    stacks = session.client("cloudformation")
    found = {name: _describe(stacks, name) for name in stack_names}
    now = [
        StackNow(name, stack["StackStatus"], _outputs(stack).get("Version")) if stack else StackNow(name)
        for name, stack in found.items()
    ]
    control_plane = found[stack_names[0]]
    outputs = _outputs(control_plane) if control_plane else {}
    table = session.client("dynamodb")
    published, withdrawn = read_releases(table, outputs), read_withdrawals(table, outputs)
    return Target(caller["Account"], stacks.meta.region_name, caller["Arn"], now, published, withdrawn)


def read_releases(table: DynamoDBClient, outputs: Mapping[str, str]) -> Mapping[str, str] | None:
    """The digest of every published release, by version; ``None`` if the operator may not read the table."""
    name = outputs.get("TableName")
    try:
        releases = DynamoTable(table, name).releases() if name else []
    except (BerthError, ClientError):
        return None
    return {release.version: release.digest for release in releases}


def read_withdrawals(table: DynamoDBClient, outputs: Mapping[str, str]) -> Mapping[str, str]:
    """The releases that were withdrawn, by version; none if the operator may not read the table."""
    name = outputs.get("TableName")
    try:
        withdrawn = ReleaseStateTable(table, name).state().withdrawn if name else {}
    except (BerthError, ClientError):
        return {}
    return {version: withdrawal.sentence(version) for version, withdrawal in withdrawn.items()}


def ask_for_concurrency(functions: LambdaClient, outputs: Mapping[str, str]) -> concurrency.Account:
    limits = functions.get_account_settings()["AccountLimit"]
    deployed = [outputs[each.output] for each in concurrency.RESERVATIONS if each.output in outputs]
    reserved = sum(
        functions.get_function_concurrency(FunctionName=name).get("ReservedConcurrentExecutions", 0)
        for name in deployed
    )
    return concurrency.Account(limits["ConcurrentExecutions"], limits["UnreservedConcurrentExecutions"], reserved)


def choose_concurrency(reservation: concurrency.Reservation, session: Session, names: Names) -> Choice:
    stacks = session.client("cloudformation")
    outputs = {**outputs_of(stacks, names.control_plane), **outputs_of(stacks, names.events)}
    return concurrency.choose(ask_for_concurrency(session.client("lambda"), outputs), reservation)


def ask_for_stacks(stacks: CloudFormationClient) -> int:
    """The account's quota of stacks."""
    pages = stacks.get_paginator("describe_account_limits").paginate()
    return next(limit["Value"] for page in pages for limit in page["AccountLimits"] if limit["Name"] == "StackLimit")


def count_tenants(table: DynamoDBClient, outputs: Mapping[str, str]) -> int | None:
    """The number of tenants; ``None`` if the operator may not read the table. The limit can be chosen without it."""
    name = outputs.get("TableName")
    try:
        return DynamoTable(table, name).count_tenants() if name else 0
    except (BerthError, ClientError):
        return None


def choose_tenant_cap(session: Session, names: Names) -> Choice:
    stacks = session.client("cloudformation")
    tenants = count_tenants(session.client("dynamodb"), outputs_of(stacks, names.control_plane))
    return tenant_cap.choose(ask_for_stacks(stacks), tenants)


CHOICES: Mapping[str, Callable[[Session, Names], Choice]] = {
    **{each.setting: partial(choose_concurrency, each) for each in concurrency.RESERVATIONS},
    tenant_cap.SETTING: choose_tenant_cap,
}
DEFAULTS = {
    **{each.setting: f"No concurrency is reserved for {each.function}" for each in concurrency.RESERVATIONS},
    tenant_cap.SETTING: f"The limit is the default of {Settings.max_tenants} tenants",
}


def _session(profile: str | None) -> Session:
    # The CDK uses AWS_REGION, which the SDK for Python ignores.
    return Session(profile_name=profile, region_name=os.environ.get("AWS_REGION") or None)


def chosen(setting: str, profile: str | None, names: Names) -> Choice:
    try:
        return CHOICES[setting](_session(profile), names)
    except (BerthError, BotoCoreError, ClientError) as error:
        message = f"{DEFAULTS[setting]}: the account's quota could not be read ({error})."
        return Choice(None, f"{message} To set it: -c {setting}=N.")


def describe(profile: str | None, stack_names: Sequence[str], *, only_compares: bool = False) -> str:
    """The announcement of the deployment. Raises an error if it cannot succeed, for example without credentials."""
    release = Release(template_version(), digest(release_file(template_version())))
    target = look(_session(profile), stack_names)
    return announce(target, berth_version(), release, only_compares=only_compares)


def run_cdk(command: Literal["deploy", "diff"], arguments: Sequence[str]) -> int:
    """Run the command of the CDK on both stacks, with the operator's arguments and the settings that are chosen here.

    Returns the CDK's exit code. Ends before anything is built if a deployment could not succeed.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--profile")
    profile = parser.parse_known_args(arguments)[0].profile
    try:
        check_settings(arguments)
        names = parse_name(value_of(NAME, arguments))
        with_events = value_of(EVENTS, arguments) not in ("false", False)
        stacks = [names.control_plane, *([names.events] if with_events else [])]
        _show(describe(profile, stacks, only_compares=command == "diff"))
    except BerthError as error:
        sys.exit(str(error))
    except (BotoCoreError, ClientError) as error:
        sys.exit(f"Nothing was built or deployed: {str(error).rstrip('.')}. {_advice(error, profile)}")
    build.main()
    options: list[str] = []
    for setting in CHOICES:
        if value_of(setting, arguments) is not None or (setting in concurrency.OF_EVENTS and not with_events):
            continue
        choice = chosen(setting, profile, names)
        _show(choice.message)
        if choice.value is not None:
            options += ["--context", f"{setting}={choice.value}"]
    whole = ["cdk", command, *stacks, *options, *arguments]
    return subprocess.run(whole, cwd=ROOT, check=False).returncode  # noqa: S603 - the CDK of the environment


def _advice(error: BotoCoreError | ClientError, profile: str | None) -> str:
    if isinstance(error, NoRegionError):
        return "Name the region, for example: AWS_REGION=eu-west-1 make deploy"
    if isinstance(error, EndpointConnectionError | InvalidRegionError):
        region, known = _session(profile).region_name, all_regions()
        if region and region not in known:
            similar = get_close_matches(region, known, n=1)
            meant = f" Did you mean {similar[0]}?" if similar else ""
            return f"The region is {region}, which is not a region that the SDK knows.{meant}"
    return 'Check the AWS credentials and the region: AWS_PROFILE and AWS_REGION, or CDK_ARGS="--profile NAME".'


def all_regions() -> list[str]:
    session = Session(region_name="us-east-1")
    partitions = session.get_available_partitions()
    return sorted({each for name in partitions for each in session.get_available_regions("sts", partition_name=name)})


def main() -> None:
    sys.exit(run_cdk("deploy", sys.argv[1:]))


def _show(message: str) -> None:
    sys.stdout.write(f"{message}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
