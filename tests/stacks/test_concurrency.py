"""`make deploy` reserves concurrency for the functions behind the APIs if the account's quota allows it."""

from __future__ import annotations

import pytest

from stacks.deploying.concurrency import (
    ENOUGH,
    INGEST,
    RESERVATIONS,
    TOO_FEW,
    UNRESERVED_AT_LEAST,
    Account,
    choose,
)


@pytest.mark.parametrize(
    ("account", "concurrency"),
    [
        pytest.param(Account(10, 10), None, id="a new account"),
        pytest.param(Account(100, 100), None, id="no room"),
        pytest.param(Account(118, 118), None, id="too little room"),
        pytest.param(Account(120, 120), 10, id="just enough room"),
        pytest.param(Account(150, 150), 25, id="some room"),
        pytest.param(Account(1000, 1000), 50, id="an old account"),
        pytest.param(Account(1000, 110), None, id="other functions have reserved the rest"),
        pytest.param(Account(1000, 950, reserved_for_berth=50), 50, id="deployed before"),
        pytest.param(Account(150, 125, reserved_for_berth=25), 25, id="deployed before with some room"),
    ],
)
def test_the_reservation_leaves_enough_for_aws_and_for_other_functions(
    account: Account, concurrency: int | None
) -> None:
    choice = choose(account)
    assert choice.value == concurrency
    assert str(account.limit) in choice.message
    if concurrency is None:
        assert "No concurrency is reserved for getQueue" in choice.message
        assert "Have AWS raise the quota" in choice.message
    else:
        assert account.unreserved + account.reserved_for_berth - concurrency >= UNRESERVED_AT_LEAST + concurrency
        assert TOO_FEW <= concurrency <= ENOUGH
        assert choice.message.startswith(f"{concurrency} of the account's")


@pytest.mark.parametrize(
    ("unreserved", "concurrency"), [(100, None), (199, None), (200, 10), (300, 20), (600, 50), (1000, 50)]
)
def test_each_function_of_the_event_plane_gets_a_tenth_of_the_room(unreserved: int, concurrency: int | None) -> None:
    choice = choose(Account(unreserved, unreserved), INGEST)
    assert choice.value == concurrency
    assert "reserved for ingest" in choice.message


@pytest.mark.parametrize("unreserved", [0, 100, 120, 150, 180, 200, 300, 500, 1000])
def test_all_reservations_together_leave_what_aws_requires(unreserved: int) -> None:
    chosen = [choose(Account(unreserved, unreserved), each).value or 0 for each in RESERVATIONS]
    assert sum(chosen) == 0 or unreserved - sum(chosen) >= UNRESERVED_AT_LEAST


def test_another_deployment_chooses_the_same() -> None:
    first = [choose(Account(300, 300), each).value or 0 for each in RESERVATIONS]
    again = [choose(Account(300, 300 - sum(first), sum(first)), each).value or 0 for each in RESERVATIONS]
    assert again == first
