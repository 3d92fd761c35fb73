"""Runs a reconciliation, on a schedule or at an operator's request. A schedule also has the warm pool refilled."""

from dataclasses import asdict
from typing import TYPE_CHECKING

from lambdas.observing import count, logger
from lambdas.runtime import use_cases
from orchestrator.common.errors import Throttled
from orchestrator.reconciling.events import parse_to_run
from orchestrator.reconciling.records import POOL, SETTLING

if TYPE_CHECKING:
    from lambdas.context import LambdaContext

TO_SPARE_MILLISECONDS = 20_000
"""Time enough to finish the current tenant, and to record the progress."""


def handler(event: object, context: "LambdaContext") -> None:
    reconciliation = parse_to_run(event)
    if reconciliation == POOL:
        _refill_pool()
        return
    _run(reconciliation, context)
    if reconciliation == SETTLING:
        # Surveys that take longer than a function may run are continued every few minutes.
        for unfinished in use_cases.reconciliations.unfinished():
            _run(unfinished, context)


def _refill_pool() -> None:
    try:
        maintained = use_cases.maintaining.refill()
    except Throttled as throttled:
        logger.info("The pool will be refilled later", extra={"reason": str(throttled)})
        return
    if maintained is not None:
        logger.info("Maintained the pool", extra={"stacks": asdict(maintained)})


def _run(reconciliation: str, context: "LambdaContext") -> None:
    with logger.append_context_keys(reconciliation_id=reconciliation):
        request = use_cases.reconciliations.to_run(reconciliation)
        if request is None:
            logger.info("There is nothing to do")
            return

        def has_time() -> bool:
            return context.get_remaining_time_in_millis() > TO_SPARE_MILLISECONDS

        result = use_cases.reconciler(has_time=has_time).run(request)
        if not result.over:
            logger.info("The survey will be continued", extra={"checked": asdict(result.coverage)})
            return
        for finding in result.findings:
            logger.warning("Found", extra={"finding": str(finding), "result": finding.result})
        done = {"repaired": result.repaired, "ordered": result.ordered}
        logger.info("Reconciled", extra={"status": result.status, "counts": result.counts, **done})
        # Dry runs are not counted: their operator sees the findings, so no alarm is needed.
        if not result.spec.dry_run:
            if result.stuck:
                count("OperationsStuck", result.stuck)
            if result.repaired:
                count("Repairs", result.repaired)
            # A survey also counts that there is nothing: its alarm has a period of hours, and would otherwise stay on.
            if result.left or result.spec.survey:
                count("FindingsLeft", result.left)
