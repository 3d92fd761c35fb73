"""`berth rollout watch`, `start --watch` and `plan`: a rollout is watched to its end."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import timedelta

import pytest

from orchestrator.api import rollout_models
from orchestrator.cli.errors import ExitCode
from orchestrator.cli.progress import REMIND_SECONDS
from orchestrator.cli.release_changes import MAX_COMPARED
from orchestrator.cli.rollout_watching import BUSY_RETRY_SECONDS
from orchestrator.client.transport import ApiAnswer
from orchestrator.common.tenant_ids import TenantId
from orchestrator.rollouts.records import Result, RolloutStatus, StageStatus
from orchestrator.tenants.records import RootCause
from orchestrator.tenants.reviews import Move, Review, shared_parameters
from tests.fakes import NAMES, NOON, QUEUE_TABOO
from tests.present import present
from tests.unit.cli.conftest import TERMINAL, Scene

TENANTS = [TenantId.parse(f"t{number}") for number in range(8)]
LOST = "The update would replace or remove the inbound queue (InboundQueue)."


@pytest.fixture
def underway(scene: Scene) -> Scene:
    """A rollout of eight tenants in two stages, the first of which is running."""
    for tenant in TENANTS:
        scene.has(tenant)
    scene.api.clock.advance(NOON - scene.api.clock.now())
    scene.berth("rollout", "start", "--stages", "2,rest", "--bake", "60", "--tolerate", "50%")
    scene.api.is_now(status=RolloutStatus.RUNNING)
    scene.api.stage_is_now(1, status=StageStatus.RUNNING, started_at=NOON, in_flight=2)
    scene.api.asked.clear()
    return scene


def done(scene: Scene, number: int, stage: int = 1, result: Result = Result.SUCCEEDED) -> Callable[[], None]:
    cause = QUEUE_TABOO if result is Result.FAILED else None
    return lambda: scene.api.came_to(TENANTS[number], result, stage=stage, cause=cause)


def ends(scene: Scene, status: RolloutStatus, reason: str = "") -> Callable[[], None]:
    ended_at = NOON + timedelta(seconds=200)
    return lambda: scene.api.is_now(status=status, reason=reason, ended_at=ended_at)


def awaits_approval(scene: Scene) -> None:
    scene.api.stage_is_now(1, status=StageStatus.DONE, in_flight=0)
    scene.api.is_now(current_stage=2)
    scene.api.stage_is_now(2, status=StageStatus.AWAITING_APPROVAL)


def plain(text: str) -> str:
    """Every frame, also those that were drawn over."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r", "\n")


class TestInALog:
    def test_every_change_is_a_line(self, underway: Scene) -> None:
        api, name = underway.api, underway.api.newest.id

        def bakes() -> None:
            until = NOON + timedelta(seconds=70)
            api.stage_is_now(1, status=StageStatus.BAKING, in_flight=0, baked_until=until)

        def next_stage() -> None:
            api.stage_is_now(1, status=StageStatus.DONE)
            api.is_now(current_stage=2)
            api.stage_is_now(2, status=StageStatus.RUNNING, in_flight=4)

        def more_begin() -> None:
            api.stage_is_now(2, in_flight=5)

        underway.meanwhile = [
            done(underway, 0),
            done(underway, 1),
            bakes,
            lambda: None,
            next_stage,
            more_begin,
            done(underway, 2, 2, Result.FAILED),
            ends(underway, RolloutStatus.ABORTED, "Aborted by an operator."),
        ]
        result = underway.berth("rollout", "watch", exits=ExitCode.FAILED)
        said = f"Rollout {name} RUNNING: stage"
        assert result.stderr.splitlines()[:6] == [
            f"{said} 1 of 2 RUNNING, 0 of 2 done, 2 running, 0 s",
            # Seven are left, one in two seconds; and a minute of baking.
            f"{said} 1 of 2 RUNNING, 1 of 2 done, 2 running, 2 s, about 1 min 14 s left",
            f"{said} 1 of 2 RUNNING, 2 of 2 done, 2 running, 4 s, about 1 min 12 s left",
            f"{said} 1 of 2 BAKING until 12:01:10 UTC, 2 of 2 done, 6 s",
            f"{said} 2 of 2 RUNNING, 0 of 6 done, 4 running, 10 s",
            f"{said} 2 of 2 RUNNING, 1 of 6 done, 1 failed, 5 running, 14 s, about 20 s left",
        ]
        assert underway.pauses == [2] * 8

    def test_without_changes_a_line_is_repeated(self, underway: Scene) -> None:
        underway.meanwhile = [*[lambda: None] * 20, ends(underway, RolloutStatus.SUCCEEDED)]
        lines = underway.berth("rollout", "watch").stderr.splitlines()
        assert [line.rpartition(", ")[2] for line in lines[:2]] == ["0 s", f"{REMIND_SECONDS} s"]

    def test_the_newest_is_watched_by_default(self, underway: Scene) -> None:
        name = underway.api.newest.id
        ends(underway, RolloutStatus.SUCCEEDED)()
        underway.berth("rollout", "watch")
        underway.berth("rollout", "watch", name)
        assert underway.api.asked == ["GET /rollouts?limit=1", f"GET /rollouts/{name}", f"GET /rollouts/{name}"]

    def test_polls_respect_retry_after(self, underway: Scene) -> None:
        seen = underway.api.rollout(underway.api.newest.id).body
        underway.api.interjections = [ApiAnswer(200, seen, retry_after=9), ApiAnswer(200, seen, retry_after=0.1)]
        underway.meanwhile = [lambda: None, ends(underway, RolloutStatus.SUCCEEDED)]
        underway.berth("rollout", "watch", underway.api.newest.id)
        assert underway.pauses == [9, 1]


class TestAWithdrawnRelease:
    """Nothing moves to it any more, so no command is shown that would be refused."""

    @pytest.fixture
    def withdrawn(self, underway: Scene) -> Scene:
        done(underway, 0)()
        done(underway, 1, result=Result.FAILED)()
        underway.berth("release", "withdraw", "0.2.0", "--yes", exits=ExitCode.OK)
        ends(underway, RolloutStatus.HALTED)()
        return underway

    @pytest.mark.parametrize("command", ["watch", "status"])
    def test_a_halted_rollout_is_undone_or_closed(self, withdrawn: Scene, command: str) -> None:
        name = withdrawn.api.newest.id
        assert withdrawn.berth("rollout", command, name).stderr.splitlines()[-3:] == [
            "",
            f"Move the tenants back: berth rollout start --undo {name}",
            f"Close it: berth rollout abort {name}",
        ]

    def test_nothing_is_moved_to_it_after_an_abort(self, withdrawn: Scene) -> None:
        name = withdrawn.api.newest.id
        result = withdrawn.berth("rollout", "abort", name, "--yes", exits=ExitCode.OK)
        assert result.stderr.splitlines()[-1] == f"Move the tenants back: berth rollout start --undo {name}"
        assert "remaining" not in result.stderr
        assert "retry" not in result.stderr

    def test_reinstated_it_is_continued(self, withdrawn: Scene) -> None:
        withdrawn.berth("release", "reinstate", "0.2.0", exits=ExitCode.OK)
        name = withdrawn.api.newest.id
        assert f"berth rollout resume {name}\n" in withdrawn.berth("rollout", "status", name).stderr


def test_an_undo_does_not_offer_its_own_undo_and_an_undone_rollout_is_not_undone_again(underway: Scene) -> None:
    underway.api.upgrade(TENANTS[0], "0.2.0")
    underway.api.begin()
    underway.api.succeed()
    underway.api.came_to(TENANTS[0], Result.SUCCEEDED, from_version="0.1.0")
    ends(underway, RolloutStatus.HALTED)()
    undone = underway.api.newest.id
    assert f"berth rollout start --undo {undone}\n" in underway.berth("rollout", "status", undone).stderr
    underway.api.clock.advance(timedelta(minutes=1))
    underway.berth("rollout", "start", "--undo", undone, exits=ExitCode.OK)
    undo = underway.api.newest.id
    assert undo != undone
    underway.api.is_now(status=RolloutStatus.SUCCEEDED)
    assert "--undo" not in underway.berth("rollout", "status", undo).stderr
    assert "--undo" not in underway.berth("rollout", "status", undone).stderr
    assert "--undo" not in underway.berth("rollout", "abort", undone, "--yes", exits=ExitCode.OK).stderr


class TestAnOperatorIsAwaited:
    def test_an_approved_stage_is_watched(self, underway: Scene) -> None:
        awaits_approval(underway)
        underway.api.stage_is_now(2, approved_by="ada")
        underway.meanwhile = [ends(underway, RolloutStatus.SUCCEEDED)]
        result = underway.berth("rollout", "watch", exits=ExitCode.OK)
        assert "stage 2 of 2 APPROVED" in result.stderr

    @pytest.mark.parametrize("paused", [True, False])
    def test_on_a_terminal_the_watch_waits_for_approval(self, underway: Scene, paused: bool) -> None:
        underway.typed = ""
        underway.environment |= TERMINAL
        if paused:
            underway.api.is_now(status=RolloutStatus.PAUSED)
        else:
            awaits_approval(underway)
        underway.meanwhile = [lambda: None, ends(underway, RolloutStatus.SUCCEEDED)]
        result = underway.berth("rollout", "watch", exits=ExitCode.OK)
        command = f"berth rollout {'resume' if paused else 'approve'} {underway.api.newest.id}"
        assert command in plain(result.stderr)

    def test_an_abort_is_watched_to_its_end(self, underway: Scene) -> None:
        underway.api.is_now(status=RolloutStatus.ABORTING)
        underway.meanwhile = [ends(underway, RolloutStatus.ABORTED)]
        assert underway.berth("rollout", "watch").exit_code == ExitCode.FAILED
        assert underway.pauses == [2]


class TestOnATerminal:
    def test_a_bar_for_each_stage(self, underway: Scene) -> None:
        underway.typed = ""
        underway.environment |= TERMINAL
        underway.meanwhile = [
            done(underway, 0),
            done(underway, 1, result=Result.FAILED),
            ends(underway, RolloutStatus.HALTED, "Too many."),
        ]
        result = underway.berth("rollout", "watch", exits=ExitCode.FAILED)
        shown = plain(result.stderr)
        name = underway.api.newest.id
        assert f"Rollout {name} to 0.2.0: RUNNING, 0 s" in shown
        assert f"Rollout {name} to 0.2.0: RUNNING, 2 s, about 1 min 14 s left" in shown
        assert f"Rollout {name} to 0.2.0: HALTED" in shown
        assert "━" in shown
        rows = [" ".join(line.replace("━", "").replace("╸", "").split()) for line in shown.splitlines()]
        assert "1 0/2 2 of 12 RUNNING" in rows
        assert "2 0/6 WAITING" in rows
        assert any("1 2/2 1 (0) 2 of 12 RUNNING" in row for row in rows)

    def test_throttling_is_shown_above_the_bars(self, underway: Scene) -> None:
        underway.typed = ""
        underway.environment |= TERMINAL

        def busy() -> None:
            underway.api.interjections = [ApiAnswer(503, {"detail": "Rate exceeded"})] * 2

        underway.meanwhile = [busy, lambda: None, lambda: None, ends(underway, RolloutStatus.SUCCEEDED)]
        result = underway.berth("rollout", "watch", exits=ExitCode.OK)
        assert plain(result.stderr).count("try again later (503): Rate exceeded") == 1


class TestTrouble:
    def test_an_interrupt_ends_the_watching_only(self, underway: Scene) -> None:
        underway.trouble_asleep = KeyboardInterrupt()
        result = underway.berth("rollout", "watch", exits=ExitCode.INTERRUPTED)
        assert result.stderr.endswith(
            f"No longer watching. The rollout continues. See: berth rollout status {underway.api.newest.id}\n"
        )
        assert underway.api.newest.status is RolloutStatus.RUNNING

    def test_a_throttled_request_is_retried_for_minutes(self, underway: Scene) -> None:
        busy = ApiAnswer(503, {"detail": "Rate exceeded"})
        underway.meanwhile = [lambda: underway.api.interjections.extend([busy] * 1_000)]
        result = underway.berth("rollout", "watch", exits=ExitCode.NOT_READY)
        assert BUSY_RETRY_SECONDS - 2 <= underway.now <= BUSY_RETRY_SECONDS + 2
        assert result.stderr.endswith("Error: Rate exceeded\n")


class TestStartAndWatch:
    @pytest.fixture
    def fleet(self, scene: Scene) -> Scene:
        for tenant in TENANTS:
            scene.has(tenant)
        scene.meanwhile = [ends(scene, RolloutStatus.SUCCEEDED)]
        return scene

    @pytest.mark.parametrize(
        ("someone", "arguments", "watched"),
        [
            (False, [], False),
            (True, [], True),
            (False, ["--watch"], True),
            (True, ["--no-watch"], False),
        ],
    )
    def test_a_started_rollout_is_watched_on_a_terminal_or_on_request(
        self, fleet: Scene, someone: bool, arguments: list[str], watched: bool
    ) -> None:
        fleet.typed = "" if someone else None
        result = fleet.berth("rollout", "start", *arguments, exits=ExitCode.OK)
        assert fleet.pauses == ([2] if watched else [])
        assert ("SUCCEEDED after" in result.stdout) is watched
        assert result.stdout.startswith("rollout:    ")
        assert f"berth rollout abort {fleet.api.newest.id}\n" in result.stderr

    def test_as_json_there_is_one_document(self, fleet: Scene) -> None:
        result = fleet.berth("rollout", "start", "--watch", "--json")
        assert json.loads(result.stdout)["status"] == "SUCCEEDED"

    def test_a_retry_watches_the_rollout_that_it_starts(self, fleet: Scene) -> None:
        fleet.berth("rollout", "start")
        done(fleet, 0, result=Result.FAILED)()
        ends(fleet, RolloutStatus.FAILED)()
        first = fleet.api.newest.id
        fleet.api.clock.advance(timedelta(minutes=1))
        result = fleet.berth("rollout", "retry", "--watch", exits=ExitCode.OK)
        assert f"POST /rollouts/{first}/retry" in fleet.api.asked
        assert f"(retries {first})\n" in result.stdout
        assert "tenants:    1, in 1 stage\n" in result.stdout


REPLACED = "replaces InboundQueue (AWS::SQS::Queue)"


class TestPlan:
    @pytest.fixture
    def fleet(self, scene: Scene) -> Scene:
        for tenant in TENANTS:
            scene.has(tenant)
        scene.has(TenantId.parse("new"), version="0.2.0")
        for version, properties in (("0.1.0", {}), ("0.2.0", {"FifoQueue": True})):
            queue = {"Type": "AWS::SQS::Queue", "Properties": properties}
            scene.api.world.published_templates.templates[version] = json.dumps({"Resources": {"InboundQueue": queue}})
        return scene

    def found(self, scene: Scene, *, lost: str = "") -> Callable[[], None]:
        def found() -> None:
            changes = ["changes InboundQueue (AWS::SQS::Queue)"]
            more = [*changes, "changes Alarm (AWS::CloudWatch::Alarm)"]
            scene.api.came_to(TENANTS[0], Result.SUCCEEDED, changes=changes, from_version="0.1.0")
            scene.api.came_to(TENANTS[1], Result.SUCCEEDED, changes=more, from_version="0.1.0")
            scene.api.came_to(TENANTS[2], Result.UNCHANGED)
            if lost:
                removed = [lost]
                for tenant in TENANTS[3:5]:
                    cause = RootCause(NAMES.stack_of(tenant), "AWS::CloudFormation::Stack", LOST)
                    scene.api.came_to(tenant, Result.FAILED, cause=cause, changes=removed)
            status, reason = (RolloutStatus.FAILED, "2 of 5") if lost else (RolloutStatus.SUCCEEDED, "")
            scene.api.is_now(status=status, reason=reason, ended_at=scene.api.clock.now() + timedelta(seconds=30))

        return found

    def test_a_plan_shows_the_changes(self, fleet: Scene) -> None:
        fleet.meanwhile = [self.found(fleet)]
        result = fleet.berth("rollout", "plan", "--sample", "3", exits=ExitCode.OK)
        assert result.stdout.splitlines() == [
            f"Dry run {fleet.api.newest.id} to 0.2.0: SUCCEEDED after 30 s. "
            "It checked 3 of 8 tenants and changed nothing.",
            "     2 would change",
            "     1 would not change, except for the recorded version",
            "",
            "Skipped",
            "     1 is already at the release: new",
            "",
            "Stages",
            "     1: 1 tenant, at most 50 at once, none may fail, then a bake of 5 min",
            "     2: 1 tenant, at most 50 at once, none may fail, then a bake of 5 min",
            "     3: 6 tenants, at most 50 at once, none may fail",
            "",
            "Changes by the change sets, and the number of tenants with each",
            "     2 changes InboundQueue (AWS::SQS::Queue)",
            "     1 changes Alarm (AWS::CloudWatch::Alarm)",
            "",
            "From 0.1.0 to 0.2.0, by the releases' templates (2 tenants)",
            "  InboundQueue (AWS::SQS::Queue)",
            "    Properties.FifoQueue: none -> true",
        ]
        assert "replace" not in result.stdout, "no change set has said so"
        assert result.stderr.endswith("berth rollout start --to 0.2.0 --concurrency 50\n")

    def test_a_plan_says_whether_the_move_was_reviewed(self, fleet: Scene) -> None:
        origin, target = (present(fleet.api.world.releases.release(version)) for version in ("0.1.0", "0.2.0"))
        tenant = TENANTS[0]
        move = Move(
            origin,
            shared_parameters(fleet.api.world.parameters(tenant, origin)),
            target,
            shared_parameters(fleet.api.world.parameters(tenant, target)),
        )
        fleet.api.world.reviews.keep_review(Review(move.key, "0.1.0", "0.2.0", "a change set", NOON))
        fleet.meanwhile = [self.found(fleet)]
        shown = fleet.berth("rollout", "plan", "--sample", "3", exits=ExitCode.OK).stdout
        assert shown.endswith(
            "  A change set of this move has replaced and removed no queue (2026-11-16 12:00:00 UTC).\n"
        )

    def test_a_plan_without_the_templates(self, fleet: Scene) -> None:
        fleet.api.world.published_templates.templates["0.1.0"] = None
        fleet.meanwhile = [self.found(fleet)]
        shown = fleet.berth("rollout", "plan", exits=ExitCode.OK).stdout
        assert "They cannot be compared, because one of them is not as it was published.\n" in shown

    def test_a_plan_whose_tenants_are_at_versions_that_were_never_published(self, fleet: Scene) -> None:
        def found() -> None:
            for number, tenant in enumerate(TENANTS[:5]):
                changes = ["changes InboundQueue (AWS::SQS::Queue)"]
                fleet.api.came_to(tenant, Result.SUCCEEDED, changes=changes, from_version=f"0.0.{number}")
            fleet.api.is_now(status=RolloutStatus.SUCCEEDED, ended_at=fleet.api.clock.now())

        fleet.meanwhile = [found]
        result = fleet.berth("rollout", "plan", exits=ExitCode.OK)
        assert result.stdout.count("was never published.") == MAX_COMPARED
        assert "There are 2 more moves. To compare others: berth release diff FROM TO\n" in result.stderr

    @pytest.mark.parametrize(
        "lost",
        [
            REPLACED,
            "may replace InboundQueue (AWS::SQS::Queue)",
            "removes InboundQueue (AWS::SQS::Queue)",
        ],
        ids=["replaced", "perhaps", "removed"],
    )
    def test_a_plan_shows_the_failures(self, fleet: Scene, lost: str) -> None:
        fleet.environment |= TERMINAL
        fleet.meanwhile = [self.found(fleet, lost=lost)]
        result = fleet.berth("rollout", "plan", "--all", exits=ExitCode.FAILED)
        shown = plain(result.stdout)
        assert "It checked all 8 tenants" in shown
        assert "     2 would fail\n" in shown
        assert f"     2 berth-tenant-… (AWS::CloudFormation::Stack): {LOST}\n       t3, t4\n" in shown
        red = [plain(line).strip() for line in result.stdout.splitlines() if "31m" in line]
        assert "2 would fail" in red
        assert f"2 {lost}" in red
        assert not any("changes" in line for line in red)

    def test_a_plan_counts_the_failures_per_cause(self, fleet: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(rollout_models, "MAX_FAILURES", 1)
        fleet.meanwhile = [self.found(fleet, lost=REPLACED)]
        result = fleet.berth("rollout", "plan", "--all", exits=ExitCode.FAILED)
        assert "     2 would fail\n" in result.stdout
        assert "Would fail (causes of 1 of 2 tenants)\n     1 berth-tenant-…" in result.stdout

    def test_json_counts_the_results_of_the_sample(self, fleet: Scene) -> None:
        fleet.meanwhile = [self.found(fleet, lost=REPLACED)]
        result = fleet.berth("rollout", "plan", "--json", exits=ExitCode.FAILED)
        assert json.loads(result.stdout)["changes"]["tenants"] == {"FAILED": 2, "SUCCEEDED": 2, "UNCHANGED": 1}

    def test_the_result_of_a_plan_is_shown_again(self, fleet: Scene) -> None:
        fleet.meanwhile = [self.found(fleet, lost=REPLACED)]
        shown = fleet.berth("rollout", "plan").stdout
        again = fleet.berth("rollout", "status")
        assert (again.exit_code, again.stdout) == (ExitCode.OK, shown)
        assert fleet.berth("rollout", "watch").stdout == shown

    def test_an_interrupt_says_where_the_plan_can_be_seen(self, fleet: Scene) -> None:
        fleet.trouble_asleep = KeyboardInterrupt()
        result = fleet.berth("rollout", "plan", exits=ExitCode.INTERRUPTED)
        assert result.stderr.endswith(f"See: berth rollout status {fleet.api.newest.id}\n")
