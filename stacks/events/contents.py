"""The bucket of contents that are too large for the row of their event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from orchestrator.events.content import lifetime_prefix
from orchestrator.events.plans import LIFETIMES_DAYS
from stacks.common.capability import Capability, Output
from stacks.common.encryption import Encryption
from stacks.common.permissions import acknowledge, allow

_LONGER_THAN_ROWS_DAYS = 2
"""DynamoDB deletes an expired row some time after it has expired. Until then the row names its object."""
_ONE_PER_EVENT = "Each large event has its own object, whose key begins with the tenant and its epoch."


def _expiration(days: int) -> Duration:
    return Duration.days(days + _LONGER_THAN_ROWS_DAYS)


class Contents(Capability):
    def __init__(self, scope: Construct, construct_id: str, *, encryption: Encryption) -> None:
        super().__init__(scope, construct_id)
        self._encryption = encryption
        self._bucket = s3.Bucket(
            self,
            "Bucket",
            encryption=s3.BucketEncryption.KMS if encryption.key else s3.BucketEncryption.S3_MANAGED,
            encryption_key=encryption.key,
            # One data key is used for many objects, so S3 calls KMS less often.
            bucket_key_enabled=True if encryption.key else None,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            enforce_ssl=True,
            lifecycle_rules=[
                s3.LifecycleRule(
                    expiration=_expiration(max(LIFETIMES_DAYS)),
                    abort_incomplete_multipart_upload_after=Duration.days(1),
                ),
                # Most plans keep events for a short time. Where two rules apply, the shorter time counts.
                *(
                    s3.LifecycleRule(prefix=lifetime_prefix(days), expiration=_expiration(days))
                    for days in LIFETIMES_DAYS[:-1]
                ),
            ],
            removal_policy=RemovalPolicy.RETAIN,
        )
        encryption.encrypt_after_policies(self._bucket)
        acknowledge(
            self._bucket,
            "AwsSolutions-S1",
            "Only the functions of the event plane use the bucket, by object, and their logs name the events. "
            "CloudTrail's data events, if they are on, show every access.",
        )

    @property
    def outputs(self) -> Sequence[Output]:
        return (Output("ContentsBucketName", self._bucket.bucket_name),)

    @property
    def environment(self) -> Mapping[str, str]:
        return {"BERTH_CONTENTS_BUCKET": self._bucket.bucket_name}

    def allow(self, role: iam.Role, *operations: str) -> None:
        """Let a role call these operations on the objects: GetObject, PutObject, DeleteObject."""
        allow(
            role,
            [f"s3:{operation}" for operation in operations],
            self._bucket.arn_for_objects("*"),
            wildcard_because=_ONE_PER_EVENT,
        )
        if operations != ("DeleteObject",):
            self._encryption.allow_objects(role, writing="PutObject" in operations)
        if "GetObject" in operations:
            self._encryption.allow_reading_objects_with_former_keys(role)

    def allow_listing(self, role: iam.Role) -> None:
        """Let a role find objects. Without this, S3 reports a missing object as a forbidden one."""
        allow(role, ["s3:ListBucket"], self._bucket.bucket_arn)
