"""How a rollout stands, and what an operator can do about it, as commands."""

from __future__ import annotations

from orchestrator.cli.api import Document
from orchestrator.cli.errors import ExitCode
from orchestrator.cli.rollout_options import options_of
from orchestrator.rollouts.records import RolloutStatus, StageStatus


def is_over(rollout: Document) -> bool:
    return not RolloutStatus(rollout["status"]).active


def awaiting_approval(rollout: Document) -> int | None:
    """The stage that someone has to approve of. While the rollout is paused there is something else to do first."""
    return stage_to_approve(rollout) if rollout["status"] != RolloutStatus.PAUSED else None


def stage_to_approve(rollout: Document) -> int | None:
    """The stage that may be approved now, also while the rollout is paused."""
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


def awaits_an_operator(rollout: Document) -> bool:
    return rollout["status"] == RolloutStatus.PAUSED or awaiting_approval(rollout) is not None


def exit_code(rollout: Document) -> ExitCode:
    """Of a command that was to see the rollout to its end."""
    if not is_over(rollout):
        return ExitCode.NOT_READY
    return ExitCode.OK if rollout["status"] == RolloutStatus.SUCCEEDED else ExitCode.FAILED


def next_steps(rollout: Document) -> list[str]:
    name = rollout["rolloutId"]
    if rollout["dryRun"] and is_over(rollout):
        return _after_looking(rollout)
    abort = f"End it: berth rollout abort {name}"
    if stage := awaiting_approval(rollout):
        return [f"Approve of stage {stage}: berth rollout approve {name} --stage {stage}", abort]
    match RolloutStatus(rollout["status"]):
        case RolloutStatus.PENDING | RolloutStatus.RUNNING:
            return [f"Follow it: berth rollout watch {name}", f"Hold it: berth rollout pause {name}", abort]
        case RolloutStatus.PAUSED:
            return [f"Let it go on: berth rollout resume {name}", abort]
        case RolloutStatus.ABORTING:
            return [f"Those under way are finished. Follow that: berth rollout watch {name}"]
        case RolloutStatus.HALTED:
            go_on = f"Go on in spite of what failed: berth rollout resume {name}"
            return [go_on, *_try_again(rollout), *_go_back(rollout)]
        case RolloutStatus.ABORTED:
            return [*_try_again(rollout), *_move_the_others(rollout), *_go_back(rollout)]
        case RolloutStatus.SUCCEEDED | RolloutStatus.FAILED:
            return [*_try_again(rollout), *_go_back(rollout)]


def _after_looking(rollout: Document) -> list[str]:
    if rollout["retry"]:
        # It looked only at those that would have failed before.
        return [f"How to move all that were planned: berth rollout status {rollout['retry']}"]
    if rollout["status"] == RolloutStatus.SUCCEEDED:
        return [f"Do it, with the same options: berth rollout start{options_of(rollout['wish'])}"]
    if rollout["failed"]:
        return ["Look into one that would fail: berth tenant TENANT. Then plan again, before berth rollout start."]
    return [f"It did not look at all of them. Plan again: berth rollout plan{options_of(rollout['wish'])}"]


def _move_the_others(rollout: Document) -> list[str]:
    """Those that had no turn before the rollout was aborted, if there are any."""
    if rollout["succeeded"] + rollout["failed"] + rollout["skippedSince"] == rollout["selected"]:
        return []
    if rollout["retry"]:
        return [f"Try again those that are left: berth rollout retry {rollout['retry']}"]
    what = "Return" if rollout["undo"] else "Move"
    return [f"{what} those that are left: berth rollout start{options_of(rollout['wish'])}"]


def _try_again(rollout: Document) -> list[str]:
    return (
        [f"Try again only those that failed: berth rollout retry {rollout['rolloutId']}"] if rollout["failed"] else []
    )


def _go_back(rollout: Document) -> list[str]:
    if not rollout["succeeded"]:
        return []
    return [f"Return those that were moved: berth rollout start --undo {rollout['rolloutId']}"]
