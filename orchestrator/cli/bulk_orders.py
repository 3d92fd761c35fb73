"""Sends the same request for every tenant of a selection, and shows what became of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import typer

from orchestrator.api.tenant_models import GetTenant
from orchestrator.api.tenant_routes import GET_TENANT
from orchestrator.cli import render
from orchestrator.cli.api import Api, Document
from orchestrator.cli.errors import ExitCode, error_document, explain, sdk_errors
from orchestrator.cli.interrupts import came_of_an_interrupt, noting_an_interrupt
from orchestrator.cli.invocation import Invocation
from orchestrator.cli.problems import problem
from orchestrator.cli.watching import watch
from orchestrator.common.errors import BerthError
from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.selections import listed

if TYPE_CHECKING:
    from orchestrator.cli.selection import Selection
    from orchestrator.client.transport import ApiAnswer

_DONE, _STARTED = 200, 202

Order = Callable[[Api, TenantId], "ApiAnswer"]


@dataclass(frozen=True, slots=True)
class _Result:
    tenant: str
    code: ExitCode
    line: str
    document: Document

    @property
    def as_document(self) -> dict[str, object]:
        return {"tenantId": self.tenant, "exitCode": self.code.value, "result": self.document}


def carry_out_on_all(
    context: typer.Context,
    selection: Selection,
    order: Order,
    *,
    does: str,
    confirmed: bool,
    timeout: float | None,
    as_json: bool,
) -> None:
    """Send the request for every selected tenant, and wait up to ``timeout`` seconds for each; ``None`` does not wait.

    ``does`` is the verb and the object of the warning. The operator confirms the number of tenants, because a selection
    may match more than was meant.
    """
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        api = here.connect()
        tenants, left_out = _selected(here, api, selection), []
        if tenants and not confirmed:
            names = listed(tenant.value for tenant in tenants)
            warning = f"This {does} {render.counted(len(tenants), 'tenant')}: {names}."
            here.confirm(warning, answer=str(len(tenants)), called="the number of tenants")
            # Others may have changed tenants while the operator was reading. Nobody has confirmed tenants that are new.
            still = frozenset(_selected(here, api, selection))
            left_out = [_left_out(tenant) for tenant in tenants if tenant not in still]
            tenants = [tenant for tenant in tenants if tenant in still]
        with noting_an_interrupt("Interrupted. Operations that were started continue. See: berth tenants"):
            results = [*_results(here, api, tenants, order, timeout), *left_out]
        if as_json:
            render.show_json({"results": [result.as_document for result in results]})
        else:
            _show(results)
    raise typer.Exit(next((result.code for result in results if result.code), ExitCode.OK))


def _selected(here: Invocation, api: Api, selection: Selection) -> list[TenantId]:
    with here.retrying() as retrying:
        found, _ = selection.find(api, retrying)
    return [TenantId.parse(tenant["tenantId"]) for tenant in found]


def _left_out(tenant: TenantId) -> _Result:
    line = f"Tenant {tenant} does not match any more: it was changed before you confirmed. Nothing was done to it."
    return _Result(tenant.value, ExitCode.REFUSED, line, error_document(ExitCode.REFUSED, line))


def _results(here: Invocation, api: Api, tenants: list[TenantId], order: Order, timeout: float | None) -> list[_Result]:
    """All requests are sent before the first is waited for, so that the operations run at the same time."""
    with here.retrying() as retrying:
        results = [_ordered(tenant, partial(retrying, partial(order, api, tenant))) for tenant in tenants]
    if timeout is None:
        return results
    return [_ended(here, api, result, timeout) if result.document.get("execution") else result for result in results]


def _ordered(tenant: TenantId, send: Callable[[], ApiAnswer]) -> _Result:
    try:
        answer = send()
    except BerthError as error:
        return _failed(tenant.value, error)
    except sdk_errors() as error:
        return _unanswered(tenant.value, error, "The operation may have been started all the same.")
    if answer.status not in (_DONE, _STARTED):
        return _failed(tenant.value, problem(answer))
    body = answer.body
    line = body["detail"] if answer.status == _DONE else f"{render.operation(body)}, attempt {body['attempt']}: started"
    return _Result(tenant.value, ExitCode.OK, line, body)


def _ended(here: Invocation, api: Api, started: _Result, timeout: float) -> _Result:
    look = partial(api.send_request, GET_TENANT, GetTenant(tenant_id=started.tenant))
    try:
        with here.retrying(timeout) as retrying:
            ended = watch(started.document, look, retrying)
    except BerthError as error:
        return _failed(started.tenant, error)
    except sdk_errors() as error:
        return _unanswered(started.tenant, error, "The operation was started.")
    if ended is None:
        return _Result(started.tenant, ExitCode.NOT_READY, f"still running after {timeout:.0f} s", started.document)
    return _Result(started.tenant, ExitCode.OK, f"{render.operation(started.document)}: done", ended)


def _failed(tenant: str, error: BerthError) -> _Result:
    failure = explain(error)
    return _Result(tenant, failure.code, failure.line, failure.document)


def _unanswered(tenant: str, error: Exception, started: str) -> _Result:
    """The result of a tenant whose request got no answer. The other tenants' results are shown all the same."""
    if came_of_an_interrupt(error):
        raise error
    failure, advice = explain(error), f"{started} See: berth tenant {tenant}"
    document = error_document(failure.code, failure.line, [advice])
    return _Result(tenant, failure.code, f"{failure.line} {advice}", document)


def _show(results: list[_Result]) -> None:
    if not results:
        render.show_line("No tenant matches. See all tenants: berth tenants")
        return
    for result in results:
        render.show_line(f"{result.tenant}: {result.line}")
    done = sum(result.code is ExitCode.OK for result in results)
    render.note(f"{done} of {render.counted(len(results), 'tenant')} done or started. See: berth tenants")
