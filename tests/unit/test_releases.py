"""Publishing the tenant template: once, under its version, never changed; and which version comes before which."""

from __future__ import annotations

import hashlib
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import InvalidRequest, ReleaseIsImmutable
from orchestrator.records import Release
from orchestrator.releases import VERSION_PATTERN, is_older, order, publish_release
from tests.fakes import NOON, VERSION, FakeClock, FakeTemplates, InMemoryTable

TEMPLATE, CHANGED = b'{"Resources": {}}', b'{"Resources": {"More": {}}}'
UPLOADED = {("assets", "template"): TEMPLATE, ("assets", "changed"): CHANGED}


def digest_of(template: bytes) -> str:
    return hashlib.sha256(template).hexdigest()


class World:
    def __init__(self) -> None:
        self.table, self.templates, self.clock = InMemoryTable(), FakeTemplates(dict(UPLOADED)), FakeClock()

    def publish(self, key: str = "template", *, version: str = VERSION, digest: str | None = None) -> Release:
        return publish_release(
            version,
            digest=digest or digest_of(UPLOADED["assets", key]),
            source_bucket="assets",
            source_key=key,
            releases=self.table,
            templates=self.templates,
            clock=self.clock,
        )


@pytest.fixture
def world() -> World:
    return World()


def test_a_release_is_stored_and_recorded_with_its_digest_and_time(world: World) -> None:
    release = world.publish()
    assert world.templates.published == {(VERSION, digest_of(TEMPLATE)): TEMPLATE}
    assert release == world.table.release(VERSION)
    assert (release.digest, release.published_at) == (digest_of(TEMPLATE), NOON)
    assert VERSION in release.template_url


def test_publishing_the_same_again_changes_nothing_and_needs_no_upload(world: World) -> None:
    first = world.publish()
    world.clock.advance(timedelta(days=1))
    world.templates.uploads.clear()
    assert world.publish() == first


def test_another_template_under_a_published_version_is_refused_and_the_published_one_stays(world: World) -> None:
    first = world.publish()
    with pytest.raises(ReleaseIsImmutable, match=r"version\.txt"):
        world.publish("changed")
    assert world.templates.published == {(VERSION, digest_of(TEMPLATE)): TEMPLATE}
    assert world.table.release(VERSION) == first


def test_an_upload_that_is_not_what_was_announced_is_refused_and_nothing_is_published(world: World) -> None:
    with pytest.raises(InvalidRequest, match=digest_of(TEMPLATE)):
        world.publish(digest="0" * 64)
    assert not world.templates.published
    assert world.table.release(VERSION) is None


def test_who_loses_the_race_to_publish_another_template_is_refused(world: World) -> None:
    winner = Release(VERSION, "https://example.com/winner", digest_of(CHANGED), NOON)

    class Raced(FakeTemplates):
        def publish(self, version: str, digest: str, template: bytes) -> str:
            world.table.record_release(winner)
            return super().publish(version, digest, template)

    world.templates = Raced(dict(UPLOADED))
    with pytest.raises(ReleaseIsImmutable):
        world.publish()
    assert world.table.release(VERSION) == winner


def test_who_loses_the_race_to_publish_the_same_template_is_told_the_winners_release(world: World) -> None:
    winner = Release(VERSION, "https://example.com/winner", digest_of(TEMPLATE), NOON)

    class Raced(FakeTemplates):
        def publish(self, version: str, digest: str, template: bytes) -> str:
            world.table.record_release(winner)
            return super().publish(version, digest, template)

    world.templates = Raced(dict(UPLOADED))
    assert world.publish() == winner


def test_a_crash_between_storing_and_recording_is_mended_by_publishing_again(world: World) -> None:
    world.templates.publish(VERSION, digest_of(TEMPLATE), TEMPLATE)
    assert world.publish() == world.table.release(VERSION)


def test_versions_are_published_side_by_side(world: World) -> None:
    world.publish(version="0.1.0")
    world.publish("changed", version="0.2.0")
    assert world.templates.published == {
        ("0.1.0", digest_of(TEMPLATE)): TEMPLATE,
        ("0.2.0", digest_of(CHANGED)): CHANGED,
    }


# Which comes before which


IN_ORDER = ["0.0.9", "0.1.0", "0.1.2", "0.1.10", "0.2.0", "0.10.0", "1.0.0", "1.0.1", "10.0.0"]


def test_versions_are_ordered_by_number_and_not_by_spelling() -> None:
    assert sorted(set(IN_ORDER), key=order) == IN_ORDER
    assert sorted(IN_ORDER) != IN_ORDER


@pytest.mark.parametrize("number", range(1, len(IN_ORDER)))
def test_a_version_is_older_than_those_after_it_and_than_no_other(number: int) -> None:
    before, version = IN_ORDER[number - 1], IN_ORDER[number]
    assert is_older(before, than=version)
    assert not is_older(version, than=before)
    assert not is_older(version, than=version)


versions = st.from_regex(VERSION_PATTERN, fullmatch=True).filter(lambda text: not text.endswith("\n"))


@given(versions, versions)
def test_of_two_versions_one_is_older_unless_their_numbers_are_the_same(one: str, other: str) -> None:
    assert (is_older(one, than=other) or is_older(other, than=one)) == (order(one) != order(other))


@pytest.mark.parametrize("strange", ["", "latest", "0.1", "0.1.0-rc1", "v0.1.0", "0.1.0\n", "0.1.10000"])
def test_a_version_that_is_not_of_our_making_comes_before_none_and_after_none(strange: str) -> None:
    """Tenants from before Berth may be at such a one. They may be moved anywhere."""
    assert not is_older(strange, than=VERSION)
    assert not is_older(VERSION, than=strange)
