"""`berth retry` and `berth delete` for every tenant of a selection."""

from __future__ import annotations

import json
from itertools import count

import pytest
from botocore.exceptions import EndpointConnectionError

from orchestrator.api.requesting import HttpRequest
from orchestrator.cli.errors import ExitCode
from orchestrator.client.transport import ApiAnswer
from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.messages import Messages
from orchestrator.tenants.records import Operation
from tests.fakes import QUEUE
from tests.unit.cli.conftest import Scene

NAMES = ("a1", "a2", "a3")


@pytest.fixture
def failed(scene: Scene) -> Scene:
    """Three tenants whose update has failed, and one that is ready."""
    for name in NAMES:
        scene.has(TenantId(name))
        scene.api.upgrade(TenantId(name))
        scene.api.begin()
        scene.api.fail()
    scene.has(TenantId("b1"), version="0.2.0")
    return scene


def started(scene: Scene, since: int) -> list[tuple[str, Operation]]:
    return [(attempt.tenant.value, attempt.operation) for attempt, _ in scene.api.executions.started[since:]]


def test_every_selected_tenant_is_retried(failed: Scene) -> None:
    before = len(failed.api.executions.started)
    result = failed.berth("retry", "--state", "UPDATE_FAILED", "--yes", exits=ExitCode.OK)
    assert result.stdout.splitlines() == [f"{name}: UPDATE 0.2.0, attempt 2: started" for name in NAMES]
    assert result.stderr == "3 of 3 tenants done or started. See: berth tenants\n"
    assert started(failed, before) == [(name, Operation.UPDATE) for name in NAMES]


def test_the_number_of_tenants_is_confirmed(failed: Scene) -> None:
    failed.typed = "3\n"
    result = failed.berth("retry", "--state", "UPDATE_FAILED", exits=ExitCode.OK)
    assert result.stderr.startswith(
        "Control plane Berth in eu-west-1, account 111122223333. This repeats the latest operation, if it failed, of 3 "
        "tenants: a1, a2, a3. Type the number of tenants to continue:"
    )


@pytest.mark.parametrize(
    ("typed", "code"), [("2\n", ExitCode.REFUSED), ("yes\n", ExitCode.REFUSED), (None, ExitCode.BAD_USAGE)]
)
@pytest.mark.parametrize("command", ["retry", "delete"])
def test_without_confirmation_nothing_is_started(
    failed: Scene, command: str, typed: str | None, code: ExitCode
) -> None:
    before = len(failed.api.executions.started)
    failed.typed = typed
    failed.berth(command, "--state", "UPDATE_FAILED", exits=code)
    assert started(failed, before) == []


@pytest.fixture
def changed_before_the_confirmation(failed: Scene, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """After the first look of the command at the tenants, a1 does not match any more, and b1 does."""
    for name in NAMES:
        failed.berth("label", name, "trial=over", exits=ExitCode.OK)
    send, looks = failed.api.send, count(1)

    def meddled(request: HttpRequest) -> ApiAnswer:
        answer = send(request)
        if request.path == "/tenants" and next(looks) == 1:
            failed.berth("label", "a1", "trial=no", exits=ExitCode.OK)
            failed.berth("label", "b1", "trial=over", exits=ExitCode.OK)
        return answer

    monkeypatch.setattr(failed.api, "send", meddled)
    return failed


def test_a_tenant_that_has_changed_before_the_confirmation_is_left_out(changed_before_the_confirmation: Scene) -> None:
    scene = changed_before_the_confirmation
    before = len(scene.api.executions.started)
    scene.typed = "3\n"
    result = scene.berth("delete", "--label", "trial=over", "--force", exits=ExitCode.REFUSED)
    assert started(scene, before) == [(name, Operation.DELETE) for name in ("a2", "a3")]
    *others, left_out = result.stdout.splitlines()
    assert [line.partition(":")[0] for line in others] == ["a2", "a3"]
    assert left_out == (
        "a1: Tenant a1 does not match any more: it was changed before you confirmed. Nothing was done to it."
    )


def test_with_json_a_tenant_that_is_left_out_has_a_result(changed_before_the_confirmation: Scene) -> None:
    changed_before_the_confirmation.typed = "3\n"
    command = ("delete", "--label", "trial=over", "--force", "--json")
    result = changed_before_the_confirmation.berth(*command, exits=ExitCode.REFUSED)
    results = json.loads(result.stdout)["results"]
    assert [(each["tenantId"], each["exitCode"]) for each in results] == [("a2", 0), ("a3", 0), ("a1", 7)]
    assert results[-1]["result"]["type"] == "urn:berth:cli:refused"


def test_every_selected_tenant_is_deleted_and_waited_for(failed: Scene) -> None:
    failed.berth("label", "b1", "trial=over", exits=ExitCode.OK)
    failed.meanwhile = [failed.api.begin, failed.api.succeed]
    result = failed.berth("delete", "--label", "trial=over", "--yes", "--wait", exits=ExitCode.OK)
    assert result.stdout == "b1: DELETE: done\n"


def test_a_tenant_that_is_refused_does_not_stop_the_others(failed: Scene) -> None:
    failed.api.queues.held = {QUEUE.url: Messages(1, 0, 0)}
    result = failed.berth("delete", "--version", "0.1.0", "--yes", "--json", exits=ExitCode.REFUSED)
    results = json.loads(result.stdout)["results"]
    assert [(each["tenantId"], each["exitCode"]) for each in results] == [(name, 7) for name in NAMES]
    assert results[0]["result"]["type"] == "urn:berth:problem:queue-not-empty"


UNREACHABLE = 'Could not connect to the endpoint URL: "https://api"'


def unreachable_for(scene: Scene, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    """Requests with this path do not reach the API."""
    send = scene.api.send

    def flaky(request: HttpRequest) -> ApiAnswer:
        if request.path == path:
            raise EndpointConnectionError(endpoint_url="https://api")
        return send(request)

    monkeypatch.setattr(scene.api, "send", flaky)


def test_a_request_that_gets_no_answer_hides_no_result_of_others(
    failed: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = len(failed.api.executions.started)
    unreachable_for(failed, monkeypatch, "/tenants/a2/retry")
    command = ("retry", "--state", "UPDATE_FAILED", "--yes")
    result = failed.berth(*command, exits=ExitCode.NO_CONTROL_PLANE)
    assert result.stdout.splitlines() == [
        "a1: UPDATE 0.2.0, attempt 2: started",
        f"a2: {UNREACHABLE} The operation may have been started all the same. See: berth tenant a2",
        "a3: UPDATE 0.2.0, attempt 2: started",
    ]
    assert result.stderr == "2 of 3 tenants done or started. See: berth tenants\n"
    assert started(failed, before) == [(name, Operation.UPDATE) for name in ("a1", "a3")]


def test_with_json_each_tenant_has_its_result_also_if_a_request_gets_no_answer(
    failed: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    unreachable_for(failed, monkeypatch, "/tenants/a2/retry")
    result = failed.berth("retry", "--state", "UPDATE_FAILED", "--yes", "--json", exits=ExitCode.NO_CONTROL_PLANE)
    results = json.loads(result.stdout)["results"]
    assert [(each["tenantId"], each["exitCode"]) for each in results] == [("a1", 0), ("a2", 6), ("a3", 0)]
    assert (results[1]["result"]["type"], results[1]["result"]["detail"]) == (
        "urn:berth:cli:no-control-plane",
        UNREACHABLE,
    )


def test_waiting_for_a_tenant_that_cannot_be_looked_at_hides_no_result_of_others(
    failed: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    unreachable_for(failed, monkeypatch, "/tenants/a2")
    failed.meanwhile = [failed.api.begin, failed.api.fail]
    command = ("retry", "--state", "UPDATE_FAILED", "--yes", "--wait", "--timeout", "60")
    lines = failed.berth(*command).stdout.splitlines()
    assert [line.partition(":")[0] for line in lines] == list(NAMES)
    assert lines[1] == f"a2: {UNREACHABLE} The operation was started. See: berth tenant a2"


def test_an_operation_that_fails_gives_the_exit_code(failed: Scene) -> None:
    failed.meanwhile = [failed.api.begin, failed.api.fail]
    result = failed.berth("delete", "--version", "0.2.0", "--yes", "--wait", exits=ExitCode.FAILED)
    assert result.stdout.startswith("b1: DELETE of tenant b1 failed: InboundQueue")


@pytest.mark.parametrize("command", ["retry", "delete"])
@pytest.mark.parametrize("arguments", [[], ["acme", "--state", "FAILED"], ["acme", "--label", "a=b"]], ids=" ".join)
def test_either_a_tenant_or_a_selection_is_given(scene: Scene, command: str, arguments: list[str]) -> None:
    assert scene.berth(command, *arguments).exit_code == ExitCode.BAD_USAGE
    assert scene.connected_to == []
