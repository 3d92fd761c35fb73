"""docs/own-events.md and docs/own-events.json say what is published."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from orchestrator.own_events.kinds import KINDS, Kind, schema_of
from orchestrator.own_events.schemas import DOCUMENT, written

PAGE = (Path(__file__).parents[3] / "docs" / "own-events.md").read_text(encoding="utf-8")


def test_the_document_is_up_to_date_with_the_declared_kinds() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == written(), "run `make openapi`"


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
