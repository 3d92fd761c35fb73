"""The text that `make deploy` and `make diff` print before they build anything: the target, and what changes there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from orchestrator.common.errors import BerthError
from orchestrator.common.versions import is_older_berth


class ReleaseDiffers(BerthError):
    """The release that this checkout would publish was published in the account before, with another template."""


@dataclass(frozen=True, slots=True)
class Release:
    """The release of the checkout: the version of the tenants' template, and the digest of its file."""

    version: str
    digest: str


@dataclass(frozen=True, slots=True)
class StackNow:
    """A stack as it is before the deployment."""

    name: str
    status: str | None = None
    """``None`` if there is no such stack yet."""
    version: str | None = None
    """The version of Berth that is deployed."""


@dataclass(frozen=True, slots=True)
class Target:
    """The place that is deployed to, and what is there now."""

    account: str
    region: str
    caller: str
    stacks: Sequence[StackNow]
    published: Mapping[str, str] | None
    """The digest of every published release, by version. ``None`` if the table could not be read."""
    withdrawn: Mapping[str, str] = field(default_factory=dict)
    """The releases that were withdrawn there, by version, each with a sentence that says by whom and why."""


def announce(
    target: Target,
    version: str,
    release: Release,
    *,
    only_compares: bool = False,
) -> str:
    """``version`` is the version of Berth that is deployed, ``release`` what it publishes."""
    place = f"account {target.account}, region {target.region}, as {target.caller}"
    lines = [
        f"Deploying Berth {version} to {place}{', would have these effects' if only_compares else ''}:",
        *(f"  {stack.name} {_change(stack, version)}" for stack in target.stacks),
        f"  {_publication(target.published, release)}",
        *_withdrawal(target.withdrawn, release.version),
        "  No tenant is moved to another release, unless berth:rolloutOnPublish is set: see berth rollout plan.",
    ]
    return "\n".join(lines)


def _change(stack: StackNow, version: str) -> str:
    if stack.status is None:
        return f"is created, at version {version}"
    now = f"now {stack.status}"
    if stack.version is None:
        return f"is updated to version {version} ({now}, version unknown)"
    if stack.version == version:
        return f"stays at version {version}, and gets the code and the settings of this checkout ({now})"
    if is_older_berth(version, than=stack.version):
        return f"GOES BACK from version {stack.version} to {version} ({now})"
    return f"is updated from version {stack.version} to {version} ({now})"


def _withdrawal(withdrawn: Mapping[str, str], version: str) -> list[str]:
    if version not in withdrawn:
        return []
    return [
        f"  {withdrawn[version]}. It stays withdrawn, so new tenants do not get it. If it is good after all: berth "
        f"release reinstate {version}"
    ]


def _publication(published: Mapping[str, str] | None, release: Release) -> str:
    if published is None:
        return "Which releases are published already could not be read from the table."
    if release.version not in published:
        return f"Release {release.version} is published."
    if published[release.version] != release.digest:
        raise ReleaseDiffers(
            f"Nothing was built or deployed: release {release.version} was published here before with another "
            "template, and a published release never changes. Restore its file, bump version.txt, then run "
            "`make release`."
        )
    return f"No new release is published: the tenants' template is that of {release.version}."
