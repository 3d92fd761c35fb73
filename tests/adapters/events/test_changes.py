"""Every change of a tenant's event configuration is on record: who, when, what, and never a secret."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from orchestrator.adapters.dynamodb.event_changes import DynamoChanges
from orchestrator.events.changes import KEPT_FOR
from orchestrator.events.configuring_forms import FormChange
from orchestrator.events.configuring_sources import CreatedSource, NewSource
from orchestrator.events.plans import Plan
from orchestrator.events.records import Change, EventSettings, Provider, SourceStatus
from tests.adapters.events.functions import ADA, EventFunctions
from tests.adapters.events.lives import EVENTS_TABLE, Lives
from tests.adapters.events.test_configuration_commands import Commands, lines
from tests.fakes import NOON
from tests.fakes.events import OPERATOR


def recorded(lives: Lives, settings: EventSettings) -> list[Change]:
    """Oldest first."""
    changes, cursor = DynamoChanges(lives.dynamodb, EVENTS_TABLE).changes(settings.life, after=None, limit=100)
    assert cursor is None
    return list(reversed(changes))


def kinds(lives: Lives, settings: EventSettings) -> list[str]:
    return [change.kind.value for change in recorded(lives, settings)]


def later(lives: Lives) -> None:
    lives.wait(timedelta(seconds=1))


def test_settings_are_on_record_with_the_values_that_differ(lives: Lives) -> None:
    settings = lives.settings(plan=Plan.FREE)
    later(lives)
    lives.settings(plan=Plan.PRO, inbox=False)
    first, second = recorded(lives, settings)
    assert (first.kind, first.by, first.at, first.before) == ("settings-created", OPERATOR, NOON, {})
    assert first.after["plan"] == "free"
    assert (second.kind, second.at) == ("settings-changed", NOON + timedelta(seconds=1))
    assert second.before == {"plan": "free", "shards": "1", "inbox": "on"}
    assert second.after == {"plan": "pro", "shards": "2", "inbox": "off"}


def test_a_change_that_changes_nothing_is_not_recorded(lives: Lives) -> None:
    settings = lives.settings()
    lives.settings()
    assert kinds(lives, settings) == ["settings-created"]


def test_keys_are_on_record_without_the_key_and_its_digest(lives: Lives) -> None:
    settings = lives.settings()
    later(lives)
    text = lives.key(settings)
    (key,) = lives.keys.list(settings.life)
    later(lives)
    lives.keys.rotate(settings, key.key_id)
    later(lives)
    lives.keys.revoke(settings.life, key.key_id)
    lives.keys.revoke(settings.life, key.key_id)
    _, created, rotated, revoked = recorded(lives, settings)
    assert (created.kind, created.subject, created.after["scopes"]) == ("key-created", key.key_id, "admin")
    assert (rotated.kind, rotated.after["replaces"]) == ("key-rotated", key.key_id)
    assert (revoked.kind, revoked.subject) == ("key-revoked", key.key_id)
    assert (revoked.before["status"], revoked.after["status"]) == ("active", "revoked")
    rows = repr(lives.dynamodb.scan(TableName=EVENTS_TABLE)["Items"])
    assert text not in rows
    assert key.digest not in rows


def test_sources_and_forms_are_on_record_without_secrets(lives: Lives) -> None:
    settings = lives.settings()
    later(lives)
    new = NewSource(name="shop", provider=Provider.GITHUB, secret="correct horse battery staple")
    created = lives.sources.create(settings, new)
    assert isinstance(created, CreatedSource)
    source_id = created.source.source_id
    for status in (SourceStatus.PAUSED, SourceStatus.ACTIVE):
        later(lives)
        lives.sources.set_status(settings.life, source_id, status)
    later(lives)
    lives.sources.delete(settings.life, source_id)
    form_id = lives.form(settings)
    for change in (FormChange(origins=("https://a.example",)), FormChange(status=SourceStatus.PAUSED)):
        later(lives)
        lives.forms.change(settings.life, form_id, change)
    later(lives)
    lives.forms.delete(settings.life, form_id)
    changes = recorded(lives, settings)
    assert sorted(change.kind.value for change in changes[1:]) == sorted(
        [
            *("source-created", "source-paused", "source-resumed", "source-deleted"),
            *("form-created", "form-changed", "form-paused", "form-deleted"),
        ]
    )
    (changed,) = (change for change in changes if change.kind == "form-changed")
    assert (changed.before["origins"], changed.after["origins"]) == ("", "https://a.example")
    rows = repr(lives.dynamodb.scan(TableName=EVENTS_TABLE)["Items"])
    assert "correct horse" not in rows


def test_a_change_that_fails_leaves_no_record(lives: Lives, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = lives.settings()
    stale = lives.table.settings(settings.life.tenant)
    assert stale
    lives.key(settings)
    before = kinds(lives, settings)
    monkeypatch.setattr(lives.table, "settings", lambda _tenant: stale)
    assert not lives.table.add_form(_form(settings), stale)
    assert kinds(lives, settings) == before


def _form(settings: EventSettings) -> Any:
    from orchestrator.events.records import Form

    return Form(settings.life, f"form_{'0' * 24}", "contact", SourceStatus.ACTIVE, NOON)


def test_a_record_expires_after_400_days(lives: Lives) -> None:
    lives.settings()
    (row,) = lives.dynamodb.scan(TableName=EVENTS_TABLE)["Items"]
    assert int(row["ttl"]["N"]) == int((NOON + timedelta(days=400)).timestamp())
    assert timedelta(days=400) == KEPT_FOR


def test_pages_follow_each_other_without_gaps(lives: Lives) -> None:
    settings = lives.settings()
    for plan in (Plan.FREE, Plan.STARTER, Plan.PRO, Plan.TEAM):
        later(lives)
        lives.settings(plan=plan)
    changes, found, cursor = DynamoChanges(lives.dynamodb, EVENTS_TABLE), [], None
    while True:
        page, cursor = changes.changes(settings.life, after=cursor, limit=2)
        found += page
        if cursor is None:
            break
    assert found == recorded(lives, settings)[::-1]
    assert len(found) == 5


class TestTheRoute:
    def test_operators_see_who_it_was_and_tenants_see_only_their_own_keys(
        self, event_functions: EventFunctions
    ) -> None:
        key = event_functions.key("admin")
        event_functions.clock.advance(timedelta(seconds=1))
        made = event_functions.ask("POST /forms", key, body={"name": "contact"})
        assert made.status == 201
        by_operator = event_functions.operate("GET /changes").body["changes"]
        assert by_operator[0]["kind"] == "form-created"
        key_id = by_operator[0]["changed_by"]
        assert key_id.startswith("key_")
        assert {each["changed_by"] for each in by_operator[1:]} == {ADA}
        by_tenant = event_functions.ask("GET /changes", key).body["changes"]
        assert {each["changed_by"] for each in by_tenant} == {key_id, "operator"}

    def test_it_needs_the_scope_admin(self, event_functions: EventFunctions) -> None:
        answer = event_functions.ask("GET /changes", event_functions.key("read", "write"))
        assert (answer.status, answer.kind) == (403, "missing-scope")


class TestTheCommand:
    def test_a_change_is_shown_with_who_made_it_and_what_differs(self, event_functions: EventFunctions) -> None:
        event_functions.key("read")
        event_functions.clock.advance(timedelta(seconds=1))
        commands = Commands(event_functions)
        assert commands.berth("events", "settings", "acme", "--plan", "pro").exit_code == 0
        newest, *differing = lines(commands.berth("events", "history", "acme", "--limit", "1").stdout)
        assert newest == f"2026-11-16 12:00:01 UTC  settings-changed  by {ADA}"
        assert differing == ["  plan: free -> pro", "  shards: 1 -> 2"]
        assert len(commands.json("events", "history", "acme")["changes"]) == 3

    def test_a_tenant_without_settings_is_refused(self, event_functions: EventFunctions) -> None:
        event_functions.serve()
        assert Commands(event_functions).berth("events", "history", "acme").exit_code != 0
