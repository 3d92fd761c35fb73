"""Specs as JSON: missing values have defaults, and stored values are read unchanged."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.api.reading import read
from orchestrator.api.rollout_routes import START_ROLLOUT
from orchestrator.common.tenant_ids import TenantId
from orchestrator.rollouts.documents import share_of, spec_document, spec_from
from orchestrator.rollouts.records import Share, Spec, StageSpec
from tests.unit.rollouts.world import a_spec, a_stage_spec, tenant

SHARES = st.one_of(st.builds(Share, st.integers(1, 999_999)), st.builds(Share, st.integers(1, 100), st.just(True)))
BOUNDS = st.one_of(st.builds(Share, st.integers(0, 999_999)), st.builds(Share, st.integers(0, 100), st.just(True)))
VERSIONS = st.from_regex(r"[0-9]{1,4}\.[0-9]{1,4}\.[0-9]{1,4}", fullmatch=True)
TENANTS = st.from_regex(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,8}[A-Za-z0-9])?", fullmatch=True).map(TenantId.parse)
ROLLOUT_IDS = st.from_regex(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{4}", fullmatch=True)
NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,10}", fullmatch=True)


def stages_with(sizes: st.SearchStrategy[Share | None]) -> st.SearchStrategy[StageSpec]:
    return st.builds(
        StageSpec,
        size=sizes,
        max_concurrency=st.integers(1, 50),
        tolerated=BOUNDS,
        bake_seconds=st.integers(0, 604_800),
        alarm=st.none() | NAMES,
        approval=st.booleans(),
    )


STAGES = st.builds(
    lambda first, last: (*first, last), st.lists(stages_with(SHARES), max_size=9), stages_with(st.none())
)


def specs(**more: st.SearchStrategy[Any]) -> st.SearchStrategy[Spec]:
    fields: dict[str, st.SearchStrategy[Any]] = {
        "version": st.none() | VERSIONS,
        "stages": STAGES,
        "tenants": st.none() | st.lists(TENANTS, min_size=1, max_size=5, unique=True).map(tuple),
        "labels": st.dictionaries(NAMES, st.sampled_from(["", "x", "a b"]), max_size=3),
        "share": st.none() | SHARES,
        "allow_downgrade": st.booleans(),
        "allow_replacement": st.booleans(),
        "dry_run": st.booleans(),
        "sample": st.none() | SHARES,
        "undo": st.none() | ROLLOUT_IDS,
        "retry": st.none() | ROLLOUT_IDS,
    }
    return st.builds(Spec, **fields | more)


@given(specs())
def test_a_spec_survives_a_round_trip_through_json(spec: Spec) -> None:
    written = json.loads(json.dumps(spec_document(spec)))

    assert spec_from(written, max_concurrency=999) == spec


@given(specs(retry=st.none(), undo=st.none(), dry_run=st.just(True)))
def test_a_spec_that_the_api_returns_is_accepted_as_a_request(spec: Spec) -> None:
    event = {"body": json.dumps(spec_document(spec))}

    assert read(START_ROLLOUT, event).spec(max_concurrency=50) == spec


@given(SHARES)
def test_a_share_survives_a_round_trip_through_text(share: Share) -> None:
    assert share_of(str(share)) == share


def test_the_default_is_a_canary_then_ten_percent_then_the_rest() -> None:
    assert spec_from({}, max_concurrency=50) == Spec(
        None,
        (
            StageSpec(Share(1), 50, Share(0), bake_seconds=300),
            StageSpec(Share(10, percent=True), 50, Share(5, percent=True), bake_seconds=300),
            StageSpec(None, 50, Share(5, percent=True), bake_seconds=0),
        ),
    )


def test_a_single_stage_tolerates_no_failure_and_has_no_bake_by_default() -> None:
    (stage,) = spec_from({"stages": [{"size": "rest"}]}, max_concurrency=7).stages

    assert stage == StageSpec(None, 7, Share(0), bake_seconds=0)


def test_values_of_a_stage_override_the_defaults() -> None:
    document = {
        "size": "25%",
        "maxConcurrency": 3,
        "tolerated": "2",
        "bakeSeconds": 0,
        "alarm": "errors",
        "approval": True,
    }

    first, _ = spec_from({"stages": [document, {"size": "rest"}]}, max_concurrency=7).stages

    assert first == StageSpec(Share(25, percent=True), 3, Share(2), 0, "errors", approval=True)


def test_numbers_become_integers_even_if_json_writes_them_as_floats() -> None:
    document = {"stages": [{"size": "rest", "maxConcurrency": 5.0, "bakeSeconds": 1e2}]}

    (stage,) = spec_from(document, max_concurrency=7).stages

    assert (repr(stage.max_concurrency), repr(stage.bake_seconds)) == ("5", "100")


def test_duplicate_tenants_are_removed() -> None:
    spec = spec_from({"tenants": ["b", "a", "b"]}, max_concurrency=7)

    assert spec.tenants == (tenant("b"), tenant("a"))


def test_only_given_values_are_written() -> None:
    document = spec_document(a_spec(a_stage_spec(at_once=2), version="1.2.3"))

    assert document == {
        "version": "1.2.3",
        "stages": [
            {
                "size": "rest",
                "maxConcurrency": 2,
                "tolerated": "0",
                "bakeSeconds": 0,
                "alarm": None,
                "approval": False,
            }
        ],
    }
