"""The steps of `berth verify` that test the event plane, with the tenant of the other steps."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

from orchestrator.api.connection_models import CreateConnection
from orchestrator.api.connection_routes import CREATE_CONNECTION
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
    from orchestrator.cli.control_plane import ControlPlane, UsableQueue
    from orchestrator.cli.invocation import Invocation
    from orchestrator.client.transport import ApiAnswer
    from orchestrator.common.tenant_ids import TenantId

_NAME = "berth verify"
_EVENT_TYPE = "berth.verify"
_INBOX_SECONDS = 20
"""The index behind the inbox is usually up to date within a second."""
_REVOKED_SECONDS = 30
"""Functions remember a key for 10 seconds."""
_UNKNOWN_KEY = 401
_RECEIVE_ROUNDS = 12
"""Each is a long poll of a few seconds. An event is usually delivered within two seconds."""
_NO_EVENT_PLANE = "there is no event plane"
_NO_EVENT = "no event was accepted"


class EventVerification:
    """The steps about events, with one event. While the revoked key stops working, the event is delivered."""

    def __init__(self, here: Invocation, control_plane: ControlPlane, tenant: TenantId) -> None:
        self._here = here
        self._control_plane = control_plane
        self._tenant = tenant
        self._key = ""
        self._event_id = ""
        self._is_connected = False

    def accept(self, *, to_queue: bool) -> str:
        """Send an event with a key, read it in the inbox, acknowledge it, and revoke the key.

        ``to_queue``: the event is also delivered to the tenant's queue, where it has to be received.
        """
        here, control_plane, tenant = self._here, self._control_plane, self._tenant
        try:
            stack = control_plane.events_stack
        except ControlPlaneNotFound as none:
            raise NothingToProve(_NO_EVENT_PLANE) from none
        ask(here, control_plane, PUT_SETTINGS, ChangeSettings(tenant_id=tenant.value, plan=Plan.FREE, inbox=True))
        if to_queue:
            ask_for(here, control_plane, tenant, CREATE_CONNECTION, CreateConnection(name=_NAME))
            self._is_connected = True
        scopes = [Scope.READ, Scope.WRITE]
        issued = ask_for(here, control_plane, tenant, CREATE_KEY, CreateKey(name=_NAME, scopes=scopes))
        key = str(issued["key"])
        sent = ask(here, control_plane, SEND_EVENT, SendEvent(event_type=_EVENT_TYPE, payload={"n": 1}), key=key)
        self._event_id = event_id = str(sent["event_id"])
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
        self._key = key
        return f"{stack.name} took an event with a key, and showed it in the inbox"

    def receive(self, queue: UsableQueue | None) -> str:
        """Receive the event from the tenant's queue. ``None``: the queue could not be used before."""
        if not self._event_id:
            raise NothingToProve(_NO_EVENT)
        if queue is None or not self._is_connected:
            raise NothingToProve("the queue cannot be used: see the step receive")
        for _ in range(_RECEIVE_ROUNDS):
            for body in queue.receive():
                if json.loads(body).get("event_id") == self._event_id:
                    return "the event reached the tenant's queue"
        raise NotProven(f"The event {self._event_id} was accepted, but did not reach the tenant's queue.")

    def use_revoked_key(self) -> str:
        if not self._key:
            raise NothingToProve(_NO_EVENT)
        api = self._control_plane.events_api(self._key)
        with self._here.retrying(_REVOKED_SECONDS) as retrying:
            answer = retrying(partial(api.send_request, READ_INBOX, ReadInbox()), _still_accepted)
        if answer.status != _UNKNOWN_KEY:
            raise NotProven(f"The revoked key still works after {retrying.seconds:.0f} s (answer {answer.status}).")
        return "the key was refused once it was revoked"


def _ids(answer: ApiAnswer) -> set[str]:
    return {str(event["event_id"]) for event in answer.body.get("events", [])}


def _still_accepted(answer: ApiAnswer) -> str | None:
    return None if answer.status == _UNKNOWN_KEY else "Waiting until the revoked key stops working, within about 10 s."
