"""Events of SES about mails that were sent before: bounces and complaints.

EventBridge hands them over. The tags of the mail, which :mod:`orchestrator.adapters.ses` sends along, say which
connection the mail belongs to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.common.errors import BerthError, InvalidRequest
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import parse_timestamp
from orchestrator.events.delivery.answers import printable
from orchestrator.events.delivery.bounces import MailReport, ReportKind
from orchestrator.events.delivery.mail import CONNECTION_TAG, EPOCH_TAG, EVENT_TAG, ORIGIN_TAG, TENANT_TAG
from orchestrator.events.event_ids import parse_event_id
from orchestrator.events.records import TenantEpoch
from orchestrator.events.resource_ids import IdPrefix, parse_resource_id

DETAIL_TYPES: Mapping[str, ReportKind] = {
    "Email Bounced": ReportKind.BOUNCE,
    "Email Complaint Received": ReportKind.COMPLAINT,
}
"""The detail types of EventBridge's events."""
CONFIGURATION_SET_TAG = "ses:configuration-set"
"""The tag that SES itself adds. Its value is the configuration set with which the mail was sent."""

_PERMANENT = "Permanent"
"""The other types of bounces are ``Transient`` and ``Undetermined``."""
_NOT_SPAM = "not-spam"
"""The one type of complaint by which a receiver says that a mail was taken for spam by mistake."""
_MAX_TEXT = 300


def read_report(event: object) -> MailReport:
    """Raises :class:`InvalidRequest` for an event that is not about a mail of Berth."""
    try:
        return _report(event)
    except BerthError:
        raise
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise InvalidRequest(f"The event does not report a mail of Berth: {type(error).__name__}.") from None


def _report(event: Any) -> MailReport:
    kind, detail = DETAIL_TYPES[event["detail-type"]], event["detail"]
    tags = detail["mail"]["tags"]
    is_final, text = _bounce(detail["bounce"]) if kind is ReportKind.BOUNCE else _complaint(detail["complaint"])
    return MailReport(
        kind=kind,
        life=TenantEpoch(TenantId.parse(_tag(tags, TENANT_TAG)), _tag(tags, EPOCH_TAG)),
        origin=_tag(tags, ORIGIN_TAG),
        connection_id=parse_resource_id(IdPrefix.CONNECTION, _tag(tags, CONNECTION_TAG)),
        event_id=parse_event_id(_tag(tags, EVENT_TAG)),
        sent_at=parse_timestamp(_text(detail["mail"]["timestamp"])),
        recipients=[_text(each) for each in detail["mail"]["destination"]],
        is_final=is_final,
        text=printable(text, _MAX_TEXT),
    )


def _bounce(bounce: Mapping[str, Any]) -> tuple[bool, str]:
    """Whether it is permanent, and the words of SES and of the mail server."""
    said = [each.get("diagnosticCode") for each in bounce.get("bouncedRecipients", ())]
    words = [bounce["bounceType"], bounce.get("bounceSubType"), *said]
    return bounce["bounceType"] == _PERMANENT, _joined(words)


def _complaint(complaint: Mapping[str, Any]) -> tuple[bool, str]:
    # Not every provider of mail boxes says why.
    feedback = complaint.get("complaintFeedbackType")
    return feedback != _NOT_SPAM, _joined([feedback, complaint.get("complaintSubType")])


def _joined(words: Sequence[object]) -> str:
    return ", ".join(_text(each) for each in words if each) or "no reason was given"


def _tag(tags: Mapping[str, Sequence[str]], name: str) -> str:
    (value,) = tags[name]
    return _text(value)


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError
    return value
