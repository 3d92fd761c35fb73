"""A create, an update and a delete of the same tenant at the same time run one after the other, in any order."""

from __future__ import annotations

import pytest

from orchestrator.tenants.history import HistoryEntry
from orchestrator.tenants.records import Attempt, Operation, Request, Status
from tests.e2e.deployed import Deployed, eventually
from tests.e2e.operators import EARLIER, a_tenant, assert_nothing_interleaved, create, delete, ended, tenant_of, upgrade


@pytest.mark.parametrize("name", ["all-at-once-1", "all-at-once-2"])
def test_all_three_at_once_never_interleave(berth: Deployed, name: str) -> None:
    tenant = a_tenant(berth, name, EARLIER)
    version, by = berth.release, Request(by="a test", explicit=True)
    executions = [
        berth.start(Attempt(tenant, operation, version, 1), by)
        for operation in (Operation.DELETE, Operation.UPDATE, Operation.CREATE)
    ]

    for execution in executions:
        berth.ended(execution)

    assert_nothing_interleaved(berth, tenant)
    assert "LOCK" not in berth.rows_of(tenant)
    # A delete that runs after the create is refused, because the create was requested later.
    entries = [entry for entry in berth.table.history(tenant) if isinstance(entry, HistoryEntry)]
    succeeded = [entry.operation for entry in entries if entry.status is Status.SUCCESS]
    came_and_went = [operation for operation in succeeded if operation is not Operation.UPDATE]
    expected = ("DELETED", 410) if came_and_went[-1] is Operation.DELETE else ("READY", 200)
    assert (tenant_of(berth, tenant)["state"], berth.ask(tenant).status) == expected


def test_another_request_meanwhile_is_refused_with_the_running_operation(berth: Deployed) -> None:
    tenant = a_tenant(berth, "busy", EARLIER)
    url = berth.ask(tenant).body["queueUrl"]
    berth.client("sqs").send_message(QueueUrl=url, MessageBody="hello")
    draining = delete(berth, tenant, drainSeconds="600")
    eventually(lambda: tenant_of(berth, tenant)["currentOperation"], what="the delete begins")

    for refused in (upgrade(berth, tenant, berth.release), create(berth, tenant)):
        assert (refused.status, refused.body["type"]) == (409, "urn:berth:problem:tenant-busy")
        assert refused.body["operation"] == "DELETE"
        assert refused.retry_after
    again = delete(berth, tenant, drainSeconds="600")
    assert (again.status, again.body["execution"]) == (202, draining.body["execution"])
    # A forced delete is another request than the running one.
    assert delete(berth, tenant, force="true").status == 409

    berth.client("sqs").purge_queue(QueueUrl=url)
    assert ended(berth, draining) == "SUCCEEDED"
