"""CloudWatch alarms, which stop a rollout when they go off."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from orchestrator.adapters.aws import throttling

_MAX_PER_CALL = 100
"""DescribeAlarms accepts at most this many names."""
_TYPES = ["MetricAlarm", "CompositeAlarm"]
"""Without these types, CloudWatch returns metric alarms only."""
_ON = "ALARM"
_NO_REASON = "No reason was given."


class CloudWatchAlarms:
    """Implements :class:`orchestrator.rollouts.ports.Alarms`."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def unknown(self, names: Iterable[str]) -> Sequence[str]:
        wanted = sorted(set(names))
        known = {
            alarm["AlarmName"]
            for first in range(0, len(wanted), _MAX_PER_CALL)
            for alarm in self._describe(wanted[first : first + _MAX_PER_CALL])
        }
        return [name for name in wanted if name not in known]

    def went_off(self, name: str, *, since: datetime) -> str | None:
        alarm = next(self._describe([name]), None)
        if alarm is None:
            # Without its alarm, a stage has no protection, so the rollout must not continue.
            return "The alarm no longer exists."
        if alarm["StateValue"] == _ON:
            return str(alarm.get("StateReason") or _NO_REASON)
        alarms = (state for state in self._states_since(name, since) if state.get("stateValue") == _ON)
        latest = next(alarms, None)
        return str(latest.get("stateReason") or _NO_REASON) if latest is not None else None

    def _states_since(self, name: str, since: datetime) -> Iterator[dict[str, Any]]:
        """Every state that the alarm has changed to since then, newest first."""
        pages = self._client.get_paginator("describe_alarm_history").paginate(
            AlarmName=name, AlarmTypes=_TYPES, HistoryItemType="StateUpdate", StartDate=since
        )
        with throttling():
            for page in pages:
                for item in page.get("AlarmHistoryItems", []):
                    yield json.loads(item["HistoryData"])["newState"]

    def _describe(self, names: list[str]) -> Iterator[dict[str, Any]]:
        pages = self._client.get_paginator("describe_alarms").paginate(
            AlarmNames=names,
            AlarmTypes=_TYPES,
        )
        with throttling():
            for page in pages:
                yield from page.get("MetricAlarms", [])
                yield from page.get("CompositeAlarms", [])
