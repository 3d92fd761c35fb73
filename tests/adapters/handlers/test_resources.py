"""Custom resources: called by CloudFormation; what they have to say goes to an address of its own."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from orchestrator.common.errors import Throttled, Unconfirmed
from orchestrator.common.tiers import STANDARD
from orchestrator.releases.published import canonical
from orchestrator.releases.records import ReleaseState
from orchestrator.tenants.records import Operation
from orchestrator.tenants.stack_ports import Stack
from orchestrator.tenants.stack_resources import StackResource
from tests.adapters.conftest import REGION, client
from tests.adapters.handlers.functions import (
    OF_A_DEPLOYMENT,
    OWN_STACK,
    RELEASES,
    SOURCES,
    Functions,
    plant_stack,
    queue_of,
)
from tests.fakes import (
    A_KEY,
    ACME,
    LOCATION,
    NEXT_VERSION,
    OTHER_QUEUE,
    QUEUE,
    VERSION,
    FakeResources,
    FakeStacks,
    a_release,
    a_run,
    stack_arn,
    take,
)
from tests.functions import forget_functions
from tests.present import present

pytestmark = pytest.mark.usefixtures("endpoint")

STACK_ID = stack_arn()
PROPERTIES = {"TenantId": "acme", "InboundQueueArn": QUEUE.arn, "InboundQueueUrl": QUEUE.url}
EVIL = {
    "TenantId": "acme",
    "InboundQueueArn": "arn:aws:sqs:eu-west-1:111111111111:evil",
    "InboundQueueUrl": "https://sqs.eu-west-1.amazonaws.com/111111111111/evil",
}
UPDATE = a_run(operation=Operation.UPDATE, version=NEXT_VERSION)
DELETE = a_run(operation=Operation.DELETE)


def statuses(functions: Functions) -> list[str]:
    return [answer["Status"] for answer in functions.endpoint.answers]


class TestTenantMetadata:
    @pytest.fixture(autouse=True)
    def account_of_the_fakes(self, monkeypatch: pytest.MonkeyPatch, functions: Functions) -> None:  # noqa: ARG002
        monkeypatch.setenv("BERTH_LOCATION", str(LOCATION))
        forget_functions()

    def call(self, functions: Functions, request_type: str = "Create", **changes: Any) -> None:
        event = {"RequestType": request_type, "StackId": STACK_ID, "ResourceProperties": PROPERTIES, **changes}
        functions.call("tenant_metadata", functions.endpoint.event(**event))

    def test_a_stack_keeps_the_metadata_of_its_tenant_current(self, functions: Functions) -> None:
        stacks = functions.use(FakeStacks())
        stacks.plant_done(ACME, status="CREATE_IN_PROGRESS")
        self.call(functions)
        metadata = present(functions.table.metadata(ACME))
        assert (metadata.queue, metadata.stack_id, metadata.version) == (QUEUE, STACK_ID, None)
        stacks.change(STACK_ID, "ROLLBACK_IN_PROGRESS")
        self.call(functions, "Delete")
        metadata = present(functions.table.metadata(ACME))
        assert (metadata.queue, metadata.stack_id, metadata.version) == (None, None, None)
        assert statuses(functions) == ["SUCCESS", "SUCCESS"]
        assert {answer["PhysicalResourceId"] for answer in functions.endpoint.answers} == {"tenant-metadata"}

    def test_a_replaced_queue_is_recorded_at_once(self, functions: Functions) -> None:
        functions.use(FakeStacks()).plant_done(ACME, status="UPDATE_IN_PROGRESS", queue=OTHER_QUEUE)
        functions.serve(stack_id=STACK_ID)
        replaced = {"TenantId": "acme", "InboundQueueArn": OTHER_QUEUE.arn, "InboundQueueUrl": OTHER_QUEUE.url}
        self.call(functions, "Update", ResourceProperties=replaced)
        metadata = present(functions.table.metadata(ACME))
        assert (metadata.queue, metadata.version) == (OTHER_QUEUE, VERSION)

    def test_another_stack_cannot_replace_a_published_queue(self, functions: Functions) -> None:
        stacks = functions.use(FakeStacks())
        stacks.plant(Stack(stack_arn(number=2), "CREATE_IN_PROGRESS", "", "acme", OTHER_QUEUE, None, ours=True))
        functions.serve(stack_id=STACK_ID)
        self.call(functions, StackId=stack_arn(number=2))
        (answer,) = functions.endpoint.answers
        assert answer["Status"] == "FAILED"
        assert "another stack" in answer["Reason"]

    @pytest.mark.parametrize(
        "status",
        [
            "UPDATE_ROLLBACK_IN_PROGRESS",
            "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS",
            "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS",
            "UPDATE_IN_PROGRESS",
        ],
    )
    def test_a_rollback_of_the_update_that_added_the_resource_keeps_the_queue(
        self, functions: Functions, status: str
    ) -> None:
        functions.use(FakeStacks()).plant_done(ACME, status=status)
        functions.serve(stack_id=STACK_ID)
        take(functions.table, UPDATE)
        self.call(functions, "Delete")
        assert statuses(functions) == ["SUCCESS"]
        assert functions.get_queue({"tenantId": "acme"})[2]["queueUrl"] == QUEUE.url

    def test_deleting_the_stack_removes_a_published_queue(self, functions: Functions) -> None:
        functions.use(FakeStacks()).plant_done(ACME, status="DELETE_IN_PROGRESS")
        functions.serve(stack_id=STACK_ID)
        self.call(functions, "Delete")
        assert statuses(functions) == ["SUCCESS"]
        metadata = present(functions.table.metadata(ACME))
        assert not metadata.published

    def test_a_delete_continues_although_the_stack_cannot_be_read(self, functions: Functions) -> None:
        stacks = functions.use(FakeStacks())
        stacks.throttled_calls = 1
        functions.serve(stack_id=STACK_ID)
        take(functions.table, DELETE)
        self.call(functions, "Delete")
        assert statuses(functions) == ["SUCCESS"]
        metadata = present(functions.table.metadata(ACME))
        assert (metadata.queue, metadata.withdrawn_by) == (None, DELETE.execution)

    def test_deleting_another_stack_removes_nothing(self, functions: Functions) -> None:
        functions.serve(stack_id=STACK_ID)
        self.call(functions, "Delete", StackId=stack_arn(number=2))
        assert statuses(functions) == ["SUCCESS"]
        assert functions.get_queue({"tenantId": "acme"})[0] == 200

    def test_a_throttled_table_is_an_error_so_that_lambda_retries(self, functions: Functions) -> None:
        functions.throttle("UpdateItem")
        functions.use(FakeStacks()).plant_done(ACME, status="CREATE_IN_PROGRESS")
        with pytest.raises(Throttled):
            self.call(functions)
        assert statuses(functions) == []

    def test_a_rollback_of_a_replaced_queue_survives_throttling(self, functions: Functions) -> None:
        """Otherwise the stack could not roll back. Lambda calls the function again with the same event."""
        stacks = functions.use(FakeStacks())
        stacks.plant_done(ACME, status="UPDATE_ROLLBACK_IN_PROGRESS")
        functions.serve(stack_id=STACK_ID, queue=OTHER_QUEUE)
        stacks.throttled_calls = 1
        with pytest.raises(Throttled):
            self.call(functions, "Update")
        self.call(functions, "Update")
        assert statuses(functions) == ["SUCCESS"]
        assert functions.get_queue({"tenantId": "acme"})[2]["queueUrl"] == QUEUE.url

    def test_a_stack_with_refused_metadata_can_be_rolled_back(self, functions: Functions) -> None:
        refused = {**PROPERTIES, "TenantId": "a/b"}
        self.call(functions, ResourceProperties=refused)
        self.call(functions, "Delete", ResourceProperties=refused, PhysicalResourceId="tenant-metadata")
        assert statuses(functions) == ["FAILED", "SUCCESS"]
        assert functions.rows == 0


class TestForgedMetadata:
    """Events that nobody but whoever may call the function has sent, about a tenant whose stack moto has."""

    def forge(self, functions: Functions, stack_id: str, kind: str = "Update") -> str:
        event = functions.endpoint.event(RequestType=kind, StackId=stack_id, ResourceProperties=EVIL)
        functions.call("tenant_metadata", event)
        return statuses(functions)[-1]

    @pytest.mark.parametrize("kind", ["Create", "Update"])
    def test_a_forged_event_does_not_change_the_queue(self, functions: Functions, stack: str, kind: str) -> None:
        before = queue_of(functions)
        self.forge(functions, stack, kind)
        assert queue_of(functions) == before

    @pytest.mark.parametrize("kind", ["Create", "Update"])
    @pytest.mark.parametrize(
        ("old", "new"),
        [(REGION, "us-east-1"), ("123456789012", "111111111111"), (":stack/", ":stack/evil/x:stack/"), ("arn:", "x:")],
    )
    def test_a_stack_of_another_place_is_refused(
        self, functions: Functions, stack: str, kind: str, old: str, new: str
    ) -> None:
        before = queue_of(functions)
        assert self.forge(functions, stack.replace(old, new), kind) == "FAILED"
        assert queue_of(functions) == before

    def test_a_forged_delete_removes_nothing_while_the_stack_exists(self, functions: Functions, stack: str) -> None:
        before = queue_of(functions)
        assert self.forge(functions, stack, "Delete") == "SUCCESS"
        assert queue_of(functions) == before

    def test_a_stack_that_somebody_else_created_is_not_recorded(self, functions: Functions) -> None:
        planted = plant_stack(ACME)
        assert self.forge(functions, planted, "Create") == "FAILED"
        assert functions.table.metadata(ACME) is None


class TestPublishRelease:
    def test_a_release_is_published_with_its_notes_and_url(self, functions: Functions) -> None:
        template = canonical({"Resources": {}})
        for bucket in (RELEASES, SOURCES):
            client("s3").create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION})
        client("s3").put_object(Bucket=SOURCES, Key="template.json", Body=template)
        properties = {
            "Version": VERSION,
            "Digest": hashlib.sha256(template).hexdigest(),
            "SourceKey": "template.json",
            "Notes": "Faster.",
        }
        functions.deploy("publish_release", functions.endpoint.event(ResourceProperties=properties))
        release = present(functions.table.release(VERSION))
        assert (release.notes, len(release.content)) == ("Faster.", 64)
        (answer,) = functions.endpoint.answers
        assert (answer["Status"], answer["Data"]) == ("SUCCESS", {"TemplateUrl": release.template_url})

    @pytest.mark.parametrize(
        ("before", "stored"), [({}, 2), ({"KmsKeyArn": A_KEY}, 1)], ids=["another key", "the same"]
    )
    def test_another_key_stores_published_templates_again(
        self, functions: Functions, before: dict[str, str], stored: int
    ) -> None:
        template = canonical({"Resources": {}})
        for bucket in (RELEASES, SOURCES):
            client("s3").create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION})
        versioning: Any = {"Status": "Enabled"}
        client("s3").put_bucket_versioning(Bucket=RELEASES, VersioningConfiguration=versioning)
        client("s3").put_object(Bucket=SOURCES, Key="template.json", Body=template)
        digest = hashlib.sha256(template).hexdigest()
        properties = {"Version": VERSION, "Digest": digest, "SourceKey": "template.json"}
        functions.deploy("publish_release", functions.endpoint.event(ResourceProperties=properties | before))
        published = functions.table.release(VERSION)
        functions.deploy(
            "publish_release",
            functions.endpoint.event(
                RequestType="Update",
                ResourceProperties=properties | {"KmsKeyArn": A_KEY},
                OldResourceProperties=properties | before,
            ),
        )
        assert statuses(functions) == ["SUCCESS", "SUCCESS"]
        assert len(client("s3").list_object_versions(Bucket=RELEASES)["Versions"]) == stored
        assert functions.table.release(VERSION) == published

    @pytest.mark.parametrize("former", [None, NEXT_VERSION], ids=["the first deployment", "another version before"])
    def test_the_release_that_is_current_is_kept_when_deployments_cease_to_promote(
        self, functions: Functions, monkeypatch: pytest.MonkeyPatch, former: str | None
    ) -> None:
        monkeypatch.setenv("BERTH_PROMOTION", "afterRollout")
        resources = FakeResources()
        resource = StackResource.parse(OWN_STACK, "CurrentRelease")
        doing = "CREATE_IN_PROGRESS"
        resources.put(resource, doing, stack="UPDATE_IN_PROGRESS", kind="Custom::CurrentRelease")
        if former:
            resources.outputs[resource.stack, "TemplateVersion"] = former
        functions.show(resources)
        event = functions.endpoint.event(ResourceType="Custom::CurrentRelease", ResourceProperties={})
        for _ in range(2):
            functions.call("publish_release", event | {"StackId": OWN_STACK, "LogicalResourceId": "CurrentRelease"})
        assert statuses(functions) == ["SUCCESS", "SUCCESS"]
        state = functions.ports.release_states.state()
        assert state.promotions[STANDARD].version == (former or VERSION)
        assert state.revision == 1, "the second event is the same request"

    def test_a_forged_event_about_the_current_release_changes_nothing(self, functions: Functions) -> None:
        functions.show(FakeResources())
        event = functions.endpoint.event(ResourceType="Custom::CurrentRelease", ResourceProperties={})
        with pytest.raises(Unconfirmed):
            functions.call("publish_release", event | {"StackId": OWN_STACK, "LogicalResourceId": "CurrentRelease"})
        assert functions.ports.release_states.state() == ReleaseState()

    def test_removing_the_control_plane_keeps_its_releases(self, functions: Functions) -> None:
        functions.table.record_release(a_release())
        properties = {"Version": VERSION, "Digest": "d" * 64, "SourceKey": "k"}
        functions.call("publish_release", functions.endpoint.event(RequestType="Delete", ResourceProperties=properties))
        assert functions.table.release(VERSION) is not None
        assert statuses(functions) == ["SUCCESS"]


NAMES = ["tenant_metadata", "publish_release", "start_rollout"]
"""Custom::TenantQueue is answered by a machine, once CloudFormation has confirmed the request."""


@pytest.mark.parametrize("name", NAMES)
def test_a_refused_resource_can_be_removed(functions: Functions, name: str) -> None:
    functions.call(
        name, functions.endpoint.event(RequestType="Delete", PhysicalResourceId="as it was", ResourceProperties={})
    )
    (answer,) = functions.endpoint.answers
    assert (answer["Status"], answer["PhysicalResourceId"]) == ("SUCCESS", "as it was")
    assert functions.requests == []


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("request_type", ["Create", "Update"])
def test_an_invalid_request_gets_a_response(functions: Functions, name: str, request_type: str) -> None:
    event = functions.endpoint.event(RequestType=request_type, ResourceProperties={})
    if name in OF_A_DEPLOYMENT:
        functions.deploy(name, event)
    else:
        functions.call(name, event)
    (answer,) = functions.endpoint.answers
    assert answer["Status"] == "FAILED"
    assert "required" in answer["Reason"]
    assert functions.requests == []
