"""HTTP answers of getQueue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.api.responses import RETRY_AFTER_SECONDS, Response, json_response
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import timestamp
from orchestrator.tenants.ready import Ready

if TYPE_CHECKING:
    from orchestrator.tenants.credentials import Credentials
    from orchestrator.tenants.provisioning import Answer


def answer(
    tenant: TenantId, given: Answer, credentials: Credentials | None = None, *, retry_after: int = RETRY_AFTER_SECONDS
) -> Response:
    """``retry_after`` is the number of seconds after which the caller of a queue that is being created asks again."""
    if not isinstance(given, Ready):
        # Imported here, because nearly all answers have a queue, and getQueue's function must start fast.
        from orchestrator.api.queueless_answers import queueless_answer

        return queueless_answer(tenant, given, retry_after)
    response = json_response(
        200,
        {
            "tenantId": tenant.value,
            "state": "READY",
            "queueUrl": given.queue.url,
            "queueArn": given.queue.arn,
            "version": given.version,
            "resources": dict(given.resources),
        },
    )
    if credentials:
        response.headers["Cache-Control"] = "no-store"
        response.body["credentials"] = _credentials_document(credentials)
    return response


def _credentials_document(credentials: Credentials) -> dict[str, object]:
    return {
        "access": credentials.access.value,
        "accessKeyId": credentials.access_key_id,
        "secretAccessKey": credentials.secret_access_key,
        "sessionToken": credentials.session_token,
        "expiresAt": timestamp(credentials.expires_at),
    }
