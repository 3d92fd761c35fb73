"""`berth reconcile`: starting, waiting, and the output."""

from __future__ import annotations

import json
from datetime import timedelta
from functools import partial

import pytest

from orchestrator.cli.errors import ExitCode
from orchestrator.client.transport import ApiAnswer
from orchestrator.reconciling.records import Coverage, Finding, Kind, ReconciliationStatus, Remedy
from tests.fakes.reconciling import counted
from tests.unit.cli.conftest import Scene

DONE, INCOMPLETE, RUNNING = (
    ReconciliationStatus.DONE,
    ReconciliationStatus.INCOMPLETE,
    ReconciliationStatus.RUNNING,
)
LOOKED_AT = Coverage(operations=1, tenants=3, stacks=4, all_stacks=9)
CORRECTED = Finding(
    Kind.METADATA_DIFFERS,
    "acme",
    "the metadata differs from the stack: queue a / b",
    Remedy.CORRECT,
    result="the metadata now matches the stack",
    repaired=True,
)
LOOK = f"aws cloudformation describe-stack-resource-drifts --stack-name {'x' * 80}"
DRIFTED = Finding(Kind.DRIFTED, "globex", "its stack's resources do not match the template", Remedy.NONE, LOOK)


def comes_to(scene: Scene, *findings: Finding, status: ReconciliationStatus = DONE, reason: str = "") -> None:
    """Let the function record this while the command sleeps."""
    scene.meanwhile.append(
        lambda: scene.api.reconciliation_is_now(
            status=status,
            reason=reason,
            coverage=LOOKED_AT,
            counts=counted(findings),
            findings=findings,
            repaired=sum(finding.repaired for finding in findings),
            ordered=sum(finding.ordered for finding in findings),
        )
    )


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]


def test_progress_is_shown_while_waiting(scene: Scene) -> None:
    is_now = scene.api.reconciliation_is_now
    scene.meanwhile = [
        partial(is_now, status=RUNNING, coverage=Coverage(operations=2)),
        partial(is_now, status=RUNNING, coverage=Coverage(operations=2, tenants=200, stacks=1)),
    ]
    comes_to(scene)
    result = scene.berth("reconcile")
    what = f"Reconciliation {scene.api.last_reconciliation.id}"
    assert result.stderr.splitlines() == [
        f"{what} is about to start",
        f"{what} is running: checked 2 unfinished operations, 0 tenants, 0 stacks",
        f"{what} is running: checked 2 unfinished operations, 200 tenants, 1 stack",
    ]
    assert scene.pauses == [2, 2, 2]


class TestFindings:
    @pytest.mark.parametrize(
        ("count", "named"),
        [(2, "t1, t2"), (5, "t1, t2, t3, t4, t5"), (6, "t1, t2, t3, t4, t5 and 1 more")],
    )
    def test_advice_that_many_findings_share_is_shown_once(self, scene: Scene, count: int, named: str) -> None:
        old = [
            Finding(Kind.NOT_ADOPTED, f"t{number}", "it is not listed", Remedy.NONE, "berth adopt")
            for number in range(1, count + 1)
        ]
        comes_to(scene, *old, DRIFTED)
        shown = lines(scene.berth("reconcile").stdout)
        assert shown[shown.index("To be done by hand") + 1 :] == [f"{named}: berth adopt", f"globex: {LOOK}"]

    def test_a_refused_repair(self, scene: Scene) -> None:
        busy = Finding(Kind.ORPHAN_STACK, "acme", "it was deleted", Remedy.DELETE, result="There are messages in it.")
        comes_to(scene, busy)
        result = scene.berth("reconcile", exits=ExitCode.ATTENTION)
        assert "not repaired: There are messages in it.\n" in result.stdout
        assert "To be done by hand" not in result.stdout

    def test_findings_beyond_the_stored_ones_are_counted(self, scene: Scene) -> None:
        scene.meanwhile.append(
            lambda: scene.api.reconciliation_is_now(
                status=DONE, counts={Kind.DRIFTED: 201, Kind.MISSING_STACK: 2}, findings=[DRIFTED], ordered=2
            )
        )
        result = scene.berth("reconcile", exits=ExitCode.ATTENTION)
        assert "... and 202 more, which are only counted.\n" in result.stdout
        assert "Findings: 203 (2 missing-stack, 201 stack-drifted).\n" in result.stdout
        assert "Repaired 0, started an operation for 2, not repaired 201.\n" in result.stdout


class TestDryRun:
    @pytest.mark.parametrize("remedy", [remedy for remedy in Remedy if remedy is not Remedy.NONE])
    def test_every_remedy_has_a_description(self, scene: Scene, remedy: Remedy) -> None:
        comes_to(scene, Finding(Kind.ORPHAN_STACK, "acme", "wrong", remedy))
        assert "would " in lines(scene.berth("reconcile", "--dry-run").stdout)[2]

    def test_findings_without_a_repair(self, scene: Scene) -> None:
        comes_to(scene, DRIFTED)
        result = scene.berth("reconcile", "--dry-run", exits=ExitCode.ATTENTION)
        assert f"\nTo be done by hand\nglobex: {LOOK}\n" in result.stdout
        assert "Repair what" not in result.stderr

    def test_without_differences_no_repair_is_suggested(self, scene: Scene) -> None:
        comes_to(scene)
        result = scene.berth("reconcile", "--dry-run")
        assert (result.exit_code, result.stdout.count("\n")) == (ExitCode.OK, 1)
        assert "Repair what" not in result.stderr


@pytest.mark.parametrize("findings", [[], [CORRECTED]], ids=["none", "one"])
def test_an_incomplete_reconciliation_never_reports_no_differences(scene: Scene, findings: list[Finding]) -> None:
    comes_to(scene, *findings, status=INCOMPLETE, reason="AWS throttled the requests.")
    result = scene.berth("reconcile", exits=ExitCode.ATTENTION)
    assert result.stdout.startswith("Incomplete: AWS throttled the requests. The rest was not checked.\n")
    assert "No differences:" not in result.stdout
    assert result.stderr.splitlines()[-1] == "Check the rest: berth reconcile"


class TestFollowing:
    @pytest.fixture
    def name(self, scene: Scene) -> str:
        scene.berth("reconcile", "--no-wait")
        scene.api.asked.clear()
        return scene.api.last_reconciliation.id

    def test_a_running_reconciliation_is_waited_for(self, scene: Scene, name: str) -> None:
        comes_to(scene, DRIFTED)
        scene.berth("reconcile", "--follow", name, exits=ExitCode.ATTENTION)
        assert set(scene.api.asked) == {f"GET /reconciliations/{name}"}

    def test_an_ended_reconciliation_is_shown(self, scene: Scene, name: str) -> None:
        scene.api.reconciliation_is_now(status=DONE)
        result = scene.berth("reconcile", "--follow", name)
        assert (result.exit_code, scene.pauses) == (ExitCode.OK, [])
        assert result.stdout.startswith("No differences")

    def test_a_reconciliation_that_does_not_exist(self, scene: Scene) -> None:
        result = scene.berth("reconcile", "--follow", "20261231-235959-0a1b", exits=ExitCode.GONE)
        assert "Error: There is no reconciliation 20261231-235959-0a1b." in result.stderr

    @pytest.mark.parametrize("given", ["", "acme", "settling", "20261231-235959-0a1b\n", "../health"])
    def test_an_invalid_id_is_refused_before_any_request(self, scene: Scene, given: str) -> None:
        result = scene.berth("reconcile", "--follow", given)
        assert (result.exit_code, scene.connected_to) == (ExitCode.BAD_USAGE, [])

    @pytest.mark.parametrize("option", ["--dry-run", "--detect-drift"])
    def test_follow_cannot_be_combined_with_other_options(self, scene: Scene, name: str, option: str) -> None:
        result = scene.berth("reconcile", "--follow", name, option)
        assert (result.exit_code, scene.api.asked) == (ExitCode.BAD_USAGE, [])


class TestTrouble:
    def test_an_interrupt_while_waiting(self, scene: Scene) -> None:
        scene.trouble_asleep = KeyboardInterrupt()
        result = scene.berth("reconcile", exits=ExitCode.INTERRUPTED)
        name = scene.api.last_reconciliation.id
        assert result.stderr.endswith(
            f"Stopped waiting. It continues in the control plane. See: berth reconcile --follow {name}\n"
        )

    def test_an_interrupt_before_the_response(self, scene: Scene) -> None:
        scene.api.interjections = [ApiAnswer(503, {})]
        scene.trouble_asleep = KeyboardInterrupt()
        result = scene.berth("reconcile", exits=ExitCode.INTERRUPTED)
        assert result.stderr.endswith(
            "Interrupted. If the reconciliation was started, it continues in the control plane.\n"
        )

    def test_after_the_timeout_the_command_to_follow_it_is_shown(self, scene: Scene) -> None:
        result = scene.berth("reconcile", "--timeout", "5", "--json")
        assert (result.exit_code, scene.pauses) == (ExitCode.NOT_READY, [2, 2])
        assert json.loads(result.stdout)["status"] == "PENDING"
        name = scene.api.last_reconciliation.id
        assert result.stderr.endswith(f"It is still running. See its result: berth reconcile --follow {name}\n")

    def test_a_reconciliation_that_does_not_start(self, scene: Scene) -> None:
        assert "should have started" not in scene.berth("reconcile", "--timeout", "61").stderr
        scene.meanwhile = [lambda: None] * 31
        comes_to(scene)
        result = scene.berth("reconcile", exits=ExitCode.OK)
        assert "should have started within a minute. See berth doctor, and the log" in result.stderr

    def test_a_reconciliation_that_has_died(self, scene: Scene) -> None:
        scene.meanwhile = [partial(scene.api.reconciliation_is_now, status=RUNNING)]
        result = scene.berth("reconcile", exits=ExitCode.ATTENTION)
        assert sum(scene.pauses) == timedelta(minutes=25).total_seconds() + 2
        name = scene.api.last_reconciliation.id
        assert result.stderr.splitlines()[-3:] == [
            f"Error: Reconciliation {name} has made no progress since 2026-11-16 12:00:00 UTC: its function has died.",
            "See berth doctor, and the log of the function in the output ReconcileFunctionName of the control plane's "
            "stack.",
            "Then start another: berth reconcile",
        ]

    def test_a_reconciliation_that_has_died_as_json(self, scene: Scene) -> None:
        scene.meanwhile = [partial(scene.api.reconciliation_is_now, status=RUNNING)]
        result = scene.berth("reconcile", "--json")
        assert (result.exit_code, json.loads(result.stdout)["status"]) == (ExitCode.ATTENTION, "RUNNING")

    def test_a_long_reconciliation_with_progress_is_waited_for(self, scene: Scene) -> None:
        def moves() -> None:
            scene.api.clock.advance(timedelta(seconds=2))
            scene.api.reconciliation_is_now(status=RUNNING)

        scene.meanwhile = [moves] * 800
        comes_to(scene)
        assert scene.berth("reconcile").exit_code == ExitCode.OK
        assert sum(scene.pauses) > timedelta(minutes=25).total_seconds()

    def test_polls_respect_retry_after(self, scene: Scene) -> None:
        scene.meanwhile = [
            lambda: scene.api.interjections.append(ApiAnswer(429, {"message": "Too Many Requests"}, retry_after=7))
        ]
        scene.meanwhile.append(lambda: None)
        comes_to(scene)
        result = scene.berth("reconcile")
        assert (result.exit_code, scene.pauses) == (ExitCode.OK, [2, 7, 2])

    @pytest.mark.parametrize("when", ["asked for", "looked at"])
    def test_denied_credentials_are_reported_whenever_they_are_denied(self, scene: Scene, when: str) -> None:
        def revoke() -> None:
            scene.api.interjections = [ApiAnswer(403, {"message": "Forbidden"})]

        if when == "asked for":
            revoke()
        scene.meanwhile = [revoke]
        result = scene.berth("reconcile", exits=ExitCode.NO_CONTROL_PLANE)
        assert "Error: The API answered 403: Forbidden." in result.stderr
