"""`berth tenants`: lists the tenants, page by page."""

from __future__ import annotations

import json

import pytest

from orchestrator.api.tenant_models import MAX_PAGE_SIZE
from orchestrator.cli.errors import ExitCode
from orchestrator.common.tenant_ids import TENANT_ID_MAX_LENGTH, TenantId
from orchestrator.tenants.fleet import MAX_EXAMINED, PAGE_SIZE
from tests.fakes import some_metadata
from tests.unit.cli.conftest import Scene

BOB = TenantId("bob")


def failed(scene: Scene, tenant: TenantId = BOB) -> None:
    scene.api.create(tenant)
    scene.api.begin()
    scene.api.fail()


def fleet(scene: Scene, size: int) -> list[str]:
    names = [f"tenant-{number:04}" for number in range(size)]
    for name in names:
        scene.api.table.plant_metadata(some_metadata(tenant=TenantId(name)))
    return names


def listed(text: str) -> list[str]:
    return [tenant["tenantId"] for tenant in json.loads(text)["tenants"]]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (["--state", "READY"], ["acme", "carol"]),
        (["--state", "failed"], ["bob"]),
        (["--version", "0.2.0"], ["carol"]),
        (["--state", "READY", "--version", "0.1.0"], ["acme"]),
        (["--state", "DELETED"], ["dave"]),
        (["--state", "DELETING"], []),
        ([], ["acme", "carol", "bob"]),
    ],
    ids=" ".join,
)
def test_filters_select_tenants(scene: Scene, filters: list[str], expected: list[str]) -> None:
    scene.has()
    failed(scene)
    scene.has(TenantId("carol"), version="0.2.0")
    scene.has(TenantId("dave"))
    scene.api.delete(TenantId("dave"))
    scene.api.begin()
    scene.api.succeed()
    assert listed(scene.berth("tenants", *filters, "--json").stdout) == expected


def labelled(scene: Scene) -> None:
    scene.has()
    scene.has(TenantId("carol"), version="0.2.0")
    scene.berth("label", "acme", "plan=gold", "team=blue", exits=ExitCode.OK)
    scene.berth("label", "carol", "plan=free", exits=ExitCode.OK)
    scene.berth("pin", "carol", "0.2.0", exits=ExitCode.OK)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (["--label", "plan=gold"], ["acme"]),
        (["--label", "plan=gold", "--label", "team=blue"], ["acme"]),
        (["--label", "plan=free", "--label", "team=blue"], []),
        (["--pinned"], ["carol"]),
        (["--not-pinned"], ["acme"]),
        (["--not-pinned", "--label", "plan=free"], []),
        (["--state", "FAILED", "--label", "plan=free"], []),
    ],
    ids=" ".join,
)
def test_filtered_by_label_and_pin(scene: Scene, filters: list[str], expected: list[str]) -> None:
    labelled(scene)
    result = scene.berth("tenants", *filters, "--json", exits=ExitCode.OK)
    assert listed(result.stdout) == expected


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        (["--label", "tier=gold"], "No tenant has a label tier. Labels in use: plan, team."),
        (["--label", "plan=glod"], "No tenant has the label plan=glod. Values of plan: free, gold."),
        (["--state", "FAILED", "--label", "tier=x"], "No tenant has a label tier. Labels in use: plan, team."),
        (["--version", "9.9.9"], "There is no version 9.9.9. Versions: 0.1.0, 0.2.0."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_filter_that_names_what_does_not_exist_is_refused_with_what_does(
    scene: Scene, filters: list[str], message: str
) -> None:
    labelled(scene)
    result = scene.berth("tenants", *filters, exits=ExitCode.BAD_USAGE)
    assert (result.stdout, result.stderr) == ("", f"Error: {message}\n")


def test_short_pages_of_a_filtered_list_are_followed_to_the_end(scene: Scene) -> None:
    names = fleet(scene, MAX_EXAMINED + 5)
    last = TenantId(names[-1])
    scene.api.table.plant_metadata(some_metadata(tenant=last, labels={"plan": "gold"}))
    assert listed(scene.berth("tenants", "--label", "plan=gold", "--json").stdout) == [names[-1]]
    assert len(scene.api.asked) == 2


def test_the_first_page_of_a_large_fleet_is_shown_with_a_note(scene: Scene) -> None:
    names = fleet(scene, PAGE_SIZE + 1)
    result = scene.berth("tenants")
    assert f"{PAGE_SIZE} tenants: {PAGE_SIZE} READY" in result.stdout
    assert result.stderr.startswith("There are more tenants. List all: --all. Or continue from here: --cursor ")
    cursor = result.stderr.split()[-1]
    assert listed(scene.berth("tenants", "--cursor", cursor, "--json").stdout) == names[PAGE_SIZE:]


def test_as_json_the_cursor_continues_the_list(scene: Scene) -> None:
    names = fleet(scene, 5)
    first = scene.berth("tenants", "--limit", "3", "--json")
    assert listed(first.stdout) == names[:3]
    rest = scene.berth("tenants", "--limit", "3", "--cursor", json.loads(first.stdout)["cursor"], "--json")
    assert listed(rest.stdout) == names[3:]
    assert json.loads(rest.stdout)["cursor"] is None


@pytest.mark.parametrize(
    ("arguments", "expected", "pages"),
    [
        (["--all"], 2 * MAX_PAGE_SIZE + 1, [MAX_PAGE_SIZE] * 3),
        (["--limit", f"{MAX_PAGE_SIZE + 1}"], MAX_PAGE_SIZE + 1, [MAX_PAGE_SIZE, 1]),
        (["--limit", "1"], 1, [1]),
        ([], PAGE_SIZE, [PAGE_SIZE]),
    ],
    ids=["all", "more than a page", "one", "default"],
)
def test_all_needed_pages_are_requested(scene: Scene, arguments: list[str], expected: int, pages: list[int]) -> None:
    names = fleet(scene, 2 * MAX_PAGE_SIZE + 1)
    result = scene.berth("tenants", *arguments, "--json", exits=ExitCode.OK)
    assert listed(result.stdout) == names[:expected]
    limits = [asked.partition("limit=")[2] for asked in scene.api.asked]
    assert [int(limit or PAGE_SIZE) for limit in limits] == pages


@pytest.mark.parametrize(
    "arguments",
    [
        ["--limit", "0"],
        ["--all", "--limit", "5"],
        ["--state", "HAPPY"],
        ["--label", "plan"],
        ["-o", "yaml"],
        ["-o", "wide", "--json"],
    ],
    ids=" ".join,
)
def test_invalid_options_are_bad_usage_before_any_request(scene: Scene, arguments: list[str]) -> None:
    assert scene.berth("tenants", *arguments).exit_code == ExitCode.BAD_USAGE
    assert scene.connected_to == []


def test_the_longest_ids_fit_a_terminal(scene: Scene) -> None:
    longest = TenantId.parse("x" * TENANT_ID_MAX_LENGTH)
    scene.has(longest)
    scene.api.upgrade(longest)
    scene.api.begin()
    scene.api.fail()
    lines = scene.berth("tenants").stdout.splitlines()
    assert lines[1].rstrip() == f"{longest} UPDATE_FAILED 0.1.0   2026-11-16 12:00"
