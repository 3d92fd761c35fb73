"""The start for a tenant's developer, in docs/events-for-tenants.md, works as it is written."""

from __future__ import annotations

import json
import re
import subprocess
from typing import Any

import pytest

from orchestrator.common.tenant_ids import TenantId
from stacks.project import ROOT
from tests.e2e.deployed import Deployed, eventually
from tests.e2e.events_api import EventsApi
from tests.fakes.receivers import Receiver, answers
from tests.present import present

BLOCK = present(
    re.search(r"## Start\n.*?```bash\n(.*?)```", (ROOT / "docs" / "events-for-tenants.md").read_text(), re.DOTALL)
)[1]
_VALUES, FUNCTION, *LINES = BLOCK.splitlines()
TENANT = TenantId("starting")


class Shell:
    def __init__(self, url: str, key: str) -> None:
        self._url, self._key = url.rstrip("/"), key

    def __call__(self, line: str) -> Any:
        script = f"URL={self._url} BERTH_KEY={self._key}\n{FUNCTION}\n{line}\n"
        done = subprocess.run(["bash", "-euc", script], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def shell(berth: Deployed) -> Shell:
    assert berth.settled(TENANT).status == 200
    api = EventsApi(berth, TENANT)
    api.operate("PUT", "/settings", {"plan": "free", "inbox": False})
    key = api.operate("POST", "/keys", {"name": "Ada", "scopes": ["admin"]})["key"]
    return Shell(berth.emulator.api_url(api.outputs["EventsApiUrl"]), key)


def test_the_start_delivers_an_event_shows_its_tries_and_sends_it_again(shell: Shell) -> None:
    connect_queue, connect_webhook, send, attempts, failed, resend = LINES
    with Receiver(answers(200)) as receiver:
        queue = shell(connect_queue)
        webhook = shell(connect_webhook.replace("https://shop.example.com/hooks", receiver.url))
        assert webhook["secret"].startswith("whsec_")
        event_id = shell(send)["event_id"]

        def is_delivered() -> Any:
            shown = shell(attempts.replace("EVENT_ID", event_id))
            return shown if shown["status"] == "delivered" else None

        shown = eventually(is_delivered, what="the event is delivered", pause=1)
        assert {each["connection_id"]: each["status"] for each in shown["deliveries"]} == {
            queue["connection_id"]: "delivered",
            webhook["connection_id"]: "delivered",
        }
        assert shell(failed.replace("CONNECTION_ID", webhook["connection_id"]))["deliveries"] == []
        again = resend.replace("EVENT_ID", event_id).replace("CONNECTION_ID", webhook["connection_id"])
        assert [each["result"] for each in shell(again)["results"]] == ["sent"]
        eventually(lambda: len(receiver.requests) == 2 or None, what="the event comes again")
        assert len({request.headers["webhook-id"] for request in receiver.requests}) == 1
