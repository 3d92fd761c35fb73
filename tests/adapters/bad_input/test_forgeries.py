"""Forged events for every function: they look genuine, and nobody comes to harm by them.

What an event may change all the same is written down as :data:`tests.adapters.bad_input.harm.DOCUMENTED`.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any
from weakref import WeakKeyDictionary

import pytest

from orchestrator.adapters import custom_resource
from orchestrator.common.callers import ApiGateway
from orchestrator.common.errors import BerthError, InvalidRequest
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.writes import all_of
from orchestrator.reconciling.settling import Settling
from orchestrator.rollouts.gate import Gate
from orchestrator.rollouts.records import Rollout, Stage, Turn
from orchestrator.tenants import operation_transitions, operations, queue_metadata, tenant_queue, tenant_stack
from orchestrator.tenants.confirming import Deployment
from orchestrator.tenants.records import Lock, Operation, Run
from stacks.common.function_code import function_names, module_of
from tests.adapters.bad_input.fleet import HandingOver, the_fleet
from tests.adapters.bad_input.forgeries import FORGERIES
from tests.adapters.bad_input.harm import (
    DOCUMENTED,
    Picture,
    differences,
    harm,
    picture,
    sent_elsewhere,
    told_too_much,
    undocumented,
)
from tests.adapters.bad_input.storm import INPUTS, as_text, storm
from tests.adapters.bad_input.world import ControlPlane, a_control_plane
from tests.fakes import a_run

FORGED = INPUTS if "BERTH_FUZZ_INPUTS" in os.environ else 40
"""The number of events per function. A few are enough to check the rules; ``make fuzz`` looks for exceptions."""


@pytest.fixture(scope="module")
def attacked() -> Iterator[ControlPlane]:
    with a_control_plane(the_fleet) as plane:
        yield plane


_PICTURES: WeakKeyDictionary[Any, Picture] = WeakKeyDictionary()
"""The state of each world after its latest event, if the world was not made anew since."""


def meet(plane: ControlPlane, function: str, event: Any) -> str:
    """Send the event, and fail if it did harm."""
    before = _PICTURES.get(plane.fake("table")) or picture(plane)
    plane.logs.keeps, plane.logs.lines = True, []
    try:
        result = plane.call(function, event)
        met, said = _outcome(result), json.dumps(result)
    except (BerthError, OSError) as refused:  # There is nobody at addresses that are not CloudFormation's.
        met, said = type(refused).__name__, str(refused)
    finally:
        plane.logs.keeps = False
    after = _PICTURES[plane.fake("table")] = picture(plane)
    differing = differences(before, after)
    done = [
        *(harm(before, after) if differing else ()),
        *(f"changed {name}" for name in sorted(undocumented(function, event, differing))),
        *sent_elsewhere(plane.addresses),
        *told_too_much(function, event, [said, json.dumps(plane.answers), *plane.logs.lines], plane.answers),
    ]
    assert not done, "; ".join(done)
    return met


def _outcome(result: object) -> str:
    if not isinstance(result, dict):
        return "done"
    return str(result.get("outcome") or result.get("statusCode") or "done")


def test_every_function_of_the_control_plane_has_forged_events_and_allowed_effects() -> None:
    # Those of the event plane work on other tables, and have tests of their own.
    of_the_event_plane = {name for name in function_names() if module_of(name).startswith("lambdas.events.")}
    assert set(FORGERIES) == set(DOCUMENTED) == function_names() - of_the_event_plane


@pytest.mark.parametrize("function", FORGERIES)
def test_a_forged_event_does_no_harm(attacked: ControlPlane, function: str) -> None:
    met = besiege(attacked, function, FORGED)
    # They are well formed: nobody is harmed, but not because nobody has understood them.
    assert set(met) != {InvalidRequest.__name__}, met


def besiege(plane: ControlPlane, function: str, inputs: int) -> Counter[str]:
    forge = FORGERIES[function]
    return storm(f"forged/{function}", plane, forge, lambda event: meet(plane, function, event), inputs=inputs)


@pytest.mark.parametrize("function", FORGERIES)
def test_a_seed_makes_the_same_event_again(function: str) -> None:
    def made() -> list[str]:
        return [as_text(FORGERIES[function](Random(seed))) for seed in range(20)]

    assert made() == made()
    assert len(set(made())) > 3


# Whether they would find out


def _believe_who_runs(run: Run, _reader: object) -> Lock:
    return Lock(run, None)


def _believe_who_has_ended(_self: object, tenant: TenantId, execution: str) -> Run:
    return replace(a_run(2, tenant=tenant, operation=Operation.DELETE), execution=execution)


def _believe_where_a_tenant_goes(self: Gate, turn: Turn) -> tuple[Rollout | None, Stage | None]:
    return self.ledger.rollout(turn.rollout), self.ledger.stage(turn.rollout, turn.stage)


PROTECTIONS: dict[str, tuple[str, object, str, object]] = {
    "CloudFormation confirms who asks": ("settle_tenant_queue", tenant_queue, "is_confirmed", lambda *_: True),
    "the owner describes a tenant": ("settle_tenant_queue", tenant_queue, "other_owner", lambda *_: None),
    "a squatter's stack is not ours": ("tenant_metadata", queue_metadata, "is_ours", lambda *_: True),
    "answers go to CloudFormation": ("api_proof", custom_resource, "_check_address", lambda _url: None),
    "CloudFormation confirms who publishes": ("publish_release", Deployment, "confirm", lambda *_: None),
    "CloudFormation confirms who starts a rollout": ("start_rollout", Deployment, "confirm", lambda *_: None),
    "API Gateway proves itself for orders": ("operators", ApiGateway, "sent", lambda *_: True),
    "API Gateway proves itself for credentials": ("get_queue", ApiGateway, "sent", lambda *_: True),
    "Step Functions confirms who begins": ("begin", HandingOver, "confirmed", lambda _self, run: run),
    "Step Functions confirms who has failed": ("record_failure", HandingOver, "confirmed", lambda _self, run: run),
    "writes are fenced by the lock": ("finish", operation_transitions, "_owned_by", lambda _run: all_of()),
    "stacks are fenced by the lock": ("start_stack", tenant_stack, "own_lock", _believe_who_runs),
    "the lock says which operation it is": ("finish", operations, "_as_locked", lambda *_: None),
    "CloudFormation says which queue it is": ("finish", operations, "_check_stack", lambda *_: None),
    "CloudFormation says that a stack has gone": ("finish", operations, "_check_gone", lambda *_: None),
    "a row says what has ended": ("close_execution", Settling, "_begun", _believe_who_has_ended),
    "a rollout says where its tenants go": ("record_outcome", Gate, "_read", _believe_where_a_tenant_goes),
}
"""The protections from forged events: the function that shows when each is gone, and how it is taken away."""


@pytest.mark.parametrize("protection", PROTECTIONS)
def test_without_the_protection_a_forged_event_does_harm(
    attacked: ControlPlane, monkeypatch: pytest.MonkeyPatch, protection: str
) -> None:
    function, *taken_away = PROTECTIONS[protection]
    monkeypatch.setattr(*taken_away)
    with pytest.raises(AssertionError) as harmed:
        besiege(attacked, function, 1_000)
    (note,) = harmed.value.__notes__
    assert f"at forged/{function}: " in note
    assert "BERTH_FUZZ_SEED=" in note
