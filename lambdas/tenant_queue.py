"""Custom::TenantQueue, asked for by CloudFormation: hand it to a machine, which can wait longer than a function."""

from collections.abc import Mapping
from typing import Any

from lambdas.runtime import logger, wiring
from orchestrator.adapters.custom_resource import received, respond
from orchestrator.errors import InvalidRequest
from orchestrator.resource_requests import parse_tenant_queue_request


def handler(given: object, _context: object) -> None:
    event = received(given)
    with logger.append_context_keys(
        stack_id=event.get("StackId"), resource=event.get("LogicalResourceId"), request=event.get("RequestType")
    ):
        try:
            tenant = parse_tenant_queue_request(event).tenant
        except InvalidRequest as invalid:
            _refuse(event, invalid)
            return
        # Named after the request: the same event twice is one execution.
        name = f"tenant-queue-{event['RequestId']}"[:80]
        execution = wiring.executions.start_by_name(wiring.settings.tenant_queue_machine, name, {"event": dict(event)})
        logger.info("Handed over", extra={"tenant_id": tenant.value, "execution": execution})


def _refuse(event: Mapping[str, Any], invalid: InvalidRequest) -> None:
    def work() -> dict[str, str]:
        if event.get("RequestType") == "Delete":
            return {}  # What was refused was never provided. Refusing again would keep the stack from rolling back.
        raise invalid

    reason = respond(event, work, physical_id="refused")
    logger.info("Answered CloudFormation", extra={"failed_because": reason})
