"""Custom::ApiProof: the deployment makes what API Gateway proves itself with. It is in no template, log or output."""

import secrets

from lambdas.runtime import logger, wiring
from orchestrator.adapters.custom_resource import received, respond_to_deployment
from orchestrator.callers import digest_of
from orchestrator.resource_requests import check_api_proof_request

_BYTES = 32


def handler(given: object, _context: object) -> None:
    event = received(given)

    def work() -> dict[str, str]:
        check_api_proof_request(event)
        # Of letters, digits, - and _, which the variables of a stage may be made of.
        proof = secrets.token_urlsafe(_BYTES)
        return {"Value": proof, "Digest": digest_of(proof)}

    reason = respond_to_deployment(
        event,
        work,
        confirm=lambda: wiring.deployment.confirm(event, "Custom::ApiProof"),
        physical_id="api-proof",
        secret=True,
    )
    logger.info("Answered CloudFormation", extra={"request": event.get("RequestType"), "failed_because": reason})
