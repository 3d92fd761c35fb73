"""The options that select tenants, and the tenants that they select, for `berth tenants`, `retry` and `delete`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated

import typer

from orchestrator.api.fields import EmptyRequest, or_unset
from orchestrator.api.release_routes import LIST_RELEASES
from orchestrator.api.tenant_models import MAX_PAGE_SIZE, ListTenants
from orchestrator.api.tenant_routes import LIST_TENANTS
from orchestrator.cli import completing
from orchestrator.cli.api import Api, Document
from orchestrator.cli.invocation import one_of
from orchestrator.cli.problems import problem
from orchestrator.client.retrying import Retrying
from orchestrator.common.errors import InvalidRequest
from orchestrator.tenants.records import TenantState
from orchestrator.tenants.selections import listed, unknown_labels

_FOUND = 200
_STATES = ", ".join(TenantState)
LABEL_RULE = "A name has 1 to 63 characters, a value up to 128."

State = Annotated[
    TenantState | None,
    typer.Option(parser=one_of(TenantState), metavar="STATE", help=f"Only tenants in this state: {_STATES}."),
]
Version = Annotated[
    str | None,
    typer.Option(metavar="VERSION", help="Only tenants at this version.", autocompletion=completing.versions),
]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        "--label",
        metavar="NAME=VALUE",
        help="Only tenants with this label. If repeated, only tenants with all labels.",
    ),
]
Prefix = Annotated[
    str | None, typer.Option(metavar="TEXT", help="Only tenants whose ids begin with this text.", show_default=False)
]
Pinned = Annotated[
    bool | None,
    typer.Option("--pinned/--not-pinned", help="Only tenants that are pinned, or only the others.", show_default=False),
]

Tier = Annotated[
    str | None,
    typer.Option(metavar="TIER", help="Only tenants of this tier.", autocompletion=completing.tiers),
]


@dataclass(frozen=True, slots=True)
class Selection:
    state: TenantState | None = None
    version: str | None = None
    labels: dict[str, str] = field(default_factory=dict)
    pinned: bool | None = None
    tier: str | None = None
    prefix: str | None = None

    @classmethod
    def of(
        cls,
        state: TenantState | None,
        version: str | None,
        labels: Sequence[str] | None,
        pinned: bool | None,
        tier: str | None,
        prefix: str | None = None,
    ) -> Selection:
        return cls(state, version, labels_of(labels or ()), pinned, tier, prefix)

    def __bool__(self) -> bool:
        """True if there is any filter."""
        return self != Selection()

    def request(self, *, cursor: str | None, limit: int) -> ListTenants:
        label = ",".join(f"{name}={value}" for name, value in self.labels.items())
        return ListTenants(
            state=or_unset(self.state),
            version=or_unset(self.version),
            label=or_unset(label or None),
            pinned=or_unset(self.pinned),
            tier=or_unset(self.tier),
            prefix=or_unset(self.prefix),
            cursor=or_unset(cursor),
            limit=limit,
        )

    def find(
        self, api: Api, retrying: Retrying, *, wanted: int | None = None, cursor: str | None = None
    ) -> tuple[list[Document], str | None]:
        """The first ``wanted`` tenants, or all of them, and the cursor of the next ones if there may be more.

        Raises InvalidRequest if there are none because of a version, a tier or a label that no tenant has.
        """
        found: list[Document] = []
        started_at = cursor
        while wanted is None or len(found) < wanted:
            limit = MAX_PAGE_SIZE if wanted is None else min(wanted - len(found), MAX_PAGE_SIZE)
            answer = retrying(partial(api.send_request, LIST_TENANTS, self.request(cursor=cursor, limit=limit)))
            if answer.status != _FOUND:
                raise problem(answer)
            found += answer.body["tenants"]
            cursor = answer.body["cursor"]
            if cursor is None:
                break
        if not found and started_at is None:
            self._check(api, retrying)
        return found, cursor

    def _check(self, api: Api, retrying: Retrying) -> None:
        if self.labels:
            deleted = TenantState.DELETED
            everyone, _ = Selection(state=deleted if self.state is deleted else None).find(api, retrying)
            if message := unknown_labels(self.labels, [tenant["labels"] for tenant in everyone]):
                raise InvalidRequest(message)
        if self.version is None and self.tier is None:
            return
        answer = retrying(partial(api.send_request, LIST_RELEASES, EmptyRequest()))
        if answer.status != _FOUND:
            raise problem(answer)
        known = list(_versions(answer.body))
        if self.version is not None and self.version not in known:
            raise InvalidRequest(f"There is no version {self.version}. Versions: {listed(known)}.")
        if message := unknown_tier(self.tier, answer.body):
            raise InvalidRequest(message)


def unknown_tier(tier: str | None, releases: Document) -> str | None:
    """The message about a tier that does not exist; ``None`` if it does."""
    tiers = releases["tiers"]
    return None if tier is None or tier in tiers else f"There is no tier {tier}. Tiers: {listed(tiers)}."


def _versions(releases: Document) -> Iterator[str]:
    """The published versions, and those that tenants are at."""
    yield from (release["version"] for release in releases["releases"])
    yield from filter(None, releases["elsewhere"])


def labels_of(options: Sequence[str], *, hint: str = "--label") -> dict[str, str]:
    """The labels of options like NAME=VALUE. ``hint`` names the option or argument in messages."""
    labels: dict[str, str] = {}
    for option in options:
        name, equals, value = option.partition("=")
        if not (name and equals):
            raise typer.BadParameter(f"{option!a} is not of the form NAME=VALUE.", param_hint=f"'{hint}'")
        if name in labels:
            raise typer.BadParameter(f"{name!a} is given twice.", param_hint=f"'{hint}'")
        labels[name] = value
    return labels
