"""Custom::ApiProof: the deployment makes what API Gateway proves itself with. It is in no template, log or output."""

import secrets

from lambdas.runtime import logger
from orchestrator.adapters.custom_resource import received, respond
from orchestrator.callers import digest_of
from orchestrator.resource_requests import check_api_proof_request

_BYTES = 32


def handler(given: object, _context: object) -> None:
    event = received(given)

    def work() -> dict[str, str]:
        if event.get("RequestType") == "Delete":
            return {}
        check_api_proof_request(event)
        # Of letters, digits, - and _, which the variables of a stage may be made of.
        proof = secrets.token_urlsafe(_BYTES)
        return {"Value": proof, "Digest": digest_of(proof)}

    reason = respond(event, work, physical_id="api-proof", secret=True)
    logger.info("Answered CloudFormation", extra={"request": event.get("RequestType"), "failed_because": reason})
