"""Where tenant templates are published, and where rollouts keep their lists of tenants."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from botocore.exceptions import ClientError

from orchestrator.adapters.s3 import S3Manifests, S3PublishedTemplates, S3Templates
from orchestrator.common.errors import MissingSetting
from orchestrator.common.tenant_ids import TenantId
from orchestrator.releases.records import Release
from orchestrator.rollouts.ports import Manifests
from orchestrator.rollouts.records import Item
from tests.adapters.conftest import REGION, Account, client
from tests.fakes import InMemoryManifests, a_release

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

BUCKET, ASSETS = "berth-releases", "berth-assets"
TEMPLATE = b'{"Resources": {}}'


@pytest.fixture
def templates(aws: None) -> S3Templates:  # noqa: ARG001 - the account it is in
    for bucket in (BUCKET, ASSETS):
        make_bucket(client("s3"), bucket)
    return S3Templates(client("s3"), BUCKET, source=ASSETS)


def make_bucket(s3: S3Client, name: str) -> None:
    s3.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": REGION})


def test_an_uploaded_template_is_read_unchanged(templates: S3Templates) -> None:
    client("s3").put_object(Bucket=ASSETS, Key="a/b.json", Body=b"\xc3\xa9\r\n")
    assert templates.read("a/b.json") == b"\xc3\xa9\r\n"


def test_a_published_template_is_at_its_url(templates: S3Templates) -> None:
    url = templates.publish("0.1.0", "d1", b"{}")
    assert url == "https://s3.eu-west-1.amazonaws.com/berth-releases/tenant-stack/0.1.0/d1.template.json"
    stored = client("s3").get_object(Bucket=BUCKET, Key="tenant-stack/0.1.0/d1.template.json")
    assert (stored["Body"].read(), stored["ContentType"]) == (b"{}", "application/json")


def test_each_version_has_its_own_url(templates: S3Templates) -> None:
    assert templates.publish("0.1.0", "d1", b"{}") != templates.publish("0.1.1", "d1", b"{}")


def test_another_template_of_the_same_version_overwrites_nothing(templates: S3Templates) -> None:
    assert templates.publish("0.1.0", "d1", b"{}") != templates.publish("0.1.0", "d2", b"[]")


# Published templates


@pytest.fixture
def release(templates: S3Templates) -> Release:
    digest = hashlib.sha256(TEMPLATE).hexdigest()
    return replace(a_release(digest=digest), template_url=templates.publish("0.1.0", digest, TEMPLATE))


def key_of(release: Release) -> str:
    return release.template_url.partition(f"{BUCKET}/")[2]


def test_a_published_template_is_read_once(release: Release) -> None:
    published = S3PublishedTemplates(lambda: client("s3"))
    assert published.published(release) == TEMPLATE.decode()
    client("s3").delete_object(Bucket=BUCKET, Key=key_of(release))
    assert published.published(release) == TEMPLATE.decode()


@pytest.mark.parametrize("template", [b"{}", b""], ids=["another", "empty"])
def test_a_template_that_somebody_has_changed_is_none(release: Release, template: bytes) -> None:
    client("s3").put_object(Bucket=BUCKET, Key=key_of(release), Body=template)
    assert S3PublishedTemplates(lambda: client("s3")).published(release) is None


def test_a_template_that_somebody_has_deleted_is_none(release: Release) -> None:
    client("s3").delete_object(Bucket=BUCKET, Key=key_of(release))
    assert S3PublishedTemplates(lambda: client("s3")).published(release) is None


def test_a_function_without_the_deployments_bucket_cannot_read_from_it(templates: S3Templates) -> None:
    assert templates.publish("2.1.0", "d1", b"{}")
    with pytest.raises(MissingSetting):
        S3Templates(client("s3"), BUCKET).read("a/b.json")


ITEMS = [Item(TenantId.parse(name), version) for name, version in (("b", "0.2.0"), ("a", "0.1.0"), ("c", "0.2.0"))]


@pytest.fixture
def manifests(account: Account | None) -> Manifests:
    if account is None:
        return InMemoryManifests()
    make_bucket(account.client("s3"), BUCKET)
    return S3Manifests(account.client("s3"), BUCKET)


def test_a_list_of_tenants_is_read_as_it_was_written(manifests: Manifests) -> None:
    first, second = manifests.write("r1/stage-1", ITEMS), manifests.write("r1/stage-2", ITEMS[:1])
    assert first == "rollouts/r1/stage-1.json"
    assert list(manifests.read(first)) == ITEMS
    assert list(manifests.read(second)) == ITEMS[:1]


def test_a_list_can_be_replaced(manifests: Manifests) -> None:
    manifests.write("r1/stage-1", ITEMS)
    assert list(manifests.read(manifests.write("r1/stage-1", []))) == []


def test_a_list_can_be_removed_twice(manifests: Manifests) -> None:
    removed, kept = manifests.write("r1/stage-1", ITEMS), manifests.write("r1/stage-2", ITEMS)
    for _ in range(2):
        manifests.remove(removed)
    with pytest.raises((KeyError, ClientError)):
        manifests.read(removed)
    assert list(manifests.read(kept)) == ITEMS


@pytest.mark.usefixtures("templates")
def test_a_list_of_tenants_is_stored_as_a_map_reads_it() -> None:
    key = S3Manifests(client("s3"), BUCKET).write("r1/stage-1", ITEMS[:2])
    stored = client("s3").get_object(Bucket=BUCKET, Key=key)
    assert json.loads(stored["Body"].read()) == [
        {"tenantId": "b", "version": "0.2.0"},
        {"tenantId": "a", "version": "0.1.0"},
    ]
    assert stored["ContentType"] == "application/json"
