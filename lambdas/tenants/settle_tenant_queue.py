"""State Settle of Custom::TenantQueue: take one step towards the result, and respond once there is one."""

from typing import Any

from lambdas.observing import count, logger
from lambdas.runtime import outcome_json, use_cases
from orchestrator.adapters.custom_resource import send_response
from orchestrator.tenants.schemas import SettleStep, parse_settle_step
from orchestrator.tenants.tenant_queue import Answer, AnsweredBefore, NotConfirmed, NotProvided, Provided


def handler(event: object, _context: object) -> dict[str, Any]:
    step = parse_settle_step(event, use_cases.ports.settings.location)
    claim = step.claim
    with logger.append_context_keys(
        tenant_id=claim.tenant_id, resource=str(claim.resource), request=claim.kind.value, request_id=claim.request_id
    ):
        settled = _settled(step)
        if isinstance(settled, Provided | NotProvided):
            _respond(step, settled)
        if isinstance(settled, NotConfirmed):
            count("RequestNotConfirmed")
            logger.warning("Custom::TenantQueue", extra=outcome_json(settled))
        else:
            logger.info("Custom::TenantQueue", extra=outcome_json(settled))
    return outcome_json(settled)


def _settled(step: SettleStep) -> Answer | AnsweredBefore | NotConfirmed:
    if step.fault is not None:
        return NotProvided(step.fault)
    return use_cases.answer_tenant_queue(step.claim, step.asked, confirmed=step.confirmed, since=step.since)


def _respond(step: SettleStep, result: Provided | NotProvided) -> None:
    if isinstance(result, NotProvided):
        # The physical id stays the same: after a changed id, CloudFormation would delete the resource with the old id.
        send_response(step.event, physical_id=step.physical_id, reason=result.reason)
        return
    queue = result.queue
    if queue is None:
        send_response(step.event, physical_id=step.physical_id)
    else:
        # The physical id is the tenant id. If the tenant changes, CloudFormation deletes the resource with the old id.
        data = {"QueueUrl": queue.url, "QueueArn": queue.arn}
        send_response(step.event, physical_id=step.claim.tenant_id or step.physical_id, data=data)
