"""CloudFormation confirms its own requests, whatever it is at, and no others."""

from __future__ import annotations

import pytest

from orchestrator.common.errors import Throttled
from orchestrator.tenants.confirming import is_confirmed
from orchestrator.tenants.resource_requests import OWN_TYPES, Claim, Kind
from tests.fakes import FakeResources, a_resource

RESOURCE = a_resource()
TYPE = "Custom::TenantQueue"
PLAIN_TYPE = "AWS::CloudFormation::CustomResource"
CLEANING_UP = ("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS")


def claims(kind: Kind, physical_id: str | None = "acme", tenant: str | None = "acme") -> Claim:
    return Claim(kind, RESOURCE, "a-request", None if kind is Kind.CREATE else physical_id, tenant)


def shows(status: str, physical_id: str = "acme", *, stack: str, kind: str = TYPE) -> FakeResources:
    resources = FakeResources()
    resources.put(RESOURCE, status, physical_id, stack=stack, kind=kind)
    return resources


GENUINE = [
    pytest.param(claims(Kind.CREATE), shows("CREATE_IN_PROGRESS", "", stack="CREATE_IN_PROGRESS"), id="create"),
    pytest.param(
        claims(Kind.CREATE), shows("CREATE_IN_PROGRESS", "", stack="UPDATE_IN_PROGRESS"), id="added by an update"
    ),
    pytest.param(
        claims(Kind.CREATE),
        shows("CREATE_IN_PROGRESS", "", stack="CREATE_IN_PROGRESS", kind=PLAIN_TYPE),
        id="of the plain type",
    ),
    pytest.param(
        claims(Kind.CREATE),
        shows("CREATE_IN_PROGRESS", "", stack="CREATE_IN_PROGRESS", kind="Custom::BillingQueue"),
        id="of a type that its team has named",
    ),
    pytest.param(
        claims(Kind.DELETE),
        shows("DELETE_IN_PROGRESS", stack="DELETE_IN_PROGRESS", kind="Custom::BillingQueue"),
        id="delete of a type that its team has named",
    ),
    pytest.param(
        claims(Kind.DELETE), shows("DELETE_IN_PROGRESS", stack="ROLLBACK_IN_PROGRESS"), id="a create is rolled back"
    ),
    pytest.param(
        claims(Kind.DELETE, "billing-Queue-1ABC"),
        shows("DELETE_IN_PROGRESS", "billing-Queue-1ABC", stack="ROLLBACK_IN_PROGRESS"),
        id="a create that was never answered is rolled back",
    ),
    pytest.param(
        claims(Kind.DELETE, "billing-Queue-1ABC"),
        shows("DELETE_IN_PROGRESS", "", stack="ROLLBACK_IN_PROGRESS"),
        id="a create that was never answered is rolled back, and no id is shown",
    ),
    pytest.param(claims(Kind.UPDATE), shows("UPDATE_IN_PROGRESS", stack="UPDATE_IN_PROGRESS"), id="update"),
    pytest.param(
        claims(Kind.UPDATE), shows("UPDATE_IN_PROGRESS", stack="UPDATE_ROLLBACK_IN_PROGRESS"), id="an update is undone"
    ),
    pytest.param(
        claims(Kind.UPDATE, "other", "acme"),
        shows("UPDATE_IN_PROGRESS", "acme", stack="UPDATE_ROLLBACK_IN_PROGRESS"),
        id="a replacement is undone, and the old resource is shown",
    ),
    pytest.param(
        claims(Kind.UPDATE, "acme", "acme"),
        shows("UPDATE_IN_PROGRESS", "other", stack="UPDATE_ROLLBACK_IN_PROGRESS"),
        id="a replacement is undone, and the new resource is shown",
    ),
    pytest.param(
        claims(Kind.DELETE, "acme"),
        shows("UPDATE_COMPLETE", "other", stack="UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"),
        id="the old resource of a replacement",
    ),
    pytest.param(
        claims(Kind.DELETE, "acme"),
        shows("DELETE_IN_PROGRESS", "acme", stack="UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"),
        id="the old resource of a replacement, if it is shown itself",
    ),
    pytest.param(
        claims(Kind.DELETE, "other", "other"),
        shows("UPDATE_COMPLETE", "acme", stack="UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS"),
        id="the new resource of a replacement that was undone",
    ),
    pytest.param(
        claims(Kind.DELETE),
        shows("DELETE_IN_PROGRESS", stack="UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"),
        id="removed from the template",
    ),
    pytest.param(
        claims(Kind.DELETE),
        shows("DELETE_IN_PROGRESS", stack="UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS"),
        id="added by an update that was undone",
    ),
    pytest.param(claims(Kind.DELETE), shows("DELETE_IN_PROGRESS", stack="DELETE_IN_PROGRESS"), id="delete"),
]


@pytest.mark.parametrize(("claim", "resources"), GENUINE)
def test_cloudformations_own_request_is_confirmed(claim: Claim, resources: FakeResources) -> None:
    assert is_confirmed(claim, resources)
    assert is_confirmed(claim, resources), "the same event may come twice"


FORGED = [
    pytest.param(FakeResources(), "acme", id="no such stack"),
    pytest.param(shows("CREATE_COMPLETE", stack="CREATE_COMPLETE"), "acme", id="nothing happens"),
    pytest.param(shows("UPDATE_COMPLETE", stack="UPDATE_IN_PROGRESS"), "acme", id="other resources are changed"),
    pytest.param(shows("UPDATE_COMPLETE", stack=CLEANING_UP[0]), "acme", id="others are cleaned up"),
    pytest.param(shows("UPDATE_COMPLETE", stack=CLEANING_UP[1]), "acme", id="others are cleaned up, undone"),
    pytest.param(shows("UPDATE_COMPLETE", stack=CLEANING_UP[0]), "refused", id="the tenant is the present one"),
    pytest.param(shows("DELETE_COMPLETE", stack="DELETE_COMPLETE"), "acme", id="deleted long ago"),
    pytest.param(shows("DELETE_FAILED", stack="DELETE_FAILED"), "acme", id="could not be deleted"),
    pytest.param(shows("CREATE_FAILED", stack="ROLLBACK_IN_PROGRESS"), "acme", id="has failed"),
    pytest.param(
        shows("CREATE_IN_PROGRESS", stack="CREATE_IN_PROGRESS", kind="AWS::SQS::Queue"), "acme", id="a queue is created"
    ),
    pytest.param(
        shows("UPDATE_IN_PROGRESS", stack="UPDATE_IN_PROGRESS", kind="AWS::SQS::Queue"), "acme", id="of another type"
    ),
    *(
        pytest.param(shows(f"{kind.value.upper()}_IN_PROGRESS", stack="X", kind=own), "acme", id=f"Berth's own {own}")
        for own in sorted(OWN_TYPES)
        for kind in Kind
    ),
]


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize(("resources", "physical_id"), FORGED)
def test_a_forged_request_is_not_confirmed(kind: Kind, resources: FakeResources, physical_id: str) -> None:
    assert not is_confirmed(claims(kind, physical_id), resources)


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("doing", list(Kind))
def test_a_request_for_another_change_than_cloudformation_shows_is_not_confirmed(kind: Kind, doing: Kind) -> None:
    status = f"{doing.value.upper()}_IN_PROGRESS"
    assert is_confirmed(claims(kind), shows(status, stack=status)) is (kind is doing)


@pytest.mark.parametrize("kind", [Kind.UPDATE, Kind.DELETE])
@pytest.mark.parametrize("physical_id", ["other", "", None])
def test_a_request_about_another_physical_resource_is_not_confirmed(kind: Kind, physical_id: str | None) -> None:
    status = f"{kind.value.upper()}_IN_PROGRESS"
    assert not is_confirmed(claims(kind, physical_id), shows(status, "acme", stack=status))


def test_a_resource_of_the_same_name_in_another_stack_confirms_nothing() -> None:
    resources = FakeResources()
    for other in (a_resource(number=2), a_resource("Queue2"), a_resource(stack="billing-2")):
        resources.put(other, "DELETE_IN_PROGRESS", "acme", stack="DELETE_IN_PROGRESS")
    assert not is_confirmed(claims(Kind.DELETE), resources)


def test_cloudformation_is_asked_once_on_the_straight_path() -> None:
    for kind in Kind:
        resources = FakeResources()
        resources.show(claims(kind))
        assert is_confirmed(claims(kind), resources)
        assert resources.asked == ["resource"]


def test_throttling_neither_confirms_nor_refuses_a_request() -> None:
    resources = FakeResources(throttled_calls=1)
    resources.show(claims(Kind.DELETE))
    with pytest.raises(Throttled):
        is_confirmed(claims(Kind.DELETE), resources)
