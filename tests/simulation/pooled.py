"""Runs in which tenants join the pool, leave it and are deleted, while platforms send into the shared queues.

The actions have a set of their own, so that the other runs stay as their seeds have drawn them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.tiers import POOLED, STANDARD
from orchestrator.tenants.records import Queue
from tests.fakes import a_release
from tests.simulation.actions import (
    Action,
    abort,
    admitted_long_ago,
    ask,
    create,
    delete,
    delete_the_stack_by_hand,
    receive,
    retry,
    survey,
    upgrade,
)
from tests.simulation.environment import Environment
from tests.simulation.faults import Faults
from tests.simulation.seeded_run import SeededRun
from tests.simulation.world import OPERATOR

GOLD = "5.0.0"
OWN_TIERS = (STANDARD, "gold")
REPLAY = "python -m tests.simulation --pool --seed {seed}"


def shared_queues(number: int) -> list[Queue]:
    """Few, so that tenants do share them."""
    names = [f"berth-pool-{each}" for each in range(1, number + 1)]
    return [
        Queue(f"arn:aws:sqs:eu-west-1:000000000000:{name}", f"https://sqs.eu-west-1.amazonaws.com/000000000000/{name}")
        for name in names
    ]


def join(env: Environment, tenant: TenantId, version: str) -> None:
    """An operator creates the tenant in the pool."""
    env.people.create_in(tenant, version, POOLED)


def create_with_a_stack(env: Environment, tenant: TenantId, version: str) -> None:
    env.people.create_in(tenant, version, env.rng.choice(OWN_TIERS))


def create_with_a_stack_and_join(env: Environment, tenant: TenantId, version: str) -> None:
    """At once, so that the create has not begun when the tenant is to join."""
    create_with_a_stack(env, tenant, version)
    join(env, tenant, version)


def move_out(env: Environment, tenant: TenantId, version: str) -> None:
    env.people.move(tenant, version, env.rng.choice(OWN_TIERS))


def send_to_the_pool(env: Environment, tenant: TenantId, version: str) -> None:
    """Platforms ask first, most of the time."""
    if env.rng.random() < 0.7:
        ask(env, tenant, version)
    env.platforms.send_for_a_while(tenant)


def delete_at_once(env: Environment, tenant: TenantId, version: str) -> None:
    """A tenant of the pool cannot be drained."""
    env.people.delete(tenant, version, env.rng.choice((OPERATOR, replace(OPERATOR, force=True))))


ACTIONS: tuple[Action, ...] = (
    *(ask, ask, join, join, create_with_a_stack, create_with_a_stack_and_join, create),
    *(move_out, move_out, move_out, move_out, retry, retry, upgrade),
    *(send_to_the_pool, send_to_the_pool, send_to_the_pool, receive),
    *(delete_at_once, delete_at_once, delete, abort, abort, admitted_long_ago, delete_the_stack_by_hand, survey),
)


def a_run(seed: int, faults: Faults | None = None) -> SeededRun:
    run = SeededRun(seed, faults, ACTIONS, replay=REPLAY)
    run.env.table.record_release(a_release(GOLD, tier="gold"))
    run.env.checks.pool = shared_queues(1 + seed % 2)
    return run


def play_seed(seed: int) -> Counter[str]:
    run = a_run(seed)
    run.play()
    return run.seen
