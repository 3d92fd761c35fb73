"""Which keys, sources and forms are valid, and for how long that is remembered."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from orchestrator.events.api_keys import new_key
from orchestrator.events.authorising import Authorising, Denied, Grant
from orchestrator.events.records import (
    ApiKey,
    Form,
    KeyStatus,
    Provider,
    Scope,
    Source,
    SourceStatus,
    TenantEpoch,
)
from tests.fakes import ACME, NOON, FakeClock
from tests.fakes.events import (
    ACME_LIFE,
    FakeConfiguration,
    FakeKeyUse,
    FakeTenants,
    FakeUsage,
    Watch,
    api_key,
    event_settings,
)

KEY = new_key("test")


class World:
    def __init__(self) -> None:
        self.clock, self.watch = FakeClock(), Watch()
        self.configuration, self.tenants = FakeConfiguration(), FakeTenants()
        self.usage, self.key_use = FakeUsage(), FakeKeyUse()
        self.configuration.all_settings[ACME] = event_settings()
        self.put(api_key(KEY))
        self.authorising = Authorising(
            configuration=self.configuration,
            tenants=self.tenants,
            usage=self.usage,
            key_use=self.key_use,
            clock=self.clock,
            monotonic=self.watch,
        )

    def put(self, key: ApiKey) -> None:
        self.configuration.api_keys[key.digest] = key

    def ask(self, key: str | None = KEY, scope: Scope = Scope.WRITE) -> Grant | Denied:
        return self.authorising.by_key(key, scope)


@pytest.fixture
def world() -> World:
    return World()


def test_a_valid_key_of_a_living_tenant_is_granted(world: World) -> None:
    grant = world.ask()
    assert isinstance(grant, Grant)
    assert grant.standing.settings == event_settings()
    assert grant.standing.month == "2026-11"


# The key is the same in every process, because pytest-xdist compares the names of tests.
@pytest.mark.parametrize("key", [None, "", "bk_test_short", f"bk_test_{'A' * 43}"])
def test_an_unknown_key_is_denied(world: World, key: str | None) -> None:
    assert world.ask(key) is Denied.UNKNOWN_KEY


def test_a_key_without_the_scope_is_denied(world: World) -> None:
    assert world.ask(scope=Scope.READ) is Denied.MISSING_SCOPE


@pytest.mark.parametrize("scope", Scope)
def test_an_admin_key_has_every_scope(world: World, scope: Scope) -> None:
    world.put(api_key(KEY, scopes=frozenset({Scope.ADMIN})))
    assert isinstance(world.ask(scope=scope), Grant)


def test_unknown_revoked_and_expired_keys_cost_the_same_reads(world: World) -> None:
    revoked, expired, unknown = new_key("test"), new_key("test"), new_key("test")
    world.put(api_key(revoked, status=KeyStatus.REVOKED))
    world.put(api_key(expired, expires_at=NOON))
    for key in (revoked, expired, unknown):
        before = world.configuration.reads
        assert world.ask(key) is Denied.UNKNOWN_KEY
        assert world.configuration.reads - before == 1


def test_a_grant_costs_no_read_for_ten_seconds(world: World) -> None:
    world.ask()
    reads = world.configuration.reads
    world.watch.seconds += 9.9
    assert isinstance(world.ask(), Grant)
    assert world.configuration.reads == reads


def test_a_revoked_key_stops_within_ten_seconds(world: World) -> None:
    world.ask()
    world.put(api_key(KEY, status=KeyStatus.REVOKED))
    world.watch.seconds += 10
    assert world.ask() is Denied.UNKNOWN_KEY


@pytest.mark.parametrize("seconds", [10, -10])
def test_a_revoked_key_stops_also_in_an_instance_that_was_frozen(world: World, seconds: int) -> None:
    """Nobody promises that the monotonic clock goes on while Lambda has frozen an instance."""
    world.ask()
    world.put(api_key(KEY, status=KeyStatus.REVOKED))
    world.clock.advance(timedelta(seconds=seconds))
    assert world.ask() is Denied.UNKNOWN_KEY


def test_a_remembered_key_expires_on_time(world: World) -> None:
    world.put(api_key(KEY, expires_at=NOON + timedelta(seconds=3)))
    assert isinstance(world.ask(), Grant)
    world.clock.advance(timedelta(seconds=3))
    assert world.ask() is Denied.UNKNOWN_KEY


def test_every_key_of_a_deleted_tenant_stops_within_ten_seconds(world: World) -> None:
    second = new_key("test")
    world.put(api_key(second, key_id="key_2"))
    world.ask()
    del world.tenants.incarnations[ACME]
    world.watch.seconds += 9
    world.ask(second)  # Its key is read now, while the tenant is still remembered as living.
    world.watch.seconds += 1
    assert world.ask() is Denied.UNKNOWN_KEY
    assert world.ask(second) is Denied.UNKNOWN_KEY


def test_a_restored_tenant_has_its_keys_again(world: World) -> None:
    world.tenants.incarnations.clear()
    assert world.ask() is Denied.UNKNOWN_KEY
    world.tenants.incarnations[ACME] = event_settings().incarnation
    assert isinstance(world.ask(), Grant)


def test_a_tenant_that_was_created_again_inherits_no_key(world: World) -> None:
    world.tenants.incarnations[ACME] = "2026-09-09T00:00:00.000Z"
    assert world.ask() is Denied.UNKNOWN_KEY
    successor = TenantEpoch(ACME, "77aa0123")
    world.configuration.all_settings[ACME] = event_settings(successor, incarnation="2026-09-09T00:00:00.000Z")
    assert world.ask() is Denied.UNKNOWN_KEY


def test_the_use_of_a_key_is_noted_once_per_hour(world: World) -> None:
    for _ in range(3):
        world.ask()
    assert world.key_use.noted == [("key_1", NOON)]
    world.clock.advance(timedelta(hours=1))
    world.ask()
    assert len(world.key_use.noted) == 2


def test_a_denied_request_is_no_use_of_the_key(world: World) -> None:
    world.ask(scope=Scope.ADMIN)
    assert world.key_use.noted == []


def test_the_usage_of_the_month_comes_with_the_grant(world: World) -> None:
    world.usage.counts[ACME_LIFE] = 7
    grant = world.ask()
    assert isinstance(grant, Grant)
    assert grant.standing.used == 7


def test_only_so_many_results_are_remembered(world: World) -> None:
    keys = [new_key("test") for _ in range(2001)]
    for key in keys:
        world.put(api_key(key))
        world.ask(key)
    reads = world.configuration.reads
    world.ask(keys[-1])
    assert world.configuration.reads == reads
    world.ask(keys[0])
    assert world.configuration.reads == reads + 1


SOURCE = Source(ACME_LIFE, "src_1", "GitHub", Provider.GITHUB, SourceStatus.ACTIVE, NOON)
FORM = Form(ACME_LIFE, "form_1", "Contact", SourceStatus.ACTIVE, NOON)


def test_a_source_or_form_of_a_living_tenant_is_found(world: World) -> None:
    world.configuration.sources["src_1"], world.configuration.forms["form_1"] = SOURCE, FORM
    source, form = world.authorising.source("src_1"), world.authorising.form("form_1")
    assert source is not None
    assert source[0] == SOURCE
    assert form is not None
    assert form[0] == FORM
    assert source[1].settings == form[1].settings == event_settings()


def test_a_source_or_form_of_a_dead_tenant_is_not_found(world: World) -> None:
    world.configuration.sources["src_1"], world.configuration.forms["form_1"] = SOURCE, FORM
    world.tenants.incarnations.clear()
    assert world.authorising.source("src_1") is None
    assert world.authorising.form("form_1") is None


def test_a_source_of_an_earlier_life_is_not_found(world: World) -> None:
    world.configuration.sources["src_1"] = replace(SOURCE, life=TenantEpoch(ACME, "00000000"))
    assert world.authorising.source("src_1") is None
    assert world.authorising.source("unknown") is None
