"""The state of a rollout for an operator, and the commands that the operator can run next."""

from __future__ import annotations

from orchestrator.cli.api import Document
from orchestrator.cli.errors import ExitCode
from orchestrator.cli.rollout_options import options_of, spec_of
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
    """The stage whose wait can be ended now: it bakes, or awaits approval."""
    if rollout["bakedUntil"] and not is_over(rollout):
        return int(rollout["currentStage"])
    return stage_to_approve(rollout)


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
    name = rollout["rolloutId"]
    if rollout["dryRun"] and is_over(rollout):
        return _after_dry_run(rollout)
    abort = f"Abort it: berth rollout abort {name}"
    if stage := awaiting_approval(rollout):
        return [f"Approve stage {stage}: berth rollout approve {name} --stage {stage}", abort]
    match RolloutStatus(rollout["status"]):
        case RolloutStatus.PENDING | RolloutStatus.RUNNING:
            watch, pause = f"Watch it: berth rollout watch {name}", f"Pause it: berth rollout pause {name}"
            return [watch, pause, abort, *([] if bake_ended else _end_bake(rollout))]
        case RolloutStatus.PAUSED:
            return [f"Resume it: berth rollout resume {name}", abort]
        case RolloutStatus.ABORTING:
            return [f"Updates that are running are being finished. Watch them: berth rollout watch {name}"]
        case RolloutStatus.HALTED:
            resume = f"Accept the failures and continue: berth rollout resume {name}"
            go_on = [] if _is_undone(rollout) or withdrawn else [resume, *_retry(rollout)]
            return [*go_on, *_undo(rollout), f"Close it: berth rollout abort {name}"]
        case RolloutStatus.ABORTED:
            go_on = [] if withdrawn else [*_retry(rollout), *_move_remaining(rollout)]
            return [*go_on, *_undo(rollout)]
        case RolloutStatus.SUCCEEDED | RolloutStatus.FAILED:
            return [*([] if withdrawn else _retry(rollout)), *_undo(rollout)]


def _after_dry_run(rollout: Document) -> list[str]:
    if rollout["retry"]:
        # This dry run checked only the tenants that would have failed in the earlier one.
        return [f"See how to move all planned tenants: berth rollout status {rollout['retry']}"]
    if rollout["status"] == RolloutStatus.SUCCEEDED:
        return [f"Start it with the same options: berth rollout start{options_of(spec_of(rollout))}"]
    if rollout["failed"]:
        return ["Check a tenant that would fail: berth tenant TENANT. Then plan again, before berth rollout start."]
    return [f"It did not check all tenants. Plan again: berth rollout plan{options_of(spec_of(rollout))}"]


def _move_remaining(rollout: Document) -> list[str]:
    """The advice for tenants that had no turn before the rollout was aborted, if there are any."""
    if rollout["succeeded"] + rollout["failed"] + rollout["skippedSince"] == rollout["selected"]:
        return []
    if rollout["retry"]:
        return [f"Retry the remaining tenants: berth rollout retry {rollout['retry']}"]
    what = "Move the remaining tenants back" if rollout["undo"] else "Move the remaining tenants"
    return [f"{what}: berth rollout start{options_of(spec_of(rollout))}"]


def _end_bake(rollout: Document) -> list[str]:
    if not rollout["bakedUntil"]:
        return []
    name, stage = rollout["rolloutId"], rollout["currentStage"]
    return [f"Do not wait for the end of the bake: berth rollout promote {name} --stage {stage}"]


def _retry(rollout: Document) -> list[str]:
    if not rollout["failed"] or _is_undone(rollout):
        return []
    return [f"Retry the failed tenants: berth rollout retry {rollout['rolloutId']}"]


def _is_undone(rollout: Document) -> bool:
    """True if an undo of the rollout was started. Only documents of a single rollout have a history."""
    return any(entry.get("order") == Order.UNDO for entry in rollout.get("history", []))


def _undo(rollout: Document) -> list[str]:
    """The way back, once. Whoever has undone a rollout does not want to hear how to undo the undo."""
    if not rollout["succeeded"] or rollout["undo"] or _is_undone(rollout):
        return []
    return [f"Move the tenants back: berth rollout start --undo {rollout['rolloutId']}"]
