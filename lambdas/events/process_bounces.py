"""Disables connections whose mail came back for good, or whose receiver has complained. SES reports both.

A report that cannot be read, or whose connection cannot be disabled now, is raised: Lambda tries again twice, and then
the report goes to the queue for operators.
"""

from lambdas.event_runtime import use_cases
from lambdas.observing import count, logger
from orchestrator.adapters.ses_reports import read_report
from orchestrator.events.delivery.bounces import ReportKind

METRICS = {ReportKind.BOUNCE: "MailBounces", ReportKind.COMPLAINT: "MailComplaints"}


def handler(event: object, _context: object) -> None:
    report = read_report(event)
    names = {
        "tenant_id": report.life.tenant.value,
        "connection_id": report.connection_id,
        "event_id": report.event_id,
    }
    with logger.append_context_keys(**names):
        outcome = use_cases.processing_bounces.process(report)
        logger.info("SES has reported a mail", extra={"kind": report.kind, "text": report.text, "outcome": outcome})
    count(METRICS[report.kind])
