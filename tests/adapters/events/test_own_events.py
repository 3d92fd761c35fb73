"""Berth's own events are made from the records of the tables' streams, and put on the bus."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from orchestrator.adapters import event_ports
from orchestrator.adapters.dynamodb.connection_rows import connection_row, key_of
from orchestrator.adapters.dynamodb.delivery_rows import delivery_row
from orchestrator.adapters.dynamodb.history_rows import change_row, history_from, history_row
from orchestrator.adapters.dynamodb.own_event_stream import TENANTS_FILTERS, read_changes
from orchestrator.adapters.dynamodb.rollout_rows import order_row, plan_row
from orchestrator.adapters.dynamodb.tenants import DynamoTable
from orchestrator.adapters.eventbridge import EventBridgeBus
from orchestrator.common.errors import Throttled, Unsettled
from orchestrator.events.delivery.records import ConnectionStatus, Delivery, DeliveryRef, DeliveryState
from orchestrator.events.event_ids import new_event_id
from orchestrator.own_events.kinds import Kind, OwnEvent
from orchestrator.own_events.ports import Put
from orchestrator.rollouts.records import RolloutStatus
from orchestrator.tenants.history import ChangeKind, HistoryEntry, RecordedChange
from orchestrator.tenants.ledger import Ledger
from orchestrator.tenants.ports import Publication
from orchestrator.tenants.records import Operation, Request, Status
from stacks.common.function_code import module_of
from tests.adapters.conftest import TABLE, client
from tests.adapters.events.functions import EventFunctions
from tests.adapters.events.lives import record as record_of
from tests.adapters.test_rollout_table import a_rollout, an_order
from tests.fakes import ACME, NOON, QUEUE, QUEUE_TABOO, VERSION, a_run, take
from tests.fakes.events import ACME_LIFE, connection

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_sqs import SQSClient

Row = Mapping[str, Any]
CREATED = NOON.timestamp()
EVENT = OwnEvent("a" * 32, Kind.TENANT_PROVISIONED, NOON, {"tenant_id": "acme"}, ACME)


def streamed(row: Row, before: Row | None = None) -> dict[str, Any]:
    """The record of a write, as Lambda hands it over: binary values are texts."""

    def image(of: Row) -> dict[str, Any]:
        return json.loads(json.dumps(of, default=lambda value: value.decode("latin-1")))  # type: ignore[no-any-return]

    record: dict[str, Any] = {
        "ApproximateCreationDateTime": CREATED,
        "Keys": {"pk": row["pk"], "sk": row["sk"]},
        "NewImage": image(row),
        "SequenceNumber": "100",
    }
    if before is not None:
        record["OldImage"] = image(before)
    return {"eventName": "INSERT" if before is None else "MODIFY", "dynamodb": record}


def changes_in(*records: object) -> list[OwnEvent]:
    changes = read_changes({"Records": list(records)})
    assert not changes.unreadable
    return list(changes.events)


# Tenants


def history_of(dynamodb: DynamoDBClient) -> list[dict[str, Any]]:
    rows = dynamodb.scan(TableName=TABLE)["Items"]
    return sorted((row for row in rows if row["pk"]["S"] == "HISTORY#acme"), key=lambda row: row["sk"]["S"])


def test_the_life_of_a_tenant_is_published_from_its_history_each_end_once(dynamodb: DynamoDBClient) -> None:
    ledger = Ledger(DynamoTable(dynamodb, TABLE))
    hour = timedelta(hours=1)
    failing = a_run()
    take(ledger, failing)
    assert ledger.fail(failing, QUEUE_TABOO, NOON + hour)
    creating = a_run(2, started_at=NOON + 2 * hour)
    take(ledger, creating)
    for _ in range(2):
        # The second try of the same step, whose first answer was lost.
        ledger.publish(creating, Publication("stack-1", QUEUE, VERSION, None), at=NOON + 3 * hour)
    updating = a_run(operation=Operation.UPDATE, version="0.2.0", started_at=NOON + 4 * hour)
    take(ledger, updating)
    ledger.publish(updating, Publication("stack-1", QUEUE, "0.2.0", None), at=NOON + 5 * hour)
    deleting = a_run(operation=Operation.DELETE, started_at=NOON + 6 * hour)
    take(ledger, deleting)
    ledger.remove(deleting, at=NOON + 7 * hour)

    published = changes_in(*map(streamed, history_of(dynamodb)))
    assert [(each.kind.value, each.at, each.data["version"]) for each in published] == [
        ("tenant.failed", NOON + hour, VERSION),
        ("tenant.provisioned", NOON + 3 * hour, VERSION),
        ("tenant.updated", NOON + 5 * hour, "0.2.0"),
        ("tenant.deleted", NOON + 7 * hour, None),
    ]
    assert {each.tenant for each in published} == {ACME}
    assert len({each.id for each in published}) == 4


ENTRY: dict[str, Any] = history_row(
    HistoryEntry(ACME, NOON, Operation.CREATE, "0.5.0", 1, Status.SUCCESS, "arn:e", request=Request("ada"))
)


def test_records_about_the_same_change_are_one_event() -> None:
    assert len(changes_in(streamed(ENTRY), streamed(ENTRY))) == 1


def test_only_appended_rows_of_history_are_published() -> None:
    removed = {"eventName": "REMOVE", "dynamodb": {"Keys": {"pk": ENTRY["pk"], "sk": ENTRY["sk"]}}}
    assert changes_in(streamed(ENTRY, before=ENTRY), removed) == []


def test_other_rows_of_history_are_not_published() -> None:
    change = RecordedChange(ACME, NOON, ChangeKind.DESCRIBE, Request("ada"), {}, {"pin": "0.1.0"})
    assert changes_in(streamed(change_row(change)), streamed(order_row(an_order()))) == []


def test_a_row_of_another_kind_is_not_published() -> None:
    row = {"pk": {"S": "TENANT_ID#acme"}, "sk": {"S": "METADATA"}, "Status": {"S": "Success"}}
    assert changes_in(streamed(row)) == []


# Rollouts and connections


@pytest.mark.parametrize(
    ("status", "kind"),
    [(RolloutStatus.HALTED, Kind.ROLLOUT_HALTED), (RolloutStatus.SUCCEEDED, Kind.ROLLOUT_SUCCEEDED)],
)
def test_a_rollout_is_published_when_its_status_changes(status: RolloutStatus, kind: Kind) -> None:
    running, ended = (plan_row(a_rollout(status=each)) for each in (RolloutStatus.RUNNING, status))
    (event,) = changes_in(streamed(ended, before=running))
    assert (event.kind, event.at, event.data["total"]) == (kind, NOON, 10)
    assert changes_in(streamed(ended, before=ended), streamed(running)) == []


def test_a_connection_is_published_when_it_is_disabled_and_its_secrets_are_not_read() -> None:
    active = connection(secret=b"\xff\x00secret", former_secret=b"\xff")
    disabled = replace(active, status=ConnectionStatus.DISABLED, reason="410 Gone", revision=2)
    before, after = ({**key_of(each), **connection_row(each)} for each in (active, disabled))
    (event,) = changes_in(streamed(after, before=before))
    assert (event.kind, event.tenant, event.data["reason"]) == (Kind.CONNECTION_DISABLED, ACME, "410 Gone")
    assert changes_in(streamed(after, before=after), streamed(before)) == []


DELIVERY = Delivery(
    DeliveryRef(ACME_LIFE, new_event_id(NOON, 0), "conn_1"),
    DeliveryState.FAILED,
    tries=8,
    first_try=NOON,
    expires_at=NOON + timedelta(days=8),
    code=503,
    reason="the receiver answered 503",
    ended_at=NOON + timedelta(hours=28),
)


def test_a_delivery_is_published_when_it_failed_for_good() -> None:
    (event,) = changes_in(streamed(delivery_row(DELIVERY)))
    assert (event.kind, event.tenant, event.at) == (Kind.DELIVERY_EXHAUSTED, ACME, DELIVERY.ended_at)
    assert (event.data["event_id"], event.data["connection_id"]) == (DELIVERY.ref.event_id, "conn_1")
    assert (event.data["tries"], event.data["code"]) == (8, 503)
    retrying = replace(DELIVERY, state=DeliveryState.RETRYING, due=NOON, ended_at=None)
    assert changes_in(streamed(delivery_row(retrying))) == []


def test_a_failed_delivery_that_is_written_again_has_the_same_id() -> None:
    again = replace(DELIVERY, revision=9)
    first, second = (changes_in(streamed(delivery_row(each))) for each in (DELIVERY, again))
    assert first[0].id == second[0].id


# Records that cannot be read


@pytest.mark.parametrize(
    "damage",
    [
        {"Status": {"S": "Perhaps"}},
        {"At": {"S": "yesterday"}},
        {"Version": {"N": "1"}},
        {"Operation": {"L": []}},
        {"pk": {"S": "HISTORY#not a tenant"}},
        {"RootCause": {"S": "x"}},
    ],
)
def test_a_damaged_row_is_named_and_hides_no_other(damage: Row) -> None:
    damaged = {**ENTRY, **damage}
    changes = read_changes({"Records": [streamed(damaged), streamed(ENTRY)]})
    assert [each.kind for each in changes.events] == [Kind.TENANT_PROVISIONED]
    (names,) = changes.unreadable
    assert names == {"pk": damaged["pk"]["S"], "sk": ENTRY["sk"]["S"], "sequence_number": "100"}


def test_a_row_that_does_not_match_the_digest_in_its_key_is_not_published() -> None:
    """Somebody other than Berth has inserted it."""
    entry = history_from(ENTRY)
    assert isinstance(entry, HistoryEntry)
    forged = {**history_row(entry), "Version": {"S": "9.9.9"}}
    assert len(read_changes({"Records": [streamed(forged)]}).unreadable) == 1


@pytest.mark.parametrize("event", [None, {}, {"Records": None}, {"Records": "x"}, {"Records": [None, 1, {}, "x"]}])
def test_every_record_handed_over_is_answered(event: object) -> None:
    assert read_changes(event).events == []


# The bus


class FakeEventBridge:
    """``codes`` are the error codes of the next entries, in order."""

    def __init__(self, *codes: str | None) -> None:
        self.requests: list[list[dict[str, Any]]] = []
        self._codes: Iterator[str | None] = iter(codes)

    def put_events(self, *, Entries: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803 - boto's name
        self.requests.append(Entries)
        codes = [next(self._codes, None) for _ in Entries]
        answers = [{"ErrorCode": code} if code else {"EventId": "1"} for code in codes]
        return {"FailedEntryCount": len([code for code in codes if code]), "Entries": answers}


def bus(bridge: Any) -> EventBridgeBus:
    return EventBridgeBus(lambda: bridge, "Berth", "Berth")


def test_an_entry_names_the_bus_the_source_and_the_kind() -> None:
    bridge = FakeEventBridge()
    assert bus(bridge).put([EVENT]) == Put()
    assert bridge.requests == [
        [
            {
                "EventBusName": "Berth",
                "Source": "berth",
                "DetailType": "tenant.provisioned",
                "Detail": json.dumps(EVENT.detail("Berth"), sort_keys=True),
                "Time": NOON,
            }
        ]
    ]


def test_a_request_has_at_most_ten_events() -> None:
    bridge = FakeEventBridge()
    bus(bridge).put([EVENT] * 23)
    assert [len(each) for each in bridge.requests] == [10, 10, 3]


@pytest.mark.parametrize("code", ["ThrottlingException", "InternalFailure", "AccessDeniedException"])
def test_an_event_is_tried_again_only_if_that_can_help(code: str) -> None:
    first, second, third = (replace(EVENT, id=each * 32) for each in "abc")
    put = bus(FakeEventBridge(code, None, "MalformedDetail")).put([first, second, third])
    assert put == Put(rejected=(third,), failed=(first,))


def test_the_bus_takes_what_the_adapter_sends(aws: None) -> None:  # noqa: ARG001 - the account
    events = client("events")
    events.create_event_bus(Name="Berth")
    assert bus(events).put([EVENT]) == Put()


# The function


class TestTheFunction:
    @pytest.fixture
    def bridge(self, event_functions: EventFunctions, monkeypatch: pytest.MonkeyPatch) -> FakeEventBridge:
        assert event_functions
        bridge, made = FakeEventBridge(), event_ports.client
        monkeypatch.setattr(event_ports, "client", lambda name: bridge if name == "events" else made(name))
        monkeypatch.setenv("BERTH_NAME", "Berth")
        monkeypatch.setenv("BERTH_OWN_EVENTS_BUS", "Berth")
        return bridge

    @pytest.fixture
    def sqs(self, event_functions: EventFunctions, monkeypatch: pytest.MonkeyPatch) -> SQSClient:
        assert event_functions
        sqs: SQSClient = client("sqs")
        monkeypatch.setenv("BERTH_PARKED_RECORDS_QUEUE", sqs.create_queue(QueueName="parked")["QueueUrl"])
        return sqs

    def parked(self, sqs: SQSClient) -> list[Any]:
        url = sqs.get_queue_url(QueueName="parked")["QueueUrl"]
        found = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
        return [record for each in found for record in json.loads(each["Body"])["records"]]

    def call(self, *records: object) -> None:
        importlib.import_module(module_of("publish_events")).handler({"Records": list(records)}, None)

    def test_a_change_is_put_on_the_bus(self, bridge: FakeEventBridge) -> None:
        self.call(streamed(ENTRY))
        ((entry,),) = bridge.requests
        assert json.loads(entry["Detail"])["data"]["tenant_id"] == "acme"

    def test_a_record_that_cannot_be_read_is_parked_and_the_others_are_published(
        self, bridge: FakeEventBridge, sqs: SQSClient
    ) -> None:
        self.call(streamed({**ENTRY, "At": {"S": "x"}}), streamed(ENTRY))
        assert [len(each) for each in bridge.requests] == [1]
        assert [each["pk"] for each in self.parked(sqs)] == ["HISTORY#acme"]

    def test_an_event_that_the_bus_refuses_is_parked_whole(self, bridge: FakeEventBridge, sqs: SQSClient) -> None:
        bridge._codes = iter(["MalformedDetail"])
        self.call(streamed(ENTRY))
        (parked,) = self.parked(sqs)
        assert json.loads(parked["event"])["kind"] == "tenant.provisioned"

    def test_an_event_that_the_bus_did_not_take_makes_the_batch_come_again(self, bridge: FakeEventBridge) -> None:
        bridge._codes = iter(["InternalFailure"])
        with pytest.raises(Unsettled, match="did not take 1 event"):
            self.call(streamed(ENTRY))
        self.call(streamed(ENTRY))
        first, second = (json.loads(request[0]["Detail"])["id"] for request in bridge.requests)
        assert first == second

    def test_throttling_makes_the_batch_come_again(
        self, bridge: FakeEventBridge, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def throttled(**_: Any) -> Any:
            raise ClientError({"Error": {"Code": "ThrottlingException"}}, "PutEvents")

        monkeypatch.setattr(bridge, "put_events", throttled)
        with pytest.raises(Throttled):
            self.call(streamed(ENTRY))

    def test_a_record_that_cannot_be_parked_makes_the_batch_come_again(
        self, bridge: FakeEventBridge, sqs: SQSClient
    ) -> None:
        assert bridge
        sqs.delete_queue(QueueUrl=sqs.get_queue_url(QueueName="parked")["QueueUrl"])
        with pytest.raises(ClientError):
            self.call(streamed({**ENTRY, "At": {"S": "x"}}))


class FakeLambda:
    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []

    def invoke(self, **call: Any) -> dict[str, Any]:
        self.calls.append(call)
        return {"StatusCode": 202}


class TestHandingOver:
    """The stream of events has two readers already, so the one that counts hands deliveries over."""

    @pytest.fixture
    def functions(self, event_functions: EventFunctions, monkeypatch: pytest.MonkeyPatch) -> FakeLambda:
        assert event_functions
        functions, made = FakeLambda(), event_ports.client
        monkeypatch.setattr(event_ports, "client", lambda name: functions if name == "lambda" else made(name))
        monkeypatch.setenv("BERTH_PUBLISH_EVENTS_FUNCTION", "publish")
        return functions

    def count(self, *records: object) -> None:
        importlib.import_module(module_of("count_usage")).handler({"Records": list(records)}, None)

    def test_a_delivery_that_failed_for_good_is_handed_over_as_it_came(self, functions: FakeLambda) -> None:
        record = streamed(delivery_row(DELIVERY))
        self.count(record, streamed(delivery_row(replace(DELIVERY, state=DeliveryState.PARKED))))
        (call,) = functions.calls
        assert (call["FunctionName"], call["InvocationType"]) == ("publish", "Event")
        assert json.loads(call["Payload"]) == {"Records": [record]}
        assert [each.kind for each in changes_in(*json.loads(call["Payload"])["Records"])] == [Kind.DELIVERY_EXHAUSTED]

    def test_many_are_handed_over_in_several_calls_because_a_call_is_limited(self, functions: FakeLambda) -> None:
        longest = streamed(delivery_row(replace(DELIVERY, reason="x" * 8_000)))
        self.count(*[longest] * 45)
        assert [len(json.loads(each["Payload"])["Records"]) for each in functions.calls] == [20, 20, 5]
        assert max(len(each["Payload"]) for each in functions.calls) < 256 * 1024

    def test_events_alone_call_nobody(self, functions: FakeLambda) -> None:
        self.count(record_of(f"TENANT_ID#{ACME_LIFE}#0", f"EVT#{new_event_id(NOON, 0)}"))
        assert functions.calls == []

    def test_a_failed_handover_makes_the_batch_come_again(
        self, functions: FakeLambda, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def throttled(**_: Any) -> Any:
            raise ClientError({"Error": {"Code": "TooManyRequestsException"}}, "Invoke")

        monkeypatch.setattr(functions, "invoke", throttled)
        with pytest.raises(Throttled):
            self.count(streamed(delivery_row(DELIVERY)))


def test_a_status_that_is_published_is_in_the_filter_of_the_stream() -> None:
    history, *_ = TENANTS_FILTERS
    assert set(history["dynamodb"]["NewImage"]["Status"]["S"]) == set(Status) - {Status.STARTED}
