"""An operator publishes a template of its own with exactly the permissions that are deployed."""

from __future__ import annotations

from orchestrator.common.tenant_ids import TenantId
from tests.e2e.enforced.control_plane import Enforced
from tests.e2e.operators import call, create, ended, tenant_of, upgrade
from tests.fakes.templates import queue_template

FIRST, SECOND = "2.1.0", "2.2.0"
TENANT = TenantId("own-template")


def body(version: str, timeout: int) -> dict[str, object]:
    template = queue_template(version)
    template["Resources"]["InboundQueue"]["Properties"]["VisibilityTimeout"] = timeout
    return {"template": template, "notes": "Another timeout."}


def test_an_operators_template_is_checked_published_and_deployed(enforced: Enforced) -> None:
    root, operator = enforced.root, enforced.operator
    checked = call(operator, "POST", f"/releases/{FIRST}/check", body=body(FIRST, 60))
    assert (checked.status, checked.body["findings"]) == (200, [])
    for version, timeout in ((FIRST, 60), (SECOND, 90)):
        published = call(operator, "PUT", f"/releases/{version}", body=body(version, timeout))
        assert (published.status, published.body["status"]) == (200, "PUBLISHED")
    assert ended(root, create(operator, TENANT, version=FIRST)) == "SUCCEEDED"
    assert call(operator, "DELETE", f"/tenants/{TENANT}/pin").status == 200
    assert ended(root, upgrade(operator, TENANT, SECOND)) == "SUCCEEDED"
    found = tenant_of(operator, TENANT)
    assert (found["version"], set(found["resources"])) == (SECOND, {"DeadLetterQueueUrl"})
    assert enforced.denials() == []
