"""Custom::TenantMetadata: a tenant's stack records the metadata of its queue."""

from lambdas.runtime import logger, wiring
from orchestrator.adapters.custom_resource import received, respond
from orchestrator.common.errors import InvalidRequest, Throttled, Unsettled
from orchestrator.tenants.queue_metadata import forget_queue, record_queue
from orchestrator.tenants.resource_requests import Kind, parse_metadata_request


def handler(given: object, _context: object) -> None:
    event = received(given)

    def work() -> dict[str, str]:
        try:
            request = parse_metadata_request(event, location=wiring.settings.location, names=wiring.names)
        except InvalidRequest:
            if event.get("RequestType") == "Delete":
                return {}  # A refused request recorded nothing. Refusing its delete would block the stack's rollback.
            raise
        if request.kind is Kind.DELETE:
            forget_queue(
                request.tenant,
                stack_id=str(request.stack),
                reader=wiring.table,
                ledger=wiring.ledger,
                stacks=wiring.stacks,
            )
        else:
            record_queue(
                request.tenant,
                stack_id=str(request.stack),
                told=request.queue,
                reader=wiring.table,
                ledger=wiring.ledger,
                stacks=wiring.stacks,
                clock=wiring.clock,
            )
        return {}

    with logger.append_context_keys(stack_id=event.get("StackId"), request=event.get("RequestType")):
        # These errors are retried for some minutes, because a rollback that fails would leave the stack stuck.
        reason = respond(event, work, physical_id="tenant-metadata", repeated=(Throttled, Unsettled))
        logger.info("Answered CloudFormation", extra={"failed_because": reason})
