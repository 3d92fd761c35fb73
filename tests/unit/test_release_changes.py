"""The differences between two published releases, and the review that is kept of a move between them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from orchestrator.releases.comparing import changes_between
from orchestrator.releases.template_contract import KMS_KEY_PARAMETER
from orchestrator.rollouts.resource_changes import ResourceChange
from orchestrator.tenants.admission import Refusal, Refused
from orchestrator.tenants.release_changes import ReleaseChanges
from orchestrator.tenants.reviews import Move, Review, shared_parameters
from orchestrator.tenants.stack_ports import Effect
from tests.fakes import ACME, NEXT_VERSION, NOON, VERSION, World
from tests.present import present


@pytest.fixture
def world() -> World:
    world = World()
    for version, timeout in ((VERSION, 30), (NEXT_VERSION, 60)):
        queue = {"Type": "AWS::SQS::Queue", "Properties": {"VisibilityTimeout": timeout}}
        world.published_templates.templates[version] = json.dumps({"Resources": {"InboundQueue": queue}})
    return world


def compared(world: World, origin: str = VERSION, target: str = NEXT_VERSION) -> ReleaseChanges:
    found = world.comparing_releases.compare(origin, target)
    assert isinstance(found, ReleaseChanges)
    return found


def move(world: World) -> Move:
    origin, target = (present(world.releases.release(version)) for version in (VERSION, NEXT_VERSION))
    before, after = (shared_parameters(world.parameters(ACME, release)) for release in (origin, target))
    return Move(origin, before, target, after)


def test_every_property_that_differs_is_named(world: World) -> None:
    assert [change.as_document() for change in compared(world).changes or ()] == [
        {
            "section": "Resources",
            "logicalId": "InboundQueue",
            "resourceType": "AWS::SQS::Queue",
            "path": "Properties.VisibilityTimeout",
            "change": "changed",
            "before": 30,
            "after": 60,
        }
    ]
    assert compared(world, VERSION, VERSION).changes == []


@pytest.mark.parametrize(
    ("before", "after", "places"),
    [
        (
            [{"Key": "a", "Value": 1}, {"Key": "b", "Value": 2}],
            [{"Key": "a", "Value": 1}, {"Key": "b", "Value": 3}],
            ["[1].Value"],
        ),
        ([1, 2], [2, 1], ["[0]", "[1]"]),
        ([1], [1, 2], [""]),
    ],
    ids=["one value", "another order", "another length"],
)
def test_lists_of_the_same_length_are_compared_place_by_place(
    before: list[object], after: list[object], places: list[str]
) -> None:
    one, other = ({"Resources": {"Queue": {"Tags": tags}}} for tags in (before, after))
    assert [change.path for change in changes_between(one, other)] == [f"Tags{place}" for place in places]


@pytest.mark.parametrize("changed", [VERSION, NEXT_VERSION])
def test_a_template_that_somebody_has_changed_is_not_compared(world: World, changed: str) -> None:
    world.published_templates.templates[changed] = None
    assert compared(world).changes is None


@pytest.mark.parametrize("versions", [("9.9.9", VERSION), (VERSION, "9.9.9")])
def test_a_version_that_was_never_published_is_refused(world: World, versions: tuple[str, str]) -> None:
    refused = world.comparing_releases.compare(*versions)
    assert isinstance(refused, Refused)
    assert refused.kind is Refusal.UNKNOWN_RELEASE
    assert "9.9.9 was never published" in refused.reason


def test_the_review_of_the_same_move_is_found_and_no_other(world: World) -> None:
    there = move(world)
    other_key = replace(there, origin_parameters={**there.origin_parameters, KMS_KEY_PARAMETER: "another"})
    back = Move(there.target, there.target_parameters, there.origin, there.origin_parameters)
    for each in (other_key, back):
        world.reviews.keep_review(Review(each.key, VERSION, NEXT_VERSION, "another", NOON))
    assert compared(world).review is None
    review = Review(there.key, VERSION, NEXT_VERSION, "a change set", NOON)
    world.reviews.keep_review(review)
    assert compared(world).review == review


# The texts of changes


@pytest.mark.parametrize(
    ("effect", "verb"),
    [
        (Effect.ADD, "adds"),
        (Effect.CHANGE, "changes"),
        (Effect.MAY_REPLACE, "may replace"),
        (Effect.REPLACE, "replaces"),
        (Effect.REMOVE, "removes"),
    ],
)
def test_the_text_of_a_change_says_what_the_change_set_says(effect: Effect, verb: str) -> None:
    change = ResourceChange(effect, "Queue", "AWS::SQS::Queue")
    assert str(change) == f"{verb} Queue (AWS::SQS::Queue)"
    assert ResourceChange.parse(str(change)) == change


def test_a_change_of_the_whole_stack_names_no_resource() -> None:
    assert ResourceChange.parse("the stack, which is UPDATE_FAILED") is None
