"""`berth tenant` and `berth tenants`: what the table says, for people and for programs."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from orchestrator.cli.errors import ExitCode
from orchestrator.records import Metadata, Operation, RootCause, Status
from orchestrator.tenants import TENANT_ID_MAX_LENGTH, TenantId
from tests.fakes import ACME, NOON, QUEUE, QUEUE_TABOO, VERSION, a_run, an_audit, take
from tests.unit.cli.conftest import Scene

BOB = TenantId("bob")
STACK = "arn:aws:cloudformation:eu-west-1:000000000000:stack/berth-tenant-acme/1"
CAUSE = {"resource": "InboundQueue", "type": "AWS::SQS::Queue", "reason": "Access to the resource is denied."}


def provisioned(scene: Scene, tenant: TenantId = ACME, version: str = VERSION) -> None:
    run = a_run(tenant=tenant, version=version)
    take(scene.table, run)
    scene.table.publish(run, stack_id=STACK, queue=QUEUE, version=version, at=NOON + timedelta(seconds=10))


def failed(scene: Scene, tenant: TenantId = BOB, cause: RootCause = QUEUE_TABOO) -> None:
    run = a_run(tenant=tenant)
    take(scene.table, run)
    scene.table.fail(run, cause, NOON + timedelta(seconds=20))


class TestTenant:
    def test_a_ready_one(self, scene: Scene) -> None:
        provisioned(scene)
        result = scene.berth("tenant", "acme")
        assert result.exit_code == ExitCode.OK
        lines = [line.rstrip() for line in result.stdout.splitlines()]
        assert lines == [
            "tenant:     acme",
            "state:      READY",
            "version:    0.1.0",
            "updated:    2026-11-16 12:00:10 UTC",
            f"queue url:  {QUEUE.url}",
            f"queue arn:  {QUEUE.arn}",
            "",
            "CREATE 0.1.0",
            "status:     Success",
            "attempt:    1",
            "updated:    2026-11-16 12:00:10 UTC",
            f"execution:  {a_run().execution}",
            "",
            "History",
            "At (UTC)            Operation Version Attempt Status  Why",
            "2026-11-16 12:00:00 CREATE    0.1.0   1       Started",
            "2026-11-16 12:00:10 CREATE    0.1.0   1       Success",
        ]

    def test_its_current_operation(self, scene: Scene) -> None:
        provisioned(scene)
        update = a_run(operation=Operation.UPDATE, version="0.2.0", started_at=NOON + timedelta(hours=1))
        take(scene.table, update)
        scene.table.remember_token(update, "the-token")
        told = scene.berth("tenant", "acme")
        assert "Going on now\noperation:  UPDATE 0.2.0, attempt 1\nsince:      2026-11-16 13:00:00 UTC" in told.stdout
        result = scene.berth("tenant", "acme", "--json")
        assert json.loads(result.stdout)["currentOperation"] == {
            "operation": "UPDATE",
            "version": "0.2.0",
            "attempt": 1,
            "execution": update.execution,
            "startedAt": "2026-11-16T13:00:00.000Z",
        }
        assert "the-token" not in told.stdout + result.stdout

    def test_a_failed_one_says_why_whatever_the_reason_contains(self, scene: Scene) -> None:
        cause = replace(QUEUE_TABOO, reason="Failed [red]to[/red] create: [InboundQueue]. " + "Because. " * 40)
        failed(scene, cause=cause)
        result = scene.berth("tenant", "bob")
        assert result.exit_code == ExitCode.OK
        assert f"root cause: {cause}\n" in result.stdout
        history = result.stdout.partition("History\n")[2].splitlines()
        assert max(map(len, history)) <= 80
        assert "[red]to[/red]" in " ".join(history)

    def test_as_json(self, scene: Scene) -> None:
        failed(scene)
        result = scene.berth("tenant", "bob", "--json")
        outcome = {"operation": "CREATE", "version": VERSION, "attempt": 1, "execution": a_run(tenant=BOB).execution}
        assert json.loads(result.stdout) == {
            "tenantId": "bob",
            "state": "FAILED",
            "version": None,
            "updatedAt": "2026-11-16T12:00:20.000Z",
            "queueUrl": None,
            "queueArn": None,
            "rootCause": CAUSE,
            "currentOperation": None,
            "audits": [
                outcome | {"status": "Failure", "rootCause": CAUSE, "updatedAt": "2026-11-16T12:00:20.000Z"},
            ],
            "history": [
                outcome | {"status": "Started", "rootCause": None, "at": "2026-11-16T12:00:00.000Z"},
                outcome | {"status": "Failure", "rootCause": CAUSE, "at": "2026-11-16T12:00:20.000Z"},
            ],
        }

    def test_one_from_before_there_were_audits(self, scene: Scene) -> None:
        scene.table.plant_metadata(Metadata(ACME, QUEUE, None, "0.0.9", None, None))
        result = scene.berth("tenant", "acme")
        assert result.exit_code == ExitCode.OK
        assert "version:    0.0.9" in result.stdout
        assert "updated" not in result.stdout

    def test_a_delete_has_no_version(self, scene: Scene) -> None:
        scene.table.plant_audit(an_audit(Status.SUCCESS, Operation.DELETE, version=None))
        result = scene.berth("tenant", "acme")
        assert "state:      DELETED" in result.stdout
        assert "\nDELETE\n" in result.stdout

    def test_one_that_nobody_has_heard_of(self, scene: Scene) -> None:
        result = scene.berth("tenant", "nobody", "--json")
        assert result.exit_code == ExitCode.GONE
        told = "No such tenant: nobody. Asking for its queue creates it: berth get-queue nobody"
        assert result.stderr == f"Error: {told}\n"
        assert json.loads(result.stdout) == {"title": ExitCode.GONE.meaning, "detail": told, "exitCode": 5}


class TestTenants:
    def test_all(self, scene: Scene) -> None:
        provisioned(scene)
        failed(scene)
        result = scene.berth("tenants")
        assert result.exit_code == ExitCode.OK
        assert [line.rstrip() for line in result.stdout.splitlines()] == [
            "Tenant State  Version Updated (UTC)",
            "acme   READY  0.1.0   2026-11-16 12:00",
            "bob    FAILED         2026-11-16 12:00",
            "",
            "2 tenants: 1 READY, 1 FAILED",
            "bob: InboundQueue (AWS::SQS::Queue): Access to the resource is denied.",
        ]

    def test_as_json(self, scene: Scene) -> None:
        provisioned(scene)
        failed(scene)
        result = scene.berth("tenants", "--json")
        assert json.loads(result.stdout) == {
            "tenants": [
                {
                    "tenantId": "acme",
                    "state": "READY",
                    "version": VERSION,
                    "updatedAt": "2026-11-16T12:00:10.000Z",
                    "queueUrl": QUEUE.url,
                    "queueArn": QUEUE.arn,
                    "rootCause": None,
                },
                {
                    "tenantId": "bob",
                    "state": "FAILED",
                    "version": None,
                    "updatedAt": "2026-11-16T12:00:20.000Z",
                    "queueUrl": None,
                    "queueArn": None,
                    "rootCause": CAUSE,
                },
            ]
        }

    @pytest.mark.parametrize(
        ("filters", "expected"),
        [
            (["--state", "READY"], ["acme", "carol"]),
            (["--state", "failed"], ["bob"]),
            (["--version", "0.2.0"], ["carol"]),
            (["--state", "READY", "--version", "0.1.0"], ["acme"]),
            (["--state", "DELETING"], []),
        ],
    )
    def test_filtered(self, scene: Scene, filters: list[str], expected: list[str]) -> None:
        provisioned(scene)
        failed(scene)
        provisioned(scene, TenantId("carol"), "0.2.0")
        result = scene.berth("tenants", *filters, "--json")
        assert [tenant["tenantId"] for tenant in json.loads(result.stdout)["tenants"]] == expected

    def test_deleted_tenants_cannot_be_asked_for_because_they_are_not_listed(self, scene: Scene) -> None:
        assert scene.berth("tenants", "--state", "DELETED").exit_code == ExitCode.BAD_USAGE

    def test_a_filter_that_fits_none(self, scene: Scene) -> None:
        provisioned(scene)
        result = scene.berth("tenants", "--version", "9.9.9")
        assert result.exit_code == ExitCode.OK
        assert result.stdout == "None of the 1 tenants is like that. See them all: berth tenants\n"

    def test_an_empty_fleet_says_what_to_do_next(self, scene: Scene) -> None:
        result = scene.berth("tenants")
        assert result.exit_code == ExitCode.OK
        assert result.stdout == (
            "There are no tenants yet. Asking for a queue creates one: berth get-queue TENANT --wait\n"
        )
        assert json.loads(scene.berth("tenants", "--json").stdout) == {"tenants": []}

    def test_the_longest_ids_fit_a_terminal(self, scene: Scene) -> None:
        longest = TenantId.parse("x" * TENANT_ID_MAX_LENGTH)
        scene.table.plant_audit(an_audit(Status.STARTED, tenant=longest))
        lines = scene.berth("tenants").stdout.splitlines()
        assert lines[1].rstrip() == f"{longest} PROVISIONING         2026-11-16 12:00"
