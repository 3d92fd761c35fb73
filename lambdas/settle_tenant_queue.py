"""State Settle of Custom::TenantQueue: take one step towards the answer, and give it once there is one."""

from typing import Any

from lambdas.runtime import logger, tell, wiring
from orchestrator.adapters.custom_resource import answer_resource
from orchestrator.errors import Throttled
from orchestrator.schemas import SettleStep, parse_settle_step
from orchestrator.tenant_queue import Answer, NotProvided, Provided, Waiting, settle


def handler(event: object, _context: object) -> dict[str, Any]:
    step = parse_settle_step(event)
    asked = step.asked
    with logger.append_context_keys(tenant_id=asked.tenant.value, resource=asked.request.by, request=asked.kind.value):
        answer = _settled(step)
        if not isinstance(answer, Waiting):
            _give(step, answer)
        logger.info("Custom::TenantQueue", extra=tell(answer))
    return tell(answer)


def _settled(step: SettleStep) -> Answer:
    if step.fault is not None:
        return NotProvided(step.fault)
    try:
        return settle(step.asked, since=step.since, lifecycle=wiring.tenant_queue_lifecycle)
    except Throttled:
        return Waiting()


def _give(step: SettleStep, answer: Provided | NotProvided) -> None:
    if isinstance(answer, NotProvided):
        # With the id that it has, if it has one: a new one would have CloudFormation delete the old.
        answer_resource(step.event, physical_id=step.physical_id, reason=answer.reason)
        return
    queue = answer.queue
    if queue is None:
        answer_resource(step.event, physical_id=step.physical_id)
    else:
        # The resource is the tenant. Another tenant is another resource, and the old one is asked to go.
        data = {"QueueUrl": queue.url, "QueueArn": queue.arn}
        answer_resource(step.event, physical_id=step.asked.tenant.value, data=data)
