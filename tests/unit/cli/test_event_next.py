"""The next steps with things of the event plane, for the console's buttons and the command line's notes."""

from __future__ import annotations

import pytest

from orchestrator.cli.event_next import connection_steps, key_steps, replay_steps, resend_step, source_steps
from orchestrator.cli.next_step import NextStep, lines
from orchestrator.cli.waiting import troubles_waiting

CONNECTION = {"tenant_id": "acme", "connection_id": "conn_1", "status": "active", "signed": True}
REPLAY = {"tenant_id": "acme", "replay_id": "rpl_1", "status": "running", "ended_at": None}


def valid(steps: list[NextStep]) -> list[str]:
    return [step.verb for step in steps if step.valid]


@pytest.mark.parametrize(
    ("status", "possible"),
    [
        ("active", ["pause", "test", "replay", "update", "rotate", "delete"]),
        ("paused", ["resume", "test", "replay", "update", "rotate", "delete"]),
        ("disabled", ["resume", "update", "rotate", "delete"]),
    ],
)
def test_the_next_steps_of_a_connection_depend_on_its_status(status: str, possible: list[str]) -> None:
    assert valid(connection_steps({**CONNECTION, "status": status})) == possible


def test_only_a_connection_that_does_not_deliver_has_a_suggestion() -> None:
    assert lines(connection_steps(CONNECTION)) == []
    paused = lines(connection_steps({**CONNECTION, "status": "paused"}))
    assert paused == ["Let it deliver again: berth connections resume acme conn_1"]


def test_a_connection_without_a_secret_has_none_to_replace() -> None:
    assert "rotate" not in valid(connection_steps({**CONNECTION, "signed": False}))


def test_a_source_is_paused_or_resumed() -> None:
    source = {"tenant_id": "acme", "source_id": "src_1", "status": "active"}
    assert valid(source_steps(source)) == ["pause", "delete"]
    assert valid(source_steps({**source, "status": "paused"})) == ["resume", "delete"]


def test_nothing_can_be_done_with_a_key_that_does_not_work() -> None:
    key = {"tenant_id": "acme", "key_id": "key_1", "status": "active"}
    assert valid(key_steps(key)) == ["rotate", "revoke"]
    assert [step.refusal for step in key_steps({**key, "status": "expired"})] == ["It is expired."] * 2


def test_a_replay_is_paused_resumed_or_over() -> None:
    assert valid(replay_steps(REPLAY)) == ["pause", "cancel"]
    assert valid(replay_steps({**REPLAY, "status": "paused"})) == ["resume", "cancel"]
    over = {**REPLAY, "status": "finished", "ended_at": "2026-11-16T12:00:00.000000Z"}
    assert valid(replay_steps(over)) == []


def test_an_event_is_resent_to_connections_that_are_there() -> None:
    there = {"connection_id": "conn_1", "connection_name": "Shop", "status": "failed"}
    gone = {"connection_id": "conn_2", "connection_name": None, "status": "delivered"}
    attempts = {"tenant_id": "acme", "event_id": "e", "deliveries": [there, gone]}
    assert resend_step(attempts).command == "berth resend acme e"
    assert resend_step(attempts, there).command == "berth resend acme e --connection conn_1"
    assert resend_step(attempts, gone).refusal == "The connection was deleted."
    assert resend_step({**attempts, "deliveries": [gone]}).refusal == "It has failed to no connection."


def test_troubled_connections_are_one_line() -> None:
    listed = [{"trouble": "failing"}, {"trouble": "paused"}, {"trouble": "paused"}]
    (waiting,) = troubles_waiting({"connections": listed, "more": False})
    assert waiting.what == "3 connections fail or wait: 1 failing, 2 paused"
    (waiting,) = troubles_waiting({"connections": listed[:1], "more": True})
    assert waiting.what == "at least 1 connection fails or waits: 1 failing"
    assert troubles_waiting({"connections": [], "more": False}) == []
