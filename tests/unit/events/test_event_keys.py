"""The keys of the event plane keep tenants, and the lives of one tenant, apart."""

from __future__ import annotations

from datetime import UTC, datetime

from orchestrator.adapters.dynamodb import event_keys
from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.event_ids import new_event_id
from orchestrator.events.records import TenantEpoch

AT = datetime(2026, 11, 17, 12, 30, 15, 123456, tzinfo=UTC)
ACME = TenantEpoch(TenantId("acme"), "5f3a9c01")
SUCCESSOR = TenantEpoch(TenantId("acme"), "77aa0123")


def test_an_events_key_is_made_from_its_id_alone() -> None:
    event_id = new_event_id(AT, 3)
    assert event_keys.event_key(ACME, event_id) == {
        "pk": {"S": "TENANT_ID#acme#5f3a9c01#3"},
        "sk": {"S": f"EVT#{event_id}"},
    }


def test_a_submission_has_a_sort_key_of_its_own() -> None:
    event_id = new_event_id(AT, 0, submission=True)
    assert event_keys.event_key(ACME, event_id)["sk"]["S"] == f"SUB#{event_id}"


def test_the_index_by_type_ends_the_type_with_a_delimiter() -> None:
    event_id = new_event_id(AT, 0)
    assert event_keys.type_index_sk("user.created", event_id) == (
        f"user.created#2026-11-17T12:30:15.123456Z#{event_id}"
    )


def test_two_lives_of_one_tenant_share_no_partition() -> None:
    event_id = new_event_id(AT, 0)

    def partitions(life: TenantEpoch) -> set[str]:
        return {
            event_keys.event_key(life, event_id)["pk"]["S"],
            event_keys.status_index_pk(life, 0),
            event_keys.type_index_pk(life, 0),
            event_keys.configuration_pk(life),
            event_keys.idempotency_key(life, "api", "order-1")["pk"]["S"],
        }

    assert not partitions(ACME) & partitions(SUCCESSOR)


def test_a_partition_tells_its_tenant_and_epoch() -> None:
    assert event_keys.life_of(event_keys.shard_pk(ACME, 15)) == ACME


def test_an_idempotency_key_of_any_text_fits() -> None:
    long = event_keys.idempotency_key(ACME, "api", "é#" * 10_000)["pk"]["S"]
    assert len(long) < 200
