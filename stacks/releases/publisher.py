"""Publish the tenant templates as part of deploying the control plane.

Every committed release is published, not only the release of this version: tenants can be created at an older release,
pinned to it, or moved back to it, even if this version is the first that was ever deployed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from aws_cdk import CustomResource, Duration, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_s3_assets as s3_assets
from constructs import Construct

from orchestrator.releases.states import PromotionMode
from stacks.common.capability import Capability, Output
from stacks.common.functions import DEPLOYMENT_TIMEOUT, BerthFunction, FunctionKit
from stacks.common.permissions import acknowledge, allow, statement
from stacks.common.table import RELEASE_ROWS
from stacks.releases.committed import digest, notes, releases_up_to

MAP_RESULTS = "rollouts/results/"
"""The prefix of the objects to which the rollouts' map state writes its results."""
_RESULTS_EXPIRE_AFTER = Duration.days(90)
PUBLISHED_FOR_EVER = "Each version has its own object. The prefix has only published releases."


class ReleasePublisher(Capability):
    """The bucket of published templates, and a custom resource per version that publishes its template there."""

    def __init__(self, scope: Construct, construct_id: str, *, kit: FunctionKit) -> None:
        super().__init__(scope, construct_id)
        self.bucket = s3.Bucket(
            self,
            "Bucket",
            encryption=s3.BucketEncryption.KMS if kit.encryption.key else s3.BucketEncryption.S3_MANAGED,
            encryption_key=kit.encryption.key,
            # One data key is used for many objects, so S3 calls KMS less often.
            bucket_key_enabled=True if kit.encryption.key else None,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            enforce_ssl=True,
            versioned=True,
            lifecycle_rules=[
                # Nobody reads the results of the rollouts' map: outcomes are in the table.
                s3.LifecycleRule(
                    prefix=MAP_RESULTS,
                    expiration=_RESULTS_EXPIRE_AFTER,
                    noncurrent_version_expiration=Duration.days(1),
                )
            ],
            # Tenants' stacks are created and updated from these templates.
            removal_policy=RemovalPolicy.RETAIN,
        )
        kit.encryption.encrypt_after_policies(self.bucket)
        acknowledge(
            self.bucket,
            "AwsSolutions-S1",
            "The bucket has templates and lists of tenants, no secrets, and only the control plane reads it. The table "
            "says who published which release. CloudTrail's data events, if they are on, show every access.",
        )

        sources = {
            template: s3_assets.Asset(self, f"Template{_id(template)}", path=str(template))
            for template in releases_up_to(kit.version)
        }
        # The CDK uploads all templates to the same bucket of its own. The function does not trust a bucket in an event.
        source_bucket = next(iter(sources.values())).s3_bucket_name
        self.publish_release = BerthFunction(
            self,
            "PublishRelease",
            kit=kit,
            name="publish_release",
            timeout_seconds=90,
            environment={"BERTH_RELEASE_BUCKET": self.bucket.bucket_name, "BERTH_SOURCE_BUCKET": source_bucket},
        )
        keeps_current = kit.promotion is PromotionMode.AFTER_ROLLOUT
        # The outputs of the stack have the version of the previous deployment.
        self.publish_release.allow_verifying_requests(*(["DescribeStacks"] if keeps_current else []))
        role = self.publish_release.role
        kit.table.allow(role, "GetItem", "PutItem", rows=RELEASE_ROWS)
        if keeps_current:
            kit.table.allow_promoting_releases(role)
        allow(
            role,
            ["s3:GetObject", "s3:PutObject"],
            published_templates(self.bucket),
            wildcard_because=PUBLISHED_FOR_EVER,
        )
        kit.encryption.allow_objects(role, writing=True)
        self._encryption = kit.encryption
        self._table = kit.table

        uploaded = [source.bucket.arn_for_objects(source.s3_object_key) for source in sources.values()]
        role.add_to_policy(statement(["s3:GetObject"], uploaded))
        self._releases = tuple(
            self._release(template, source, release_notes=notes(template.stem, current=kit.version))
            for template, source in sources.items()
        )
        if keeps_current:
            self._releases = (*self._releases, self._current_release())

    @property
    def functions(self) -> Sequence[BerthFunction]:
        return (self.publish_release,)

    @property
    def outputs(self) -> Sequence[Output]:
        return (Output("ReleaseBucketName", self.bucket.bucket_name),)

    def allow_publishing(self, role: iam.Role) -> None:
        """Let a role publish operators' own templates, and compare releases. It cannot change a release that is
        recorded.
        """
        self._table.allow(role, "PutItem", rows=RELEASE_ROWS)
        # One statement, because the policy of the operators' function is almost as long as a policy may be.
        allow(
            role,
            ["s3:GetObject", "s3:PutObject"],
            published_templates(self.bucket),
            wildcard_because=PUBLISHED_FOR_EVER,
        )
        self._encryption.allow_objects(role, writing=True)
        self._encryption.allow_reading_objects_with_former_keys(role)

    def publish_before(self, function: BerthFunction) -> None:
        """Deploy the function only after every release is published, and one of them is recorded as current."""
        function.function.node.add_dependency(*self._releases)

    def _release(self, template: Path, source: s3_assets.Asset, *, release_notes: str) -> CustomResource:
        """The releases do not depend on each other: they are published at the same time, in any order."""
        return CustomResource(
            self,
            f"Release{_id(template)}",
            resource_type="Custom::Release",
            service_token=self.publish_release.arn,
            service_timeout=DEPLOYMENT_TIMEOUT,
            # A published release stays published, even if the deployment is rolled back or its file is removed.
            removal_policy=RemovalPolicy.RETAIN,
            properties={
                "Version": template.stem,
                "Digest": digest(template),
                "SourceKey": source.s3_object_key,
                "Notes": release_notes,
                # A change of the key has every release stored again.
                **({"KmsKeyArn": self._encryption.key_arn} if self._encryption.key_arn else {}),
            },
        )

    def _current_release(self) -> CustomResource:
        """Records the release that is current, when deployments cease to make releases current."""
        return CustomResource(
            self,
            "CurrentRelease",
            resource_type="Custom::CurrentRelease",
            service_token=self.publish_release.arn,
            service_timeout=DEPLOYMENT_TIMEOUT,
        )


def published_templates(bucket: s3.Bucket) -> str:
    return bucket.arn_for_objects("tenant-stack/*")


def _id(template: Path) -> str:
    """The version as part of a construct's id. The id stays the same when further versions are released."""
    return template.stem.replace(".", "-")
