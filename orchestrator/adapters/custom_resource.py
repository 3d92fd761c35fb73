"""Sends CloudFormation the response of a custom resource, whether the work succeeded or failed.

A custom resource that never responds blocks its stack until the service timeout, and again during rollback. The
event says where to send the response, and anybody who may invoke the function can forge an event. So responses are
sent to CloudFormation's own hosts only.
"""

from __future__ import annotations

import json
import re
import time
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

from botocore.exceptions import ClientError

from orchestrator.adapters.aws import ACCESS_DENIED, error_code
from orchestrator.adapters.settings import Settings
from orchestrator.common.errors import InvalidRequest, Throttled
from orchestrator.common.stack_arns import Location
from orchestrator.tenants.resource_requests import answerable

# CloudFormation accepts a response of at most 4,096 bytes, including the ids next to the reason.
_MAX_REASON_BYTES = 1_024

# If the response is lost, the stack waits for the service timeout. All tries fit into the function's own timeout.
_MAX_TRIES = 3
_SECONDS_PER_TRY = 7

_MAX_TRIES_IF_DENIED = 10
_SECONDS_BETWEEN_TRIES = 3

# CloudFormation receives responses in one bucket per region. The bucket's host may or may not include the region.
# Bucket names are unique within a partition, so in this partition the bucket belongs to CloudFormation. In another
# partition, a bucket of the same name may belong to anybody.
_BUCKET = "cloudformation-custom-resource-response-"
_DOMAINS = {
    "aws": "amazonaws.com",
    "aws-cn": "amazonaws.com.cn",
    "aws-eusc": "amazonaws.eu",
    "aws-iso": "c2s.ic.gov",
    "aws-iso-b": "sc2s.sgov.gov",
    "aws-iso-e": "cloud.adc-e.uk",
    "aws-iso-f": "csp.hci.ic.gov",
    "aws-us-gov": "amazonaws.com",
}
"""The domain of each partition, by the partition's name."""


def parse_event(payload: object) -> Mapping[str, Any]:
    """The event, if it is complete enough for a response and the response goes to CloudFormation.

    Raises :class:`InvalidRequest`.
    """
    event = answerable(payload)
    _check_address(event["ResponseURL"])
    return event


def respond(
    event: Mapping[str, Any],
    work: Callable[[], Mapping[str, str]],
    *,
    physical_id: str,
    secret: bool = False,
    retried: tuple[type[Exception], ...] = (),
) -> str | None:
    """Do the work and send the result to CloudFormation. Returns the reason if the work failed.

    If ``secret``, CloudFormation does not show the values that the work returns. Exceptions in ``retried`` are raised
    without sending a response: Lambda calls the function again after one minute, and once more after two.
    """
    reason = None
    data: Mapping[str, str] = {}
    try:
        data = work()
    except retried:
        raise
    except Exception as error:  # noqa: BLE001 - CloudFormation needs a response after any error
        reason = f"{type(error).__name__}: {error}"
    # The id must not change: CloudFormation would treat the resource as replaced and delete the old one.
    send_response(
        event, physical_id=event.get("PhysicalResourceId") or physical_id, data=data, reason=reason, secret=secret
    )
    return reason


def respond_to_deployment(
    event: Mapping[str, Any],
    work: Callable[[], Mapping[str, str]],
    *,
    confirm: Callable[[], None],
    physical_id: str,
    secret: bool = False,
) -> str | None:
    """Do the work of a custom resource in the control plane's own stack, once ``confirm`` has accepted the event.

    The results of the work stay when the resource is deleted. So a delete does nothing and always succeeds.
    """
    if event.get("RequestType") == "Delete":
        return respond(event, dict, physical_id=physical_id)
    confirm()
    return respond(event, lambda: _retry_if_denied(work), physical_id=physical_id, secret=secret, retried=(Throttled,))


def _retry_if_denied(work: Callable[[], Mapping[str, str]]) -> Mapping[str, str]:
    """Repeat the work while AWS denies access: a role that was just created takes a while to work everywhere."""
    for _ in range(_MAX_TRIES_IF_DENIED - 1):
        try:
            return work()
        except ClientError as error:
            if error_code(error) not in ACCESS_DENIED:
                raise
        time.sleep(_SECONDS_BETWEEN_TRIES)
    return work()


def send_response(
    event: Mapping[str, Any],
    *,
    physical_id: str,
    data: Mapping[str, str] | None = None,
    reason: str | None = None,
    secret: bool = False,
) -> None:
    """Tell CloudFormation that the request succeeded, or that it failed if there is a ``reason``."""
    _check_address(event["ResponseURL"])
    body = json.dumps(
        {
            "Status": "FAILED" if reason else "SUCCESS",
            "Reason": bounded_reason(reason or ""),
            "PhysicalResourceId": physical_id,
            **{name: event.get(name, "") for name in ("StackId", "RequestId", "LogicalResourceId")},
            **({"NoEcho": True} if secret else {}),
            "Data": dict(data or {}),
        },
        ensure_ascii=False,
    ).encode()
    _put(event["ResponseURL"], body)


def bounded_reason(reason: str) -> str:
    """The reason, shortened, and without unprintable characters: JSON would escape each in six characters."""
    printable = "".join(letter if letter.isprintable() else " " for letter in reason)
    return printable.encode()[:_MAX_REASON_BYTES].decode(errors="ignore")


def _check_address(url: str) -> None:
    settings = Settings()
    prefix = settings.response_url_prefix
    allowed = _is_cloudformations(url, settings.location) if prefix is None else url.startswith(prefix)
    if not allowed:
        raise InvalidRequest(
            "ResponseURL: this is not an address of CloudFormation in this region, so nothing was done."
        )


def _is_cloudformations(url: str, here: Location) -> bool:
    domain = _DOMAINS.get(here.partition)
    if domain is None:
        raise InvalidRequest(
            f"ResponseURL: Berth does not know the hosts of partition {here.partition}, so nothing was done."
        )
    bucket = re.escape(_BUCKET + here.region.replace("-", ""))
    host = rf"{bucket}\.s3([.-]{re.escape(here.region)})?\.{re.escape(domain)}"
    return re.fullmatch(rf"https://{host}/[!-~]*", url) is not None


def _put(url: str, body: bytes) -> None:
    # CloudFormation signs the address for an empty content type.
    request = urllib.request.Request(url, data=body, method="PUT", headers={"Content-Type": ""})  # noqa: S310
    for tries_left in reversed(range(_MAX_TRIES)):
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS_PER_TRY):  # noqa: S310 - CloudFormation's own address
                return
        except OSError:
            if not tries_left:
                raise
