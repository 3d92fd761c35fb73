"""What a caller cannot do, however it asks: fill the account with tenants, alone, under many names, or past the API."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.tenants import TenantId
from tests.adapters.handlers.functions import Functions
from tests.adapters.handlers.test_get_queue import over_http
from tests.fakes import a_release, a_run

PLATFORM = "arn:aws:sts::123456789012:assumed-role/platform"
OTHER_PLATFORM = "arn:aws:sts::123456789012:assumed-role/another-platform"
PER_MINUTE = 5
MAX_TENANTS = 3
MANY = 40


@pytest.fixture(autouse=True)
def limited(functions: Functions, monkeypatch: pytest.MonkeyPatch) -> None:
    """A control plane with small limits, and its releases."""
    monkeypatch.setenv("BERTH_CREATES_PER_MINUTE", str(PER_MINUTE))
    functions.table.record_release(a_release())


def made_up(number: int) -> str:
    return f"made-up-{number}"


def statuses(answers: list[tuple[int, dict[str, str], dict[str, Any]]]) -> list[int]:
    return [status for status, _, _ in answers]


class TestTheRate:
    def test_made_up_tenants_from_one_caller_start_no_more_creates_than_it_may(self, functions: Functions) -> None:
        answers = [functions.get_queue(over_http(made_up(n), by=f"{PLATFORM}/i-1")) for n in range(MANY)]
        assert statuses(answers) == [202] * PER_MINUTE + [429] * (MANY - PER_MINUTE)
        assert len(functions.all_executions) == PER_MINUTE

    def test_many_session_names_of_one_role_are_one_caller(self, functions: Functions) -> None:
        answers = [functions.get_queue(over_http(made_up(n), by=f"{PLATFORM}/session-{n}")) for n in range(MANY)]
        assert statuses(answers).count(202) == PER_MINUTE
        assert len(functions.all_executions) == PER_MINUTE

    def test_names_of_federated_users_which_anyone_may_make_up_are_one_caller(self, functions: Functions) -> None:
        federated = "arn:aws:sts::123456789012:federated-user"
        answers = [functions.get_queue(over_http(made_up(n), by=f"{federated}/user-{n}")) for n in range(MANY)]
        assert statuses(answers).count(202) == PER_MINUTE

    def test_calling_the_function_past_the_api_is_one_caller(self, functions: Functions) -> None:
        answers = [functions.get_queue({"tenantId": made_up(n)}) for n in range(MANY)]
        assert statuses(answers).count(202) == PER_MINUTE
        assert len(functions.all_executions) == PER_MINUTE


class TestTheCap:
    @pytest.fixture(autouse=True)
    def full(self, functions: Functions, monkeypatch: pytest.MonkeyPatch) -> None:
        """There are as many tenants as there may be."""
        monkeypatch.setenv("BERTH_MAX_TENANTS", str(MAX_TENANTS))
        for number in range(MAX_TENANTS):
            functions.serve(a_run(tenant=TenantId.parse(f"there-{number}")))

    def test_no_caller_creates_one_more(self, functions: Functions) -> None:
        for by in (PLATFORM, OTHER_PLATFORM):
            status, _, body = functions.get_queue(over_http("one-more", by=f"{by}/i-1"))
            assert (status, body["type"]) == (409, "urn:berth:problem:tenant-limit-reached")
        assert functions.all_executions == []
