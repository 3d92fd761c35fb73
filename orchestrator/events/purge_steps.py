"""The payloads that the machine of purges sends to its function, validated and parsed."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.validation import TENANT_ID, TEXT, Schema, object_of, valid
from orchestrator.events.records import TenantEpoch

_STEP = Schema(object_of({"tenantId": TENANT_ID, "epoch": TEXT}, {"failure": {"type": "object"}}))


@dataclass(frozen=True, slots=True)
class PurgeStep:
    life: TenantEpoch
    failure: str | None = None
    """Why the purge failed. ``None`` if the purge is to go on."""


def parse_purge_step(event: object) -> PurgeStep:
    step = valid(_STEP, event)
    life = TenantEpoch(TenantId.parse(step["tenantId"]), step["epoch"])
    if "failure" not in step:
        return PurgeStep(life)
    # An error that Step Functions caught, or an outcome with a reason.
    details = (step["failure"].get(name) for name in ("Error", "Cause", "reason"))
    return PurgeStep(life, ": ".join(str(each) for each in details if each) or "The reason is not known.")
