"""The text that `make deploy` prints before it builds, and the reasons for which it does not build at all."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import (
    ClientError,
    EndpointConnectionError,
    InvalidRegionError,
    NoCredentialsError,
    NoRegionError,
    ProfileNotFound,
)
from botocore.session import Session
from botocore.stub import Stubber

from orchestrator.adapters.dynamodb import rows
from orchestrator.adapters.dynamodb.keys import release_key, release_state_key
from orchestrator.common.own_versions import berth_version, template_version
from stacks import build, deploy, diff
from stacks.deploying.announcement import Release, ReleaseDiffers, StackNow, Target, announce
from tests.fakes import a_release

ADA = "arn:aws:iam::123456789012:user/ada"
RELEASE = Release("1.1.0", "digest")
TARGET = Target(
    "123456789012",
    "eu-west-1",
    ADA,
    [StackNow("Berth", "UPDATE_COMPLETE", "0.1.0"), StackNow("BerthEvents")],
    {"1.0.0": "another digest"},
)


def test_the_account_the_region_the_stacks_the_versions_and_the_changes_are_named() -> None:
    assert announce(TARGET, "0.2.0", RELEASE).splitlines() == [
        f"Deploying Berth 0.2.0 to account 123456789012, region eu-west-1, as {ADA}:",
        "  Berth is updated from version 0.1.0 to 0.2.0 (now UPDATE_COMPLETE)",
        "  BerthEvents is created, at version 0.2.0",
        "  Release 1.1.0 is published.",
        "  No tenant is moved to another release, unless berth:rolloutOnPublish is set: see berth rollout plan.",
    ]


def test_a_release_that_was_withdrawn_is_deployed_and_stays_withdrawn() -> None:
    withdrawn = replace(TARGET, withdrawn={"1.1.0": "Release 1.1.0 was withdrawn by ada"})
    text = announce(withdrawn, "0.2.0", RELEASE)
    assert "  Release 1.1.0 was withdrawn by ada. It stays withdrawn, so new tenants do not get it." in text
    assert "withdrawn" not in announce(withdrawn, "0.2.0", Release("1.0.0", "another digest"))


def test_a_comparison_names_the_same_as_what_a_deployment_would_do() -> None:
    first, *others = announce(TARGET, "0.2.0", RELEASE, only_compares=True).splitlines()
    assert first == (
        f"Deploying Berth 0.2.0 to account 123456789012, region eu-west-1, as {ADA}, would have these effects:"
    )
    assert others == announce(TARGET, "0.2.0", RELEASE).splitlines()[1:]


@pytest.mark.parametrize(
    ("stack", "change"),
    [
        (StackNow("Berth", "CREATE_COMPLETE", "0.2.0"), "stays at version 0.2.0, and gets the code and the settings"),
        (StackNow("Berth", "CREATE_COMPLETE", "0.10.0"), "GOES BACK from version 0.10.0 to 0.2.0"),
        (StackNow("Berth", "CREATE_COMPLETE", "0.2.1.dev0"), "GOES BACK from version 0.2.1.dev0 to 0.2.0"),
        (StackNow("Berth", "CREATE_COMPLETE", "0.2.0.dev0"), "is updated from version 0.2.0.dev0 to 0.2.0"),
        (StackNow("Berth", "ROLLBACK_COMPLETE"), "is updated to version 0.2.0 (now ROLLBACK_COMPLETE, version unknown"),
    ],
    ids=["again", "back", "back from a development version", "released", "no version"],
)
def test_the_change_of_a_stack_depends_on_its_version(stack: StackNow, change: str) -> None:
    assert f"  Berth {change}" in announce(replace(TARGET, stacks=[stack]), "0.2.0", RELEASE)


@pytest.mark.parametrize(
    ("published", "expected"),
    [
        ({}, "Release 1.1.0 is published."),
        ({"1.1.0": "digest"}, "No new release is published: the tenants' template is that of 1.1.0."),
        ({"1.1.0": "digest", "1.2.0": "of another checkout"}, "No new release is published"),
        (None, "could not be read from the table"),
    ],
)
def test_a_new_release_is_named(published: dict[str, str] | None, expected: str) -> None:
    assert expected in announce(replace(TARGET, published=published), "0.2.0", RELEASE)


def test_a_release_that_was_published_with_another_template_ends_the_deployment() -> None:
    with pytest.raises(ReleaseDiffers, match=r"release 1\.1\.0 was published here before with another template"):
        announce(replace(TARGET, published={"1.1.0": "another"}), "0.2.0", RELEASE)


# Reading the account


class FakeSession:
    """A session whose clients answer what a test has prepared."""

    def __init__(self) -> None:
        keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "eu-west-1"}
        self.clients: dict[str, Any] = {
            name: Session().create_client(name, **keys) for name in ("cloudformation", "dynamodb", "sts")
        }
        self.stubs = {name: Stubber(client) for name, client in self.clients.items()}
        for stub in self.stubs.values():
            stub.activate()
        identity = {"Account": "123456789012", "Arn": ADA, "UserId": "ada"}
        self.stubs["sts"].add_response("get_caller_identity", identity)

    def client(self, name: str) -> Any:
        return self.clients[name]

    def has_stack(self, name: str, **outputs: str) -> None:
        listed = [{"OutputKey": key, "OutputValue": value} for key, value in outputs.items()]
        stack = {"StackName": name, "CreationTime": 0, "StackStatus": "CREATE_COMPLETE", "Outputs": listed}
        self.stubs["cloudformation"].add_response("describe_stacks", {"Stacks": [stack]}, {"StackName": name})

    def has_no_stack(self) -> None:
        self.stubs["cloudformation"].add_client_error("describe_stacks", "ValidationError", "does not exist")


@pytest.fixture
def session() -> FakeSession:
    return FakeSession()


def test_before_the_first_deployment_there_are_no_stacks_and_no_releases(session: FakeSession) -> None:
    session.has_no_stack()
    session.has_no_stack()
    target = deploy.look(session, ["Berth", "BerthEvents"])  # type: ignore[arg-type]
    assert target == Target(
        "123456789012", "eu-west-1", ADA, [StackNow("Berth"), StackNow("BerthEvents")], published={}
    )


def test_the_stacks_and_the_published_releases_are_read(session: FakeSession) -> None:
    session.has_stack("Berth", Version="0.1.0", TableName="tenants")
    session.has_stack("BerthEvents", Version="0.1.0")
    release = a_release("0.1.0")
    items = [release_key("0.1.0") | rows.release_fields(release)]
    session.stubs["dynamodb"].add_response("query", {"Items": items})
    withdrawn = {"At": {"S": "2026-11-16T12:00:00.000Z"}, "RequestedBy": {"S": "ada"}, "RequestedBecause": {"S": "bad"}}
    state = release_state_key() | {"Withdrawn": {"M": {"0.1.0": {"M": withdrawn}}}, "Revision": {"N": "1"}}
    session.stubs["dynamodb"].add_response("get_item", {"Item": state})
    target = deploy.look(session, ["Berth", "BerthEvents"])  # type: ignore[arg-type]
    assert target.stacks == [
        StackNow("Berth", "CREATE_COMPLETE", "0.1.0"),
        StackNow("BerthEvents", "CREATE_COMPLETE", "0.1.0"),
    ]
    assert target.published == {"0.1.0": release.digest}
    assert target.withdrawn == {"0.1.0": "Release 0.1.0 was withdrawn by ada at 2026-11-16T12:00:00.000Z (bad)"}


def test_the_releases_are_unknown_if_the_table_cannot_be_read(session: FakeSession) -> None:
    session.has_stack("Berth", Version="0.1.0", TableName="tenants")
    session.stubs["dynamodb"].add_client_error("query", "AccessDeniedException")
    session.stubs["dynamodb"].add_client_error("get_item", "AccessDeniedException")
    assert deploy.look(session, ["Berth"]).published is None  # type: ignore[arg-type]


def test_the_versions_of_the_checkout_are_announced(session: FakeSession, monkeypatch: pytest.MonkeyPatch) -> None:
    session.has_no_stack()
    monkeypatch.setattr(deploy, "_session", lambda _profile: session)
    text = deploy.describe(None, ["Berth"])
    assert f"Berth is created, at version {berth_version()}" in text
    assert f"Release {template_version()} is published." in text


EXPIRED = ClientError({"Error": {"Code": "ExpiredToken", "Message": "Log in."}}, "GetCallerIdentity")


UNREACHABLE = EndpointConnectionError(endpoint_url="https://sts.eu-wst-1.amazonaws.com/")
MALFORMED = InvalidRegionError(region_name="eu west 1")
CREDENTIALS = "Check the AWS credentials and the region: AWS_PROFILE"


@pytest.mark.parametrize("run", [deploy.main, diff.main], ids=["deploy", "diff"])
@pytest.mark.parametrize(
    ("error", "region", "advice"),
    [
        (NoCredentialsError(), "eu-west-1", f"Unable to locate credentials. {CREDENTIALS}"),
        (ProfileNotFound(profile="prod"), "eu-west-1", f"(prod) could not be found. {CREDENTIALS}"),
        (EXPIRED, "eu-west-1", f"Log in. {CREDENTIALS}"),
        (NoRegionError(), "", "You must specify a region. Name the region, for example: AWS_REGION=eu-west-1"),
        (UNREACHABLE, "eu-wst-1", "which is not a region that the SDK knows. Did you mean eu-west-1?"),
        (UNREACHABLE, "eu-west-1", CREDENTIALS),
        (MALFORMED, "eu west 1", "a supported format. The region is eu west 1, which is not a region that the SDK"),
    ],
    ids=["credentials", "profile", "expired", "no region", "misspelt region", "no network", "malformed region"],
)
def test_without_an_account_nothing_is_built(
    monkeypatch: pytest.MonkeyPatch, run: Callable[[], None], error: Exception, region: str, advice: str
) -> None:
    class NoAccount:
        region_name = region

        def client(self, _name: str) -> object:
            raise error

    def never(*_: object, **__: object) -> None:
        raise AssertionError("Something was built or deployed.")

    monkeypatch.setattr(sys, "argv", ["deploy"])
    monkeypatch.setattr(deploy, "_session", lambda _profile: NoAccount())
    monkeypatch.setattr(build, "main", never)
    monkeypatch.setattr(subprocess, "run", never)
    with pytest.raises(SystemExit, match=f"^Nothing was built or deployed: .*{re.escape(advice)}"):
        run()
