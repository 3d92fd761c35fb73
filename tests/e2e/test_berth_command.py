"""The command line with a deployed control plane."""

from __future__ import annotations

import json

from orchestrator.common.tenant_ids import TenantId
from tests.e2e.deployed import Deployed
from tests.e2e.operators import run


def test_get_queue_waits_until_the_queue_is_ready(berth: Deployed) -> None:
    done = run(berth, "--local", "get-queue", "by-command", "--wait", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == berth.ask(TenantId("by-command")).body


def test_the_local_control_plane_is_found_without_an_option(berth: Deployed) -> None:
    berth.settled(TenantId("found"))
    done = run(berth, "get-queue", "found")
    assert done.returncode == 0, done.stderr
    assert "found" in done.stdout
    assert berth.emulator.endpoint in done.stderr


def test_a_tenant_is_shown_with_its_audit_and_history(berth: Deployed) -> None:
    berth.settled(TenantId("shown"))
    done = run(berth, "--local", "tenant", "shown", "--json")
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert shown["state"] == "READY"
    assert [audit["status"] for audit in shown["audits"]] == ["Success"]
    assert [entry["status"] for entry in shown["history"]] == ["Started", "Success"]


def test_all_tenants_are_listed(berth: Deployed) -> None:
    berth.settled(TenantId("listed"))
    done = run(berth, "--local", "tenants", "--all", "--json")
    assert done.returncode == 0, done.stderr
    assert "listed" in {tenant["tenantId"] for tenant in json.loads(done.stdout)["tenants"]}


def test_a_tenant_is_created_and_deleted_by_command(berth: Deployed) -> None:
    created = run(berth, "--local", "create", "ordered", "--label", "team=blue", "--wait", "--json")
    assert created.returncode == 0, created.stderr
    tenant = json.loads(created.stdout)
    assert (tenant["state"], tenant["labels"]) == ("READY", {"team": "blue"})
    assert tenant["queueUrl"] == berth.ask(TenantId("ordered")).body["queueUrl"]
    deleted = run(berth, "--local", "delete", "ordered", "--wait", "--json")
    assert deleted.returncode == 0, deleted.stderr
    assert json.loads(deleted.stdout)["state"] == "DELETED"
    assert berth.ask(TenantId("ordered")).status == 410


def test_the_releases_are_listed(berth: Deployed) -> None:
    done = run(berth, "--local", "releases", "--json")
    assert done.returncode == 0, done.stderr
    listed = json.loads(done.stdout)
    assert listed["current"] == berth.release
    assert listed["current"] in {release["version"] for release in listed["releases"]}


def test_an_invalid_tenant_id_is_one_clear_line(berth: Deployed) -> None:
    done = run(berth, "--local", "get-queue", "a/b")
    assert done.returncode == 2
    assert done.stdout == ""
    assert "'a/b' is not valid" in done.stderr
    assert "Traceback" not in done.stderr


def test_verify_proves_every_step_and_leaves_nothing_behind(berth: Deployed) -> None:
    done = run(berth, "--local", "verify", "--json")
    output = json.loads(done.stdout)
    assert done.returncode == 0, [step for step in output["steps"] if step["result"] != "proven"]
    assert {step["result"] for step in output["steps"]} == {"proven"}
    tenant = TenantId(output["tenantId"])
    assert berth.ask(tenant).status == 410
