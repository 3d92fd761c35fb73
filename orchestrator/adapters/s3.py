"""Where tenant templates are published."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


class S3Templates:
    """Implements :class:`orchestrator.ports.TemplateStore`."""

    def __init__(self, client: S3Client, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def read(self, bucket: str, key: str) -> bytes:
        return self._client.get_object(Bucket=bucket, Key=key)["Body"].read()

    def publish(self, version: str, digest: str, template: bytes) -> str:
        # With the digest: whoever publishes another template under the same version overwrites nothing.
        key = f"tenant-stack/{version}/{digest}.template.json"
        self._client.put_object(Bucket=self._bucket, Key=key, Body=template, ContentType="application/json")
        return f"{self._client.meta.endpoint_url}/{self._bucket}/{key}"
