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
LOOKED_AT_TOLD = "1 unfinished operation, 3 tenants, 4 stacks"
DIFFERS = Finding(Kind.METADATA_DIFFERS, "acme", "the metadata differs from the stack: queue a / b", Remedy.CORRECT)
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


@pytest.mark.parametrize(
    ("options", "body"),
    [
        ([], None),
        (["--dry-run"], {"dryRun": True}),
        (["--detect-drift"], {"detectDrift": True}),
    ],
    ids=str,
)
def test_the_request_has_the_options(scene: Scene, options: list[str], body: dict[str, bool] | None) -> None:
    comes_to(scene)
    assert scene.berth("reconcile", *options).exit_code == ExitCode.OK
    name = scene.api.last_reconciliation.id
    assert scene.api.asked == ["POST /reconciliations", *[f"GET /reconciliations/{name}"] * 2]
    assert scene.api.sent[0] == body


def test_without_differences_one_line_says_what_was_checked(scene: Scene) -> None:
    comes_to(scene)
    result = scene.berth("reconcile", exits=ExitCode.OK)
    assert result.stdout == f"No differences: checked {LOOKED_AT_TOLD}.\n"


def test_with_drift_the_number_of_stacks_is_shown(scene: Scene) -> None:
    comes_to(scene)
    result = scene.berth("reconcile", "--detect-drift")
    assert result.stdout == f"No differences: checked {LOOKED_AT_TOLD}, 0 stacks for drift.\n"


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
    def test_every_finding_is_repaired(self, scene: Scene) -> None:
        comes_to(scene, CORRECTED)
        result = scene.berth("reconcile", exits=ExitCode.OK)
        assert lines(result.stdout) == [
            "Finding          Subject Details, and what was done",
            "metadata-differs acme    the metadata differs from the stack: queue a / b",
            "                         repaired: the metadata now matches the stack",
            "",
            f"Checked {LOOKED_AT_TOLD}. Findings: 1 (1 metadata-differs).",
            "Repaired 1, started an operation for 0, not repaired 0.",
        ]

    def test_findings_to_repair_by_hand_have_advice_that_can_be_copied(self, scene: Scene) -> None:
        comes_to(scene, CORRECTED, DRIFTED)
        result = scene.berth("reconcile", exits=ExitCode.ATTENTION)
        assert "to be done by hand: see below" in result.stdout
        assert lines(result.stdout)[-4:] == [
            "Repaired 1, started an operation for 0, not repaired 1.",
            "",
            "To be done by hand",
            f"globex: {LOOK}",
        ]

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

    def test_started_operations_are_shown_as_running(self, scene: Scene) -> None:
        ordered = Finding(Kind.MISSING_STACK, "acme", "gone", Remedy.CREATE, result="CREATE 0.2.0: arn", ordered=True)
        comes_to(scene, ordered)
        result = scene.berth("reconcile", exits=ExitCode.OK)
        assert "operation started: CREATE 0.2.0: arn" in result.stdout
        assert "Repaired 0, started an operation for 1, not repaired 0.\n" in result.stdout
        assert result.stderr.splitlines()[-1].startswith(
            "The started operations are running. See their results: berth tenant"
        )

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
    def test_a_dry_run_shows_what_would_be_done_and_the_command(self, scene: Scene) -> None:
        comes_to(scene, DIFFERS)
        result = scene.berth("reconcile", "--dry-run", exits=ExitCode.ATTENTION)
        assert lines(result.stdout) == [
            "Finding          Subject Details, and what would be done",
            "metadata-differs acme    the metadata differs from the stack: queue a / b",
            "                         would correct the metadata to match the stack",
            "",
            f"Checked {LOOKED_AT_TOLD}. Findings: 1 (1 metadata-differs).",
            "This was a dry run: nothing was changed.",
        ]
        assert result.stderr.splitlines()[-1] == "Repair what can be repaired: berth reconcile"

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


@pytest.mark.parametrize(
    ("findings", "status", "code"),
    [
        ([], DONE, ExitCode.OK),
        ([CORRECTED], DONE, ExitCode.OK),
        ([DRIFTED], DONE, ExitCode.ATTENTION),
        ([], INCOMPLETE, ExitCode.ATTENTION),
    ],
)
def test_json_is_the_apis_response(
    scene: Scene, findings: list[Finding], status: ReconciliationStatus, code: ExitCode
) -> None:
    comes_to(scene, *findings, status=status)
    result = scene.berth("reconcile", "--json")
    assert result.exit_code == code
    assert json.loads(result.stdout) == scene.api.reconciliation(scene.api.last_reconciliation.id).body


class TestWithoutWaiting:
    def test_it_is_started_and_the_command_to_follow_it_is_shown(self, scene: Scene) -> None:
        result = scene.berth("reconcile", "--no-wait", "--dry-run")
        name = scene.api.last_reconciliation.id
        assert result.exit_code == ExitCode.OK
        assert result.stdout.splitlines() == [
            f"id:         {name}",
            "status:     PENDING",
            "mode:       dry run",
            "requested:  2026-11-16 12:00:00 UTC",
        ]
        assert result.stderr == (f"It runs in the control plane. See its result: berth reconcile --follow {name}\n")
        assert scene.api.asked == ["POST /reconciliations"]

    def test_json_shows_the_pending_reconciliation(self, scene: Scene) -> None:
        shown = json.loads(scene.berth("reconcile", "--no-wait", "--json").stdout)
        assert (shown["reconciliationId"], shown["status"]) == (scene.api.last_reconciliation.id, "PENDING")


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
        assert "should have begun" not in scene.berth("reconcile", "--timeout", "61").stderr
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
