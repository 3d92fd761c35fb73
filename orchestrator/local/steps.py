"""Progress for the user, step by step."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn

TELL_SECONDS = 10.0
"""How often a step says how far it is, where there is no terminal."""


class Steps:
    """One line per step: a spinner with the seconds while the step runs, a check mark when it is done.

    Call the object when a step begins, which ends the previous step. Without a terminal it prints plain lines.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._step: str | None = None
        self._began = self._told = 0.0
        self._spinner: Progress | None = None

    @classmethod
    @contextmanager
    def on(cls, console: Console) -> Iterator["Steps"]:
        """Show steps within this block. The last step is shown as done only if no exception was raised."""
        steps = cls(console)
        try:
            yield steps
            steps.done()
        finally:
            steps._stop_spinner()

    def __call__(self, step: str) -> None:
        self.done()
        self._step, self._began = step, monotonic()
        self._told = self._began
        if self._console.is_terminal:
            self._start_spinner(step)
        else:
            self._console.print(f"{step} ...")

    def progress(self, text: str) -> None:
        """How far the step is. Without a terminal, a line now and then shows that it goes on."""
        if self._step is None:
            return
        if self._spinner is not None:
            self._spinner.update(self._spinner.task_ids[0], description=f"{self._step}: {text}")
        elif monotonic() - self._told >= TELL_SECONDS:
            self._told = monotonic()
            self._console.print(f"  {text}", highlight=False)

    def done(self) -> None:
        if self._step is None:
            return
        self._stop_spinner()
        took = f"{monotonic() - self._began:.1f} s"
        self._console.print(f"[green]✓[/] {self._step} [dim]({took})[/]", highlight=False)
        self._step = None

    def _start_spinner(self, step: str) -> None:
        seconds = TextColumn("{task.description} [dim]{task.elapsed:.0f} s[/]")
        self._spinner = Progress(SpinnerColumn(), seconds, console=self._console, transient=True)
        self._spinner.add_task(step, total=None)
        self._spinner.start()

    def _stop_spinner(self) -> None:
        if self._spinner is not None:
            self._spinner.stop()
            self._spinner = None
