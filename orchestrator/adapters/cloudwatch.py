"""Alarms that tell whether tenants are well."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from orchestrator.adapters.aws import throttling

_AT_ONCE = 100
"""As many alarms as can be asked about in one call."""


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

    def went_off(self, name: str) -> str | None:
        alarm = next(self._described([name]), None)
        if alarm is None:
            # Nobody would be told any more. That is no reason to go on.
            return "The alarm does not exist any more."
        if alarm["StateValue"] != "ALARM":
            return None
        return str(alarm.get("StateReason") or "No reason was given.")

    def _described(self, names: list[str]) -> Iterator[dict[str, Any]]:
        pages = self._client.get_paginator("describe_alarms").paginate(
            # Composite ones are told of only if they are asked for.
            AlarmNames=names,
            AlarmTypes=["MetricAlarm", "CompositeAlarm"],
        )
        with throttling():
            for page in pages:
                yield from page.get("MetricAlarms", [])
                yield from page.get("CompositeAlarms", [])
