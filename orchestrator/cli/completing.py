"""The values that a shell completes: ids of tenants and of rollouts, and versions.

A completion asks the control plane that the command would use. It prints nothing but values, and nothing at all if the
control plane cannot be asked: a shell has no place for a message.

The routes are loaded when a shell asks: every command loads this module, and few use all of these routes.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator

import typer

from orchestrator.cli.api import Api, Document
from orchestrator.cli.control_plane import Options, find
from orchestrator.tenants.names import DEFAULT_NAME

_MAX_ROLLOUTS = 20


def tenant_ids(ctx: typer.Context, incomplete: str) -> list[str]:
    """The ids of up to 500 tenants. One page has to do: nobody waits for more behind the tab key."""
    return _matching(ctx, incomplete, _tenants)


def versions(ctx: typer.Context, incomplete: str) -> list[str]:
    """The published releases, the newest first."""
    return _matching(ctx, incomplete, _versions)


def available_versions(ctx: typer.Context, incomplete: str) -> list[str]:
    """The published releases that tenants can get, the newest first: those that were not withdrawn."""
    return _matching(ctx, incomplete, _available_versions)


def tiers(ctx: typer.Context, incomplete: str) -> list[str]:
    """The tiers that have releases."""
    return _matching(ctx, incomplete, _tiers)


def rollout_ids(ctx: typer.Context, incomplete: str) -> list[str]:
    """The newest rollouts."""
    return _matching(ctx, incomplete, _rollouts)


def _tenants(api: Api) -> Iterator[str]:
    from orchestrator.api.tenant_models import MAX_PAGE_SIZE, ListTenants
    from orchestrator.api.tenant_routes import LIST_TENANTS

    answer = api.send_request(LIST_TENANTS, ListTenants(limit=MAX_PAGE_SIZE))
    yield from (tenant["tenantId"] for tenant in answer.body["tenants"])


def _versions(api: Api) -> Iterator[str]:
    yield from (release["version"] for release in _releases(api))


def _available_versions(api: Api) -> Iterator[str]:
    yield from (release["version"] for release in _releases(api) if not release["withdrawn"])


def _releases(api: Api) -> list[Document]:
    from orchestrator.api.fields import EmptyRequest
    from orchestrator.api.release_routes import LIST_RELEASES

    releases: list[Document] = api.send_request(LIST_RELEASES, EmptyRequest()).body["releases"]
    return releases


def _tiers(api: Api) -> Iterator[str]:
    yield from sorted({release["tier"] for release in _releases(api)})


def _rollouts(api: Api) -> Iterator[str]:
    from orchestrator.api.rollout_requests import ListRollouts
    from orchestrator.api.rollout_routes import LIST_ROLLOUTS

    answer = api.send_request(LIST_ROLLOUTS, ListRollouts(limit=_MAX_ROLLOUTS))
    yield from (rollout["rolloutId"] for rollout in answer.body["rollouts"])


def _matching(ctx: typer.Context, incomplete: str, values: Callable[[Api], Iterator[str]]) -> list[str]:
    root = ctx.find_root()
    given = root.params
    options = Options(
        local=bool(given.get("local")),
        stack=given.get("stack") or DEFAULT_NAME,
        region=given.get("region"),
        profile=given.get("profile"),
    )
    # Without a command to run, the context has what the entry point was given: nothing, or a test's world.
    search = root.obj.find if root.obj is not None else find
    # Notes such as where the control plane is would be shown in the middle of the command line.
    with contextlib.redirect_stderr(io.StringIO()), contextlib.suppress(Exception):
        return [value for value in values(search(options).api()) if value.startswith(incomplete)]
    return []
