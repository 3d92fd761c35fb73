"""All golden files as they would be written now."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from orchestrator.api.openapi import CONTROL_PLANE, EVENT_PLANE
from tests.transcripts import of_all, of_checks, of_events, of_releases, of_rollouts, of_tenants
from tests.transcripts.apis import snapshot
from tests.transcripts.script import COMMANDS, SCRIPTS, file_of, transcript

MODULES = (of_all, of_checks, of_events, of_releases, of_rollouts, of_tenants)
"""Loading these registers all scripts."""

FILES: Mapping[str, Callable[[], str]] = {
    **{file_of(name): partial(transcript, name) for name in sorted(SCRIPTS)},
    "api.txt": partial(snapshot, CONTROL_PLANE),
    "events-api.txt": partial(snapshot, EVENT_PLANE),
}
"""How to make the text of each file."""

WITHOUT_TRANSCRIPT = sorted(COMMANDS.keys() - SCRIPTS.keys())
