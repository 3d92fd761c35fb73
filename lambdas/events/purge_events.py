"""One step of a purge: deletes as much of a deleted tenant's epoch as there is time for. Also records a failure."""

import time
from typing import TYPE_CHECKING, Any

from lambdas.event_runtime import use_cases
from lambdas.observing import count, logger
from lambdas.runtime import outcome_json
from orchestrator.common.errors import Throttled
from orchestrator.events.purge_steps import parse_purge_step
from orchestrator.events.purging import Purging
from orchestrator.events.records import TenantEpoch

if TYPE_CHECKING:
    from lambdas.context import LambdaContext

TO_SPARE_MILLISECONDS = 30_000
"""Time enough to delete one more page, and to record the numbers."""


def handler(event: object, context: "LambdaContext") -> dict[str, Any]:
    step = parse_purge_step(event)
    life = step.life

    def has_time() -> bool:
        return context.get_remaining_time_in_millis() > TO_SPARE_MILLISECONDS

    purging = use_cases.purging(has_time=has_time)
    with logger.append_context_keys(tenant_id=life.tenant.value, epoch=life.epoch):
        if step.failure is not None:
            logger.warning("Purge failed", extra={"reason": step.failure})
            purging.record_failure(life, step.failure)
            return {"outcome": "recorded"}
        return _step(purging, life)


def _step(purging: Purging, life: TenantEpoch) -> dict[str, Any]:
    started = time.perf_counter()
    try:
        result = outcome_json(purging.step(life))
    except Throttled as throttled:
        count("Throttled")
        result = {"outcome": "again", "reason": str(throttled), "throttled": True}
    except Exception:
        logger.exception("Step failed")
        raise
    logger.info("Step done", extra={"response": result, "milliseconds": round((time.perf_counter() - started) * 1000)})
    return result
