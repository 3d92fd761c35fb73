"""The payloads that the rollout state machine sends to its functions, validated and parsed."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.validation import (
    SECRET,
    SORTED_ID,
    TENANT_ID,
    TEXT,
    VERSION,
    Schema,
    object_of,
    valid,
)
from orchestrator.rollouts.records import MAX_STAGES, Item, Turn
from orchestrator.tenants.schemas import ERROR, fault_of

STAGE_NUMBER = {"type": "integer", "minimum": 1, "maximum": MAX_STAGES}


_RUN = object_of(
    {
        "Id": TEXT,
        "Input": object_of({"rolloutId": SORTED_ID, "attempt": {"type": "integer", "minimum": 1, "maximum": 9_999}}),
    }
)


_STEP = Schema(object_of({"execution": _RUN}, {"failure": ERROR}))


_AWAIT_STEP = Schema(object_of({"execution": _RUN, "taskToken": SECRET}))


_TURN = Schema(
    object_of(
        {
            "rolloutId": SORTED_ID,
            "stage": STAGE_NUMBER,
            "tenantId": TENANT_ID,
            "version": VERSION,
            "execution": TEXT,
        },
        {"failure": ERROR},
    )
)


@dataclass(frozen=True, slots=True)
class RolloutStep:
    rollout: str
    attempt: int
    execution: str
    failure: str | None = None
    task_token: str = ""


@dataclass(frozen=True, slots=True)
class TurnStep:
    turn: Turn
    failure: str | None


def parse_rollout_step(event: object) -> RolloutStep:
    checked = valid(_STEP, event)
    given = checked["execution"]["Input"]
    failure = fault_of(checked["failure"]) if "failure" in checked else None
    return RolloutStep(given["rolloutId"], int(given["attempt"]), checked["execution"]["Id"], failure)


def parse_await_operator_step(event: object) -> RolloutStep:
    checked = valid(_AWAIT_STEP, event)
    given = checked["execution"]["Input"]
    return RolloutStep(
        given["rolloutId"], int(given["attempt"]), checked["execution"]["Id"], task_token=checked["taskToken"]
    )


def parse_turn(event: object) -> TurnStep:
    checked = valid(_TURN, event)
    item = Item(TenantId.parse(checked["tenantId"]), checked["version"])
    turn = Turn(checked["rolloutId"], int(checked["stage"]), item, checked["execution"])
    return TurnStep(turn, fault_of(checked["failure"]) if "failure" in checked else None)
