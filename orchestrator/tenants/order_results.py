"""The results of operators' orders: accepted, changed, unchanged or refused; and the steps towards them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from orchestrator.common.stack_arns import name_of
from orchestrator.common.tenant_ids import TenantId
from orchestrator.releases.ports import Parameters
from orchestrator.releases.published import fingerprint
from orchestrator.releases.records import Release
from orchestrator.releases.template_contract import KMS_KEY_PARAMETER
from orchestrator.tenants.admission import Refusal, Refused
from orchestrator.tenants.deleting import describe_messages, messages_of, unfinished_work, why_not_adopted
from orchestrator.tenants.history import RecordedChange
from orchestrator.tenants.names import Names
from orchestrator.tenants.order_messages import busy, message_counts
from orchestrator.tenants.own_stack import why_out_of_reach
from orchestrator.tenants.ports import Pin, Queues, SeenTenant, TenantDescriptions, UnfinishedWork
from orchestrator.tenants.records import Attempt, Lock, Metadata, Operation, Request


@dataclass(frozen=True, slots=True)
class Description:
    """The labels, pin and tier of a tenant whose create is requested."""

    labels: Mapping[str, str] | None
    pin: Pin
    tier: str | None = None


@dataclass(frozen=True, slots=True)
class Accepted:
    """The operation was started, or was running already."""

    attempt: Attempt
    execution: str


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The tenant is already in the requested state."""

    reason: str


@dataclass(frozen=True, slots=True)
class Changed:
    """The labels or the pin of the tenant were changed, which needs no operation."""

    reason: str
    before: Mapping[str, object]
    after: Mapping[str, object]


OrderResult = Accepted | Changed | Unchanged | Refused


def described(change: RecordedChange, result: str) -> Changed | Unchanged:
    if change.before == change.after:
        return Unchanged(result)
    return Changed(result, change.before, change.after)


def queue_given(metadata: Metadata, reason: str) -> Changed:
    """The tenant has its queue at once, without an operation."""
    url, arn = (metadata.queue.url, metadata.queue.arn) if metadata.queue else (None, None)
    return Changed(reason, {"queueUrl": None, "queueArn": None}, {"queueUrl": url, "queueArn": arn})


def record_create(
    attempt: Attempt,
    description: Description,
    request: Request,
    only_if: SeenTenant | None,
    descriptions: TenantDescriptions,
    *,
    at: datetime,
) -> bool:
    """Record the labels and pin of a tenant, and that its create is about to be started.

    Until the create has begun, only this row shows that it was requested. A delete right after the create needs it. If
    getQueue has started a create before, that create keeps these labels, and is refused if its version is not the pin.
    """
    change = descriptions.describe(
        attempt.tenant,
        labels=description.labels,
        pin=description.pin,
        request=request,
        at=at,
        asked_for=attempt,
        tier=description.tier,
        only_if=only_if,
    )
    return change is not None


def accepted_or_busy(lock: Lock, requested: Attempt, request: Request) -> Accepted | Refused:
    """Accepted if the lock's holder is the requested operation, otherwise busy."""
    holder = lock.run.attempt
    same = holder.operation is requested.operation
    same &= holder.operation is Operation.DELETE or holder.version == requested.version
    options = _options(request)
    if same and options in (Request(), _options(lock.run.request)):
        return Accepted(holder, lock.run.execution)
    return busy(requested.tenant, lock)


def _options(request: Request) -> Request:
    """The options of the request, without requester, time and reason. The version is in the attempt."""
    return replace(request, by="", resource=None, explicit=False, version=None, asked_at=None, reason="")


def why_not_deleted(
    tenant: TenantId,
    request: Request,
    metadata: Metadata | None,
    *,
    names: Names,
    queues: Queues,
    unfinished: UnfinishedWork | None,
) -> Refused | None:
    """An early refusal of a delete that would lose messages, or leave a stack behind. The delete checks it again."""
    if reason := why_not_adopted(metadata, names, queues):
        return Refused(Refusal.NOT_ADOPTED, reason)
    forced_or_draining = request.force or request.drain_seconds
    # If the stack is out of reach, so is its queue. The delete itself reports the reason.
    is_unchecked = forced_or_draining or why_out_of_reach(metadata, names)
    held = {} if is_unchecked else messages_of(metadata, queues)
    # Draining does not help here: nobody can finish this work while the tenant is withdrawn.
    elsewhere = {} if request.force or not unfinished else unfinished_work(tenant, unfinished)
    held |= elsewhere
    if not held:
        return None
    return Refused(
        Refusal.NOT_EMPTY,
        f"Tenant {tenant} still has messages: {describe_messages(held)}. Nothing was deleted. Receive them, "
        "wait for them to be received (drain), or force the deletion."
        + (" Draining waits for queues only." if elsewhere else ""),
        {"messages": {name: message_counts(messages) for name, messages in held.items()}},
    )


def would_change_stack(
    metadata: Metadata, release: Release | None, parameters: Parameters | None, names: Names
) -> bool:
    """True if the same release would change the stack now, for example to another key."""
    if parameters is None or release is None:
        return False
    made_from = fingerprint(release, parameters(metadata.tenant, release))
    if metadata.deployed is None:
        # Neither the stack's key, if it has one, is recorded, nor whether a stack that was kept ready has learned its
        # tenant. CloudFormation finds out whether the update changes that.
        was_warm = metadata.stack_id is not None and names.is_warm(name_of(metadata.stack_id))
        return KMS_KEY_PARAMETER in release.parameters or (was_warm and made_from is not None)
    return made_from not in (None, metadata.deployed)
