"""An event is accepted by one write, and once."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.adapters.dynamodb.event_keys import event_key
from orchestrator.adapters.dynamodb.event_rows import event_from
from orchestrator.adapters.dynamodb.events import DynamoEventWrites
from orchestrator.adapters.event_contents import S3Contents
from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.accepting import Accepted, Accepting, DifferentContent, NewEvent, TooLarge
from orchestrator.events.authorising import Standing
from orchestrator.events.content import MAX_BODY_BYTES, Packed, unpack
from orchestrator.events.plans import LONGEST_DELIVERY, PLANS, Plan
from orchestrator.events.quotas import OverLimit, Quotas
from orchestrator.events.records import Content, Event, TenantEpoch
from orchestrator.events.statuses import EventStatus
from tests.adapters.events.conftest import BUCKET, EVENTS_TABLE
from tests.fakes import ACME, NOON, FakeClock
from tests.fakes.events import ACME_LIFE, Watch, standing

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client

ORDER = NewEvent("order.created", Content(b'{"order": 1}'))


@dataclass
class World:
    dynamodb: DynamoDBClient
    s3: S3Client
    clock: FakeClock
    accepting: Accepting

    def accept(self, new: NewEvent = ORDER, given: Standing | None = None) -> str:
        outcome = self.accepting.accept(given or standing(), new)
        assert isinstance(outcome, Accepted)
        return outcome.event_id

    def rows(self) -> list[dict[str, Any]]:
        return self.dynamodb.scan(TableName=EVENTS_TABLE)["Items"]

    def event(self, event_id: str, life: TenantEpoch = ACME_LIFE) -> Event:
        found = self.dynamodb.get_item(TableName=EVENTS_TABLE, Key=event_key(life, event_id), ConsistentRead=True)
        return event_from(found["Item"])


@pytest.fixture
def world(events_table: DynamoDBClient, bucket: S3Client) -> World:
    clock = FakeClock()
    accepting = Accepting(
        events=DynamoEventWrites(events_table, EVENTS_TABLE),
        contents=S3Contents(lambda: bucket, BUCKET),
        quotas=Quotas(monotonic=Watch()),
        clock=clock,
    )
    return World(events_table, bucket, clock, accepting)


def test_an_accepted_event_is_kept_as_it_came(world: World) -> None:
    event = world.event(world.accept())
    assert event.content == ORDER.content
    assert (event.event_type, event.status, event.received_at) == ("order.created", EventStatus.RECEIVED, NOON)
    assert event.in_inbox
    assert len(world.rows()) == 1


def test_attributes_that_keys_contain_are_not_stored_twice(world: World) -> None:
    world.accept()
    (row,) = world.rows()
    assert set(row) == {"pk", "sk", "status", "ttl", "payload", "GSI1PK", "GSI1SK", "GSI2PK", "GSI2SK"}


def test_without_inbox_and_type_index_the_event_is_in_no_index(world: World) -> None:
    event_id = world.accept(given=standing(inbox=False, type_index=False))
    (row,) = world.rows()
    assert set(row) == {"pk", "sk", "status", "ttl", "payload", "event_type"}
    assert world.event(event_id).event_type == "order.created"


def test_everything_that_came_with_a_webhook_is_kept(world: World) -> None:
    new = NewEvent(
        "push",
        Content(b"\x00\xff raw", {"x-github-event": "push"}),
        source_id="src_1",
        content_type="application/octet-stream",
        method="PUT",
        source_ip="192.0.2.1",
        metadata={"correlation_id": "req-1"},
    )
    event = world.event(world.accept(new))
    assert event.content == new.content
    assert (event.source_id, event.form_id, event.event_type) == ("src_1", None, "push")
    assert (event.content_type, event.method, event.source_ip) == ("application/octet-stream", "PUT", "192.0.2.1")
    assert event.metadata == {"correlation_id": "req-1"}


def test_a_submission_is_listed_by_its_form(world: World) -> None:
    event_id = world.accept(NewEvent("form.submitted", Content(b"{}"), form_id="form_1"))
    (row,) = world.rows()
    assert row["sk"]["S"] == f"SUB#{event_id}"
    assert row["GSI2PK"]["S"] == "FORM#form_1#0"
    assert world.event(event_id).form_id == "form_1"


@pytest.mark.parametrize("tenant", ["SRC", "FORM"])
def test_no_tenants_id_is_taken_for_a_source_or_a_form(world: World, tenant: str) -> None:
    life = TenantEpoch(TenantId.parse(tenant), "5f3a9c01")
    event = world.event(world.accept(given=standing(life=life)), life)
    assert (event.source_id, event.form_id, event.event_type) == (None, None, "order.created")


def test_a_large_content_is_in_s3_before_its_row(world: World) -> None:
    body = os.urandom(100_000)
    event = world.event(world.accept(NewEvent("big", Content(body))))
    assert event.content is None
    assert event.content_key is not None
    assert event.content_key.startswith(f"30d/acme/5f3a9c01/{event.event_id}-")
    stored = S3Contents(lambda: world.s3, BUCKET).get(event.content_key)
    assert stored is not None
    assert unpack(Packed(stored, event.packing)).body == body


def test_a_crash_after_s3_leaves_no_row(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: object, **__: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(DynamoEventWrites, "put", crash)
    with pytest.raises(RuntimeError):
        world.accept(NewEvent("big", Content(os.urandom(100_000))))
    assert world.rows() == []


def test_a_content_above_256_kb_is_refused(world: World) -> None:
    outcome = world.accepting.accept(standing(), NewEvent("big", Content(bytes(MAX_BODY_BYTES + 1))))
    assert outcome == TooLarge(MAX_BODY_BYTES + 1)
    assert world.rows() == []


@pytest.mark.parametrize("plan", Plan)
def test_no_row_expires_before_its_last_retry(world: World, plan: Plan) -> None:
    event = world.event(world.accept(given=standing(plan=plan)))
    assert event.expires_at - NOON >= LONGEST_DELIVERY


def test_events_spread_over_the_shards_of_the_plan(world: World) -> None:
    for _ in range(60):
        world.accept(given=standing(shards=4))
    assert {row["pk"]["S"] for row in world.rows()} == {f"TENANT_ID#acme#5f3a9c01#{shard}" for shard in range(4)}


def test_over_the_plan_nothing_is_written(world: World) -> None:
    outcome = world.accepting.accept(standing(used=2_000_000), ORDER)
    assert isinstance(outcome, OverLimit)
    assert world.rows() == []


# Repetitions

KEYED = NewEvent("order.created", Content(b'{"order": 1}'), repetition_key="order-1")


def test_requests_with_one_idempotency_key_are_one_event(world: World) -> None:
    first = world.accept(KEYED)
    outcome = world.accepting.accept(standing(), KEYED)
    assert outcome == Accepted(first, EventStatus.RECEIVED, repeated=True)
    assert len(world.rows()) == 2  # The event and its mark.


def test_repetitions_do_not_use_up_the_month(world: World) -> None:
    almost = standing(used=PLANS[Plan.PRO].events_per_month - 2)
    first = world.accept(KEYED, almost)
    for _ in range(3):
        assert world.accept(KEYED, almost) == first
    world.accept(given=almost)
    assert isinstance(world.accepting.accept(almost, ORDER), OverLimit)


def test_another_content_with_the_same_key_is_refused(world: World) -> None:
    first = world.accept(KEYED)
    for other in (
        NewEvent("order.created", Content(b'{"order": 2}'), repetition_key="order-1"),
        NewEvent("order.deleted", Content(b'{"order": 1}'), repetition_key="order-1"),
    ):
        assert world.accepting.accept(standing(), other) == DifferentContent(first)
    assert len(world.rows()) == 2


def test_a_repetition_completes_a_request_that_died_after_its_mark(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object, **__: object) -> None:
        raise RuntimeError

    with monkeypatch.context() as patch:
        patch.setattr(DynamoEventWrites, "put", crash)
        with pytest.raises(RuntimeError):
            world.accept(KEYED)
    event_id = world.accept(KEYED)
    assert world.event(event_id).content == KEYED.content
    assert len(world.rows()) == 2


def test_a_key_is_forgotten_after_24_hours(world: World) -> None:
    first = world.accept(KEYED)
    world.clock.advance(timedelta(hours=24) - timedelta(seconds=1))
    assert world.accept(KEYED) == first
    world.clock.advance(timedelta(seconds=1))
    assert world.accept(KEYED) != first


def test_a_key_of_one_source_is_not_that_of_another(world: World) -> None:
    events = {
        world.accept(NewEvent("push", Content(b"{}"), source_id=source, repetition_key="1"))
        for source in ("src_1", "src_2")
    }
    events.add(world.accept(NewEvent("push", Content(b"{}"), repetition_key="1")))
    assert len(events) == 3


def test_a_provider_may_change_bytes_of_an_event_that_it_sends_again(world: World) -> None:
    first = world.accept(NewEvent("charge", Content(b'{"pending": 2}'), source_id="src_1", repetition_key="evt_1"))
    again = world.accept(NewEvent("charge", Content(b'{"pending": 1}'), source_id="src_1", repetition_key="evt_1"))
    assert again == first
    assert world.event(first).content == Content(b'{"pending": 2}')


def test_large_repetitions_store_nothing_more_however_their_bytes_differ(world: World) -> None:
    contents = [Content(os.urandom(10_000)) for _ in range(4)]
    ids = {
        world.accept(NewEvent("push", content, source_id="src_1", repetition_key="evt_1"), standing(used=used))
        for used, content in enumerate(contents)
    }
    (event_id,) = ids
    assert world.s3.list_objects_v2(Bucket=BUCKET)["KeyCount"] == 1
    event = world.event(event_id)
    stored = S3Contents(lambda: world.s3, BUCKET).get(event.content_key or "")
    assert stored is not None
    assert unpack(Packed(stored, event.packing)) == contents[0]


@pytest.mark.parametrize("again", [os.urandom(10_000), b"0123456789abcdef" * 10_000 + os.urandom(5_000)])
def test_a_large_repetition_completes_a_request_that_died_after_its_content(
    world: World, monkeypatch: pytest.MonkeyPatch, again: bytes
) -> None:
    first = os.urandom(10_000)

    def crash(*_: object, **__: object) -> None:
        raise RuntimeError("the function was stopped")

    with monkeypatch.context() as patch:
        patch.setattr(DynamoEventWrites, "put", crash)
        with pytest.raises(RuntimeError):
            world.accept(NewEvent("push", Content(first), source_id="src_1", repetition_key="evt_1"))
    event = world.event(world.accept(NewEvent("push", Content(again), source_id="src_1", repetition_key="evt_1")))
    stored = S3Contents(lambda: world.s3, BUCKET).get(event.content_key or "")
    assert stored is not None
    # Both are the provider's bytes of this event.
    assert unpack(Packed(stored, event.packing)).body in (first, again)


def test_a_successor_of_the_same_id_shares_no_key(world: World) -> None:
    first = world.accept(KEYED)
    successor = TenantEpoch(ACME, "77aa0123")
    assert world.accept(KEYED, standing(life=successor)) != first


def test_a_try_that_the_sdk_repeats_keeps_what_happened_since(world: World) -> None:
    event_id = world.accept()
    world.dynamodb.update_item(
        TableName=EVENTS_TABLE,
        Key=event_key(ACME_LIFE, event_id),
        UpdateExpression="SET #status = :delivered",
        ExpressionAttributeNames={"#status": "status"},
        ExpressionAttributeValues={":delivered": {"S": "delivered"}},
    )
    event = world.event(event_id)
    DynamoEventWrites(world.dynamodb, EVENTS_TABLE).put(event, Packed(b"{}", ""), type_index=True)
    assert world.event(event_id).status is EventStatus.DELIVERED
