"""Reviews that are kept: other tenants make the same move by one call, and every doubtful stack is reviewed itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from orchestrator.common.own_versions import template_version
from orchestrator.common.tenant_ids import WARM_PREFIX, TenantId
from orchestrator.local.releases import released_template
from orchestrator.releases.published import fingerprint, varies_by_tenant
from orchestrator.tenants.messages import Messages
from orchestrator.tenants.outcomes import Again, Done, GaveUp, Reviewing, Started, Unchanged
from orchestrator.tenants.records import Operation, Request
from orchestrator.tenants.stack_ports import Change, Effect
from tests.fakes import (
    ACME,
    NEXT_VERSION,
    NOON,
    OTHER_QUEUE,
    QUEUE,
    VERSION,
    OwnedTenant,
    a_release,
    a_run,
    parameters_of,
    some_metadata,
    stack_arn,
)
from tests.fakes.stacks import QUEUE_TYPE

WARM = TenantId(f"{WARM_PREFIX}one")
RUN = a_run(operation=Operation.UPDATE, version=NEXT_VERSION)
DAY_BEFORE = NOON - timedelta(days=1)
DEPLOYED = fingerprint(a_release(), parameters_of(ACME))
OUTBOUND = Change("OutboundQueue", QUEUE_TYPE, OTHER_QUEUE.url, Effect.REPLACE)
MUTATING = {"create", "delete", "update", "create_change_set", "execute_change_set", "roll_back", "continue_rollback"}


class Recorded(OwnedTenant):
    """A tenant whose stack is as Berth has left and recorded it, and an update that has just begun."""

    def __init__(self, *, request: Request = RUN.request, **fakes: Any) -> None:
        recorded = some_metadata(deployed=DEPLOYED, stack_changed_at=DAY_BEFORE)
        super().__init__(replace(RUN, request=request), metadata=recorded, **fakes)
        self.plant()
        self.alter(parameters=parameters_of(ACME), changed_at=DAY_BEFORE)

    def alter(self, **changes: Any) -> None:
        """Make the stack differ from what was recorded."""
        fake = self.stacks.all[stack_arn()]
        fake.stack = replace(fake.stack, **changes)

    def mutations(self) -> list[str]:
        return [call for call in self.stacks.calls if call in MUTATING]


def reviewed_once(**fakes: Any) -> Recorded:
    """A tenant of which the move was reviewed before, for another tenant."""
    first = Recorded()
    assert first.drive() == Done(stack_arn(), QUEUE, NEXT_VERSION)
    assert len(first.reviews.kept) == 1
    return Recorded(reviews=first.reviews, **fakes)


def test_the_first_tenant_of_a_move_is_reviewed_by_a_change_set() -> None:
    world = Recorded()
    assert world.drive() == Done(stack_arn(), QUEUE, NEXT_VERSION)
    assert world.mutations() == ["create_change_set", "execute_change_set"]


def test_every_other_tenant_of_the_move_is_updated_by_one_call() -> None:
    world = reviewed_once()
    assert world.drive() == Done(stack_arn(), QUEUE, NEXT_VERSION)
    assert world.mutations() == ["update"]
    assert world.stacks.all[stack_arn()].client_token == f"{RUN.attempt.client_token}-update"


def test_a_review_says_which_change_set_it_was() -> None:
    world = Recorded()
    world.drive()
    (review,) = world.reviews.kept.values()
    assert (review.origin, review.target, review.at) == (VERSION, NEXT_VERSION, NOON)
    assert review.change_set.endswith("/berth-name-1/1")


def test_the_first_review_of_a_move_stays() -> None:
    world = Recorded()
    world.drive()
    (review,) = world.reviews.kept.values()
    world.reviews.keep_review(replace(review, change_set="another"))
    assert list(world.reviews.kept.values()) == [review]


# Stacks that are reviewed themselves, whatever is kept


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"changed_at": NOON}, id="changed by hand"),
        pytest.param({"changed_at": None}, id="no time of a change"),
        pytest.param({"parameters": {}}, id="other parameters"),
        pytest.param({"version": None}, id="no version"),
        pytest.param({"version": "9.9.9"}, id="a version that was never published"),
        pytest.param({"version": NEXT_VERSION}, id="another version than the recorded one"),
        pytest.param({"ours": False}, id="another role"),
        pytest.param({"attached": frozenset({"arn:aws:sns:eu-west-1:000000000000:t"})}, id="something attached"),
        pytest.param({"status": "UPDATE_ROLLBACK_COMPLETE"}, id="an update that was rolled back"),
    ],
)
def test_a_stack_that_is_not_as_recorded_is_reviewed_itself(changes: dict[str, Any]) -> None:
    world = reviewed_once()
    world.alter(**changes)
    assert world.start() == Reviewing()
    assert world.mutations() == ["create_change_set"]


@pytest.mark.parametrize("missing", ["deployed", "stack_changed_at"])
def test_a_stack_of_which_nothing_is_recorded_is_reviewed_itself(missing: str) -> None:
    """Adopted tenants, and tenants whose last update failed."""
    world = reviewed_once()
    recorded = {"deployed": DEPLOYED, "stack_changed_at": DAY_BEFORE, missing: None}
    world.table.plant_lock(ACME, world.run, **{name: value for name, value in recorded.items() if value})
    assert world.start() == Reviewing()
    assert world.mutations() == ["create_change_set"]


def learning(world: Recorded) -> Recorded:
    """The tenant has taken a stack that was kept ready, which does not name it yet."""
    parameters = parameters_of(WARM)
    world.alter(parameters=parameters, tenant_id=WARM.value)
    deployed = fingerprint(a_release(), parameters)
    assert deployed
    world.table.plant_lock(ACME, world.run, deployed=deployed, stack_changed_at=DAY_BEFORE)
    return world


def test_a_move_by_which_a_stack_learns_its_tenant_is_reviewed_itself_and_then_made_by_one_call() -> None:
    """What depends on the tenant's id changes, too, which it does for no tenant whose move was reviewed before."""
    world = learning(reviewed_once())
    assert world.drive() == Done(stack_arn(), QUEUE, NEXT_VERSION)
    assert world.mutations() == ["create_change_set", "execute_change_set"]
    another = learning(Recorded(reviews=world.reviews))
    assert another.drive() == Done(stack_arn(), QUEUE, NEXT_VERSION)
    assert another.mutations() == ["update"]


def test_another_move_is_reviewed_itself() -> None:
    world = reviewed_once(parameters=lambda tenant, release: parameters_of(tenant, release) | {"KmsKeyArn": "another"})
    assert world.start() == Reviewing()


def test_a_template_that_somebody_has_changed_is_not_deployed() -> None:
    world = reviewed_once()
    world.published_templates.templates[NEXT_VERSION] = None
    world.stacks.digests[a_release(NEXT_VERSION).template_url] = "e" * 64
    outcome = world.drive()
    assert isinstance(outcome, GaveUp)
    assert "another template" in outcome.reason
    assert world.mutations() == ["create_change_set"]


# Reviews that are not kept


@pytest.mark.parametrize("allowed", [False, True])
def test_a_move_that_removes_a_queue_is_reviewed_for_every_tenant(allowed: bool) -> None:
    request = replace(RUN.request, allow_replacement=allowed)
    world = Recorded(request=request)
    world.stacks.would_change = (OUTBOUND,)
    assert world.drive() == Done(stack_arn(), QUEUE, NEXT_VERSION)
    assert not world.reviews.kept


def test_a_move_that_would_lose_messages_is_refused_for_every_tenant() -> None:
    for _ in range(2):
        world = Recorded()
        world.stacks.would_change = (OUTBOUND,)
        world.queues.held[OTHER_QUEUE.url] = Messages(1, 0, 0)
        outcome = world.drive()
        assert isinstance(outcome, GaveUp)
        assert "holds messages" in outcome.reason
        assert not world.reviews.kept


def test_the_review_of_a_stack_that_is_not_as_recorded_is_not_kept() -> None:
    world = Recorded()
    world.alter(changed_at=NOON - timedelta(hours=1))
    assert world.drive() == Done(stack_arn(), QUEUE, NEXT_VERSION)
    assert not world.reviews.kept


@pytest.mark.parametrize("version", [VERSION, NEXT_VERSION])
@pytest.mark.parametrize("template", [None, json.dumps({"Conditions": {"IsAcme": {"Ref": "TenantId"}}})])
def test_a_review_is_not_kept_if_tenants_may_differ(version: str, template: str | None) -> None:
    world = Recorded()
    world.published_templates.templates[version] = template
    assert world.drive() == Done(stack_arn(), QUEUE, NEXT_VERSION)
    assert not world.reviews.kept


# Faults on the way


def test_a_lost_response_does_not_lead_to_a_second_update() -> None:
    world = reviewed_once()
    world.start()
    world.stacks.settle()
    assert world.start() == Started(stack_arn())
    assert world.inspect(Started(stack_arn())) == Done(stack_arn(), QUEUE, NEXT_VERSION)
    assert world.mutations() == ["update"]


def test_a_lost_response_to_an_update_that_is_rolled_back_does_not_lead_to_a_second_update() -> None:
    world = reviewed_once()
    world.stacks.failures.append("Access denied.")
    world.start()
    world.stacks.settle()
    assert isinstance(world.drive(), GaveUp)
    assert world.mutations() == ["update"]


def test_a_stack_that_somebody_begins_to_change_at_this_moment_is_tried_again() -> None:
    world = reviewed_once()
    update: Callable[..., bool] = world.stacks.update

    def just_before(*given: Any, **named: Any) -> bool:
        world.alter(status="UPDATE_IN_PROGRESS")
        return update(*given, **named)

    world.stacks.update = just_before  # type: ignore[method-assign]
    assert isinstance(world.start(), Again)


def test_an_update_that_has_nothing_to_change_is_success() -> None:
    world = reviewed_once()
    world.stacks.all[stack_arn()].template_url = a_release(NEXT_VERSION).template_url
    assert world.start() == Unchanged(stack_arn())
    assert world.inspect(Unchanged(stack_arn())) == Done(stack_arn(), QUEUE, NEXT_VERSION)


# Which templates are the same for all tenants


def a_template(**queue: Any) -> dict[str, Any]:
    return {"Parameters": {"TenantId": {}}, "Resources": {"InboundQueue": {"Type": QUEUE_TYPE, **queue}}}


@pytest.mark.parametrize(
    ("template", "varies"),
    [
        (a_template(), False),
        (a_template(Properties={"Tags": [{"Key": "tenant", "Value": {"Ref": "TenantId"}}]}), False),
        (a_template(Properties={"QueueName": {"Ref": "TenantId"}}), True),
        (a_template(Properties={"QueueName": {"Fn::Sub": "q-${TenantId}"}}), True),
        (a_template(Condition="IsAcme") | {"Conditions": {"IsAcme": {"Fn::Equals": [{"Ref": "TenantId"}, "a"]}}}, True),
        (a_template() | {"Conditions": {"HasKey": {"Fn::Equals": [{"Ref": "KmsKeyArn"}, ""]}}}, False),
        (a_template() | {"Transform": "AWS::LanguageExtensions"}, True),
    ],
)
def test_a_queue_that_the_tenants_id_may_decide_about_is_found(template: dict[str, Any], varies: bool) -> None:
    assert varies_by_tenant(json.dumps(template)) is varies


def test_the_own_template_has_no_queues_that_vary_by_tenant() -> None:
    """Otherwise its updates would take two mutating calls per tenant."""
    assert not varies_by_tenant(json.dumps(released_template(template_version())))
