"""Custom::Release: the deployment publishes a tenant template under its version."""

from lambdas.logs import logger
from lambdas.runtime import use_cases
from orchestrator.adapters.custom_resource import parse_event, respond_to_deployment
from orchestrator.tenants.resource_requests import parse_release_request


def handler(payload: object, _context: object) -> None:
    event = parse_event(payload)

    def work() -> dict[str, str]:
        request = parse_release_request(event)
        release = use_cases.publish_release(
            request.version,
            digest=request.digest,
            notes=request.notes,
            source_key=request.source_key,
            again=request.key_changed,
        )
        return {"TemplateUrl": release.template_url}

    # A delete removes no release, because tenants still use them.
    reason = respond_to_deployment(
        event, work, confirm=lambda: use_cases.deployment.confirm(event, "Custom::Release"), physical_id="release"
    )
    logger.info("Answered CloudFormation", extra={"request": event.get("RequestType"), "failed_because": reason})
