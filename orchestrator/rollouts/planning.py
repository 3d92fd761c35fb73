"""Planning: turning a spec and its selected tenants into a rollout, its stages, and a stored list per stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from orchestrator.rollouts.pacing import Pace
from orchestrator.rollouts.records import Item, Rollout, Share, Spec, Stage, StageSpec
from orchestrator.rollouts.selecting import Selected, divide

if TYPE_CHECKING:
    from orchestrator.rollouts.ports import Manifests


def plan(
    rollout_id: str,
    spec: Spec,
    selected: Selected,
    *,
    by: str,
    at: datetime,
    manifests: Manifests,
    reason: str = "",
) -> tuple[Rollout, list[Stage]]:
    """Plan the rollout. This stores the lists of tenants; the rollout and its stages are not recorded yet."""
    items = selected.items
    lists = [(stage, list_) for stage, list_ in zip(spec.stages, divide(items, spec.stages), strict=True) if list_]
    planned = tuple(len(list_) for _, list_ in lists)
    if spec.dry_run:
        sample = items if spec.sample is None else items[: spec.sample.size_of(len(items))]
        lists = [(_dry_run_stage(lists[0][0]), sample)]
    total = sum(len(list_) for _, list_ in lists)
    specs = [stage for stage, _ in lists]
    specs[-1] = without_idle_bake(specs[-1])
    stages = [
        _stage(rollout_id, number, spec, list_, manifests)
        for number, (spec, (_, list_)) in enumerate(zip(specs, lists, strict=True), 1)
    ]
    rollout = Rollout(
        rollout_id,
        spec,
        by,
        at,
        planned,
        total,
        selected.skipped,
        repairs=selected.repairs,
        start_reason=reason,
    )
    return rollout, stages


def _stage(rollout_id: str, number: int, stage: StageSpec, items: Sequence[Item], manifests: Manifests) -> Stage:
    return Stage(
        rollout_id,
        number,
        stage,
        total=len(items),
        tolerated=stage.tolerated.bound_of(len(items)),
        manifest=manifests.write(f"{rollout_id}/stage-{number}", items),
        pace=Pace.initial(stage.max_concurrency),
    )


def without_idle_bake(last: StageSpec) -> StageSpec:
    """The last stage that has tenants. It bakes only if an alarm is watched meanwhile.

    No stage follows, so a bake without an alarm would decide nothing, and keep the tenants from other rollouts.
    """
    return last if last.alarm else replace(last, bake_seconds=0)


def _dry_run_stage(stage: StageSpec) -> StageSpec:
    """The only stage of a dry run. It tolerates all failures, because a dry run changes nothing."""
    return StageSpec(None, stage.max_concurrency, Share(100, percent=True))
