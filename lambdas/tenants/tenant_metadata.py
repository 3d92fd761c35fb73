"""Custom::TenantMetadata: a tenant's stack records the metadata of its queue."""

from lambdas.observing import logger
from lambdas.runtime import use_cases
from orchestrator.adapters.custom_resource import parse_event, respond
from orchestrator.common.errors import InvalidRequest, Throttled, Unsettled
from orchestrator.tenants.resource_requests import Kind, parse_metadata_request


def handler(payload: object, _context: object) -> None:
    event = parse_event(payload)

    def work() -> dict[str, str]:
        settings = use_cases.ports.settings
        try:
            request = parse_metadata_request(event, location=settings.location, names=settings.names)
        except InvalidRequest:
            if event.get("RequestType") == "Delete":
                return {}  # A refused request recorded nothing. Refusing its delete would block the stack's rollback.
            raise
        if request.kind is Kind.DELETE:
            use_cases.forget_queue(request.tenant, stack_id=str(request.stack))
        else:
            use_cases.record_queue(request.tenant, stack_id=str(request.stack), reported=request.queue)
        return {}

    with logger.append_context_keys(stack_id=event.get("StackId"), request=event.get("RequestType")):
        # These errors are retried for some minutes, because a rollback that fails would leave the stack stuck.
        reason = respond(event, work, physical_id="tenant-metadata", retried=(Throttled, Unsettled))
        logger.info("Answered CloudFormation", extra={"failed_because": reason})
