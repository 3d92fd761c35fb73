"""Publishing the tenant template: once, under its version, never changed."""

from __future__ import annotations

import hashlib
from datetime import timedelta

import pytest

from orchestrator.errors import InvalidRequest, ReleaseIsImmutable
from orchestrator.records import Release
from orchestrator.releases import publish_release
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
