"""The settings that are adjusted on the emulator, where it differs from the workflows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orchestrator.local.adjusting import TURNS_AT_ONCE, bound_maps, switch_on_expiry
from orchestrator.local.deployment import CONCURRENCY, CONTEXT
from stacks.deploying.concurrency import RESERVATIONS
from stacks.settings import Settings
from stacks.tenants.machines import definition


def test_a_map_has_a_fixed_number_of_children_at_once() -> None:
    rollout = json.loads(definition("rollout", Settings()))

    bound_maps(rollout)

    assert rollout["States"]["RunStage"]["MaxConcurrency"] == TURNS_AT_ONCE
    assert "MaxConcurrencyPath" not in json.dumps(rollout)


def test_the_local_ceiling_is_the_concurrency_of_rollouts() -> None:
    assert int(CONTEXT["berth:rolloutConcurrency"]) == TURNS_AT_ONCE


class Tables:
    """A fake of DynamoDB that refuses to switch on what is on, as DynamoDB does."""

    def __init__(self, status: str) -> None:
        self.status = status
        self.attribute: str | None = None

    def describe_time_to_live(self, *, TableName: str) -> dict[str, Any]:  # noqa: N803 - the name in boto3
        assert TableName == "events"
        return {"TimeToLiveDescription": {"TimeToLiveStatus": self.status}}

    def update_time_to_live(self, *, TableName: str, TimeToLiveSpecification: dict[str, Any]) -> None:  # noqa: N803
        assert (TableName, self.status) == ("events", "DISABLED")
        assert TimeToLiveSpecification["Enabled"] is True
        self.attribute = TimeToLiveSpecification["AttributeName"]


@pytest.mark.parametrize(("status", "switched_on"), [("DISABLED", "ttl"), ("ENABLED", None), ("ENABLING", None)])
def test_expiry_of_events_is_switched_on_once(status: str, switched_on: str | None) -> None:
    tables: Any = Tables(status)
    switch_on_expiry(tables, "events")
    assert tables.attribute == switched_on


def test_every_function_with_a_concurrency_setting_has_it_here() -> None:
    settings = {each.setting: each.output for each in RESERVATIONS}
    assert {setting: output for output, setting in CONCURRENCY.items()} == settings
    assert set(settings) <= set(CONTEXT)
