"""A reconciliation: on a schedule, or because an operator asked for one."""

import time
from typing import TYPE_CHECKING

from lambdas.runtime import count, logger, wiring
from orchestrator.reconciling.events import parse_to_run

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

TO_SPARE_MILLISECONDS = 20_000
"""Enough to end what is being looked at, and to record how far it came."""


def handler(event: object, context: "LambdaContext") -> None:
    reconciliation = parse_to_run(event)
    with logger.append_context_keys(reconciliation_id=reconciliation):
        asked = wiring.reconciliations.to_run(reconciliation)
        if asked is None:
            logger.info("There is nothing to do")
            return

        def has_time() -> bool:
            return context.get_remaining_time_in_millis() > TO_SPARE_MILLISECONDS

        came = wiring.reconciler(has_time=has_time, pause=time.sleep).run(asked)
        for finding in came.findings:
            logger.warning("Found", extra={"finding": str(finding), "result": finding.result})
        done = {"repaired": came.repaired, "ordered": came.ordered}
        logger.info("Reconciled", extra={"status": came.status, "counts": came.counts, **done})
        # Of a dry run and of an adoption, whoever asked is told: nobody has to be woken.
        if not (came.wish.dry_run or came.wish.adopt):
            count("OperationsStuck", came.stuck)
            count("Repairs", came.repaired)
            count("FindingsLeft", came.left)
