"""A seeded voyage: people ask, the weather is bad for a while, then it is calm, and everything has to come to its end.

From then on nobody asks for anything any more: the rule on executions that ended and the scheduled reconciler alone see
to it that every operation has an end in bounded time.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from orchestrator.reconciling.control import SCHEDULES
from orchestrator.reconciling.records import SURVEY, Wish
from orchestrator.records import Attempt, Messages, Operation, Request, Status
from orchestrator.stack_status import StackCondition, condition
from orchestrator.tenants import TenantId
from tests.fakes import VERSION, an_audit, some_metadata
from tests.simulation.harbour import Harbour
from tests.simulation.the_end import VERSIONS, come_to_rest, repair
from tests.simulation.weather import SERVICES, Weather, of_seed
from tests.simulation.world import OPERATOR

TENANTS = tuple(map(TenantId.parse, ("acme", "acme-1", "ACME")))
"""Ids that differ by little."""
FORCE = replace(OPERATOR, force=True)
MOST_HAPPENINGS = 12

Beginning = Callable[[Harbour, TenantId], None]
Happening = Callable[[Harbour, TenantId, str], None]
REPLAY = "python -m tests.simulation --seed {seed}"


class Broken(AssertionError):
    """A promise was broken. The message says how to see it broken again."""


class Voyage:
    def __init__(
        self, seed: int, weather: Weather | None = None, happenings: tuple[Happening, ...] | None = None
    ) -> None:
        """In the weather of that seed and with what happens then, or with others."""
        self.seed = seed
        self._chance = random.Random(seed)
        self.tenants = TENANTS[: self._chance.choice((1, 1, 2, 3))]
        self.harbour = Harbour(self.tenants, self._chance)
        for tenant in self.tenants:
            self._chance.choice((nothing_there, served, served, deleted_before))(self.harbour, tenant)
        self.harbour.weather = weather or of_seed(self._chance)
        self._happenings = happenings or self._chance.choice((HAPPENINGS, HAPPENINGS, INSISTENT, CROWDED, MEDDLED))

    @property
    def seen(self) -> Counter[str]:
        return self.harbour.guard.seen

    def sail(self) -> None:
        try:
            self._storm()
            come_to_rest(self.harbour)
            repair(self.harbour)
        except AssertionError as broken:
            again = REPLAY.format(seed=self.seed)
            raise Broken(f"seed {self.seed}: {broken}\nTo see it again: {again}") from broken
        finally:
            self.harbour.leave()

    # While the weather is bad

    def _storm(self) -> None:
        chance, harbour = self._chance, self.harbour
        lasts = chance.choice((60.0, 300.0, 1_800.0))
        for _ in range(chance.randint(5, MOST_HAPPENINGS)):
            moment = chance.uniform(0, lasts)
            for _ in range(chance.choice((1, 2, 3))):  # Some at almost the same moment.
                harbour.later(moment, self._something)
        harbour.pass_time(harbour.clock.now() + timedelta(seconds=lasts))

    def _something(self) -> None:
        tenant, version = self._chance.choice(self.tenants), self._chance.choice(VERSIONS)
        happening = self._chance.choice(self._happenings)
        self.seen[happening.__name__] += 1
        happening(self.harbour, tenant, version)


# Where it begins


def nothing_there(_harbour: Harbour, _tenant: TenantId) -> None:
    pass


def served(harbour: Harbour, tenant: TenantId) -> None:
    release = harbour.table.release(VERSION)
    assert release
    queue = harbour.queue_of(tenant)
    stack = harbour.stacks.plant_done(tenant, version=VERSION, template_url=release.template_url, queue=queue)
    metadata = replace(some_metadata(tenant=tenant, version=VERSION, queue=queue), stack_id=stack.stack_id)
    harbour.table.plant_metadata(metadata)
    harbour.table.plant_audit(an_audit(Status.SUCCESS, tenant=tenant))
    harbour.guard.of[tenant].served = (queue, VERSION)


def deleted_before(harbour: Harbour, tenant: TenantId) -> None:
    harbour.table.plant_audit(an_audit(Status.SUCCESS, tenant=tenant))
    harbour.table.plant_audit(an_audit(Status.SUCCESS, Operation.DELETE, tenant=tenant))
    harbour.guard.of[tenant].deleted = harbour.guard.of[tenant].to_go = True


# What may happen


def ask(harbour: Harbour, tenant: TenantId, version: str) -> None:
    harbour.asks(tenant, version)


def create(harbour: Harbour, tenant: TenantId, version: str) -> None:
    harbour.creates(tenant, version)


def upgrade(harbour: Harbour, tenant: TenantId, version: str) -> None:
    request = replace(OPERATOR, allow_downgrade=harbour.chance.random() < 0.5)
    harbour.orders(tenant, version, lambda lifecycle: lifecycle.upgrade(tenant, version, request))


def delete(harbour: Harbour, tenant: TenantId, version: str) -> None:
    request = harbour.chance.choice((OPERATOR, FORCE, Request(by=OPERATOR.by, drain_seconds=60)))
    harbour.orders(tenant, version, lambda lifecycle: lifecycle.delete(tenant, request))


def retry(harbour: Harbour, tenant: TenantId, version: str) -> None:
    harbour.retries(tenant, version)


def all_at_once(harbour: Harbour, tenant: TenantId, version: str) -> None:
    """All are admitted before any has begun."""
    wishes = [ask, create, upgrade, delete]
    harbour.chance.shuffle(wishes)
    for wish in wishes:
        wish(harbour, tenant, version)


def admitted_long_ago(harbour: Harbour, tenant: TenantId, version: str) -> None:
    """Whoever asked for it saw the tenant as it was then, and is slow."""
    operation = harbour.chance.choice(list(Operation))
    made = [audit.attempt for audit in harbour.table.audits(tenant) if audit.operation is operation]
    request = harbour.chance.choice((Request(), Request(force=True)))
    harbour.executions.start(Attempt(tenant, operation, version, 1 + max(made, default=0)), request)


def abort(harbour: Harbour, tenant: TenantId, _version: str) -> None:
    running = [run for run in harbour.runs.values() if run.tenant == tenant and run.running]
    if running:
        # Preferably in the middle of a function.
        at_work = [run for run in running if run.at_work]
        harbour.cut_short(
            harbour.chance.choice(at_work or running), harbour.chance.choice(("was aborted", "timed out"))
        )


def throttle(harbour: Harbour, _tenant: TenantId, _version: str) -> None:
    services = harbour.chance.sample(SERVICES, harbour.chance.randint(1, len(SERVICES)))
    harbour.weather = replace(harbour.weather, throttled=frozenset(services))
    harbour.later(harbour.chance.choice((20.0, 200.0, 1_000.0)), lambda: no_longer_throttle(harbour))


def no_longer_throttle(harbour: Harbour) -> None:
    harbour.weather = replace(harbour.weather, throttled=frozenset())


def message(harbour: Harbour, tenant: TenantId, _version: str) -> None:
    """Messages come into the tenant's queue, or are received."""
    metadata = harbour.table.metadata(tenant)
    if metadata and metadata.queue:
        url = metadata.queue.url
        harbour.queues.held[url] = Messages(0 if url in harbour.queues.held else 1, 0, 0)


def delete_the_stack_by_hand(harbour: Harbour, tenant: TenantId, _version: str) -> None:
    """In CloudFormation's console, while no operation is at it."""
    for stack in harbour.guard.of[tenant].living:
        if harbour.table.lock(tenant) is None and condition(stack.status) is StackCondition.DONE:
            harbour.stacks.change(stack.stack_id, "DELETE_IN_PROGRESS")


def survey(harbour: Harbour, _tenant: TenantId, _version: str) -> None:
    harbour.reconcile(harbour.chance.choice((SCHEDULES[SURVEY], Wish(), Wish(), Wish(dry_run=True))))


HAPPENINGS: tuple[Happening, ...] = (
    *(ask, ask, create, create, upgrade, upgrade, delete, delete, retry, retry, retry),
    *(all_at_once, all_at_once, admitted_long_ago, admitted_long_ago),
    *(abort, throttle, message, survey, delete_the_stack_by_hand),
)
INSISTENT: tuple[Happening, ...] = (*(retry, retry, retry, ask, ask, delete, all_at_once), *(admitted_long_ago, abort))
"""Whoever asks is told that it failed, or that there is nothing, and asks again."""
CROWDED: tuple[Happening, ...] = (all_at_once, admitted_long_ago, admitted_long_ago, ask, delete, create)
"""Many wait for their turn."""
MEDDLED: tuple[Happening, ...] = (
    *(delete_the_stack_by_hand, delete_the_stack_by_hand, survey, survey),
    *(delete, delete, admitted_long_ago, create),
)
"""Stacks go behind Berth's back, and what is missing is repaired."""
