"""Connections of tenants: the use cases on DynamoDB, by moto."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from orchestrator.adapters.dynamodb.connection_rows import connection_row, key_of
from orchestrator.adapters.dynamodb.connections import DynamoConnections
from orchestrator.adapters.dynamodb.event_changes import DynamoChanges
from orchestrator.common.errors import InvalidRequest, Throttled
from orchestrator.common.tenant_ids import TenantId
from orchestrator.events import configuring_connections
from orchestrator.events.accepting import NewEvent
from orchestrator.events.configuring import SettingsChange
from orchestrator.events.configuring_connections import (
    ConnectionChange,
    IssuedSecret,
    NewConnection,
)
from orchestrator.events.delivery.addresses import AddressRules
from orchestrator.events.delivery.records import (
    API_ORIGIN,
    Connection,
    ConnectionStatus,
    Destination,
    DestinationKind,
    Health,
    only_connection,
    origin_of,
)
from orchestrator.events.delivery.retries import RetrySchedule
from orchestrator.events.delivery.signing import secret_context
from orchestrator.events.plans import Plan
from orchestrator.events.rates import Rates
from orchestrator.events.records import Content, EventSettings, TenantEpoch
from orchestrator.events.refusals import EventRefusal, Refused
from orchestrator.events.sending_tests import TESTS_AT_ONCE, SendingTests, SentTest
from orchestrator.events.zapier_samples import SamplingEvents
from tests.adapters.conftest import TABLE
from tests.adapters.events.lives import EVENTS_TABLE, Lives
from tests.fakes import ACME, NOON
from tests.fakes.events import INCARNATION, NEXT_INCARNATION, OPERATOR, FakeSecrets
from tests.present import present

HOUR = timedelta(hours=1)
GLOBEX = TenantId.parse("globex")
WEBHOOK = Destination(DestinationKind.WEBHOOK, "https://shop.example/hooks")
ZAP = "https://hooks.zapier.com/hooks/standard/1/abc/"
MAIL = Destination(DestinationKind.EMAIL, "ada@example.com")


def webhook(lives: Lives, settings: EventSettings, **new: Any) -> IssuedSecret:
    created = lives.connections.create(settings, NewConnection(**{"name": "shop", "destination": WEBHOOK} | new))
    assert isinstance(created, IssuedSecret)
    return created


def stored(lives: Lives, connection: Connection) -> Connection:
    """As deliveries read it."""
    connections = DynamoConnections(lives.dynamodb, TABLE, report=lambda row: pytest.fail(row.row))
    return present(connections.connection(connection.life, connection.origin, connection.connection_id))


def overwrite(lives: Lives, connection: Connection) -> None:
    lives.dynamodb.put_item(TableName=TABLE, Item={**key_of(connection), **connection_row(connection)})


def kind_of(outcome: object) -> EventRefusal:
    assert isinstance(outcome, Refused), outcome
    return outcome.kind


def kinds(lives: Lives, life: TenantEpoch) -> list[str]:
    changes, _ = DynamoChanges(lives.dynamodb, EVENTS_TABLE).changes(life, after=None, limit=100)
    return [change.kind.value for change in reversed(changes)]


class TestCreating:
    def test_by_default_events_of_the_api_go_to_the_tenants_own_queue(self, lives: Lives) -> None:
        settings = lives.settings()
        connection = lives.connection(settings)
        assert (connection.origin, connection.destination) == (API_ORIGIN, Destination(DestinationKind.QUEUE))
        assert (connection.status, connection.secret, connection.retry) == ("active", None, RetrySchedule())
        assert stored(lives, connection) == connection
        assert lives.connections.list(settings.life) == [connection]
        assert lives.connections.find(settings.life, connection.connection_id) == connection

    def test_a_webhook_is_signed_with_a_secret_that_is_shown_once_and_kept_encrypted(self, lives: Lives) -> None:
        settings = lives.settings()
        created = webhook(lives, settings)
        secret, connection = present(created.secret), created.connection
        assert secret.startswith("whsec_")
        assert secret not in repr(created)
        context = secret_context(connection.connection_id)
        assert FakeSecrets().decrypt(present(connection.secret), settings.life, context) == secret.encode()
        assert secret not in repr(lives.rows())
        assert secret not in repr(lives.dynamodb.scan(TableName=EVENTS_TABLE)["Items"])

    def test_events_of_a_source_or_a_form_can_be_connected(self, lives: Lives) -> None:
        settings = lives.settings()
        for origin in (lives.source(settings), lives.form(settings)):
            assert stored(lives, lives.connection(settings, origin=origin)).origin == origin

    @pytest.mark.parametrize("origin", ["src_" + "0" * 24, "form_" + "0" * 24])
    def test_an_origin_that_does_not_exist_is_refused(self, lives: Lives, origin: str) -> None:
        refused = lives.connections.create(lives.settings(), NewConnection("x", origin=origin))
        expected = EventRefusal.NO_SUCH_FORM if origin.startswith("form") else EventRefusal.NO_SUCH_SOURCE
        assert kind_of(refused) is expected

    def test_another_tenants_source_cannot_be_connected(self, lives: Lives) -> None:
        source = lives.source(lives.settings())
        lives.tenants.incarnations[GLOBEX] = INCARNATION
        globex = lives.configuring.change_settings(GLOBEX, SettingsChange())
        assert isinstance(globex, EventSettings)
        refused = lives.connections.create(globex, NewConnection("x", origin=source))
        assert kind_of(refused) is EventRefusal.NO_SUCH_SOURCE

    @pytest.mark.parametrize(
        ("new", "message"),
        [
            ({"filter": {"colour": "red"}}, "filter: colour"),
            ({"filter": {"event_type": "order created"}}, "filter: event_type: 'order created' is not the type of any"),
            ({"transform": {"run": "code"}}, "transform"),
            ({"filter": {"payload": {"text": "x" * 9_000}}}, "filter: it is larger"),
            ({"filter": {"payload": {"$eq": json.loads("[" * 40 + "]" * 40)}}}, "nested"),
            ({"destination": Destination(DestinationKind.QUEUE, "https://shop.example/")}, "address"),
            ({"destination": Destination(DestinationKind.WEBHOOK)}, "address: a connection to a webhook needs"),
            ({"destination": Destination(DestinationKind.WEBHOOK, "http://shop.example/")}, "https://"),
            ({"destination": Destination(DestinationKind.WEBHOOK, "https://169.254.169.254/")}, "not allowed"),
            ({"destination": Destination(DestinationKind.ZAPIER, "https://shop.example/")}, "hooks.zapier.com"),
            ({"destination": Destination(DestinationKind.ZAPIER, "https://hooks.zapier.com.evil.example/")}, "zapier"),
            ({"destination": Destination(DestinationKind.EMAIL, "ada")}, "address of mail"),
            ({"destination": Destination(DestinationKind.EMAIL, "a@b.example\nBcc: c@d.example")}, "address of mail"),
        ],
    )
    def test_a_connection_that_cannot_work_is_refused_and_nothing_is_written(
        self, lives: Lives, new: dict[str, Any], message: str
    ) -> None:
        settings = lives.settings()
        with pytest.raises(InvalidRequest, match=message):
            lives.connections.create(settings, NewConnection(**{"name": "x"} | new))
        assert lives.connections.list(settings.life) == []

    def test_our_own_host_is_no_destination(self, lives: Lives) -> None:
        rules = AddressRules(own_hosts=frozenset({"api.berth.example"}))
        own = Destination(DestinationKind.WEBHOOK, "https://API.berth.example/hooks/src_1")
        with pytest.raises(InvalidRequest, match="not allowed"):
            lives.configuring_connections(addresses=rules).create(lives.settings(), NewConnection("x", own))

    def test_mail_is_sent_only_where_an_operator_has_confirmed_the_address(self, lives: Lives) -> None:
        settings = lives.settings()
        with pytest.raises(InvalidRequest, match="operator has to confirm"):
            lives.configuring_connections(by_operator=False).create(settings, NewConnection("x", MAIL))
        with pytest.raises(InvalidRequest, match="berth:eventsMailFrom"):
            lives.configuring_connections(sends_mail=False).create(settings, NewConnection("x", MAIL))
        assert lives.connection(settings, destination=MAIL).destination == MAIL

    def test_an_origin_has_at_most_20_connections(self, lives: Lives, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(configuring_connections, "MAX_PER_ORIGIN", 2)
        settings = lives.settings()
        source = lives.source(settings)
        for _ in range(2):
            lives.connection(settings)
        refused = lives.connections.create(settings, NewConnection("x"))
        assert kind_of(refused) is EventRefusal.LIMIT_REACHED
        lives.connection(settings, origin=source)

    def test_a_tenant_has_at_most_100_connections(self, lives: Lives, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(configuring_connections, "MAX_PER_TENANT", 2)
        settings = lives.settings()
        lives.connection(settings)
        lives.connection(settings, origin=lives.source(settings))
        refused = lives.connections.create(settings, NewConnection("x", origin=lives.form(settings)))
        assert kind_of(refused) is EventRefusal.LIMIT_REACHED

    def test_deleted_connections_make_room_but_not_without_end(
        self, lives: Lives, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(configuring_connections, "MAX_PER_ORIGIN", 2)
        settings = lives.settings()
        for _ in range(4):
            lives.connections.delete(settings.life, lives.connection(settings).connection_id)
        refused = lives.connections.create(settings, NewConnection("x"))
        assert isinstance(refused, Refused)
        assert "just deleted" in refused.reason

    def test_the_number_of_connections_per_origin_and_tenant_is_as_documented(self) -> None:
        assert (configuring_connections.MAX_PER_ORIGIN, configuring_connections.MAX_PER_TENANT) == (20, 100)

    def test_two_creates_at_a_time_cannot_pass_the_limit(self, lives: Lives, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(configuring_connections, "MAX_PER_ORIGIN", 1)
        settings = lives.settings()
        before_the_write(lives, monkeypatch, "add_connection", lambda: lives.connection(settings))
        assert kind_of(lives.connections.create(settings, NewConnection("x"))) is EventRefusal.LIMIT_REACHED

    def test_a_source_that_is_deleted_meanwhile_gets_no_connection(
        self, lives: Lives, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings = lives.settings()
        source = lives.source(settings)
        before_the_write(lives, monkeypatch, "add_connection", lambda: lives.sources.delete(settings.life, source))
        refused = lives.connections.create(settings, NewConnection("x", origin=source))
        assert kind_of(refused) is EventRefusal.NO_SUCH_SOURCE

    def test_a_connection_of_an_earlier_life_is_not_found(self, lives: Lives) -> None:
        connection = lives.connection(lives.settings())
        lives.delete()
        lives.create(NEXT_INCARNATION)
        successor = lives.settings()
        assert lives.connections.list(successor.life) == []
        found = lives.connections.find(successor.life, connection.connection_id)
        assert kind_of(found) is EventRefusal.NO_SUCH_CONNECTION


def before_the_write(lives: Lives, monkeypatch: pytest.MonkeyPatch, name: str, do: Any) -> None:
    """Do something else just before the first write of this name."""
    write = getattr(lives.table, name)

    def first(*arguments: Any) -> Any:
        monkeypatch.setattr(lives.table, name, write)
        do()
        return write(*arguments)

    monkeypatch.setattr(lives.table, name, first)


class TestChanging:
    def test_only_the_given_fields_change(self, lives: Lives) -> None:
        settings = lives.settings()
        connection = webhook(lives, settings, filter={"event_type": "order.created"}).connection
        retry = RetrySchedule((timedelta(seconds=9),))
        change = ConnectionChange(name="other", transform={"wrap": "order"}, retry=retry)
        changed = lives.connections.change(settings.life, connection.connection_id, change)
        expected = replace(connection, name="other", transform={"wrap": "order"}, retry=retry, revision=1)
        assert changed == stored(lives, connection) == expected

    def test_an_empty_document_removes_a_filter(self, lives: Lives) -> None:
        settings = lives.settings()
        connection = webhook(lives, settings, filter={"event_type": "x"}, transform={"wrap": "y"}).connection
        change = ConnectionChange(filter={}, transform={})
        changed = lives.connections.change(settings.life, connection.connection_id, change)
        assert isinstance(changed, Connection)
        assert (changed.filter, changed.transform) == (None, None)

    def test_a_change_that_changes_nothing_is_not_on_record(self, lives: Lives) -> None:
        settings = lives.settings()
        lives.wait(HOUR)
        connection = lives.connection(settings)
        lives.connections.change(settings.life, connection.connection_id, ConnectionChange(name="orders"))
        assert kinds(lives, settings.life) == ["settings-created", "connection-created"]

    @pytest.mark.parametrize(
        "change",
        [
            ConnectionChange(filter={"$where": 1}),
            ConnectionChange(filter={"event_type": "order created"}),
            ConnectionChange(transform={"x": 1}),
            ConnectionChange(address="https://10.0.0.1/"),
        ],
    )
    def test_a_change_is_checked_like_a_new_connection(self, lives: Lives, change: ConnectionChange) -> None:
        settings = lives.settings()
        connection = webhook(lives, settings).connection
        with pytest.raises(InvalidRequest):
            lives.connections.change(settings.life, connection.connection_id, change)
        assert stored(lives, connection) == connection

    def test_a_filter_that_was_accepted_before_keeps_nobody_from_other_changes(self, lives: Lives) -> None:
        settings = lives.settings()
        connection = replace(webhook(lives, settings).connection, filter={"event_type": "order created"})
        overwrite(lives, connection)
        changed = lives.connections.change(settings.life, connection.connection_id, ConnectionChange(name="other"))
        assert changed == replace(connection, name="other", revision=1)

    def test_a_tenant_may_rename_a_mail_connection_but_not_redirect_it(self, lives: Lives) -> None:
        settings = lives.settings()
        connection_id = lives.connection(settings, destination=MAIL).connection_id
        by_tenant = lives.configuring_connections(by_operator=False)
        assert isinstance(by_tenant.change(settings.life, connection_id, ConnectionChange(name="x")), Connection)
        with pytest.raises(InvalidRequest, match="operator"):
            by_tenant.change(settings.life, connection_id, ConnectionChange(address="eve@example.com"))

    def test_a_change_is_computed_again_if_a_delivery_changed_the_health_meanwhile(
        self, lives: Lives, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings = lives.settings()
        connection = lives.connection(settings)
        failing = replace(connection, health=Health(failing_since=NOON))
        before_the_write(lives, monkeypatch, "change_connection", lambda: overwrite(lives, failing))
        lives.connections.change(settings.life, connection.connection_id, ConnectionChange(name="other"))
        assert stored(lives, connection) == replace(failing, name="other", revision=1)

    def test_an_unknown_connection_is_refused(self, lives: Lives) -> None:
        life, unknown = lives.settings().life, "conn_" + "0" * 24
        use = lives.connections
        for outcome in (
            use.find(life, unknown),
            use.change(life, unknown, ConnectionChange(name="x")),
            use.pause(life, unknown),
            use.resume(life, unknown),
            use.rotate(life, unknown),
            use.delete(life, unknown),
        ):
            assert kind_of(outcome) is EventRefusal.NO_SUCH_CONNECTION

    def test_another_tenants_connection_is_unknown(self, lives: Lives) -> None:
        connection = lives.connection(lives.settings())
        stranger = TenantEpoch(GLOBEX, "77aa0123")
        assert kind_of(lives.connections.find(stranger, connection.connection_id)) is EventRefusal.NO_SUCH_CONNECTION


class TestPausing:
    def test_a_paused_connection_is_looked_after_and_drains_once_it_is_resumed(self, lives: Lives) -> None:
        settings = lives.settings()
        connection = lives.connection(settings)
        life, connection_id = settings.life, connection.connection_id
        paused = lives.connections.pause(life, connection_id)
        assert paused == stored(lives, connection) == replace(connection, status="paused", revision=1)
        assert paused.needs_care
        assert lives.connections.pause(life, connection_id) == paused
        resumed = lives.connections.resume(life, connection_id)
        assert resumed == stored(lives, connection) == replace(connection, draining=True, revision=2)
        assert resumed.needs_care
        assert lives.connections.resume(life, connection_id) == resumed

    def test_a_pause_stops_the_draining_of_an_earlier_resume(self, lives: Lives) -> None:
        settings = lives.settings()
        connection = lives.connection(settings)
        overwrite(lives, replace(connection, draining=True, found_empty_at=NOON))
        paused = lives.connections.pause(settings.life, connection.connection_id)
        assert isinstance(paused, Connection)
        assert (paused.draining, paused.found_empty_at) == (False, None)

    def test_a_disabled_connection_begins_anew_when_it_is_resumed(self, lives: Lives) -> None:
        settings = lives.settings()
        connection = lives.connection(settings)
        failed = Health(NOON, NOON, NOON + HOUR, 3)
        overwrite(lives, replace(connection, status=ConnectionStatus.DISABLED, reason="410", health=failed))
        lives.wait(HOUR)
        resumed = lives.connections.resume(settings.life, connection.connection_id)
        assert resumed == replace(connection, draining=True, revision=1, enabled_at=NOON + HOUR)
        lives.wait(HOUR)
        lives.connections.pause(settings.life, connection.connection_id)
        lives.connections.resume(settings.life, connection.connection_id)
        assert stored(lives, connection).enabled_at == NOON + HOUR

    def test_a_disabled_connection_that_is_paused_is_not_disabled_any_more(self, lives: Lives) -> None:
        settings = lives.settings()
        connection = lives.connection(settings)
        overwrite(lives, replace(connection, status=ConnectionStatus.DISABLED, reason="410"))
        paused = lives.connections.pause(settings.life, connection.connection_id)
        assert isinstance(paused, Connection)
        assert (paused.status, paused.enabled_at) == (ConnectionStatus.PAUSED, NOON)

    def test_a_tenant_does_not_put_mail_back_that_berth_has_disabled(self, lives: Lives) -> None:
        settings = lives.settings()
        connection = lives.connection(settings, destination=MAIL)
        life, connection_id = settings.life, connection.connection_id
        disabled = replace(connection, status=ConnectionStatus.DISABLED, reason="The receiver has complained.")
        overwrite(lives, disabled)
        by_tenant = lives.configuring_connections(by_operator=False)
        for refused in (by_tenant.resume(life, connection_id), by_tenant.pause(life, connection_id)):
            assert isinstance(refused, Refused)
            assert refused.kind is EventRefusal.CONNECTION_DISABLED
            assert f"berth connections resume {life.tenant} {connection_id}" in refused.reason
        for address in ("eve@example.com", MAIL.address):
            with pytest.raises(InvalidRequest, match="operator"):
                by_tenant.change(life, connection_id, ConnectionChange(address=address))
        assert stored(lives, connection) == disabled
        assert isinstance(by_tenant.delete(life, connection_id), Connection)
        with pytest.raises(InvalidRequest, match="operator"):
            by_tenant.create(settings, NewConnection("again", MAIL))

    def test_a_disable_between_read_and_write_is_not_undone_by_the_tenant(
        self, lives: Lives, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings = lives.settings()
        connection = lives.connection(settings, destination=MAIL)
        disabled = replace(connection, status=ConnectionStatus.DISABLED, reason="It came back.", revision=1)
        before_the_write(lives, monkeypatch, "change_connection", lambda: overwrite(lives, disabled))
        by_tenant = lives.configuring_connections(by_operator=False)
        assert kind_of(by_tenant.pause(settings.life, connection.connection_id)) is EventRefusal.CONNECTION_DISABLED
        assert stored(lives, connection) == disabled

    def test_an_operator_puts_mail_back_and_a_tenant_pauses_and_resumes_what_is_not_disabled(
        self, lives: Lives
    ) -> None:
        settings = lives.settings()
        connection = lives.connection(settings, destination=MAIL)
        life, connection_id = settings.life, connection.connection_id
        overwrite(lives, replace(connection, status=ConnectionStatus.DISABLED, reason="It came back."))
        assert isinstance(lives.connections.resume(life, connection_id), Connection)
        by_tenant = lives.configuring_connections(by_operator=False)
        assert isinstance(by_tenant.pause(life, connection_id), Connection)
        assert isinstance(by_tenant.resume(life, connection_id), Connection)

    def test_a_tenant_resumes_a_disabled_webhook(self, lives: Lives) -> None:
        settings = lives.settings()
        connection = webhook(lives, settings).connection
        overwrite(lives, replace(connection, status=ConnectionStatus.DISABLED, reason="410"))
        by_tenant = lives.configuring_connections(by_operator=False)
        assert isinstance(by_tenant.resume(settings.life, connection.connection_id), Connection)

    def test_a_resume_closes_the_breaker_of_a_connection_that_is_active(self, lives: Lives) -> None:
        settings = lives.settings()
        connection = lives.connection(settings)
        overwrite(lives, replace(connection, health=Health(NOON, None, NOON + HOUR, 3)))
        resumed = lives.connections.resume(settings.life, connection.connection_id)
        assert resumed == replace(connection, draining=True, revision=1)

    def test_a_new_address_begins_anew_too(self, lives: Lives) -> None:
        settings = lives.settings()
        connection = webhook(lives, settings).connection
        overwrite(lives, replace(connection, health=Health(NOON, None, NOON + HOUR, 3)))
        change = ConnectionChange(address="https://other.example.com/hook")
        moved = lives.connections.change(settings.life, connection.connection_id, change)
        assert isinstance(moved, Connection)
        assert (moved.health, moved.draining) == (Health(), True)


class TestRotating:
    def test_both_secrets_sign_for_24_hours(self, lives: Lives) -> None:
        settings = lives.settings()
        created = webhook(lives, settings)
        lives.wait(HOUR)
        rotated = lives.connections.rotate(settings.life, created.connection.connection_id)
        assert isinstance(rotated, IssuedSecret)
        after = stored(lives, created.connection)
        assert rotated.secret != created.secret
        assert after.former_secret == created.connection.secret
        assert after.former_secret_until == NOON + 25 * HOUR
        context = secret_context(after.connection_id)
        decrypted = FakeSecrets().decrypt(present(after.secret), settings.life, context)
        assert decrypted.decode() == rotated.secret

    def test_a_connection_without_signatures_has_no_secret_to_rotate(self, lives: Lives) -> None:
        settings = lives.settings()
        rotated = lives.connections.rotate(settings.life, lives.connection(settings).connection_id)
        assert kind_of(rotated) is EventRefusal.NOT_SIGNED


class TestDeleting:
    def test_a_deleted_connection_is_shown_to_nobody_drains_and_has_no_secret(self, lives: Lives) -> None:
        settings = lives.settings()
        connection = webhook(lives, settings).connection
        overwrite(lives, replace(connection, health=Health(NOON, None, NOON + HOUR, 1)))
        assert isinstance(lives.connections.delete(settings.life, connection.connection_id), Connection)
        assert lives.connections.list(settings.life) == []
        found = lives.connections.find(settings.life, connection.connection_id)
        assert kind_of(found) is EventRefusal.NO_SUCH_CONNECTION
        left = stored(lives, connection)
        assert (left.status, left.draining, left.needs_care) == ("deleted", True, True)
        assert (left.secret, left.former_secret, left.health.open_until) == (None, None, None)

    @pytest.mark.parametrize("kind", ["source", "form"])
    def test_a_source_or_form_with_connections_is_not_deleted(self, lives: Lives, kind: str) -> None:
        settings = lives.settings()
        origin = lives.source(settings) if kind == "source" else lives.form(settings)
        delete = lives.sources.delete if kind == "source" else lives.forms.delete
        connection = lives.connection(settings, origin=origin)
        lives.connection(settings)
        refused = delete(settings.life, origin)
        assert isinstance(refused, Refused)
        assert (refused.kind, connection.connection_id in refused.reason) == (EventRefusal.HAS_CONNECTIONS, True)
        lives.connections.delete(settings.life, connection.connection_id)
        assert not isinstance(delete(settings.life, origin), Refused)
        # The row of the deleted connection outlives its source, until its deliveries have ended.
        assert stored(lives, connection).status is ConnectionStatus.DELETED

    def test_a_source_that_gets_a_connection_meanwhile_is_not_deleted(
        self, lives: Lives, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings = lives.settings()
        source = lives.source(settings)
        before_the_write(lives, monkeypatch, "remove_source", lambda: lives.connection(settings, origin=source))
        assert kind_of(lives.sources.delete(settings.life, source)) is EventRefusal.HAS_CONNECTIONS
        assert not isinstance(lives.sources.find(settings.life, source), Refused)


class TestZapier:
    def test_a_subscription_is_a_connection_that_is_made_once(self, lives: Lives) -> None:
        settings = lives.settings()
        first, second = (lives.connections.subscribe(settings, ZAP, "order.created") for _ in range(2))
        assert isinstance(first, IssuedSecret)
        assert first == second
        connection = first.connection
        assert (connection.destination, connection.filter) == (
            Destination(DestinationKind.ZAPIER, ZAP),
            {"event_type": "order.created"},
        )
        assert connection.secret is None
        assert lives.connections.list(settings.life) == [connection]

    def test_another_type_or_url_is_another_subscription(self, lives: Lives) -> None:
        settings = lives.settings()
        for url, event_type in ((ZAP, "order.created"), (ZAP, "order.paid"), (ZAP, None), (ZAP + "2/", "order.paid")):
            lives.connections.subscribe(settings, url, event_type)
        assert len(lives.connections.list(settings.life)) == 4

    def test_two_subscriptions_at_a_time_are_one(self, lives: Lives, monkeypatch: pytest.MonkeyPatch) -> None:
        settings = lives.settings()
        before_the_write(lives, monkeypatch, "add_connection", lambda: lives.connections.subscribe(settings, ZAP, None))
        lives.connections.subscribe(settings, ZAP, None)
        assert len(lives.connections.list(settings.life)) == 1

    def test_only_zapiers_hosts_can_subscribe(self, lives: Lives) -> None:
        with pytest.raises(InvalidRequest, match=r"hooks\.zapier\.com"):
            lives.connections.subscribe(lives.settings(), "https://shop.example/", "order.created")

    def test_to_unsubscribe_twice_is_done_already(self, lives: Lives) -> None:
        settings = lives.settings()
        subscribed = lives.connections.subscribe(settings, ZAP, None)
        assert isinstance(subscribed, IssuedSecret)
        connection_id = subscribed.connection.connection_id
        assert isinstance(lives.connections.unsubscribe(settings.life, connection_id), Connection)
        assert lives.connections.unsubscribe(settings.life, connection_id) is None
        again = lives.connections.subscribe(settings, ZAP, None)
        assert isinstance(again, IssuedSecret)
        assert again.connection.connection_id != connection_id

    def test_other_connections_are_no_subscriptions(self, lives: Lives) -> None:
        settings = lives.settings()
        connection = lives.connection(settings)
        refused = lives.connections.unsubscribe(settings.life, connection.connection_id)
        assert kind_of(refused) is EventRefusal.NO_SUCH_CONNECTION
        assert lives.connections.list(settings.life) == [connection]

    @pytest.mark.parametrize("type_index", [True, False])
    def test_samples_are_payloads_of_the_last_events_of_the_type(self, lives: Lives, type_index: bool) -> None:
        settings = lives.settings(type_index=type_index)
        standing = present(lives.granted(lives.key(settings)))
        bodies = [b'{"n": 1}', b'{"n": 2}', b"[]", b"\xff", b'{"n": NaN}', b'{"n": 3}', b'{"n": 1e999}']
        for body in bodies:
            lives.wait(timedelta(seconds=1))
            lives.accept(standing, NewEvent("order.created", Content(body)))
        lives.accept(standing, NewEvent("order.paid", Content(b'{"n": 5}')))
        sampling = SamplingEvents(listing=lives.listing)
        assert sampling.samples(settings, "order.created") == [{"n": None}, {"n": 3}, {"n": 2}]
        assert sampling.samples(settings, "order.paid") == [{"n": 5}]
        assert sampling.samples(settings, "user.created") == [{"event_type": "user.created", "sample": True}]


class TestTesting:
    @pytest.mark.parametrize("origin", ["api", "source", "form"])
    def test_a_test_is_an_event_of_the_origin_that_names_the_one_connection(self, lives: Lives, origin: str) -> None:
        settings = lives.settings()
        of = {"api": API_ORIGIN, "source": lives.source(settings), "form": lives.form(settings)}[origin]
        connection = lives.connection(settings, origin=of, filter={"event_type": "order.created"})
        sent = sending_tests(lives).send(settings, connection.connection_id)
        assert isinstance(sent, SentTest)
        event = lives.reads.read(settings.life, [sent.event_id])[sent.event_id]
        assert (event.event_type, only_connection(event), origin_of(event)) == (
            "berth.test",
            connection.connection_id,
            of,
        )
        assert not event.in_inbox

    def test_other_events_name_no_connection(self, lives: Lives) -> None:
        settings = lives.settings()
        standing = present(lives.granted(lives.key(settings)))
        metadata = {"only_connection": "conn_1"}
        event_id = lives.accept(standing, NewEvent("order.created", Content(b"{}"), metadata=metadata))
        assert only_connection(lives.reads.read(settings.life, [event_id])[event_id]) is None

    def test_tests_are_within_the_limit_per_second(self, lives: Lives) -> None:
        settings = lives.settings(plan=Plan.FREE)
        connection_id = lives.connection(settings).connection_id
        standing = present(lives.granted(lives.key(settings)))
        for _ in range(settings.limits.events_at_once):
            lives.accept(standing, NewEvent("order.created", Content(b"{}")))
        with pytest.raises(Throttled, match="events per second"):
            sending_tests(lives).send(settings, connection_id)

    def test_tests_are_few_because_the_limit_per_month_is_not_theirs(self, lives: Lives) -> None:
        """Each of them is delivered, and may be a mail to somebody."""
        settings = lives.settings(plan=Plan.TEAM)
        connection_id = lives.connection(settings).connection_id
        sending = sending_tests(lives)
        for _ in range(TESTS_AT_ONCE):
            sending.send(settings, connection_id)
        refused = sending.send(settings, connection_id)
        assert kind_of(refused) is EventRefusal.LIMIT_REACHED
        assert isinstance(refused, Refused)
        assert "Try again in 60 seconds" in refused.reason
        lives.wait(timedelta(minutes=1))
        assert isinstance(sending.send(settings, connection_id), SentTest)
        assert kind_of(sending.send(settings, connection_id)) is EventRefusal.LIMIT_REACHED

    def test_an_unknown_connection_is_refused(self, lives: Lives) -> None:
        assert kind_of(sending_tests(lives).send(lives.settings(), "conn_1")) is EventRefusal.NO_SUCH_CONNECTION

    def test_a_disabled_connection_is_refused_because_it_would_get_nothing(self, lives: Lives) -> None:
        settings = lives.settings()
        connection = lives.connection(settings)
        connection_id = connection.connection_id
        overwrite(lives, replace(connection, status=ConnectionStatus.DISABLED, reason="410"))
        refused = sending_tests(lives).send(settings, connection_id)
        assert kind_of(refused) is EventRefusal.CONNECTION_DISABLED
        lives.connections.resume(settings.life, connection_id)
        assert isinstance(sending_tests(lives).send(settings, connection_id), SentTest)


def sending_tests(lives: Lives) -> SendingTests:
    rates = Rates(monotonic=lives.watch)
    return SendingTests(connections=lives.connections, accepting=lives.accepting, rates=rates, clock=lives.clock)


def test_every_change_is_on_record_without_secrets(lives: Lives) -> None:
    settings = lives.settings()
    hidden = Destination(DestinationKind.WEBHOOK, "https://shop.example/hooks/hunter2?token=hunter2")
    lives.wait(HOUR)
    created = webhook(lives, settings, destination=hidden, transform={"set": {"password": "hunter2"}})
    connection_id, use = created.connection.connection_id, lives.connections
    secrets = [present(created.secret)]
    for change in (
        lambda: use.change(settings.life, connection_id, ConnectionChange(filter={"event_type": "x"})),
        lambda: use.pause(settings.life, connection_id),
        lambda: use.resume(settings.life, connection_id),
        lambda: secrets.append(use.rotate(settings.life, connection_id).secret),
        lambda: use.delete(settings.life, connection_id),
    ):
        lives.wait(HOUR)
        change()
    assert kinds(lives, settings.life)[1:] == [
        "connection-created",
        "connection-changed",
        "connection-paused",
        "connection-resumed",
        "connection-rotated",
        "connection-deleted",
    ]
    changes, _ = DynamoChanges(lives.dynamodb, EVENTS_TABLE).changes(settings.life, after=None, limit=100)
    deleted, *_, changed, first, _ = changes
    assert (deleted.subject, deleted.by, deleted.after) == (connection_id, OPERATOR, {"name": "shop"})
    assert changed.after == {"name": "shop", "filter": '{"event_type": "x"}'}
    assert first.after["address"].startswith("shop.example, sha256 ")
    recorded = repr(lives.dynamodb.scan(TableName=EVENTS_TABLE)["Items"])
    assert not [each for each in (*secrets, "hunter2") if each in recorded]
    assert ACME.value in recorded
