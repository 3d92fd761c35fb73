"""Finds the control plane that a command talks to: the local one, or one on AWS."""

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
    from orchestrator.adapters.migration import Migration
    from orchestrator.cli.deployed import Deployment

STACK_VARIABLE = "BERTH_STACK"
"""The environment variable that names the control plane if the option --stack does not."""


@dataclass(frozen=True, slots=True)
class Options:
    """The global options that say where the control plane is."""

    local: bool = False
    stack: str = DEFAULT_NAME
    region: str | None = None
    profile: str | None = None


class LocalControlPlane(Protocol):
    """The address of the local control plane, and the settings of its clients."""

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
    account: str | None = None
    """The AWS account; ``None`` for a local control plane."""

    @property
    def place(self) -> str:
        """The control plane's name, region and account, which an operator has to see before something is destroyed."""
        return f"{self.name} {self.where}" + (f", account {self.account}" if self.account else "")

    @property
    def version(self) -> str | None:
        """The version of Berth."""
        return self.outputs.get("Version")

    @property
    def versions(self) -> str:
        """The version of Berth, and the release that the deployment has published, which only one stack names."""
        release = self.outputs.get("TemplateVersion")
        return f"Berth {self.version or 'of an unknown version'}" + (f", release {release}" if release else "")


class UsableQueue(Protocol):
    """A tenant's queue, with credentials for it."""

    def send(self, body: str) -> None: ...

    def receive(self) -> list[str]:
        """Receive the messages that arrive within a few seconds, and delete them from the queue."""


class ControlPlane(Protocol):
    """The chosen control plane, deployed or not. Implemented by :class:`orchestrator.cli.deployed.Deployment`."""

    def caller(self) -> str:
        """The ARN of the caller, as AWS STS reports it."""

    @property
    def stack(self) -> DeployedStack: ...

    @property
    def events_stack(self) -> DeployedStack:
        """The stack of the event plane, which is beside the control plane's own."""

    def api(self) -> Api: ...

    def events_api(self, key: str | None = None) -> Api:
        """The API of the event plane, which is a stack of its own. Raises ControlPlaneNotFound if there is none.

        With ``key``, an API key, it is used as the tenant that the key belongs to.
        """

    @property
    def events_api_url(self) -> str: ...

    def queue(self, url: str, credentials: Document, /) -> UsableQueue:
        """The queue, used with ``credentials`` that the API issued for it."""

    def migration(self, sleep: Callable[[float], None]) -> Migration:
        """The migration of an earlier system's rows, with the caller's credentials."""

    @property
    def api_url(self) -> str:
        """The URL of the API. For a local control plane it differs from the stack's output."""


def find_local() -> LocalControlPlane | None:
    """The local control plane, if it is running."""
    from orchestrator.local.emulator import Emulator

    emulator = Emulator.running()
    return emulator if emulator and emulator.is_up() else None


def local_is_stopped() -> bool:
    """True if there is a local control plane on this machine that is not running."""
    from orchestrator.local.emulator import Emulator

    return Emulator.is_stopped()


def choose(
    options: Options,
    environment: Mapping[str, str],
    find_local: FindLocal,
    local_is_stopped: Callable[[], bool] = lambda: False,
) -> LocalControlPlane | None:
    """The local control plane if it was requested, or if it is running and no option or variable selects AWS.

    ``None`` means AWS. A command that was meant for a local control plane must not reach AWS because that control plane
    was stopped meanwhile, so AWS then has to be selected.
    """
    if not options.local and (options.region or options.profile or environment.get("AWS_PROFILE")):
        return None
    local = find_local()
    if options.local:
        if local is None:
            raise ControlPlaneNotFound("The local control plane is not running: start it with make up.")
        return local
    # A shell that was set up for the local control plane has credentials, too: those of the local control plane.
    set_up_for_local = local is not None and environment.get("AWS_ENDPOINT_URL") == local.endpoint
    if local is None and not environment.get("AWS_ACCESS_KEY_ID") and local_is_stopped():
        raise ControlPlaneNotFound(
            "The local control plane is stopped, and nothing selects AWS. Start the local one with make up, or select "
            "AWS: --region, --profile or AWS_PROFILE."
        )
    return local if set_up_for_local or not environment.get("AWS_ACCESS_KEY_ID") else None


def find(
    options: Options,
    *,
    environment: Mapping[str, str] = os.environ,
    find_local: FindLocal = find_local,
    local_is_stopped: Callable[[], bool] = local_is_stopped,
) -> Deployment:
    """The control plane that the options and the environment select."""
    local = choose(options, environment, find_local, local_is_stopped)
    if local and not options.local:
        note(f"Using the local control plane at {local.endpoint} (for AWS: --region or --profile).")

    # Imported here because loading the SDK takes longer than everything else, and --help does not need it.
    from orchestrator.cli.deployed import Deployment

    return Deployment(options, local, announce=lambda place: note(f"Using the control plane {place}."))
