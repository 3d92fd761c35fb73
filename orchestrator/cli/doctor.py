"""`berth doctor`: checks the health of Berth, and says what to do about problems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer
from rich.text import Text

from orchestrator.cli import render
from orchestrator.cli.errors import ExitCode
from orchestrator.cli.invocation import Invocation, Json

if TYPE_CHECKING:
    from orchestrator.reconciling.health import Check

_STYLES = {"ok": "green", "unknown": "magenta", "warning": "yellow", "problem": "bold red"}
_VERDICT_WIDTH = max(map(len, _STYLES)) + 1
_NAME_WIDTH = len("control plane") + 1


def doctor(context: typer.Context, as_json: Json = False) -> None:
    """Check the health of Berth, and say what to do about problems.

    First checks your credentials, the control plane's stack and its API. Then the
    control plane checks itself: stuck operations, failed tenants, stacks that are
    kept ready, scheduled functions, undelivered events, and the limits on tenants
    and stacks. At last, the event plane: purges, and connections that are
    disabled, failing or paused, which are the tenants' affair and no problem
    here. Nothing is changed.

    The exit code is 8 if there is a problem, and 6 if the control plane cannot be
    reached or credentials are missing. If there are only warnings it is 0.
    """
    # Imported here because these modules load most of the domain, and --help does not need it.
    from orchestrator.api.reconciliation_answers import health_document
    from orchestrator.cli.examination import Examination
    from orchestrator.reconciling.health import Verdict

    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        examination = Examination(here)
        checks: list[Check] = []
        for check in examination.checks():
            checks.append(check)
            if not as_json:
                _show(check)
        if as_json:
            render.show_json(health_document(checks))
        else:
            _show_summary(checks)
    if examination.out_of_reach:
        raise typer.Exit(ExitCode.NO_CONTROL_PLANE)
    has_problem = any(check.verdict is Verdict.PROBLEM for check in checks)
    raise typer.Exit(ExitCode.ATTENTION if has_problem else ExitCode.OK)


def _show(check: Check) -> None:
    verdict = Text(check.verdict.ljust(_VERDICT_WIDTH), _STYLES[check.verdict])
    render.show_line(verdict + Text(f"{check.name:<{_NAME_WIDTH}}", "cyan") + Text(check.detail))
    if check.advice:
        render.show_line(" " * (_VERDICT_WIDTH + _NAME_WIDTH) + check.advice, "dim")


def _show_summary(checks: Sequence[Check]) -> None:
    counts = Counter(check.verdict.value for check in checks)
    if set(counts) == {"ok"}:
        render.show_line("\nNo problems found.", "green")
        return
    words = {"problem": ("problem", None), "warning": ("warning", None), "unknown": ("unknown", "unknown")}
    parts = [render.counted(counts[verdict], *word) for verdict, word in words.items() if counts[verdict]]
    render.show_line(f"\n{', '.join(parts)}.")
