"""Custom::TenantQueue, asked for by CloudFormation: hand it to a machine, which can wait longer than a function.

The machine asks CloudFormation whether the request is its own, before it does anything or answers anybody.
"""

from lambdas.runtime import logger, wiring
from orchestrator.adapters.custom_resource import received
from orchestrator.common.errors import InvalidRequest
from orchestrator.tenants.resource_requests import parse_claim


def handler(given: object, _context: object) -> None:
    event = received(given)
    with logger.append_context_keys(
        stack_id=event.get("StackId"), resource=event.get("LogicalResourceId"), request=event.get("RequestType")
    ):
        try:
            claim = parse_claim(event, wiring.settings.location)
        except InvalidRequest as invalid:
            # CloudFormation sends no such thing, so nobody waits for an answer.
            logger.warning("Refused", extra={"reason": str(invalid)})
            return
        # Named after the request: the same event twice is one execution.
        name = f"tenant-queue-{claim.request_id}"
        execution = wiring.executions.start_by_name(wiring.settings.tenant_queue_machine, name, {"event": dict(event)})
        logger.info("Handed over", extra={"tenant_id": claim.tenant_id, "execution": execution})
