"""The deployed API accepts and returns what its OpenAPI document says.

These tests use values at the limits of the document. ``tests/unit/openapi/`` sends generated values to the same
functions.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from urllib.parse import urlsplit, urlunsplit

import pytest
import requests
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase
from schemathesis.core.failures import FailureGroup
from urllib3.util import Retry

from orchestrator.local.deployment import CONTEXT
from tests.e2e.deployed import Deployed
from tests.openapi import CHECKS, DOCUMENT, AtHand, cover, operations

OPERATIONS = operations(DOCUMENT)
AT_HAND = AtHand(
    tenants=("documented-1", "documented-2"),
    rollouts=("20000101-000000-0000",),
    reconciliations=("20000101-000000-0000",),
    most_at_once=int(CONTEXT["berth:rolloutConcurrency"]),
    only_dry_runs=True,
)
"""The only tenants in requests: these tests cause at most one operation per tenant.

No rollout and no reconciliation: there is none of that id, and what is started is a dry run, a rollout's of these
tenants. Other tests have tenants, too.
"""
PATIENTLY = Retry(
    total=10, backoff_factor=0.5, status_forcelist=[429, 503], allowed_methods=None, raise_on_status=False
)
"""The statuses of throttled requests, which the client retries."""


class SigV4(AuthBase):
    """Signs for the API's own host, although requests are sent to another one."""

    def __init__(self, credentials: Credentials, region: str, host: str) -> None:
        self._signer = SigV4Auth(credentials, "execute-api", region)
        self._host = host

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        url = urlunsplit(urlsplit(str(request.url))._replace(netloc=self._host))
        signed = AWSRequest(request.method, url, data=request.body, headers={"Host": self._host})
        self._signer.add_auth(signed)
        request.headers.update(dict(signed.headers.items()))
        return request


@pytest.fixture(scope="module")
def host(berth: Deployed) -> str:
    return urlsplit(berth.emulator.api_url(berth.outputs["ApiUrl"])).netloc


@pytest.fixture(scope="module")
def session(berth: Deployed, host: str) -> Iterator[requests.Session]:
    settings = berth.emulator.session_settings()
    credentials = Credentials(settings["aws_access_key_id"], settings["aws_secret_access_key"])
    with requests.Session() as session:
        session.trust_env = False
        session.auth = SigV4(credentials, settings["region_name"], host)
        session.mount(berth.emulator.endpoint, HTTPAdapter(max_retries=PATIENTLY))
        yield session


@pytest.mark.parametrize("operation_id", OPERATIONS)
def test_requests_at_the_limits_of_the_document_are_answered_as_documented(
    berth: Deployed, session: requests.Session, operation_id: str
) -> None:
    seen = cover(OPERATIONS[operation_id], session, berth.emulator.endpoint, at_hand=AT_HAND)
    assert seen.total() > 1


def test_unsigned_requests_are_refused_as_documented(berth: Deployed, host: str) -> None:
    case = OPERATIONS["listReleases"].Case()
    with requests.Session() as unsigned:
        unsigned.trust_env = False
        response = case.call_and_validate(
            base_url=berth.emulator.endpoint, session=unsigned, headers={"Host": host}, checks=list(CHECKS)
        )
    assert response.status_code == 403


def test_unknown_paths_are_refused_as_documented(berth: Deployed, session: requests.Session) -> None:
    case = OPERATIONS["getQueue"].Case(path_parameters={"tenantId": "a/b"})
    response = case.call_and_validate(base_url=berth.emulator.endpoint, session=session, checks=list(CHECKS))
    assert response.status_code == 404


def test_a_wrong_document_is_detected(berth: Deployed, session: requests.Session) -> None:
    document = copy.deepcopy(DOCUMENT)
    document["components"]["schemas"]["Releases"]["required"].append("region")
    with pytest.raises(FailureGroup, match="region"):
        cover(operations(document)["listReleases"], session, berth.emulator.endpoint, at_hand=AT_HAND)
