"""Watching a rollout: bars that move on a terminal, a line whenever something has changed elsewhere."""

from __future__ import annotations

from collections import deque
from functools import partial
from types import TracebackType
from typing import Self

from rich.console import Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.text import Text

from orchestrator.api.answers import RETRY_AFTER_SECONDS
from orchestrator.cli import render
from orchestrator.cli.api import Api, Document
from orchestrator.cli.asking import Asking
from orchestrator.cli.interrupts import holding_interrupts, noting_an_interrupt
from orchestrator.cli.invocation import World
from orchestrator.cli.problems import problem
from orchestrator.cli.progress import REMIND_SECONDS
from orchestrator.cli.rollout_next import awaiting_approval, awaits_an_operator, is_over
from orchestrator.cli.rollout_view import settled, stage_status, target, under_way
from orchestrator.common.times import parse_timestamp
from orchestrator.rollouts.records import RolloutStatus, StageStatus

PATIENCE_SECONDS = 300
"""How long an API that is too busy to answer is asked again: a rollout takes hours, and is not to be lost sight of."""

PACE_SECONDS = 180
"""The pace is that of the last minutes: it changes with how much CloudFormation bears."""

_FOUND = 200
_BAR_WIDTH = 14


def watch(api: Api, world: World, rollout: str) -> Document:
    """Look at the rollout until it is over, or until it waits for an operator and nobody is there."""
    with (
        noting_an_interrupt(f"No longer watching. The rollout goes on. See: berth rollout status {rollout}"),
        RolloutProgress(world) as progress,
    ):
        while True:
            asking = Asking(progress, seconds=PATIENCE_SECONDS, monotonic=world.monotonic, sleep=world.sleep)
            answer = asking(partial(api.rollout, rollout))
            if answer.status != _FOUND:
                raise problem(answer)
            progress.show(answer.body)
            if is_over(answer.body) or (awaits_an_operator(answer.body) and not world.someone_is_there()):
                return answer.body
            world.sleep(max(1, answer.retry_after or RETRY_AFTER_SECONDS))


class Pace:
    """How fast the current stage has been going lately."""

    def __init__(self) -> None:
        self._stage: int | None = None
        self._looks: deque[tuple[float, int]] = deque()

    def look(self, rollout: Document, at: float) -> None:
        stage = rollout["stages"][rollout["currentStage"] - 1]
        moving = rollout["status"] == RolloutStatus.RUNNING and stage["status"] == StageStatus.RUNNING
        if stage["number"] != self._stage or not moving:
            self._looks.clear()
        self._stage = stage["number"]
        if moving:
            self._looks.append((at, settled(stage)))
            while at - self._looks[0][0] > PACE_SECONDS:
                self._looks.popleft()

    def seconds_left(self, rollout: Document) -> float | None:
        """Until the rollout is over, if nobody has to approve of anything and nothing changes. Not known at first."""
        if not self._looks:
            return None
        (began, before), (now, after) = self._looks[0], self._looks[-1]
        if after == before:
            return None
        to_go = rollout["total"] - sum(map(settled, rollout["stages"]))
        bakes = sum(stage["wish"]["bakeSeconds"] for stage in rollout["stages"][rollout["currentStage"] - 1 :])
        return float(to_go * (now - began) / (after - before) + bakes)


class RolloutProgress:
    def __init__(self, world: World) -> None:
        self._world = world
        self._console = render.stderr()
        self._pace = Pace()
        self._rollout: Document | None = None
        self._live = Live(get_renderable=self._frame, console=self._console, refresh_per_second=4)
        self._told: object = None
        self._told_at = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with holding_interrupts():
            self._live.stop()

    def tell(self, what: str) -> None:
        """Why there is nothing new to be shown."""
        if self._is_new(what):
            self._console.print(Text(what, "dim"), soft_wrap=True)

    def show(self, rollout: Document) -> None:
        self._rollout = rollout
        self._pace.look(rollout, self._world.monotonic())
        if self._console.is_interactive:
            with holding_interrupts():
                self._live.start()
            self._live.refresh()
        elif self._is_new(_what_counts(rollout)):
            self._console.print(Text(self._line(rollout), "dim"), soft_wrap=True)

    def _is_new(self, what: object) -> bool:
        """Or so old that a log needs a sign of life."""
        now = self._world.monotonic()
        if what == self._told and now - self._told_at < REMIND_SECONDS:
            return False
        self._told, self._told_at = what, now
        return True

    def _line(self, rollout: Document) -> str:
        stage = rollout["stages"][rollout["currentStage"] - 1]
        parts = [
            f"stage {stage['number']} of {len(rollout['stages'])} {stage_status(rollout, stage).plain}",
            f"{settled(stage)} of {stage['total']} done",
            *([f"{stage['failed']} failed"] if stage["failed"] else []),
            *([f"{stage['inFlight']} under way"] if stage["inFlight"] else []),
            *self._times(rollout),
        ]
        return f"Rollout {rollout['rolloutId']} {rollout['status']}: {', '.join(parts)}"

    def _times(self, rollout: Document) -> list[str]:
        if is_over(rollout):
            return []
        elapsed = (self._world.now() - parse_timestamp(rollout["createdAt"])).total_seconds()
        left = self._pace.seconds_left(rollout)
        return [render.duration(elapsed), *([] if left is None else [f"about {render.duration(left)} left"])]

    def _frame(self) -> Group:
        """Asked for several times a second, so that the time runs between two looks."""
        rollout = self._rollout
        if rollout is None:
            return Group()
        name = rollout["rolloutId"]
        what = "Dry run" if rollout["dryRun"] else "Rollout"
        heading = Text.assemble(f"{what} {name} to {target(rollout)}: ", render.state(rollout["status"]))
        heading.append("".join(f", {each}" for each in self._times(rollout)))
        table = render.columns("Stage", "", "Done", "Failed (may)", "Under way", "Status")
        for stage in rollout["stages"]:
            failed = f"{stage['failed']} ({stage['tolerated']})" if stage["failed"] else ""
            table.add_row(
                str(stage["number"]),
                ProgressBar(total=max(1, stage["total"]), completed=settled(stage), width=_BAR_WIDTH),
                f"{settled(stage)}/{stage['total']}",
                Text(failed, "bold red"),
                under_way(rollout, stage),
                stage_status(rollout, stage),
            )
        awaited = _awaited(rollout)
        return Group(heading, table, *([Text(awaited, "magenta")] if awaited else []))


def _awaited(rollout: Document) -> str | None:
    name = rollout["rolloutId"]
    if stage := awaiting_approval(rollout):
        return f"Approve of it, in another terminal: berth rollout approve {name} --stage {stage}"
    if rollout["status"] == RolloutStatus.PAUSED:
        return f"Let it go on, from another terminal: berth rollout resume {name}"
    return None


def _what_counts(rollout: Document) -> object:
    """What a log is told of at once. Who is under way is no news until something came of it."""
    stages = [(stage_status(rollout, stage).plain, settled(stage), stage["failed"]) for stage in rollout["stages"]]
    return rollout["status"], rollout["currentStage"], stages
