"""Events that a delete of the tenant would lose, and how the control plane asks for them."""

from __future__ import annotations

import importlib
import io
import json
from datetime import timedelta
from typing import Any

import pytest
from botocore.stub import Stubber

from orchestrator.adapters.dynamodb.deliveries import DynamoDeliveries
from orchestrator.adapters.dynamodb.parked import DynamoParkedDeliveries
from orchestrator.adapters.unfinished_work import LambdaUnfinishedWork
from orchestrator.common.errors import Throttled, Unsettled
from orchestrator.events import unfinished
from orchestrator.events.delivery import transitions
from orchestrator.events.delivery.records import ConnectionStatus, Delivery, DeliveryRef, DeliveryState
from orchestrator.events.plans import Plan
from orchestrator.events.records import EventSettings
from orchestrator.events.unfinished import DELIVERIES, INBOX, CountingUnfinished
from stacks.common.function_code import module_of
from tests.adapters.conftest import TABLE, client
from tests.adapters.events.functions import EventFunctions, http_event
from tests.adapters.events.lives import EVENTS_TABLE, Lives
from tests.fakes import ACME
from tests.fakes.events import connection
from tests.present import present


@pytest.fixture
def counting(lives: Lives) -> CountingUnfinished:
    return CountingUnfinished(
        tenants=lives.tenants,
        configuration=lives.table,
        events=lives.reads,
        parked=DynamoParkedDeliveries(lives.dynamodb, TABLE, events_table=EVENTS_TABLE),
        clock=lives.clock,
    )


def accept(lives: Lives, settings: EventSettings, number: int = 1) -> list[str]:
    standing = lives.granted(lives.key(settings))
    assert standing is not None
    return [lives.accept(standing) for _ in range(number)]


def test_a_tenant_without_settings_has_no_unfinished_events(counting: CountingUnfinished) -> None:
    assert counting.count(ACME) == {}


def test_events_count_until_they_are_acknowledged(lives: Lives, counting: CountingUnfinished) -> None:
    settings = lives.settings()
    ids = accept(lives, settings, 5)
    assert counting.count(ACME) == {INBOX: 5}
    for event_id in ids:
        lives.reads.acknowledge(settings.life, event_id, lives.clock.now())
    assert counting.count(ACME) == {}


def test_deliveries_that_are_parked_count(lives: Lives, counting: CountingUnfinished) -> None:
    settings = lives.settings(inbox=False)
    (event_id,) = accept(lives, settings)
    paused = connection(life=settings.life, status=ConnectionStatus.PAUSED)
    assert lives.table.add_connection(paused, present(lives.table.settings(ACME)))
    now = lives.clock.now()
    ref = DeliveryRef(settings.life, event_id, paused.connection_id)
    deliveries = DynamoDeliveries(lives.dynamodb, EVENTS_TABLE)
    assert deliveries.apply(transitions.changed(None, Delivery(ref, DeliveryState.PARKED, 0, now, now)))
    assert counting.count(ACME) == {DELIVERIES: 1}


def test_events_of_a_tenant_that_is_being_deleted_count(lives: Lives, counting: CountingUnfinished) -> None:
    accept(lives, lives.settings())
    lives.tenants.withdrawn.add(ACME)
    assert counting.count(ACME) == {INBOX: 1}


def test_events_of_a_predecessor_do_not_count(lives: Lives, counting: CountingUnfinished) -> None:
    accept(lives, lives.settings())
    lives.delete()
    lives.create("another one")
    assert counting.count(ACME) == {}


def test_events_without_an_inbox_do_not_count_because_nobody_has_to_act_on_them(
    lives: Lives, counting: CountingUnfinished
) -> None:
    accept(lives, lives.settings(inbox=False))
    assert counting.count(ACME) == {}


def test_events_that_have_expired_and_are_not_deleted_yet_do_not_count(
    lives: Lives, counting: CountingUnfinished
) -> None:
    accept(lives, lives.settings(plan=Plan.FREE))
    lives.wait(timedelta(days=8, seconds=1))
    assert counting.count(ACME) == {}


def test_one_event_is_found_behind_many_that_are_only_in_the_index(
    lives: Lives, counting: CountingUnfinished, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest events are acknowledged, and the index still lists them: the next page is read."""
    settings = lives.settings(plan=Plan.FREE)
    first, *others = accept(lives, settings, 5)
    monkeypatch.setattr(unfinished, "MAX_COUNTED", 2)
    read = lives.reads.read
    monkeypatch.setattr(
        lives.reads, "read", lambda life, ids: {each: event for each, event in read(life, ids).items() if each == first}
    )
    assert others
    assert counting.count(ACME) == {INBOX: 1}


def test_no_more_than_a_hundred_events_per_shard_are_read_and_nothing_is_scanned(
    lives: Lives, counting: CountingUnfinished
) -> None:
    settings = lives.settings(plan=Plan.FREE)
    for _ in range(11):
        accept(lives, settings, 10)
        lives.wait(timedelta(seconds=2))
    calls: list[str] = []
    lives.dynamodb.meta.events.register("before-call.dynamodb", lambda model, **_: calls.append(model.name))
    assert counting.count(ACME) == {INBOX: 100}
    # The settings, the connections, one query of the index, the rows that it lists, and a query for retries.
    assert calls == ["GetItem", "Query", "Query", "BatchGetItem", "Query"]


def test_the_function_answers_with_the_number_by_its_place(event_functions: EventFunctions) -> None:
    handler = importlib.import_module(module_of("unfinished_work")).handler
    key = event_functions.key()
    assert handler({"tenantId": "acme"}, None) == {"unfinished": {}}
    event = http_event("POST /events", key=key, body={"event_type": "order.created", "payload": {}})
    assert event_functions.call("ingest", event).status == 202
    assert handler({"tenantId": "acme"}, None) == {"unfinished": {"inbox of events": 1}}


# The control plane's side

ASKED = {"FunctionName": "berth-unfinished-work", "Payload": '{"tenantId": "acme"}'}


@pytest.fixture
def asking() -> Any:
    functions = client("lambda")
    with Stubber(functions) as stub:
        yield LambdaUnfinishedWork(lambda: functions, "berth-unfinished-work"), stub


def answered(document: object) -> dict[str, Any]:
    return {"StatusCode": 200, "Payload": io.BytesIO(json.dumps(document).encode())}


def test_the_function_is_asked_for_the_tenant(asking: Any) -> None:
    work, stub = asking
    stub.add_response("invoke", answered({"unfinished": {"inbox of events": 3}}), ASKED)
    assert work.unfinished(ACME) == {"inbox of events": 3}


def test_without_such_a_function_there_is_no_unfinished_work(asking: Any) -> None:
    work, stub = asking
    stub.add_client_error("invoke", "ResourceNotFoundException", expected_params=ASKED)
    assert work.unfinished(ACME) == {}


@pytest.mark.parametrize("document", [{}, {"unfinished": None}, {"unfinished": {"x": "many"}}, [], "text"])
def test_an_answer_that_cannot_be_read_is_not_taken_for_none(asking: Any, document: object) -> None:
    work, stub = asking
    stub.add_response("invoke", answered(document))
    with pytest.raises(Unsettled, match="berth-unfinished-work failed"):
        work.unfinished(ACME)


def test_a_function_that_fails_is_not_taken_for_none(asking: Any) -> None:
    work, stub = asking
    stub.add_response("invoke", answered({"unfinished": {}}) | {"FunctionError": "Unhandled"})
    with pytest.raises(Unsettled, match="Tenant acme"):
        work.unfinished(ACME)


def test_a_throttled_function_is_asked_again_later(asking: Any) -> None:
    work, stub = asking
    stub.add_client_error("invoke", "TooManyRequestsException")
    with pytest.raises(Throttled):
        work.unfinished(ACME)
