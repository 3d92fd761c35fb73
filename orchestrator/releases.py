"""Publishing the tenant template: stored under its version, recorded once, never changed."""

from __future__ import annotations

import hashlib

from orchestrator.errors import InvalidRequest, ReleaseIsImmutable
from orchestrator.ports import Clock, Releases, TemplateStore
from orchestrator.records import Release

VERSION_PATTERN = r"^[0-9]{1,4}\.[0-9]{1,4}\.[0-9]{1,4}$"


def publish_release(
    version: str,
    *,
    digest: str,
    source_bucket: str,
    source_key: str,
    releases: Releases,
    templates: TemplateStore,
    clock: Clock,
) -> Release:
    """Publish the template that was uploaded with the deployment. Publishing the same again changes nothing."""
    recorded = releases.release(version)
    if recorded is None:
        template = templates.read(source_bucket, source_key)
        found = hashlib.sha256(template).hexdigest()
        if found != digest:
            raise InvalidRequest(
                f"Release {version}: the uploaded template has digest {found}, not {digest}. Deploy again."
            )
        url = templates.publish(version, digest, template)
        recorded = releases.record_release(Release(version, url, digest, clock.now()))
    if recorded.digest != digest:
        raise ReleaseIsImmutable(
            f"Release {version} was published before with another template. Bump version.txt and deploy again."
        )
    return recorded
