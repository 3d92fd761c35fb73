"""Event settings, keys, sources and forms on a deployed event plane, by command and with an API key."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from orchestrator.common.tenant_ids import TenantId
from tests.e2e.deployed import Deployed, eventually
from tests.e2e.events_api import EventsApi
from tests.e2e.operators import command, run

TENANT = TenantId("configured")


class Commands:
    def __init__(self, berth: Deployed) -> None:
        self._berth = berth
        self.api = EventsApi(berth, TENANT)

    def __call__(self, *arguments: str) -> dict[str, Any]:
        done = run(self._berth, "--local", *arguments, "--json")
        assert done.returncode == 0, done.stderr
        document: dict[str, Any] = json.loads(done.stdout)
        return document

    def fed(self, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            **command(self._berth, "--local", *arguments), input=text, capture_output=True, check=False
        )

    def as_tenant(self, method: str, path: str, key: str, document: object = None) -> tuple[int, Any]:
        body = b"" if document is None else json.dumps(document).encode()
        status, _, answer = self.api.send(method, path, body, Content_Type="application/json", X_Api_Key=key)
        return status, answer


@pytest.fixture(scope="module")
def berthed(berth: Deployed) -> Commands:
    assert berth.settled(TENANT).status == 200
    commands = Commands(berth)
    assert commands("events", "settings", str(TENANT), "--plan", "starter")["plan"] == "starter"
    return commands


def test_a_key_is_made_used_rotated_and_revoked(berthed: Commands) -> None:
    made = berthed("keys", "create", str(TENANT), "--name", "e2e", "--scope", "admin")
    status, settings = berthed.as_tenant("GET", "/settings", made["key"])
    assert (status, settings["tenant_id"], settings["plan"]) == (200, str(TENANT), "starter")
    rotated = berthed("keys", "rotate", str(TENANT), made["key_id"], "--overlap", "1")
    assert rotated["replaced"]["status"] == "active"
    for key in (made["key"], rotated["key"]):
        assert berthed.as_tenant("GET", "/keys", key)[0] == 200
    assert berthed("keys", "revoke", "--yes", str(TENANT), made["key_id"])["status"] == "revoked"
    # Routes that need admin read the key every time.
    assert berthed.as_tenant("GET", "/keys", made["key"])[0] == 401
    assert berthed.as_tenant("GET", "/keys", rotated["key"])[0] == 200

    def stopped() -> bool | None:
        return berthed.as_tenant("GET", "/settings", made["key"])[0] == 401 or None

    assert eventually(stopped, what="the end of the ten seconds for which a key is remembered", pause=1)


def test_a_tenant_configures_itself_and_nobody_else(berthed: Commands) -> None:
    key = berthed("keys", "create", str(TENANT), "--name", "e2e", "--scope", "admin")["key"]
    status, source = berthed.as_tenant("POST", "/sources", key, {"name": "shop", "provider": "github"})
    assert (status, source["tenant_id"], len(source["secret"])) == (201, str(TENANT), 64)
    listed = berthed("sources", "list", str(TENANT))["sources"]
    assert source["source_id"] in {each["source_id"] for each in listed}
    assert source["secret"] not in json.dumps(listed)
    status, problem = berthed.as_tenant("PUT", f"/tenants/{TENANT}/settings", "no key at all", {"shards": 16})
    assert (status, problem["type"]) == (400, "urn:berth:problem:invalid-request")
    reader = berthed("keys", "create", str(TENANT), "--name", "e2e", "--scope", "read")["key"]
    assert berthed.as_tenant("POST", "/sources", reader, {"name": "shop", "provider": "none"})[0] == 403


def test_sources_and_forms_by_command(berthed: Commands, tmp_path: Path) -> None:
    file = tmp_path / "secret.txt"
    file.write_text("correct horse battery\n", encoding="utf-8")
    options = ("sources", "create", str(TENANT), "--name", "Stripe", "--provider", "stripe", "--secret-file")
    source = berthed(*options, str(file))
    fed = berthed.fed("correct horse battery\n", *options, "-")
    assert fed.returncode == 0, fed.stderr
    assert "correct horse" not in fed.stdout + fed.stderr
    path = source["path"]
    assert berthed.api.send("GET", path)[0] == 200
    assert berthed("sources", "pause", str(TENANT), source["source_id"])["status"] == "paused"
    assert berthed("sources", "delete", "--yes", str(TENANT), source["source_id"])["source_id"] == source["source_id"]
    form = berthed("forms", "create", str(TENANT), "--name", "Contact", "--allow-origin", "https://www.example.com")
    changed = berthed("forms", "update", str(TENANT), form["form_id"], "--any-origin", "--honeypot", "website")
    assert (changed["origins"], changed["honeypot"]) == ([], "website")
    berthed("forms", "delete", "--yes", str(TENANT), form["form_id"])
    assert berthed("forms", "list", str(TENANT)) == {"forms": []}


def test_a_tenant_that_does_not_exist_has_no_events(berth: Deployed, berthed: Commands) -> None:
    assert berthed
    done = run(berth, "--local", "events", "settings", "nobody", "--plan", "free")
    assert done.returncode == 5
    assert "no tenant nobody" in done.stderr
