"""Custom::ApiProof: the deployment makes what API Gateway proves itself with. It is in no template, log or output."""

import secrets

from lambdas.runtime import logger, wiring
from orchestrator.adapters.custom_resource import received, respond_to_deployment
from orchestrator.common.callers import digest_of
from orchestrator.tenants.resource_requests import asks_for_another_proof

_BYTES = 32


def handler(given: object, _context: object) -> None:
    event = received(given)

    def work() -> dict[str, str]:
        another = asks_for_another_proof(event) and not wiring.deployment.is_undone()
        # What the stage has stays, unless another one is wanted: a deployment that fails before it comes to the stage
        # gives the functions back the digest of that. Otherwise of letters, digits, - and _, as stage variables are.
        proof = (None if another else wiring.api_stage.proof()) or secrets.token_urlsafe(_BYTES)
        return {"Value": proof, "Digest": digest_of(proof)}

    reason = respond_to_deployment(
        event,
        work,
        confirm=lambda: wiring.deployment.confirm(event, "Custom::ApiProof"),
        physical_id="api-proof",
        secret=True,
    )
    logger.info("Answered CloudFormation", extra={"request": event.get("RequestType"), "failed_because": reason})
