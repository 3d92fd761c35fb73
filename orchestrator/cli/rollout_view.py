"""The output of `berth rollout`, from the API's documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.table import Table
from rich.text import Text

from orchestrator.cli import render
from orchestrator.cli.api import Document
from orchestrator.cli.release_changes import show_moves
from orchestrator.cli.rollout_next import awaiting_approval, is_over, next_steps
from orchestrator.common.times import parse_timestamp
from orchestrator.releases.template_contract import DATA_TYPES, QUEUE_TYPE
from orchestrator.rollouts.documents import share_of
from orchestrator.rollouts.records import Order, Result, RolloutStatus, Skip, StageStatus
from orchestrator.rollouts.resource_changes import ResourceChange

MAX_NAMED = 5
"""The maximum number of tenants that one line names; --json names more."""

_SKIP_REASONS: Mapping[str, tuple[str, str]] = {
    Skip.CURRENT: ("is already at the release", "are already at the release"),
    Skip.NEWER: ("is at a newer release (--allow-downgrade)", "are at a newer release (--allow-downgrade)"),
    Skip.PINNED: ("is pinned to another release", "are pinned to another release"),
    Skip.BUSY: ("is busy with another operation", "are busy with another operation"),
    Skip.NOT_PROVISIONED: ("has no queue in service", "have no queue in service"),
    Skip.DELETED: ("was deleted", "were deleted"),
    Skip.UNKNOWN: ("does not exist", "do not exist"),
    Skip.MOVED_SINCE: ("was moved to another release since", "were moved to another release since"),
    Skip.WITHDRAWN: ("had a release that was withdrawn", "had releases that were withdrawn"),
    Skip.OTHER_TIER: ("is of another tier", "are of another tier"),
    Skip.UNDER_WAY: (
        "has an update that has not started yet: undo again after the update",
        "have updates that have not started yet: undo again after the updates",
    ),
}
_DRY_RUN_RESULTS: Mapping[str, str] = {
    Result.SUCCEEDED: "would change",
    Result.UNCHANGED: "would not change, except for the recorded version",
    Result.SKIPPED: "would be skipped",
    Result.FAILED: "would fail",
}
_NOT_BEGUN = "NOT BEGUN"
_AWAITING = Text("AWAITING APPROVAL", render.state(StageStatus.AWAITING_APPROVAL).style)


def target(rollout: Document) -> str:
    if rollout["version"] is None:
        return "each tenant's earlier release"
    tier = rollout["spec"].get("tier") if "spec" in rollout else None
    return f"{rollout['version']} of the tier {tier}" if tier else str(rollout["version"])


def kind(rollout: Document) -> str:
    if rollout["dryRun"]:
        return "dry run"
    return "undo" if rollout["undo"] else "retry" if rollout["retry"] else ""


def settled(stage: Document) -> int:
    """The number of the stage's tenants that have a result."""
    return int(stage["succeeded"] + stage["failed"] + stage["skipped"])


def stage_status(rollout: Document, stage: Document) -> Text:
    """The stage's status. When a rollout ends early, the stages' recorded statuses stay as they were before the end."""
    if is_over(rollout) and stage["status"] != StageStatus.DONE:
        has_begun = stage["status"] in (StageStatus.RUNNING, StageStatus.BAKING)
        return (
            render.state(rollout["status"]) if has_begun else Text(_NOT_BEGUN, render.state(StageStatus.WAITING).style)
        )
    if stage["status"] == StageStatus.BAKING and stage["bakedUntil"]:
        until = render.moment(stage["bakedUntil"], "%H:%M:%S UTC")
        return Text.assemble(render.state(stage["status"]), f" until {until}")
    if stage["status"] == StageStatus.AWAITING_APPROVAL:
        return Text("APPROVED", render.state(stage["status"]).style) if stage["approvedBy"] else _AWAITING.copy()
    return render.state(stage["status"])


def running_of_limit(rollout: Document, stage: Document) -> str:
    running = stage["status"] == StageStatus.RUNNING and not is_over(rollout)
    return f"{stage['inFlight']} of {stage['concurrency']}" if running else ""


def is_plan(rollout: Document) -> bool:
    """True if the rollout is a dry run that has ended."""
    return bool(rollout["dryRun"]) and is_over(rollout)


def show_status(rollout: Document, compared: Sequence[Document] = (), *, withdrawn: bool = False) -> None:
    """Show everything about the rollout, for `berth rollout status`. ``compared`` has the moves of a plan.

    ``withdrawn`` if the rollout's release is withdrawn now.
    """
    if is_plan(rollout):
        show_plan(rollout, compared)
        return
    show_summary(rollout)
    render.show_line("\nStages", "bold")
    render.stdout().print(_stages(rollout))
    _show_repairs(rollout["repairs"])
    _show_skipped(rollout["skipped"])
    _show_failures(rollout)
    _show_history(rollout["history"])
    _show_next(rollout, withdrawn=withdrawn)
    if rollout["status"] == RolloutStatus.PENDING:
        render.note(f"If it does not start within a minute: berth rollout resume {rollout['rolloutId']}")


def show_started(rollout: Document) -> None:
    """Show the plan of a rollout that was just started."""
    show_summary(rollout)
    _show_planned(rollout)
    _show_repairs(rollout["repairs"])
    _show_skipped(rollout["skipped"])


def show_unchanged(answer: Document) -> None:
    render.show_line(answer["detail"])
    _show_skipped(answer.get("skipped", {}))


def show_ended(rollout: Document, compared: Sequence[Document] = (), *, withdrawn: bool = False) -> None:
    """Show the result of a watched rollout, or that it waits for an operator. ``compared`` has the moves of a plan.

    ``withdrawn`` if the rollout's release is withdrawn now.
    """
    if is_plan(rollout):
        show_plan(rollout, compared)
        return
    render.show_line(Text.assemble(f"Rollout {rollout['rolloutId']} to {target(rollout)}: ", _status(rollout)))
    if stage := awaiting_approval(rollout):
        render.show_line(f"Stage {stage} awaits approval.")
    if rollout["reason"]:
        render.show_line(rollout["reason"])
    render.show_line(f"{_counts(rollout)}.")
    _show_failures(rollout)
    _show_next(rollout, withdrawn=withdrawn)


def show_plan(rollout: Document, compared: Sequence[Document]) -> None:
    """Show the result of a dry run."""
    total, found = rollout["total"], rollout["changes"]
    selected = rollout["selected"]
    checked = (
        f"{total} of {selected} tenants" if total < selected else "the tenant" if total == 1 else f"all {total} tenants"
    )
    render.show_line(
        Text.assemble(
            f"Dry run {rollout['rolloutId']} to {target(rollout)}: ",
            _status(rollout),
            f". It checked {checked} and changed nothing.",
        )
    )
    if rollout["reason"] and not rollout["failed"]:
        render.show_line(rollout["reason"])
    for result, text in _DRY_RUN_RESULTS.items():
        if count := found["tenants"].get(result, 0):
            render.show_line(f"{count:>6} {text}", "bold red" if result == Result.FAILED else "")
    _show_repairs(rollout["repairs"])
    _show_skipped(rollout["skipped"])
    _show_planned(rollout)
    if found["resources"]:
        render.show_line("\nChanges by the change sets, and the number of tenants with each", "bold")
        for each in found["resources"]:
            render.show_line(f"{each['count']:>6} {each['change']}", "bold red" if _may_lose_queue(each) else "")
    show_moves(compared, len(found.get("moves", [])))
    _show_failures(rollout, "Would fail")
    _show_next(rollout)


def _may_lose_queue(change: Document) -> bool:
    """True if the messages in a queue may be lost."""
    parsed = ResourceChange.parse(change["change"])
    return parsed is not None and parsed.resource_type in {QUEUE_TYPE, *DATA_TYPES} and parsed.effect.removes


def show_list(rollouts: Sequence[Document]) -> None:
    table = render.columns("Rollout", "Status", "Version", "OK", "Failed", "Of", "Started (UTC)", "", "By")
    for column in (3, 4, 5):
        table.columns[column].justify = "right"
    for column in (2, 6, 7):
        table.columns[column].no_wrap = True  # The status has most words, and gives way first.
    for rollout in rollouts:
        failed = rollout["failed"]
        table.add_row(
            rollout["rolloutId"],
            doing(rollout),
            rollout["version"] or "earlier",
            str(rollout["succeeded"]),
            Text(str(failed), "bold red" if failed else ""),
            str(rollout["total"]),
            render.moment(rollout["createdAt"], "%Y-%m-%d %H:%M"),
            kind(rollout),
            Text(render.who(rollout["requestedBy"])),
        )
    render.stdout().print(table)


def doing(rollout: Document) -> Text:
    """The rollout's status in words: what it waits for, or where it has stopped."""
    status, stage = RolloutStatus(rollout["status"]), rollout["currentStage"]
    if status is RolloutStatus.PAUSED:
        return Text.assemble(render.state(status), f" in stage {stage}")
    if status is RolloutStatus.HALTED:
        return Text.assemble(render.state(status), f" at stage {stage}")
    if status is not RolloutStatus.RUNNING:
        return render.state(status)
    if awaited := rollout["awaitingStage"]:
        return Text.assemble(_AWAITING, f" of stage {awaited}")
    if rollout["bakedUntil"]:
        until = render.moment(rollout["bakedUntil"], "%H:%M UTC")
        return Text.assemble(render.state(StageStatus.BAKING), f" until {until}")
    return Text.assemble(render.state(status), f" stage {stage} of {rollout['stageCount']}")


def described(rollout: Document) -> str:
    """One line that tells an operator which rollout this is."""
    parts = [
        doing(rollout).plain,
        f"to {target(rollout)}",
        f"{rollout['succeeded']} of {render.counted(rollout['total'], 'tenant')} moved",
        f"started {render.moment(rollout['createdAt'])} by {render.who(rollout['requestedBy'])}",
    ]
    return ", ".join(parts)


def show_summary(rollout: Document) -> None:
    selected = rollout["selected"]
    if rollout["dryRun"]:
        about = f"{rollout['total']} of {selected} are checked"
    else:
        about = f"{selected}, in {render.counted(len(rollout['planned']), 'stage')}"
    suffix = {
        "": "",
        "dry run": " (dry run)",
        "undo": f" (undoes {rollout['undo']})",
        "retry": f" (retries {rollout['retry']})",
    }
    render.show_pairs(
        {
            "rollout": rollout["rolloutId"] + suffix[kind(rollout)],
            "status": _status(rollout),
            "reason": rollout["reason"],
            "to": target(rollout),
            "tenants": about,
            "so far": _counts(rollout) if any(map(settled, rollout["stages"])) else None,
            "started": f"{render.moment(rollout['createdAt'])}, by {render.who(rollout['requestedBy'])}",
            "ended": render.moment(rollout["endedAt"]) if rollout["endedAt"] else None,
            "execution": rollout["execution"],
        }
    )


def _status(rollout: Document) -> Text:
    status = render.state(rollout["status"])
    if not rollout["endedAt"]:
        return status
    took = parse_timestamp(rollout["endedAt"]) - parse_timestamp(rollout["createdAt"])
    return Text.assemble(status, f" after {render.duration(took.total_seconds())}")


def _counts(rollout: Document) -> str:
    left = rollout["total"] - sum(map(settled, rollout["stages"])) - rollout["inFlight"]
    counts = {
        "succeeded": rollout["succeeded"],
        "failed": rollout["failed"],
        "skipped": rollout["skippedSince"],
        "running": rollout["inFlight"],
        "not begun": left,
    }
    return ", ".join(f"{count} {what}" for what, count in counts.items() if count or what == "succeeded")


def _stages(rollout: Document) -> Table:
    table = render.columns("Stage", "Tenants", "OK", "Failed", "May fail", "Skipped", "Running", "Status")
    for stage in rollout["stages"]:
        failed = stage["failed"]
        table.add_row(
            str(stage["number"]),
            str(stage["total"]),
            str(stage["succeeded"]),
            Text(str(failed), "bold red" if failed else ""),
            str(stage["tolerated"]),
            str(stage["skipped"]),
            running_of_limit(rollout, stage),
            stage_status(rollout, stage),
        )
    return table


def _show_planned(rollout: Document) -> None:
    # The spec may have more stages than were planned: the last ones, if there were not enough tenants.
    render.show_line("\nStages", "bold")
    for number, (size, spec) in enumerate(zip(rollout["planned"], rollout["spec"]["stages"], strict=False), 1):
        is_last = number == len(rollout["planned"])
        render.show_line(f"{number:>6}: {', '.join(_planned(size, spec, is_last=is_last))}")


def _planned(size: int, spec: Document, *, is_last: bool) -> list[str]:
    may_fail = share_of(spec["tolerated"]).bound_of(size)
    parts = [
        render.counted(size, "tenant"),
        f"at most {spec['maxConcurrency']} at once",
        f"{may_fail or 'none'} may fail",
    ]
    if spec["approval"]:
        parts.insert(0, "once approved")
    if spec["bakeSeconds"] and (spec["alarm"] or not is_last):
        parts.append(f"then a bake of {render.duration(spec['bakeSeconds'])}")
    if spec["alarm"]:
        parts.append(f"halted by the alarm {spec['alarm']}")
    return parts


def _show_repairs(repairs: Document | None) -> None:
    if repairs is None:
        return
    count = repairs["count"]
    are = "is already at the release, but its" if count == 1 else "are already at the release, but their"
    render.show_line("\nIncluded", "bold")
    render.show_line(f"{count:>6} {are} last update failed: {_named(repairs['tenants'], count)}")


def _show_skipped(skipped: Mapping[str, Document]) -> None:
    if not skipped:
        return
    render.show_line("\nSkipped", "bold")
    for reason, those in skipped.items():
        count, tenants = those["count"], those["tenants"]
        # Operators do not look for tenants that are already at the release, so many of them are not named.
        names = "" if reason == Skip.CURRENT and count > MAX_NAMED else f": {_named(tenants, count)}"
        render.show_line(f"{count:>6} {skip_reason(reason, count)}{names}")


def skip_reason(reason: str, count: int) -> str:
    """Why so many tenants are skipped, as the end of a sentence."""
    one, many = _SKIP_REASONS.get(reason, (reason, reason))
    return one if count == 1 else many


def _show_failures(rollout: Document, heading: str = "Failed") -> None:
    if not rollout["failures"]:
        return
    counted = rollout["failuresCounted"]
    part = f" (causes of {counted} of {rollout['failed']} tenants)" if counted < rollout["failed"] else ""
    render.show_line(f"\n{heading}{part}", "bold red")
    for group in rollout["failures"]:
        render.show_line(f"{group['count']:>6} {render.root_cause(group)}", "red")
        render.show_line(f"{'':>6} {_named(group['tenants'], group['count'])}")


def _show_history(history: Sequence[Document]) -> None:
    if not history:
        return
    render.show_line("\nHistory", "bold")
    table = render.columns("Time (UTC)", "Order", "Asked by", "Reason")
    for entry in history:
        altered = [render.ALTERED] if entry["altered"] else []
        reason = [Text(each) for each in (entry.get("detail"), entry["reason"]) if each]
        table.add_row(
            render.moment_of_entry(entry),
            _order(entry),
            Text(render.who(entry["requestedBy"] or "")),
            Text("\n").join([*altered, *reason]),
        )
    render.stdout().print(table)


def _order(entry: Document) -> str:
    order: str = entry["order"] or ""
    if entry["stage"]:
        return f"{order} stage {entry['stage']}"
    if not entry["rolloutId"]:
        return order
    return f"{order} {'after' if order == Order.START else 'by'} {entry['rolloutId']}"


def _named(tenants: Sequence[str], count: int) -> str:
    named = tenants[:MAX_NAMED]
    more = count - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "")


def _show_next(rollout: Document, *, withdrawn: bool = False) -> None:
    if steps := next_steps(rollout, withdrawn=withdrawn):
        render.note("")
    for step in steps:
        render.note(step)
