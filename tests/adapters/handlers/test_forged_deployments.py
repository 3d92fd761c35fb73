"""Only the deployment of the control plane publishes releases, starts rollouts of its own and makes proofs.

Whoever may invoke these functions directly can send the event that CloudFormation would send.
"""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from orchestrator.common.errors import BerthError
from orchestrator.releases.published import canonical
from orchestrator.tenants.stack_resources import StackResource
from tests.adapters.conftest import REGION, client
from tests.adapters.handlers.functions import OF_A_DEPLOYMENT, OWN_STACK, RELEASES, SOURCES, TEMPLATE, Functions
from tests.fakes import NEXT_VERSION, FakeResources, a_release

pytestmark = pytest.mark.usefixtures("endpoint")

EVIL_VERSION = "9999.0.0"
EVIL_BUCKET = "attackers-bucket"
EVIL = {
    **TEMPLATE,
    "Resources": {
        **TEMPLATE["Resources"],
        "Policy": {
            "Type": "AWS::SQS::QueuePolicy",
            "Properties": {
                "Queues": [{"Ref": "InboundQueue"}],
                "PolicyDocument": {"Statement": [{"Effect": "Allow", "Principal": "*", "Action": "sqs:*"}]},
            },
        },
    },
}
PROPERTIES: dict[str, dict[str, str]] = {
    "publish_release": {
        "Version": EVIL_VERSION,
        "Digest": hashlib.sha256(canonical(EVIL)).hexdigest(),
        "SourceBucket": EVIL_BUCKET,
        "SourceKey": "template.json",
    },
    "start_rollout": {"Version": NEXT_VERSION},
    "api_proof": {"Generation": "2"},
}
ANOTHER_STACK = OWN_STACK.replace("/Berth/", "/another-team/")
ELSEWHERE = [
    ANOTHER_STACK,
    OWN_STACK.replace("0a1b", "0a1c"),
    OWN_STACK.replace("123456789012", "210987654321"),
    OWN_STACK.replace(REGION, "us-east-1"),
]


@pytest.fixture(autouse=True)
def uploaded(functions: Functions) -> None:
    """Somebody's template lies in a bucket of theirs, and there is a fleet to be moved."""
    for bucket in (RELEASES, SOURCES, EVIL_BUCKET):
        client("s3").create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION})
    client("s3").put_object(Bucket=EVIL_BUCKET, Key="template.json", Body=canonical(EVIL))
    functions.serve()
    functions.table.record_release(a_release(NEXT_VERSION))


def forged(functions: Functions, name: str, kind: str, stack: str = OWN_STACK) -> dict[str, Any]:
    return functions.endpoint.event(
        RequestType=kind,
        StackId=stack,
        LogicalResourceId=OF_A_DEPLOYMENT[name][1],
        PhysicalResourceId="known",
        ResourceType=OF_A_DEPLOYMENT[name][0],
        ResourceProperties=PROPERTIES[name],
    )


def show(
    functions: Functions, name: str, status: str, *, kind: str | None = None, stack: str = OWN_STACK
) -> FakeResources:
    """Let CloudFormation describe the event's resource with this status."""
    resources = FakeResources()
    its_kind, logical_id = OF_A_DEPLOYMENT[name]
    resources.put(StackResource.parse(stack, logical_id), status, "known", stack=status, kind=kind or its_kind)
    functions.show(resources)
    return resources


def assert_nothing_is_done(functions: Functions, name: str, event: dict[str, Any]) -> None:
    rows = functions.rows
    with pytest.raises(BerthError, match=r"not confirm|this account and region"):
        functions.call(name, event)
    assert functions.rows == rows
    assert functions.table.release(EVIL_VERSION) is None
    assert functions.all_executions == []
    assert functions.endpoint.answers == []


@pytest.mark.parametrize("kind", ["Create", "Update"])
@pytest.mark.parametrize("name", OF_A_DEPLOYMENT)
def test_an_event_of_an_ended_deployment_does_nothing(functions: Functions, name: str, kind: str) -> None:
    show(functions, name, f"{kind.upper()}_COMPLETE")
    assert_nothing_is_done(functions, name, forged(functions, name, kind))


@pytest.mark.parametrize("name", OF_A_DEPLOYMENT)
def test_an_event_of_a_missing_resource_does_nothing(functions: Functions, name: str) -> None:
    functions.show(FakeResources())
    assert_nothing_is_done(functions, name, forged(functions, name, "Create"))


@pytest.mark.parametrize("stack", ELSEWHERE)
@pytest.mark.parametrize("name", OF_A_DEPLOYMENT)
def test_an_event_of_another_stack_does_nothing(functions: Functions, name: str, stack: str) -> None:
    show(functions, name, "CREATE_IN_PROGRESS", stack=stack)
    assert_nothing_is_done(functions, name, forged(functions, name, "Create", stack))


@pytest.mark.parametrize("name", OF_A_DEPLOYMENT)
def test_an_event_of_another_type_of_resource_does_nothing(functions: Functions, name: str) -> None:
    show(functions, name, "CREATE_IN_PROGRESS", kind="AWS::Lambda::Function")
    assert_nothing_is_done(functions, name, forged(functions, name, "Create"))


def test_a_template_from_another_bucket_is_not_published_during_a_deployment(functions: Functions) -> None:
    show(functions, "publish_release", "CREATE_IN_PROGRESS")
    functions.call("publish_release", forged(functions, "publish_release", "Create"))
    (answer,) = functions.endpoint.answers
    assert answer["Status"] == "FAILED"
    assert functions.table.release(EVIL_VERSION) is None


@pytest.mark.parametrize("name", OF_A_DEPLOYMENT)
def test_a_delete_does_nothing_and_needs_no_confirmation(functions: Functions, name: str) -> None:
    rows = functions.rows
    functions.requests.clear()
    functions.call(name, forged(functions, name, "Delete"))
    assert [answer["Status"] for answer in functions.endpoint.answers] == ["SUCCESS"]
    assert functions.requests == []
    assert functions.rows == rows
    assert functions.all_executions == []


class TestGenuine:
    @pytest.mark.parametrize("kind", ["Create", "Update"])
    @pytest.mark.parametrize("name", OF_A_DEPLOYMENT)
    def test_an_event_of_a_running_deployment_is_accepted(self, functions: Functions, name: str, kind: str) -> None:
        """This includes rollbacks: CloudFormation sends an update to the earlier properties."""
        resources = functions.deploy(name, forged(functions, name, kind))
        assert len(functions.endpoint.answers) == 1
        assert resources.asked.count("resource") == 1

    @pytest.mark.parametrize("name", OF_A_DEPLOYMENT)
    def test_a_resource_that_is_not_visible_yet_is_waited_for(self, functions: Functions, name: str) -> None:
        late = LateResources(2, StackResource.parse(OWN_STACK, OF_A_DEPLOYMENT[name][1]), OF_A_DEPLOYMENT[name][0])
        functions.show(late)
        functions.call(name, forged(functions, name, "Create"))
        assert len(functions.endpoint.answers) == 1

    @pytest.mark.parametrize("name", OF_A_DEPLOYMENT)
    def test_throttling_is_waited_for(self, functions: Functions, name: str) -> None:
        show(functions, name, "CREATE_IN_PROGRESS").throttled_calls = 2
        functions.call(name, forged(functions, name, "Create"))
        assert len(functions.endpoint.answers) == 1

    @pytest.mark.parametrize("name", OF_A_DEPLOYMENT)
    def test_a_resource_that_stays_invisible_is_an_error_so_that_lambda_retries(
        self, functions: Functions, name: str
    ) -> None:
        show(functions, name, "CREATE_COMPLETE")
        with pytest.raises(BerthError):
            functions.call(name, forged(functions, name, "Create"))
        functions.deploy(name, forged(functions, name, "Create"))
        assert len(functions.endpoint.answers) == 1


class LateResources(FakeResources):
    """CloudFormation, where a resource becomes visible after some calls."""

    def __init__(self, hidden: int, resource: StackResource, kind: str) -> None:
        super().__init__()
        self._hidden, self._resource, self._kind = hidden, resource, kind

    def _called(self, method: str) -> None:
        super()._called(method)
        if len(self.asked) > self._hidden:
            self.put(self._resource, "CREATE_IN_PROGRESS", stack="CREATE_IN_PROGRESS", kind=self._kind)
