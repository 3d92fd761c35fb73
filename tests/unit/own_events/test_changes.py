"""Which changes are published, with which fields, and that each has an id of its own that never changes."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from jsonschema import Draft202012Validator

from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.delivery.records import (
    ConnectionStatus,
    Delivery,
    DeliveryRef,
    DeliveryState,
    Destination,
    DestinationKind,
)
from orchestrator.own_events.changes import connection_disabled, delivery_exhausted, operation_ended, rollout_ended
from orchestrator.own_events.kinds import Kind, OwnEvent, schema_of
from orchestrator.rollouts.records import Rollout, RolloutStatus, Share, Spec, StageSpec
from orchestrator.tenants.history import HistoryEntry
from orchestrator.tenants.records import Operation, Request, Status
from tests.fakes import ACME, NOON, QUEUE_TABOO
from tests.fakes.events import ACME_LIFE, connection
from tests.present import present

LATER = NOON + timedelta(hours=1)
ENTRY = HistoryEntry(
    ACME, NOON, Operation.CREATE, "0.2.0", 3, Status.SUCCESS, "arn:e", None, Request("ada", reason="a launch")
)
STAGE = StageSpec(None, 1, Share(0))
ROLLOUT = Rollout("20261116-120000-1a2b", Spec("0.2.0", (STAGE,)), "ada", NOON, (3,), 3, {}, revision=7)
HALTED = replace(ROLLOUT, status=RolloutStatus.HALTED, reason="2 of 3 failed", ended_at=LATER)
DISABLED = connection(status=ConnectionStatus.DISABLED, reason="410 Gone", revision=4)
DELIVERY = Delivery(
    DeliveryRef(ACME_LIFE, "01930000-0000-7000-8000-000000000000", "conn_1"),
    DeliveryState.FAILED,
    tries=8,
    first_try=NOON,
    expires_at=LATER,
    code=500,
    reason="no",
    ended_at=LATER,
)


def ended(entry: HistoryEntry = ENTRY, row: str = "HISTORY#acme 1") -> OwnEvent | None:
    return operation_ended(entry, row=row)


def rolled_out(rollout: Rollout, before: RolloutStatus | None = RolloutStatus.RUNNING) -> OwnEvent | None:
    return rollout_ended(before, rollout, row="ROLLOUT#1 PLAN", at=NOON)


EVENTS: dict[Kind, OwnEvent | None] = {
    Kind.TENANT_PROVISIONED: ended(),
    Kind.TENANT_UPDATED: ended(replace(ENTRY, operation=Operation.UPDATE)),
    Kind.TENANT_FAILED: ended(replace(ENTRY, status=Status.FAILURE, root_cause=QUEUE_TABOO)),
    Kind.TENANT_DELETED: ended(replace(ENTRY, operation=Operation.DELETE)),
    Kind.ROLLOUT_HALTED: rolled_out(HALTED),
    Kind.ROLLOUT_SUCCEEDED: rolled_out(replace(HALTED, status=RolloutStatus.SUCCEEDED)),
    Kind.CONNECTION_DISABLED: connection_disabled(ConnectionStatus.ACTIVE, DISABLED, row="SRC#1 CONN#1", at=NOON),
    Kind.DELIVERY_EXHAUSTED: delivery_exhausted(DELIVERY, row="EVT#1 DLV#1", at=NOON),
}


def test_there_is_a_change_for_every_kind() -> None:
    assert {kind: event and event.kind for kind, event in EVENTS.items()} == {kind: kind for kind in Kind}


@pytest.mark.parametrize("kind", Kind)
def test_an_event_has_exactly_the_fields_that_its_schema_documents(kind: Kind) -> None:
    detail = present(EVENTS[kind]).detail("Berth")
    Draft202012Validator(schema_of(kind)).validate(detail)
    assert set(present(EVENTS[kind]).data) == set(schema_of(kind)["properties"]["data"]["properties"])  # type: ignore[index]


# Tenants


def test_a_provisioned_tenant_is_named_with_its_release_and_who_asked() -> None:
    assert present(ended()).data == {
        "tenant_id": "acme",
        "version": "0.2.0",
        "attempt": 3,
        "execution": "arn:e",
        "requested_by": "ada",
        "reason": "a launch",
    }


def test_a_failure_names_the_operation_and_its_root_cause() -> None:
    data = present(EVENTS[Kind.TENANT_FAILED]).data
    assert data["operation"] == "CREATE"
    assert data["root_cause"] == {
        "resource": "InboundQueue",
        "resource_type": "AWS::SQS::Queue",
        "reason": "Access to the resource is denied.",
    }


def test_a_failure_without_a_root_cause_is_published() -> None:
    assert present(ended(replace(ENTRY, status=Status.FAILURE))).data["root_cause"] is None


def test_a_delete_has_no_release() -> None:
    assert present(EVENTS[Kind.TENANT_DELETED]).data["version"] is None


def test_a_start_is_not_published() -> None:
    assert ended(replace(ENTRY, status=Status.STARTED)) is None


def test_a_long_reason_is_cut() -> None:
    long = replace(QUEUE_TABOO, reason="x" * 300_000)
    cause = present(ended(replace(ENTRY, status=Status.FAILURE, root_cause=long))).data["root_cause"]
    assert len(cause["reason"]) == 4_000  # type: ignore[index]


# Rollouts


@pytest.mark.parametrize("status", sorted(set(RolloutStatus) - {RolloutStatus.HALTED, RolloutStatus.SUCCEEDED}))
def test_a_rollout_with_any_other_status_is_not_published(status: RolloutStatus) -> None:
    assert rolled_out(replace(ROLLOUT, status=status)) is None


def test_a_halted_rollout_that_is_written_again_is_not_published_again() -> None:
    assert rolled_out(replace(HALTED, revision=8), before=RolloutStatus.HALTED) is None


def test_a_rollout_that_is_resumed_and_halts_again_is_published_again() -> None:
    assert present(rolled_out(HALTED)).id != present(rolled_out(replace(HALTED, revision=12))).id


def test_a_dry_run_is_not_published() -> None:
    assert rolled_out(replace(HALTED, spec=replace(ROLLOUT.spec, dry_run=True))) is None


# Connections and deliveries


@pytest.mark.parametrize("status", sorted(set(ConnectionStatus) - {ConnectionStatus.DISABLED}))
def test_a_connection_with_any_other_status_is_not_published(status: ConnectionStatus) -> None:
    assert connection_disabled(None, replace(DISABLED, status=status), row="r", at=NOON) is None


def test_a_disabled_connection_that_is_written_again_is_not_published_again() -> None:
    assert connection_disabled(ConnectionStatus.DISABLED, DISABLED, row="r", at=NOON) is None


def test_a_connection_that_is_resumed_and_disabled_again_is_published_again() -> None:
    first, second = (
        connection_disabled(ConnectionStatus.ACTIVE, replace(DISABLED, revision=revision), row="r", at=NOON)
        for revision in (4, 6)
    )
    assert present(first).id != present(second).id


def test_the_address_of_a_destination_is_not_published() -> None:
    """The URL of a hook may be a secret."""
    hook = replace(DISABLED, destination=Destination(DestinationKind.ZAPIER, "https://hooks.example/secret"))
    event = present(connection_disabled(None, hook, row="r", at=NOON))
    assert "secret" not in str(event.detail("Berth"))
    assert event.data["destination"] == "zapier"


@pytest.mark.parametrize("state", sorted(set(DeliveryState) - {DeliveryState.FAILED}))
def test_a_delivery_that_may_still_succeed_is_not_published(state: DeliveryState) -> None:
    assert delivery_exhausted(replace(DELIVERY, state=state), row="r", at=NOON) is None


def test_a_delivery_counts_the_tries_of_all_its_rounds() -> None:
    again = delivery_exhausted(replace(DELIVERY, tries=16, tries_before=8, resend=True), row="r", at=NOON)
    assert (present(again).data["tries"], present(again).data["resend"]) == (16, True)


def test_a_delivery_that_is_asked_for_and_fails_again_is_published_again() -> None:
    first, second = (
        delivery_exhausted(replace(DELIVERY, ended_at=at), row="r", at=NOON)
        for at in (LATER, LATER + timedelta(days=1))
    )
    assert present(first).id != present(second).id


# Ids


def test_the_same_change_always_has_the_same_id() -> None:
    """Consumers remember ids, so another release of Berth must not make other ids of the same rows."""
    assert present(ended()).id == present(ended()).id == "163388c07e1165321e980283980154f3"


def test_changes_of_different_rows_have_different_ids() -> None:
    other = replace(ENTRY, tenant=TenantId.parse("globex"))
    assert present(ended()).id != present(ended(other, row="HISTORY#globex 1")).id
