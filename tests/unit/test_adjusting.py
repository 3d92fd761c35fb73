"""What is set on the emulator, because it does otherwise what the workflows say."""

from __future__ import annotations

import json

from orchestrator.local.adjusting import TURNS_AT_ONCE, bound_maps
from orchestrator.local.deployment import CONTEXT
from stacks.settings import Settings
from stacks.tenants.machines import definition


def test_a_map_has_a_fixed_number_of_children_at_once() -> None:
    rollout = json.loads(definition("rollout", Settings()))

    bound_maps(rollout)

    assert rollout["States"]["RunStage"]["MaxConcurrency"] == TURNS_AT_ONCE
    assert "MaxConcurrencyPath" not in json.dumps(rollout)


def test_that_is_as_many_as_a_rollout_may_move_at_once() -> None:
    assert int(CONTEXT["berth:rolloutConcurrency"]) == TURNS_AT_ONCE
