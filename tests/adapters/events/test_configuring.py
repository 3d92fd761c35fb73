"""Settings, API keys, sources and forms of tenants: the use cases on DynamoDB, by moto."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.adapters.dynamodb import event_keys
from orchestrator.adapters.dynamodb.event_configuration_writes import DynamoConfigurationTable
from orchestrator.adapters.dynamodb.keys import LISTING_INDEX
from orchestrator.adapters.dynamodb.writes import listing
from orchestrator.common.errors import InvalidRequest, Unsettled
from orchestrator.common.tenant_ids import TenantId
from orchestrator.events import configuring_forms, configuring_keys, configuring_sources
from orchestrator.events.api_keys import digest_of, is_key
from orchestrator.events.changes import Recorder
from orchestrator.events.configuring import Configuring, SettingsChange
from orchestrator.events.configuring_forms import ConfiguringForms, FormChange
from orchestrator.events.configuring_keys import ConfiguringKeys, IssuedKey
from orchestrator.events.configuring_sources import ConfiguringSources, CreatedSource, NewSource, secret_context
from orchestrator.events.plans import Plan
from orchestrator.events.records import (
    EventSettings,
    Form,
    KeyStatus,
    Provider,
    Scope,
    Source,
    SourceStatus,
    TenantEpoch,
)
from orchestrator.events.refusals import EventRefusal, Refused
from tests.adapters.conftest import TABLE
from tests.adapters.events.lives import EVENTS_TABLE
from tests.fakes import ACME, NOON, FakeClock
from tests.fakes.events import NEXT_INCARNATION, OPERATOR, FakeSecrets, FakeTenants
from tests.present import present

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

GLOBEX = TenantId.parse("globex")
HOUR = timedelta(hours=1)
ALL = frozenset({Scope.ADMIN})


class World:
    """The use cases, with the tenant acme alive."""

    def __init__(self, dynamodb: DynamoDBClient) -> None:
        self.dynamodb = dynamodb
        self.tenants = FakeTenants()
        self.clock = FakeClock()
        self.secrets = FakeSecrets()
        self.table = DynamoConfigurationTable(
            dynamodb, TABLE, events_table=EVENTS_TABLE, recorder=Recorder(OPERATOR, self.clock)
        )
        self.settings = Configuring(table=self.table, tenants=self.tenants, clock=self.clock)
        self.keys = ConfiguringKeys(table=self.table, clock=self.clock, environment="test")
        self.sources = ConfiguringSources(table=self.table, secrets=lambda: self.secrets, clock=self.clock)
        self.forms = ConfiguringForms(table=self.table, clock=self.clock)

    def set(self, **changes: Any) -> EventSettings:
        settings = self.settings.change_settings(ACME, SettingsChange(**changes))
        assert isinstance(settings, EventSettings)
        return settings

    def key(self, settings: EventSettings, **more: Any) -> IssuedKey:
        issued = self.keys.create(settings, "a key", frozenset({Scope.READ, Scope.WRITE}), **more)
        assert isinstance(issued, IssuedKey)
        return issued

    def source(self, settings: EventSettings, **more: Any) -> CreatedSource:
        new = {"name": "shop", "provider": Provider.GITHUB, "secret": "correct horse"} | more
        created = self.sources.create(settings, NewSource(**new))
        assert isinstance(created, CreatedSource)
        return created

    def form(self, settings: EventSettings, **options: Any) -> Form:
        form = self.forms.create(settings, "contact", FormChange(**options))
        assert isinstance(form, Form)
        return form

    def rows(self, prefix: str = "") -> list[dict[str, Any]]:
        found = self.dynamodb.scan(TableName=TABLE)["Items"]
        return [row for row in found if row["pk"]["S"].startswith(prefix)]

    def listed(self, listing_key: str) -> list[str]:
        found = self.dynamodb.query(
            TableName=TABLE,
            IndexName=LISTING_INDEX,
            KeyConditionExpression="ListingKey = :key",
            ExpressionAttributeValues={":key": {"S": listing_key}},
        )["Items"]
        return [row["ListingSort"]["S"] for row in found]

    def meanwhile(self, monkeypatch: pytest.MonkeyPatch, write: str, happens: Callable[[], object]) -> None:
        """Let something happen just before the first such write."""
        original, pending = getattr(self.table, write), [happens]

        def late(*given: Any, **more: Any) -> Any:
            if pending:
                pending.pop()()
            return original(*given, **more)

        monkeypatch.setattr(self.table, write, late)


@pytest.fixture
def world(events_table: DynamoDBClient) -> World:
    return World(events_table)


def refused(outcome: object) -> Refused:
    assert isinstance(outcome, Refused)
    return outcome


class TestSettings:
    def test_the_first_settings_are_free_with_inbox_and_index_and_have_a_random_epoch(self, world: World) -> None:
        settings = world.set()
        assert (settings.plan, settings.shards, settings.inbox, settings.type_index) == (Plan.FREE, 1, True, True)
        assert settings.incarnation == world.tenants.incarnations[ACME]
        assert len(settings.life.epoch) == 16
        assert world.settings.settings_of(ACME) == settings == world.table.settings(ACME)

    def test_settings_are_listed_so_that_a_deleted_tenants_can_be_found(self, world: World) -> None:
        world.set()
        assert world.listed(event_keys.LISTED_SETTINGS) == ["acme"]

    def test_a_change_leaves_the_other_settings_and_the_epoch(self, world: World) -> None:
        before = world.set(plan=Plan.PRO, tenant_name="Acme")
        world.clock.advance(HOUR)
        after = world.set(inbox=False)
        assert (after.plan, after.tenant_name, after.inbox) == (Plan.PRO, "Acme", False)
        assert after.life == before.life
        assert (after.created_at, after.updated_at) == (NOON, NOON + HOUR)

    def test_a_change_that_changes_nothing_writes_nothing(self, world: World) -> None:
        before = world.set(plan=Plan.PRO)
        world.clock.advance(HOUR)
        assert world.set(plan=Plan.PRO) == before

    def test_shards_grow_with_the_plan_and_never_shrink(self, world: World) -> None:
        assert [world.set(plan=plan).shards for plan in (Plan.FREE, Plan.TEAM, Plan.PRO, Plan.FREE)] == [1, 4, 4, 4]

    def test_a_tenant_that_is_not_alive_gets_no_settings(self, world: World) -> None:
        outcome = refused(world.settings.change_settings(GLOBEX, SettingsChange()))
        assert outcome.kind is EventRefusal.UNKNOWN_TENANT
        assert "globex" in outcome.reason
        assert not world.rows()

    def test_a_tenant_without_settings_is_told_how_to_get_them(self, world: World) -> None:
        outcome = refused(world.settings.settings_of(ACME))
        assert outcome.kind is EventRefusal.NO_SETTINGS
        assert "berth events settings acme --plan free" in outcome.reason

    def test_two_changes_at_once_both_take_effect(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        world.set()
        world.meanwhile(monkeypatch, "put_settings", lambda: world.set(inbox=True))
        settings = world.set(plan=Plan.TEAM)
        assert (settings.plan, settings.inbox) == (Plan.TEAM, True)
        assert world.table.settings(ACME) == settings

    def test_two_first_settings_at_once_make_one_epoch(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        first: list[EventSettings] = []
        world.meanwhile(monkeypatch, "put_settings", lambda: first.append(world.set()))
        assert world.set(inbox=True).life == first[0].life

    def test_a_change_that_always_comes_second_ends(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(world.table, "put_settings", lambda *_, **__: False)
        with pytest.raises(Unsettled, match=r"acme.*Try again"):
            world.set()


class TestAnotherLifeOfTheTenant:
    def test_the_settings_of_its_predecessor_are_void(self, world: World) -> None:
        world.set()
        world.tenants.incarnations[ACME] = NEXT_INCARNATION
        assert refused(world.settings.settings_of(ACME)).kind is EventRefusal.NO_SETTINGS

    def test_new_settings_begin_with_the_defaults_and_request_the_purge_of_the_old_epoch(self, world: World) -> None:
        before = world.set(plan=Plan.TEAM, inbox=False, tenant_name="Acme")
        world.tenants.incarnations[ACME] = NEXT_INCARNATION
        after = world.set()
        assert after.life.epoch != before.life.epoch
        assert (after.plan, after.shards, after.inbox, after.tenant_name) == (Plan.FREE, 1, True, "")
        assert world.listed(event_keys.LISTED_PURGES) == [f"2026-11-16T12:00:00.000Z#{before.life}"]
        (purge,) = [row for row in world.rows() if row["sk"]["S"].startswith(event_keys.PURGE_PREFIX)]
        assert (purge["tenant_id"], purge["epoch"]) == ({"S": "acme"}, {"S": before.life.epoch})

    def test_a_purge_that_was_requested_before_is_not_written_over(self, world: World) -> None:
        before = world.set()
        place = listing(event_keys.listed_purge(before.life, NOON - HOUR))
        world.dynamodb.put_item(TableName=TABLE, Item={**event_keys.purge_key(before.life), **place})
        world.tenants.incarnations[ACME] = NEXT_INCARNATION
        world.set()
        assert world.listed(event_keys.LISTED_PURGES) == [f"2026-11-16T11:00:00.000Z#{before.life}"]

    def test_two_at_once_begin_one_epoch(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        world.set()
        world.tenants.incarnations[ACME] = NEXT_INCARNATION
        first: list[EventSettings] = []
        world.meanwhile(monkeypatch, "put_settings", lambda: first.append(world.set()))
        assert world.set(plan=Plan.PRO).life == first[0].life
        assert len(world.listed(event_keys.LISTED_PURGES)) == 1

    def test_nothing_is_added_to_the_old_epoch(self, world: World) -> None:
        before = world.set()
        world.tenants.incarnations[ACME] = NEXT_INCARNATION
        world.set()
        count = len(world.rows())
        with pytest.raises(Unsettled):
            world.key(before)
        with pytest.raises(Unsettled):
            world.source(before)
        with pytest.raises(Unsettled):
            world.form(before)
        assert len(world.rows()) == count

    def test_nothing_is_added_if_the_epoch_ends_just_before_the_write(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = world.set()

        def lives_again() -> None:
            world.tenants.incarnations[ACME] = NEXT_INCARNATION
            world.set()

        world.meanwhile(monkeypatch, "add_api_key", lives_again)
        with pytest.raises(Unsettled):
            world.key(before)
        assert not world.rows(event_keys.KEY_HASH_PREFIX)

    def test_it_sees_no_key_source_or_form_of_its_predecessor(self, world: World) -> None:
        before = world.set()
        key, source, form = world.key(before), world.source(before), world.form(before)
        world.tenants.incarnations[ACME] = NEXT_INCARNATION
        life = world.set().life
        assert [*world.keys.list(life), *world.sources.list(life), *world.forms.list(life)] == []
        assert refused(world.keys.revoke(life, key.key.key_id)).kind is EventRefusal.NO_SUCH_KEY
        assert refused(world.sources.find(life, source.source.source_id)).kind is EventRefusal.NO_SUCH_SOURCE
        assert refused(world.forms.find(life, form.form_id)).kind is EventRefusal.NO_SUCH_FORM


class TestKeys:
    def test_a_key_is_found_by_its_digest_and_kept_nowhere(self, world: World) -> None:
        issued = world.key(world.set())
        assert is_key(issued.text)
        assert issued.text.startswith("bk_test_")
        assert world.table.api_key(digest_of(issued.text)) == issued.key
        assert issued.text not in str(world.rows())
        assert issued.text not in repr(issued)

    def test_keys_are_listed_oldest_first(self, world: World) -> None:
        settings = world.set()
        first = world.key(settings)
        world.clock.advance(HOUR)
        second = world.key(settings)
        assert world.keys.list(settings.life) == [first.key, second.key]

    def test_a_key_can_expire(self, world: World) -> None:
        key = world.key(world.set(), expires_in=HOUR).key
        assert key.expires_at == NOON + HOUR
        assert key.is_valid(NOON)
        assert not key.is_valid(NOON + HOUR)

    def test_a_revoked_key_is_revoked_in_both_rows_and_stays_so(self, world: World) -> None:
        settings = world.set()
        issued = world.key(settings)
        for _ in range(2):
            revoked = world.keys.revoke(settings.life, issued.key.key_id)
            assert not isinstance(revoked, Refused)
            assert revoked.status is KeyStatus.REVOKED
        assert world.table.api_key(issued.key.digest) == revoked
        assert world.keys.list(settings.life) == [revoked]

    def test_an_unknown_key_cannot_be_revoked_or_rotated(self, world: World) -> None:
        settings = world.set()
        for outcome in (world.keys.revoke(settings.life, "key_0"), world.keys.rotate(settings, "key_0")):
            assert refused(outcome).kind is EventRefusal.NO_SUCH_KEY
            assert "acme" in refused(outcome).reason

    def test_the_use_of_a_key_is_written_at_most_once_per_hour(self, world: World) -> None:
        settings = world.set()
        key = world.key(settings).key
        seen = []
        for _ in range(4):
            world.table.note(key, world.clock.now())
            seen.append(world.keys.list(settings.life)[0].last_used_at)
            world.clock.advance(timedelta(minutes=30))
        assert seen == [NOON, NOON, NOON + HOUR, NOON + HOUR]

    def test_the_use_of_a_key_that_is_gone_leaves_no_row(self, world: World) -> None:
        key = world.key(world.set()).key
        for row in world.rows("EVENTS#"):
            world.dynamodb.delete_item(TableName=TABLE, Key={"pk": row["pk"], "sk": row["sk"]})
        world.table.note(key, NOON)
        assert not world.rows("EVENTS#")

    def test_a_key_that_was_used_can_be_revoked(self, world: World) -> None:
        settings = world.set()
        key = world.key(settings).key
        world.table.note(key, NOON)
        world.keys.revoke(settings.life, key.key_id)
        (listed,) = world.keys.list(settings.life)
        assert (listed.status, listed.last_used_at) == (KeyStatus.REVOKED, NOON)


class TestRotation:
    def test_the_new_key_works_at_once_and_the_old_one_for_a_day(self, world: World) -> None:
        settings = world.set()
        old = world.key(settings)
        world.clock.advance(HOUR)
        new = world.keys.rotate(settings, old.key.key_id)
        assert isinstance(new, IssuedKey)
        assert (new.key.name, new.key.scopes, new.key.expires_at) == (old.key.name, old.key.scopes, None)
        kept = world.table.api_key(old.key.digest)
        assert kept == new.replaced
        assert kept is not None
        assert kept.expires_at == NOON + 25 * HOUR
        assert world.keys.list(settings.life) == [kept, new.key]

    def test_without_overlap_the_old_key_ends_at_once(self, world: World) -> None:
        settings = world.set()
        old = world.key(settings)
        world.keys.rotate(settings, old.key.key_id, overlap=timedelta())
        kept = present(world.table.api_key(old.key.digest))
        assert not kept.is_valid(NOON)

    def test_an_overlap_never_prolongs_a_key_and_the_new_key_has_the_same_lifetime(self, world: World) -> None:
        settings = world.set()
        old = world.key(settings, expires_in=2 * HOUR)
        world.clock.advance(HOUR)
        new = world.keys.rotate(settings, old.key.key_id)
        assert isinstance(new, IssuedKey)
        assert new.replaced == old.key
        assert new.key.expires_at == NOON + 3 * HOUR

    @pytest.mark.parametrize("days", [None, 90])
    def test_a_rotation_that_is_repeated_because_its_answer_was_lost_issues_the_same_lifetime(
        self, world: World, days: int | None
    ) -> None:
        settings = world.set()
        lifetime = timedelta(days=days) if days else None
        old = world.keys.create(settings, "shop", frozenset({Scope.WRITE}), expires_in=lifetime)
        assert isinstance(old, IssuedKey)
        world.clock.advance(HOUR)
        lost, new = (world.keys.rotate(settings, old.key.key_id) for _ in range(2))
        assert isinstance(lost, IssuedKey)
        assert isinstance(new, IssuedKey)
        assert new.key.expires_at == lost.key.expires_at == (world.clock.now() + lifetime if lifetime else None)
        again = world.keys.rotate(settings, new.key.key_id)
        assert isinstance(again, IssuedKey)
        assert again.key.expires_at == new.key.expires_at

    def test_a_key_that_does_not_work_cannot_be_rotated(self, world: World) -> None:
        settings = world.set()
        key = world.key(settings).key
        world.keys.revoke(settings.life, key.key_id)
        assert refused(world.keys.rotate(settings, key.key_id)).kind is EventRefusal.KEY_NOT_ACTIVE

    def test_a_key_that_is_revoked_meanwhile_is_not_prolonged(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings = world.set()
        key = world.key(settings).key
        world.meanwhile(monkeypatch, "add_api_key", lambda: world.keys.revoke(settings.life, key.key_id))
        outcome = world.keys.rotate(settings, key.key_id)
        # The old key has another status by then, but its expiry is what the rotation has read. Either order is right,
        # as long as the revoked key does not work.
        kept = present(world.table.api_key(key.digest))
        assert kept.status is KeyStatus.REVOKED
        assert isinstance(outcome, IssuedKey)


class TestLimits:
    @pytest.fixture(autouse=True)
    def _low(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(configuring_keys, "MAX_KEYS", 3)
        monkeypatch.setattr(configuring_sources, "MAX_SOURCES", 3)
        monkeypatch.setattr(configuring_forms, "MAX_FORMS", 3)

    def test_the_message_names_the_tenant_the_limit_and_what_to_do(self, world: World) -> None:
        settings = world.set()
        for _ in range(3):
            world.key(settings)
            world.source(settings)
            world.form(settings)
        outcomes = [
            world.keys.create(settings, "one more", ALL),
            world.sources.create(settings, NewSource("one more", Provider.NONE)),
            world.forms.create(settings, "one more", FormChange()),
        ]
        for outcome, advice in zip(map(refused, outcomes), ("Revoke", "Delete", "Delete"), strict=True):
            assert outcome.kind is EventRefusal.LIMIT_REACHED
            assert all(word in outcome.reason for word in ("acme", "3 is the limit", advice))

    def test_keys_that_do_not_work_any_more_give_way_oldest_first(self, world: World) -> None:
        settings = world.set()
        keys = [world.key(settings).key for _ in range(3)]
        for key in keys[:2]:
            world.keys.revoke(settings.life, key.key_id)
        new = world.key(settings).key
        left = {key.key_id for key in world.keys.list(settings.life)}
        assert len(left) == 3
        assert {keys[2].key_id, new.key_id} < left
        assert len(world.rows(event_keys.KEY_HASH_PREFIX)) == 3

    def test_two_adds_at_once_do_not_pass_the_limit(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        settings = world.set()
        for _ in range(2):
            world.key(settings)
            world.source(settings)
            world.form(settings)
        world.meanwhile(monkeypatch, "add_api_key", lambda: world.key(settings))
        world.meanwhile(monkeypatch, "add_source", lambda: world.source(settings))
        world.meanwhile(monkeypatch, "add_form", lambda: world.form(settings))
        outcomes = [
            world.keys.create(settings, "one more", ALL),
            world.sources.create(settings, NewSource("one more", Provider.NONE)),
            world.forms.create(settings, "one more", FormChange()),
        ]
        assert {refused(outcome).kind for outcome in outcomes} == {EventRefusal.LIMIT_REACHED}
        life = settings.life
        assert [len(each) for each in (world.keys.list(life), world.sources.list(life), world.forms.list(life))] == [
            3,
            3,
            3,
        ]


class TestSources:
    def test_the_secret_is_encrypted_for_this_source_and_in_no_list(self, world: World) -> None:
        settings = world.set()
        created = world.source(settings)
        source = world.sources.find(settings.life, created.source.source_id)
        assert isinstance(source, Source)
        assert source.secret is not None
        context = secret_context(source.source_id)
        assert world.secrets.decrypt(source.secret, settings.life, context) == b"correct horse"
        (listed,) = world.sources.list(settings.life)
        assert listed.secret is None
        assert "correct horse" not in repr(source) + repr(created)
        assert "correct horse" not in repr(NewSource("shop", Provider.GITHUB, "correct horse"))

    def test_a_secret_that_the_receiver_chooses_is_made_and_shown_once(self, world: World) -> None:
        settings = world.set()
        for provider in (Provider.GITHUB, Provider.STANDARD_WEBHOOKS):
            created = world.source(settings, provider=provider, secret=None)
            assert created.made_secret is not None
            assert len(created.made_secret) >= 43
            assert created.source.secret is not None
            assert created.source.secret.endswith(created.made_secret.encode()[::-1])

    def test_a_secret_that_was_given_is_not_shown_again(self, world: World) -> None:
        assert world.source(world.set()).made_secret is None

    def test_a_source_whose_provider_makes_the_secret_needs_it(self, world: World) -> None:
        with pytest.raises(InvalidRequest, match="secret"):
            world.source(world.set(), provider=Provider.STRIPE, secret=None)

    def test_a_source_can_check_nothing(self, world: World) -> None:
        assert world.source(world.set(), provider=Provider.NONE, secret=None).source.secret is None

    def test_a_source_says_where_the_signature_is(self, world: World) -> None:
        settings = world.set()
        given = {"header": "X-Signature", "encoding": "base64"}
        created = world.source(settings, provider=Provider.HMAC, verification=given).source
        assert world.sources.find(settings.life, created.source_id) == created
        assert created.verification == given

    def test_a_source_is_paused_and_resumed_in_both_rows_and_keeps_its_secret(self, world: World) -> None:
        settings = world.set()
        created = world.source(settings).source
        for status in (SourceStatus.PAUSED, SourceStatus.PAUSED, SourceStatus.ACTIVE):
            world.sources.set_status(settings.life, created.source_id, status)
            found = world.sources.find(settings.life, created.source_id)
            assert isinstance(found, Source)
            assert (found.status, found.secret) == (status, created.secret)
            assert world.sources.list(settings.life)[0].status is status

    def test_a_deleted_source_leaves_no_row(self, world: World) -> None:
        settings = world.set()
        source = world.source(settings).source
        world.sources.delete(settings.life, source.source_id)
        assert not world.rows(event_keys.SOURCE_PREFIX)
        assert world.sources.list(settings.life) == []
        assert refused(world.sources.delete(settings.life, source.source_id)).kind is EventRefusal.NO_SUCH_SOURCE

    def test_a_pause_does_not_bring_a_deleted_source_back(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        settings = world.set()
        source = world.source(settings).source
        world.meanwhile(monkeypatch, "change_source", lambda: world.sources.delete(settings.life, source.source_id))
        outcome = world.sources.set_status(settings.life, source.source_id, SourceStatus.PAUSED)
        assert refused(outcome).kind is EventRefusal.NO_SUCH_SOURCE
        assert not world.rows(event_keys.SOURCE_PREFIX)

    def test_another_tenants_source_is_unknown(self, world: World) -> None:
        source = world.source(world.set()).source
        other = TenantEpoch(GLOBEX, "0")
        for outcome in (
            world.sources.find(other, source.source_id),
            world.sources.set_status(other, source.source_id, SourceStatus.PAUSED),
            world.sources.delete(other, source.source_id),
        ):
            assert refused(outcome).kind is EventRefusal.NO_SUCH_SOURCE
        assert len(world.rows(event_keys.SOURCE_PREFIX)) == 1


class TestForms:
    ORIGINS = ("https://acme.example", "http://localhost:3000")

    def test_a_form_keeps_its_options(self, world: World) -> None:
        settings = world.set()
        options = {
            "origins": self.ORIGINS,
            "redirect_url": "https://acme.example/thanks",
            "honeypot": "website",
            "submissions_per_minute": 5,
        }
        form = world.form(settings, **options)
        assert {name: getattr(form, name) for name in options} == options
        assert world.forms.find(settings.life, form.form_id) == form
        assert world.forms.list(settings.life) == [form]

    @pytest.mark.parametrize(
        "url",
        [
            "https://elsewhere.example/",
            "https://acme.example@elsewhere.example/",
            "https://acme.example:8443/",
            "http://acme.example/",
            "//acme.example/",
            "http://[",
        ],
    )
    def test_a_form_redirects_to_its_own_origins_only(self, world: World, url: str) -> None:
        with pytest.raises(InvalidRequest, match="redirect_url"):
            world.form(world.set(), origins=self.ORIGINS, redirect_url=url)

    def test_origins_that_the_redirect_needs_cannot_be_removed(self, world: World) -> None:
        settings = world.set()
        form = world.form(settings, origins=self.ORIGINS, redirect_url="https://acme.example/thanks")
        with pytest.raises(InvalidRequest, match="redirect_url"):
            world.forms.change(settings.life, form.form_id, FormChange(origins=("https://new.example",)))
        change = FormChange(origins=("https://new.example",), redirect_url="")
        changed = world.forms.change(settings.life, form.form_id, change)
        assert isinstance(changed, Form)
        assert (changed.origins, changed.redirect_url) == (("https://new.example",), None)
        assert world.forms.list(settings.life) == [changed] == [world.forms.find(settings.life, form.form_id)]

    def test_two_changes_at_once_both_take_effect(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        settings = world.set()
        form = world.form(settings)
        pause = FormChange(status=SourceStatus.PAUSED)
        world.meanwhile(monkeypatch, "change_form", lambda: world.forms.change(settings.life, form.form_id, pause))
        changed = world.forms.change(settings.life, form.form_id, FormChange(name="orders"))
        assert isinstance(changed, Form)
        found = world.forms.find(settings.life, form.form_id)
        assert isinstance(found, Form)
        assert (found.name, found.status) == ("orders", SourceStatus.PAUSED)

    def test_a_deleted_form_leaves_no_row(self, world: World) -> None:
        settings = world.set()
        form = world.form(settings)
        world.forms.delete(settings.life, form.form_id)
        assert not world.rows(event_keys.FORM_PREFIX)
        assert refused(world.forms.delete(settings.life, form.form_id)).kind is EventRefusal.NO_SUCH_FORM
        assert refused(world.forms.change(settings.life, form.form_id, FormChange())).kind is EventRefusal.NO_SUCH_FORM
