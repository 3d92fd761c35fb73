"""`berth verify`: whether a deployment does what it is for, seen by one tenant's life."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer
from rich.text import Text

from orchestrator.cli import render
from orchestrator.cli.errors import ExitCode
from orchestrator.cli.invocation import Invocation, Json, Timeout
from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.deadlines import DEADLINE

if TYPE_CHECKING:
    from orchestrator.cli.verification import Step, Verification

_TIMEOUT = int(DEADLINE.total_seconds())
PREFIX = "berth-verify-"
_STYLES = {"proven": "green", "failed": "bold red", "left out": "magenta"}
_RESULT_WIDTH = max(map(len, _STYLES)) + 1
_NAME_WIDTH = len("earlier release") + 1


def verify(context: typer.Context, timeout: Timeout = _TIMEOUT, as_json: Json = False) -> None:
    """See a deployment work: create a tenant, use its queue, delete it.

    After make deploy, with an operator's credentials. A tenant berth-verify-...
    is created, a message goes through its queue, it is moved to the release
    before and back, looked at by a survey, and deleted. That takes some minutes
    on AWS. What was proven is told line by line; of what was not, the error and
    its likely cause. No other tenant is touched.

    The tenant is deleted also when a step fails, and after Ctrl-C. --timeout is
    for each step but the delete, which waits for what is going on. The exit code
    is 8 if something was not proven, and 6 if the control plane was out of reach.
    """
    # Not at the top: it loads the SDK, and --help does not need it.
    from orchestrator.cli.verification import Verification

    here: Invocation = context.obj
    steps: list[Step] = []
    with here.telling_errors(as_json=as_json):
        control_plane = here.find()
        tenant = TenantId.parse(f"{PREFIX}{here.world.now():%Y%m%d-%H%M%S}-{secrets.token_hex(2)}")
        verification = Verification(here, control_plane, control_plane.api(), tenant, timeout=timeout)
        try:
            for step in verification.steps():
                steps.append(step)
                if not as_json:
                    _show(step)
        except BaseException as error:
            _clear_away(verification, tenant)
            if as_json and isinstance(error, KeyboardInterrupt):
                render.show_json(_document(tenant, steps, proven=False))
            raise
        failed = any(step.result == "failed" for step in steps)
        if as_json:
            render.show_json(_document(tenant, steps, proven=not failed))
        else:
            _show_sum(steps)
        if verification.may_be_there:
            render.note(f"Tenant {tenant} may still be there. Delete it: {_by_hand(tenant)}")
    if verification.out_of_reach:
        raise typer.Exit(ExitCode.NO_CONTROL_PLANE)
    raise typer.Exit(ExitCode.ATTENTION if failed else ExitCode.OK)


def _clear_away(verification: Verification, tenant: TenantId) -> None:
    if verification.may_be_there:
        render.note(f"Deleting tenant {tenant}, so that nothing is left. If that is cut short: {_by_hand(tenant)}")
        verification.clear_away()
        render.note(f"Its delete is under way. See how it ends: berth tenant {tenant}")


def _by_hand(tenant: TenantId) -> str:
    return f"berth delete {tenant} --force --yes --wait"


def _told(step: Step) -> dict[str, object]:
    return {
        "name": step.name,
        "result": step.result.value,
        "detail": step.detail,
        "advice": step.advice or None,
        "seconds": round(step.seconds, 1),
    }


def _show(step: Step) -> None:
    result = Text(step.result.ljust(_RESULT_WIDTH), _STYLES[step.result])
    took = f" ({render.duration(step.seconds)})" if step.seconds >= 1 else ""
    render.show_line(result + Text(f"{step.name:<{_NAME_WIDTH}}", "cyan") + Text(f"{step.detail}{took}"))
    if step.advice:
        render.show_line(" " * (_RESULT_WIDTH + _NAME_WIDTH) + step.advice, "dim")


def _document(tenant: TenantId, steps: Sequence[Step], *, proven: bool) -> dict[str, object]:
    return {"tenantId": tenant.value, "proven": proven, "steps": [_told(step) for step in steps]}


def _show_sum(steps: Sequence[Step]) -> None:
    counts = Counter(step.result.value for step in steps)
    told = ", ".join(f"{counts[result]} {result}" for result in _STYLES if counts[result])
    render.show_line(f"\n{told}.")
