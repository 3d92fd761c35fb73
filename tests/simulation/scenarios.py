"""Scenarios of one operation each: the initial state, the order, and the expected end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from orchestrator.tenants.messages import Messages
from orchestrator.tenants.order_results import Accepted, OrderResult
from orchestrator.tenants.provisioning import Provisioning
from orchestrator.tenants.records import Operation, Request, RootCause, Status
from orchestrator.tenants.stack_ports import Change, Effect, Stack
from tests.fakes import ACME, NEXT_VERSION, OTHER_QUEUE, VERSION, FakeQueues, an_audit, some_metadata
from tests.fakes.stacks import QUEUE_TYPE
from tests.simulation.checks.world_state import assert_deleted, assert_failed, assert_served
from tests.simulation.world import OPERATOR, World, a_queue, a_served_tenant

LEGACY_VERSION = "0.1.12"
QUEUE_DENIED = RootCause("InboundQueue", QUEUE_TYPE, "Access denied.")
SOME_MESSAGES = Messages(3, 0, 0)


@dataclass(frozen=True)
class Scenario:
    name: str
    arrange: Callable[[], World]
    order: Callable[[World], str | None]
    """Orders the operation and returns its execution, or ``None`` if there is nothing to do."""
    ends: Status
    then: Callable[[World], None]
    """Asserts what is true after the expected end."""
    heal: Callable[[World], str | None] | None = None
    """The order after the execution was killed, if it is not the same one again."""

    def ask_again(self, world: World) -> str | None:
        return (self.heal or self.order)(world)


def execution_of(ordered: OrderResult) -> str | None:
    return ordered.execution if isinstance(ordered, Accepted) else None


def by_asking(world: World) -> str | None:
    answer = world.ask()
    return answer.execution if isinstance(answer, Provisioning) else None


def create(world: World, *, request: Request = OPERATOR) -> str | None:
    return execution_of(world.lifecycle().create(ACME, request))


def upgrade(world: World, *, request: Request = OPERATOR) -> str | None:
    return execution_of(world.lifecycle().upgrade(ACME, NEXT_VERSION, request))


def delete(world: World, *, request: Request = OPERATOR) -> str | None:
    return execution_of(world.lifecycle().delete(ACME, request))


# Initial states


def nothing_there() -> World:
    return World()


def with_a_stack(status: str) -> World:
    """A stack that no operation has recorded."""
    world = World()
    done = status == "CREATE_COMPLETE"
    queue, version = (a_queue(1), VERSION) if done else (None, None)
    world.stacks.plant(Stack(world.stacks.stack_id(ACME), status, "", "acme", queue, version, ours=True))
    return world


def with_a_slow_queue() -> World:
    return World(queues=FakeQueues(silent_for=2))


def deleted_before() -> World:
    world = World()
    world.table.plant_audit(an_audit(Status.SUCCESS))
    world.table.plant_audit(an_audit(Status.SUCCESS, Operation.DELETE))
    return world


def failed_before() -> World:
    world = World()
    world.table.plant_audit(an_audit(Status.FAILURE, root_cause=QUEUE_DENIED))
    return world


def served_with_that_very_template() -> World:
    """The stack is at the next version, and the metadata does not say so."""
    world = a_served_tenant(version=NEXT_VERSION)
    world.table.plant_metadata(some_metadata(version=VERSION, queue=a_queue(1)))
    return world


def legacy() -> World:
    """A tenant from before stacks recorded their own queue, and with an outbound queue."""
    world = World()
    queue, outbound = a_queue(1), OTHER_QUEUE
    world.stacks.plant_done(ACME, version=None, template_url="https://before.example/template.json", queue=queue)
    metadata = replace(some_metadata(version=LEGACY_VERSION, queue=queue), stack_id=None, outbound_queue=outbound)
    world.table.plant_metadata(metadata)
    world.table.plant_audit(an_audit(Status.SUCCESS, version=None), numbered=False)
    return would_change(world, Change("OutboundQueue", QUEUE_TYPE, outbound.url, Effect.REPLACE))


# Faults


def throttled(world: World, calls: int = 3) -> World:
    world.stacks.throttled_calls = calls
    return world


def failing(world: World, *, undoing_fails: int = 0) -> World:
    """CloudFormation fails every time and rolls back. The rollback may fail, too."""
    world.stacks.failures.extend(["Access denied."] * 3)
    world.stacks.rollback_failures.extend(["Still denied."] * undoing_fails)
    return world


def blocked(world: World, *, times: int) -> World:
    """A resource keeps its stack from being deleted that often."""
    world.stacks.delete_failures.extend(["Access denied."] * times)
    return world


def would_change(world: World, *changes: Change) -> World:
    world.stacks.would_change = changes
    return world


def with_messages(world: World, url: str, *, for_moments: int | None = None) -> World:
    """Messages in a queue, which someone receives after some moments, or nobody does."""
    world.queues.held[url] = SOME_MESSAGES
    if for_moments is not None:
        world.to_come.extend([lambda: None] * for_moments)
        world.to_come.append(lambda: world.queues.held.clear())
    return world


def slow_review(world: World) -> World:
    world.stacks.review_takes = 2
    return world


# Orders


def delete_before_messages_come(world: World) -> str | None:
    """Messages arrive after the request was accepted, and before the delete looks."""
    ordered = delete(world)
    with_messages(world, a_queue(1).url)
    return ordered


DRAIN = Request(by=OPERATOR.by, drain_seconds=60)
INBOUND_REPLACED = Change("InboundQueue", QUEUE_TYPE, a_queue(1).url, Effect.REPLACE)

# Ends

served = partial(assert_served, version=VERSION)
served_at_the_next_version = partial(assert_served, version=NEXT_VERSION)


def served_without_an_outbound_queue(world: World) -> None:
    assert_served(world, NEXT_VERSION)
    metadata = world.table.metadata(ACME)
    assert metadata
    assert metadata.outbound_queue is None


def served_with_its_outbound_queue(world: World) -> None:
    assert_served(world, LEGACY_VERSION)
    metadata = world.table.metadata(ACME)
    assert metadata
    assert metadata.outbound_queue == OTHER_QUEUE


SUCCESS, FAILURE = Status.SUCCESS, Status.FAILURE

CREATES = [
    Scenario("nothing there", nothing_there, by_asking, SUCCESS, served),
    Scenario("remains", lambda: with_a_stack("ROLLBACK_COMPLETE"), by_asking, SUCCESS, served),
    Scenario("a stack that nobody published", lambda: with_a_stack("CREATE_COMPLETE"), by_asking, SUCCESS, served),
    Scenario("throttled", lambda: throttled(World()), by_asking, SUCCESS, served),
    Scenario("a slow queue", with_a_slow_queue, by_asking, SUCCESS, served),
    Scenario("deleted before", deleted_before, create, SUCCESS, served),
    Scenario(
        "it cannot be created", lambda: failing(World()), by_asking, FAILURE, partial(assert_failed, cause=QUEUE_DENIED)
    ),
]
UPDATES = [
    Scenario("upgrade", a_served_tenant, upgrade, SUCCESS, served_at_the_next_version),
    Scenario("nothing to change", served_with_that_very_template, upgrade, SUCCESS, served_at_the_next_version),
    Scenario("throttled", lambda: throttled(a_served_tenant()), upgrade, SUCCESS, served_at_the_next_version),
    Scenario("slow review", lambda: slow_review(a_served_tenant()), upgrade, SUCCESS, served_at_the_next_version),
    Scenario(
        "an earlier update was not undone",
        lambda: a_served_tenant(status="UPDATE_ROLLBACK_FAILED"),
        upgrade,
        SUCCESS,
        served_at_the_next_version,
    ),
    Scenario("undone", lambda: failing(a_served_tenant()), upgrade, FAILURE, served),
    Scenario("undone at the second try", lambda: failing(a_served_tenant(), undoing_fails=1), upgrade, FAILURE, served),
    Scenario("never undone", lambda: failing(a_served_tenant(), undoing_fails=4), upgrade, FAILURE, served),
    Scenario(
        "the inbound queue would go",
        lambda: would_change(a_served_tenant(), INBOUND_REPLACED),
        upgrade,
        FAILURE,
        served,
    ),
    Scenario("legacy", legacy, upgrade, SUCCESS, served_without_an_outbound_queue),
    Scenario("legacy, undone", lambda: failing(legacy()), upgrade, FAILURE, served_with_its_outbound_queue),
    Scenario(
        "legacy, with messages",
        lambda: with_messages(legacy(), OTHER_QUEUE.url),
        upgrade,
        FAILURE,
        served_with_its_outbound_queue,
    ),
]
DELETES = [
    Scenario("empty", a_served_tenant, delete, SUCCESS, assert_deleted),
    Scenario("messages come", a_served_tenant, delete_before_messages_come, FAILURE, served, heal=create),
    Scenario(
        "drained",
        lambda: with_messages(a_served_tenant(), a_queue(1).url, for_moments=2),
        partial(delete, request=DRAIN),
        SUCCESS,
        assert_deleted,
    ),
    Scenario(
        "never drained",
        lambda: with_messages(a_served_tenant(), a_queue(1).url),
        partial(delete, request=DRAIN),
        FAILURE,
        served,
    ),
    Scenario("throttled", lambda: throttled(a_served_tenant()), delete, SUCCESS, assert_deleted),
    Scenario("blocked once", lambda: blocked(a_served_tenant(), times=1), delete, SUCCESS, assert_deleted),
    Scenario(
        "blocked for good",
        lambda: blocked(a_served_tenant(), times=3),
        delete,
        FAILURE,
        partial(assert_failed, cause=QUEUE_DENIED),
    ),
    Scenario("no stack", failed_before, delete, SUCCESS, assert_deleted),
    Scenario("legacy", legacy, delete, SUCCESS, assert_deleted),
]
