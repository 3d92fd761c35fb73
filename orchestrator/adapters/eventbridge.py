"""The bus of Berth's own events."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from orchestrator.adapters.aws import throttling
from orchestrator.own_events.kinds import SOURCE, OwnEvent
from orchestrator.own_events.ports import Put

_EVENTS_PER_REQUEST = 10
_WORTH_ANOTHER_TRY = frozenset(
    {
        "InternalException",
        "InternalFailure",
        "ServiceUnavailable",
        "ThrottlingException",
        # A permission is not the event's fault, and may be given while the stream still has the change.
        "AccessDeniedException",
        "NotAuthorizedForDetailTypeException",
        "NotAuthorizedForSourceException",
    }
)
"""All other codes say that the event itself is refused."""


class EventBridgeBus:
    """Implements :class:`orchestrator.own_events.ports.Bus`. The client is made when it is first needed."""

    def __init__(self, make_client: Callable[[], Any], bus: str, control_plane: str) -> None:
        self._make_client = make_client
        self._bus = bus
        self._control_plane = control_plane

    @cached_property
    def _client(self) -> Any:
        return self._make_client()

    def put(self, events: Sequence[OwnEvent]) -> Put:
        rejected: list[OwnEvent] = []
        failed: list[OwnEvent] = []
        for start in range(0, len(events), _EVENTS_PER_REQUEST):
            sent = events[start : start + _EVENTS_PER_REQUEST]
            with throttling():
                answer = self._client.put_events(Entries=[self._entry(each) for each in sent])
            for event, entry in zip(sent, answer["Entries"], strict=True):
                if code := entry.get("ErrorCode"):
                    (failed if code in _WORTH_ANOTHER_TRY else rejected).append(event)
        return Put(tuple(rejected), tuple(failed))

    def _entry(self, event: OwnEvent) -> dict[str, object]:
        return {
            "EventBusName": self._bus,
            "Source": SOURCE,
            "DetailType": event.kind.value,
            "Detail": json.dumps(event.detail(self._control_plane), sort_keys=True),
            "Time": event.at,
        }
