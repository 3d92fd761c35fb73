"""Publishing the tenant template: it is stored under its version, recorded once, and never changed."""

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
from orchestrator.releases.template_contract import (
    ALWAYS_GIVEN,
    DATA_TYPES,
    KMS_KEY_PARAMETER,
    QUEUE_TYPE,
    SERVICE_TOKEN_PARAMETER,
    TENANT_PARAMETER,
)


def is_known(version: str | None, releases: Collection[str]) -> bool:
    """True if the version was published, or is older than every published version.

    A tenant at such an older version was created before Berth managed it. The tenant counts as outdated, like others,
    and a rollout moves it.
    """
    if version is None or version in releases:
        return version is not None
    return bool(releases) and all(is_older(version, than=release) for release in releases)


def canonical(template: Mapping[str, Any]) -> bytes:
    """The canonical text of a template. This text is committed, published and digested."""
    return (json.dumps(template, indent=2, sort_keys=True) + "\n").encode()


def digest_of(template: Mapping[str, Any]) -> str:
    """The digest of a release with this template. It does not depend on how a service formats the template."""
    return hashlib.sha256(canonical(template)).hexdigest()


def content_digest(template: bytes, version: str) -> str:
    """The digest of a template without its own version number."""
    own_version = rf"(?<![0-9.]){re.escape(version)}(?![0-9]|\.[0-9])"
    return hashlib.sha256(re.sub(own_version, "VERSION", template.decode()).encode()).hexdigest()


def stack_parameters(
    tenant: TenantId, release: Release, *, service_token: str, kms_key: str | None = None
) -> dict[str, str]:
    """The parameters of the release's template for that tenant.

    CloudFormation rejects parameters that a template does not declare, so a release that does not declare the key
    parameter is deployed without the key. If the template declares the parameter and there is no key, the parameter is
    passed empty, because change sets list all parameters.
    """
    parameters = {TENANT_PARAMETER: tenant.value, SERVICE_TOKEN_PARAMETER: service_token}
    if KMS_KEY_PARAMETER in release.parameters:
        parameters[KMS_KEY_PARAMETER] = kms_key or ""
    return parameters


def varies_by_tenant(template: str) -> bool:
    """True if the template may replace or remove a queue, or other data, for one tenant, and keep it for another.

    Then a review of one tenant's changes says nothing about the changes of another tenant. A macro may do anything.
    Tags do not count, because another tag never replaces a resource.
    """
    document: Mapping[str, Any] = json.loads(template)
    resources = document.get("Resources", {}).values()
    found = [each for each in resources if each.get("Type") == QUEUE_TYPE or each.get("Type") in DATA_TYPES]
    decisive = [
        document.get("Conditions"),
        *({**each, "Properties": {**each.get("Properties", {}), "Tags": None}} for each in found),
    ]
    return "Transform" in document or TENANT_PARAMETER in json.dumps(decisive)


def same_content(one: str | None, other: str | None, release_of: Callable[[str], Release | None]) -> bool:
    """True if both versions have the same template, so that moving a stack from one to the other changes nothing.

    Releases that were published before the content was recorded have none, and never count as the same.
    """
    first, second = release_of(one or ""), release_of(other or "")
    return first is not None and second is not None and bool(first.content) and first.content == second.content


def fingerprint(release: Release, parameters: Mapping[str, str]) -> str | None:
    """A digest of a stack's template and parameters. While it stays the same, an update would change nothing."""
    if not release.content:
        return None  # The release was published before the content was recorded.
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
    """Publish the template that was uploaded with the deployment. Publishing the same release again changes nothing.

    With ``again`` the template is stored again, so that S3 encrypts it with the bucket's current key.
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
    document = _canonical_document(version, template)
    recorded = releases.record_release(
        Release(
            version,
            templates.publish(version, digest, template),
            digest,
            clock.now(),
            content_digest(template, version),
            notes,
            frozenset(document.get("Parameters", {})) - ALWAYS_GIVEN,
        )
    )
    _check_digest(version, recorded, digest)
    return recorded


def _check_digest(version: str, recorded: Release | None, digest: str) -> None:
    if recorded is not None and recorded.digest != digest:
        raise ReleaseIsImmutable(
            f"Release {version} was published before with another template. Bump version.txt and deploy again."
        )


def _canonical_document(version: str, template: bytes) -> Mapping[str, Any]:
    """The template as a document, if its text is canonical.

    Before a stack is changed, the change set's template is compared with the release by its digest, which is the
    digest of the canonical text.
    """
    try:
        document = json.loads(template)
    except ValueError:
        document = None
    if not isinstance(document, dict) or canonical(document) != template:
        raise InvalidRequest(
            f"Release {version}: the uploaded template does not have the format of a release. Write it with "
            "`make release`, and deploy again."
        )
    return document
