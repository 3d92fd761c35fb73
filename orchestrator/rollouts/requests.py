"""What operators and the machine send about rollouts, checked and in the domain's words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.callers import caller
from orchestrator.errors import InvalidRequest
from orchestrator.operator_requests import NUMBER_IN_A_QUERY, ONLY_A_REASON, body_of, limit_of, path_parameter, query_of
from orchestrator.rollouts.documents import REST, wish_from
from orchestrator.rollouts.records import Item, Turn, Wish
from orchestrator.schemas import ERROR, fault_of
from orchestrator.tenants import TenantId
from orchestrator.validation import LABELS, REASON, SECRET, TENANT_ID, TEXT, VERSION, Schema, object_of, valid

MOST_TENANTS = 500
"""As many as can be named. Each is looked up while the operator waits."""
MOST_STAGES = 10
MOST_BAKE_SECONDS = 7 * 24 * 3600
MOST_AT_ONCE = 1_000

ROLLOUT_ID_PATTERN = "^[0-9]{8}-[0-9]{6}-[0-9a-f]{4}$"

_FLAG = {"type": "boolean"}
_ROLLOUT_ID = {"type": "string", "pattern": ROLLOUT_ID_PATTERN}
_SHARE = {"type": "string", "pattern": "^([1-9][0-9]{0,5}|([1-9][0-9]?|100)%)$"}
_BOUND = {"type": "string", "pattern": "^([0-9]{1,6}|([0-9]{1,2}|100)%)$"}
_STAGE = object_of(
    {"size": {"anyOf": [_SHARE, {"const": REST}]}},
    {
        "maxConcurrency": {"type": "integer", "minimum": 1, "maximum": MOST_AT_ONCE},
        "tolerated": _BOUND,
        "bakeSeconds": {"type": "integer", "minimum": 0, "maximum": MOST_BAKE_SECONDS},
        "alarm": {"type": ["string", "null"], "pattern": "^[A-Za-z0-9 ._:/@+=()-]{1,255}$"},
        "approval": _FLAG,
    },
    closed=True,
)
_WISH = Schema(
    object_of(
        {},
        {
            "version": VERSION,
            "tenants": {"type": "array", "items": TENANT_ID, "minItems": 1, "maxItems": MOST_TENANTS},
            "labels": LABELS,
            "share": _SHARE,
            "stages": {"type": "array", "items": _STAGE, "minItems": 1, "maxItems": MOST_STAGES},
            "allowDowngrade": _FLAG,
            "allowReplacement": _FLAG,
            "dryRun": _FLAG,
            "sample": _SHARE,
            "undo": _ROLLOUT_ID,
            "reason": REASON,
        },
        closed=True,
    )
)
_STAGE_NUMBER = {"type": "integer", "minimum": 1, "maximum": MOST_STAGES}
_APPROVAL = Schema(object_of({"stage": _STAGE_NUMBER}, {"reason": REASON}, closed=True))
_NOTHING = Schema(object_of({}, closed=True))
_LIST = Schema(
    object_of(
        {},
        {"cursor": _ROLLOUT_ID, "limit": NUMBER_IN_A_QUERY},
        closed=True,
    )
)
_RUN = object_of(
    {
        "Id": TEXT,
        "Input": object_of({"rolloutId": _ROLLOUT_ID, "attempt": {"type": "integer", "minimum": 1, "maximum": 9_999}}),
    }
)
_STEP = Schema(object_of({"execution": _RUN}, {"failure": ERROR}))
_AWAIT_STEP = Schema(object_of({"execution": _RUN, "taskToken": SECRET}))
_TURN = Schema(
    object_of(
        {
            "rolloutId": _ROLLOUT_ID,
            "stage": _STAGE_NUMBER,
            "tenantId": TENANT_ID,
            "version": VERSION,
            "execution": TEXT,
        },
        {"failure": ERROR},
    )
)


@dataclass(frozen=True, slots=True)
class StartOrder:
    wish: Wish
    by: str
    reason: str


@dataclass(frozen=True, slots=True)
class RolloutOrder:
    """To pause, resume, abort or retry it."""

    rollout: str
    by: str
    reason: str


@dataclass(frozen=True, slots=True)
class Approval:
    rollout: str
    stage: int
    by: str
    reason: str


@dataclass(frozen=True, slots=True)
class RolloutListing:
    cursor: str | None
    limit: int


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


def parse_start(event: Mapping[str, Any], *, max_concurrency: int) -> StartOrder:
    """``max_concurrency`` is how many tenants the control plane moves at once, whatever is wished."""
    valid(_NOTHING, query_of(event), what="the query")
    document = body_of(event, _WISH)
    stages = document.get("stages", [])
    if [stage["size"] == REST for stage in stages] != [*(False for _ in stages[1:]), *(True for _ in stages[:1])]:
        raise InvalidRequest(f"stages: the last one, and only that, takes the {REST}.")
    if "undo" in document and "tenants" in document:
        raise InvalidRequest("undo: it is about the tenants of that rollout, so it does not go with tenants.")
    if "sample" in document and not document.get("dryRun"):
        raise InvalidRequest("sample: only a dry run looks at a sample.")
    if any(stage.get("maxConcurrency", 0) > max_concurrency for stage in stages):
        raise InvalidRequest(f"maxConcurrency: this control plane moves {max_concurrency} tenants at once at most.")
    wish = wish_from(document, max_concurrency=max_concurrency)
    return StartOrder(wish, caller(event), document.get("reason", ""))


def parse_rollout(event: Mapping[str, Any]) -> str:
    body_of(event, _NOTHING)
    return _named_rollout(event)


def parse_rollout_order(event: Mapping[str, Any]) -> RolloutOrder:
    body = body_of(event, ONLY_A_REASON)
    return RolloutOrder(_named_rollout(event), caller(event), body.get("reason", ""))


def parse_approval(event: Mapping[str, Any]) -> Approval:
    """The stage is named, so that a request which arrives twice does not approve of the next one, too."""
    body = body_of(event, _APPROVAL)
    return Approval(_named_rollout(event), int(body["stage"]), caller(event), body.get("reason", ""))


def _named_rollout(event: Mapping[str, Any]) -> str:
    valid(_NOTHING, query_of(event), what="the query")
    rollout = path_parameter(event, "rolloutId")
    valid(Schema(object_of({"rolloutId": _ROLLOUT_ID})), {"rolloutId": rollout}, what="the path")
    return str(rollout)


def parse_rollouts(event: Mapping[str, Any]) -> RolloutListing:
    query = valid(_LIST, query_of(event), what="the query")
    return RolloutListing(query.get("cursor"), limit_of(query))


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
