"""What `make deploy` reserves for getQueue: something where the account allows it, and nothing where it does not."""

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
        pytest.param(Account(1000, 110), None, id="others have reserved the rest"),
        pytest.param(Account(1000, 950, get_queues=50), 50, id="deployed before"),
        pytest.param(Account(150, 125, get_queues=25), 25, id="deployed before with some room"),
    ],
)
def test_what_is_reserved_leaves_what_aws_demands_and_room_for_others(
    account: Account, concurrency: int | None
) -> None:
    choice = choose(account)
    assert choice.value == concurrency
    assert str(account.limit) in choice.told
    if concurrency is None:
        assert "No concurrency is reserved for getQueue" in choice.told
        assert "Have the quota raised" in choice.told
    else:
        assert account.unreserved + account.get_queues - concurrency >= UNRESERVED_AT_LEAST + concurrency
        assert TOO_FEW <= concurrency <= ENOUGH
        assert choice.told.startswith(f"{concurrency} of the account's")
