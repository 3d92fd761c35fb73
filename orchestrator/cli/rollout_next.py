"""The state of a rollout for an operator, and the commands that the operator can run next."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.cli.api import Document
from orchestrator.cli.errors import ExitCode
from orchestrator.cli.next_step import NextStep, lines
from orchestrator.cli.rollout_options import options_of
from orchestrator.rollouts.records import Order, RolloutStatus, StageStatus


def is_over(rollout: Document) -> bool:
    return not RolloutStatus(rollout["status"]).active


def awaiting_approval(rollout: Document) -> int | None:
    """The stage that has to be approved next. ``None`` while the rollout is paused: it has to be resumed first."""
    return stage_to_approve(rollout) if rollout["status"] != RolloutStatus.PAUSED else None


def stage_to_approve(rollout: Document) -> int | None:
    """The stage that can be approved now, even while the rollout is paused."""
    if is_over(rollout) or rollout["status"] == RolloutStatus.ABORTING:
        return None
    return next(
        (
            stage["number"]
            for stage in rollout["stages"]
            if stage["status"] == StageStatus.AWAITING_APPROVAL and stage["approvedBy"] is None
        ),
        None,
    )


def stage_to_promote(rollout: Document) -> int | None:
    """The stage that bakes. A wait for approval ends by an approval."""
    return int(rollout["currentStage"]) if rollout["bakedUntil"] and not is_over(rollout) else None


def awaits_an_operator(rollout: Document) -> bool:
    return rollout["status"] == RolloutStatus.PAUSED or awaiting_approval(rollout) is not None


def exit_code(rollout: Document) -> ExitCode:
    """The exit code of a command that waits until the rollout has ended."""
    if not is_over(rollout):
        return ExitCode.NOT_READY
    return ExitCode.OK if rollout["status"] == RolloutStatus.SUCCEEDED else ExitCode.FAILED


def next_steps(rollout: Document, *, bake_ended: bool = False, withdrawn: bool = False) -> list[str]:
    """The commands that an operator may want next, without those that would be refused.

    ``bake_ended`` if the last order has ended the bake. ``withdrawn`` if the rollout's release is withdrawn now: then
    nothing moves to it any more.
    """
    if rollout["dryRun"] and is_over(rollout):
        return _after_dry_run(rollout, withdrawn=withdrawn)
    name = rollout["rolloutId"]
    if rollout["status"] == RolloutStatus.ABORTING:
        return [f"Updates that are running are being finished. Watch them: berth rollout watch {name}"]
    watch = NextStep("watch", "Watch it", f"berth rollout watch {name}")
    running = rollout["status"] in (RolloutStatus.PENDING, RolloutStatus.RUNNING)
    steps = [watch] if running and awaiting_approval(rollout) is None else []
    steps += [
        step for step in rollout_steps(rollout, withdrawn=withdrawn) if not (bake_ended and step.verb == "promote")
    ]
    before, after = steps[: _undo_at(steps)], steps[_undo_at(steps) :]
    remaining = _move_remaining(rollout) if rollout["status"] == RolloutStatus.ABORTED and not withdrawn else []
    return [*lines(before), *remaining, *lines(after), *_take_out(rollout, withdrawn=withdrawn)]


def _undo_at(steps: Sequence[NextStep]) -> int:
    return next(number for number, step in enumerate(steps) if step.verb == "undo")


def rollout_steps(rollout: Document, *, withdrawn: bool = False) -> list[NextStep]:
    """Everything that can be done with a rollout, and why what cannot be done now cannot.

    ``withdrawn`` if the rollout's release is withdrawn now.
    """
    name, status = rollout["rolloutId"], RolloutStatus(rollout["status"])
    over, aborting = is_over(rollout), status is RolloutStatus.ABORTING
    halted, paused = status is RolloutStatus.HALTED, status is RolloutStatus.PAUSED
    undone = _is_undone(rollout)
    is_withdrawn = "The release was withdrawn." if withdrawn else None
    has_ended = "The rollout has ended." if over and not halted else None
    is_aborting = "The rollout is being aborted." if aborting else None
    approvable, promotable = stage_to_approve(rollout), stage_to_promote(rollout)
    waits = awaiting_approval(rollout) is not None
    stopped = has_ended or is_aborting
    return [
        NextStep(
            "approve",
            f"Approve stage {approvable}" if approvable else "Approve",
            f"berth rollout approve {name} --stage {approvable or 'NUMBER'}",
            None if approvable else stopped or "No stage awaits approval.",
            suggested=waits,
            stage=approvable,
        ),
        NextStep(
            "resume",
            "Accept the failures and continue" if halted else "Resume it",
            f"berth rollout resume {name}",
            stopped
            or ("The rollout was undone." if halted and undone else None)
            or (is_withdrawn if halted else None)
            or (None if halted or paused else "The rollout is neither paused nor halted."),
        ),
        NextStep(
            "pause",
            "Pause it",
            f"berth rollout pause {name}",
            stopped or ("It is paused already." if paused else "It has halted already." if halted else None),
            suggested=not waits,
        ),
        NextStep(
            "retry",
            "Retry the failed tenants",
            f"berth rollout retry {name}",
            ("The rollout was undone." if undone else None)
            or (None if rollout["failed"] else "No tenant has failed.")
            or is_withdrawn
            or (None if over else "The rollout has not ended."),
        ),
        NextStep(
            "undo",
            "Move the tenants back",
            f"berth rollout start --undo {name}",
            (None if rollout["succeeded"] else "No tenant was moved.")
            or (None if over else "The rollout has not ended: abort it first.")
            or ("A dry run moves nothing." if rollout["dryRun"] else None),
            # After an undo, neither another undo nor an undo of the undo is suggested.
            suggested=rollout["undo"] is None and not undone,
        ),
        NextStep(
            "abort",
            "Close it" if halted else "Abort it",
            f"berth rollout abort {name}",
            stopped,
        ),
        NextStep(
            "change",
            "Change its pace",
            f"berth rollout change {name} --concurrency NUMBER",
            stopped or ("It has halted." if halted else None),
            suggested=False,
        ),
        NextStep(
            "promote",
            "Do not wait for the end of the bake" if rollout["bakedUntil"] else "Do not wait",
            f"berth rollout promote {name} --stage {promotable or 'NUMBER'}",
            None if promotable and not aborting else stopped or _why_not_promoted(approvable),
            suggested=bool(rollout["bakedUntil"]) and not waits and not paused,
            stage=promotable,
        ),
    ]


def _why_not_promoted(approvable: int | None) -> str:
    return f"Stage {approvable} awaits approval." if approvable else "No stage bakes."


def _take_out(rollout: Document, *, withdrawn: bool) -> list[str]:
    """The advice for a release that a rollout has halted on. An undo moves tenants to releases that they had."""
    if rollout["status"] != RolloutStatus.HALTED or withdrawn or rollout["undo"] or rollout["version"] is None:
        return []
    return [f"If the release is at fault, take it out: berth release withdraw {rollout['version']}"]


def depends_on_withdrawal(rollout: Document) -> bool:
    """True if the next steps are others once the rollout's release is withdrawn."""
    return rollout["version"] is not None and (
        next_steps(rollout) != next_steps(rollout, withdrawn=True)
        or rollout_steps(rollout) != rollout_steps(rollout, withdrawn=True)
    )


def _after_dry_run(rollout: Document, *, withdrawn: bool) -> list[str]:
    if rollout["retry"]:
        # This dry run checked only the tenants that would have failed in the earlier one.
        return [f"See how to move all planned tenants: berth rollout status {rollout['retry']}"]
    if rollout["status"] == RolloutStatus.SUCCEEDED and withdrawn:
        return [f"Release {rollout['version']} was withdrawn. Plan a rollout to another one: berth rollout plan"]
    if rollout["status"] == RolloutStatus.SUCCEEDED:
        return [f"Start it with the same options: berth rollout start{options_of(rollout['spec'])}"]
    if rollout["failed"]:
        return ["Check a tenant that would fail: berth tenant TENANT. Then plan again, before berth rollout start."]
    return [f"It did not check all tenants. Plan again: berth rollout plan{options_of(rollout['spec'])}"]


def _move_remaining(rollout: Document) -> list[str]:
    """The advice for tenants that had no turn before the rollout was aborted, if there are any."""
    if rollout["succeeded"] + rollout["failed"] + rollout["skippedSince"] == rollout["selected"]:
        return []
    if rollout["retry"]:
        return [f"Retry the remaining tenants: berth rollout retry {rollout['retry']}"]
    what = "Move the remaining tenants back" if rollout["undo"] else "Move the remaining tenants"
    return [f"{what}: berth rollout start{options_of(rollout['spec'])}"]


def _is_undone(rollout: Document) -> bool:
    """True if an undo of the rollout was started. Only documents of a single rollout have a history."""
    return any(entry.get("order") == Order.UNDO for entry in rollout.get("history", []))
