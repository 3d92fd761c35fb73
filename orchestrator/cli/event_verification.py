"""The step of `berth verify` that tests the event plane, with the tenant of the other steps."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from orchestrator.api.event_configuration_models import ChangeSettings, CreateKey, OfKey
from orchestrator.api.event_configuration_routes import CREATE_KEY, PUT_SETTINGS, REVOKE_KEY
from orchestrator.api.event_read_routes import ACKNOWLEDGE, READ_INBOX, AcknowledgeEvents, ReadInbox
from orchestrator.api.event_routes import SEND_EVENT, SendEvent
from orchestrator.cli.errors import ControlPlaneNotFound, NothingToProve, NotProven
from orchestrator.cli.events_api import ask, ask_for
from orchestrator.client.retrying import too_busy
from orchestrator.events.plans import Plan
from orchestrator.events.records import Scope

if TYPE_CHECKING:
    from orchestrator.cli.control_plane import ControlPlane
    from orchestrator.cli.invocation import Invocation
    from orchestrator.client.transport import ApiAnswer
    from orchestrator.common.tenant_ids import TenantId

_EVENT_TYPE = "berth.verify"
_INBOX_SECONDS = 20
"""The index behind the inbox is usually up to date within a second."""
_REVOKED_SECONDS = 30
"""Functions remember a key for 10 seconds."""
_UNKNOWN_KEY = 401


def use_events(here: Invocation, control_plane: ControlPlane, tenant: TenantId) -> str:
    """Make a key, send an event, read and acknowledge it, and revoke the key. Returns what that has proven."""
    try:
        stack = control_plane.events_stack
    except ControlPlaneNotFound as none:
        raise NothingToProve("there is no event plane") from none
    ask(here, control_plane, PUT_SETTINGS, ChangeSettings(tenant_id=tenant.value, plan=Plan.FREE, inbox=True))
    scopes = [Scope.READ, Scope.WRITE]
    issued = ask_for(here, control_plane, tenant, CREATE_KEY, CreateKey(name="berth verify", scopes=scopes))
    key = str(issued["key"])
    sent = ask(here, control_plane, SEND_EVENT, SendEvent(event_type=_EVENT_TYPE, payload={"n": 1}), key=key)
    event_id = str(sent["event_id"])
    api = control_plane.events_api(key)

    def still_absent(answer: ApiAnswer) -> str | None:
        if answer.status != 200:
            return too_busy(answer)
        return None if _ids(answer) & {event_id} else "The event is not in the inbox yet."

    with here.retrying(_INBOX_SECONDS) as retrying:
        inbox = retrying(partial(api.send_request, READ_INBOX, ReadInbox()), still_absent)
    if event_id not in _ids(inbox):
        raise NotProven(f"The event {event_id} was accepted, but is not in the inbox (answer {inbox.status}).")
    # Otherwise the event would keep the tenant from being deleted.
    ask(here, control_plane, ACKNOWLEDGE, AcknowledgeEvents(event_ids=[event_id]), key=key)
    ask_for(here, control_plane, tenant, REVOKE_KEY, OfKey(key_id=str(issued["key_id"])))
    with here.retrying(_REVOKED_SECONDS) as retrying:
        answer = retrying(partial(api.send_request, READ_INBOX, ReadInbox()), _still_accepted)
    if answer.status != _UNKNOWN_KEY:
        raise NotProven(f"The revoked key still works after {retrying.seconds:.0f} s (answer {answer.status}).")
    return f"{stack.name} took an event with a key, showed it in the inbox, and refused the key once it was revoked"


def _ids(answer: ApiAnswer) -> set[str]:
    return {str(event["event_id"]) for event in answer.body.get("events", [])}


def _still_accepted(answer: ApiAnswer) -> str | None:
    return None if answer.status == _UNKNOWN_KEY else "Waiting until the revoked key stops working, within about 10 s."
