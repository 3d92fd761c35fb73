"""`berth adopt`: starting, waiting, continuing, and the output."""

from __future__ import annotations

import json
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from orchestrator.cli.errors import ExitCode
from orchestrator.cli.reconcile import STALLED_AFTER
from orchestrator.client.transport import ApiAnswer
from orchestrator.reconciling.records import Coverage, Finding, Kind, ReconciliationStatus, Remedy
from tests.fakes.reconciling import counted
from tests.unit.cli.conftest import Scene

DONE, INCOMPLETE, RUNNING = (
    ReconciliationStatus.DONE,
    ReconciliationStatus.INCOMPLETE,
    ReconciliationStatus.RUNNING,
)
STACK = "arn:aws:cloudformation:eu-west-1:000000000000:stack/tenant-acme/1"
DETAIL = f"READY at version 0.1.12, stack {STACK}"
FOUND = Finding(Kind.UNLISTED, "acme", DETAIL, Remedy.ADOPT)
ADOPTED = Finding(Kind.UNLISTED, "acme", DETAIL, Remedy.ADOPT, result="listed as READY", repaired=True)
CHANGED = Finding(Kind.UNLISTED, "globex", "READY", Remedy.ADOPT, result="the tenant has changed meanwhile.")
ADVICE = "Deploy with a prefix of that name in berth:legacyStackPrefixes, then repeat the adoption: berth adopt"
OUT_OF_REACH = Finding(Kind.UNLISTED, "initech", "its stack seems to be old-initech", Remedy.NONE, ADVICE)


def is_now(scene: Scene, *findings: Finding, rows: int = 40, **changes: Any) -> None:
    scene.api.reconciliation_is_now(
        coverage=Coverage(rows=rows, tenants=len(findings)),
        counts=counted(findings),
        findings=findings,
        repaired=sum(finding.repaired for finding in findings),
        **changes,
    )


def comes_to(scene: Scene, *findings: Finding, rows: int = 40, **changes: Any) -> None:
    """Let the function record this while the command sleeps."""
    scene.meanwhile.append(partial(is_now, scene, *findings, rows=rows, **{"status": DONE} | changes))


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]


@pytest.mark.parametrize(
    ("options", "body"),
    [
        ([], None),
        (["--dry-run"], {"dryRun": True}),
        (["--reason", "Ticket 4711"], {"reason": "Ticket 4711"}),
    ],
    ids=str,
)
def test_the_request_has_the_options(scene: Scene, options: list[str], body: dict[str, Any] | None) -> None:
    comes_to(scene)
    assert scene.berth("adopt", *options).exit_code == ExitCode.OK
    name = scene.api.last_reconciliation.id
    assert scene.api.asked == ["POST /adoptions", *[f"GET /adoptions/{name}"] * 2]
    assert scene.api.sent[0] == body
    assert scene.api.last_reconciliation.spec.adopt


def test_no_tenant_to_adopt(scene: Scene) -> None:
    comes_to(scene)
    result = scene.berth("adopt")
    assert (result.exit_code, result.stdout) == (ExitCode.OK, "There is no tenant to adopt: read 40 rows.\n")


def test_adopted_tenants_are_shown_with_the_next_step(scene: Scene) -> None:
    comes_to(scene, ADOPTED)
    result = scene.berth("adopt", exits=ExitCode.OK)
    shown = lines(result.stdout)
    assert shown[0] == "Tenant Finding, and what was done"
    assert "acme" in shown[1]
    assert "adopted: listed as READY" in result.stdout
    assert shown[-2:] == ["Read 40 rows. Found 1 tenant that Berth has not listed.", "Adopted 1, not adopted 0."]
    assert "berth rollout plan" in result.stderr


def test_a_dry_run_shows_what_would_be_done_and_that_nothing_was_changed(scene: Scene) -> None:
    comes_to(scene, FOUND)
    result = scene.berth("adopt", "--dry-run", exits=ExitCode.ATTENTION)
    assert "would be adopted" in result.stdout
    assert lines(result.stdout)[-1] == "This was a dry run: nothing was changed."
    assert result.stderr.splitlines()[-1] == "Adopt them: berth adopt"


def test_a_tenant_that_cannot_be_adopted_is_shown_with_advice(scene: Scene) -> None:
    comes_to(scene, ADOPTED, CHANGED, OUT_OF_REACH)
    result = scene.berth("adopt", exits=ExitCode.ATTENTION)
    assert "not adopted: the tenant has changed meanwhile." in result.stdout
    assert "not adopted: see below" in result.stdout
    assert lines(result.stdout)[-4:] == ["Adopted 1, not adopted 2.", "", "To be done by hand", f"initech: {ADVICE}"]


def test_progress_is_shown_while_waiting(scene: Scene) -> None:
    scene.meanwhile = [
        partial(is_now, scene, rows=100, status=RUNNING),
        partial(is_now, scene, FOUND, rows=1, status=RUNNING),
    ]
    comes_to(scene)
    result = scene.berth("adopt")
    assert result.stderr.splitlines() == [
        f"Adoption {scene.api.last_reconciliation.id} is about to start",
        "Read 100 rows: 0 tenants found",
        "Read 1 row: 1 tenant found",
    ]


def test_it_continues_until_the_whole_table_was_read_and_shows_all_tenants(scene: Scene) -> None:
    """An adoption reports as many tenants as fit its row, and leaves the rest to the next adoption."""
    more = Finding(Kind.UNLISTED, "globex", "READY", Remedy.ADOPT, result="listed as READY", repaired=True)
    comes_to(scene, ADOPTED, status=INCOMPLETE, cursor="abc", reason="There are more rows to scan.")
    comes_to(scene, more, rows=2)
    result = scene.berth("adopt", "--json", "--reason", "why", exits=ExitCode.OK)
    shown = json.loads(result.stdout)
    assert [each["tenantId"] for each in shown["tenants"]] == ["acme", "globex"]
    assert (shown["status"], shown["rows"], shown["total"], shown["adopted"], shown["cursor"]) == (
        "DONE",
        42,
        2,
        2,
        None,
    )
    bodies = [body for body in scene.api.sent if body is not None]
    assert bodies == [{"reason": "why"}, {"cursor": "abc", "reason": "why"}]


def test_a_tenant_that_two_parts_report_is_shown_once(scene: Scene) -> None:
    """If time runs out within a part, that part is read again."""
    comes_to(scene, FOUND, status=INCOMPLETE, cursor="abc", reason="There was not enough time.")
    comes_to(scene, FOUND, OUT_OF_REACH, rows=2)
    shown = json.loads(scene.berth("adopt", "--dry-run", "--json").stdout)
    assert ([each["tenantId"] for each in shown["tenants"]], shown["total"]) == (["acme", "initech"], 2)


def test_it_stops_if_the_cursor_does_not_advance(scene: Scene) -> None:
    comes_to(scene, ADOPTED, status=INCOMPLETE, cursor="abc", reason="There are more rows to scan.")
    comes_to(scene, status=INCOMPLETE, cursor="abc", reason="AWS throttled the requests: Rate exceeded")
    result = scene.berth("adopt", exits=ExitCode.ATTENTION)
    assert lines(result.stdout)[0].startswith("Incomplete: AWS throttled the requests: Rate exceeded")
    assert scene.api.asked.count("POST /adoptions") == 2


def test_waiting_ends_at_the_timeout(scene: Scene) -> None:
    scene.meanwhile = [partial(is_now, scene, ADOPTED, status=RUNNING)] * 3
    result = scene.berth("adopt", "--timeout", "5", exits=ExitCode.NOT_READY)
    assert (
        result.stderr.splitlines()[-1] == "The adoption is still running. Run this again to see the rest: berth adopt"
    )


def test_an_adoption_whose_function_died_is_reported(scene: Scene) -> None:
    scene.meanwhile = [
        partial(is_now, scene, status=RUNNING),
        lambda: scene.api.clock.advance(STALLED_AFTER + timedelta(seconds=1)),
    ]
    result = scene.berth("adopt", exits=ExitCode.ATTENTION)
    assert "its function has died" in result.stderr


def test_a_refusal_of_the_api_is_reported(scene: Scene) -> None:
    scene.api.interjections = [ApiAnswer(403, {"message": "Forbidden"})]
    assert scene.berth("adopt").exit_code == ExitCode.NO_CONTROL_PLANE
