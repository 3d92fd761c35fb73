"""Contents of events that are too large for their row, in S3."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from orchestrator.adapters.aws import error_code, throttling
from orchestrator.common.errors import Unsettled

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


class S3Contents:
    """Implements :class:`orchestrator.events.ports.Contents`.

    The client is made when it is first needed: most events are small.
    """

    def __init__(self, make_client: Callable[[], S3Client], bucket: str) -> None:
        self._make_client = make_client
        self._bucket = bucket

    @cached_property
    def _client(self) -> S3Client:
        return self._make_client()

    def put_once(self, key: str, data: bytes) -> None:
        try:
            with throttling():
                self._client.put_object(
                    Bucket=self._bucket, Key=key, Body=data, ContentType="application/octet-stream", IfNoneMatch="*"
                )
        except ClientError as error:
            if error_code(error) == "ConditionalRequestConflict":
                raise Unsettled("The same event is being stored by another request. Send it again.") from None
            if error_code(error) != "PreconditionFailed":
                raise

    def get(self, key: str) -> bytes | None:
        try:
            with throttling():
                return self._client.get_object(Bucket=self._bucket, Key=key)["Body"].read()
        except ClientError as error:
            if error_code(error) == "NoSuchKey":
                return None
            raise

    def delete_some(self, prefix: str) -> int:
        """Delete objects whose keys begin with the prefix, as many as one request can. Returns their number."""
        with throttling():
            page = self._client.list_objects_v2(Bucket=self._bucket, Prefix=prefix)
            keys: Any = [{"Key": each["Key"]} for each in page.get("Contents", ())]
            if not keys:
                return 0
            result = self._client.delete_objects(Bucket=self._bucket, Delete={"Objects": keys, "Quiet": True})
        errors = result.get("Errors", [])
        if len(errors) == len(keys):
            # Otherwise the next call tries them again.
            raise Unsettled(f"S3 deleted none of {len(keys)} objects under {prefix}: {errors[0].get('Code')}.")
        return len(keys) - len(errors)
