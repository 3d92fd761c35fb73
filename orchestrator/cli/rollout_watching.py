"""Watching a rollout: progress bars on a terminal; elsewhere a line for every change."""

from __future__ import annotations

from collections import deque
from functools import partial
from types import TracebackType
from typing import Self

from rich.console import Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.text import Text

from orchestrator.api.responses import RETRY_AFTER_SECONDS
from orchestrator.api.rollout_requests import RolloutIdRequest
from orchestrator.api.rollout_routes import GET_ROLLOUT
from orchestrator.cli import render
from orchestrator.cli.api import Api, Document
from orchestrator.cli.interrupts import holding_interrupts, noting_an_interrupt
from orchestrator.cli.invocation import World
from orchestrator.cli.problems import problem
from orchestrator.cli.progress import REMIND_SECONDS
from orchestrator.cli.rollout_next import awaiting_approval, awaits_an_operator, is_over
from orchestrator.cli.rollout_view import running_of_limit, settled, stage_status, target
from orchestrator.client.retrying import Retrying
from orchestrator.common.times import parse_timestamp
from orchestrator.rollouts.records import RolloutStatus, StageStatus

BUSY_RETRY_SECONDS = 300
"""The time for which requests to a busy API are retried. Rollouts take hours, so watching does not end at once."""

PACE_SECONDS = 180
"""The period over which the pace is measured. The pace changes with CloudFormation's throttling."""

_FOUND = 200
_BAR_WIDTH = 14


def watch(api: Api, world: World, rollout: str) -> Document:
    """Watch the rollout until it has ended, or until it waits for an operator and there is no terminal."""
    with (
        noting_an_interrupt(f"No longer watching. The rollout continues. See: berth rollout status {rollout}"),
        RolloutProgress(world) as progress,
    ):
        while True:
            retrying = Retrying(progress, seconds=BUSY_RETRY_SECONDS, monotonic=world.monotonic, sleep=world.sleep)
            answer = retrying(partial(api.send_request, GET_ROLLOUT, RolloutIdRequest(rollout_id=rollout)))
            if answer.status != _FOUND:
                raise problem(answer)
            progress.show(answer.body)
            if is_over(answer.body) or (awaits_an_operator(answer.body) and not world.someone_is_there()):
                return answer.body
            world.sleep(max(1, answer.retry_after or RETRY_AFTER_SECONDS))


class Pace:
    """The recent pace of the current stage."""

    def __init__(self) -> None:
        self._stage: int | None = None
        self._samples: deque[tuple[float, int]] = deque()

    def observe(self, rollout: Document, at: float) -> None:
        stage = rollout["stages"][rollout["currentStage"] - 1]
        running = rollout["status"] == RolloutStatus.RUNNING and stage["status"] == StageStatus.RUNNING
        if stage["number"] != self._stage or not running:
            self._samples.clear()
        self._stage = stage["number"]
        if running:
            self._samples.append((at, settled(stage)))
            while at - self._samples[0][0] > PACE_SECONDS:
                self._samples.popleft()

    def seconds_left(self, rollout: Document) -> float | None:
        """The estimated time until the rollout ends, without waits for approvals. ``None`` while it is not known."""
        if not self._samples:
            return None
        (began, before), (now, after) = self._samples[0], self._samples[-1]
        if after == before:
            return None
        remaining = rollout["total"] - sum(map(settled, rollout["stages"]))
        bakes = sum(stage["spec"]["bakeSeconds"] for stage in rollout["stages"][rollout["currentStage"] - 1 :])
        return float(remaining * (now - began) / (after - before) + bakes)


class RolloutProgress:
    def __init__(self, world: World) -> None:
        self._world = world
        self._console = render.stderr()
        self._pace = Pace()
        self._rollout: Document | None = None
        self._live = Live(get_renderable=self._frame, console=self._console, refresh_per_second=4)
        self._shown: object = None
        self._shown_at = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with holding_interrupts():
            self._live.stop()

    def show_waiting(self, reason: str) -> None:
        """Show why there is no news of the rollout."""
        if self._is_new(reason):
            self._console.print(Text(reason, "dim"), soft_wrap=True)

    def show(self, rollout: Document) -> None:
        self._rollout = rollout
        self._pace.observe(rollout, self._world.monotonic())
        if self._console.is_interactive:
            with holding_interrupts():
                self._live.start()
            self._live.refresh()
        elif self._is_new(_news(rollout)):
            self._console.print(Text(self._line(rollout), "dim"), soft_wrap=True)

    def _is_new(self, what: object) -> bool:
        """True if this has not been shown, or if it was shown so long ago that a log needs a sign of life."""
        now = self._world.monotonic()
        if what == self._shown and now - self._shown_at < REMIND_SECONDS:
            return False
        self._shown, self._shown_at = what, now
        return True

    def _line(self, rollout: Document) -> str:
        stage = rollout["stages"][rollout["currentStage"] - 1]
        parts = [
            f"stage {stage['number']} of {len(rollout['stages'])} {stage_status(rollout, stage).plain}",
            f"{settled(stage)} of {stage['total']} done",
            *([f"{stage['failed']} failed"] if stage["failed"] else []),
            *([f"{stage['inFlight']} running"] if stage["inFlight"] else []),
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
        """The live display. It is rendered several times per second, so that the elapsed time is current."""
        rollout = self._rollout
        if rollout is None:
            return Group()
        name = rollout["rolloutId"]
        kind = "Dry run" if rollout["dryRun"] else "Rollout"
        heading = Text.assemble(f"{kind} {name} to {target(rollout)}: ", render.state(rollout["status"]))
        heading.append("".join(f", {each}" for each in self._times(rollout)))
        table = render.columns("Stage", "", "Done", "Failed (may)", "Running", "Status")
        for stage in rollout["stages"]:
            failed = f"{stage['failed']} ({stage['tolerated']})" if stage["failed"] else ""
            table.add_row(
                str(stage["number"]),
                ProgressBar(total=max(1, stage["total"]), completed=settled(stage), width=_BAR_WIDTH),
                f"{settled(stage)}/{stage['total']}",
                Text(failed, "bold red"),
                running_of_limit(rollout, stage),
                stage_status(rollout, stage),
            )
        awaited = _awaited(rollout)
        return Group(heading, table, *([Text(awaited, "magenta")] if awaited else []))


def _awaited(rollout: Document) -> str | None:
    name = rollout["rolloutId"]
    if stage := awaiting_approval(rollout):
        return f"Approve it in another terminal: berth rollout approve {name} --stage {stage}"
    if rollout["status"] == RolloutStatus.PAUSED:
        return f"Resume it in another terminal: berth rollout resume {name}"
    return None


def _news(rollout: Document) -> object:
    """The values whose changes a log shows at once. The number of running updates is not among them."""
    stages = [(stage_status(rollout, stage).plain, settled(stage), stage["failed"]) for stage in rollout["stages"]]
    return rollout["status"], rollout["currentStage"], stages
