"""`berth verify`: tests a deployment end to end, with one tenant."""

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
    """Test a deployment: create a tenant, use its queue, delete it.

    Run it after make deploy, with an operator's credentials. It creates a tenant
    berth-verify-..., sends a message through its queue, and an event through the
    event plane to that queue if there is one, moves the tenant to the previous
    release and back, reconciles in a dry run, and deletes it. On AWS that takes
    some minutes. It prints one line per step, and for a failed step also the
    error and its likely cause. No other tenant is changed.

    The tenant is also deleted if a step fails, and after Ctrl-C. --timeout
    applies to each step except the delete, which waits for running operations.
    The exit code is 8 if a step failed, and 6 if the control plane could not be
    reached.
    """
    # Imported here because it loads the SDK, and --help does not need it.
    from orchestrator.cli.verification import Verification

    here: Invocation = context.obj
    steps: list[Step] = []
    with here.reporting_errors(as_json=as_json):
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
            _show_summary(steps)
        if verification.may_be_there:
            render.note(f"Tenant {tenant} may still exist. Delete it: {_delete_command(tenant)}")
    if verification.out_of_reach:
        raise typer.Exit(ExitCode.NO_CONTROL_PLANE)
    raise typer.Exit(ExitCode.ATTENTION if failed else ExitCode.OK)


def _clear_away(verification: Verification, tenant: TenantId) -> None:
    if verification.may_be_there:
        render.note(f"Deleting tenant {tenant}. If this is interrupted: {_delete_command(tenant)}")
        verification.clear_away()
        render.note(f"The delete is running. See its result: berth tenant {tenant}")


def _delete_command(tenant: TenantId) -> str:
    return f"berth delete {tenant} --force --yes --wait"


def _step_document(step: Step) -> dict[str, object]:
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
    return {"tenantId": tenant.value, "proven": proven, "steps": [_step_document(step) for step in steps]}


def _show_summary(steps: Sequence[Step]) -> None:
    counts = Counter(step.result.value for step in steps)
    summary = ", ".join(f"{counts[result]} {result}" for result in _STYLES if counts[result])
    render.show_line(f"\n{summary}.")
