"""Anyone who may invoke a function can send any event. Only API Gateway is trusted to name the caller."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.common.callers import NOBODY_KNOWN
from tests.adapters.handlers.functions import ADA, Functions, Lines, operator_event
from tests.fakes import NEXT_VERSION, VERSION, a_release

ASKING = {"tenantId": "acme"}
SENDING = "POST /tenants/{tenantId}/queue/credentials/send"
RECEIVING = "POST /tenants/{tenantId}/queue/credentials/receive"

ORDERS: dict[str, dict[str, Any]] = {
    "PUT /tenants/{tenantId}": {"labels": {"tier": "gold"}},
    "DELETE /tenants/{tenantId}": {},
    "POST /tenants/{tenantId}/upgrade": {"version": NEXT_VERSION},
    "POST /tenants/{tenantId}/labels": {"set": {"tier": "gold"}},
    "PUT /tenants/{tenantId}/pin": {"version": VERSION},
    "POST /rollouts": {},
    "POST /reconciliations": {},
}


def forged(route: str, body: object = None, **variables: object) -> dict[str, Any]:
    """Ada's request as API Gateway would send it, without the proof that only API Gateway has."""
    event = operator_event(route, body=body or None)
    event.pop("stageVariables", None)
    return event | ({"stageVariables": variables} if variables else {})


@pytest.mark.parametrize("proof", [None, "", "guessed", 7, ["guessed"], "half of a pair: \ud800"], ids=ascii)
@pytest.mark.parametrize("route", ORDERS)
def test_an_order_of_a_forged_caller_is_refused_without_any_call(
    functions: Functions, route: str, proof: object
) -> None:
    functions.serve()
    functions.table.record_release(a_release(NEXT_VERSION))
    before = functions.rows
    functions.requests.clear()
    given = {} if proof is None else {"proof": proof}
    status, headers, body = functions.ask("operators", forged(route, ORDERS[route], **given))
    assert (status, headers["Content-Type"]) == (403, "application/problem+json")
    assert body["type"] == "urn:berth:problem:not-through-the-api"
    assert functions.requests == []
    assert functions.rows == before
    assert functions.all_executions == []


def test_a_forged_operator_is_not_in_the_log(functions: Functions, lines: Lines) -> None:
    functions.ask("operators", forged("DELETE /tenants/{tenantId}"))
    (logged,) = [line for line in lines() if "_aws" not in line]
    assert (logged["caller"], logged["status"]) == (NOBODY_KNOWN, 403)
    assert ADA not in str(logged)


def test_a_forged_caller_of_get_queue_counts_as_a_direct_invocation(functions: Functions, lines: Lines) -> None:
    status, _, body = functions.get_queue(forged("GET /tenants/{tenantId}/queue"))
    assert status == 202
    assert functions.request_of(body["execution"]).by == NOBODY_KNOWN
    (logged,) = [line for line in lines() if "_aws" not in line]
    assert logged["caller"] == NOBODY_KNOWN


@pytest.mark.parametrize("event", [forged(SENDING), forged(RECEIVING)], ids=["send", "receive"])
def test_a_forged_caller_gets_no_credentials(
    functions: Functions, monkeypatch: pytest.MonkeyPatch, event: dict[str, Any]
) -> None:
    monkeypatch.setenv("BERTH_QUEUE_ACCESS_ROLE", "arn:aws:iam::123456789012:role/queue-access")
    monkeypatch.setenv("BERTH_CREDENTIALS_SECONDS", "900")
    functions.serve()
    functions.requests.clear()
    status, _, body = functions.get_queue(event)
    assert (status, body["type"]) == (403, "urn:berth:problem:not-through-the-api")
    assert "credentials" not in body
    assert functions.requests == []


@pytest.mark.parametrize("access", ["send", "receive"])
def test_a_direct_invocation_gets_no_credentials(
    functions: Functions, monkeypatch: pytest.MonkeyPatch, access: str
) -> None:
    """The permission to invoke a function cannot tell sending from receiving, and the function not who it is."""
    monkeypatch.setenv("BERTH_QUEUE_ACCESS_ROLE", "arn:aws:iam::123456789012:role/queue-access")
    monkeypatch.setenv("BERTH_CREDENTIALS_SECONDS", "900")
    functions.serve()
    functions.requests.clear()
    status, _, body = functions.get_queue({**ASKING, "credentials": access})
    assert (status, body["type"]) == (400, "urn:berth:problem:invalid-request")
    assert SENDING in body["detail"]
    assert RECEIVING in body["detail"]
    assert functions.requests == []


def test_without_a_deployed_proof_every_caller_is_refused(
    functions: Functions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BERTH_API_PROOF_DIGEST", raising=False)
    assert functions.operate("GET /tenants")[0] == 403
    assert functions.get_queue(ASKING)[0] == 202
