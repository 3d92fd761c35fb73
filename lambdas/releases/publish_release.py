"""Custom::Release: the deployment publishes a tenant template under its version.

Custom::CurrentRelease: deployments cease to make releases current, so the function keeps the one that is current.
"""

from collections.abc import Callable, Mapping
from typing import Any

from lambdas.observing import logger
from lambdas.runtime import use_cases
from orchestrator.adapters.custom_resource import parse_event, respond_to_deployment
from orchestrator.tenants.resource_requests import is_created, parse_release_request

_CURRENT_RELEASE = "Custom::CurrentRelease"


def handler(payload: object, _context: object) -> None:
    event = parse_event(payload)
    is_current = event.get("ResourceType") == _CURRENT_RELEASE
    work: Callable[[Mapping[str, Any]], dict[str, str]] = _keep_current if is_current else _publish
    resource_type = _CURRENT_RELEASE if is_current else "Custom::Release"
    # A delete removes no release, because tenants still use them, and changes nothing of which one is current.
    reason = respond_to_deployment(
        event,
        lambda: work(event),
        confirm=lambda: use_cases.deployment.confirm(event, resource_type),
        physical_id="current-release" if is_current else "release",
    )
    logger.info("Answered CloudFormation", extra={"request": event.get("RequestType"), "failed_because": reason})


def _publish(event: Mapping[str, Any]) -> dict[str, str]:
    request = parse_release_request(event)
    release = use_cases.publish_release(
        request.version,
        digest=request.digest,
        notes=request.notes,
        source_key=request.source_key,
        again=request.key_changed,
    )
    return {"TemplateUrl": release.template_url}


def _keep_current(event: Mapping[str, Any]) -> dict[str, str]:
    if is_created(event):
        use_cases.keep_current_release(event["RequestId"])
    return {}
