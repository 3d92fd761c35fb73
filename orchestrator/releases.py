"""Publishing the tenant template: stored under its version, recorded once, never changed."""

from __future__ import annotations

import hashlib
import re

from orchestrator.errors import InvalidRequest, ReleaseIsImmutable
from orchestrator.ports import Clock, Releases, TemplateStore
from orchestrator.records import Release

VERSION_PATTERN = r"^[0-9]{1,4}\.[0-9]{1,4}\.[0-9]{1,4}$"


def is_older(version: str, *, than: str) -> bool:
    """Whether one version comes before another. One that is not of our making comes before none and after none."""
    if not all(re.fullmatch(VERSION_PATTERN, each) for each in (version, than)):
        return False
    return order(version) < order(than)


def order(version: str) -> tuple[int, ...]:
    """What to sort versions by: 0.10.0 comes after 0.9.0."""
    return tuple(int(part) for part in version.split("."))


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
