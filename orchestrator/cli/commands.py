"""The commands of `berth`, each loaded when it is named.

Loading all of them takes longer than most commands run. The help of `berth` itself loads all: it shows their first
lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import typer

_EVENTS = "Events of tenants"
_TROUBLESHOOTING = "Troubleshooting"


@dataclass(frozen=True, slots=True)
class Command:
    """A function of a module of this package, which has the command's name."""

    module: str
    panel: str | None = None
    """The heading in the help of `berth`, below which the command is listed."""
    epilog: str | None = None
    """The name, in the module, of the text at the end of the command's help."""

    # Any: the type of a command is private to typer.
    def load(self, name: str) -> Any:
        module = _load(self.module)
        epilog = getattr(module, self.epilog) if self.epilog else None
        only = typer.Typer(add_completion=False, rich_markup_mode="rich")
        only.command(name, rich_help_panel=self.panel, epilog=epilog)(getattr(module, name.replace("-", "_")))
        return typer.main.get_command(only)


@dataclass(frozen=True, slots=True)
class Group:
    """The commands of the ``app`` of a module of this package."""

    module: str
    panel: str | None = None

    def load(self, name: str) -> Any:
        group = typer.main.get_group(_load(self.module).app)
        group.name = name
        group.rich_help_panel = self.panel
        return group


# Any: the type checker does not know the modules that are loaded by their names.
def _load(module: str) -> Any:
    return import_module(f"{__package__}.{module}")


COMMANDS: Mapping[str, Command | Group] = {
    "status": Command("status"),
    "create": Command("orders"),
    "get-queue": Command("get_queue"),
    "upgrade": Command("orders"),
    "move": Command("orders"),
    "label": Command("orders"),
    "pin": Command("orders"),
    "unpin": Command("orders"),
    "retry": Command("orders"),
    "delete": Command("orders"),
    "tenant": Command("tenant"),
    "tenants": Command("tenants"),
    "releases": Command("releases"),
    "console": Command("console", epilog="EXAMPLES"),
    "deliveries": Command("deliveries", _EVENTS, epilog="DELIVERIES_EXAMPLES"),
    "attempts": Command("deliveries", _EVENTS, epilog="ATTEMPTS_EXAMPLES"),
    "resend": Command("deliveries", _EVENTS, epilog="RESEND_EXAMPLES"),
    "listen": Command("listen", _EVENTS, epilog="EXAMPLES"),
    "doctor": Command("doctor", _TROUBLESHOOTING),
    "verify": Command("verify", "After a deployment"),
    "reconcile": Command("reconcile", _TROUBLESHOOTING, epilog="HELP"),
    "api": Command("raw_api", _TROUBLESHOOTING, epilog="EXAMPLES"),
    "openapi": Command("openapi", _TROUBLESHOOTING, epilog="EXAMPLES"),
    "adopt": Command("adopt", "Migrating an existing fleet", epilog="HELP"),
    "release": Group("release"),
    "rollout": Group("rollout"),
    "events": Group("events", _EVENTS),
    "inbox": Group("inbox", _EVENTS),
    "keys": Group("keys", _EVENTS),
    "sources": Group("sources", _EVENTS),
    "forms": Group("forms", _EVENTS),
    "connections": Group("connections", _EVENTS),
    "replay": Group("replay", _EVENTS),
}
"""The commands in the order of the help."""


class LoadedWhenNamed(Mapping[str, Any]):
    """The commands of :data:`COMMANDS`, as the library expects them: a dictionary of its own commands."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = COMMANDS[name].load(name)
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in COMMANDS

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)
