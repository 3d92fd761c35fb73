"""What is run of the commands about rollouts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from orchestrator.common.tenant_ids import TenantId
from orchestrator.rollouts.records import Result, RolloutStatus, StageStatus
from tests.fakes import NOON, QUEUE_TABOO, execution_arn
from tests.transcripts.of_events import written
from tests.transcripts.script import script
from tests.transcripts.shell import Shell
from tests.unit.cli.conftest import Scene

TENANTS = [TenantId(f"t{number}") for number in range(8)]
NEW, PINNED = TenantId("new"), TenantId("pinned")


def fleet(shell: Shell) -> Scene:
    """Eight tenants at 0.1.0, one that is pinned there, and one at 0.2.0."""
    scene = shell.begin()
    for tenant in (*TENANTS, PINNED):
        scene.has(tenant)
    scene.api.pin(PINNED, "0.1.0")
    scene.has(NEW, version="0.2.0")
    scene.api.label(TENANTS[0], {"plan": "gold"})
    scene.api.clock.advance(NOON - scene.api.clock.now())
    return scene


def under_way(shell: Shell) -> Scene:
    """A rollout in two stages, the first of which is running: a tenant is done, and one has failed."""
    scene = fleet(shell)
    api = scene.api
    scene.berth("rollout", "start", "--stages", "4,rest", "--bake", "60", "--tolerate", "50%", "--approval")
    api.is_now(status=RolloutStatus.RUNNING, execution=execution_arn(api.newest.name))
    api.stage_is_now(1, status=StageStatus.RUNNING, started_at=NOON, in_flight=2)
    api.came_to(TENANTS[0], Result.SUCCEEDED, from_version="0.1.0")
    api.came_to(TENANTS[1], Result.FAILED, cause=QUEUE_TABOO)
    return scene


def awaits_approval(scene: Scene) -> None:
    scene.api.stage_is_now(1, status=StageStatus.DONE, in_flight=0)
    scene.api.is_now(current_stage=2)
    scene.api.stage_is_now(2, status=StageStatus.AWAITING_APPROVAL)


STAGES: list[tuple[str, RolloutStatus, dict[str, Any]]] = [
    ("The stage is approved.", RolloutStatus.RUNNING, {"status": StageStatus.AWAITING_APPROVAL, "approved_by": "ada"}),
    ("It bakes.", RolloutStatus.RUNNING, {"status": StageStatus.BAKING, "baked_until": NOON + timedelta(hours=1)}),
    ("It bakes, nobody knows until when.", RolloutStatus.RUNNING, {"status": StageStatus.BAKING}),
    ("The rollout halts while the stage waits.", RolloutStatus.HALTED, {"status": StageStatus.AWAITING_APPROVAL}),
    ("The rollout is aborted while the stage bakes.", RolloutStatus.ABORTED, {"status": StageStatus.BAKING}),
    ("The rollout halts after the stage.", RolloutStatus.HALTED, {"status": StageStatus.DONE}),
]
"""States of the second stage."""


def ends(scene: Scene, status: RolloutStatus, reason: str = "") -> None:
    scene.api.is_now(status=status, reason=reason, ended_at=NOON + timedelta(seconds=200))


@script("rollout plan")
def _(shell: Shell) -> None:
    scene = fleet(shell)
    shell.both("rollout plan --no-wait")
    scene = fleet(shell)
    scene.meanwhile = [lambda: None, lambda: ends(scene, RolloutStatus.SUCCEEDED)]
    shell.run("rollout plan --sample 2")
    written("stages.json", [{"size": "1"}, {"size": "rest", "tolerated": "10%"}])
    shell.run("rollout plan --stages-file stages.json --no-wait")
    shell.run("rollout plan --stages-file missing.json --no-wait")
    shell.run("rollout plan --tenant new", "Nothing would be moved.")
    scene = fleet(shell)
    scene.meanwhile = [lambda: ends(scene, RolloutStatus.HALTED, "Stage 1: none could have its turn.")]
    shell.run("rollout plan --tenant t1", "It does not finish.")
    shell.run("rollout plan --sample 2 --all")
    scene = fleet(shell)
    shell.run("rollout plan --to 0.2.0 --tier standard --label plan=gold --share 50% --concurrency 2 --no-wait")
    shell.run("rollout plan --tolerate 1 --bake 30 --alarm errors --approval --stages 1,rest --no-wait")
    shell.run("rollout plan --tenant t1 --allow-downgrade --allow-replacement --reason 'Ticket 4711' --no-wait")
    written("tenants.txt", "t1\nt2\n")
    shell.run("rollout plan --tenants-from tenants.txt --no-wait --json")
    scene = under_way(shell)
    ends(scene, RolloutStatus.HALTED, "Too many have failed.")
    shell.run(f"rollout plan --undo {scene.api.newest.id} --no-wait", "A rollout is undone.")


@script("rollout start")
def _(shell: Shell) -> None:
    fleet(shell)
    shell.run("rollout start")
    shell.both("rollout start", "A rollout is in the way.")
    fleet(shell)
    shell.run("rollout start --json")
    fleet(shell)
    shell.run("rollout start --to 0.2.0 --tier standard --stages 1,50%,rest --tolerate 25% --bake 60 --approval")
    fleet(shell)
    shell.run("rollout start --tenant t1 --tenant t2 --concurrency 1 --alarm errors --reason 'Ticket 4711'")
    fleet(shell)
    shell.run("rollout start --label plan=gold")
    fleet(shell)
    shell.run("rollout start --share 50%")
    fleet(shell)
    shell.run("rollout start --allow-replacement", "There is no terminal.")
    shell.run("rollout start --allow-replacement", typed="no\n")
    shell.run("rollout start --to 0.1.0 --tenant new", "That is a downgrade.")
    shell.run("rollout start --to 0.1.0 --tenant new --allow-downgrade")
    fleet(shell)
    shell.run("rollout start --allow-replacement --yes --json")
    fleet(shell)
    written("stages.json", [{"size": "1"}, {"size": "rest", "tolerated": "10%"}])
    shell.run("rollout start --stages-file stages.json")
    fleet(shell)
    shell.both("rollout start --tenant new", "Nothing has to be moved.")
    written("tenants.txt", "t1\nt2\n")
    shell.run("rollout start --tenants-from tenants.txt --share 100%")
    shell.run("rollout start --tenants-from tenants.txt")
    shell.run("rollout start --tenant nobody")
    shell.run("rollout start --share lots")
    shell.run("rollout start --stages 0")
    shell.run("rollout start --tolerate lots")
    shell.run("rollout start --bake -1")
    shell.run("rollout start --to 9.9.9")
    shell.run("rollout start --tenants-from missing.txt")
    shell.run("rollout start --undo 20261116-120000-ffff")
    scene = fleet(shell)
    scene.meanwhile = [
        lambda: scene.api.is_now(status=RolloutStatus.RUNNING),
        lambda: ends(scene, RolloutStatus.FAILED),
    ]
    shell.run("rollout start --watch")


@script("rollout status")
def _(shell: Shell) -> None:
    scene = under_way(shell)
    shell.both("rollout status")
    awaits_approval(scene)
    shell.both("rollout status", "A stage waits for approval.")
    for status in (RolloutStatus.SUCCEEDED, RolloutStatus.FAILED, RolloutStatus.HALTED, RolloutStatus.ABORTED):
        scene = under_way(shell)
        ends(scene, status, "Why it ended.")
        shell.run(f"rollout status {scene.api.newest.id}", f"It has ended: {status}.")
    for status in (RolloutStatus.PENDING, RolloutStatus.PAUSED, RolloutStatus.ABORTING):
        under_way(shell).api.is_now(status=status)
        shell.run("rollout status", f"It is {status}.")
    for why, rollout, stage in STAGES:
        scene = under_way(shell)
        scene.api.is_now(current_stage=2, status=rollout)
        scene.api.stage_is_now(2, **stage)
        shell.run("rollout status", why)
    shell.run("rollout status 20261116-120000-ffff")
    shell.run("rollout status no-rollout")
    shell.begin()
    shell.both("rollout status", "There is no rollout.")


@script("rollout watch")
def _(shell: Shell) -> None:
    scene = under_way(shell)
    scene.meanwhile = [
        lambda: scene.api.came_to(TENANTS[2], Result.SUCCEEDED),
        lambda: awaits_approval(scene),
        lambda: ends(scene, RolloutStatus.SUCCEEDED),
    ]
    shell.run("rollout watch")
    for status in (RolloutStatus.FAILED, RolloutStatus.HALTED, RolloutStatus.ABORTED, RolloutStatus.PAUSED):
        scene = under_way(shell)
        scene.meanwhile = [lambda scene=scene, status=status: ends(scene, status, "Why it ended.")]
        shell.run("rollout watch", f"It ends: {status}.")
    scene = under_way(shell)
    scene.meanwhile = [lambda: ends(scene, RolloutStatus.SUCCEEDED)]
    shell.run("rollout watch --json")
    shell.begin()
    shell.run("rollout watch", "There is no rollout.")


@script("rollout pause")
def _(shell: Shell) -> None:
    under_way(shell)
    shell.run("rollout pause --reason 'Ticket 4711'")
    under_way(shell)
    shell.both("rollout pause --json")
    ends(under_way(shell), RolloutStatus.SUCCEEDED)
    shell.run("rollout pause", "The rollout is over.")


@script("rollout resume")
def _(shell: Shell) -> None:
    scene = under_way(shell)
    shell.both("rollout resume", "It is not paused.")
    scene.berth("rollout", "pause")
    shell.run("rollout resume --reason 'It looks good.'")
    scene.berth("rollout", "pause")
    shell.run("rollout resume --json")


@script("rollout abort")
def _(shell: Shell) -> None:
    under_way(shell)
    shell.run("rollout abort", "There is no terminal.")
    shell.run("rollout abort", typed="no\n")
    shell.run("rollout abort --reason 'Ticket 4711'", typed="yes\n")
    under_way(shell)
    shell.both("rollout abort --yes")


@script("rollout approve")
def _(shell: Shell) -> None:
    scene = under_way(shell)
    shell.both("rollout approve", "No stage waits.")
    shell.run("rollout approve --stage 9")
    awaits_approval(scene)
    shell.run("rollout approve --stage 2 --reason 'It looks good.'")
    shell.run("rollout status")
    awaits_approval(under_way(shell))
    shell.run("rollout approve --json", "The stage is not named.")
    shell.run("rollout approve --stage 2 --json")


@script("rollout promote")
def _(shell: Shell) -> None:
    scene = under_way(shell)
    shell.run("rollout promote", "No stage bakes.")
    shell.run("rollout promote --stage 1")
    scene.api.stage_is_now(1, status=StageStatus.BAKING, in_flight=0, baked_until=NOON + timedelta(hours=1))
    shell.run("rollout promote --stage 1 --reason 'Nobody complains.'")
    shell.run("rollout status")
    shell.run("rollout promote --stage 1 --json")


@script("rollout change")
def _(shell: Shell) -> None:
    under_way(shell)
    shell.run("rollout change --concurrency 2 --tolerate 3 --bake 30 --reason 'Ticket 4711'")
    shell.run("rollout change --concurrency 2", "It has this pace.")
    shell.run("rollout status")
    shell.run("rollout change --concurrency 3 --json")
    shell.run("rollout change")
    shell.run("rollout change --concurrency 0")
    shell.run("rollout change --tolerate lots")


@script("rollout retry")
def _(shell: Shell) -> None:
    under_way(shell)
    shell.run("rollout retry", "The rollout is running.")
    ends(under_way(shell), RolloutStatus.HALTED, "Too many have failed.")
    shell.run("rollout retry --reason 'It was the network.'")
    ends(under_way(shell), RolloutStatus.HALTED, "Too many have failed.")
    shell.run("rollout retry --json")


@script("rollout list")
def _(shell: Shell) -> None:
    shell.both("rollout list", "There are no rollouts.")
    scene = under_way(shell)
    shell.both("rollout list")
    ends(scene, RolloutStatus.HALTED, "Too many have failed.")
    shell.run("rollout list --limit 1")
    shell.run("rollout list --limit 0")
