"""The buckets of published tenant templates and of rollouts' manifests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from botocore.exceptions import ClientError

from orchestrator.adapters.aws import ACCESS_DENIED, error_code, throttling
from orchestrator.common.errors import MissingSetting
from orchestrator.common.tenant_ids import TenantId
from orchestrator.rollouts.records import Item

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

    from orchestrator.releases.records import Release


class S3Templates:
    """Implements :class:`orchestrator.releases.ports.TemplateStore`. Deployments upload to the bucket ``source``,
    which other functions do not know."""

    def __init__(self, client: S3Client, bucket: str, *, source: str | None = None) -> None:
        self._client = client
        self._bucket = bucket
        self._source = source

    def read(self, key: str) -> bytes:
        if self._source is None:
            raise MissingSetting("Only the function that a deployment calls reads what the deployment has uploaded.")
        return self._client.get_object(Bucket=self._source, Key=key)["Body"].read()

    def publish(self, version: str, digest: str, template: bytes) -> str:
        # The digest is in the key, so another template of the same version cannot overwrite this one.
        key = f"tenant-stack/{version}/{digest}.template.json"
        self._client.put_object(Bucket=self._bucket, Key=key, Body=template, ContentType="application/json")
        return f"{self._client.meta.endpoint_url}/{self._bucket}/{key}"


class S3PublishedTemplates:
    """Implements :class:`orchestrator.releases.ports.PublishedTemplates`. Each template is read once per process."""

    def __init__(self, new_client: Callable[[], S3Client]) -> None:
        """``new_client`` is called when a template is first read: most steps on stacks read none."""
        self._client = cache(new_client)
        self._read: dict[str, str] = {}

    def published(self, release: Release) -> str | None:
        if release.digest not in self._read:
            bucket, _, key = urlsplit(release.template_url).path.lstrip("/").partition("/")
            try:
                with throttling():
                    template = self._client().get_object(Bucket=bucket, Key=key)["Body"].read()
            except ClientError as error:
                # Without the permission to list the bucket, S3 does not tell an absent object from a forbidden one.
                if error_code(error) not in {"NoSuchKey", *ACCESS_DENIED}:
                    raise
                return None
            if hashlib.sha256(template).hexdigest() != release.digest:
                return None
            self._read[release.digest] = template.decode()
        return self._read[release.digest]


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
