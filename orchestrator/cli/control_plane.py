"""Which control plane a command talks to: the local one, or one on AWS."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from orchestrator.cli.api import Api, Document
from orchestrator.cli.errors import ControlPlaneNotFound
from orchestrator.cli.render import note
from orchestrator.tenants.names import DEFAULT_NAME

if TYPE_CHECKING:
    from orchestrator.cli.deployed import Deployment

STACK_VARIABLE = "BERTH_STACK"
"""The environment variable that names the control plane, unless an option does."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the global options say about where the control plane is."""

    local: bool = False
    stack: str = DEFAULT_NAME
    region: str | None = None
    profile: str | None = None


class LocalControlPlane(Protocol):
    """Where the local control plane is, and how it is talked to."""

    @property
    def endpoint(self) -> str: ...

    def session_settings(self) -> dict[str, str]: ...

    def api_url(self, deployed: str) -> str: ...


FindLocal = Callable[[], LocalControlPlane | None]


@dataclass(frozen=True, slots=True)
class DeployedStack:
    """The control plane's own CloudFormation stack."""

    name: str
    where: str
    status: str
    outputs: Mapping[str, str]

    @property
    def version(self) -> str | None:
        return self.outputs.get("Version")


class UsableQueue(Protocol):
    """A tenant's queue, with credentials for it."""

    def send(self, body: str) -> None: ...

    def receive(self) -> list[str]:
        """Messages that come within some seconds. They are deleted from the queue."""


class ControlPlane(Protocol):
    """One that was chosen, whether it is deployed or not. :class:`orchestrator.cli.deployed.Deployment` looks."""

    def caller(self) -> str:
        """Who is asking, as AWS sees it."""

    @property
    def stack(self) -> DeployedStack: ...

    def api(self) -> Api: ...

    def queue(self, url: str, credentials: Document, /) -> UsableQueue:
        """``credentials`` are those that the API has given out for it."""

    @property
    def api_url(self) -> str:
        """Where the API answers. Locally that is not what the stack's output says."""


def find_local() -> LocalControlPlane | None:
    """The local control plane, if it is up."""
    from orchestrator.local.emulator import Emulator

    emulator = Emulator.running()
    return emulator if emulator and emulator.is_up() else None


def choose(options: Options, environment: Mapping[str, str], find_local: FindLocal) -> LocalControlPlane | None:
    """The local one if it is asked for, or is up and nothing speaks for AWS. ``None`` means AWS."""
    if not options.local and (options.region or options.profile or environment.get("AWS_PROFILE")):
        return None
    local = find_local()
    if options.local:
        if local is None:
            raise ControlPlaneNotFound("The local control plane is not up: start it with make up.")
        return local
    # A shell that was set up for the local control plane has credentials too: its own.
    set_up_for_local = local is not None and environment.get("AWS_ENDPOINT_URL") == local.endpoint
    return local if set_up_for_local or not environment.get("AWS_ACCESS_KEY_ID") else None


def find(
    options: Options,
    *,
    environment: Mapping[str, str] = os.environ,
    find_local: FindLocal = find_local,
) -> Deployment:
    """The control plane that is meant."""
    local = choose(options, environment, find_local)
    if local and not options.local:
        note(f"Using the local control plane at {local.endpoint} (for AWS: --region or --profile).")

    # Not at the top: loading the SDK takes longer than all the rest, and --help does not need it.
    from orchestrator.cli.deployed import Deployment

    return Deployment(options, local)
