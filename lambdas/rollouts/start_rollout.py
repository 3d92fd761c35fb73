"""Custom::Rollout: at its end, the deployment starts a rollout of the release that it has published."""

from lambdas.observing import logger
from lambdas.runtime import use_cases
from orchestrator.adapters.custom_resource import parse_event, respond_to_deployment
from orchestrator.common.errors import Conflict
from orchestrator.rollouts.control import NothingToDo
from orchestrator.rollouts.documents import spec_from
from orchestrator.tenants.admission import Refusal, Refused
from orchestrator.tenants.resource_requests import parse_rollout_request

_BY = "deployment"

_NOT_FATAL = frozenset({Refusal.ROLLOUT_IN_THE_WAY, Refusal.DOWNGRADE, Refusal.RELEASE_WITHDRAWN})
"""Refusals that do not fail the deployment: the release is published and can be rolled out later. If the deployment
was rolled back instead, the rollout of the earlier release would be refused as well."""


def handler(payload: object, _context: object) -> None:
    event = parse_event(payload)

    def work() -> dict[str, str]:
        request = parse_rollout_request(event)
        return _start(request.version) if request.version_changed else {}

    with logger.append_context_keys(stack_id=event.get("StackId"), request=event.get("RequestType")):
        # A delete starts no rollout: all tenants keep their versions.
        reason = respond_to_deployment(
            event, work, confirm=lambda: use_cases.deployment.confirm(event, "Custom::Rollout"), physical_id="rollout"
        )
        logger.info("Answered CloudFormation", extra={"failed_because": reason})


def _start(version: str) -> dict[str, str]:
    spec = spec_from({"version": version}, max_concurrency=use_cases.ports.settings.rollout_concurrency)
    started = use_cases.rollouts.start(spec, by=_BY)
    if isinstance(started, Refused) and started.kind not in _NOT_FATAL:
        raise Conflict(started.reason)
    if isinstance(started, Refused | NothingToDo):
        logger.warning("No rollout was started", extra={"version": version, "reason": started.reason})
        return {}
    logger.info("Rollout started", extra={"version": version, "rollout_id": started.rollout.id})
    return {"RolloutId": started.rollout.id}
