"""What asks for a reconciliation, and what says that an execution has ended, checked and in the domain's words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.api.operator_requests import body_of, parse_nothing, path_parameter
from orchestrator.common.callers import caller
from orchestrator.common.validation import REASON, SORTED_ID, Schema, object_of, valid
from orchestrator.reconciling.records import Wish

CURSOR_PATTERN = r"^[A-Za-z0-9_-]{1,2000}$"
"""As adoptions return it."""

_FLAG = {"type": "boolean"}
_WISH = Schema(object_of({}, {"dryRun": _FLAG, "detectDrift": _FLAG, "reason": REASON}, closed=True))
_CURSOR = {"type": "string", "pattern": CURSOR_PATTERN}
_ADOPTION_WISH = Schema(object_of({}, {"dryRun": _FLAG, "cursor": _CURSOR, "reason": REASON}, closed=True))
_ADOPTION = Schema(object_of({"adoptionId": SORTED_ID}))
_RECONCILIATION = Schema(object_of({"reconciliationId": SORTED_ID}))


@dataclass(frozen=True, slots=True)
class ReconciliationOrder:
    wish: Wish
    by: str


def parse_reconcile(event: Mapping[str, Any]) -> ReconciliationOrder:
    parse_nothing(event)
    body = body_of(event, _WISH)
    wish = Wish(
        detect_drift=body.get("detectDrift", False), dry_run=body.get("dryRun", False), reason=body.get("reason", "")
    )
    return ReconciliationOrder(wish, caller(event))


def parse_reconciliation(event: Mapping[str, Any]) -> str:
    """The id in the path."""
    parse_nothing(event)
    given = {"reconciliationId": path_parameter(event, "reconciliationId")}
    reconciliation: str = valid(_RECONCILIATION, given, what="the path")["reconciliationId"]
    return reconciliation


def parse_adopt(event: Mapping[str, Any]) -> ReconciliationOrder:
    parse_nothing(event)
    body = body_of(event, _ADOPTION_WISH)
    wish = Wish(
        survey=False,
        adopt=True,
        dry_run=body.get("dryRun", False),
        cursor=body.get("cursor"),
        reason=body.get("reason", ""),
    )
    return ReconciliationOrder(wish, caller(event))


def parse_adoption(event: Mapping[str, Any]) -> str:
    """The id in the path."""
    parse_nothing(event)
    adoption: str = valid(_ADOPTION, {"adoptionId": path_parameter(event, "adoptionId")}, what="the path")["adoptionId"]
    return adoption
