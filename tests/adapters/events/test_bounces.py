"""Reports of SES, in the form that AWS documents, and the function that gets them from EventBridge."""

from __future__ import annotations

import importlib
import json
import logging
from datetime import datetime, timedelta
from typing import Any

import pytest

from orchestrator.adapters.ses_reports import DETAIL_TYPES, read_report
from orchestrator.common.errors import BerthError, InvalidRequest, Unsettled
from orchestrator.common.times import timestamp
from orchestrator.events.delivery.bounces import ReportKind
from orchestrator.events.delivery.mail import mail
from orchestrator.events.delivery.payloads import Payload
from orchestrator.events.delivery.records import DestinationKind
from tests.adapters.conftest import TABLE
from tests.adapters.events.functions import ADA, EventFunctions, http_event
from tests.fakes import ACME, NOON
from tests.fakes.events import ACME_LIFE
from tests.fakes.sending import EVENT_ID, a_connection, outgoing

ADDRESS = "ada@example.com"
CONNECTION_ID = "conn_" + "1" * 24
Json = dict[str, Any]
PERMANENT: Json = {
    "bounceType": "Permanent",
    "bounceSubType": "General",
    "bouncedRecipients": [
        {
            "emailAddress": ADDRESS,
            "action": "failed",
            "status": "5.1.1",
            "diagnosticCode": "smtp; 550 5.1.1 user unknown",
        }
    ],
    "timestamp": "2026-11-16T12:00:03.669Z",
    "feedbackId": "0102018f-0000-4000-8000-000000000000-000000",
    "reportingMTA": "dsn; a7-12.smtp-out.eu-west-1.amazonses.com",
}
ABUSE: Json = {
    "feedbackId": "0102018f-0000-4000-8000-000000000001-000000",
    "complaintSubType": None,
    "complainedRecipients": [{"emailAddress": ADDRESS}],
    "timestamp": "2026-11-16T12:10:00.000Z",
    "userAgent": "Amazon SES Mailbox Simulator",
    "complaintFeedbackType": "abuse",
    "arrivalDate": "2026-11-16T12:10:00.000Z",
}


def sent_mail(*, sent_at: datetime = NOON, **tags: str) -> Json:
    """The part of the mail that SES repeats in its reports."""
    connection = a_connection(DestinationKind.EMAIL, ADDRESS, connection_id=CONNECTION_ID)
    own = mail(outgoing(connection=connection), Payload(b"{}", "application/json")).tags
    return {
        "timestamp": timestamp(sent_at),
        "source": "berth@example.com",
        "sourceArn": "arn:aws:ses:eu-west-1:123456789012:identity/berth@example.com",
        "sendingAccountId": "123456789012",
        "messageId": "0102018f-0000-4000-8000-000000000002-000000",
        "destination": [ADDRESS],
        "headersTruncated": False,
        "headers": [{"name": "From", "value": "berth@example.com"}, {"name": "To", "value": ADDRESS}],
        "commonHeaders": {"from": ["berth@example.com"], "to": [ADDRESS], "subject": "order.created (acme)"},
        "tags": {
            "ses:source-tls-version": ["TLSv1.3"],
            "ses:operation": ["SendEmail"],
            "ses:configuration-set": ["BerthEvents"],
            "ses:source-ip": ["192.0.2.1"],
            "ses:from-domain": ["example.com"],
            "ses:caller-identity": ["deliver_events"],
            **{name: [value] for name, value in {**own, **tags}.items()},
        },
    }


def reported(detail: Json, *, detail_type: str) -> Json:
    return {
        "version": "0",
        "id": "6a7e8feb-b491-4cf7-a9f1-bf3703467718",
        "detail-type": detail_type,
        "source": "aws.ses",
        "account": "123456789012",
        "time": "2026-11-16T12:00:04Z",
        "region": "eu-west-1",
        "resources": ["arn:aws:ses:eu-west-1:123456789012:configuration-set/BerthEvents"],
        "detail": detail,
    }


def bounced(*, tags: dict[str, str] | None = None, sent_at: datetime = NOON, **changes: Any) -> Json:
    mail = sent_mail(sent_at=sent_at, **(tags or {}))
    detail = {"eventType": "Bounce", "bounce": {**PERMANENT, **changes}, "mail": mail}
    return reported(detail, detail_type="Email Bounced")


def complained(*, tags: dict[str, str] | None = None, **changes: Any) -> Json:
    detail = {"eventType": "Complaint", "complaint": {**ABUSE, **changes}, "mail": sent_mail(**(tags or {}))}
    return reported(detail, detail_type="Email Complaint Received")


# Reading


def test_the_tags_lead_back_to_the_connection() -> None:
    report = read_report(bounced())
    assert (report.kind, report.life, report.origin) == (ReportKind.BOUNCE, ACME_LIFE, "api")
    assert (report.connection_id, report.event_id, report.recipients) == (CONNECTION_ID, EVENT_ID, [ADDRESS])
    assert report.text == "Permanent, General, smtp; 550 5.1.1 user unknown"
    assert report.sent_at == NOON


def test_tags_have_only_the_characters_that_ses_allows_and_nothing_of_the_event() -> None:
    connection = a_connection(DestinationKind.EMAIL, ADDRESS, connection_id=CONNECTION_ID)
    tags = mail(outgoing(connection=connection), Payload(b'{"card": "4111"}', "application/json")).tags
    assert all(each.replace("-", "").replace("_", "").isalnum() and len(each) <= 256 for each in tags.values())
    assert set(tags.values()) == {"acme", ACME_LIFE.epoch, "api", CONNECTION_ID, EVENT_ID}


@pytest.mark.parametrize(
    ("event", "is_final"),
    [
        (bounced(), True),
        (bounced(bounceSubType="OnAccountSuppressionList"), True),
        (bounced(bounceType="Transient", bounceSubType="MailboxFull"), False),
        (bounced(bounceType="Undetermined", bounceSubType="Undetermined", bouncedRecipients=[{}]), False),
        (complained(), True),
        (complained(complaintFeedbackType=None), True),
        (complained(complaintSubType="OnAccountSuppressionList"), True),
        (complained(complaintFeedbackType="not-spam"), False),
    ],
    ids=lambda value: "" if isinstance(value, bool) else json.dumps(value["detail"])[15:110],
)
def test_permanent_bounces_and_complaints_are_final(event: Json, is_final: bool) -> None:
    assert read_report(event).is_final is is_final


def test_the_words_of_a_mail_server_are_shortened_and_on_one_line() -> None:
    said = [{"emailAddress": ADDRESS, "diagnosticCode": "smtp; 550\r\nBcc: \x1b[2J" + "x" * 5_000}]
    text = read_report(bounced(bouncedRecipients=said)).text
    assert len(text) == 300
    assert text.isprintable()


def test_a_complaint_without_a_reason_says_so() -> None:
    assert read_report(complained(complaintFeedbackType=None)).text == "no reason was given"


WITHOUT_TIME = {**sent_mail(), "timestamp": None}
WITHOUT_TAGS = {**sent_mail(), "tags": {"ses:configuration-set": ["BerthEvents"]}}
NOT_REPORTS: dict[str, object] = {
    "nothing": None,
    "an empty event": {},
    "another kind of event": reported({"mail": sent_mail()}, detail_type="Email Delivered"),
    "a bounce without a bounce": reported({"mail": sent_mail()}, detail_type="Email Bounced"),
    "a mail of somebody else": reported({"bounce": PERMANENT, "mail": WITHOUT_TAGS}, detail_type="Email Bounced"),
    "a mail without a time": reported({"bounce": PERMANENT, "mail": WITHOUT_TIME}, detail_type="Email Bounced"),
    "a tenant with a bad id": bounced(tags={"tenant": "a#b"}),
    "a connection with a bad id": bounced(tags={"connection": "conn_1"}),
    "an event with a bad id": bounced(tags={"event": "1"}),
    "an empty epoch": bounced(tags={"epoch": ""}),
    "a number for a type": bounced(bounceType=5),
    "texts for recipients": bounced(bouncedRecipients="ada"),
}


@pytest.mark.parametrize("event", NOT_REPORTS.values(), ids=NOT_REPORTS)
def test_messages_that_are_no_report_about_a_mail_of_berth_are_refused(event: object) -> None:
    with pytest.raises(BerthError):
        read_report(event)


def test_the_kinds_of_events() -> None:
    assert set(DETAIL_TYPES.values()) == set(ReportKind)


# The function


class Mailing:
    """A tenant with a connection that sends mail, and the function that gets reports about its mails."""

    def __init__(self, functions: EventFunctions) -> None:
        self.functions = functions
        self.key = functions.key("admin")
        body = {"name": "Ada", "destination": "email", "address": ADDRESS}
        created = functions.operate("POST /connections", body=body)
        assert created.status == 201, created.body
        self.connection_id = created.body["connection_id"]
        self.ports = importlib.import_module("lambdas.event_runtime").use_cases.ports
        self.life = self.ports.configuration.settings(ACME).life
        functions.clock.advance(timedelta(hours=1))

    @property
    def tags(self) -> dict[str, str]:
        return {"epoch": self.life.epoch, "connection": self.connection_id}

    def report(self, event: Json) -> None:
        importlib.import_module("lambdas.events.process_bounces").handler(event, None)

    @property
    def shown(self) -> Json:
        ids = {"connectionId": self.connection_id}
        return self.functions.ask("GET /connections/{connectionId}", self.key, ids=ids).body

    @property
    def changes(self) -> list[Json]:
        changes: list[Json] = self.functions.ask("GET /changes", self.key).body["changes"]
        return changes


@pytest.fixture
def mailing(event_functions: EventFunctions, monkeypatch: pytest.MonkeyPatch) -> Mailing:
    monkeypatch.setenv("BERTH_EVENTS_MAIL_FROM", "berth@example.com")
    return Mailing(event_functions)


@pytest.mark.parametrize(
    ("event", "reason"),
    [(bounced, "came back for good: Permanent, General, smtp; 550 5.1.1 user unknown"), (complained, "abuse")],
    ids=["bounce", "complaint"],
)
def test_the_function_disables_the_connection_and_everybody_sees_why(mailing: Mailing, event: Any, reason: str) -> None:
    mailing.report(event(tags=mailing.tags))
    assert mailing.shown["status"] == "disabled"
    assert mailing.shown["reason"].endswith(reason)
    (latest, *_) = mailing.changes
    assert (latest["changed_by"], latest["kind"]) == ("berth", "connection-disabled")
    troubles = mailing.functions.call("event_operators", http_event("GET /troubled-connections", by=ADA)).body
    assert [(each["connection_id"], each["trouble"]) for each in troubles["connections"]] == [
        (mailing.connection_id, "disabled")
    ]


def test_temporary_and_repeated_reports_write_nothing(mailing: Mailing) -> None:
    before = mailing.functions.rows
    mailing.report(bounced(tags=mailing.tags, bounceType="Transient", bounceSubType="General"))
    mailing.report(complained(tags=mailing.tags, complaintFeedbackType="not-spam"))
    assert mailing.functions.rows == before
    mailing.report(bounced(tags=mailing.tags))
    disabled = mailing.functions.rows
    mailing.report(bounced(tags=mailing.tags))
    assert mailing.functions.rows == disabled


def test_a_resumed_connection_is_disabled_by_the_next_bounce(mailing: Mailing) -> None:
    mailing.report(bounced(tags=mailing.tags))
    ids = {"connectionId": mailing.connection_id}
    assert mailing.functions.operate("POST /connections/{connectionId}/resume", ids=ids).body["status"] == "active"
    mailing.report(bounced(tags=mailing.tags, sent_at=mailing.functions.clock.now()))
    assert mailing.shown["status"] == "disabled"


@pytest.mark.parametrize("order", ["resume", "pause"])
def test_the_tenant_does_not_undo_a_complaint(mailing: Mailing, order: str) -> None:
    mailing.report(complained(tags=mailing.tags))
    before = mailing.shown
    route, ids = f"POST /connections/{{connectionId}}/{order}", {"connectionId": mailing.connection_id}
    refused = mailing.functions.ask(route, mailing.key, ids=ids)
    assert (refused.status, refused.body["type"]) == (409, "urn:berth:problem:connection-disabled")
    assert mailing.shown == before
    assert mailing.functions.operate(route, ids=ids).status == 200


def test_a_report_that_comes_again_after_the_connection_was_resumed_writes_nothing(mailing: Mailing) -> None:
    mailing.report(bounced(tags=mailing.tags))
    ids = {"connectionId": mailing.connection_id}
    mailing.functions.operate("POST /connections/{connectionId}/resume", ids=ids)
    resumed = mailing.functions.rows
    mailing.report(bounced(tags=mailing.tags))
    mailing.report(complained(tags=mailing.tags))
    assert mailing.functions.rows == resumed
    assert mailing.shown["status"] == "active"


def test_a_report_about_another_life_of_the_tenant_changes_nothing(mailing: Mailing) -> None:
    before = mailing.functions.rows
    mailing.report(bounced(tags={**mailing.tags, "epoch": "00000000"}))
    assert mailing.functions.rows == before


def test_a_report_that_cannot_be_processed_is_raised_so_that_it_comes_again(mailing: Mailing) -> None:
    with pytest.raises(InvalidRequest):
        mailing.report(bounced(tags={"connection": "conn_1"}))
    (row,) = (each for each in mailing.functions.rows if each["sk"]["S"] == f"CONN#{mailing.connection_id}")
    mailing.functions.dynamodb.put_item(TableName=TABLE, Item={**row, "status": {"S": "odd"}})
    with pytest.raises(Unsettled, match="damaged"):
        mailing.report(bounced(tags=mailing.tags))


def test_reports_are_counted_and_logged_without_the_address(
    mailing: Mailing, capsys: pytest.CaptureFixture[str]
) -> None:
    logging.getLogger(importlib.import_module("lambdas.observing").logger.name).setLevel(logging.INFO)
    capsys.readouterr()
    mailing.report(bounced(tags=mailing.tags))
    mailing.report(complained(tags=mailing.tags))
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["outcome"] for each in lines if "outcome" in each] == ["disabled", "ended"]
    assert [each["connection_id"] for each in lines if "outcome" in each] == [mailing.connection_id] * 2
    assert [name for each in lines for name in ("MailBounces", "MailComplaints") if name in each] == [
        "MailBounces",
        "MailComplaints",
    ]
    assert ADDRESS not in json.dumps(lines)
