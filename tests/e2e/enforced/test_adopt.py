"""With the deployed permissions, a tenant from before Berth can be adopted, upgraded and deleted."""

from __future__ import annotations

from tests.e2e.deployed import eventually
from tests.e2e.enforced.control_plane import Enforced
from tests.e2e.legacy import PREFIX, VERSION, a_legacy_tenant
from tests.e2e.operators import call, delete, ended, upgrade


def test_no_request_is_denied_while_a_stack_of_another_name_is_adopted_upgraded_and_deleted(enforced: Enforced) -> None:
    root, platform, operator = enforced.root, enforced.platform, enforced.operator
    tenant = a_legacy_tenant(root, "from-before", f"{PREFIX}from-before")
    assert platform.ask(tenant).body["version"] == VERSION
    before = len(enforced.decisions())

    asked = call(operator, "POST", "/adoptions", body={})
    assert asked.status == 202, asked.body

    def adopted() -> object:
        adoption = call(operator, "GET", f"/adoptions/{asked.body['adoptionId']}").body
        return adoption if adoption["status"] not in ("PENDING", "RUNNING") else None

    adoption = eventually(adopted, what="the adoption has ended")
    assert isinstance(adoption, dict)
    assert (adoption["status"], [each["tenantId"] for each in adoption["tenants"] if each["adopted"]]) == (
        "DONE",
        [str(tenant)],
    )

    assert ended(root, upgrade(operator, tenant, root.outputs["Version"])) == "SUCCEEDED"
    assert platform.ask(tenant).body["version"] == root.outputs["Version"]
    enforced.with_credentials(tenant, "send").send_message(
        QueueUrl=platform.ask(tenant).body["queueUrl"], MessageBody="hello"
    )
    assert ended(root, delete(operator, tenant, force="true")) == "SUCCEEDED"
    assert platform.ask(tenant).status == 410

    assert enforced.denials() == []
    assert "dynamodb:Scan" in {each.action for each in enforced.decisions()[before:] if each.allowed}
