"""Publish the tenants' template as a release when the control plane is deployed.

Releases that earlier deployments have published stay published: tenants can be created at them, pinned to them, or
moved back to them.
"""

from __future__ import annotations

from collections.abc import Sequence

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
from stacks.releases.committed import digest, notes, release_file

MAP_RESULTS = "rollouts/results/"
"""The prefix of the objects to which the rollouts' map state writes its results."""
_RESULTS_EXPIRE_AFTER = Duration.days(90)
PUBLISHED_FOR_EVER = "Each version has its own object. The prefix has only published releases."


class ReleasePublisher(Capability):
    """The bucket of published templates, and a custom resource that publishes the template of ``version`` there."""

    def __init__(self, scope: Construct, construct_id: str, *, kit: FunctionKit, version: str) -> None:
        super().__init__(scope, construct_id)
        self._version = version
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

        template = release_file(version)
        source = s3_assets.Asset(self, f"Template{_id(version)}", path=str(template))
        self.publish_release = BerthFunction(
            self,
            "PublishRelease",
            kit=kit,
            name="publish_release",
            timeout_seconds=90,
            # The function does not trust a bucket in an event.
            environment={"BERTH_RELEASE_BUCKET": self.bucket.bucket_name, "BERTH_SOURCE_BUCKET": source.s3_bucket_name},
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

        role.add_to_policy(statement(["s3:GetObject"], [source.bucket.arn_for_objects(source.s3_object_key)]))
        release = self._release(version, digest(template), source.s3_object_key, notes(version))
        self._published = (release, *([self._current_release()] if keeps_current else []))

    @property
    def functions(self) -> Sequence[BerthFunction]:
        return (self.publish_release,)

    @property
    def outputs(self) -> Sequence[Output]:
        return (Output("ReleaseBucketName", self.bucket.bucket_name), Output("TemplateVersion", self._version))

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
        """Deploy the function only after the release is published, and the current one is recorded."""
        function.function.node.add_dependency(*self._published)

    def _release(self, version: str, template_digest: str, source_key: str, release_notes: str) -> CustomResource:
        return CustomResource(
            self,
            f"Release{_id(version)}",
            resource_type="Custom::Release",
            service_token=self.publish_release.arn,
            service_timeout=DEPLOYMENT_TIMEOUT,
            # A published release stays published, also when the next one is deployed.
            removal_policy=RemovalPolicy.RETAIN,
            properties={
                "Version": version,
                "Digest": template_digest,
                "SourceKey": source_key,
                "Notes": release_notes,
                # A change of the key has the release stored again. Earlier releases keep their key.
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


def _id(version: str) -> str:
    """The version as part of a construct's id. Each release is a resource of its own, so none replaces another."""
    return version.replace(".", "-")
