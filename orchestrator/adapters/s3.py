"""The buckets of published tenant templates and of rollouts' manifests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from orchestrator.adapters.aws import throttling
from orchestrator.common.tenant_ids import TenantId
from orchestrator.rollouts.records import Item

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


class S3Templates:
    """Implements :class:`orchestrator.releases.ports.TemplateStore`. Deployments upload to the bucket ``source``."""

    def __init__(self, client: S3Client, bucket: str, *, source: str) -> None:
        self._client = client
        self._bucket = bucket
        self._source = source

    def read(self, key: str) -> bytes:
        return self._client.get_object(Bucket=self._source, Key=key)["Body"].read()

    def publish(self, version: str, digest: str, template: bytes) -> str:
        # The digest is in the key, so another template of the same version cannot overwrite this one.
        key = f"tenant-stack/{version}/{digest}.template.json"
        self._client.put_object(Bucket=self._bucket, Key=key, Body=template, ContentType="application/json")
        return f"{self._client.meta.endpoint_url}/{self._bucket}/{key}"


class S3Manifests:
    """Implements :class:`orchestrator.rollouts.ports.Manifests`, as the JSON arrays that Step Functions' maps read."""

    def __init__(self, client: S3Client, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def write(self, name: str, items: Sequence[Item]) -> str:
        key = f"rollouts/{name}.json"
        entries = [{"tenantId": item.tenant.value, "version": item.version} for item in items]
        with throttling():
            self._client.put_object(
                Bucket=self._bucket, Key=key, Body=json.dumps(entries).encode(), ContentType="application/json"
            )
        return key

    def read(self, manifest: str) -> Sequence[Item]:
        with throttling():
            entries = json.loads(self._client.get_object(Bucket=self._bucket, Key=manifest)["Body"].read())
        return [Item(TenantId.parse(each["tenantId"]), each["version"]) for each in entries]

    def remove(self, manifest: str) -> None:
        with throttling():
            self._client.delete_object(Bucket=self._bucket, Key=manifest)
