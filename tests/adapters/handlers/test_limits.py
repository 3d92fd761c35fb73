"""The limits on creates: no caller can fill the account with tenants, under any name and by any path."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.fleet import LISTED_STATES
from orchestrator.tenants.records import Operation
from tests.adapters.handlers.functions import Functions
from tests.adapters.handlers.test_get_queue import over_http
from tests.adapters.handlers.test_tenant_queue import asked, settle
from tests.fakes import ACME, NOON, QUEUE, a_release, a_run, stack_arn, take

pytestmark = pytest.mark.usefixtures("endpoint")

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
    def test_one_caller_starts_no_more_creates_than_the_rate_limit(self, functions: Functions) -> None:
        answers = [functions.get_queue(over_http(made_up(n), by=f"{PLATFORM}/i-1")) for n in range(MANY)]
        assert statuses(answers) == [202] * PER_MINUTE + [429] * (MANY - PER_MINUTE)
        assert len(functions.all_executions) == PER_MINUTE

    def test_many_session_names_of_one_role_are_one_caller(self, functions: Functions) -> None:
        answers = [functions.get_queue(over_http(made_up(n), by=f"{PLATFORM}/session-{n}")) for n in range(MANY)]
        assert statuses(answers).count(202) == PER_MINUTE
        assert len(functions.all_executions) == PER_MINUTE

    def test_all_federated_users_are_one_caller(self, functions: Functions) -> None:
        federated = "arn:aws:sts::123456789012:federated-user"
        answers = [functions.get_queue(over_http(made_up(n), by=f"{federated}/user-{n}")) for n in range(MANY)]
        assert statuses(answers).count(202) == PER_MINUTE

    def test_a_caller_with_a_long_name_is_counted(self, functions: Functions) -> None:
        long = f"arn:aws:iam::123456789012:user/{'path/' * 100}ada"
        answers = [functions.get_queue(over_http(made_up(n), by=long)) for n in range(PER_MINUTE + 1)]
        assert statuses(answers) == [202] * PER_MINUTE + [429]

    def test_a_refused_create_has_a_retry_time_and_writes_nothing(self, functions: Functions) -> None:
        for number in range(PER_MINUTE):
            functions.get_queue(over_http(made_up(number), by=PLATFORM))
        rows = functions.rows
        functions.clock.advance(timedelta(seconds=15))
        status, headers, body = functions.get_queue(over_http("one-more", by=PLATFORM))
        assert (status, headers["Retry-After"]) == (429, "45")
        assert (body["type"], body["retryAfterSeconds"]) == ("urn:berth:problem:too-many-creates", 45)
        assert functions.rows == rows
        functions.clock.advance(timedelta(seconds=45))
        assert functions.get_queue(over_http("one-more", by=PLATFORM))[0] == 202

    def test_a_ready_tenant_is_returned_above_the_rate_limit(self, functions: Functions) -> None:
        functions.serve()
        for number in range(PER_MINUTE + 1):
            functions.get_queue(over_http(made_up(number), by=PLATFORM))
        assert functions.get_queue(over_http("acme", by=PLATFORM))[0] == 200

    def test_operators_have_no_rate_limit(self, functions: Functions) -> None:
        orders = [functions.operate("PUT /tenants/{tenantId}", tenant=made_up(n)) for n in range(PER_MINUTE * 2)]
        assert statuses(orders) == [202] * PER_MINUTE * 2

    def test_all_stacks_of_other_teams_are_one_caller_and_wait(self, functions: Functions) -> None:
        for number in range(MANY):
            their = f"arn:aws:cloudformation:eu-west-1:123456789012:stack/their-{number}/1"
            event = asked(functions, tenant=made_up(number)) | {"StackId": their}
            assert settle(functions, event)["outcome"] == "waiting"
        assert len(functions.all_executions) == PER_MINUTE
        assert functions.endpoint.answers == []
        functions.clock.advance(timedelta(minutes=1))
        settle(functions, asked(functions, tenant=made_up(MANY - 1)), since=NOON)
        assert len(functions.all_executions) == PER_MINUTE + 1

    def test_all_direct_invocations_are_one_caller(self, functions: Functions) -> None:
        answers = [functions.get_queue({"tenantId": made_up(n)}) for n in range(MANY)]
        assert statuses(answers).count(202) == PER_MINUTE
        assert len(functions.all_executions) == PER_MINUTE

    def test_forged_callers_count_as_direct_invocations(self, functions: Functions) -> None:
        forged = [
            over_http(made_up(n), by=f"{PLATFORM}-{n}") | {"stageVariables": {"proof": "a guess"}} for n in range(MANY)
        ]
        assert statuses([functions.get_queue(event) for event in forged]).count(202) == PER_MINUTE
        assert functions.get_queue({"tenantId": "one-more"})[0] == 429
        assert functions.get_queue(over_http("one-more", by=PLATFORM))[0] == 202


class TestTheCap:
    @pytest.fixture(autouse=True)
    def full(self, functions: Functions, monkeypatch: pytest.MonkeyPatch) -> None:
        """There are as many tenants as there may be."""
        monkeypatch.setenv("BERTH_MAX_TENANTS", str(MAX_TENANTS))
        for number in range(MAX_TENANTS):
            functions.serve(a_run(tenant=TenantId.parse(f"there-{number}")))

    def test_no_caller_exceeds_the_limit(self, functions: Functions) -> None:
        for by in (PLATFORM, OTHER_PLATFORM):
            status, _, body = functions.get_queue(over_http("one-more", by=f"{by}/i-1"))
            assert (status, body["type"]) == (409, "urn:berth:problem:tenant-limit-reached")
        assert functions.all_executions == []

    def test_no_operator_exceeds_the_limit(self, functions: Functions) -> None:
        status, _, body = functions.operate("PUT /tenants/{tenantId}", tenant="one-more")
        assert (status, body["type"]) == (409, "urn:berth:problem:tenant-limit-reached")
        assert (body["tenants"], body["maxTenants"]) == (MAX_TENANTS, MAX_TENANTS)
        assert "berth doctor" in body["detail"]
        assert functions.table.metadata(TenantId.parse("one-more")) is None
        assert functions.all_executions == []

    def test_no_stack_of_another_team_exceeds_the_limit(self, functions: Functions) -> None:
        assert settle(functions, asked(functions, tenant="one-more"))["outcome"] == "failed"
        (answer,) = functions.endpoint.answers
        assert answer["Status"] == "FAILED"
        assert "berth:maxTenants" in answer["Reason"]
        assert functions.all_executions == []

    def test_existing_tenants_are_not_affected(self, functions: Functions) -> None:
        assert functions.get_queue(over_http("there-0", by=PLATFORM))[0] == 200
        described = functions.operate("PUT /tenants/{tenantId}", tenant="there-0", body={"labels": {"plan": "gold"}})
        assert described[0] == 200
        assert functions.operate("DELETE /tenants/{tenantId}", tenant="there-0", query={"force": "true"})[0] == 202

    def test_a_delete_makes_room_at_once(self, functions: Functions) -> None:
        assert functions.operate("PUT /tenants/{tenantId}", tenant="one-more")[0] == 409
        delete = a_run(tenant=TenantId.parse("there-0"), operation=Operation.DELETE)
        functions.remove(delete)
        assert functions.operate("PUT /tenants/{tenantId}", tenant="one-more")[0] == 202

    def test_far_below_the_limit_tenants_are_counted_once_per_minute(
        self, functions: Functions, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("BERTH_MAX_TENANTS", "1900")
        queries = []
        for number in range(2):
            before = functions.requests.count("dynamodb.Query")
            assert functions.operate("PUT /tenants/{tenantId}", tenant=f"one-more-{number}")[0] == 202
            queries.append(functions.requests.count("dynamodb.Query") - before)
        assert queries[0] - queries[1] == len(LISTED_STATES)

    @pytest.mark.usefixtures("stack_limit")
    def test_the_diagnosis_has_the_reached_limit(self, functions: Functions) -> None:
        _, _, body = functions.operate("GET /diagnosis")
        (response,) = (check for check in body["checks"] if check["name"] == "tenant limit")
        assert (response["verdict"], response["detail"]) == ("problem", "3 of at most 3 tenants (berth:maxTenants)")


class TestOnlyLooking:
    @pytest.fixture(autouse=True)
    def looking(self, functions: Functions, monkeypatch: pytest.MonkeyPatch) -> None:
        """Deployed with berth:createOnGetQueue=false, when getQueue has no settings of limits."""
        assert functions
        monkeypatch.setenv("BERTH_CREATE_ON_GET_QUEUE", "false")
        monkeypatch.delenv("BERTH_CREATES_PER_MINUTE")
        monkeypatch.delenv("BERTH_MAX_TENANTS")

    def test_unknown_tenants_start_and_write_nothing(self, functions: Functions) -> None:
        rows = functions.rows
        answers = [functions.get_queue(over_http(made_up(n), by=PLATFORM)) for n in range(MANY)]
        assert {(status, body["type"]) for status, _, body in answers} == {(404, "urn:berth:problem:unknown-tenant")}
        assert functions.all_executions == []
        assert functions.rows == rows
        assert not [request for request in functions.requests if request.startswith("stepfunctions")]

    def test_a_tenant_that_an_operator_created_is_returned(
        self, functions: Functions, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("BERTH_MAX_TENANTS", "1900")
        _, _, ordered = functions.operate("PUT /tenants/{tenantId}")
        status, _, body = functions.get_queue(over_http(by=PLATFORM))
        assert (status, body["execution"]) == (202, ordered["execution"])
        functions.serve()
        status, _, body = functions.get_queue(over_http(by=PLATFORM))
        assert (status, body["queueUrl"]) == (200, QUEUE.url)

    def test_step_functions_is_not_asked_about_creates(self, functions: Functions) -> None:
        take(functions.table, a_run())
        functions.clock.advance(timedelta(hours=1))
        assert functions.get_queue(over_http(by=PLATFORM))[0] == 202
        assert not [request for request in functions.requests if request.startswith("stepfunctions")]

    def test_a_vanished_queue_is_not_created_again(self, functions: Functions) -> None:
        functions.serve()
        assert functions.table.forget_queue(ACME, stack_id=stack_arn(number=99))
        status, _, body = functions.get_queue(over_http(by=PLATFORM))
        assert (status, body["type"]) == (409, "urn:berth:problem:not-provisioned")
        assert functions.all_executions == []
