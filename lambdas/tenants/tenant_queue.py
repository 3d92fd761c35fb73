"""Custom::TenantQueue: pass CloudFormation's request to a state machine, which can wait longer than a function.

The state machine asks CloudFormation to confirm the request before it changes anything or sends a response.
"""

from lambdas.observing import logger
from lambdas.runtime import use_cases
from orchestrator.adapters.custom_resource import parse_event
from orchestrator.common.errors import InvalidRequest
from orchestrator.tenants.resource_requests import parse_claim


def handler(payload: object, _context: object) -> None:
    event = parse_event(payload)
    with logger.append_context_keys(
        stack_id=event.get("StackId"), resource=event.get("LogicalResourceId"), request=event.get("RequestType")
    ):
        try:
            claim = parse_claim(event, use_cases.ports.settings.location)
        except InvalidRequest as invalid:
            # CloudFormation never sends such an event, so nobody waits for a response.
            logger.warning("Refused", extra={"reason": str(invalid)})
            return
        # The name is derived from the request, so that a repeated event does not start another execution.
        name = f"tenant-queue-{claim.request_id}"
        execution = use_cases.ports.start_tenant_queue(name, event)
        logger.info("Handed over", extra={"tenant_id": claim.tenant_id, "execution": execution})
