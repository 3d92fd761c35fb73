"""Answers to tenants and operators about changes of the configuration."""

from __future__ import annotations

from collections.abc import Sequence

from lambdas.event_runtime import use_cases
from lambdas.event_serving import Served, served_for
from orchestrator.api.event_change_answers import changes_response
from orchestrator.api.event_change_routes import LIST_CHANGES, ListChanges
from orchestrator.api.fields import or_default
from orchestrator.api.responses import Response
from orchestrator.events.records import EventSettings


def _changes(request: ListChanges, settings: EventSettings, by: str) -> Response:
    page = use_cases.listing_changes.page(settings, cursor=or_default(request.cursor), limit=request.limit)
    return changes_response(page, asked_by=by)


SERVED: Sequence[Served] = (served_for(LIST_CHANGES, _changes),)
