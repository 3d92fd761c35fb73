"""When it is calm: what has to be true within bounded time, though nobody asks for anything any more.

The rule on executions that ended and the scheduled reconciler alone see to it.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

from orchestrator.common.tenant_ids import TenantId
from orchestrator.reconciling.adopting import is_unlisted
from orchestrator.reconciling.health import SETTLING_EVERY
from orchestrator.reconciling.records import SETTLING, Spec
from orchestrator.tenants.deadlines import DEADLINE
from orchestrator.tenants.records import HistoryEntry, Status
from orchestrator.tenants.stack_status import StackCondition, condition
from tests.simulation.harbour import ADOPTION, LINGER, VERSIONS, Harbour
from tests.simulation.player import State
from tests.simulation.timed import AWAIT_STACK_SECONDS

BOUND = DEADLINE + SETTLING_EVERY + LINGER + timedelta(seconds=AWAIT_STACK_SECONDS) + timedelta(minutes=5)
"""As long after the last fault every operation has its end. The last minutes are for retries and for what travels."""


def come_to_rest(harbour: Harbour) -> None:
    harbour.calm_down()
    harbour.pass_time(harbour.clock.now() + BOUND)
    for run in harbour.runs.values():
        assert not run.alive, f"{run.name} goes on for ever, at {run.at}"
    for tenant in harbour.tenants:
        assert harbour.table.lock(tenant) is None, f"{tenant} is locked for ever"
        for audit in harbour.table.audits(tenant):
            assert audit.status is not Status.STARTED, f"{audit.execution} says Started for ever"
    _check_what_was_told(harbour)
    _check_stacks_were_asked_once(harbour)


def repair(harbour: Harbour) -> None:
    """A survey finds what CloudFormation has done since nobody waited for it any more."""
    while any(condition(stack.status) is StackCondition.WORKING for stack in harbour.stacks.living):
        harbour.pass_time(harbour.clock.now() + SETTLING_EVERY)
    harbour.reconcile(ADOPTION)
    for tenant in harbour.tenants:
        left = is_unlisted(tenant.value, harbour.table, harbour.stacks.names)
        assert not left, f"{tenant} is in no list, or its stack not on record, though everybody was adopted"
    vanished = {tenant: harbour.guard.of[tenant].vanished for tenant in harbour.tenants}
    for _ in range(4):
        harbour.reconcile(Spec())
        done = harbour.reconciliations.recorded[SETTLING]
        acted = done.repaired + done.ordered
        harbour.look_around()
        harbour.pass_time(harbour.clock.now() + (BOUND if acted else timedelta(seconds=1)))
        if not acted:
            break
    _check_the_neighbours(harbour)
    for tenant in harbour.tenants:
        _check_the_truth(harbour, tenant)
        _check_the_version(harbour, tenant, vanished[tenant])
    _check_what_was_told(harbour)


def _check_the_neighbours(harbour: Harbour) -> None:
    """Another control plane's tenants are its own: they are neither touched nor told of."""
    found = {finding.subject for finding in harbour.reconciliations.recorded[SETTLING].findings}
    for stack in harbour.neighbours:
        assert harbour.stacks.all[stack.stack_id].stack is stack, f"{stack.stack_id} was touched"
        name = stack.stack_id.split("/")[1]
        assert name not in found, f"{name} is a finding, but is another control plane's"


def _check_the_truth(harbour: Harbour, tenant: TenantId) -> None:
    guard = harbour.guard.of[tenant]
    if guard.served:
        assert guard.living, f"{tenant} is served, but there is no stack"
        assert guard.fits(guard.served), f"{guard.served} is served, but there is {guard.living[0]}"
    delete = guard.asked.latest_delete()
    if delete and harbour.runs[delete].state is State.SUCCEEDED:
        assert guard.deleted, f"{delete} was accepted after every create and has succeeded, but {tenant} is there"
    if guard.deleted:
        assert guard.living == [], f"{tenant} is deleted, but there is {guard.living}"
    for version in VERSIONS:
        harbour.people.ask(tenant, version)


def _check_the_version(harbour: Harbour, tenant: TenantId, version: str | None) -> None:
    """Nobody has asked for another version than the one at which the tenant vanished."""
    guard = harbour.guard.of[tenant]
    metadata = guard.rows().metadata
    pinned = metadata is not None and metadata.pinned_version is not None
    if version is None or guard.served is None or pinned or harbour.table.release(version) is None:
        return
    came_back_at = guard.served[1]
    same = harbour.guard.same_content(came_back_at, version)
    assert same, f"{tenant} vanished at {version}, and was brought back at {came_back_at}"
    harbour.guard.seen["brought back at its version"] += 1


def _check_what_was_told(harbour: Harbour) -> None:
    """One end for each beginning."""
    for tenant in harbour.tenants:
        told: dict[str, list[Status]] = {}
        for entry in harbour.table.history(tenant):
            if isinstance(entry, HistoryEntry):
                told.setdefault(entry.execution, []).append(entry.status)
        for execution, statuses in told.items():
            # Clocks differ, so it may look as if it had ended before it began.
            once = sorted(statuses) in (["Started", "Success"], ["Failure", "Started"], ["Failure"])
            assert once, f"{execution} is told of as {statuses}"
        for audit in harbour.table.audits(tenant):
            if audit.execution in harbour.runs:
                assert audit.status in told[audit.execution], f"{audit.execution} did not end as {audit.status}"


def _check_stacks_were_asked_once(harbour: Harbour) -> None:
    asked = Counter(
        (event.client_token, event.status)
        for fake in harbour.stacks.all.values()
        for event in fake.events
        if event.is_stack and event.client_token and event.status.endswith("_IN_PROGRESS")
    )
    for (token, status), times in asked.items():
        assert times == 1, f"CloudFormation was asked {times} times for {token}: {status}"
