"""Events are counted for limits as the stream reports them, and for bills hour by hour from the events themselves."""

from __future__ import annotations

import importlib
import json
import random
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from orchestrator.adapters.dynamodb import event_keys
from orchestrator.adapters.dynamodb.event_purges import DynamoEventCounts
from orchestrator.adapters.dynamodb.event_stream import read_stream
from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.accepting import Accepted, NewEvent
from orchestrator.events.authorising import Standing
from orchestrator.events.configuring import SettingsChange
from orchestrator.events.event_ids import new_event_id
from orchestrator.events.plans import PLANS, Plan
from orchestrator.events.quotas import OverLimit
from orchestrator.events.records import Added, Content, EventSettings, TenantEpoch, Used
from orchestrator.events.usage import DIGEST_BYTES, Billing
from stacks.common.function_code import module_of
from tests.adapters.conftest import TABLE, client
from tests.adapters.events.functions import EventFunctions, http_event
from tests.adapters.events.lives import EVENTS_TABLE, SMALL, Lives, record
from tests.adapters.events.noting import noted_requests
from tests.fakes import ACME, NOON
from tests.fakes.events import ACME_LIFE, INCARNATION

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

HOUR = timedelta(hours=1)
SUBMISSION = NewEvent("form.submitted", Content(b"{}"), form_id="form_1")


def used(lives: Lives, settings: EventSettings) -> int:
    return lives.usage.used(settings.life, lives.clock.now()).events


class TestCounting:
    def test_a_batch_is_one_write_per_tenant_and_month(self, lives: Lives, monkeypatch: pytest.MonkeyPatch) -> None:
        settings = lives.settings()
        ids = [lives.accept(Standing(settings, 0, "2026-11")) for _ in range(7)]
        writes: list[str] = []
        original = lives.dynamodb.update_item

        def noted(**call: Any) -> Any:
            writes.append(call["Key"]["sk"]["S"])
            return original(**call)

        monkeypatch.setattr(lives.dynamodb, "update_item", noted)
        counted = lives.count(lives.stream(settings.life, *ids))
        assert (counted.events, counted.ended, used(lives, settings)) == (7, 0, 7)
        assert writes == ["USAGE#2026-11"]

    def test_the_month_is_that_of_the_event(self, lives: Lives) -> None:
        settings = lives.settings()
        before = lives.accept(Standing(settings, 0, "2026-11"))
        lives.wait(timedelta(days=20))
        after = lives.accept(Standing(settings, 0, "2026-11"))
        lives.count(lives.stream(settings.life, before, after))
        assert (lives.usage.used(settings.life, NOON).events, used(lives, settings)) == (1, 1)

    def test_a_batch_that_comes_again_is_not_counted_again(self, lives: Lives) -> None:
        settings = lives.settings()
        first, second = (lives.accept(Standing(settings, 0, "2026-11")) for _ in range(2))
        stream = lives.stream(settings.life, first, second)
        assert lives.count(stream).events == 2
        again = lives.count({"Records": stream["Records"][::-1]})
        assert (again.events, again.repeated, used(lives, settings)) == (0, 2, 2)

    def test_another_batch_of_the_same_size_is_counted(self, lives: Lives) -> None:
        settings = lives.settings()
        for _ in range(3):
            lives.count(lives.stream(settings.life, lives.accept(Standing(settings, 0, "2026-11"))))
        assert used(lives, settings) == 3

    def test_a_batch_that_failed_between_two_tenants_is_counted_once_for_each(
        self, lives: Lives, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The first tenant was counted when DynamoDB failed. Then Lambda hands the whole batch over again."""
        settings = lives.settings()
        other = self.another(lives, "globex", settings)
        event = new_event_id(NOON, 0)
        batch = {"Records": [record(f"TENANT_ID#{life}#0", f"EVT#{event}") for life in (settings.life, other)]}
        original, calls = lives.dynamodb.update_item, [0]

        def fails_at_the_second(**call: Any) -> Any:
            calls[0] += 1
            if calls[0] == 2:
                raise ClientError({"Error": {"Code": "InternalServerError"}}, "UpdateItem")
            return original(**call)

        monkeypatch.setattr(lives.dynamodb, "update_item", fails_at_the_second)
        with pytest.raises(ClientError):
            lives.count(batch)
        again = lives.count(batch)
        assert (again.events, again.repeated) == (1, 1)
        assert [lives.usage.used(life, NOON).events for life in (settings.life, other)] == [1, 1]

    def test_a_counter_that_remembers_all_its_batches_is_still_one_write_unit(self, lives: Lives) -> None:
        settings = lives.settings()
        for place in range(32):
            added = lives.usage.add(settings.life, "2026-11", Used(10**9, 10**9), bytes([place]) * DIGEST_BYTES, NOON)
            assert added is Added.DONE
        (row,) = (row for row in lives.rows() if row["sk"]["S"] == "USAGE#2026-11")
        names = [name for name in row if name.startswith("batch_")]
        assert len(names) == 32
        assert sum(len(name) + len(next(iter(value.values()))) for name, value in row.items()) < 900

    def test_a_batch_is_forgotten_once_another_takes_its_place(self, lives: Lives) -> None:
        """The bound that the page about events states."""
        settings = lives.settings()
        old, new = bytes([1]) * DIGEST_BYTES, bytes([33]) * DIGEST_BYTES
        results = [lives.usage.add(settings.life, "2026-11", Used(1), batch, NOON) for batch in (old, old, new, old)]
        assert results == [Added.DONE, Added.REPEATED, Added.DONE, Added.DONE]

    def another(self, lives: Lives, name: str, settings: EventSettings) -> TenantEpoch:
        """Another tenant with the same settings."""
        tenant = TenantId.parse(name)
        row = lives.table._get(event_keys.settings_key(settings.life.tenant))
        assert row
        place = {**event_keys.settings_key(tenant), "ListingSort": {"S": name}}
        lives.dynamodb.put_item(TableName=TABLE, Item={**row, **place})
        return TenantEpoch(tenant, settings.life.epoch)

    def test_the_month_closes_once_its_events_are_counted(self, lives: Lives) -> None:
        settings = lives.settings(plan=Plan.FREE)
        key, limit = lives.key(settings), PLANS[Plan.FREE].events_per_month
        lives.usage.add(settings.life, "2026-11", Used(limit - 1), b"a batch", NOON)
        standing = lives.granted(key)
        assert standing
        last = lives.accept(standing)
        lives.count(lives.stream(settings.life, last))
        lives.wait(timedelta(seconds=10))
        standing = lives.granted(key)
        assert standing
        assert isinstance(lives.accepting.accept(standing, SMALL), OverLimit)

    def test_strangers_who_flood_a_form_leave_half_of_the_month_to_the_tenants_own_senders(self, lives: Lives) -> None:
        settings = lives.settings(plan=Plan.FREE)
        key, half = lives.key(settings), PLANS[Plan.FREE].submissions_per_month
        lives.usage.add(settings.life, "2026-11", Used(half - 1, half - 1), b"a batch", NOON)
        standing = lives.granted(key)
        assert standing
        last = lives.accepting.accept(standing, SUBMISSION)
        assert isinstance(last, Accepted)
        lives.count(lives.stream(settings.life, last.event_id))
        assert lives.usage.used(settings.life, NOON) == Used(half, half)
        lives.wait(timedelta(seconds=10))
        standing = lives.granted(key)
        assert standing
        assert isinstance(lives.accepting.accept(standing, SUBMISSION), OverLimit)
        assert isinstance(lives.accepting.accept(standing, SMALL), Accepted)

    def test_an_epoch_that_is_over_is_not_counted(self, lives: Lives) -> None:
        settings = lives.settings()
        stream = lives.stream(settings.life, lives.accept(Standing(settings, 0, "2026-11")))
        lives.delete()
        lives.finding.find()
        assert lives.count(stream).ended == 1
        traces = [each for each in lives.traces(settings.life.epoch) if not each.startswith("CHANGES#")]
        assert traces == [f"TENANT_ID#{settings.life}#{_shard(stream)} {_sk(stream)}"]

    def test_a_withdrawn_tenant_is_counted_because_its_delete_may_be_refused(self, lives: Lives) -> None:
        settings = lives.settings()
        stream = lives.stream(settings.life, lives.accept(Standing(settings, 0, "2026-11")))
        lives.tenants.withdrawn.add(ACME)
        lives.finding.find()
        lives.count(stream)
        assert used(lives, settings) == 1


def _shard(stream: dict[str, Any]) -> str:
    return str(stream["Records"][0]["dynamodb"]["Keys"]["pk"]["S"][-1])


def _sk(stream: dict[str, Any]) -> str:
    return str(stream["Records"][0]["dynamodb"]["Keys"]["sk"]["S"])


class TestBadRecords:
    EVENT_ID = new_event_id(NOON, 0)

    @pytest.mark.parametrize(
        "bad",
        [
            record("TENANT_ID#acme", f"EVT#{EVENT_ID}"),
            record("TENANT_ID#ac me#e1#0", f"EVT#{EVENT_ID}"),
            record("TENANT_ID#acme#e1#0", "EVT#unknown"),
            record("TENANT_ID#acme#e1#0", "EVT#ffffffff-ffff-7000-8000-000000000000"),
            {"eventName": "INSERT", "dynamodb": {"Keys": {"pk": {"S": "TENANT_ID#acme#e1#0"}}}},
            {"eventName": "INSERT", "dynamodb": None},
            {"eventName": "INSERT"},
            "no record",
            None,
        ],
    )
    def test_a_record_that_cannot_be_read_is_set_apart(self, bad: object) -> None:
        good = record(f"TENANT_ID#{ACME_LIFE}#0", f"EVT#{self.EVENT_ID}")
        found = read_stream({"Records": [bad, good]})
        assert [each.event_id for each in found.events] == [self.EVENT_ID]
        assert len(found.unreadable) == 1

    @pytest.mark.parametrize(
        "other",
        [
            record("IDEM#acme#e1#api#0f", "IDEM"),
            record(f"TENANT_ID#{ACME_LIFE}#0", f"EVT#{EVENT_ID}", "MODIFY"),
            record(f"TENANT_ID#{ACME_LIFE}#0", f"EVT#{EVENT_ID}", "REMOVE"),
        ],
    )
    def test_records_about_anything_but_new_events_are_left_out(self, other: object) -> None:
        found = read_stream({"Records": [other]})
        assert (dict(found.events), found.unreadable) == ({}, [])

    @pytest.mark.parametrize("event", [None, {}, "text", {"Records": []}])
    def test_a_call_without_records_counts_nothing(self, event: object) -> None:
        assert not read_stream(event).events


class TestTheFunction:
    @pytest.fixture
    def sqs(self, event_functions: EventFunctions, monkeypatch: pytest.MonkeyPatch) -> SQSClient:
        assert event_functions
        sqs: SQSClient = client("sqs")
        url = sqs.create_queue(QueueName="parked")["QueueUrl"]
        monkeypatch.setenv("BERTH_PARKED_RECORDS_QUEUE", url)
        return sqs

    def messages(self, sqs: SQSClient) -> list[Any]:
        url = sqs.get_queue_url(QueueName="parked")["QueueUrl"]
        found = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
        return [json.loads(each["Body"]) for each in found]

    def call(self, *records: object) -> None:
        importlib.import_module(module_of("count_usage")).handler({"Records": list(records)}, None)

    def test_bad_records_are_parked_with_their_keys_and_the_others_counted(
        self, event_functions: EventFunctions, sqs: SQSClient
    ) -> None:
        event_functions.key()
        life = self.life_of(event_functions)
        good = record(f"TENANT_ID#{life}#0", f"EVT#{new_event_id(NOON, 0)}")
        self.call(record("TENANT_ID#acme", "EVT#1"), good)
        assert self.messages(sqs) == [{"records": [{"pk": "TENANT_ID#acme", "sk": "EVT#1", "sequence_number": "100"}]}]
        (row,) = (row for row in event_functions.rows if row["sk"]["S"].startswith("USAGE#"))
        assert row["events"] == {"N": "1"}

    def test_a_damaged_counter_does_not_hold_up_the_stream(
        self, event_functions: EventFunctions, sqs: SQSClient
    ) -> None:
        event_functions.key()
        life = self.life_of(event_functions)
        row = {**event_keys.usage_key(life, "2026-11"), "events": {"S": "many"}}
        event_functions.dynamodb.put_item(TableName=TABLE, Item=row)
        bad = record(f"TENANT_ID#{life}#0", f"EVT#{new_event_id(NOON, 0)}")
        self.call(bad)
        assert [len(each["records"]) for each in self.messages(sqs)] == [1]

    def test_a_damaged_counter_refuses_no_events(self, event_functions: EventFunctions) -> None:
        key = event_functions.key()
        row = {**event_keys.usage_key(self.life_of(event_functions), "2026-11"), "events": {"S": "many"}}
        event_functions.dynamodb.put_item(TableName=TABLE, Item=row)
        event = http_event("POST /events", key=key, body={"event_type": "a", "payload": {}})
        assert event_functions.call("ingest", event).status == 202

    def test_a_failure_of_the_queue_does_not_hold_up_the_stream(
        self, event_functions: EventFunctions, sqs: SQSClient
    ) -> None:
        assert event_functions
        sqs.delete_queue(QueueUrl=sqs.get_queue_url(QueueName="parked")["QueueUrl"])
        self.call(record("TENANT_ID#acme", "EVT#1"))

    def test_a_failure_of_dynamodb_is_raised(self, event_functions: EventFunctions, sqs: SQSClient) -> None:
        assert sqs
        event_functions.dynamodb.delete_table(TableName=TABLE)
        with pytest.raises(ClientError):
            self.call(record(f"TENANT_ID#{ACME_LIFE}#0", f"EVT#{new_event_id(NOON, 0)}"))

    def life_of(self, functions: EventFunctions) -> TenantEpoch:
        (row,) = (row for row in functions.rows if row["sk"]["S"] == "CONFIG#main")
        return TenantEpoch(ACME, row["epoch"]["S"])


class TestBilling:
    def test_every_hour_is_counted_once_it_is_over(self, lives: Lives) -> None:
        settings = lives.settings()
        standing = Standing(settings, 0, "2026-11")
        for event in (SMALL, SMALL, SUBMISSION):
            lives.accept(standing, event)
        lives.wait(HOUR - timedelta(microseconds=1))
        lives.accept(standing)
        lives.wait(timedelta(microseconds=1))
        lives.accept(standing)
        lives.bill()
        assert self.hours(lives) == {}
        lives.wait(timedelta(minutes=5))
        lives.bill()
        assert self.hours(lives) == {"USAGE#2026-11#16 hour_12": 4}
        lives.wait(HOUR)
        lives.bill()
        assert self.hours(lives) == {"USAGE#2026-11#16 hour_12": 4, "USAGE#2026-11#16 hour_13": 1}

    def test_to_count_again_gives_the_same_figure(self, lives: Lives) -> None:
        settings = lives.settings()
        lives.accept(Standing(settings, 0, "2026-11"))
        lives.wait(2 * HOUR)
        lives.bill()
        figures = self.hours(lives)
        lives.dynamodb.delete_item(TableName=TABLE, Key=event_keys.billed_until_key(settings.life))
        lives.bill()
        assert self.hours(lives) == figures == {"USAGE#2026-11#16 hour_12": 1}

    def test_hours_that_were_missed_are_made_up_for(self, lives: Lives) -> None:
        settings = lives.settings()
        for _ in range(30):
            lives.accept(Standing(settings, 0, "2026-11"))
            lives.wait(HOUR)
        lives.wait(timedelta(minutes=5))
        lives.bill()
        assert len(self.hours(lives)) == 30
        # One row per day, because rows of bills are kept as long as the tenant.
        days = [row["sk"]["S"] for row in lives.rows() if row["sk"]["S"].startswith("USAGE#2026-11#")]
        assert days == ["USAGE#2026-11#16", "USAGE#2026-11#17"]
        assert lives.reporting.of_month(settings).billed == 30

    def test_an_idle_tenant_costs_two_looks_per_hour_and_one_write_per_day(self, lives: Lives) -> None:
        for name in ("a", "b", "c"):
            lives.tenants.incarnations[TenantId(name)] = INCARNATION
            lives.configuring.change_settings(TenantId(name), SettingsChange(plan=Plan.FREE))
        lives.wait(HOUR + timedelta(minutes=5))
        with noted_requests(lives.dynamodb) as requests:
            lives.bill()
        # The list of tenants, and how far each of them is billed; then two ranges of ids for each.
        assert [name for name, _ in requests] == ["Query", "BatchGetItem"] + ["Query", "Query"] * 3
        with noted_requests(lives.dynamodb) as requests:
            for _ in range(23):
                lives.wait(HOUR)
                lives.bill()
        assert [name for name, _ in requests].count("UpdateItem") == 3
        midnight = NOON + 12 * HOUR
        assert {lives.usage.billed_until(each.life) for each in self.listed(lives)} == {midnight}

    def test_events_after_idle_hours_are_counted_in_their_hour(self, lives: Lives) -> None:
        settings = lives.settings()
        for _ in range(7):
            lives.wait(HOUR)
            lives.bill()
        lives.accept(Standing(settings, 0, "2026-11"), SUBMISSION)
        lives.wait(HOUR + timedelta(minutes=5))
        lives.bill()
        assert self.hours(lives) == {"USAGE#2026-11#16 hour_19": 1}
        assert lives.usage.billed_until(settings.life) == NOON + 8 * HOUR

    def test_runs_that_have_too_little_time_do_not_always_leave_out_the_same_tenants(self, lives: Lives) -> None:
        made = []
        for name in ("a", "b", "c"):
            lives.tenants.incarnations[TenantId(name)] = INCARNATION
            settings = lives.configuring.change_settings(TenantId(name), SettingsChange())
            assert isinstance(settings, EventSettings)
            made.append(settings)
        starts = random.Random(1)
        lives.wait(timedelta(minutes=5))
        for _ in range(20):
            lives.wait(HOUR)
            left = iter([True])
            billing = Billing(
                settings=lives.epochs,
                events=DynamoEventCounts(lives.dynamodb, EVENTS_TABLE),
                usage=lives.usage,
                clock=lives.clock,
                has_time=lambda left=left: next(left, False),
                random_below=starts.randrange,
            )
            assert not billing.run().complete
        for settings in made:
            billed_until = lives.usage.billed_until(settings.life)
            assert isinstance(billed_until, datetime)
            assert billed_until > NOON

    def test_rows_that_cannot_be_read_are_reported_and_all_other_tenants_are_billed(self, lives: Lives) -> None:
        settings = lives.settings()
        lives.accept(Standing(settings, 0, "2026-11"))
        row = lives.table._get(event_keys.settings_key(ACME))
        assert row
        for tenant, damage in ((TenantId.parse("aaron"), {"plan": {"S": "gold"}}), (TenantId.parse("abel"), {})):
            place = {**event_keys.settings_key(tenant), "ListingSort": {"S": tenant.value}}
            lives.dynamodb.put_item(TableName=TABLE, Item={**row, **place, **damage})
        abel = TenantEpoch(TenantId.parse("abel"), settings.life.epoch)
        item = {**event_keys.billed_until_key(abel), "billed_until": {"S": "yesterday"}}
        lives.dynamodb.put_item(TableName=TABLE, Item=item)
        lives.wait(2 * HOUR)
        billed = lives.billing().run()
        assert {each.row for each in billed.unreadable} == {
            "EVENTS#aaron / CONFIG#main",
            f"EVENTS#{abel} / USAGE#BILLED",
        }
        assert (billed.events, billed.complete) == (1, True)

    def test_an_epoch_that_is_over_is_not_billed(self, lives: Lives) -> None:
        settings = lives.settings()
        lives.accept(Standing(settings, 0, "2026-11"))
        lives.wait(2 * HOUR)
        listed = list(lives.epochs.listed_settings())
        lives.delete()
        lives.finding.find()
        # The index is behind.
        lives.epochs.listed_settings = lambda: iter(listed)  # type: ignore[method-assign]
        lives.bill()
        assert self.hours(lives) == {}

    def listed(self, lives: Lives) -> list[EventSettings]:
        return [each for each in lives.epochs.listed_settings() if isinstance(each, EventSettings)]

    def hours(self, lives: Lives) -> dict[str, int]:
        return {
            f"{row['sk']['S']} {name}": int(value["N"])
            for row in lives.rows()
            for name, value in row.items()
            if name.startswith("hour_")
        }


def test_a_report_has_the_count_the_limit_and_the_bill(lives: Lives) -> None:
    settings = lives.settings(plan=Plan.STARTER)
    ids = [lives.accept(Standing(settings, 0, "2026-11")) for _ in range(3)]
    lives.count(lives.stream(settings.life, *ids))
    lives.wait(2 * HOUR)
    lives.bill()
    report = lives.reporting.of_month(settings)
    assert (report.month, report.counted, report.limit, report.billed) == ("2026-11", 3, 100_000, 3)
    assert report.billed_until == NOON + HOUR
    assert lives.reporting.of_month(settings, "2026-10").billed == 0
