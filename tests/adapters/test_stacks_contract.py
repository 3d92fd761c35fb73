"""The contract of stacks, which the fake and CloudFormation both keep, as far as a stack of one queue shows it.

What the stand-ins for AWS cannot show is left out for them, here and nowhere else:

- neither knows a request by its token, so one that is repeated is answered as if it were another: the stack is there;
- moto's updates leave a stack's outputs, and with them its version, as they were, and its events without a token;
- moto's change sets may be drawn up and made twice, also when there is nothing to change, one that there is not is a
  fault there, and none has a template of its own;
- both are done at once: what a stack is like while it is being changed, only the fake shows.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from orchestrator.adapters.cloudformation import CloudFormationStacks
from orchestrator.common.errors import Conflict
from orchestrator.local.home import polls
from orchestrator.releases.published import digest_of, stack_parameters
from orchestrator.releases.records import Release
from orchestrator.tenants.stack_ports import ChangeSet, ChangeSetState, Stack, Stacks
from tests.adapters.conftest import REGION, Account
from tests.fakes import ACME, NAMES, NEXT_VERSION, VERSION, FakeStacks, a_release, stack_arn
from tests.present import present

BUCKET = "berth-releases"
CHANGES = "update-acme-0-2-0-1"
"""The name of a change set."""

updates_in_full = pytest.mark.parametrize("kind", ["memory", "emulator"], indirect=True)
"""Where an update is what it is on AWS."""


class InMemory:
    def __init__(self) -> None:
        self.fake = FakeStacks()
        self.stacks: Stacks = self.fake

    def release(self, version: str) -> Release:
        return a_release(version)

    def settle(self) -> None:
        self.fake.settle()

    def plant(self) -> None:
        """Somebody else makes a stack under the tenant's name."""
        self.fake.plant_done(ACME, ours=False)


class OnAws:
    def __init__(self, account: Account) -> None:
        self._s3, self._cloudformation = account.client("s3"), account.client("cloudformation")
        self._report_resources_of_deleted_stacks_as_deleted()
        self.stacks: Stacks = CloudFormationStacks(
            self._cloudformation,
            names=NAMES,
            service_role=f"arn:aws:iam::{account.number}:role/tenant-stacks",
            parameters=partial(stack_parameters, service_token="arn:aws:lambda:eu-west-1:0:function:metadata"),
        )
        self.templates: dict[str, dict[str, Any]] = {}
        self._s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})

    def _report_resources_of_deleted_stacks_as_deleted(self) -> None:
        """moto lists every resource as created, whatever has become of its stack."""
        events, operation = self._cloudformation.meta.events, "cloudformation.ListStackResources"

        def remember(params: dict[str, Any], context: dict[str, Any], **_: object) -> None:
            context["stack"] = params["StackName"]

        def correct(parsed: dict[str, Any], context: dict[str, Any], **_: object) -> None:
            (stack,) = self._cloudformation.describe_stacks(StackName=context["stack"])["Stacks"]
            if stack["StackStatus"] == "DELETE_COMPLETE":
                for each in parsed["StackResourceSummaries"]:
                    each["ResourceStatus"] = stack["StackStatus"]

        events.register(f"provide-client-params.{operation}", remember)
        events.register(f"after-call.{operation}", correct)

    def release(self, version: str) -> Release:
        """It differs from version to version by how long its queue keeps messages."""
        template: dict[str, Any] = {
            "Parameters": {"TenantId": {"Type": "String"}, "MetadataServiceToken": {"Type": "String"}},
            "Resources": {
                "InboundQueue": {
                    "Type": "AWS::SQS::Queue",
                    "Properties": {"MessageRetentionPeriod": 60 + int(version.replace(".", ""))},
                }
            },
            "Outputs": {
                "InboundQueueArn": {"Value": {"Fn::GetAtt": ["InboundQueue", "Arn"]}},
                "InboundQueueUrl": {"Value": {"Ref": "InboundQueue"}},
                "Version": {"Value": version},
            },
        }
        self.templates[version] = template
        self._s3.put_object(Bucket=BUCKET, Key=f"{version}.json", Body=json.dumps(template))
        return replace(a_release(version), template_url=f"https://s3.{REGION}.amazonaws.com/{BUCKET}/{version}.json")

    def settle(self) -> None:
        for _ in polls(20):
            stack = self.stacks.find(NAMES.stack_of(ACME))
            if stack is None or not stack.status.endswith("_IN_PROGRESS"):
                return

    def plant(self) -> None:
        parameters = {"TenantId": "acme", "MetadataServiceToken": "x"}
        self._cloudformation.create_stack(
            StackName=NAMES.stack_of(ACME),
            TemplateURL=self.release(VERSION).template_url,
            Parameters=[{"ParameterKey": name, "ParameterValue": value} for name, value in parameters.items()],
        )
        self.settle()


World = InMemory | OnAws


@pytest.fixture
def world(account: Account | None) -> World:
    return OnAws(account) if account else InMemory()


@pytest.fixture
def created(world: World) -> str:
    """The tenant's stack, at the first version."""
    stack_id = present(create(world))
    world.settle()
    return stack_id


def create(world: World, client_token: str = "create-1") -> str | None:
    return world.stacks.create(ACME, release=world.release(VERSION), client_token=client_token)


def found(world: World, name_or_id: str = NAMES.stack_of(ACME)) -> Stack:
    return present(world.stacks.find(name_or_id))


def changes(world: World, stack_id: str, name: str = CHANGES) -> ChangeSet:
    return present(world.stacks.find_change_set(stack_id, name))


def draw_up(world: World, version: str = NEXT_VERSION, name: str = CHANGES) -> str:
    stack_id = found(world).stack_id
    return present(world.stacks.create_change_set(ACME, stack_id, release=world.release(version), name=name))


@pytest.mark.parametrize("name_or_id", [NAMES.stack_of(ACME), stack_arn()], ids=["by name", "by id"])
def test_an_unknown_stack_is_none(world: World, name_or_id: str) -> None:
    assert world.stacks.find(name_or_id) is None


def test_a_stack_is_found_by_name_and_by_id_with_its_outputs(world: World, created: str) -> None:
    stack = found(world)
    assert stack == found(world, created)
    assert (stack.stack_id, stack.status, stack.tenant_id) == (created, "CREATE_COMPLETE", "acme")
    assert stack.version == VERSION
    assert stack.queue is not None


def test_a_stack_that_berth_created_is_ours_and_its_queue_is_a_resource(world: World, created: str) -> None:
    stack = found(world)
    assert stack.ours
    assert world.stacks.queue(created) == stack.queue


def test_a_stack_that_somebody_else_created_is_not_ours(world: World) -> None:
    world.plant()
    stack = found(world)
    assert (stack.tenant_id, stack.version, stack.ours) == ("acme", VERSION, False)


def test_a_stack_that_does_not_exist_gets_no_change_set(world: World) -> None:
    none = world.stacks.create_change_set(ACME, stack_arn(), release=world.release(NEXT_VERSION), name=CHANGES)
    assert none is None


@updates_in_full
def test_a_stack_is_ours_after_the_first_change_by_berth(world: World) -> None:
    world.plant()
    stack_id = found(world).stack_id
    change_set = draw_up(world)
    assert not found(world).ours
    world.stacks.execute_change_set(stack_id, change_set, client_token="update-1")
    world.settle()
    assert found(world).ours


def test_the_queues_of_a_stack_are_listed_by_logical_id(world: World, created: str) -> None:
    queues = world.stacks.queues(created)
    assert queues["InboundQueue"] == found(world).queue
    assert world.stacks.queues(stack_arn(number=9)) == {}


def test_a_deleted_stack_has_no_queue(world: World, created: str) -> None:
    world.stacks.delete(created, client_token="delete-1")
    world.settle()
    assert world.stacks.queue(created) is None
    assert world.stacks.queues(created) == {}


def test_an_unknown_stack_has_no_queue(world: World) -> None:
    assert world.stacks.queue(stack_arn()) is None


def test_only_one_stack_at_a_time_has_a_name(world: World, created: str) -> None:
    assert create(world, "create-2") is None
    assert found(world).stack_id == created


def test_a_repeated_request_creates_no_second_stack(world: World) -> None:
    first = present(create(world))
    assert create(world) in (first, None)
    assert found(world).stack_id == first


def test_a_deleted_stack_is_found_by_its_id_only(world: World, created: str) -> None:
    world.stacks.delete(created, client_token="delete-1")
    world.settle()
    assert found(world, created).status == "DELETE_COMPLETE"
    assert world.stacks.find(NAMES.stack_of(ACME)) is None


def test_deleting_a_deleted_stack_does_nothing(world: World, created: str) -> None:
    for _ in range(2):
        world.stacks.delete(created, client_token="delete-1")
        world.settle()
    assert found(world, created).status == "DELETE_COMPLETE"


def test_the_name_of_a_deleted_stack_can_be_used_again(world: World, created: str) -> None:
    world.stacks.delete(created, client_token="delete-1")
    world.settle()
    another = create(world, "create-2")
    assert another not in (created, None)
    world.settle()
    assert (found(world).stack_id, found(world).status) == (another, "CREATE_COMPLETE")


@updates_in_full
def test_changes_that_nobody_drew_up_are_none(world: World, created: str) -> None:
    assert world.stacks.find_change_set(created, CHANGES) is None


def test_changes_are_found_by_their_id_and_by_their_name_with_what_they_were_drawn_up_with(
    world: World, created: str
) -> None:
    change_set = draw_up(world)
    drawn_up = changes(world, created, change_set)
    assert drawn_up == changes(world, created)
    assert (drawn_up.id, drawn_up.stack_id, list(drawn_up.extras)) == (change_set, created, [])
    assert drawn_up.parameters["TenantId"] == "acme"


@pytest.mark.parametrize("kind", ["emulator"], indirect=True)
def test_changes_have_the_digest_of_the_template_that_they_were_drawn_up_from(world: World, created: str) -> None:
    assert isinstance(world, OnAws)
    for version in (VERSION, NEXT_VERSION):
        change_set = draw_up(world, version, f"to-{version.replace('.', '-')}")
        assert world.stacks.template_digest(created, change_set) == digest_of(world.templates[version])


def test_changes_to_what_it_is_already_are_empty(world: World, created: str) -> None:
    draw_up(world, VERSION)
    assert changes(world, created).state is ChangeSetState.EMPTY


def test_changes_that_are_drawn_up_change_nothing_yet(world: World, created: str) -> None:
    before = found(world)
    draw_up(world)
    assert changes(world, created).state is ChangeSetState.READY
    assert found(world) == before


@updates_in_full
def test_changes_are_drawn_up_once_under_a_name(world: World, created: str) -> None:
    draw_up(world)
    assert world.stacks.create_change_set(ACME, created, release=world.release(VERSION), name=CHANGES) is None
    assert changes(world, created).state is ChangeSetState.READY


@updates_in_full
def test_changes_that_are_forgotten_are_none_and_may_be_forgotten_again(world: World, created: str) -> None:
    draw_up(world)
    for _ in range(2):
        world.stacks.delete_change_set(created, CHANGES)
    assert world.stacks.find_change_set(created, CHANGES) is None


def test_changes_are_made(world: World, created: str) -> None:
    queue = found(world).queue
    world.stacks.execute_change_set(created, draw_up(world), client_token="update-1")
    world.settle()
    stack = found(world)
    assert (stack.stack_id, stack.status, stack.queue) == (created, "UPDATE_COMPLETE", queue)
    assert changes(world, created).state is ChangeSetState.EXECUTED


@updates_in_full
def test_once_they_are_made_the_stack_is_at_that_version_and_nothing_is_left_to_change(
    world: World, created: str
) -> None:
    world.stacks.execute_change_set(created, draw_up(world), client_token="update-1")
    world.settle()
    assert found(world).version == NEXT_VERSION
    draw_up(world, NEXT_VERSION, "again")
    assert changes(world, created, "again").state is ChangeSetState.EMPTY


@updates_in_full
def test_changes_are_made_once(world: World, created: str) -> None:
    world.stacks.execute_change_set(created, draw_up(world), client_token="update-1")
    with pytest.raises(Conflict):
        world.stacks.execute_change_set(created, CHANGES, client_token="update-1")


@updates_in_full
def test_empty_changes_cannot_be_made(world: World, created: str) -> None:
    draw_up(world, VERSION)
    with pytest.raises(Conflict):
        world.stacks.execute_change_set(created, CHANGES, client_token="update-1")


def update(world: World, stack_id: str, version: str = NEXT_VERSION) -> bool:
    release = world.release(version)
    template = json.dumps(world.templates[version]) if isinstance(world, OnAws) else "{}"
    return world.stacks.update(ACME, stack_id, release=release, template=template, client_token="update-1")


@updates_in_full
def test_a_stack_is_updated_without_a_change_set(world: World, created: str) -> None:
    before = found(world)
    assert update(world, created)
    world.settle()
    stack = found(world)
    assert (stack.stack_id, stack.status, stack.queue) == (created, "UPDATE_COMPLETE", before.queue)
    assert (stack.version, stack.parameters, stack.ours) == (NEXT_VERSION, before.parameters, True)
    tokens = {event.status: event.client_token for event in world.stacks.events(created) if event.is_stack}
    assert tokens["UPDATE_COMPLETE"] == "update-1"


@updates_in_full
def test_an_update_that_changes_nothing_is_none(world: World, created: str) -> None:
    assert not update(world, created, VERSION)
    assert found(world).status == "CREATE_COMPLETE"


@updates_in_full
def test_an_update_makes_a_change_set_useless(world: World, created: str) -> None:
    draw_up(world)
    update(world, created)
    world.settle()
    with pytest.raises(Conflict):
        world.stacks.execute_change_set(created, CHANGES, client_token="update-2")


@updates_in_full
def test_a_deleted_stack_cannot_be_updated(world: World, created: str) -> None:
    world.stacks.delete(created, client_token="delete-1")
    world.settle()
    with pytest.raises(Conflict):
        update(world, created)


@updates_in_full
def test_the_time_of_the_last_change_is_that_of_the_last_update(world: World, created: str) -> None:
    before = present(found(world).changed_at)
    assert found(world).changed_at == before
    if isinstance(world, InMemory):
        world.fake.now += timedelta(seconds=1)
    update(world, created)
    world.settle()
    after = present(found(world).changed_at)
    assert after > before
    draw_up(world, VERSION)
    assert found(world).changed_at == after


def test_events_are_listed_newest_first_and_those_of_the_stack_are_marked(world: World, created: str) -> None:
    newest, *_, oldest = world.stacks.events(created)
    for event, status in ((newest, "CREATE_COMPLETE"), (oldest, "CREATE_IN_PROGRESS")):
        assert (event.resource, event.status, event.is_stack) == (NAMES.stack_of(ACME), status, True)
    assert newest.at >= oldest.at


@updates_in_full
def test_events_have_the_token_of_their_request(world: World, created: str) -> None:
    world.stacks.execute_change_set(created, draw_up(world), client_token="update-1")
    world.settle()
    tokens = {event.status: event.client_token for event in world.stacks.events(created) if event.is_stack}
    assert (tokens["CREATE_COMPLETE"], tokens["UPDATE_COMPLETE"]) == ("create-1", "update-1")


def test_events_of_a_deleted_stack_are_found_by_its_id(world: World, created: str) -> None:
    world.stacks.delete(created, client_token="delete-1")
    world.settle()
    assert next(iter(world.stacks.events(created))).status == "DELETE_COMPLETE"
