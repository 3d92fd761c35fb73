"""Detects the harm of a forged event by comparing everything before and after it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any
from urllib.parse import urlsplit

from orchestrator.common.tenant_ids import TenantId
from orchestrator.rollouts.records import Result, Rollout
from orchestrator.tenants.records import Operation, Status
from tests.adapters.bad_input.classifying import at
from tests.adapters.bad_input.fleet import (
    DELETED,
    OWNERS,
    ROLLOUT_TOKEN,
    SERVED,
    STACKS,
    TASK_TOKEN,
    TENANTS,
    own_queue,
    squatters_queue,
)
from tests.adapters.bad_input.world import PROOF, ControlPlane

Picture = Mapping[str, Any]
"""All that there is, by names that say what it is: ``acme metadata.queue``, ``stack arn:aws:...``."""


def picture(plane: ControlPlane) -> Picture:
    return {**dict(_tenants(plane.fake("table"))), **dict(_around_them(plane)), **dict(_rollouts(plane))}


def _tenants(table: Any) -> Iterator[tuple[str, Any]]:
    for tenant in [*table.tenants]:
        for name, row in (("metadata", table.metadata(tenant)), ("lock", table.lock(tenant))):
            if row is not None:
                for each in fields(row):
                    yield f"{tenant} {name}.{each.name}", getattr(row, each.name)
        for audit in table.audits(tenant):
            version = "" if audit.operation is Operation.DELETE else audit.version or ""
            yield f"{tenant} audit {audit.operation} {version}".rstrip(), audit
        for key, entry in table.histories.get(tenant, {}).items():
            yield f"{tenant} history {'#'.join(key[:2])}", entry


def _around_them(plane: ControlPlane) -> Iterator[tuple[str, Any]]:
    stacks, executions = plane.fake("stacks"), plane.fake("executions")
    for release in plane.fake("table").releases():
        yield f"release {release.version}", release
    for version, digest in plane.fake("templates").published:
        yield f"template {version} {digest}", True
    for stack_id, fake in stacks.all.items():
        yield f"stack {stack_id}", fake.stack
        for change_set, drawn_up in fake.change_sets.items():
            yield f"changes {change_set}", drawn_up
    for execution, given in executions.inputs.items():
        yield f"execution {execution.rpartition(':')[2]}", given
    for name in executions.handed_over:
        yield f"handed over {name}", True
    for token in executions.waiting:
        yield f"waiting {token}", True


def _rollouts(plane: ControlPlane) -> Iterator[tuple[str, Any]]:
    ledger, executions = plane.fake("rollout_table"), plane.fake("rollout_executions")
    for rollout in ledger.rollouts(limit=100):
        yield f"rollout {rollout.id}", rollout
        for stage in ledger.stages(rollout.id):
            yield f"stage {rollout.id} {stage.number}", stage
        for outcome in ledger.outcomes(rollout.id):
            yield f"outcome {rollout.id} {outcome.item.tenant}", outcome
        for number, order in enumerate(ledger.orders(rollout.id)):
            yield f"order {rollout.id} {number}", order
    for execution in executions.started:
        yield f"rollout execution {execution.rpartition(':')[2]}", True
    for token in executions.waiting:
        yield f"waiting {token}", True
    for name in plane.fake("manifests").written:
        yield f"manifest {name}", True
    reconciliations = plane.fake("reconciliation_table")
    for name, reconciliation in reconciliations.recorded.items():
        yield f"reconciliation {name}", reconciliation
    for name in reconciliations.started:
        yield f"reconciliation started {name}", True


def differences(before: Picture, after: Picture) -> set[str]:
    nothing = object()
    return {name for name in before.keys() | after.keys() if before.get(name, nothing) != after.get(name, nothing)}


# The rule: what may differ after an event for each function

_ENDS_IT = ("{holder} metadata[.].*", "{holder} lock[.].*", "{holder} audit {operation}", "{holder} history .*")
_RECONCILES = ("lost audit UPDATE 0.2.0", "lost history .*#Failure", "reconciliation .*")
_OF_A_ROLLOUT = ("stage .*", "outcome .*")

DOCUMENTED: Mapping[str, tuple[str, ...]] = {
    # Whoever may ask for a queue may ask for any tenant's, also for one that nobody has created yet.
    "get_queue": ("execution create-(nobody|squatted|failed)-.*",),
    "operators": (),
    # The steps of the operation that holds the tenant's lock, and of no other: {holder} is that tenant, {operation} the
    # lock's own operation. Whoever may invoke them can have an operation do early, or again, what it would do anyway.
    "begin": ("{holder} metadata[.]deployed",),
    # Only whoever has the task token of a create that waits has an effect.
    "await_admission": ("waiting .*",),
    "start_stack": (
        "stack .*/berth-tenant-draining-.*",
        "{holder} lock[.](task_token|started_stack|started_as)",
        "waiting .*",
    ),
    "await_stack": ("{holder} lock[.]task_token", "waiting .*"),
    "inspect_stack": (),
    "finish": _ENDS_IT,
    # Also of an execution that is running and waits for its turn: its own audit row, and nothing else of the tenant.
    "record_failure": (*_ENDS_IT, "{waiting} audit {operation}", "{waiting} history .*#Failure"),
    # A run that waits for its stack looks at it, and then waits again.
    "stack_event": ("waiting .*",),
    # An operation whose execution has ended is given the end that is true.
    "close_execution": _RECONCILES[:2],
    "reconcile": _RECONCILES,
    # The queue that CloudFormation lists in the tenant's own stack.
    "tenant_metadata": (
        f"({'|'.join(map(str, SERVED))}|draining|deleting) metadata[.](deployed|updated_at)",
        "from-before metadata[.]stack_id",
        "running metadata[.](queue|stack_id|created_at|updated_at)",
        "deleting metadata[.](queue|stack_id|version|last_version|deployed|gone_stack_id|created_by)",
    ),
    "tenant_queue": ("handed over .*",),
    "settle_tenant_queue": (),
    "publish_release": (),
    "start_rollout": (),
    "api_proof": (),
    # Whoever may invoke them acts as the rollouts' machine: rows of rollouts, never those of tenants.
    "advance_rollout": ("rollout .*", "stage .*", "manifest .*"),
    "await_operator": ("rollout .*", "waiting .*"),
    "admit_tenant": _OF_A_ROLLOUT,
    "record_outcome": _OF_A_ROLLOUT,
    "review_tenant": (*_OF_A_ROLLOUT, "changes .*/plan-.*"),
}
"""By patterns of names in a :data:`Picture`. Whatever else differs is harm, and so is any of :func:`harm`."""

_NOBODY = "(?!)"
"""A pattern that fits nothing."""


def undocumented(function: str, event: Any, differing: set[str]) -> set[str]:
    """The differences that are not allowed."""
    execution, tenant = at(event, "execution", "Id"), at(event, "execution", "Input", "tenantId")
    holder = next((run for run in OWNERS.holders.values() if run.execution == execution), None)
    waits = OWNERS.waiting if OWNERS.waiting.execution == execution else None
    run = next((run for run in (holder, waits) if run is not None and run.tenant.value == tenant), None)
    names = {
        "holder": re.escape(tenant) if run and run is holder else _NOBODY,
        "waiting": re.escape(tenant) if run and run is waits else _NOBODY,
        "operation": f"{run.attempt.operation} ?{re.escape(run.attempt.release or '')}" if run else _NOBODY,
    }
    allowed = [pattern.format(**names) if "{" in pattern else pattern for pattern in DOCUMENTED[function]]
    return {name for name in differing if not any(re.fullmatch(pattern, name) for pattern in allowed)}


# Effects that must never be, whatever the rule says


def harm(before: Picture, after: Picture) -> Iterator[str]:
    """Everything that is wrong with what there is after a forged event."""
    for tenant in TENANTS:
        yield from _harm_to(tenant, before, after)
    for name, was in before.items():
        history = " history " in name or name.startswith(("release ", "order "))
        if history and after.get(name) != was:
            yield f"{name} was rewritten"
        if name.startswith("stack ") and after.get(name) != was and "-draining-" not in name:
            yield f"{name} was touched"
        if name.startswith("rollout ") and not name.startswith("rollout execution "):
            yield from _false_success(after[name], after)
    yield from (f"{name} was made" for name in after.keys() - before.keys() if name.startswith("stack "))


def _harm_to(tenant: TenantId, before: Picture, after: Picture) -> Iterator[str]:
    queue = after.get(f"{tenant} metadata.queue")
    if queue not in (None, own_queue(tenant)):
        yield f"{tenant} has the queue {queue}, which is none of its own stack's"
    if tenant in SERVED:
        served = queue == own_queue(tenant) and after[f"{tenant} metadata.version"] is not None
        if not served or after[f"{tenant} metadata.withdrawn_by"] is not None:
            yield f"{tenant} is not served any more"
        if after[f"{tenant} metadata.stack_id"] not in (None, *STACKS[tenant]):
            yield f"{tenant} is served from another stack"
    said = [f"{tenant} metadata.{name}" for name in ("labels", "pinned_version", "created_by", "outbound_queue")]
    for name in said:
        if after.get(name, before.get(name)) != before.get(name) and before.get(name) is not None:
            yield f"{name} was changed to {after[name]}"
    if f"{tenant} metadata.tenant" in before and f"{tenant} metadata.tenant" not in after:
        yield f"{tenant} was forgotten, though it has its stack"
    if tenant == DELETED:
        delete = after.get(f"{tenant} audit DELETE")
        if delete is None or delete.status is not Status.SUCCESS or delete.revived_by is not None:
            yield f"{tenant} was brought back"


def _false_success(rollout: Rollout, after: Picture) -> Iterator[str]:
    """A tenant that is said to be where the rollout moves it, though it is elsewhere."""
    of_it = [name for name in after if name.startswith(f"outcome {rollout.id} ")]
    for outcome in [after[name] for name in of_it if after[name].result is Result.SUCCEEDED]:
        if after.get(f"{outcome.item.tenant} metadata.version") != rollout.spec.version:
            yield f"{outcome.item.tenant} is said to have been moved by rollout {rollout.id}"


# Answers

_SECRETS = (TASK_TOKEN, ROLLOUT_TOKEN, PROOF, "a secret", "Signature=")
_QUEUE = re.compile("(https?://[^ ]*/[0-9]{12}/|arn:[^ ]*:sqs:)[^ ]+")
_ANSWERED = "cloudformation-custom-resource-response-euwest1.s3"


def told_too_much(function: str, event: Any, shown: list[str], answers: list[dict[str, Any]]) -> Iterator[str]:
    """Errors in the responses to the caller and to CloudFormation, and in the log."""
    for text in shown:
        yield from (f"told {secret!r}" for secret in _SECRETS if secret in text)
    queues = [own_queue(tenant) for tenant in _tenants_of(event)]
    if function == "inspect_stack":
        # It looks at the stack that bears the tenant's name. Whose stack that is, is seen before anything is published.
        queues += [squatters_queue(tenant) for tenant in _tenants_of(event)]
    own = {text for queue in queues for text in (queue.arn, queue.url)}
    for text in _texts([_parsed(each) for each in shown[:1]] + [each["Data"] for each in answers]):
        # Only a whole value is an answer. A reason may quote what somebody has said.
        if _QUEUE.fullmatch(text) and text not in own:
            yield f"answered with {text}"


def sent_elsewhere(addresses: list[str]) -> Iterator[str]:
    for address in addresses:
        url = urlsplit(address)
        host, port = (url.hostname or ""), url.port
        cloudformations = host in (f"{_ANSWERED}.amazonaws.com", f"{_ANSWERED}.eu-west-1.amazonaws.com")
        if url.scheme != "https" or not cloudformations or port or url.username:
            yield f"sent something to {address}"


def _tenants_of(event: Any) -> list[TenantId]:
    """Those that the event names."""
    text = json.dumps(event, default=str)
    return [tenant for tenant in TENANTS if f'"{tenant}"' in text or f'\\"{tenant}\\"' in text]


def _parsed(text: str) -> Any:
    try:
        result = json.loads(text)
    except ValueError:
        return text
    body = at(result, "body")
    return json.loads(body) if isinstance(body, str) else result


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _texts(list(value.values()))
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)
