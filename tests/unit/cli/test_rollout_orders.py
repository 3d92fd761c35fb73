"""`berth rollout status`, `pause`, `resume`, `abort`, `approve` and `retry`."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from orchestrator.cli.errors import ExitCode
from orchestrator.common.tenant_ids import TenantId
from orchestrator.rollouts.records import Result, RolloutStatus, Stage, StageStatus
from orchestrator.tenants.history import UnreadableEntry
from tests.fakes import NOON, QUEUE_TABOO, execution_arn
from tests.unit.cli.conftest import Scene
from tests.unit.cli.fake_api import ADA

TENANTS = [TenantId.parse(f"t{number}") for number in range(10)]
MORE = TenantId.parse("more")
ORDERS = ["pause", "resume", "abort", "approve"]


def confirmed(verb: str) -> list[str]:
    """The option that an order needs without a terminal."""
    return ["--yes"] if verb == "abort" else []


NAMED = {"approve": ["--stage", "2"]}
"""The options that avoid a lookup."""


@pytest.fixture
def underway(scene: Scene) -> Scene:
    """A rollout of ten tenants in three stages, of which the second is running."""
    for tenant in TENANTS:
        scene.has(tenant)
    scene.api.clock.advance(NOON - scene.api.clock.now())
    scene.berth("rollout", "start", "--stages", "1,5,rest", "--approval", "--tolerate", "3")
    api = scene.api
    api.is_now(status=RolloutStatus.RUNNING, execution=execution_arn(api.newest.name), current_stage=2)
    api.stage_is_now(1, status=StageStatus.DONE, succeeded=1)
    api.stage_is_now(2, status=StageStatus.RUNNING, approved_by="ada", in_flight=2)
    return scene


@pytest.fixture
def older(underway: Scene) -> str:
    """The rollout's id; a dry run is newer than it."""
    older = underway.api.newest.id
    underway.api.clock.advance(timedelta(minutes=1))
    underway.berth("rollout", "plan", "--no-wait")
    underway.api.asked.clear()
    return older


def another(scene: Scene) -> str:
    """Start a rollout of one more tenant, and return the rollout's id."""
    scene.has(MORE)
    scene.api.clock.advance(NOON + timedelta(minutes=1) - scene.api.clock.now())
    scene.berth("rollout", "start", "--tenant", MORE.value)
    scene.api.asked.clear()
    return scene.api.newest.id


def stage_of(scene: Scene, number: int) -> Stage:
    stage = scene.api.ledger.stage(scene.api.newest.id, number)
    assert stage is not None
    return stage


class TestStatus:
    def test_an_unreadable_row_of_history_is_shown_as_altered(
        self, underway: Scene, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        orders = [*underway.api.ledger.orders(underway.api.newest.id), UnreadableEntry(None)]
        monkeypatch.setattr(underway.api.ledger, "orders", lambda _rollout: orders)
        result = underway.berth("rollout", "status", exits=ExitCode.OK)
        assert result.stdout.count("ALTERED: somebody has overwritten") == 1
        *others, unreadable = json.loads(underway.berth("rollout", "status", "--json").stdout)["history"]
        assert (unreadable["order"], unreadable["altered"]) == (None, True)
        assert [entry["altered"] for entry in others] == [False] * len(others)

    def test_many_failed_tenants_are_not_all_named(self, underway: Scene) -> None:
        for tenant in TENANTS[1:9]:
            underway.api.came_to(tenant, Result.FAILED, stage=2, cause=QUEUE_TABOO)
        assert "       t1, t2, t3, t4, t5 and 3 more\n" in underway.berth("rollout", "status").stdout

    def test_the_newest_is_shown_even_if_it_is_a_dry_run(self, underway: Scene, older: str) -> None:
        result = underway.berth("rollout", "status")
        assert result.stdout.startswith(f"rollout:    {underway.api.newest.id} (dry run)\n")
        assert underway.api.asked[0] == "GET /rollouts?limit=1"
        assert underway.berth("rollout", "status", older).stdout.startswith(f"rollout:    {older}\n")


class TestOrders:
    @pytest.mark.parametrize("verb", ORDERS)
    def test_orders_go_to_the_only_rollout_and_never_to_a_dry_run(self, underway: Scene, older: str, verb: str) -> None:
        underway.berth("rollout", verb, *confirmed(verb), *NAMED.get(verb, []))
        assert underway.api.asked == ["GET /rollouts?open=true", f"POST /rollouts/{older}/{verb}"]

    @pytest.mark.parametrize("verb", ["pause", "abort"])
    def test_several_rollouts_can_be_meant(self, underway: Scene, verb: str) -> None:
        first = underway.api.newest.id
        second = another(underway)
        result = underway.berth("rollout", verb, *confirmed(verb), exits=ExitCode.REFUSED)
        assert result.stderr.splitlines() == [
            "Error: There are 2 rollouts that this can be meant for. Name one of them.",
            f"berth rollout {verb} {second}   (PENDING, to 0.2.0, 0 of 1 tenant moved, started 2026-11-16 12:01:00 UTC "
            "by ada)",
            f"berth rollout {verb} {first}   (RUNNING stage 2 of 3, to 0.2.0, 1 of 10 tenants moved, started "
            "2026-11-16 12:00:00 UTC by ada)",
        ]
        assert [each for each in underway.api.asked if each.endswith(f"/{verb}")] == []

    def test_an_order_goes_to_the_rollout_that_it_can_change(self, underway: Scene) -> None:
        first = underway.api.newest.id
        second = another(underway)
        underway.berth("rollout", "pause", second)
        assert underway.berth("rollout", "pause").stdout.startswith(f"Rollout {first} is paused.")
        assert "2 rollouts that this can be meant for" in underway.berth("rollout", "resume").stderr
        underway.berth("rollout", "resume", first)
        assert underway.berth("rollout", "resume").stdout == f"Rollout {second} is resumed.\n"

    def test_an_approval_goes_to_the_rollout_whose_stage_awaits_it(self, underway: Scene) -> None:
        first = underway.api.newest.id
        underway.api.is_now(current_stage=3)
        underway.api.stage_is_now(3, status=StageStatus.AWAITING_APPROVAL)
        another(underway)
        result = underway.berth("rollout", "approve", "--stage", "3", exits=ExitCode.OK)
        assert result.stdout == f"Rollout {first}: stage 3 is approved. It starts now.\n"

    @pytest.mark.parametrize("verb", ["pause", "resume", "abort", "approve"])
    def test_no_rollout_can_be_meant(self, underway: Scene, verb: str) -> None:
        underway.api.is_now(status=RolloutStatus.SUCCEEDED)
        result = underway.berth("rollout", verb, *confirmed(verb), exits=ExitCode.GONE)
        assert result.stderr.startswith(f"Error: There is no rollout to {verb}: none is running, paused or halted.")

    @pytest.mark.usefixtures("older")
    @pytest.mark.parametrize("verb", ORDERS)
    def test_orders_go_to_the_named_rollout(self, underway: Scene, verb: str) -> None:
        named = underway.api.newest.id
        underway.berth("rollout", verb, *confirmed(verb), named, *NAMED.get(verb, []))
        assert underway.api.asked == [f"POST /rollouts/{named}/{verb}"]

    @pytest.mark.parametrize("verb", ORDERS)
    def test_there_is_no_rollout(self, scene: Scene, verb: str) -> None:
        scene.has()
        scene.berth("rollout", "plan", "--no-wait")
        result = scene.berth("rollout", verb, exits=ExitCode.GONE)
        assert result.stderr.startswith(f"Error: There is no rollout to {verb}: ")

    def test_many_dry_runs_are_skipped(self, underway: Scene) -> None:
        older = underway.api.newest.id
        for _ in range(21):
            underway.api.clock.advance(timedelta(seconds=1))
            underway.berth("rollout", "plan", "--no-wait")
        assert underway.berth("rollout", "pause").stdout.startswith(f"Rollout {older} is paused.")

    def test_pause_a_paused_rollout(self, underway: Scene) -> None:
        underway.berth("rollout", "pause")
        result = underway.berth("rollout", "pause", exits=ExitCode.OK)
        assert (result.stdout, result.stderr) == (f"Rollout {underway.api.newest.id} is already paused.\n", "")

    def test_a_resume_says_how_to_watch(self, underway: Scene) -> None:
        name = underway.api.newest.id
        underway.berth("rollout", "pause")
        result = underway.berth("rollout", "resume", exits=ExitCode.OK)
        assert result.stdout == f"Rollout {name} is resumed.\n"
        assert result.stderr.splitlines()[0] == f"Watch it: berth rollout watch {name}"
        assert underway.api.newest.status is RolloutStatus.RUNNING

    def test_abort_a_rollout_without_an_execution(self, underway: Scene) -> None:
        underway.api.rollout_executions.running.clear()
        underway.api.stage_is_now(2, in_flight=0)
        result = underway.berth("rollout", "abort", "--yes")
        assert result.stdout == f"Rollout {underway.api.newest.id} is aborted.\n"

    @pytest.mark.parametrize("typed", ["y\n", "no\n", "\n", ""])
    def test_without_confirmation_nothing_is_aborted(self, underway: Scene, typed: str) -> None:
        underway.typed = typed
        result = underway.berth("rollout", "abort", "--json", exits=ExitCode.REFUSED)
        assert json.loads(result.stdout)["exitCode"] == ExitCode.REFUSED
        assert underway.api.newest.status is RolloutStatus.RUNNING

    def test_a_stage_approved_during_a_pause_begins_after_it(self, underway: Scene) -> None:
        name = underway.api.newest.id
        underway.api.is_now(current_stage=3, status=RolloutStatus.PAUSED)
        underway.api.stage_is_now(3, status=StageStatus.AWAITING_APPROVAL)
        result = underway.berth("rollout", "approve", "--stage", "3")
        assert result.stdout == f"Rollout {name}: stage 3 is approved. It starts when the rollout is resumed.\n"
        assert result.stderr.splitlines()[0] == f"Resume it: berth rollout resume {name}"

    @pytest.mark.parametrize("status", [RolloutStatus.RUNNING, RolloutStatus.PAUSED])
    def test_on_a_terminal_the_waiting_stage_is_confirmed(self, underway: Scene, status: RolloutStatus) -> None:
        underway.api.is_now(current_stage=3, status=status)
        underway.api.stage_is_now(3, status=StageStatus.AWAITING_APPROVAL)
        underway.typed = "yes\n"
        result = underway.berth("rollout", "approve", exits=ExitCode.OK)
        question = f"This starts stage 3 of rollout {underway.api.newest.id}: 4 tenants. Type yes to continue:"
        assert question in result.stderr
        assert "stage 3 is approved" in result.stdout

    def test_without_confirmation_nothing_is_approved(self, underway: Scene) -> None:
        underway.api.is_now(current_stage=3)
        underway.api.stage_is_now(3, status=StageStatus.AWAITING_APPROVAL)
        underway.typed = "no\n"
        assert underway.berth("rollout", "approve").exit_code == ExitCode.REFUSED
        assert not [each for each in underway.api.asked if each.endswith("/approve")]

    def test_a_repeated_approval_approves_one_stage(self, underway: Scene) -> None:
        underway.api.is_now(current_stage=3)
        underway.api.stage_is_now(3, status=StageStatus.AWAITING_APPROVAL)
        result = underway.berth("rollout", "approve", "--stage", "2", exits=ExitCode.OK)
        assert result.stdout == f"Rollout {underway.api.newest.id}: stage 2 is already approved.\n"

    def test_only_the_waiting_stage_can_be_approved(self, underway: Scene) -> None:
        underway.api.is_now(current_stage=3)
        underway.api.stage_is_now(3, status=StageStatus.AWAITING_APPROVAL)
        result = underway.berth("rollout", "approve", "--stage", "1", exits=ExitCode.REFUSED)
        assert "stage 1 does not await approval. Stage 3 does." in result.stderr

    @pytest.mark.parametrize("typed", [None, "yes\n"])
    def test_there_is_nothing_to_approve(self, underway: Scene, typed: str | None) -> None:
        name = underway.api.newest.id
        underway.api.stage_is_now(2, status=StageStatus.BAKING, baked_until=NOON + timedelta(hours=1))
        underway.typed = typed
        result = underway.berth("rollout", "approve", "--json", exits=ExitCode.REFUSED)
        assert result.stderr == (
            f"Error: Rollout {name}: no stage awaits approval. The rollout is BAKING until 13:00 UTC. See: "
            f"berth rollout status {name}\n"
        )
        assert json.loads(result.stdout)["exitCode"] == ExitCode.REFUSED

    @pytest.mark.parametrize("given", ["The release is bad.", "The release is bad"])
    def test_abort_closes_a_halted_rollout(self, underway: Scene, given: str) -> None:
        underway.api.is_now(status=RolloutStatus.HALTED, reason="An alarm went off.")
        result = underway.berth("rollout", "abort", "--yes", "--reason", given, exits=ExitCode.OK)
        assert result.stdout.startswith(f"Rollout {underway.api.newest.id} is aborted.")
        reason = underway.api.newest.reason
        assert reason == f"Closed by {ADA}: The release is bad. An alarm went off."
        assert underway.berth("rollout", "resume").exit_code == ExitCode.GONE

    def test_abort_an_aborted_rollout(self, underway: Scene) -> None:
        underway.api.is_now(status=RolloutStatus.ABORTED)
        name = underway.api.newest.id
        result = underway.berth("rollout", "abort", name, "--yes", exits=ExitCode.OK)
        assert (result.stdout, result.stderr) == (f"Rollout {name} is already aborted.\n", "")

    @pytest.mark.parametrize("verb", ["pause", "resume", "abort"])
    def test_an_ended_rollout_is_not_changed(self, underway: Scene, verb: str) -> None:
        underway.api.is_now(status=RolloutStatus.SUCCEEDED)
        result = underway.berth("rollout", verb, underway.api.newest.id, *confirmed(verb), exits=ExitCode.REFUSED)
        assert result.stderr.splitlines()[1].endswith(f"berth rollout status {underway.api.newest.id}")

    @pytest.mark.parametrize("verb", ["pause", "resume", "abort", "retry"])
    def test_an_unknown_rollout(self, scene: Scene, verb: str) -> None:
        assert scene.berth("rollout", verb, *confirmed(verb), "20261116-120000-0a1b").exit_code == ExitCode.GONE


class TestPromote:
    def bakes(self, scene: Scene, seconds: int = 300) -> str:
        spec = replace(stage_of(scene, 2).spec, bake_seconds=seconds)
        until = scene.api.clock.now() + timedelta(seconds=seconds)
        scene.api.stage_is_now(2, status=StageStatus.BAKING, baked_until=until, spec=spec)
        return scene.api.newest.id

    @pytest.mark.parametrize(("seconds", "within"), [(300, "15 s"), (24 * 3600, "12 min")])
    def test_the_rest_of_a_bake_is_skipped(self, underway: Scene, seconds: int, within: str) -> None:
        name = self.bakes(underway, seconds)
        result = underway.berth("rollout", "promote", "--stage", "2", "--reason", "All is well.", exits=ExitCode.OK)
        assert result.stdout == (
            f"Rollout {name}: the bake of stage 2 is over. The rollout continues within {within}.\n"
        )
        assert "berth rollout promote" not in result.stderr, "the bake has ended"
        assert "PROMOTE stage 2 ada      All is well." in underway.berth("rollout", "status").stdout

    def test_an_approval_is_not_passed_without_being_asked_for(self, underway: Scene) -> None:
        underway.api.is_now(current_stage=3)
        underway.api.stage_is_now(3, status=StageStatus.AWAITING_APPROVAL)
        name = underway.api.newest.id
        underway.typed = "yes\n"
        result = underway.berth("rollout", "promote", exits=ExitCode.REFUSED)
        assert f"Rollout {name}: no stage bakes." in result.stderr
        result = underway.berth("rollout", "promote", "--stage", "3", exits=ExitCode.REFUSED)
        assert f"berth rollout approve {name} --stage 3" in result.stderr
        assert stage_of(underway, 3).approved_by is None

    def test_a_stage_that_awaits_approval_starts(self, underway: Scene) -> None:
        underway.api.is_now(current_stage=3)
        underway.api.stage_is_now(3, status=StageStatus.AWAITING_APPROVAL)
        underway.typed = "yes\n"
        result = underway.berth("rollout", "promote", "--approve", exits=ExitCode.OK)
        assert "This ends the wait for approval of stage 3 of rollout" in result.stderr
        assert result.stdout.endswith("the wait for approval of stage 3 is over. It starts now.\n")

    def test_without_a_terminal_the_stage_must_be_named(self, underway: Scene) -> None:
        name = self.bakes(underway)
        result = underway.berth("rollout", "promote", exits=ExitCode.BAD_USAGE)
        assert result.stderr.endswith(f"Name the stage: berth rollout promote {name} --stage 2\n")

    def test_a_paused_rollout_waits_for_the_resume(self, underway: Scene) -> None:
        self.bakes(underway)
        underway.berth("rollout", "pause")
        result = underway.berth("rollout", "promote", "--stage", "2", exits=ExitCode.OK)
        assert result.stdout.endswith("The rollout continues when it is resumed.\n")


class TestChange:
    def test_the_control_planes_maximum_stays(self, underway: Scene) -> None:
        result = underway.berth("rollout", "change", "--concurrency", "51", exits=ExitCode.BAD_USAGE)
        assert "at most 50 tenants at once" in result.stderr


class TestUndo:
    def test_the_halted_rollout_is_undone_without_its_id_and_without_a_bake(self, underway: Scene) -> None:
        underway.api.came_to(TENANTS[0], Result.SUCCEEDED, stage=2, from_version="0.1.0")
        underway.api.table.plant_metadata(replace(underway.api.world.metadata_of(TENANTS[0]), version="0.2.0"))
        underway.api.is_now(status=RolloutStatus.HALTED)
        undone = underway.api.newest.id
        underway.api.clock.advance(timedelta(minutes=1))
        underway.berth("rollout", "start", "--undo", "--reason", "Bad.", exits=ExitCode.OK)
        assert underway.api.newest.spec.undo == undone
        assert [stage.bake_seconds for stage in underway.api.newest.spec.stages] == [0, 0, 0]

    def test_a_rollout_that_was_undone_is_not_to_be_resumed(self, underway: Scene) -> None:
        underway.api.came_to(TENANTS[0], Result.SUCCEEDED, stage=2, from_version="0.1.0")
        underway.api.table.plant_metadata(replace(underway.api.world.metadata_of(TENANTS[0]), version="0.2.0"))
        underway.api.stage_is_now(2, succeeded=1)
        underway.api.is_now(status=RolloutStatus.HALTED)
        undone = underway.api.newest.id
        assert f"berth rollout resume {undone}" in underway.berth("rollout", "status", undone).stderr
        underway.api.clock.advance(timedelta(minutes=1))
        underway.berth("rollout", "start", "--undo", exits=ExitCode.OK)
        status = underway.berth("rollout", "status", undone).stderr
        assert f"berth rollout resume {undone}" not in status
        assert f"Close it: berth rollout abort {undone}" in status

    def test_no_rollout_is_halted(self, underway: Scene) -> None:
        result = underway.berth("rollout", "start", "--undo", exits=ExitCode.GONE)
        assert "No rollout is halted, so --undo needs the id of a rollout." in result.stderr

    def test_several_rollouts_are_halted(self, underway: Scene) -> None:
        underway.api.is_now(status=RolloutStatus.HALTED)
        first = underway.api.newest.id
        second = another(underway)
        underway.api.is_now(status=RolloutStatus.HALTED)
        result = underway.berth("rollout", "plan", "--undo", exits=ExitCode.REFUSED)
        assert [line.split()[1] for line in result.stderr.splitlines()[1:]] == [second, first]


class TestRetry:
    def test_several_halted_rollouts_can_be_meant(self, underway: Scene) -> None:
        underway.api.came_to(TENANTS[1], Result.FAILED, stage=2, cause=QUEUE_TABOO)
        underway.api.is_now(status=RolloutStatus.HALTED)
        first = underway.api.newest.id
        second = another(underway)
        underway.api.came_to(MORE, Result.FAILED, cause=QUEUE_TABOO)
        underway.api.is_now(status=RolloutStatus.HALTED)
        result = underway.berth("rollout", "retry", exits=ExitCode.REFUSED)
        assert [line.split()[3] for line in result.stderr.splitlines()[1:]] == [second, first]

    def test_a_retry_without_failures_is_refused(self, underway: Scene) -> None:
        underway.api.is_now(status=RolloutStatus.SUCCEEDED)
        assert underway.berth("rollout", "retry").exit_code == ExitCode.REFUSED
