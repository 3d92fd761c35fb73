"""The actions of people, platforms, other teams and an adversary, of which a seeded run draws some.

The sets at the end each have some kind of action in plenty.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from orchestrator.common.tenant_ids import TenantId
from orchestrator.reconciling.control import SCHEDULES
from orchestrator.reconciling.records import SURVEY, Spec
from orchestrator.tenants.records import Attempt, Operation, Request
from orchestrator.tenants.resource_requests import Kind
from tests.simulation.actors.people import with_labels
from tests.simulation.actors.teams import properties
from tests.simulation.environment import VERSIONS, Environment
from tests.simulation.faults import SERVICES
from tests.simulation.world import OPERATOR

FORCE = replace(OPERATOR, force=True)
DRAINS = tuple(replace(OPERATOR, drain_seconds=seconds) for seconds in (60, 300, 1_200))

Action = Callable[[Environment, TenantId, str], None]


def ask(env: Environment, tenant: TenantId, version: str) -> None:
    env.people.ask(tenant, version)


def create(env: Environment, tenant: TenantId, version: str) -> None:
    env.people.create(tenant, version)


def create_with_labels(env: Environment, tenant: TenantId, version: str) -> None:
    pin = env.rng.choice((None, None, version, env.rng.choice(VERSIONS)))
    env.people.create(tenant, version, with_labels({"tier": f"{env.turn}"}, pin))


def ask_and_create_with_labels(env: Environment, tenant: TenantId, version: str) -> None:
    """Request both at once, so that one is accepted before the other has begun."""
    ask(env, tenant, version)
    create_with_labels(env, tenant, version)


def pin(env: Environment, tenant: TenantId, version: str) -> None:
    env.rng.choice((env.people.pin, env.people.unpin, env.people.unpin))(tenant, version)


def upgrade(env: Environment, tenant: TenantId, version: str) -> None:
    env.people.upgrade(tenant, version, replace(OPERATOR, allow_downgrade=env.rng.random() < 0.5))


def delete(env: Environment, tenant: TenantId, version: str) -> None:
    env.people.delete(tenant, version, env.rng.choice((OPERATOR, FORCE, *DRAINS)))


def drain(env: Environment, tenant: TenantId, version: str) -> None:
    env.people.delete(tenant, version, env.rng.choice(DRAINS))


def create_and_delete(env: Environment, tenant: TenantId, version: str) -> None:
    """Request both at once, so that the delete is requested before the create has begun."""
    create(env, tenant, version)
    delete(env, tenant, version)


def retry(env: Environment, tenant: TenantId, version: str) -> None:
    env.people.retry(tenant, version)


def all_at_once(env: Environment, tenant: TenantId, version: str) -> None:
    """Send all requests at once, so that all are admitted before any operation has begun."""
    orders = [ask, create, upgrade, delete]
    env.rng.shuffle(orders)
    for order in orders:
        order(env, tenant, version)


def admitted_long_ago(env: Environment, tenant: TenantId, version: str) -> None:
    """Start an execution whose caller was admitted when the tenant was in another state."""
    operation = env.rng.choice(list(Operation))
    made = [audit.attempt for audit in env.table.audits(tenant) if audit.operation is operation]
    request = env.rng.choice((Request(), Request(force=True)))
    env.people.start_late(Attempt(tenant, operation, version, 1 + max(made, default=0)), request)


def abort(env: Environment, tenant: TenantId, _version: str) -> None:
    running = [run for run in env.runs.values() if run.tenant == tenant and run.running]
    if running:
        # An execution in the middle of a function is preferred.
        at_work = [run for run in running if run.at_work]
        env.cut_short(env.rng.choice(at_work or running), env.rng.choice(("was aborted", "timed out")))


def all_of_them_die(env: Environment, tenant: TenantId, version: str) -> None:
    """A create before it has published, a delete before it has touched the stack, and a create that is refused."""
    env.doomed |= {(tenant, state) for state in ("Finish", "AwaitDrain", "RecordFailure")}
    create(env, tenant, version)
    env.later(120, lambda: env.people.delete(tenant, version, OPERATOR))
    late = Attempt(tenant, Operation.CREATE, version, 5)
    env.later(240, lambda: env.people.start_late(late, Request()))


def throttle(env: Environment, _tenant: TenantId, _version: str) -> None:
    _throttle(env, *env.rng.sample(SERVICES, env.rng.randint(1, len(SERVICES))))


def throttle_cloudformation(env: Environment, _tenant: TenantId, _version: str) -> None:
    _throttle(env, "stacks")


def _throttle(env: Environment, *services: str) -> None:
    env.faults = replace(env.faults, throttled=frozenset(services))
    env.later(env.rng.choice((20.0, 200.0, 1_000.0)), lambda: no_longer_throttle(env))


def no_longer_throttle(env: Environment) -> None:
    env.faults = replace(env.faults, throttled=frozenset())


def send(env: Environment, tenant: TenantId, _version: str) -> None:
    env.platforms.send_for_a_while(tenant)


def receive(env: Environment, tenant: TenantId, _version: str) -> None:
    env.platforms.receive(tenant)


def delete_the_stack_by_hand(env: Environment, tenant: TenantId, _version: str) -> None:
    """Delete it in CloudFormation's console, whatever is changing it: now, or when an operation is about to finish."""
    if env.rng.random() < 0.5:
        env.cloudformation.to_be_deleted.add(tenant)
        return
    for stack in env.checks.of[tenant].living:
        env.cloudformation.delete_by_hand(stack)


def add_a_queue_by_hand(env: Environment, tenant: TenantId, _version: str) -> None:
    """Add it in CloudFormation's console. The queue is in use, and an update would remove it."""
    for stack in env.checks.of[tenant].living:
        env.cloudformation.add_queue_by_hand(stack)
    send(env, tenant, "")


def survey(env: Environment, _tenant: TenantId, _version: str) -> None:
    env.reconcile(env.rng.choice((SCHEDULES[SURVEY], Spec(), Spec(), Spec(dry_run=True))))


def adopt(env: Environment, _tenant: TenantId, _version: str) -> None:
    env.adopt(dry_run=env.rng.random() < 0.2)


def team_creates(env: Environment, tenant: TenantId, version: str) -> None:
    env.teams.create(properties(tenant, OnDelete=env.rng.choice(("delete", "delete", "retain")), **_said(env)), version)


def team_updates(env: Environment, tenant: TenantId, version: str) -> None:
    """Change the labels, most of the time; otherwise the resource becomes another tenant."""
    changed = {"TenantId": tenant.value} if env.rng.random() < 0.3 else {}
    env.teams.update({"Labels": None, "Version": None, **_said(env), **changed}, version)


def _said(env: Environment) -> dict[str, object]:
    return env.rng.choice(({}, {"Labels": {"team": f"{env.turn}"}}, {"Version": env.rng.choice(VERSIONS)}))


def team_deletes(env: Environment, _tenant: TenantId, version: str) -> None:
    env.teams.delete(version)


def team_deploys_again(env: Environment, _tenant: TenantId, version: str) -> None:
    env.teams.deploy_again({"OnDelete": "delete", **_said(env)}, version)


def forge(env: Environment, tenant: TenantId, version: str) -> None:
    """Somebody pretends to be a team's resource, to delete, describe or bring back a tenant."""
    forged = properties(tenant, OnDelete="delete", **_said(env))
    physical_id = env.rng.choice((tenant.value, "refused"))
    env.teams.forge(env.rng.choice(list(Kind)), forged, physical_id, version)


def plant_a_stack(env: Environment, tenant: TenantId, version: str) -> None:
    env.adversary.plant_stack(tenant, version)


def forge_an_event(env: Environment, tenant: TenantId, _version: str) -> None:
    env.adversary.forge_event(tenant)


def draw_up_other_changes(env: Environment, tenant: TenantId, version: str) -> None:
    """Create change sets again and again, because an update may have created its own meanwhile."""
    for delay in (0.0, 2.0, 5.0, 9.0, 14.0, 20.0, 30.0):
        env.later(delay, lambda: env.adversary.create_change_set(tenant, version))


ACTIONS: tuple[Action, ...] = (
    *(ask, ask, create, create_with_labels, upgrade, upgrade, delete, delete, retry, retry, retry),
    *(all_at_once, all_at_once, admitted_long_ago, admitted_long_ago, create_and_delete, ask_and_create_with_labels),
    *(abort, throttle, send, receive, survey, delete_the_stack_by_hand, pin, adopt, adopt),
    *(team_creates, team_updates, team_deletes, team_deploys_again, forge),
)
RETRIES: tuple[Action, ...] = (*(retry, retry, retry, ask, ask, delete, all_at_once), *(admitted_long_ago, abort))
"""Callers repeat what has failed."""
CONCURRENT: tuple[Action, ...] = (all_at_once, admitted_long_ago, admitted_long_ago, ask, delete, create, upgrade)
"""Many wait for their turn."""
STACKS_DELETED_BY_HAND: tuple[Action, ...] = (
    *(delete_the_stack_by_hand, delete_the_stack_by_hand, delete_the_stack_by_hand, survey, survey),
    *(delete, delete, admitted_long_ago, create, upgrade, ask),
)
"""Stacks go behind Berth's back, and what is missing is repaired."""
LEGACY_TENANTS: tuple[Action, ...] = (
    *(adopt, adopt, adopt, upgrade, upgrade, delete, delete, retry, ask, survey),
    *(all_at_once, admitted_long_ago, delete_the_stack_by_hand, abort, pin, send),
)
"""Tenants from before Berth are adopted while others are at them."""
TEAMS_AND_OPERATORS: tuple[Action, ...] = (
    *(team_creates, team_creates, team_updates, team_updates, team_updates, team_deletes, team_deletes),
    *(team_deploys_again, team_deploys_again, forge, forge, create_with_labels, pin),
    *(delete, delete, create, ask, retry, send, admitted_long_ago, abort),
)
"""Resources of other teams, and operators who do not know of them."""
TEAMS_ALONE: tuple[Action, ...] = (
    *(team_creates, team_creates, team_updates, team_updates, team_updates, team_deletes, team_deletes),
    *(team_deploys_again, team_deploys_again, forge, forge, ask),
)
"""Tenants belong to resources of teams, and others would like to have them."""
RECREATED_TENANTS: tuple[Action, ...] = (
    *(team_creates, team_creates, team_updates, team_deletes, delete_the_stack_by_hand, create, ask, drain, send),
)
"""Tenants vanish and are made anew, by resources of other teams and by others."""
DELETES_WITH_MESSAGES: tuple[Action, ...] = (
    *(send, send, send, send, receive, receive, drain, drain, delete),
    *(upgrade, all_at_once, throttle_cloudformation, throttle_cloudformation, abort, create, ask),
)
"""Senders are at work while tenants are deleted."""
STACKS_CHANGED_BY_HAND: tuple[Action, ...] = (
    *(add_a_queue_by_hand, add_a_queue_by_hand, send, upgrade, upgrade, upgrade, upgrade, receive, retry, abort),
)
"""Stacks are not as Berth has recorded them, while the same updates were reviewed before."""
ORDERS_BEFORE_BEGIN: tuple[Action, ...] = (
    *(create_and_delete, create_and_delete, ask_and_create_with_labels, ask_and_create_with_labels),
    *(delete, create, ask, create_with_labels, pin, upgrade),
)
"""One thing is asked for before the other has begun."""
ATTACKS: tuple[Action, ...] = (
    *(plant_a_stack, plant_a_stack, forge_an_event, forge_an_event, forge_an_event, draw_up_other_changes),
    *(upgrade, upgrade, create, ask, delete, delete_the_stack_by_hand, survey, retry, abort),
)
"""Somebody makes stacks and change sets under tenants' names, and sends events in their stacks' names."""
ACTION_SETS = (
    *(
        ACTIONS,
        ACTIONS,
        ACTIONS,
        RETRIES,
        CONCURRENT,
        STACKS_DELETED_BY_HAND,
        LEGACY_TENANTS,
        LEGACY_TENANTS,
        TEAMS_AND_OPERATORS,
        TEAMS_AND_OPERATORS,
    ),
    *(TEAMS_ALONE, TEAMS_ALONE, RECREATED_TENANTS, DELETES_WITH_MESSAGES, ORDERS_BEFORE_BEGIN),
    STACKS_CHANGED_BY_HAND,
    *(ATTACKS, ATTACKS),
)
