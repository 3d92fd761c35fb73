"""The turns of creates and the tickets of those that wait: one contract for the fake and for DynamoDB."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from orchestrator.adapters.dynamodb.create_turns import CreateTurnTable
from orchestrator.common.tenant_ids import TenantId
from orchestrator.rollouts.create_turns import CreateTurns, Ticket
from orchestrator.rollouts.ports import CreateTurnRows
from tests.adapters.conftest import TABLE
from tests.fakes import ACME, NOON, InMemoryCreateTurns, execution_arn
from tests.present import present

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

GLOBEX = TenantId.parse("globex")
TURNS = CreateTurns.initial(7, NOON).taken(execution_arn("create-acme"), ACME, NOON + timedelta(seconds=1))


@pytest.fixture
def turns(rows: DynamoDBClient | None) -> CreateTurnRows:
    return CreateTurnTable(rows, TABLE) if rows else InMemoryCreateTurns()


def a_ticket(number: int, token: str = "a token") -> Ticket:
    return Ticket(number, GLOBEX, execution_arn(f"create-{number}"), token)


def test_there_are_no_turns_before_the_first_create(turns: CreateTurnRows) -> None:
    assert turns.turns() is None
    assert turns.first_ticket() is None


def test_turns_are_read_as_they_were_stored(turns: CreateTurnRows) -> None:
    stored = replace(TURNS, tickets_left=3, seconds_per_create=12.5)
    assert turns.store(stored)
    assert turns.turns() == replace(stored, revision=1)


def test_turns_are_stored_only_if_they_are_still_those_that_were_read(turns: CreateTurnRows) -> None:
    assert turns.store(TURNS)
    assert not turns.store(TURNS), "Another create has stored the first turns."
    read = present(turns.turns())
    assert turns.store(read.taken(execution_arn("create-globex"), GLOBEX, NOON))
    assert not turns.store(read.given_back(execution_arn("create-acme"), NOON, succeeded=True))
    assert set(present(turns.turns()).holders) == {execution_arn("create-acme"), execution_arn("create-globex")}


def test_numbers_of_tickets_rise(turns: CreateTurnRows) -> None:
    assert [turns.draw_number() for _ in range(3)] == [1, 2, 3]


def test_the_lowest_number_is_first(turns: CreateTurnRows) -> None:
    for number in (10, 9, 100):
        turns.put_ticket(a_ticket(number))
    assert turns.first_ticket() == a_ticket(9)
    turns.remove_ticket(a_ticket(9))
    assert turns.first_ticket() == a_ticket(10)


def test_a_ticket_that_was_replaced_is_not_removed(turns: CreateTurnRows) -> None:
    turns.put_ticket(a_ticket(1))
    turns.put_ticket(a_ticket(1, "a later token"))
    turns.remove_ticket(a_ticket(1))
    assert turns.first_ticket() == a_ticket(1, "a later token")


def test_a_ticket_is_removed_once(turns: CreateTurnRows) -> None:
    turns.put_ticket(a_ticket(1))
    for _ in range(2):
        turns.remove_ticket(a_ticket(1))
    assert turns.first_ticket() is None
