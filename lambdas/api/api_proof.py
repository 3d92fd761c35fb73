"""Custom::ApiProof: makes the secret by which functions recognise API Gateway. No template, log or output has it."""

import secrets

from lambdas.observing import logger
from lambdas.runtime import use_cases
from orchestrator.adapters.custom_resource import parse_event, respond_to_deployment
from orchestrator.common.callers import digest_of
from orchestrator.tenants.resource_requests import wants_new_proof

_BYTES = 32


def handler(payload: object, _context: object) -> None:
    event = parse_event(payload)

    def work() -> dict[str, str]:
        another = wants_new_proof(event) and not use_cases.deployment.is_undone()
        # The stage keeps its secret unless the deployment asks for a new one: if a deployment fails before it updates
        # the stage, its rollback gives the functions the digest of the old secret again. A new secret has only letters,
        # digits, - and _, because stage variables allow no others.
        proof = (None if another else use_cases.ports.api_stage.proof()) or secrets.token_urlsafe(_BYTES)
        return {"Value": proof, "Digest": digest_of(proof)}

    reason = respond_to_deployment(
        event,
        work,
        confirm=lambda: use_cases.deployment.confirm(event, "Custom::ApiProof"),
        physical_id="api-proof",
        secret=True,
    )
    logger.info("Answered CloudFormation", extra={"request": event.get("RequestType"), "failed_because": reason})
