"""docs/own-events.md and the schemas say what is published."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from orchestrator.own_events import schemas
from orchestrator.own_events.kinds import KINDS, Kind, schema_of

PAGE = (Path(__file__).parents[3] / "docs" / "own-events.md").read_text(encoding="utf-8")


def test_the_command_of_the_page_prints_the_schema_of_every_kind(capsys: pytest.CaptureFixture[str]) -> None:
    assert f"`python -m {schemas.__name__}`" in PAGE
    schemas.main()
    assert json.loads(capsys.readouterr().out) == {kind.value: schema_of(kind) for kind in Kind}


@pytest.mark.parametrize("kind", Kind)
def test_each_schema_is_valid_and_describes_every_field(kind: Kind) -> None:
    Draft202012Validator.check_schema(schema_of(kind))
    assert all(each.description for each in KINDS[kind].fields.values())


def test_the_page_lists_every_kind_with_its_description() -> None:
    rows = dict(re.findall(r"^\| `([a-z.]+)` \| (.+) \|$", PAGE, re.MULTILINE))
    assert rows == {kind.value: spec.description for kind, spec in KINDS.items()}


def test_the_example_of_the_page_is_valid() -> None:
    (example,) = (json.loads(each) for each in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL))
    Draft202012Validator(schema_of(Kind(example["kind"]))).validate(example)
    assert set(example["data"]) == set(KINDS[Kind(example["kind"])].fields)
