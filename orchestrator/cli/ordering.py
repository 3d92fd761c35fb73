"""Sends an operator's request to the API and, with --wait, waits until its operation has ended."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import typer

from orchestrator.api.tenant_models import GetTenant
from orchestrator.api.tenant_routes import GET_TENANT
from orchestrator.cli import render
from orchestrator.cli.api import Api, Document
from orchestrator.cli.errors import ExitCode
from orchestrator.cli.interrupts import noting_an_interrupt
from orchestrator.cli.invocation import Invocation
from orchestrator.cli.problems import kind_of, problem
from orchestrator.cli.tenant import show_summary
from orchestrator.cli.watching import watch
from orchestrator.client.retrying import BUSY_RETRY_SECONDS, too_busy
from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.admission import Refusal

if TYPE_CHECKING:
    from orchestrator.client.transport import ApiAnswer

_DONE = 200
_STARTED = 202


def carry_out(
    context: typer.Context,
    tenant: str,
    order: Callable[[Api, TenantId], ApiAnswer],
    *,
    timeout: float | None,
    as_json: bool,
    warning: Callable[[TenantId], str | None] | None = None,
    can_wait: bool = True,
) -> None:
    """Send the request, and wait up to ``timeout`` seconds until its operation has ended; ``None`` does not wait.

    ``warning`` returns what the operation destroys, if anything, which the operator has to confirm. ``can_wait`` is
    true if the command has the option --wait.
    """
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        tenant_id = TenantId.parse(tenant)
        if warning and (destroys := warning(tenant_id)):
            here.confirm(destroys, answer=tenant_id.value, called="the tenant's id")
        api = here.connect()
        with here.retrying(timeout or BUSY_RETRY_SECONDS) as retrying:
            with noting_an_interrupt(
                f"Interrupted. If the operation was started, it continues. See: berth tenant {tenant}"
            ):
                answer = retrying(lambda: order(api, tenant_id), in_the_way if timeout else too_busy)
            if answer.status not in (_DONE, _STARTED):
                raise problem(answer, can_wait=can_wait, waited=retrying.seconds if timeout else None)
            ended = None
            if timeout and answer.status == _STARTED:
                with noting_an_interrupt(f"Stopped waiting. The operation continues. See: berth tenant {tenant}"):
                    ended = watch(
                        answer.body,
                        partial(api.send_request, GET_TENANT, GetTenant(tenant_id=tenant_id.value)),
                        retrying,
                    )
        if ended is not None:
            _show_ended(ended, as_json=as_json)
            code = ExitCode.OK
        else:
            code = _show_ordered(answer, as_json=as_json, waited=retrying.seconds if timeout else None)
    raise typer.Exit(code)


def in_the_way(answer: ApiAnswer) -> str | None:
    return str(answer.body["detail"]) if kind_of(answer) == Refusal.BUSY else too_busy(answer)


def _show_ended(tenant: Document, *, as_json: bool) -> None:
    if as_json:
        render.show_json(tenant)
    else:
        show_summary(tenant)


def _show_ordered(answer: ApiAnswer, *, as_json: bool, waited: float | None) -> ExitCode:
    ordered = answer.body
    if as_json:
        render.show_json(ordered)
    elif answer.status == _DONE:
        render.show_line(ordered["detail"])
    else:
        render.show_pairs(
            {
                "tenant": ordered["tenantId"],
                "state": render.state(ordered["state"]),
                "operation": f"{render.operation(ordered)}, attempt {ordered['attempt']}",
                "execution": ordered["execution"],
            }
        )
    if answer.status == _DONE:
        return ExitCode.OK
    see_result = f"See its result: berth tenant {ordered['tenantId']}"
    if waited is None:
        # Not "was started": the same request twice starts one operation.
        render.note(f"The operation is running. {see_result}")
        return ExitCode.OK
    render.note(f"The operation is still running after {waited:.0f} s. {see_result}")
    return ExitCode.NOT_READY
