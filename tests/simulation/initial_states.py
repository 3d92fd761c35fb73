"""The states in which a tenant may be when a seeded run starts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from orchestrator.common.tenant_ids import TenantId
from orchestrator.releases.published import fingerprint
from orchestrator.releases.records import Release
from orchestrator.tenants.records import Operation, Queue, Status
from orchestrator.tenants.reviews import Move, Review, shared_parameters
from orchestrator.tenants.stack_ports import Stack
from tests.fakes import NAMES, an_audit, parameters_of, some_metadata
from tests.simulation.aws.cloudformation import LEGACY_PREFIX
from tests.simulation.environment import VERSIONS, Environment
from tests.simulation.scenarios import LEGACY_VERSION

InitialState = Callable[[Environment, TenantId], None]


def nothing_there(_env: Environment, _tenant: TenantId) -> None:
    pass


def served(env: Environment, tenant: TenantId) -> None:
    """A tenant that is served, at any of the releases. The stack's fingerprint may be recorded."""
    version = env.rng.choice(VERSIONS)
    release = env.table.release(version)
    assert release
    queue = env.queue_of(tenant)
    stack = env.stacks.plant_done(
        # Some were made by an earlier deployment, with another role.
        tenant,
        version=version,
        template_url=release.template_url,
        queue=queue,
        ours=env.rng.random() < 0.7,
    )
    fake = env.stacks.all[stack.stack_id]
    parameters = parameters_of(tenant, release)
    fake.stack = replace(fake.stack, parameters=parameters, changed_at=env.clock.now())
    deployed = fingerprint(release, parameters) if env.rng.random() < 0.7 else None
    if deployed and env.rng.random() < 0.5:
        _is_reviewed(env, tenant, release)
    recorded = {"deployed": deployed, "stack_changed_at": fake.stack.changed_at if deployed else None}
    metadata = some_metadata(tenant=tenant, version=version, queue=queue, **recorded)
    env.table.plant_metadata(replace(metadata, stack_id=stack.stack_id))
    env.table.plant_audit(an_audit(Status.SUCCESS, tenant=tenant, version=version))
    _is_served(env, tenant, queue, version)


def _is_reviewed(env: Environment, tenant: TenantId, origin: Release) -> None:
    """Updates of other tenants from that release to every other one were reviewed before."""
    for target in env.table.releases():
        ends = [(release, shared_parameters(parameters_of(tenant, release))) for release in (origin, target)]
        move = Move(*ends[0], *ends[1])
        env.reviews.keep_review(Review(move.key, origin.version, target.version, "before", env.clock.now()))


def legacy(env: Environment, tenant: TenantId) -> None:
    """A tenant from before stacks recorded their own queue, with an outbound queue. No list has it."""
    _plant_legacy(env, tenant, NAMES.stack_of(tenant))


def legacy_of_another_name(env: Environment, tenant: TenantId) -> None:
    """The same, in a stack under a name that Berth does not derive."""
    _plant_legacy(env, tenant, f"{LEGACY_PREFIX}{tenant.slug}")


def _plant_legacy(env: Environment, tenant: TenantId, stack_name: str) -> None:
    queue = env.queue_named(tenant, f"{stack_name}-InboundQueue-0")
    outbound = Queue(f"{queue.arn}-out", f"{queue.url}-out")
    stack_id = f"arn:aws:cloudformation:eu-west-1:000000000000:stack/{stack_name}/{len(env.stacks.all) + 1}"
    url = "https://before.example/template.json"
    planted = Stack(stack_id, "CREATE_COMPLETE", "", tenant.value, queue, None, ours=False)
    env.stacks.plant(planted, template_url=url)
    env.stacks.outbound[stack_id] = outbound
    env.cloudformation.without_resource.add(stack_id)
    metadata = some_metadata(tenant=tenant, version=LEGACY_VERSION, queue=queue, outbound_queue=outbound)
    env.table.plant_metadata(replace(metadata, stack_id=None), listed=False)
    env.table.plant_audit(an_audit(Status.SUCCESS, tenant=tenant, version=None), numbered=False)
    _is_served(env, tenant, queue, LEGACY_VERSION)


def _is_served(env: Environment, tenant: TenantId, queue: Queue, version: str) -> None:
    checks = env.checks.of[tenant]
    checks.served = (queue, version)
    checks.requests.is_there("whoever was there before")
    env.platforms.is_given(tenant, queue.url)


def deleted_before(env: Environment, tenant: TenantId) -> None:
    env.table.plant_audit(an_audit(Status.SUCCESS, tenant=tenant))
    env.table.plant_audit(an_audit(Status.SUCCESS, Operation.DELETE, tenant=tenant))
    env.checks.of[tenant].deleted = env.checks.of[tenant].to_go = True


INITIAL_STATES: tuple[InitialState, ...] = (
    *(nothing_there, nothing_there, served, served, served),
    *(deleted_before, legacy, legacy_of_another_name),
)
