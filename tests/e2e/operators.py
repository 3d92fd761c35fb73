"""An operator's requests, by the deployed API; and releases as deployments publish them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from orchestrator.client.transport import ApiAnswer
from orchestrator.common.tenant_ids import TenantId
from orchestrator.local.releases import Template, bumped, publish, released_template
from orchestrator.releases.template_contract import DEAD_LETTER_QUEUE, INBOUND_QUEUE, KMS_KEY_PARAMETER
from orchestrator.tenants.history import HistoryEntry
from orchestrator.tenants.records import Status
from tests.e2e.deployed import ASK_AGAIN, Deployed, eventually

BERTH = Path(sys.executable).with_name("berth")


def command(berth: Deployed, *arguments: str) -> dict[str, Any]:
    """The environment of a process that runs `berth` on this control plane."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    environment |= {"BERTH_LOCAL_HOME": str(berth.emulator.home), "COLUMNS": "200"}
    environment |= {"BERTH_STACK": berth.names.control_plane}
    return {"args": [BERTH, *arguments], "env": environment, "text": True}


def run(berth: Deployed, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(**command(berth, *arguments), capture_output=True, check=False)


def call(
    berth: Deployed,
    method: str,
    path: str,
    *,
    query: Mapping[str, str] | None = None,
    body: Mapping[str, object] | None = None,
) -> ApiAnswer:
    """One response. A throttled request is retried."""
    api = berth.api()

    def answer() -> ApiAnswer | None:
        given = api.request(method, path, query=query or {}, body=body)
        return None if given.status in ASK_AGAIN else given

    return eventually(answer, what=f"an answer to {method} {path}", pause=0.5)


def create(berth: Deployed, tenant: TenantId, **body: object) -> ApiAnswer:
    return call(berth, "PUT", f"/tenants/{tenant}", body=body)


def upgrade(berth: Deployed, tenant: TenantId, version: str, **body: object) -> ApiAnswer:
    return call(berth, "POST", f"/tenants/{tenant}/upgrade", body={"version": version, **body})


def retry(berth: Deployed, tenant: TenantId) -> ApiAnswer:
    return call(berth, "POST", f"/tenants/{tenant}/retry")


def delete(berth: Deployed, tenant: TenantId, **query: str) -> ApiAnswer:
    return call(berth, "DELETE", f"/tenants/{tenant}", query=query)


def tenant_of(berth: Deployed, tenant: TenantId) -> Any:
    """The tenant, as the API describes it."""
    return call(berth, "GET", f"/tenants/{tenant}").body


def ended(berth: Deployed, accepted: ApiAnswer) -> str:
    """Wait until the accepted operation has ended. Returns SUCCEEDED or FAILED."""
    assert accepted.status == 202, accepted.body
    return str(berth.ended(str(accepted.body["execution"]))["status"])


def a_tenant(berth: Deployed, name: str, version: str | None = None) -> TenantId:
    """Create a tenant at the control plane's version or at the given one, without a pin."""
    tenant = TenantId(name)
    body = {"version": version} if version else {}
    assert ended(berth, create(berth, tenant, **body)) == "SUCCEEDED"
    if version:
        assert create(berth, tenant, version=None).status == 200
    return tenant


EARLIER = "0.9.0"
"""A release before the one that comes with this checkout. The deployment that most modules share has it."""


def an_earlier_release(berth: Deployed) -> str:
    """Publish a template that differs from the current one: it does not declare the parameter for a key."""
    return a_release(berth, EARLIER, _without_key)


def _without_key(template: Template) -> None:
    del template["Parameters"][KMS_KEY_PARAMETER], template["Conditions"]
    for name in (INBOUND_QUEUE, DEAD_LETTER_QUEUE):
        queue = template["Resources"][name]["Properties"]
        del queue["KmsMasterKeyId"]
        queue["SqsManagedSseEnabled"] = True


def a_release(berth: Deployed, version: str, change: Callable[[Template], object]) -> str:
    """Publish a changed copy of the current template as another version."""
    template = bumped(released_template(berth.release), version)
    change(template)
    publish(berth.emulator, berth.outputs, version, template)
    return version


def audits_of(berth: Deployed, tenant: TenantId) -> dict[str, tuple[str, int]]:
    """Status and attempt of every operation, by its row's key."""
    return {
        sk: (row["Status"]["S"], int(row["Attempt"]["N"]))
        for sk, row in berth.rows_of(tenant).items()
        if sk.startswith("AUDIT#") and "Attempt" in row
    }


def assert_nothing_interleaved(berth: Deployed, tenant: TenantId) -> None:
    """Checks in the history that each operation ended before the next began."""
    under_way: str | None = None
    for entry in berth.table.history(tenant):
        if not isinstance(entry, HistoryEntry):
            continue
        if entry.status is Status.STARTED:
            assert under_way is None, f"{entry.execution} began while {under_way} was under way"
            under_way = entry.execution
        elif under_way == entry.execution:
            under_way = None
    assert under_way is None
