"""Publishing the tenant template once under its version; and the order of versions."""

from __future__ import annotations

import hashlib
import json
from datetime import timedelta

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from orchestrator.common.errors import InvalidRequest, ReleaseIsImmutable
from orchestrator.common.own_versions import template_version
from orchestrator.common.versions import VERSION_PATTERN, is_older, order
from orchestrator.releases.published import canonical, content_digest, fingerprint, stack_parameters
from orchestrator.releases.records import Release
from orchestrator.releases.template_contract import KMS_KEY_PARAMETER, SERVICE_TOKEN_PARAMETER, TENANT_PARAMETER
from stacks.releases.committed import release_file
from tests.fakes import A_KEY, ACME, NOON, VERSION, FakeTemplates, World, a_release

TEMPLATE, CHANGED = canonical({"Resources": {}}), canonical({"Resources": {"More": {}}})
MISSPELLED = {
    "one line": b'{"Resources": {}}',
    "unsorted": b'{\n  "b": 1,\n  "a": 2\n}\n',
    "no newline": TEMPLATE.rstrip(),
    "YAML": b"Resources: {}\n",
    "a list": b"[]\n",
    "no UTF-8": b"\xff",
}
UPLOADED = {"template": TEMPLATE, "changed": CHANGED}
UPLOADED |= MISSPELLED


def digest_of(template: bytes) -> str:
    return hashlib.sha256(template).hexdigest()


class Publishing(World):
    def __init__(self) -> None:
        super().__init__(published=(), templates=FakeTemplates(dict(UPLOADED)))

    def publish(
        self,
        key: str = "template",
        *,
        version: str = VERSION,
        digest: str | None = None,
        notes: str = "",
        again: bool = False,
    ) -> Release:
        digest = digest or digest_of(UPLOADED[key])
        return self.publish_release(version, digest=digest, notes=notes, source_key=key, again=again)


@pytest.fixture
def world() -> Publishing:
    return Publishing()


@pytest.mark.parametrize("name", MISSPELLED)
def test_a_template_that_is_not_canonical_is_refused(world: Publishing, name: str) -> None:
    """Before a stack is changed, the change set's template is compared with the release's digest."""
    with pytest.raises(InvalidRequest, match="does not have the format of a release"):
        world.publish(name)
    assert world.table.releases() == []
    assert world.templates.published == {}


def test_a_release_is_stored_and_recorded_with_its_digest_and_time(world: Publishing) -> None:
    release = world.publish()
    assert world.templates.published == {(VERSION, digest_of(TEMPLATE)): TEMPLATE}
    assert release == world.table.release(VERSION)
    assert (release.digest, release.published_at) == (digest_of(TEMPLATE), NOON)
    assert VERSION in release.template_url


def test_publishing_the_same_again_changes_nothing_and_needs_no_upload(world: Publishing) -> None:
    first = world.publish()
    world.clock.advance(timedelta(days=1))
    world.templates.uploads.clear()
    assert world.publish() == first


def test_with_another_key_the_same_template_is_stored_again(world: Publishing) -> None:
    first = world.publish()
    world.templates.published.clear()
    world.clock.advance(timedelta(days=1))
    assert world.publish(again=True) == first == world.table.release(VERSION)
    assert world.templates.published == {(VERSION, digest_of(TEMPLATE)): TEMPLATE}


def test_a_template_that_is_stored_again_must_have_the_published_digest(world: Publishing) -> None:
    world.publish()
    world.templates.published.clear()
    with pytest.raises(ReleaseIsImmutable):
        world.publish("changed", again=True)
    world.templates.uploads["template"] = CHANGED
    with pytest.raises(InvalidRequest, match="the uploaded template has digest"):
        world.publish(again=True)
    assert world.templates.published == {}


def test_the_parameters_of_a_template_are_recorded(world: Publishing) -> None:
    known = {name: {"Type": "String"} for name in (TENANT_PARAMETER, SERVICE_TOKEN_PARAMETER, KMS_KEY_PARAMETER, "X")}
    template = canonical({"Parameters": known, "Resources": {}})
    world.templates.uploads["more"] = template
    assert world.publish().parameters == frozenset()
    assert world.publish("more", version="0.2.0", digest=digest_of(template)).parameters == {KMS_KEY_PARAMETER, "X"}


def test_another_template_under_a_published_version_is_refused_and_the_published_one_stays(world: Publishing) -> None:
    first = world.publish()
    with pytest.raises(ReleaseIsImmutable, match=r"version\.txt"):
        world.publish("changed")
    assert world.templates.published == {(VERSION, digest_of(TEMPLATE)): TEMPLATE}
    assert world.table.release(VERSION) == first


def test_an_upload_with_another_digest_is_refused_and_nothing_is_published(world: Publishing) -> None:
    with pytest.raises(InvalidRequest, match=digest_of(TEMPLATE)):
        world.publish(digest="0" * 64)
    assert not world.templates.published
    assert world.table.release(VERSION) is None


def test_the_loser_of_a_race_with_another_template_is_refused(world: Publishing) -> None:
    winner = Release(VERSION, "https://example.com/winner", digest_of(CHANGED), NOON)

    class Raced(FakeTemplates):
        def publish(self, version: str, digest: str, template: bytes) -> str:
            world.table.record_release(winner)
            return super().publish(version, digest, template)

    world.templates = Raced(dict(UPLOADED))
    with pytest.raises(ReleaseIsImmutable):
        world.publish()
    assert world.table.release(VERSION) == winner


def test_the_loser_of_a_race_with_the_same_template_gets_the_recorded_release(world: Publishing) -> None:
    winner = Release(VERSION, "https://example.com/winner", digest_of(TEMPLATE), NOON)

    class Raced(FakeTemplates):
        def publish(self, version: str, digest: str, template: bytes) -> str:
            world.table.record_release(winner)
            return super().publish(version, digest, template)

    world.templates = Raced(dict(UPLOADED))
    assert world.publish() == winner


def test_publishing_again_repairs_a_crash_between_storing_and_recording(world: Publishing) -> None:
    world.templates.publish(VERSION, digest_of(TEMPLATE), TEMPLATE)
    assert world.publish() == world.table.release(VERSION)


def test_versions_are_published_side_by_side(world: Publishing) -> None:
    world.publish(version="0.1.0")
    world.publish("changed", version="0.2.0")
    assert world.templates.published == {
        ("0.1.0", digest_of(TEMPLATE)): TEMPLATE,
        ("0.2.0", digest_of(CHANGED)): CHANGED,
    }


def test_a_release_is_recorded_with_its_notes_and_the_digest_of_its_content(world: Publishing) -> None:
    release = world.publish(notes="- Everything is better.")
    assert release.notes == "- Everything is better."
    assert release.content == content_digest(TEMPLATE, VERSION)


def test_notes_that_are_written_later_do_not_change_a_published_release(world: Publishing) -> None:
    first = world.publish(notes="- As it was.")
    assert world.publish(notes="- As it never was.") == first


# The content of a template, without its version


versions = st.from_regex(VERSION_PATTERN, fullmatch=True).filter(lambda text: not text.endswith("\n"))
around = st.text(st.characters(categories=["L", "N", "P", "S", "Z"]), max_size=20)


def template_at(version: str) -> bytes:
    parts = {"Description": f"Tenant stack {version}.", "Outputs": {"Version": {"Value": version}}}
    return json.dumps(parts).encode()


@given(versions, versions)
def test_releases_that_differ_only_in_their_version_have_the_same_content(one: str, other: str) -> None:
    assert content_digest(template_at(one), one) == content_digest(template_at(other), other)


@given(versions, around, around)
def test_a_version_is_found_wherever_it_stands_alone(version: str, before: str, after: str) -> None:
    before, after = f"{before} ", f" {after}"
    text, other = f"{before}{version}{after}", f"{before}VERSION{after}"
    assume(version not in before + after)
    assert content_digest(text.encode(), version) == hashlib.sha256(other.encode()).hexdigest()


LONGER = st.sampled_from(["1{}", "{}1", "9.{}", "{}.9", "0{}0", "10.{}.1"])


@given(versions, LONGER)
def test_a_version_inside_a_longer_number_is_content(version: str, longer: str) -> None:
    """Addresses and other versions are content: templates that differ in them have different digests."""
    number = longer.format(version).encode()
    assert content_digest(number, version) == hashlib.sha256(number).hexdigest()


@given(versions, versions)
def test_releases_that_differ_in_another_number_differ_in_content(version: str, inside: str) -> None:
    one, other = (template_at(version) + f'"{number}"'.encode() for number in (f"1{inside}", f"2{inside}"))
    assert content_digest(one, version) != content_digest(other, version)


def test_the_end_of_a_sentence_does_not_hide_a_version() -> None:
    assert content_digest(b"This is 0.1.0.", "0.1.0") == content_digest(b"This is 0.2.0.", "0.2.0")
    assert content_digest(b"v0.1.0-rc", "0.1.0") == content_digest(b"v0.2.0-rc", "0.2.0")


def test_the_dots_of_a_version_match_only_dots() -> None:
    assert content_digest(b"0a1b0", "0.1.0") == hashlib.sha256(b"0a1b0").hexdigest()


def test_another_version_in_the_template_is_content() -> None:
    assert content_digest(b"0.1.0 after 0.0.9", "0.1.0") != content_digest(b"0.2.0 after 0.1.0", "0.2.0")


def test_the_own_template_that_is_only_published_under_another_version_has_the_same_content() -> None:
    template = release_file(template_version()).read_bytes()
    again = template.replace(template_version().encode(), b"9.8.7")
    assert again != template
    assert content_digest(again, "9.8.7") == content_digest(template, template_version())


def test_a_stack_gets_the_tenant_id_and_the_service_token() -> None:
    assert stack_parameters(ACME, a_release(), service_token="a function") == {
        TENANT_PARAMETER: "acme",
        SERVICE_TOKEN_PARAMETER: "a function",
    }


@pytest.mark.parametrize(("key", "given"), [(A_KEY, A_KEY), (None, "")], ids=["with a key", "without"])
def test_only_a_release_with_a_key_parameter_gets_the_key(key: str | None, given: str) -> None:
    knows = a_release(parameters=[KMS_KEY_PARAMETER, "SomethingElse"])
    always = stack_parameters(ACME, a_release(), service_token="a function", kms_key=key)
    assert KMS_KEY_PARAMETER not in always
    assert stack_parameters(ACME, knows, service_token="a function", kms_key=key) == {
        **always,
        KMS_KEY_PARAMETER: given,
    }


def test_another_key_changes_the_fingerprint_only_of_releases_with_a_key_parameter() -> None:
    knows = a_release(parameters=[KMS_KEY_PARAMETER])

    def made_from(release: Release, key: str | None) -> str | None:
        return fingerprint(release, stack_parameters(ACME, release, service_token="a function", kms_key=key))

    assert len({made_from(knows, key) for key in (None, A_KEY, A_KEY.replace("1", "2"))}) == 3
    assert made_from(a_release(), None) == made_from(a_release(), A_KEY)


# Which comes before which


IN_ORDER = ["0.0.9", "0.1.0", "0.1.2", "0.1.10", "0.2.0", "0.10.0", "1.0.0", "1.0.1", "10.0.0"]


def test_versions_are_ordered_by_number_and_not_as_text() -> None:
    assert sorted(set(IN_ORDER), key=order) == IN_ORDER
    assert sorted(IN_ORDER) != IN_ORDER


@pytest.mark.parametrize("number", range(1, len(IN_ORDER)))
def test_a_version_is_older_than_exactly_the_later_ones(number: int) -> None:
    before, version = IN_ORDER[number - 1], IN_ORDER[number]
    assert is_older(before, than=version)
    assert not is_older(version, than=before)
    assert not is_older(version, than=version)


@given(versions, versions)
def test_one_of_two_versions_is_older_unless_they_are_equal(one: str, other: str) -> None:
    assert (is_older(one, than=other) or is_older(other, than=one)) == (order(one) != order(other))


@pytest.mark.parametrize("strange", ["", "latest", "0.1", "0.1.0-rc1", "v0.1.0", "0.1.0\n", "0.1.10000"])
def test_a_version_in_another_format_is_neither_older_nor_newer(strange: str) -> None:
    """Tenants from before Berth may have such a version. They may be moved to any version."""
    assert not is_older(strange, than=VERSION)
    assert not is_older(VERSION, than=strange)
