"""Stacks of an earlier system: the setting adds their prefixes to the tenants' prefix, and changes nothing else."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App

from orchestrator.tenants.names import Names
from stacks.setting_values import SettingInvalid
from stacks.settings import Settings
from tests.fakes import NAMES
from tests.stacks.conftest import LEGACY_PREFIXES
from tests.stacks.policies import documents, listed, spelled

Json = dict[str, Any]


def resources(statement: Json) -> list[str]:
    return [spelled(resource) for resource in listed(statement.get("Resource", []))]


def legacy(arns: list[str]) -> list[str]:
    """The patterns that the setting adds for each pattern of tenants' stacks and queues."""
    return [
        arn.replace(NAMES.tenant_prefix, prefix)
        for arn in arns
        if NAMES.tenant_prefix in arn
        for prefix in LEGACY_PREFIXES
    ]


def test_every_permission_on_tenants_stacks_and_queues_includes_those_of_the_earlier_system(
    with_everything: Json, with_legacy_stacks: Json
) -> None:
    before, now = by_holder(with_everything), by_holder(with_legacy_stacks)
    assert before.keys() == now.keys()
    widened = 0
    for holder, statements in before.items():
        for old, new in zip(statements, now[holder], strict=True):
            patterns = [arn for arn in resources(old) if arn.endswith(("*/*", "*"))]
            assert sorted(resources(new)) == sorted(resources(old) + legacy(patterns))
            assert {**old, "Resource": None, "Condition": None} == {**new, "Resource": None, "Condition": None}
            widened += resources(old) != resources(new)
    assert widened > 20


def by_holder(template: Json) -> dict[str, list[Json]]:
    """The statements of each resource, or of the role that they are for. The CDK moves those that are too many for a
    role's policy into a managed policy."""
    found: dict[str, list[Json]] = defaultdict(list)
    for logical_id, statement in documents(template):
        roles = template["Resources"][logical_id].get("Properties", {}).get("Roles", [])
        found[roles[0]["Ref"] if roles else logical_id].append(statement)
    return {holder: sorted(each, key=_unwidened) for holder, each in found.items()}


def _unwidened(statement: Json) -> str:
    """The statement as it is without the setting."""
    kept = [each for each in resources(statement) if not any(prefix in each for prefix in LEGACY_PREFIXES)]
    return json.dumps({**statement, "Resource": sorted(kept), "Condition": None}, sort_keys=True)


def test_every_function_knows_the_prefixes(with_legacy_stacks: Json, with_everything: Json) -> None:
    for template, expected in ((with_legacy_stacks, ",".join(LEGACY_PREFIXES)), (with_everything, None)):
        functions = [each for each in template["Resources"].values() if each["Type"] == "AWS::Lambda::Function"]
        found = {
            each["Properties"]["Environment"]["Variables"].get("BERTH_LEGACY_STACK_PREFIXES") for each in functions
        }
        assert found == {expected}


def test_an_output_has_the_prefixes_for_the_command_that_adopts_them(
    with_legacy_stacks: Json, with_everything: Json
) -> None:
    assert with_legacy_stacks["Outputs"]["LegacyStackPrefixes"]["Value"] == ",".join(LEGACY_PREFIXES)
    assert "LegacyStackPrefixes" not in with_everything["Outputs"]


def test_events_of_their_stacks_resume_operations_too(with_legacy_stacks: Json) -> None:
    rules = [
        each["Properties"]["EventPattern"]
        for each in with_legacy_stacks["Resources"].values()
        if "EventPattern" in each.get("Properties", {})
    ]
    (pattern,) = (each for each in rules if each["source"] == ["aws.cloudformation"])
    prefixes = [spelled(each["prefix"]).partition(":stack/")[2] for each in pattern["detail"]["stack-id"]]
    assert prefixes == [NAMES.tenant_prefix, *LEGACY_PREFIXES]
    assert [each for each in rules if any(prefix in json.dumps(each) for prefix in LEGACY_PREFIXES)] == [pattern]


def settings(value: object, tmp_path: Path, name: str = "Berth") -> Settings:
    context = {"berth:dependencies": "host", "berth:legacyStackPrefixes": value, "berth:name": name}
    return Settings.from_context(App(context=context).node, tmp_path)


@pytest.mark.parametrize(
    ("value", "prefixes"),
    [
        ("old-tenant-", ("old-tenant-",)),
        ("old-tenant-, platform-", ("old-tenant-", "platform-")),
        (["old-tenant-", "platform-"], ("old-tenant-", "platform-")),
        ("", ()),
        ([], ()),
    ],
    ids=str,
)
def test_the_setting_is_a_list_or_a_text_separated_by_commas(
    value: object, prefixes: tuple[str, ...], tmp_path: Path
) -> None:
    assert settings(value, tmp_path).names == Names("Berth", prefixes)


@pytest.mark.parametrize(
    "value",
    ["*", "ol", "old_", "old-*", "-old", "1old", "x" * 65, "Ber", "Berth", 7, True, [7], "a1,b2c,c3d,d4e,e5f,f6g"],
)
def test_a_prefix_that_is_too_wide_stops_the_deployment(value: object, tmp_path: Path) -> None:
    with pytest.raises(SettingInvalid, match="berth:legacyStackPrefixes"):
        settings(value, tmp_path)


def test_a_prefix_never_matches_one_of_berths_own_stacks(tmp_path: Path) -> None:
    """Otherwise the control plane's functions could delete it."""
    for prefix in ("plat", "platform-berthE"):
        with pytest.raises(SettingInvalid, match="Berth's own stack"):
            settings(prefix, tmp_path, name="platform-berth")
    assert settings("plat", tmp_path).names.legacy_prefixes == ("plat",)
