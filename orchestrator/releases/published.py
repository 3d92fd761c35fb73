"""Publishing the tenant template: stored under its version, recorded once, never changed."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from orchestrator.common.errors import InvalidRequest, ReleaseIsImmutable
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import Clock
from orchestrator.common.versions import is_older
from orchestrator.releases.ports import Releases, TemplateStore
from orchestrator.releases.records import Release

TENANT_PARAMETER = "TenantId"
SERVICE_TOKEN_PARAMETER = "MetadataServiceToken"  # noqa: S105 - a parameter's name
KMS_KEY_PARAMETER = "KmsKeyArn"
_ALWAYS_GIVEN = frozenset({TENANT_PARAMETER, SERVICE_TOKEN_PARAMETER})


def is_known(version: str | None, releases: Collection[str]) -> bool:
    """Whether the version was published, or is older than all that were: then the tenant is older than Berth.

    Such a tenant is outdated as others are, and a rollout moves it.
    """
    if version is None or version in releases:
        return version is not None
    return bool(releases) and all(is_older(version, than=release) for release in releases)


def canonical(template: Mapping[str, Any]) -> bytes:
    """The one spelling of a template: what is committed, published and digested."""
    return (json.dumps(template, indent=2, sort_keys=True) + "\n").encode()


def digest_of(template: Mapping[str, Any]) -> str:
    """The digest that a release of this template has, whatever the spelling was in which it came back."""
    return hashlib.sha256(canonical(template)).hexdigest()


def content_digest(template: bytes, version: str) -> str:
    """The digest of a template, whatever version it calls itself."""
    itself = rf"(?<![0-9.]){re.escape(version)}(?![0-9]|\.[0-9])"
    return hashlib.sha256(re.sub(itself, "VERSION", template.decode()).encode()).hexdigest()


def stack_parameters(
    tenant: TenantId, release: Release, *, service_token: str, kms_key: str | None = None
) -> dict[str, str]:
    """What the release's template is given for that tenant.

    CloudFormation refuses what a template does not know, so a release without a parameter for the key is deployed
    without the key. A template that knows it is also told that there is none: change sets tell all parameters.
    """
    given = {TENANT_PARAMETER: tenant.value, SERVICE_TOKEN_PARAMETER: service_token}
    if KMS_KEY_PARAMETER in release.parameters:
        given[KMS_KEY_PARAMETER] = kms_key or ""
    return given


def same_content(one: str | None, other: str | None, release_of: Callable[[str], Release | None]) -> bool:
    """Whether moving a stack from one version to the other changes nothing, so that CloudFormation need not be asked.

    Releases from before that was recorded have no content, and are the same as none.
    """
    here, there = release_of(one or ""), release_of(other or "")
    return here is not None and there is not None and bool(here.content) and here.content == there.content


def fingerprint(release: Release, parameters: Mapping[str, str]) -> str | None:
    """What a stack is made from: as long as it stays the same, CloudFormation would have nothing to do."""
    if not release.content:
        return None  # Published before that was recorded.
    return hashlib.sha256(json.dumps([release.content, dict(parameters)], sort_keys=True).encode()).hexdigest()


def publish_release(
    version: str,
    *,
    digest: str,
    notes: str = "",
    source_key: str,
    releases: Releases,
    templates: TemplateStore,
    clock: Clock,
    again: bool = False,
) -> Release:
    """Publish the template that was uploaded with the deployment. Publishing the same again changes nothing.

    With ``again`` it is also stored again: S3 encrypts it with the key that the bucket has now.
    """
    recorded = releases.release(version)
    _check_digest(version, recorded, digest)
    if recorded is not None and not again:
        return recorded
    template = templates.read(source_key)
    found = hashlib.sha256(template).hexdigest()
    if found != digest:
        raise InvalidRequest(
            f"Release {version}: the uploaded template has digest {found}, not {digest}. Deploy again."
        )
    if recorded is not None:
        templates.publish(version, digest, template)
        return recorded
    given = _spelled_as_releases_are(version, template)
    recorded = releases.record_release(
        Release(
            version,
            templates.publish(version, digest, template),
            digest,
            clock.now(),
            content_digest(template, version),
            notes,
            frozenset(given.get("Parameters", {})) - _ALWAYS_GIVEN,
        )
    )
    _check_digest(version, recorded, digest)
    return recorded


def _check_digest(version: str, recorded: Release | None, digest: str) -> None:
    if recorded is not None and recorded.digest != digest:
        raise ReleaseIsImmutable(
            f"Release {version} was published before with another template. Bump version.txt and deploy again."
        )


def _spelled_as_releases_are(version: str, template: bytes) -> Mapping[str, Any]:
    """Before changes are made to a stack, their template is compared with the release by its digest."""
    try:
        given = json.loads(template)
    except ValueError:
        given = None
    if not isinstance(given, dict) or canonical(given) != template:
        raise InvalidRequest(
            f"Release {version}: the uploaded template is not spelled as releases are. Write it by `make release`, "
            "and deploy again."
        )
    return given
