"""What operators and the machine send about rollouts, checked and in the domain's words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.api.operator_requests import (
    NUMBER_IN_A_QUERY,
    ONLY_A_REASON,
    body_of,
    limit_of,
    path_parameter,
    query_of,
)
from orchestrator.common.callers import caller
from orchestrator.common.errors import InvalidRequest
from orchestrator.common.validation import (
    LABELS,
    REASON,
    SORTED_ID,
    TENANT_ID,
    VERSION,
    Schema,
    object_of,
    valid,
)
from orchestrator.rollouts.documents import REST, wish_from
from orchestrator.rollouts.records import Wish
from orchestrator.rollouts.steps import MOST_STAGES, STAGE_NUMBER

MOST_TENANTS = 500
"""As many as can be named. Each is looked up while the operator waits."""
MOST_BAKE_SECONDS = 7 * 24 * 3600
MOST_AT_ONCE = 1_000


_FLAG = {"type": "boolean"}
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
            "undo": SORTED_ID,
            "reason": REASON,
        },
        closed=True,
    )
)
_APPROVAL = Schema(object_of({"stage": STAGE_NUMBER}, {"reason": REASON}, closed=True))
_NOTHING = Schema(object_of({}, closed=True))
_LIST = Schema(
    object_of(
        {},
        {"cursor": SORTED_ID, "limit": NUMBER_IN_A_QUERY},
        closed=True,
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
    valid(Schema(object_of({"rolloutId": SORTED_ID})), {"rolloutId": rollout}, what="the path")
    return str(rollout)


def parse_rollouts(event: Mapping[str, Any]) -> RolloutListing:
    query = valid(_LIST, query_of(event), what="the query")
    return RolloutListing(query.get("cursor"), limit_of(query))
