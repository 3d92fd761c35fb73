"""Watches an operation until it has ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from orchestrator.cli import render
from orchestrator.cli.api import Document
from orchestrator.cli.errors import OperationFailed
from orchestrator.cli.problems import kind_of, problem
from orchestrator.cli.tenant_next import next_steps
from orchestrator.client.retrying import Retrying, too_busy
from orchestrator.tenants.admission import Refusal
from orchestrator.tenants.records import Operation, Status, TenantState

if TYPE_CHECKING:
    from orchestrator.client.transport import ApiAnswer

_FOUND = 200


def watch(started: Document, look: Callable[[], ApiAnswer], retrying: Retrying) -> Document | None:
    """Poll the tenant until the operation has succeeded, and return the tenant. ``None`` if the time is up."""
    tenant = started["tenantId"]
    name = f"{render.operation(started)} of tenant {tenant}"

    def retry_reason(answer: ApiAnswer) -> str | None:
        if busy := too_busy(answer):
            return busy
        if not _is_running(started, answer):
            return None
        if expected_at := _expected_at(started, answer):
            return (
                f"{name} waits for its turn, which is expected at {render.moment(expected_at)}: {started['execution']}"
            )
        return f"{name} is running: {started['execution']}"

    answer = retrying(look, retry_reason)
    if retry_reason(answer):
        return None
    if answer.status != _FOUND:
        raise problem(answer)
    end = _end(started, answer.body)
    if end and end["status"] == Status.FAILURE:
        raise OperationFailed(
            f"{name} failed: {render.root_cause(end) or 'no root cause was recorded'}",
            {"tenantId": tenant, **end},
            [*_advice(end, answer.body), f"Full history: berth tenant {tenant}"],
        )
    return answer.body


def _advice(failed: Document, tenant: Document) -> list[str]:
    name, in_service = tenant["tenantId"], tenant["queueUrl"] is not None
    if failed["operation"] == Operation.DELETE and in_service:
        # A retry never deletes a tenant that is in service.
        return [
            "The tenant is still in service. Delete it once its messages have been received: "
            f"berth delete {name} --drain SECONDS",
            f"Or delete it with its messages: berth delete {name} --force",
        ]
    if tenant["state"] == TenantState.DELETED:
        # The operation was refused because of the delete, so a retry would be refused, too.
        return [f"The tenant was deleted. Create it again, with a new queue: berth create {name}"]
    return next_steps(tenant) or [f"Retry: berth retry {name}"]


def _is_running(started: Document, answer: ApiAnswer) -> bool:
    # A tenant that is being created is unknown until the first state of its execution has run.
    if kind_of(answer) == Refusal.UNKNOWN_TENANT:
        return True
    return answer.status == _FOUND and _end(started, answer.body) is None


def _expected_at(started: Document, answer: ApiAnswer) -> str | None:
    """About when the operation has its turn, if it is a create that waits."""
    audits: list[Document] = answer.body.get("audits", [])
    own = (audit for audit in audits if audit["execution"] == started["execution"])
    return next((audit.get("expectedAt") for audit in own), None)


def _end(started: Document, tenant: Document) -> Document | None:
    """The record of how this execution ended; ``None`` while it is running.

    A later attempt overwrites the audit row, but not the history.
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
