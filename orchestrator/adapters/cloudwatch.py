"""Alarms that tell whether tenants are well."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from orchestrator.adapters.aws import throttling

_AT_ONCE = 100
"""As many alarms as can be asked about in one call."""
_TYPES = ["MetricAlarm", "CompositeAlarm"]
"""CloudWatch tells about composite alarms only if they are asked for."""
_ON = "ALARM"
_NO_REASON = "No reason was given."


class CloudWatchAlarms:
    """Implements :class:`orchestrator.rollouts.ports.Alarms`."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def unknown(self, names: Iterable[str]) -> Sequence[str]:
        asked = sorted(set(names))
        known = {
            alarm["AlarmName"]
            for first in range(0, len(asked), _AT_ONCE)
            for alarm in self._described(asked[first : first + _AT_ONCE])
        }
        return [name for name in asked if name not in known]

    def went_off(self, name: str, *, since: datetime) -> str | None:
        alarm = next(self._described([name]), None)
        if alarm is None:
            # Nobody would be told any more. That is no reason to go on.
            return "The alarm does not exist any more."
        if alarm["StateValue"] == _ON:
            return str(alarm.get("StateReason") or _NO_REASON)
        went_on = (state for state in self._states_since(name, since) if state.get("stateValue") == _ON)
        earlier = next(went_on, None)
        return str(earlier.get("stateReason") or _NO_REASON) if earlier is not None else None

    def _states_since(self, name: str, since: datetime) -> Iterator[dict[str, Any]]:
        """Every state that the alarm has changed to since then, the latest first."""
        pages = self._client.get_paginator("describe_alarm_history").paginate(
            AlarmName=name, AlarmTypes=_TYPES, HistoryItemType="StateUpdate", StartDate=since
        )
        with throttling():
            for page in pages:
                for item in page.get("AlarmHistoryItems", []):
                    yield json.loads(item["HistoryData"])["newState"]

    def _described(self, names: list[str]) -> Iterator[dict[str, Any]]:
        pages = self._client.get_paginator("describe_alarms").paginate(
            AlarmNames=names,
            AlarmTypes=_TYPES,
        )
        with throttling():
            for page in pages:
                yield from page.get("MetricAlarms", [])
                yield from page.get("CompositeAlarms", [])
