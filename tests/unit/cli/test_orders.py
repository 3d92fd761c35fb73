"""`berth create`, `upgrade`, `pin`, `retry` and `delete` without --wait."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from orchestrator.cli.errors import ExitCode
from orchestrator.events.unfinished import DELIVERIES, INBOX, MAX_COUNTED
from orchestrator.tenants.messages import Messages
from orchestrator.tenants.records import Operation, Request
from tests.fakes import ACME, NOON, QUEUE
from tests.unit.cli.conftest import Scene
from tests.unit.cli.fake_api import ADA

DLQ = f"{QUEUE.url}-dlq"


def started(scene: Scene) -> tuple[Operation, str, int, Request]:
    attempt, request = scene.api.executions.started[-1]
    return attempt.operation, attempt.version, attempt.number, request


class TestCreate:
    def test_a_new_tenant_at_the_current_release(self, scene: Scene) -> None:
        result = scene.berth("create", "acme", exits=ExitCode.OK)
        assert result.stdout.splitlines() == [
            "tenant:     acme",
            "state:      PROVISIONING",
            "operation:  CREATE 0.2.0, attempt 1",
            f"execution:  {scene.api.run.execution}",
        ]
        assert result.stderr == "The operation is running. See its result: berth tenant acme\n"
        assert started(scene) == (Operation.CREATE, "0.2.0", 1, Request(by=ADA, explicit=True))
        assert scene.pauses == []

    def test_pinned_and_labelled(self, scene: Scene) -> None:
        arguments = ["--version", "0.1.0", "--label", "team=blue", "--label", "note=a=b c", "--label", "empty="]
        result = scene.berth("create", "acme", *arguments, "--json", exits=ExitCode.OK)
        labels = {"team": "blue", "note": "a=b c", "empty": ""}
        assert started(scene) == (
            Operation.CREATE,
            "0.1.0",
            1,
            Request(by=ADA, explicit=True, labels=labels, pin="0.1.0"),
        )
        assert json.loads(result.stdout) == {
            "tenantId": "acme",
            "state": "PROVISIONING",
            "operation": "CREATE",
            "version": "0.1.0",
            "attempt": 1,
            "execution": scene.api.run.execution,
            "retryAfterSeconds": 2,
        }

    def test_a_tenant_that_exists(self, scene: Scene) -> None:
        scene.has()
        result = scene.berth("create", "acme", exits=ExitCode.OK)
        assert (result.stdout, result.stderr) == ("Tenant acme exists, at version 0.1.0.\n", "")

    def test_the_pin_and_labels_of_an_existing_tenant_are_changed(self, scene: Scene) -> None:
        scene.has()
        assert scene.berth("create", "acme", "--version", "0.1.0", "--label", "team=blue").exit_code == ExitCode.OK
        metadata = scene.api.table.metadata(ACME)
        assert (metadata.pinned_version, metadata.labels) == ("0.1.0", {"team": "blue"})
        result = scene.berth("create", "acme", "--unpin", "--json")
        assert json.loads(result.stdout) == {
            "tenantId": "acme",
            "status": "CHANGED",
            "detail": "Tenant acme exists, at version 0.1.0. It is no longer pinned.",
            "before": {"labels": {"team": "blue"}, "pinnedVersion": "0.1.0"},
            "after": {"labels": {"team": "blue"}, "pinnedVersion": None},
        }
        assert json.loads(scene.berth("create", "acme", "--unpin", "--json").stdout)["status"] == "UNCHANGED"
        metadata = scene.api.table.metadata(ACME)
        assert (metadata.pinned_version, metadata.labels) == (None, {"team": "blue"})

    @pytest.mark.parametrize(
        ("arguments", "expected"),
        [
            (["--version", "0.2.0"], "It is now pinned to version 0.2.0. Update it: berth upgrade acme"),
            (["--version", "0.1.0"], "It is now pinned to that version."),
            (["--unpin"], "Its labels and its pin are as requested."),
            (["--label", "team=blue"], "Its labels are recorded."),
            (["--label", "a=b", "--unpin"], "Its labels are recorded. It is no longer pinned."),
        ],
        ids=str,
    )
    def test_changes_of_an_existing_tenant_are_shown(self, scene: Scene, arguments: list[str], expected: str) -> None:
        scene.has()
        result = scene.berth("create", "acme", *arguments)
        assert result.stdout == f"Tenant acme exists, at version 0.1.0. {expected}\n"

    def test_a_version_that_was_never_published(self, scene: Scene) -> None:
        result = scene.berth("create", "acme", "--version", "9.9.9", "--json", exits=ExitCode.BAD_USAGE)
        assert result.stderr == (
            "Error: Tenant acme: version 9.9.9 was never published. See the published versions: berth releases\n"
        )
        assert json.loads(result.stdout)["type"] == "urn:berth:problem:unknown-release"

    @pytest.mark.parametrize(
        "arguments",
        [
            ["--version", "0.1.0", "--unpin"],
            ["--label", "team"],
            ["--label", "=blue"],
            ["--label", "team=blue", "--label", "team=red"],
            ["--timeout", "0"],
        ],
        ids=" ".join,
    )
    def test_invalid_options_are_bad_usage_before_any_request(self, scene: Scene, arguments: list[str]) -> None:
        assert scene.berth("create", "acme", *arguments).exit_code == ExitCode.BAD_USAGE
        assert scene.connected_to == []

    @pytest.mark.parametrize("arguments", [["--version", "newest"], ["--label", "te am=x"]], ids=" ".join)
    def test_input_that_the_api_refuses_is_bad_usage(self, scene: Scene, arguments: list[str]) -> None:
        result = scene.berth("create", "acme", *arguments, exits=ExitCode.BAD_USAGE)
        assert result.stderr.count("\n") == 1
        assert scene.api.executions.started == []


class TestUpgrade:
    def test_to_the_current_release(self, scene: Scene) -> None:
        scene.has()
        result = scene.berth("upgrade", "acme", exits=ExitCode.OK)
        assert "state:      UPDATING\noperation:  UPDATE 0.2.0, attempt 1\n" in result.stdout
        assert started(scene) == (Operation.UPDATE, "0.2.0", 1, Request(by=ADA))

    def test_the_options_are_sent(self, scene: Scene) -> None:
        scene.has(version="0.2.0")
        options = ["--allow-downgrade", "--allow-replacement", "--yes"]
        scene.berth("upgrade", "acme", "--to", "0.1.0", *options, exits=ExitCode.OK)
        allowed = Request(by=ADA, version="0.1.0", allow_downgrade=True, allow_replacement=True)
        assert started(scene) == (Operation.UPDATE, "0.1.0", 1, allowed)

    def test_to_its_present_release(self, scene: Scene) -> None:
        scene.has(version="0.2.0")
        result = scene.berth("upgrade", "acme", "--json", exits=ExitCode.OK)
        assert json.loads(result.stdout) == {
            "tenantId": "acme",
            "status": "UNCHANGED",
            "detail": "Tenant acme is already at version 0.2.0.",
        }

    def test_a_replacement_has_to_be_confirmed(self, scene: Scene) -> None:
        scene.has(version="0.1.0")
        result = scene.berth("upgrade", "acme", "--allow-replacement", exits=ExitCode.BAD_USAGE)
        assert result.stderr == (
            "Error: This may replace or remove queues of tenant acme with every message in them, and its tables, "
            "buckets and other resources with their data. Without a terminal, this has to be confirmed by --yes. "
            "Nothing was done.\n"
        )
        assert scene.api.asked == []

    @pytest.mark.parametrize(("typed", "code"), [("acme\n", ExitCode.OK), ("yes\n", ExitCode.REFUSED)])
    def test_a_replacement_is_confirmed_by_the_tenants_id(self, scene: Scene, typed: str, code: ExitCode) -> None:
        scene.has(version="0.1.0")
        scene.typed = typed
        result = scene.berth("upgrade", "acme", "--allow-replacement", exits=code)
        assert "Control plane Berth in eu-west-1, account 111122223333. This may replace" in result.stderr

    def test_a_downgrade_has_to_be_allowed(self, scene: Scene) -> None:
        scene.has(version="0.2.0")
        result = scene.berth("upgrade", "acme", "--to", "0.1.0", "--json", exits=ExitCode.REFUSED)
        first, *advice = result.stderr.splitlines()
        assert first.startswith("Error: Tenant acme is at version 0.2.0, and 0.1.0 is older")
        assert first.endswith(": berth upgrade acme --to 0.1.0 --allow-downgrade")
        assert advice == []
        assert json.loads(result.stdout)["type"] == "urn:berth:problem:downgrade"

    def test_a_pinned_tenant_is_not_moved(self, scene: Scene) -> None:
        scene.has()
        scene.berth("pin", "acme", "0.1.0")
        result = scene.berth("upgrade", "acme", "--to", "0.2.0", exits=ExitCode.REFUSED)
        assert result.stderr.splitlines()[1:] == [
            "Pin it to another release: berth pin acme VERSION",
            "Remove its pin: berth unpin acme",
        ]

    def test_a_busy_tenant(self, scene: Scene) -> None:
        scene.has()
        scene.berth("delete", "acme")
        scene.api.begin()
        result = scene.berth("upgrade", "acme", exits=ExitCode.REFUSED)
        assert result.stderr.startswith("Error: Tenant acme is busy: DELETE")
        assert result.stderr.endswith("\nWait until the tenant is free: --wait\n")
        assert scene.pauses == []

    def test_an_unknown_tenant(self, scene: Scene) -> None:
        result = scene.berth("upgrade", "acme", exits=ExitCode.GONE)
        assert result.stderr == "Error: Tenant acme does not exist. Create it: berth create acme\n"

    def test_a_deleted_tenant(self, scene: Scene) -> None:
        scene.has()
        scene.berth("delete", "acme")
        scene.api.begin()
        scene.api.succeed()
        result = scene.berth("upgrade", "acme", "--json", exits=ExitCode.GONE)
        assert json.loads(result.stdout)["status"] == 410

    def test_to_a_version_that_was_never_published(self, scene: Scene) -> None:
        scene.has()
        assert scene.berth("upgrade", "acme", "--to", "9.9.9").exit_code == ExitCode.BAD_USAGE


class TestPin:
    def test_a_tenant_is_pinned_and_not_moved(self, scene: Scene) -> None:
        scene.has()
        result = scene.berth("pin", "acme", "0.2.0", exits=ExitCode.OK)
        assert result.stdout == "Tenant acme is pinned to version 0.2.0. It is at version 0.1.0.\n"
        assert scene.api.asked == ["PUT /tenants/acme/pin"]
        assert scene.api.table.metadata(ACME).pinned_version == "0.2.0"
        assert len(scene.api.executions.started) == 1

    def test_the_pin_is_removed(self, scene: Scene) -> None:
        scene.has()
        scene.api.clock.advance(timedelta(seconds=1))
        scene.berth("pin", "acme", "0.1.0")
        result = scene.berth("unpin", "acme", "--json", exits=ExitCode.OK)
        assert json.loads(result.stdout)["status"] == "CHANGED"
        assert scene.api.asked[-1] == "DELETE /tenants/acme/pin"
        assert scene.api.table.metadata(ACME).pinned_version is None

    @pytest.mark.parametrize(
        ("version", "code"), [("9.9.9", ExitCode.BAD_USAGE), ("newest", ExitCode.BAD_USAGE)], ids=["9.9.9", "newest"]
    )
    def test_only_to_a_release(self, scene: Scene, version: str, code: ExitCode) -> None:
        scene.has()
        result = scene.berth("pin", "acme", version)
        assert result.exit_code == code
        assert version in result.stderr
        assert scene.api.table.metadata(ACME).pinned_version is None

    @pytest.mark.parametrize("command", [["pin", "acme", "0.1.0"], ["unpin", "acme"]], ids=" ".join)
    def test_an_unknown_tenant(self, scene: Scene, command: list[str]) -> None:
        assert scene.berth(*command).exit_code == ExitCode.GONE

    @pytest.mark.parametrize("command", [["pin", "acme", "0.1.0"], ["unpin", "acme"]], ids=" ".join)
    def test_a_tenant_that_is_being_deleted(self, scene: Scene, command: list[str]) -> None:
        scene.has()
        scene.berth("delete", "acme")
        scene.api.begin()
        result = scene.berth(*command, exits=ExitCode.REFUSED)
        assert "is busy: DELETE" in result.stderr
        # Nothing has to be waited for.
        assert "--wait" not in result.stderr

    def test_an_invalid_tenant_id(self, scene: Scene) -> None:
        assert scene.berth("pin", "a/b", "0.1.0").exit_code == ExitCode.BAD_USAGE
        assert scene.connected_to == []


class TestRetry:
    def test_the_failed_operation_is_repeated_with_the_same_request(self, scene: Scene) -> None:
        scene.berth("create", "acme", "--version", "0.1.0", "--label", "team=blue")
        scene.api.begin()
        scene.api.fail()
        result = scene.berth("retry", "acme", exits=ExitCode.OK)
        assert "operation:  CREATE 0.1.0, attempt 2\n" in result.stdout
        assert started(scene) == (
            Operation.CREATE,
            "0.1.0",
            2,
            Request(by=ADA, explicit=True, labels={"team": "blue"}, pin="0.1.0", asked_at=NOON),
        )

    def test_there_is_nothing_to_retry(self, scene: Scene) -> None:
        scene.has()
        result = scene.berth("retry", "acme", "--json", exits=ExitCode.REFUSED)
        problem = json.loads(result.stdout)
        assert problem["type"] == "urn:berth:problem:nothing-to-retry"
        assert result.stderr == f"Error: {problem['detail']}\n"

    def test_an_unknown_tenant(self, scene: Scene) -> None:
        assert scene.berth("retry", "acme").exit_code == ExitCode.GONE


class TestDelete:
    def test_a_tenant_whose_queue_is_empty(self, scene: Scene) -> None:
        scene.has()
        result = scene.berth("delete", "acme", exits=ExitCode.OK)
        assert "state:      DELETING\noperation:  DELETE, attempt 1\n" in result.stdout
        assert started(scene)[3] == Request(by=ADA)

    def test_a_running_delete_is_not_reported_as_started_again(self, scene: Scene) -> None:
        scene.has()
        scene.berth("delete", "acme")
        scene.api.begin()
        result = scene.berth("delete", "acme", exits=ExitCode.OK)
        assert result.stderr == "The operation is running. See its result: berth tenant acme\n"
        assert started(scene)[2] == 1

    def test_a_tenant_that_does_not_exist(self, scene: Scene) -> None:
        result = scene.berth("delete", "acme", exits=ExitCode.OK)
        assert result.stdout == "Tenant acme does not exist, so nothing was deleted.\n"

    def test_messages_are_counted_per_queue_and_shown_with_advice(self, scene: Scene) -> None:
        scene.has()
        scene.api.queues.dead_letter_queues[QUEUE.url] = DLQ
        scene.api.queues.held = {QUEUE.url: Messages(3, 1, 0), DLQ: Messages(2, 0, 0)}
        result = scene.berth("delete", "acme", "--json", exits=ExitCode.REFUSED)
        assert result.stderr.splitlines() == [
            "Error: Tenant acme still has messages, so nothing was deleted.",
            "  inbound queue: 3 visible, 1 in flight, 0 delayed",
            "  dead-letter queue: 2 visible, 0 in flight, 0 delayed",
            "Receive the messages, or wait until they are received: berth delete acme --drain SECONDS",
            "Or delete them with the tenant: berth delete acme --force",
        ]
        assert json.loads(result.stdout)["messages"]["inbound queue"] == {"visible": 3, "inFlight": 1, "delayed": 0}

    def test_unfinished_events_are_counted_and_nobody_is_told_to_drain_them(self, scene: Scene) -> None:
        scene.has()
        scene.api.unfinished_work.held[ACME] = {INBOX: 3}
        result = scene.berth("delete", "acme", exits=ExitCode.REFUSED)
        assert result.stderr.splitlines() == [
            "Error: Tenant acme still has events, so nothing was deleted.",
            "  inbox of events: 3",
            "Acknowledge the events: berth inbox acme, then berth inbox ack acme EVENT_ID...",
            "Or delete them with the tenant: berth delete acme --force",
        ]

    def test_deliveries_that_wait_are_counted_apart_with_what_to_do_about_them(self, scene: Scene) -> None:
        scene.has()
        scene.api.unfinished_work.held[ACME] = {DELIVERIES: 2}
        result = scene.berth("delete", "acme", exits=ExitCode.REFUSED)
        assert result.stderr.splitlines() == [
            "Error: Tenant acme still has events, so nothing was deleted.",
            "  deliveries of events: 2",
            "Wait until the events are delivered, or resume what is paused: berth connections list acme",
            "Or delete them with the tenant: berth delete acme --force",
        ]

    def test_messages_and_more_events_than_are_counted(self, scene: Scene) -> None:
        scene.has()
        scene.api.queues.held = {QUEUE.url: Messages(3, 1, 0)}
        scene.api.unfinished_work.held[ACME] = {INBOX: MAX_COUNTED}
        result = scene.berth("delete", "acme", exits=ExitCode.REFUSED)
        assert result.stderr.splitlines() == [
            "Error: Tenant acme still has messages and events, so nothing was deleted.",
            "  inbound queue: 3 visible, 1 in flight, 0 delayed",
            "  inbox of events: at least 100",
            "Receive the messages, or wait until they are received: berth delete acme --drain SECONDS",
            "Acknowledge the events: berth inbox acme, then berth inbox ack acme EVENT_ID...",
            "Or delete them with the tenant: berth delete acme --force",
        ]

    def test_the_queue_is_given_time_to_drain(self, scene: Scene) -> None:
        scene.has()
        scene.api.queues.held = {QUEUE.url: Messages(3, 0, 0)}
        assert scene.berth("delete", "acme", "--drain", "600").exit_code == ExitCode.OK
        assert started(scene)[3] == Request(by=ADA, drain_seconds=600)

    @pytest.mark.parametrize("seconds", ["1201", "9999", "999999", "9" * 30])
    def test_a_drain_longer_than_the_maximum_is_refused(self, scene: Scene, seconds: str) -> None:
        result = scene.berth("delete", "acme", "--drain", seconds, exits=ExitCode.BAD_USAGE)
        assert "1200" in result.stderr
        assert scene.connected_to == []

    def test_the_help_has_the_maximum_drain(self, scene: Scene) -> None:
        assert "at most 1200" in " ".join(scene.berth("delete", "--help").stdout.replace("│", " ").split())

    def test_force_without_a_terminal_needs_yes(self, scene: Scene) -> None:
        scene.has()
        scene.api.queues.held = {QUEUE.url: Messages(3, 0, 0)}
        result = scene.berth("delete", "acme", "--force", exits=ExitCode.BAD_USAGE)
        assert result.stderr == (
            "Error: This deletes tenant acme and every message in its queue, and its events. Without a terminal, this "
            "has to be confirmed by --yes. Nothing was done.\n"
        )
        assert scene.connected_to == []
        scene.berth("delete", "acme", "--force", "--yes", exits=ExitCode.OK)
        assert started(scene)[3] == Request(by=ADA, force=True)

    def test_force_is_confirmed_by_typing_the_tenants_id(self, scene: Scene) -> None:
        scene.has()
        scene.typed = "acme\n"
        result = scene.berth("delete", "acme", "--force", exits=ExitCode.OK)
        assert result.stderr.startswith(
            "Control plane Berth in eu-west-1, account 111122223333. This deletes tenant acme and every message in its "
            "queue, and its events. Type the tenant's id to continue:"
        )
        assert started(scene)[3] == Request(by=ADA, force=True)

    @pytest.mark.parametrize("typed", ["y\n", "Acme\n", "\n", ""])
    def test_without_confirmation_of_force_nothing_is_changed(self, scene: Scene, typed: str) -> None:
        scene.typed = typed
        result = scene.berth("delete", "acme", "--force", "--json", exits=ExitCode.REFUSED)
        assert result.stderr.endswith("Error: That is not the tenant's id, so nothing was done.\n")
        assert json.loads(result.stdout)["exitCode"] == ExitCode.REFUSED
        assert scene.api.asked == []

    def test_yes_skips_the_confirmation(self, scene: Scene) -> None:
        scene.has()
        scene.typed = ""
        assert scene.berth("delete", "acme", "--force", "--yes").exit_code == ExitCode.OK

    def test_without_force_there_is_no_confirmation(self, scene: Scene) -> None:
        scene.has()
        scene.typed = ""
        assert scene.berth("delete", "acme").exit_code == ExitCode.OK

    @pytest.mark.parametrize("arguments", [["--drain", "0"], ["--drain", "10", "--force"]], ids=" ".join)
    def test_options_that_exclude_each_other_are_bad_usage_before_any_request(
        self, scene: Scene, arguments: list[str]
    ) -> None:
        assert scene.berth("delete", "acme", *arguments).exit_code == ExitCode.BAD_USAGE
        assert scene.connected_to == []
