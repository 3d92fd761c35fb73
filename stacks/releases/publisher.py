"""Publishing the tenant templates, as part of deploying the control plane.

Every committed release is published, not only this version's: tenants can be created at an older one, pinned to it,
or returned to it, also where this is the first version that was ever deployed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from aws_cdk import CustomResource, RemovalPolicy
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_s3_assets as s3_assets
from constructs import Construct

from stacks.common.capability import Capability, Output
from stacks.common.functions import DEPLOYMENT_TIMEOUT, BerthFunction, FunctionKit
from stacks.common.permissions import acknowledge, allow, statement
from stacks.common.table import RELEASE_ROWS
from stacks.releases.committed import digest, notes, releases_up_to

PUBLISHED_FOR_EVER = "Each version has its own object, and only published releases are under this prefix."


class ReleasePublisher(Capability):
    """The bucket of published templates, and a custom resource for each version that adds its own to it."""

    def __init__(self, scope: Construct, construct_id: str, *, kit: FunctionKit) -> None:
        super().__init__(scope, construct_id)
        self.bucket = s3.Bucket(
            self,
            "Bucket",
            encryption=s3.BucketEncryption.KMS if kit.encryption.key else s3.BucketEncryption.S3_MANAGED,
            encryption_key=kit.encryption.key,
            # One data key serves many objects.
            bucket_key_enabled=True if kit.encryption.key else None,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            enforce_ssl=True,
            versioned=True,
            # Tenants' stacks are updated and rolled back from these templates.
            removal_policy=RemovalPolicy.RETAIN,
        )
        kit.encryption.comes_after_policies(self.bucket)
        acknowledge(
            self.bucket,
            "AwsSolutions-S1",
            "The bucket holds templates and lists of tenants, without secrets, read only by the control plane; who "
            "published what is in the table, and CloudTrail's data events show every access where that is wanted.",
        )

        sources = {
            template: s3_assets.Asset(self, f"Template{_id(template)}", path=str(template))
            for template in releases_up_to(kit.version)
        }
        # The CDK uploads all of them to one bucket of its own. The function does not take the bucket from events.
        source_bucket = next(iter(sources.values())).s3_bucket_name
        self.publish_release = BerthFunction(
            self,
            "PublishRelease",
            kit=kit,
            name="publish_release",
            timeout_seconds=90,
            environment={"BERTH_RELEASE_BUCKET": self.bucket.bucket_name, "BERTH_SOURCE_BUCKET": source_bucket},
        )
        self.publish_release.answer_the_deployment()
        role = self.publish_release.role
        kit.table.allow(role, "GetItem", "PutItem", rows=RELEASE_ROWS)
        allow(
            role,
            ["s3:GetObject", "s3:PutObject"],
            published_templates(self.bucket),
            wildcard_because=PUBLISHED_FOR_EVER,
        )
        kit.encryption.allow_objects(role, writing=True)
        self._encryption = kit.encryption

        uploaded = [source.bucket.arn_for_objects(source.s3_object_key) for source in sources.values()]
        role.add_to_policy(statement(["s3:GetObject"], uploaded))
        self._releases = tuple(
            self._release(template, source, told=notes(template.stem, current=kit.version))
            for template, source in sources.items()
        )

    @property
    def functions(self) -> Sequence[BerthFunction]:
        return (self.publish_release,)

    @property
    def outputs(self) -> Sequence[Output]:
        return (Output("ReleaseBucketName", self.bucket.bucket_name),)

    def publish_before(self, function: BerthFunction) -> None:
        """Deploy the function after every release is published."""
        function.function.node.add_dependency(*self._releases)

    def _release(self, template: Path, source: s3_assets.Asset, *, told: str) -> CustomResource:
        """None waits for another: they are published at the same time, in any order."""
        return CustomResource(
            self,
            f"Release{_id(template)}",
            resource_type="Custom::Release",
            service_token=self.publish_release.arn,
            service_timeout=DEPLOYMENT_TIMEOUT,
            # What is published stays published, whatever becomes of this deployment.
            removal_policy=RemovalPolicy.RETAIN,
            properties={
                "Version": template.stem,
                "Digest": digest(template),
                "SourceKey": source.s3_object_key,
                "Notes": told,
                # With another key, what is published is stored again.
                **({"KmsKeyArn": self._encryption.key_arn} if self._encryption.key_arn else {}),
            },
        )


def published_templates(bucket: s3.Bucket) -> str:
    return bucket.arn_for_objects("tenant-stack/*")


def _id(template: Path) -> str:
    """The version, as part of a construct's id: it stays the same when further versions join."""
    return template.stem.replace(".", "-")
