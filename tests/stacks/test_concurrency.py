"""`make deploy` reserves concurrency for getQueue if the account's quota allows it."""

from __future__ import annotations

import pytest

from stacks.deploying.concurrency import ENOUGH, TOO_FEW, UNRESERVED_AT_LEAST, Account, choose


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
        pytest.param(Account(1000, 950, reserved_for_get_queue=50), 50, id="deployed before"),
        pytest.param(Account(150, 125, reserved_for_get_queue=25), 25, id="deployed before with some room"),
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
        assert account.unreserved + account.reserved_for_get_queue - concurrency >= UNRESERVED_AT_LEAST + concurrency
        assert TOO_FEW <= concurrency <= ENOUGH
        assert choice.message.startswith(f"{concurrency} of the account's")
