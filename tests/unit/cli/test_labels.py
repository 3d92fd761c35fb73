"""`berth label`."""

from __future__ import annotations

import pytest

from orchestrator.cli.errors import ExitCode
from orchestrator.common.input_limits import MAX_LABELS
from tests.fakes import ACME
from tests.unit.cli.conftest import Scene


def labels(scene: Scene) -> dict[str, str]:
    metadata = scene.api.table.metadata(ACME)
    assert metadata is not None
    return dict(metadata.labels)


def test_labels_are_set_and_removed_and_the_others_stay(scene: Scene) -> None:
    scene.has()
    scene.berth("label", "acme", "plan=free", "team=blue", "note=a=b c", exits=ExitCode.OK)
    result = scene.berth("label", "acme", "plan=gold", "team-", exits=ExitCode.OK)
    assert result.stdout == "Tenant acme has the labels note=a=b c, plan=gold. It is at version 0.1.0.\n"
    assert labels(scene) == {"plan": "gold", "note": "a=b c"}


def test_the_history_has_the_change_with_its_reason_and_an_unchanged_tenant_has_none(scene: Scene) -> None:
    scene.has()
    for _ in range(2):
        scene.berth("label", "acme", "plan=gold", "--reason", "Upsold")
    scene.environment["COLUMNS"] = "200"
    shown = scene.berth("tenant", "acme").stdout
    assert (shown.count("labels: none -> plan=gold"), shown.count("Upsold")) == (1, 1)


@pytest.mark.parametrize(
    "arguments",
    [[], ["plan"], ["-"], ["=x"], ["plan=a", "plan=b"], ["plan=a", "plan-"]],
    ids=" ".join,
)
def test_invalid_labels_are_bad_usage_before_any_request(scene: Scene, arguments: list[str]) -> None:
    assert scene.berth("label", "acme", *arguments).exit_code == ExitCode.BAD_USAGE
    assert scene.connected_to == []


def test_more_labels_than_allowed_are_refused(scene: Scene) -> None:
    scene.has()
    scene.berth("label", "acme", *(f"l{number}=x" for number in range(MAX_LABELS)), exits=ExitCode.OK)
    result = scene.berth("label", "acme", "more=x", exits=ExitCode.BAD_USAGE)
    assert result.stderr == f"Error: Tenant acme would have 21 labels; at most {MAX_LABELS} are allowed.\n"


def test_labels_that_somebody_else_sets_at_the_same_time_are_kept(scene: Scene) -> None:
    scene.has()
    apply = scene.api.table.apply
    others = iter([{"theirs": "x"}])

    def interleaved(transition: object) -> bool:
        for theirs in others:
            scene.api.label(ACME, theirs)
        return bool(apply(transition))  # type: ignore[arg-type]

    scene.api.table.apply = interleaved  # type: ignore[method-assign, assignment]
    scene.berth("label", "acme", "ours=y", exits=ExitCode.OK)
    assert labels(scene) == {"theirs": "x", "ours": "y"}
