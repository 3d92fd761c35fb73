"""Dispatches new events that the table's stream reports: a message for each connection that wants one.

An event that cannot be dispatched now is found again by the sweep, and holds up no other. Only a failure of DynamoDB is
raised: then Lambda hands the batch over again. To dispatch an event twice does no harm.
"""

from lambdas.event_deliveries import report_dispatched, report_unreadable
from lambdas.event_runtime import use_cases
from orchestrator.adapters.dynamodb.dispatch_stream import read_new_events


def handler(event: object, _context: object) -> None:
    new = read_new_events(event)
    try:
        report_dispatched(use_cases.dispatching.dispatch(new.events))
    finally:
        report_unreadable(new.unreadable)
