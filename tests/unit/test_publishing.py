"""Operators publish templates of their own: checked, immutable, and never current by themselves."""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import combinations
from threading import Condition
from typing import Any

import pytest

from orchestrator.releases.findings import Rule
from orchestrator.releases.published import canonical
from orchestrator.releases.publishing import Checked, Proposal, Published, PublishedBefore
from orchestrator.releases.records import Release
from orchestrator.releases.template_contract import KMS_KEY_PARAMETER
from tests.fakes import NEXT_VERSION, NOON, VERSION, FakeTemplates, World, a_release
from tests.fakes.templates import example_template, queue_template

ADA = "ada"


@pytest.fixture
def world() -> World:
    """Releases 0.1.0 and 0.2.0 are published, and 0.1.0 is deployed."""
    return World()


def proposal(version: str = "2.1.0", template: dict[str, Any] | None = None, **more: Any) -> Proposal:
    return Proposal(version, queue_template(version) if template is None else template, ADA, **more)


def published(outcome: object) -> Published:
    assert isinstance(outcome, Published), outcome
    return outcome


def found_in(outcome: object) -> set[Rule]:
    assert isinstance(outcome, Checked)
    return {finding.rule for finding in outcome.findings}


def test_a_template_is_stored_by_its_digest_and_recorded(world: World) -> None:
    outcome = published(world.publishing.publish(proposal(notes="Another timeout.")))
    template = canonical(queue_template())
    digest = hashlib.sha256(template).hexdigest()
    assert world.templates.published == {("2.1.0", digest): template}
    release = world.table.release("2.1.0")
    assert release == outcome.release
    assert release is not None
    assert (release.digest, release.notes, release.published_by) == (digest, "Another timeout.", ADA)
    assert release.published_at == NOON
    assert release.parameters == {KMS_KEY_PARAMETER}
    assert release.content


def test_publishing_makes_no_release_current(world: World) -> None:
    assert published(world.publishing.publish(proposal())).current == VERSION
    assert world.choose_release().current == VERSION


def test_the_same_template_again_changes_nothing(world: World) -> None:
    first = published(world.publishing.publish(proposal()))
    world.templates.published.clear()
    again = Proposal("2.1.0", json.loads(json.dumps(queue_template(), indent=7)), "bob", "Other notes.")
    second = published(world.publishing.publish(again))
    assert (first.is_new, second.is_new) == (True, False)
    assert second.release == first.release
    assert world.templates.published == {}


def test_another_template_under_the_same_version_is_refused(world: World) -> None:
    first = published(world.publishing.publish(proposal()))
    changed = queue_template()
    changed["Resources"]["InboundQueue"]["Properties"]["VisibilityTimeout"] = 60
    assert world.publishing.publish(proposal(template=changed)) == PublishedBefore(first.release, same_template=False)
    assert world.table.release("2.1.0") == first.release


def test_one_of_two_simultaneous_publications_is_refused() -> None:
    class Raced(FakeTemplates):
        """Another request records the version while this one stores its template."""

        def publish(self, version: str, digest: str, template: bytes) -> str:
            world.table.record_release(a_release(version, digest="e" * 64))
            return super().publish(version, digest, template)

    world = World(templates=Raced())
    outcome = world.publishing.publish(proposal())
    assert isinstance(outcome, PublishedBefore)
    assert outcome.release.digest == "e" * 64


class Turns:
    """Lets the calls of two requests happen in one order. A request that has fewer calls leaves out its last turns."""

    def __init__(self, order: Iterable[str]) -> None:
        self._left = deque(order)
        self._changed = Condition()

    def calls_of(self, request: str, port: Any) -> Any:
        """The port; each of its methods waits for a turn of the request."""
        turns = self

        class InTurn:
            def __getattr__(self, name: str) -> Callable[..., Any]:
                method = getattr(port, name)
                return lambda *given, **named: turns.take(request, lambda: method(*given, **named))

        return InTurn()

    def take(self, request: str, call: Callable[[], Any]) -> Any:
        with self._changed:
            assert self._changed.wait_for(lambda: request not in self._left or self._left[0] == request, timeout=60)
            assert request in self._left, f"{request} makes more calls than it has turns"
            result = call()
            self._left.popleft()
            self._changed.notify_all()
            return result

    def end(self, request: str) -> None:
        with self._changed:
            self._left = deque(each for each in self._left if each != request)
            self._changed.notify_all()


CALLS = ("is it recorded?", "all releases", "the release before", "store the template", "record the release")
"""The calls of one request that read or write what another one could write. One more has no turn, and fails."""


def outcomes(order: Sequence[str], proposals: Mapping[str, Proposal]) -> tuple[World, dict[str, object]]:
    """The outcomes of two requests whose calls happen in this order."""
    world, turns = World(), Turns(order)

    def publish(request: str) -> object:
        publishing = replace(
            world.publishing,
            releases=turns.calls_of(request, world.table),
            store=turns.calls_of(request, world.templates),
        )
        try:
            return publishing.publish(proposals[request])
        finally:
            turns.end(request)

    with ThreadPoolExecutor(max_workers=2) as pool:
        running = {request: pool.submit(publish, request) for request in proposals}
        return world, {request: each.result() for request, each in running.items()}


ORDERS = [
    tuple("a" if number in chosen else "b" for number in range(2 * len(CALLS)))
    for chosen in map(set, combinations(range(2 * len(CALLS)), len(CALLS)))
]


def test_two_publications_of_one_template_make_one_release_in_every_order_of_their_calls() -> None:
    for order in ORDERS:
        _, found = outcomes(order, {"a": proposal(), "b": proposal()})
        assert sorted(published(each).is_new for each in found.values()) == [False, True], order
        assert published(found["a"]).release == published(found["b"]).release, order


def test_one_of_two_templates_under_one_version_wins_in_every_order_of_their_calls() -> None:
    other = queue_template()
    other["Resources"]["InboundQueue"]["Properties"]["VisibilityTimeout"] = 60
    proposals = {"a": proposal(), "b": proposal(template=other)}
    winners = set()
    for order in ORDERS:
        world, found = outcomes(order, proposals)
        (winner,) = (request for request, each in found.items() if isinstance(each, Published))
        (loser,) = proposals.keys() - {winner}
        release = world.table.release("2.1.0")
        assert release is not None
        assert published(found[winner]) == Published(release, is_new=True, current=VERSION, before=VERSION), order
        assert found[loser] == PublishedBefore(release, same_template=False), order
        template = canonical(proposals[winner].template)
        assert release.digest == hashlib.sha256(template).hexdigest(), order
        assert world.templates.published["2.1.0", release.digest] == template, order
        winners.add(winner)
    assert winners == {"a", "b"}


def test_a_version_of_berth_cannot_be_published(world: World) -> None:
    assert Rule.VERSION in found_in(world.publishing.publish(proposal("0.3.0")))
    assert Rule.VERSION in found_in(world.publishing.publish(proposal("1.9999.0")))
    assert isinstance(world.publishing.publish(proposal(NEXT_VERSION)), PublishedBefore)
    assert world.templates.published == {}


def test_a_template_with_findings_is_neither_stored_nor_recorded(world: World) -> None:
    outcome = world.publishing.publish(proposal(template=example_template()))
    assert found_in(outcome) == {Rule.TYPES}, "no policy allows a bucket and a table"
    assert world.templates.published == {}
    assert world.table.release("2.1.0") is None
    world.stack_policies.actions = frozenset({"s3:*", "dynamodb:*"})
    assert published(world.publishing.publish(proposal(template=example_template()))).is_new


def test_the_version_must_be_the_one_in_the_template(world: World) -> None:
    outcome = world.publishing.publish(proposal("2.2.0", queue_template("2.1.0")))
    assert found_in(outcome) == {Rule.METADATA, Rule.OUTPUTS}


def having(world: World, version: str, template: dict[str, Any]) -> Release:
    release = published(world.publishing.publish(proposal(version, template))).release
    world.published_templates.templates[version] = json.dumps(template)
    return release


def without_dead_letters(version: str) -> dict[str, Any]:
    template = queue_template(version)
    for name in ("DeadLetterQueue", "DeadLetterQueuePolicy"):
        del template["Resources"][name]
    del template["Resources"]["InboundQueue"]["Properties"]["RedrivePolicy"]
    del template["Outputs"]["DeadLetterQueueUrl"]
    return template


def test_the_queues_of_the_current_release_are_kept_by_the_first_template(world: World) -> None:
    own = {"Resources": {"DeadLetterQueue": {"Type": "AWS::SQS::Queue"}}}
    world.published_templates.templates[VERSION] = json.dumps(own)
    checked = world.publishing.check(proposal(template=without_dead_letters("2.1.0")))
    assert found_in(checked) == {Rule.QUEUES_KEPT}
    assert checked.compared_with == VERSION


def test_the_queues_of_the_operators_previous_release_are_kept_by_later_templates(world: World) -> None:
    having(world, "2.1.0", queue_template("2.1.0"))
    checked = world.publishing.check(proposal("2.2.0", without_dead_letters("2.2.0")))
    assert found_in(checked) == {Rule.QUEUES_KEPT}
    assert checked.compared_with == "2.1.0"
    allowed = proposal("2.2.0", without_dead_letters("2.2.0"), allow_replacement=True)
    assert published(world.publishing.publish(allowed)).is_new


def test_a_former_template_that_somebody_has_changed_is_not_compared(world: World) -> None:
    world.published_templates.templates[VERSION] = None
    checked = world.publishing.check(proposal())
    assert (list(checked.findings), checked.compared_with) == ([], None)


def test_a_template_is_published_in_one_tier(world: World) -> None:
    outcome = published(world.publishing.publish(proposal(tier="gold")))
    assert (outcome.release.tier, outcome.current) == ("gold", "2.1.0")
    assert world.choose_release().current == VERSION, "nothing changes in the tier standard"
    assert isinstance(world.publishing.publish(proposal()), PublishedBefore)
    assert not published(world.publishing.publish(proposal(tier="gold"))).is_new


def test_a_check_says_that_the_version_is_taken(world: World) -> None:
    published(world.publishing.publish(proposal(tier="gold")))
    changed = queue_template()
    changed["Resources"]["InboundQueue"]["Properties"]["VisibilityTimeout"] = 60
    (taken,) = world.publishing.check(proposal(template=changed, tier="gold")).findings
    assert taken.rule is Rule.VERSION
    assert "Release 2.1.0 was published before, with another template, at " in taken.problem
    (in_other_tier,) = world.publishing.check(proposal()).findings
    assert "with this template, in the tier gold, at " in in_other_tier.problem
    assert world.publishing.check(proposal(tier="gold")).findings == []


def test_a_template_keeps_the_queues_of_its_own_tier(world: World) -> None:
    having(world, "2.1.0", queue_template("2.1.0"))
    gold = proposal("2.2.0", without_dead_letters("2.2.0"), tier="gold", allow_replacement=True)
    world.published_templates.templates["2.2.0"] = json.dumps(without_dead_letters("2.2.0"))
    assert published(world.publishing.publish(gold)).is_new
    assert world.publishing.check(proposal("2.3.0", without_dead_letters("2.3.0"), tier="gold")).findings == []
    assert found_in(world.publishing.check(proposal("2.3.0", without_dead_letters("2.3.0")))) == {Rule.QUEUES_KEPT}
    new = world.publishing.check(proposal("2.4.0", queue_template("2.4.0"), tier="silver"))
    assert new.compared_with == VERSION, "the tenants of a new tier come from the tier standard"
