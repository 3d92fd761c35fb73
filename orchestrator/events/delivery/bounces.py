"""Disables a connection whose mail comes back, or whose receiver complains about it.

SES takes a mail, and the delivery counts as delivered. Only later, sometimes after days, SES reports that the mail
could not be delivered, or that its receiver called it spam. To go on sending would cost the whole account its standing
with mail servers, so the connection is disabled, as one whose webhook answers 410.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from orchestrator.common.errors import Unsettled
from orchestrator.common.times import Clock
from orchestrator.events.delivery import health
from orchestrator.events.delivery.ports import ConnectionChanges, Connections
from orchestrator.events.delivery.records import Connection, DestinationKind
from orchestrator.events.records import TenantEpoch, UnreadableRow

_ROUNDS = 5


class ReportKind(StrEnum):
    BOUNCE = "bounce"
    COMPLAINT = "complaint"


@dataclass(frozen=True, slots=True)
class MailReport:
    """The report of a mail server, or of a receiver, about a mail that was sent before."""

    kind: ReportKind
    life: TenantEpoch
    origin: str
    connection_id: str
    event_id: str
    sent_at: datetime
    """When SES took the mail."""
    recipients: Sequence[str]
    """The addresses to which the mail was sent."""
    is_final: bool
    """False if the next mail may well arrive, or if the report is not against the mail."""
    text: str
    """The words of the report. The tenant may read them."""


class ReportOutcome(StrEnum):
    DISABLED = "disabled"
    NOT_FINAL = "not-final"
    """The report says nothing against the next mail."""
    ENDED = "ended"
    """The connection is deleted, or was disabled before."""
    OTHER_ADDRESS = "other-address"
    """Somebody has changed the address since the mail was sent."""
    ENABLED_SINCE = "enabled-since"
    """The connection was disabled, and somebody has enabled it again since the mail was sent."""


class ProcessingBounces:
    def __init__(self, *, connections: Connections, changes: ConnectionChanges, clock: Clock) -> None:
        self._connections = connections
        self._changes = changes
        self._clock = clock

    def process(self, report: MailReport) -> ReportOutcome:
        """Disable the connection, if the report is final. The same report may come twice."""
        if not report.is_final:
            return ReportOutcome.NOT_FINAL
        for _ in range(_ROUNDS):
            connection = self._connections.connection(report.life, report.origin, report.connection_id)
            if isinstance(connection, UnreadableRow):
                raise Unsettled(
                    f"Tenant {report.life.tenant}: the record of the connection {report.connection_id} is damaged, so "
                    f"it was not disabled after a {report.kind}. Mend the row, then process the report again."
                )
            if connection is None or health.has_ended(connection):
                return ReportOutcome.ENDED
            if not _was_sent_to(connection, report.recipients):
                return ReportOutcome.OTHER_ADDRESS
            if connection.enabled_at is not None and report.sent_at < connection.enabled_at:
                return ReportOutcome.ENABLED_SINCE
            # A paused connection is disabled, too: its parked mails would come back as well when it is resumed.
            if self._changes.disable(connection, _reason(report), self._clock.now()):
                return ReportOutcome.DISABLED
        raise Unsettled(
            f"Tenant {report.life.tenant}: the connection {report.connection_id} could not be disabled after a "
            f"{report.kind}, because other writes came first."
        )


def _was_sent_to(connection: Connection, recipients: Sequence[str]) -> bool:
    destination = connection.destination
    sent_to = {address.casefold() for address in recipients}
    return destination.kind is DestinationKind.EMAIL and destination.address.casefold() in sent_to


def _reason(report: MailReport) -> str:
    match report.kind:
        case ReportKind.BOUNCE:
            return f"The mail of event {report.event_id} came back for good: {report.text}"
        case ReportKind.COMPLAINT:
            return f"The receiver of the mail of event {report.event_id} has complained about it: {report.text}"
