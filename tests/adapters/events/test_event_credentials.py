"""POST /tenants/{tenantId}/events/credentials: the function itself."""

from __future__ import annotations

import pytest

from tests.adapters.events.conftest import EVENTS_TABLE
from tests.adapters.events.functions import EventFunctions, HttpAnswer

ROUTE = "POST /events/credentials"


@pytest.fixture
def _switched_on(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "BERTH_EVENT_ACCESS_ROLE": "arn:aws:iam::123456789012:role/event-access",
        "BERTH_EVENTS_TABLE_ARN": f"arn:aws:dynamodb:eu-west-1:123456789012:table/{EVENTS_TABLE}",
        "BERTH_CREDENTIALS_SECONDS": "900",
    }.items():
        monkeypatch.setenv(name, value)


def ask(functions: EventFunctions, tenant: str = "acme") -> HttpAnswer:
    return functions.operate(ROUTE, tenant=tenant)


@pytest.mark.usefixtures("_switched_on")
def test_credentials_come_with_the_place_of_the_events(event_functions: EventFunctions) -> None:
    event_functions.key()
    answer = ask(event_functions)
    assert answer.status == 200, answer.body
    assert answer.headers["Cache-Control"] == "no-store"
    (partition,) = answer.body["partitions"]
    assert (answer.body["tenant_id"], answer.body["table"]) == ("acme", EVENTS_TABLE)
    assert partition.startswith("TENANT_ID#acme#")
    assert answer.body["access_key_id"]


@pytest.mark.usefixtures("_switched_on")
def test_a_tenant_that_is_gone_or_has_no_settings_gets_none(event_functions: EventFunctions) -> None:
    assert (ask(event_functions, "nobody").status, ask(event_functions, "nobody").kind) == (404, "unknown-tenant")
    event_functions.serve()
    assert ask(event_functions).status == 404
    event_functions.key()
    event_functions.withdraw()
    assert ask(event_functions).status == 404


@pytest.mark.usefixtures("_switched_on")
def test_credentials_are_not_logged(
    event_functions: EventFunctions, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AWS_LAMBDA_LOG_LEVEL", "DEBUG")
    event_functions.key()
    answer = ask(event_functions)
    logged = capsys.readouterr().out
    assert "/events/credentials" in logged
    assert answer.body["secret_access_key"] not in logged
    assert answer.body["session_token"] not in logged


def test_without_the_setting_there_are_none(event_functions: EventFunctions) -> None:
    event_functions.key()
    answer = ask(event_functions)
    assert (answer.status, answer.kind) == (403, "credentials-not-enabled")
