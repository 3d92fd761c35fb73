"""Answering CloudFormation for a custom resource: always, also when the work failed.

A custom resource that never answers holds its stack up until the service timeout, and again on rollback. The address
of the answer comes with the event, which whoever may invoke the function can make up: so an answer is sent to
CloudFormation's own hosts and nowhere else.
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

# CloudFormation takes an answer of at most 4,096 bytes; the ids around the reason need their share.
_REASON_BYTES = 1_024

# An answer that is lost costs the service timeout. All tries together end before the function's own timeout.
_TRIES = 3
_SECONDS_A_TRY = 7

_TRIES_TO_BE_PERMITTED = 10
_SECONDS_TO_BE_PERMITTED = 3

# CloudFormation takes answers in a bucket per region, with or without the region in the bucket's host. Names of buckets
# are unique in a partition, so in this partition the bucket is CloudFormation's. In another it may be anybody's.
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


def received(given: object) -> Mapping[str, Any]:
    """An event that can be answered, and whose answer CloudFormation waits for."""
    event = answerable(given)
    _check_address(event["ResponseURL"])
    return event


def respond(
    event: Mapping[str, Any],
    work: Callable[[], Mapping[str, str]],
    *,
    physical_id: str,
    secret: bool = False,
    repeated: tuple[type[Exception], ...] = (),
) -> str | None:
    """Do the work and tell CloudFormation how it went. Returns the reason if it failed.

    CloudFormation does not show what the work returned if that is ``secret``. Errors that are to be ``repeated`` are
    raised, and nobody is answered: Lambda calls the function again a minute later, and once more after two.
    """
    reason = None
    data: Mapping[str, str] = {}
    try:
        data = work()
    except repeated:
        raise
    except Exception as error:  # noqa: BLE001 - whatever went wrong, CloudFormation must hear of it
        reason = f"{type(error).__name__}: {error}"
    # Never a new id: CloudFormation would take the old one for replaced and ask to delete it.
    answer_resource(
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
    """Do the work for the deployment of the control plane itself. Nobody is answered before ``confirm`` has returned.

    What a deployment has brought about outlives its resource. So a delete does nothing, and is always possible.
    """
    if event.get("RequestType") == "Delete":
        return respond(event, dict, physical_id=physical_id)
    confirm()
    return respond(event, lambda: _once_permitted(work), physical_id=physical_id, secret=secret, repeated=(Throttled,))


def _once_permitted(work: Callable[[], Mapping[str, str]]) -> Mapping[str, str]:
    """Do the work, again if AWS denies it: a role that the deployment has just made is not known everywhere yet."""
    for _ in range(_TRIES_TO_BE_PERMITTED - 1):
        try:
            return work()
        except ClientError as error:
            if error_code(error) not in ACCESS_DENIED:
                raise
        time.sleep(_SECONDS_TO_BE_PERMITTED)
    return work()


def answer_resource(
    event: Mapping[str, Any],
    *,
    physical_id: str,
    data: Mapping[str, str] | None = None,
    reason: str | None = None,
    secret: bool = False,
) -> None:
    """Tell CloudFormation how it went: well, unless there is a reason."""
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


def bounded_reason(told: str) -> str:
    """What went wrong, in printable text: anything else would be spelled out six times as long on the way."""
    printable = "".join(letter if letter.isprintable() else " " for letter in told)
    return printable.encode()[:_REASON_BYTES].decode(errors="ignore")


def _check_address(url: str) -> None:
    settings = Settings()
    elsewhere = settings.response_url_prefix
    if elsewhere is not None:
        cloudformations = url.startswith(elsewhere)
    else:
        cloudformations = _is_cloudformations(url, settings.location)
    if not cloudformations:
        raise InvalidRequest("ResponseURL: this is no address of CloudFormation in this region, so nothing was done.")


def _is_cloudformations(url: str, here: Location) -> bool:
    domain = _DOMAINS.get(here.partition)
    if domain is None:
        raise InvalidRequest(
            f"ResponseURL: the hosts of partition {here.partition} are not known, so nothing was done."
        )
    bucket = re.escape(_BUCKET + here.region.replace("-", ""))
    host = rf"{bucket}\.s3([.-]{re.escape(here.region)})?\.{re.escape(domain)}"
    return re.fullmatch(rf"https://{host}/[!-~]*", url) is not None


def _put(url: str, body: bytes) -> None:
    # The empty content type is part of what CloudFormation's signed address was signed for.
    request = urllib.request.Request(url, data=body, method="PUT", headers={"Content-Type": ""})  # noqa: S310
    for tries_left in reversed(range(_TRIES)):
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS_A_TRY):  # noqa: S310 - CloudFormation's own address
                return
        except OSError:
            if not tries_left:
                raise
