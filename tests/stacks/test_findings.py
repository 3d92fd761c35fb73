"""There are no security findings and template errors without an acknowledgement and a reason."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import Acknowledgment, App
from cfnlint.api import ManualArgs, lint
from constructs import Construct

from stacks.app import build

Json = dict[str, Any]

LINT_ACKNOWLEDGED = ["W3005"]
"""The CDK makes a function depend on its role explicitly, although the function refers to the role anyway."""

FALSE_LINT_FINDING = re.compile(
    r"E3601 ('\{%.* is not of type 'number' at '.*/Seconds'|.*\('QueryLanguage' was unexpected\) at '.*)"
)
"""False findings: cfn-lint expects one query language per machine, but a state may set its own."""


@dataclass(frozen=True)
class Finding:
    rule: str
    path: str


@dataclass(frozen=True)
class RecordedAcknowledgements:
    """A fake of the CDK's Validations that records acknowledgements without applying them."""

    recorded: dict[Finding, str]
    path: str = ""

    def of(self, construct: Construct) -> RecordedAcknowledgements:
        return RecordedAcknowledgements(self.recorded, construct.node.path)

    def acknowledge(self, rule: Acknowledgment) -> None:
        self.recorded[Finding(rule.id, self.path)] = rule.reason


@pytest.fixture(scope="module")
def acknowledged() -> dict[Finding, str]:
    """Every acknowledgement in the app, with its reason. The fixture ``findings`` fills it."""
    return {}


@pytest.fixture(scope="module")
def findings(acknowledged: dict[Finding, str], tmp_path_factory: pytest.TempPathFactory) -> set[Finding]:
    """The findings of cdk-nag without acknowledgements."""
    directory = tmp_path_factory.mktemp("assembly")
    everything = {"berth:dependencies": "host", "berth:credentialsSeconds": "900", "berth:rolloutOnPublish": "true"}
    app = App(outdir=str(directory), analytics_reporting=False, context=everything)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("stacks.common.permissions.Validations", RecordedAcknowledgements(acknowledged))
        build(app)
    with pytest.raises(RuntimeError, match="ValidationFailed"):
        app.synth()
    return set(_reported(directory))


def _reported(assembly: Path) -> list[Finding]:
    report = json.loads((assembly / "validation-report.json").read_text(encoding="utf-8"))
    return [
        Finding(violation["ruleName"], construct["constructPath"])
        for plugin in report["pluginReports"]
        for violation in plugin["violations"]
        for construct in violation["violatingConstructs"]
    ]


def test_every_finding_is_acknowledged(assembly: Path) -> None:
    assert _reported(assembly) == []


def test_synthesis_fails_on_a_finding_that_is_not_acknowledged(findings: set[Finding]) -> None:
    assert {finding.rule.split("[")[0] for finding in findings} == {
        "AwsSolutions-APIG4",
        "AwsSolutions-IAM5",
        "AwsSolutions-L1",
        "AwsSolutions-S1",
        "AwsSolutions-SQS3",
    }


def test_every_acknowledgement_has_a_finding(findings: set[Finding], acknowledged: dict[Finding, str]) -> None:
    outdated = {
        ack
        for ack in acknowledged
        if not any(found.rule == ack.rule and found.path.startswith(f"{ack.path}/") for found in findings)
    }
    assert not outdated


@pytest.mark.usefixtures("findings")
def test_every_acknowledgement_has_a_written_reason(acknowledged: dict[Finding, str]) -> None:
    assert acknowledged
    for finding, reason in acknowledged.items():
        assert len(reason.split()) >= 8, finding
        assert reason.endswith("."), finding


@pytest.mark.parametrize("fixture", ["with_everything", "event_plane", "events_with_key", "tenant"])
def test_cfn_lint_finds_nothing(request: pytest.FixtureRequest, fixture: str) -> None:
    template: Json = request.getfixturevalue(fixture)
    arguments = ManualArgs(regions=["us-east-1", "eu-west-1"], ignore_checks=LINT_ACKNOWLEDGED)
    found = [f"{match.rule.id} {match.message}" for match in lint(json.dumps(template), config=arguments)]
    assert [finding for finding in found if not FALSE_LINT_FINDING.fullmatch(finding)] == []
