"""The conditions that hold within bounded time after the last fault and the last request.

The rule on ended executions and the scheduled reconciler alone have to achieve it.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

from orchestrator.adapters.migration import needs_adoption
from orchestrator.common.tenant_ids import TenantId
from orchestrator.reconciling.health import SETTLING_EVERY
from orchestrator.reconciling.records import SETTLING, Spec
from orchestrator.tenants.deadlines import DEADLINE
from orchestrator.tenants.history import HistoryEntry
from orchestrator.tenants.records import Status
from orchestrator.tenants.stack_status import StackCondition, condition
from tests.simulation.aws.executions import State
from tests.simulation.aws.timed_executions import AWAIT_STACK_SECONDS
from tests.simulation.environment import LINGER, VERSIONS, Environment

BOUND = DEADLINE + SETTLING_EVERY + LINGER + timedelta(seconds=AWAIT_STACK_SECONDS) + timedelta(minutes=5)
"""Every operation ends within this time after the last fault. The last minutes are for retries and late events."""


def check_operations_end(env: Environment) -> None:
    env.end_faults()
    env.pass_time(env.clock.now() + BOUND)
    for run in env.runs.values():
        assert not run.alive, f"{run.name} goes on for ever, at {run.at}"
    for tenant in env.tenants:
        assert env.table.lock(tenant) is None, f"{tenant} is locked for ever"
        for audit in env.table.audits(tenant):
            assert audit.status is not Status.STARTED, f"{audit.execution} says Started for ever"
    _check_history(env)
    _check_stacks_were_asked_once(env)


def check_repair(env: Environment) -> None:
    """A survey finds the changes that CloudFormation has made since no operation waited for them any more."""
    while any(condition(stack.status) is StackCondition.WORKING for stack in env.stacks.living):
        env.pass_time(env.clock.now() + SETTLING_EVERY)
    env.adopt()
    for tenant in env.tenants:
        left = needs_adoption(env.table.seen(tenant), env.stacks.names)
        assert not left, f"{tenant} is in no list, or its stack not on record, though everybody was adopted"
    vanished = {tenant: env.checks.of[tenant].vanished for tenant in env.tenants}
    for _ in range(4):
        env.reconcile(Spec())
        done = env.reconciliations.recorded[SETTLING]
        acted = done.repaired + done.ordered
        env.check_now()
        env.pass_time(env.clock.now() + (BOUND if acted else timedelta(seconds=1)))
        if not acted:
            break
    _check_the_neighbours(env)
    for tenant in env.tenants:
        _check_the_truth(env, tenant)
        _check_the_version(env, tenant, vanished[tenant])
    _check_history(env)


def _check_the_neighbours(env: Environment) -> None:
    """Another control plane's tenants are its own: they are neither changed nor reported."""
    found = {finding.subject for finding in env.reconciliations.recorded[SETTLING].findings}
    for stack in env.neighbours:
        assert env.stacks.all[stack.stack_id].stack is stack, f"{stack.stack_id} was touched"
        name = stack.stack_id.split("/")[1]
        assert name not in found, f"{name} is a finding, but is another control plane's"


def _check_the_truth(env: Environment, tenant: TenantId) -> None:
    checks = env.checks.of[tenant]
    if checks.served:
        assert checks.living, f"{tenant} is served, but there is no stack"
        assert checks.fits(checks.served), f"{checks.served} is served, but there is {checks.living[0]}"
    delete = checks.requests.latest_delete()
    if delete and env.runs[delete].state is State.SUCCEEDED:
        assert checks.deleted, f"{delete} was accepted after every create and has succeeded, but {tenant} is there"
    if checks.deleted:
        assert checks.living == [], f"{tenant} is deleted, but there is {checks.living}"
    for version in VERSIONS:
        env.people.ask(tenant, version)


def _check_the_version(env: Environment, tenant: TenantId, version: str | None) -> None:
    """Nobody has asked for another version than the one at which the tenant vanished."""
    checks = env.checks.of[tenant]
    metadata = checks.rows().metadata
    pinned = metadata is not None and metadata.pinned_version is not None
    if version is None or checks.served is None or pinned or env.table.release(version) is None:
        return
    before = env.table.release(version)
    if before and metadata and metadata.tier != before.tier:
        return  # Somebody has asked for another tier since.
    came_back_at = checks.served[1]
    same = env.checks.same_content(came_back_at, version)
    assert same, f"{tenant} vanished at {version}, and was brought back at {came_back_at}"
    env.checks.seen["brought back at its version"] += 1


def _check_history(env: Environment) -> None:
    """Every operation that began has exactly one end in its tenant's history."""
    for tenant in env.tenants:
        history: dict[str, list[Status]] = {}
        for entry in env.table.history(tenant):
            if isinstance(entry, HistoryEntry):
                history.setdefault(entry.execution, []).append(entry.status)
        for execution, statuses in history.items():
            # Clocks differ, so it may look as if it had ended before it began.
            once = sorted(statuses) in (["Started", "Success"], ["Failure", "Started"], ["Failure"])
            assert once, f"{execution} has the history {statuses}"
        for audit in env.table.audits(tenant):
            if audit.execution in env.runs:
                assert audit.status in history[audit.execution], f"{audit.execution} did not end as {audit.status}"


def _check_stacks_were_asked_once(env: Environment) -> None:
    asked = Counter(
        (event.client_token, event.status)
        for fake in env.stacks.all.values()
        for event in fake.events
        if event.is_stack and event.client_token and event.status.endswith("_IN_PROGRESS")
    )
    for (token, status), times in asked.items():
        assert times == 1, f"CloudFormation was asked {times} times for {token}: {status}"
