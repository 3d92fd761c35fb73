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

from orchestrator.common.tenant_ids import TenantId
from orchestrator.reconciling.control import SCHEDULES
from orchestrator.reconciling.records import SURVEY, Spec
from orchestrator.releases.published import fingerprint
from orchestrator.tenants.ports import Stack
from orchestrator.tenants.records import Attempt, Operation, Queue, Request, Status
from orchestrator.tenants.resource_requests import Kind
from tests.fakes import NAMES, an_audit, parameters_of, some_metadata
from tests.simulation.cloudformation import LEGACY_PREFIX
from tests.simulation.harbour import ADOPTION, VERSIONS, Harbour
from tests.simulation.people import with_labels
from tests.simulation.stories import LEGACY_VERSION
from tests.simulation.tenant_queues import properties
from tests.simulation.the_end import come_to_rest, repair
from tests.simulation.weather import SERVICES, Weather, of_seed
from tests.simulation.world import OPERATOR

TENANTS = tuple(map(TenantId.parse, ("acme", "acme-1", "ACME")))
"""Ids that differ by little."""
FORCE = replace(OPERATOR, force=True)
DRAINS = tuple(replace(OPERATOR, drain_seconds=seconds) for seconds in (60, 300, 1_200))
MAX_HAPPENINGS = 12

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
            self._chance.choice(BEGINNINGS)(self.harbour, tenant)
        self.harbour.weather = weather or of_seed(self._chance)
        self._happenings = happenings or self._chance.choice(KINDS)

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
        for _ in range(chance.randint(5, MAX_HAPPENINGS)):
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
    """At any of the releases, and it may be known what the stack was made from."""
    version = harbour.chance.choice(VERSIONS)
    release = harbour.table.release(version)
    assert release
    queue = harbour.queue_of(tenant)
    stack = harbour.stacks.plant_done(
        # Some were made by an earlier deployment, with another role.
        tenant,
        version=version,
        template_url=release.template_url,
        queue=queue,
        ours=harbour.chance.random() < 0.7,
    )
    deployed = fingerprint(release, parameters_of(tenant)) if harbour.chance.random() < 0.7 else None
    metadata = some_metadata(tenant=tenant, version=version, queue=queue, deployed=deployed)
    harbour.table.plant_metadata(replace(metadata, stack_id=stack.stack_id))
    harbour.table.plant_audit(an_audit(Status.SUCCESS, tenant=tenant, version=version))
    _is_served(harbour, tenant, queue, version)


def legacy(harbour: Harbour, tenant: TenantId) -> None:
    """From before stacks recorded their own queue, and with an outbound queue. It is in no list."""
    _plant_legacy(harbour, tenant, NAMES.stack_of(tenant))


def legacy_of_another_name(harbour: Harbour, tenant: TenantId) -> None:
    """The same, in a stack under a name that Berth does not derive."""
    _plant_legacy(harbour, tenant, f"{LEGACY_PREFIX}{tenant.slug}")


def _plant_legacy(harbour: Harbour, tenant: TenantId, stack_name: str) -> None:
    queue = harbour.queue_named(tenant, f"{stack_name}-InboundQueue-0")
    outbound = Queue(f"{queue.arn}-out", f"{queue.url}-out")
    stack_id = f"arn:aws:cloudformation:eu-west-1:000000000000:stack/{stack_name}/{len(harbour.stacks.all) + 1}"
    url = "https://before.example/template.json"
    planted = Stack(stack_id, "CREATE_COMPLETE", "", tenant.value, queue, None, ours=False)
    harbour.stacks.plant(planted, template_url=url)
    harbour.stacks.outbound[stack_id] = outbound
    harbour.cloudformation.without_resource.add(stack_id)
    metadata = some_metadata(tenant=tenant, version=LEGACY_VERSION, queue=queue, outbound_queue=outbound)
    harbour.table.plant_metadata(replace(metadata, stack_id=None), listed=False)
    harbour.table.plant_audit(an_audit(Status.SUCCESS, tenant=tenant, version=None), numbered=False)
    _is_served(harbour, tenant, queue, LEGACY_VERSION)


def _is_served(harbour: Harbour, tenant: TenantId, queue: Queue, version: str) -> None:
    guard = harbour.guard.of[tenant]
    guard.served = (queue, version)
    guard.asked.is_there("whoever was there before")
    harbour.platforms.is_given(tenant, queue.url)


def deleted_before(harbour: Harbour, tenant: TenantId) -> None:
    harbour.table.plant_audit(an_audit(Status.SUCCESS, tenant=tenant))
    harbour.table.plant_audit(an_audit(Status.SUCCESS, Operation.DELETE, tenant=tenant))
    harbour.guard.of[tenant].deleted = harbour.guard.of[tenant].to_go = True


BEGINNINGS: tuple[Beginning, ...] = (
    *(nothing_there, nothing_there, served, served, served),
    *(deleted_before, legacy, legacy_of_another_name),
)


# What may happen


def ask(harbour: Harbour, tenant: TenantId, version: str) -> None:
    harbour.people.ask(tenant, version)


def create(harbour: Harbour, tenant: TenantId, version: str) -> None:
    harbour.people.create(tenant, version)


def create_with_labels(harbour: Harbour, tenant: TenantId, version: str) -> None:
    pin = harbour.chance.choice((None, None, version, harbour.chance.choice(VERSIONS)))
    harbour.people.create(tenant, version, with_labels({"tier": f"{harbour.turn}"}, pin))


def ask_and_create_with_labels(harbour: Harbour, tenant: TenantId, version: str) -> None:
    """At once, so that one is accepted before the other has begun."""
    ask(harbour, tenant, version)
    create_with_labels(harbour, tenant, version)


def pin(harbour: Harbour, tenant: TenantId, version: str) -> None:
    harbour.chance.choice((harbour.people.pin, harbour.people.unpin, harbour.people.unpin))(tenant, version)


def upgrade(harbour: Harbour, tenant: TenantId, version: str) -> None:
    harbour.people.upgrade(tenant, version, replace(OPERATOR, allow_downgrade=harbour.chance.random() < 0.5))


def delete(harbour: Harbour, tenant: TenantId, version: str) -> None:
    harbour.people.delete(tenant, version, harbour.chance.choice((OPERATOR, FORCE, *DRAINS)))


def drain(harbour: Harbour, tenant: TenantId, version: str) -> None:
    harbour.people.delete(tenant, version, harbour.chance.choice(DRAINS))


def create_and_delete(harbour: Harbour, tenant: TenantId, version: str) -> None:
    """At once, so that the delete is asked for before the create has begun."""
    create(harbour, tenant, version)
    delete(harbour, tenant, version)


def retry(harbour: Harbour, tenant: TenantId, version: str) -> None:
    harbour.people.retry(tenant, version)


def all_at_once(harbour: Harbour, tenant: TenantId, version: str) -> None:
    """All are admitted before any has begun."""
    orders = [ask, create, upgrade, delete]
    harbour.chance.shuffle(orders)
    for order in orders:
        order(harbour, tenant, version)


def admitted_long_ago(harbour: Harbour, tenant: TenantId, version: str) -> None:
    """Whoever asked for it saw the tenant as it was then, and is slow."""
    operation = harbour.chance.choice(list(Operation))
    made = [audit.attempt for audit in harbour.table.audits(tenant) if audit.operation is operation]
    request = harbour.chance.choice((Request(), Request(force=True)))
    harbour.people.start_late(Attempt(tenant, operation, version, 1 + max(made, default=0)), request)


def abort(harbour: Harbour, tenant: TenantId, _version: str) -> None:
    running = [run for run in harbour.runs.values() if run.tenant == tenant and run.running]
    if running:
        # Preferably in the middle of a function.
        at_work = [run for run in running if run.at_work]
        harbour.cut_short(
            harbour.chance.choice(at_work or running), harbour.chance.choice(("was aborted", "timed out"))
        )


def all_of_them_die(harbour: Harbour, tenant: TenantId, version: str) -> None:
    """A create before it has published, a delete before it has touched the stack, and a create that is refused."""
    harbour.doomed |= {(tenant, state) for state in ("Finish", "CheckMessages", "RecordFailure")}
    create(harbour, tenant, version)
    harbour.later(120, lambda: harbour.people.delete(tenant, version, OPERATOR))
    late = Attempt(tenant, Operation.CREATE, version, 5)
    harbour.later(240, lambda: harbour.people.start_late(late, Request()))


def throttle(harbour: Harbour, _tenant: TenantId, _version: str) -> None:
    _throttle(harbour, *harbour.chance.sample(SERVICES, harbour.chance.randint(1, len(SERVICES))))


def throttle_cloudformation(harbour: Harbour, _tenant: TenantId, _version: str) -> None:
    _throttle(harbour, "stacks")


def _throttle(harbour: Harbour, *services: str) -> None:
    harbour.weather = replace(harbour.weather, throttled=frozenset(services))
    harbour.later(harbour.chance.choice((20.0, 200.0, 1_000.0)), lambda: no_longer_throttle(harbour))


def no_longer_throttle(harbour: Harbour) -> None:
    harbour.weather = replace(harbour.weather, throttled=frozenset())


def send(harbour: Harbour, tenant: TenantId, _version: str) -> None:
    harbour.platforms.send_for_a_while(tenant)


def receive(harbour: Harbour, tenant: TenantId, _version: str) -> None:
    harbour.platforms.receive(tenant)


def delete_the_stack_by_hand(harbour: Harbour, tenant: TenantId, _version: str) -> None:
    """In CloudFormation's console, whoever is at the stack: now, or as soon as an operation is about to finish."""
    if harbour.chance.random() < 0.5:
        harbour.cloudformation.to_be_deleted.add(tenant)
        return
    for stack in harbour.guard.of[tenant].living:
        harbour.cloudformation.delete_by_hand(stack)


def survey(harbour: Harbour, _tenant: TenantId, _version: str) -> None:
    harbour.reconcile(harbour.chance.choice((SCHEDULES[SURVEY], Spec(), Spec(), Spec(dry_run=True))))


def adopt(harbour: Harbour, _tenant: TenantId, _version: str) -> None:
    harbour.reconcile(replace(ADOPTION, dry_run=harbour.chance.random() < 0.2))


def team_creates(harbour: Harbour, tenant: TenantId, version: str) -> None:
    harbour.teams.create(
        properties(tenant, OnDelete=harbour.chance.choice(("delete", "delete", "retain")), **_said(harbour)), version
    )


def team_updates(harbour: Harbour, tenant: TenantId, version: str) -> None:
    """The labels, most of the time; or the resource becomes another tenant."""
    changed = {"TenantId": tenant.value} if harbour.chance.random() < 0.3 else {}
    harbour.teams.update({"Labels": None, "Version": None, **_said(harbour), **changed}, version)


def _said(harbour: Harbour) -> dict[str, object]:
    return harbour.chance.choice(
        ({}, {"Labels": {"team": f"{harbour.turn}"}}, {"Version": harbour.chance.choice(VERSIONS)})
    )


def team_deletes(harbour: Harbour, _tenant: TenantId, version: str) -> None:
    harbour.teams.delete(version)


def team_deploys_again(harbour: Harbour, _tenant: TenantId, version: str) -> None:
    harbour.teams.deploy_again({"OnDelete": "delete", **_said(harbour)}, version)


def forge(harbour: Harbour, tenant: TenantId, version: str) -> None:
    """Somebody pretends to be a team's resource, to delete, describe or bring back a tenant."""
    forged = properties(tenant, OnDelete="delete", **_said(harbour))
    physical_id = harbour.chance.choice((tenant.value, "refused"))
    harbour.teams.forge(harbour.chance.choice(list(Kind)), forged, physical_id, version)


def plant_a_stack(harbour: Harbour, tenant: TenantId, version: str) -> None:
    harbour.intruder.plant_stack(tenant, version)


def forge_an_event(harbour: Harbour, tenant: TenantId, _version: str) -> None:
    harbour.intruder.forge_event(tenant)


def draw_up_other_changes(harbour: Harbour, tenant: TenantId, version: str) -> None:
    """Now, and again and again: an update may have drawn up its own since."""
    for delay in (0.0, 2.0, 5.0, 9.0, 14.0, 20.0, 30.0):
        harbour.later(delay, lambda: harbour.intruder.draw_up_changes(tenant, version))


HAPPENINGS: tuple[Happening, ...] = (
    *(ask, ask, create, create_with_labels, upgrade, upgrade, delete, delete, retry, retry, retry),
    *(all_at_once, all_at_once, admitted_long_ago, admitted_long_ago, create_and_delete, ask_and_create_with_labels),
    *(abort, throttle, send, receive, survey, delete_the_stack_by_hand, pin, adopt, adopt),
    *(team_creates, team_updates, team_deletes, team_deploys_again, forge),
)
INSISTENT: tuple[Happening, ...] = (*(retry, retry, retry, ask, ask, delete, all_at_once), *(admitted_long_ago, abort))
"""Whoever asks is told that it failed, or that there is nothing, and asks again."""
CROWDED: tuple[Happening, ...] = (all_at_once, admitted_long_ago, admitted_long_ago, ask, delete, create, upgrade)
"""Many wait for their turn."""
MEDDLED: tuple[Happening, ...] = (
    *(delete_the_stack_by_hand, delete_the_stack_by_hand, delete_the_stack_by_hand, survey, survey),
    *(delete, delete, admitted_long_ago, create, upgrade, ask),
)
"""Stacks go behind Berth's back, and what is missing is repaired."""
INHERITED: tuple[Happening, ...] = (
    *(adopt, adopt, adopt, upgrade, upgrade, delete, delete, retry, ask, survey),
    *(all_at_once, admitted_long_ago, delete_the_stack_by_hand, abort, pin, send),
)
"""Tenants from before Berth are adopted while others are at them."""
SHARED: tuple[Happening, ...] = (
    *(team_creates, team_creates, team_updates, team_updates, team_updates, team_deletes, team_deletes),
    *(team_deploys_again, team_deploys_again, forge, forge, create_with_labels, pin),
    *(delete, delete, create, ask, retry, send, admitted_long_ago, abort),
)
"""Resources of other teams, and operators who do not know of them."""
OWNED: tuple[Happening, ...] = (
    *(team_creates, team_creates, team_updates, team_updates, team_updates, team_deletes, team_deletes),
    *(team_deploys_again, team_deploys_again, forge, forge, ask),
)
"""Tenants belong to resources of teams, and others would like to have them."""
VANISHING: tuple[Happening, ...] = (
    *(team_creates, team_creates, team_updates, team_deletes, delete_the_stack_by_hand, create, ask, drain, send),
)
"""Tenants vanish and are made anew, by resources of other teams and by others."""
DRAINED: tuple[Happening, ...] = (
    *(send, send, send, send, receive, receive, drain, drain, delete),
    *(upgrade, all_at_once, throttle_cloudformation, throttle_cloudformation, abort, create, ask),
)
"""Senders are at work while tenants are deleted."""
HASTY: tuple[Happening, ...] = (
    *(create_and_delete, create_and_delete, ask_and_create_with_labels, ask_and_create_with_labels),
    *(delete, create, ask, create_with_labels, pin, upgrade),
)
"""One thing is asked for before the other has begun."""
INTRUDED: tuple[Happening, ...] = (
    *(plant_a_stack, plant_a_stack, forge_an_event, forge_an_event, forge_an_event, draw_up_other_changes),
    *(upgrade, upgrade, create, ask, delete, delete_the_stack_by_hand, survey, retry, abort),
)
"""Somebody makes stacks and change sets under tenants' names, and sends events in their stacks' names."""
KINDS = (
    *(HAPPENINGS, HAPPENINGS, HAPPENINGS, INSISTENT, CROWDED, MEDDLED, INHERITED, INHERITED, SHARED, SHARED),
    *(OWNED, OWNED, VANISHING, DRAINED, HASTY),
    *(INTRUDED, INTRUDED),
)
