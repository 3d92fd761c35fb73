"""Custom::TenantMetadata: a tenant's stack keeps the metadata of its queue true."""

from lambdas.runtime import logger, wiring
from orchestrator.adapters.custom_resource import received, respond
from orchestrator.common.errors import InvalidRequest, Throttled, Unsettled
from orchestrator.tenants.queue_metadata import forget_queue, record_queue
from orchestrator.tenants.resource_requests import Kind, parse_metadata_request


def handler(given: object, _context: object) -> None:
    event = received(given)

    def work() -> dict[str, str]:
        try:
            asked = parse_metadata_request(event, location=wiring.settings.location, names=wiring.names)
        except InvalidRequest:
            if event.get("RequestType") == "Delete":
                return {}  # What was refused was never recorded. Refusing again would keep the stack from rolling back.
            raise
        if asked.kind is Kind.DELETE:
            forget_queue(
                asked.tenant, stack_id=str(asked.stack), reader=wiring.table, ledger=wiring.table, stacks=wiring.stacks
            )
        else:
            record_queue(
                asked.tenant,
                stack_id=str(asked.stack),
                told=asked.queue,
                reader=wiring.table,
                ledger=wiring.table,
                stacks=wiring.stacks,
                clock=wiring.clock,
            )
        return {}

    with logger.append_context_keys(stack_id=event.get("StackId"), request=event.get("RequestType")):
        # If an update could not be undone because AWS had no time, the stack would be stuck. It waits for some minutes.
        reason = respond(event, work, physical_id="tenant-metadata", repeated=(Throttled, Unsettled))
        logger.info("Answered CloudFormation", extra={"failed_because": reason})
