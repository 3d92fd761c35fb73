"""A mail that came back for good, or a complaint, disables its connection: once, and no other."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from orchestrator.common.errors import Unsettled
from orchestrator.events.delivery.bounces import MailReport, ProcessingBounces, ReportKind, ReportOutcome
from orchestrator.events.delivery.records import Connection, ConnectionStatus, Destination, DestinationKind
from orchestrator.events.records import TenantEpoch, UnreadableRow
from tests.fakes import NOON, FakeClock
from tests.fakes.connections import InMemoryConnections
from tests.fakes.events import ACME_LIFE
from tests.fakes.sending import CONNECTION_ID, EVENT_ID, a_connection

ADDRESS = "ada@example.com"
BOUNCE = MailReport(
    kind=ReportKind.BOUNCE,
    life=ACME_LIFE,
    origin="api",
    connection_id=CONNECTION_ID,
    event_id=EVENT_ID,
    sent_at=NOON,
    recipients=[ADDRESS],
    is_final=True,
    text="Permanent, General, smtp; 550 5.1.1 user unknown",
)
COMPLAINT = replace(BOUNCE, kind=ReportKind.COMPLAINT, text="abuse")


def mail_connection(**changes: Any) -> Connection:
    return replace(a_connection(DestinationKind.EMAIL, ADDRESS), **changes)


def process(connections: InMemoryConnections, report: MailReport = BOUNCE) -> ReportOutcome:
    return ProcessingBounces(connections=connections, changes=connections, clock=FakeClock()).process(report)


@pytest.fixture
def connections() -> InMemoryConnections:
    found = InMemoryConnections()
    found.put(mail_connection())
    return found


@pytest.mark.parametrize(
    ("report", "reason"),
    [
        (BOUNCE, f"The mail of event {EVENT_ID} came back for good: Permanent, General, smtp; 550 5.1.1 user unknown"),
        (COMPLAINT, f"The receiver of the mail of event {EVENT_ID} has complained about it: abuse"),
    ],
    ids=["bounce", "complaint"],
)
def test_the_connection_is_disabled_with_the_reason(
    connections: InMemoryConnections, report: MailReport, reason: str
) -> None:
    assert process(connections, report) is ReportOutcome.DISABLED
    disabled = connections.all[CONNECTION_ID]
    assert (disabled.status, disabled.reason, disabled.draining) == (ConnectionStatus.DISABLED, reason, True)


def test_a_report_that_is_not_final_changes_nothing(connections: InMemoryConnections) -> None:
    assert process(connections, replace(BOUNCE, is_final=False)) is ReportOutcome.NOT_FINAL
    assert connections.all[CONNECTION_ID] == mail_connection()


def test_the_same_report_twice_disables_once(connections: InMemoryConnections) -> None:
    process(connections)
    disabled = connections.all[CONNECTION_ID]
    assert process(connections, COMPLAINT) is ReportOutcome.ENDED
    assert connections.all[CONNECTION_ID] == disabled


@pytest.mark.parametrize(
    ("sent", "outcome", "status"),
    [
        (-timedelta(milliseconds=1), ReportOutcome.ENABLED_SINCE, ConnectionStatus.ACTIVE),
        (timedelta(0), ReportOutcome.DISABLED, ConnectionStatus.DISABLED),
    ],
    ids=["before", "after"],
)
def test_only_a_mail_that_was_sent_after_the_connection_was_enabled_again_disables_it(
    connections: InMemoryConnections, sent: timedelta, outcome: ReportOutcome, status: ConnectionStatus
) -> None:
    connections.put(mail_connection(enabled_at=NOON))
    assert process(connections, replace(BOUNCE, sent_at=NOON + sent)) is outcome
    assert connections.all[CONNECTION_ID].status is status


def test_a_paused_connection_is_disabled_too(connections: InMemoryConnections) -> None:
    connections.pause(CONNECTION_ID)
    assert process(connections) is ReportOutcome.DISABLED


@pytest.mark.parametrize(
    "destination",
    [
        Destination(DestinationKind.EMAIL, "grace@example.com"),
        Destination(DestinationKind.WEBHOOK, "https://shop.example/"),
    ],
    ids=["another address", "no mail"],
)
def test_a_connection_that_sends_to_another_address_now_goes_on(
    connections: InMemoryConnections, destination: Destination
) -> None:
    connections.put(mail_connection(destination=destination))
    assert process(connections) is ReportOutcome.OTHER_ADDRESS
    assert connections.all[CONNECTION_ID].status is ConnectionStatus.ACTIVE


def test_capital_letters_do_not_make_another_address(connections: InMemoryConnections) -> None:
    assert process(connections, replace(BOUNCE, recipients=["Ada@Example.com"])) is ReportOutcome.DISABLED


@pytest.mark.parametrize(
    "changes",
    [
        {"connection_id": "conn_" + "0" * 24},
        {"life": TenantEpoch(ACME_LIFE.tenant, "77aa0123")},
        {"origin": "src_" + "0" * 24},
    ],
    ids=["connection", "life", "origin"],
)
def test_a_report_about_what_does_not_exist_changes_nothing(
    connections: InMemoryConnections, changes: dict[str, Any]
) -> None:
    assert process(connections, replace(BOUNCE, **changes)) is ReportOutcome.ENDED
    assert connections.all[CONNECTION_ID] == mail_connection()


class Changing(InMemoryConnections):
    """Somebody changes the connection before each write, so many times."""

    changes = 0

    def disable(self, connection: Connection, reason: str, at: datetime) -> bool:
        if self.changes:
            self.changes -= 1
            self.put(replace(connection, name=f"{connection.name}'", revision=connection.revision + 1))
        return super().disable(connection, reason, at)


def test_a_change_of_something_else_meanwhile_does_not_keep_the_connection_enabled() -> None:
    connections = Changing()
    connections.put(mail_connection())
    connections.changes = 2
    assert process(connections) is ReportOutcome.DISABLED
    assert connections.all[CONNECTION_ID].name.endswith("''")


def test_a_report_that_cannot_be_processed_now_comes_again() -> None:
    connections = Changing()
    connections.put(mail_connection())
    connections.changes = 100
    with pytest.raises(Unsettled, match="other writes came first"):
        process(connections)


class Damaged(InMemoryConnections):
    def connection(self, life: TenantEpoch, origin: str, connection_id: str) -> Any:
        del life, origin
        return UnreadableRow(connection_id)


def test_a_damaged_row_is_for_an_operator() -> None:
    with pytest.raises(Unsettled, match=f"connection {CONNECTION_ID} is damaged"):
        process(Damaged())
