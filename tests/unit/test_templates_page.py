"""docs/templates.md names every rule of the contract, with the limits that are checked."""

from __future__ import annotations

import re
from pathlib import Path

from orchestrator.cli.release_publishing import RULES
from orchestrator.releases import template_contract as contract
from orchestrator.releases.findings import Rule
from tests.fakes.templates import EXAMPLE_FILE, EXAMPLE_VERSION

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "templates.md").read_text(encoding="utf-8")
TABLE = PAGE.partition("## The contract")[2].partition("\n## ")[0]


def test_the_table_has_every_rule() -> None:
    listed = re.findall(r"^\| `([a-z-]+)` \|", TABLE, re.MULTILINE)
    assert sorted(listed) == sorted(rule.value for rule in Rule if rule is not Rule.VERSION)


def test_the_output_of_the_check_has_every_rule_in_its_order() -> None:
    output = PAGE.partition("$ berth release check template.json\n")[2].partition("```")[0]
    shown = re.findall(r"^(?:ok|no)    ([a-z-]+): (.*)$", output, re.MULTILINE)
    expected = [(rule.value, meaning) for rule, meaning in RULES.items()]
    assert [(rule, re.sub(r" \([0-9.]+\)$", "", meaning)) for rule, meaning in shown] == expected


def test_the_limits_are_those_that_are_checked() -> None:
    for limit in (contract.MAX_TEMPLATE_BYTES, contract.MAX_DIRECT_BYTES, contract.MAX_RESOURCES, contract.MAX_OUTPUTS):
        assert f"{limit:,}" in TABLE
    assert f"Yours begin at {contract.FIRST_VERSION_OF_OPERATORS}" in PAGE


def test_the_files_that_it_links_are_there() -> None:
    linked = re.findall(r"\]\((templates/[\w.-]+)\)", PAGE)
    assert linked
    assert all((EXAMPLE_FILE.parents[1] / name).is_file() for name in linked)
    assert f'"{EXAMPLE_VERSION}"' in EXAMPLE_FILE.read_text(encoding="utf-8")
