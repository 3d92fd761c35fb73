"""Which creation of a tenant is alive, for the event plane."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.adapters.dynamodb.event_tenants import DynamoTenants
from orchestrator.tenants.records import Operation, Request
from tests.adapters.conftest import TABLE
from tests.adapters.tables import LATER, SECOND, WholeTable, a_run, create, publish, take
from tests.fakes import ACME, QUEUE, QUEUE_TABOO, a_release, a_resource
from tests.present import present

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


def test_a_tenant_that_was_never_created_is_not_alive(dynamodb: DynamoDBClient) -> None:
    assert DynamoTenants(dynamodb, TABLE).incarnation(ACME) is None


def test_a_tenant_keeps_its_incarnation(dynamodb: DynamoDBClient) -> None:
    table, tenants = WholeTable(dynamodb, TABLE), DynamoTenants(dynamodb, TABLE)
    create(table)
    first = present(tenants.incarnation(ACME))
    assert tenants.incarnation(ACME) == first


def test_a_tenant_that_is_being_deleted_is_not_alive(dynamodb: DynamoDBClient) -> None:
    table, tenants = WholeTable(dynamodb, TABLE), DynamoTenants(dynamodb, TABLE)
    create(table)
    run = a_run(operation=Operation.DELETE, started_at=LATER)
    take(table, run)
    assert tenants.incarnation(ACME) is None


def test_a_tenant_that_was_deleted_and_created_again_is_another_incarnation(dynamodb: DynamoDBClient) -> None:
    table, tenants = WholeTable(dynamodb, TABLE), DynamoTenants(dynamodb, TABLE)
    create(table)
    first = tenants.incarnation(ACME)
    run = a_run(operation=Operation.DELETE, started_at=LATER)
    take(table, run)
    table.remove(run, at=LATER + SECOND)
    assert tenants.incarnation(ACME) is None
    again = a_run(2, started_at=LATER + 2 * SECOND)
    take(table, again)
    publish(table, again, at=LATER + 3 * SECOND)
    assert tenants.incarnation(ACME) not in (None, first)


def test_a_tenant_created_again_after_a_delete_that_failed_half_way_is_another_incarnation(
    dynamodb: DynamoDBClient,
) -> None:
    """It may belong to somebody else from then on, who must not inherit the keys and the events."""
    table, tenants = WholeTable(dynamodb, TABLE), DynamoTenants(dynamodb, TABLE)
    create(table)
    first = present(tenants.incarnation(ACME))
    run = a_run(operation=Operation.DELETE, started_at=LATER)
    take(table, run)
    table.fail(run, QUEUE_TABOO, LATER + SECOND)
    assert not tenants.has_ended(ACME, first), "the delete may be tried again"
    again = a_run(2, started_at=LATER + 2 * SECOND)
    take(table, again)
    assert tenants.has_ended(ACME, first)
    publish(table, again, at=LATER + 3 * SECOND)
    assert tenants.incarnation(ACME) not in (None, first)
    assert tenants.has_ended(ACME, first)


def test_a_tenant_whose_delete_was_refused_keeps_its_incarnation_also_when_it_is_requested_again(
    dynamodb: DynamoDBClient,
) -> None:
    table, tenants = WholeTable(dynamodb, TABLE), DynamoTenants(dynamodb, TABLE)
    create(table)
    first = present(tenants.incarnation(ACME))
    run = a_run(operation=Operation.DELETE, started_at=LATER)
    take(table, run)
    table.fail(run, QUEUE_TABOO, LATER + SECOND, restore=True)
    assert tenants.incarnation(ACME) == first
    again = a_run(2, started_at=LATER + 2 * SECOND)
    take(table, again)
    publish(table, again, at=LATER + 3 * SECOND)
    assert tenants.incarnation(ACME) == first


def test_a_tenant_in_service_keeps_its_incarnation_if_a_create_takes_over_from_a_delete_that_touched_nothing(
    dynamodb: DynamoDBClient,
) -> None:
    """It is given back as it was, with its owner and its queue: so its events must not be purged."""
    table, tenants = WholeTable(dynamodb, TABLE), DynamoTenants(dynamodb, TABLE)
    create(table)
    first = present(tenants.incarnation(ACME))
    take(table, a_run(operation=Operation.DELETE, started_at=LATER))
    again = a_run(2, started_at=LATER + SECOND)
    table.begin(again, at=again.started_at, release=a_release(), instead_of=table.lock(ACME), restore=True)
    assert tenants.incarnation(ACME) == first
    publish(table, again, at=LATER + 2 * SECOND)
    assert tenants.incarnation(ACME) == first


def test_a_tenant_that_was_never_in_service_is_another_incarnation_if_a_create_takes_over_from_its_delete(
    dynamodb: DynamoDBClient,
) -> None:
    """Its first create died after the stack had recorded its queue, and its delete before it touched the stack."""
    table, tenants = WholeTable(dynamodb, TABLE), DynamoTenants(dynamodb, TABLE)
    died, delete = a_run(), a_run(operation=Operation.DELETE, started_at=LATER)
    take(table, died)
    table.record_queue(ACME, stack_id="stack-1", queue=QUEUE, at=LATER)
    first = present(tenants.incarnation(ACME))
    take(table, delete, instead_of=table.lock(ACME))
    again = a_run(2, started_at=LATER + SECOND)
    table.begin(again, at=again.started_at, release=a_release(), instead_of=table.lock(ACME), restore=True)
    assert tenants.has_ended(ACME, first)
    publish(table, again, at=LATER + 2 * SECOND)
    assert tenants.incarnation(ACME) not in (None, first)


def test_a_tenant_that_never_had_a_queue_is_another_incarnation_once_it_has_another_owner(
    dynamodb: DynamoDBClient,
) -> None:
    """Its first create failed after the stack had recorded its queue, so it could have settings and keys already."""
    table, tenants = WholeTable(dynamodb, TABLE), DynamoTenants(dynamodb, TABLE)
    of_a_team = Request(resource=a_resource(), explicit=True)
    run = a_run(request=of_a_team)
    take(table, run)
    table.record_queue(ACME, stack_id="stack-1", queue=QUEUE, at=LATER)
    first = present(tenants.incarnation(ACME))
    table.forget_queue(ACME, stack_id="stack-1")
    table.fail(run, QUEUE_TABOO, LATER)
    again = a_run(2, started_at=LATER + SECOND, request=of_a_team)
    take(table, again)
    table.fail(again, QUEUE_TABOO, LATER + 2 * SECOND)
    assert tenants.incarnation(ACME) == first, "it is still the same team's tenant"
    by_an_operator = a_run(3, started_at=LATER + 3 * SECOND)
    take(table, by_an_operator)
    assert tenants.has_ended(ACME, first)
