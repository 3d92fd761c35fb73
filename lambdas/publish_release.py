"""Custom::Release: the deployment publishes a tenant template under its version."""

from lambdas.runtime import logger, wiring
from orchestrator.adapters.custom_resource import received, respond
from orchestrator.releases import publish_release
from orchestrator.resource_requests import parse_release_request


def handler(given: object, _context: object) -> None:
    event = received(given)

    def work() -> dict[str, str]:
        if event.get("RequestType") == "Delete":
            return {}  # What was released stays: tenants are running on it.
        asked = parse_release_request(event)
        release = publish_release(
            asked.version,
            digest=asked.digest,
            notes=asked.notes,
            source_bucket=asked.source_bucket,
            source_key=asked.source_key,
            releases=wiring.table,
            templates=wiring.templates,
            clock=wiring.clock,
        )
        return {"TemplateUrl": release.template_url}

    reason = respond(event, work, physical_id="release")
    logger.info("Answered CloudFormation", extra={"request": event.get("RequestType"), "failed_because": reason})
