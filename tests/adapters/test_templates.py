"""Where tenant templates are published."""

from __future__ import annotations

import pytest

from orchestrator.adapters.s3 import S3Templates
from tests.adapters.conftest import REGION, client

BUCKET, ASSETS = "berth-releases", "berth-assets"


@pytest.fixture
def templates(aws: None) -> S3Templates:  # noqa: ARG001 - the account it is in
    for bucket in (BUCKET, ASSETS):
        client("s3").create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION})
    return S3Templates(client("s3"), BUCKET)


def test_an_uploaded_template_is_read_byte_by_byte(templates: S3Templates) -> None:
    client("s3").put_object(Bucket=ASSETS, Key="a/b.json", Body=b"\xc3\xa9\r\n")
    assert templates.read(ASSETS, "a/b.json") == b"\xc3\xa9\r\n"


def test_a_published_template_is_where_its_url_says(templates: S3Templates) -> None:
    url = templates.publish("0.1.0", "d1", b"{}")
    assert url == "https://s3.eu-west-1.amazonaws.com/berth-releases/tenant-stack/0.1.0/d1.template.json"
    stored = client("s3").get_object(Bucket=BUCKET, Key="tenant-stack/0.1.0/d1.template.json")
    assert (stored["Body"].read(), stored["ContentType"]) == (b"{}", "application/json")


def test_each_version_has_a_url_of_its_own(templates: S3Templates) -> None:
    assert templates.publish("0.1.0", "d1", b"{}") != templates.publish("0.1.1", "d1", b"{}")


def test_another_template_under_the_same_version_overwrites_nothing(templates: S3Templates) -> None:
    assert templates.publish("0.1.0", "d1", b"{}") != templates.publish("0.1.0", "d2", b"[]")
