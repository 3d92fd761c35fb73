"""Watching an operation until it has ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from orchestrator.cli import render
from orchestrator.cli.api import Document
from orchestrator.cli.asking import Asking, too_busy
from orchestrator.cli.errors import OperationFailed
from orchestrator.cli.problems import kind_of, problem
from orchestrator.tenants.admission import Refusal
from orchestrator.tenants.records import Operation, Status

if TYPE_CHECKING:
    from orchestrator.adapters.berth_api import ApiAnswer

_FOUND = 200


def watch(started: Document, look: Callable[[], ApiAnswer], asking: Asking) -> Document | None:
    """Look at the tenant until the operation has succeeded, and return it as it is then. ``None``: the time is up."""
    tenant = started["tenantId"]
    what = f"{render.operation(started)} of tenant {tenant}"

    def later(answer: ApiAnswer) -> str | None:
        goes_on = f"{what} is going on: {started['execution']}"
        return too_busy(answer) or (goes_on if _goes_on(started, answer) else None)

    answer = asking(look, later)
    if later(answer):
        return None
    if answer.status != _FOUND:
        raise problem(answer)
    end = _end(started, answer.body)
    if end and end["status"] == Status.FAILURE:
        raise OperationFailed(
            f"{what} failed: {render.root_cause(end) or 'no root cause was recorded'}",
            {"tenantId": tenant, **end},
            [f"{_what_to_do(end, answer.body)}. All that happened: berth tenant {tenant}"],
        )
    return answer.body


def _what_to_do(failed: Document, tenant: Document) -> str:
    name, in_service = tenant["tenantId"], tenant["queueUrl"] is not None
    if failed["operation"] == Operation.DELETE and in_service:
        # A retry never deletes a tenant that is in service.
        return (
            "The tenant is still in service. Ask again, and wait until its messages have been received: "
            f"berth delete {name} --drain SECONDS; or lose them: berth delete {name} --force"
        )
    return f"Try it again: berth retry {name}"


def _goes_on(started: Document, answer: ApiAnswer) -> bool:
    # A tenant that is being created is unknown until its execution has begun.
    if kind_of(answer) == Refusal.UNKNOWN_TENANT:
        return True
    return answer.status == _FOUND and _end(started, answer.body) is None


def _end(started: Document, tenant: Document) -> Document | None:
    """What is recorded about the end of the very execution that was started.

    A later attempt overwrites the audit, but not the history.
    """
    records: list[Document] = [*tenant["audits"], *tenant["history"]]
    return next(
        (
            record
            for record in records
            if record["execution"] == started["execution"] and record["status"] != Status.STARTED
        ),
        None,
    )
