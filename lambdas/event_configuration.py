"""Answers to tenants and operators about event settings, API keys, sources and forms."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from lambdas.event_runtime import use_cases
from lambdas.event_serving import Served, served_for
from orchestrator.api import event_configuration_models as models
from orchestrator.api import event_configuration_routes as routes
from orchestrator.api.event_configuration_answers import (
    created_source_response,
    deleted_form_response,
    deleted_source_response,
    form_response,
    forms_response,
    issued_key_response,
    key_response,
    keys_response,
    settings_response,
    source_response,
    sources_response,
)
from orchestrator.api.fields import or_default
from orchestrator.api.responses import Response
from orchestrator.events.configuring_forms import FormChange
from orchestrator.events.records import EventSettings, SourceStatus


def _settings(_request: models.NoParameters, settings: EventSettings, _by: str) -> Response:
    return settings_response(settings)


# Keys


def _list_keys(_request: models.NoParameters, settings: EventSettings, by: str) -> Response:
    return keys_response(use_cases.configuring_keys(by).list(settings.life), use_cases.ports.clock.now())


def _create_key(request: models.CreateKey, settings: EventSettings, by: str) -> Response:
    seconds = or_default(request.expires_in_seconds)
    issued = use_cases.configuring_keys(by).create(
        settings,
        request.name,
        frozenset(request.scopes),
        expires_in=timedelta(seconds=seconds) if seconds else None,
    )
    return issued_key_response(issued, use_cases.ports.clock.now())


def _rotate_key(request: models.RotateKey, settings: EventSettings, by: str) -> Response:
    overlap = timedelta(seconds=request.overlap_seconds)
    issued = use_cases.configuring_keys(by).rotate(settings, request.key_id, overlap=overlap)
    return issued_key_response(issued, use_cases.ports.clock.now())


def _revoke_key(request: models.OfKey, settings: EventSettings, by: str) -> Response:
    revoked = use_cases.configuring_keys(by).revoke(settings.life, request.key_id)
    return key_response(revoked, use_cases.ports.clock.now())


# Sources


def _list_sources(_request: models.NoParameters, settings: EventSettings, by: str) -> Response:
    return sources_response(use_cases.configuring_sources(by).list(settings.life))


def _create_source(request: models.CreateSource, settings: EventSettings, by: str) -> Response:
    return created_source_response(use_cases.configuring_sources(by).create(settings, request.to_domain()))


def _source(request: models.OfSource, settings: EventSettings, by: str) -> Response:
    return source_response(use_cases.configuring_sources(by).find(settings.life, request.source_id))


def _pause_source(request: models.OfSource, settings: EventSettings, by: str) -> Response:
    return _set_source_status(request, settings, SourceStatus.PAUSED, by)


def _resume_source(request: models.OfSource, settings: EventSettings, by: str) -> Response:
    return _set_source_status(request, settings, SourceStatus.ACTIVE, by)


def _set_source_status(request: models.OfSource, settings: EventSettings, status: SourceStatus, by: str) -> Response:
    return source_response(use_cases.configuring_sources(by).set_status(settings.life, request.source_id, status))


def _delete_source(request: models.OfSource, settings: EventSettings, by: str) -> Response:
    return deleted_source_response(use_cases.configuring_sources(by).delete(settings.life, request.source_id))


# Forms


def _list_forms(_request: models.NoParameters, settings: EventSettings, by: str) -> Response:
    return forms_response(use_cases.configuring_forms(by).list(settings.life))


def _create_form(request: models.CreateForm, settings: EventSettings, by: str) -> Response:
    return form_response(use_cases.configuring_forms(by).create(settings, request.name, request.to_domain()), 201)


def _form(request: models.OfForm, settings: EventSettings, by: str) -> Response:
    return form_response(use_cases.configuring_forms(by).find(settings.life, request.form_id))


def _update_form(request: models.UpdateForm, settings: EventSettings, by: str) -> Response:
    return _change_form(request, settings, request.to_domain(), by)


def _pause_form(request: models.OfForm, settings: EventSettings, by: str) -> Response:
    return _change_form(request, settings, FormChange(status=SourceStatus.PAUSED), by)


def _resume_form(request: models.OfForm, settings: EventSettings, by: str) -> Response:
    return _change_form(request, settings, FormChange(status=SourceStatus.ACTIVE), by)


def _change_form(request: models.OfForm, settings: EventSettings, change: FormChange, by: str) -> Response:
    return form_response(use_cases.configuring_forms(by).change(settings.life, request.form_id, change))


def _delete_form(request: models.OfForm, settings: EventSettings, by: str) -> Response:
    return deleted_form_response(use_cases.configuring_forms(by).delete(settings.life, request.form_id))


SERVED: Sequence[Served] = (
    served_for(routes.GET_SETTINGS, _settings),
    served_for(routes.LIST_KEYS, _list_keys),
    served_for(routes.CREATE_KEY, _create_key),
    served_for(routes.ROTATE_KEY, _rotate_key),
    served_for(routes.REVOKE_KEY, _revoke_key),
    served_for(routes.LIST_SOURCES, _list_sources),
    served_for(routes.CREATE_SOURCE, _create_source),
    served_for(routes.GET_SOURCE, _source),
    served_for(routes.PAUSE_SOURCE, _pause_source),
    served_for(routes.RESUME_SOURCE, _resume_source),
    served_for(routes.DELETE_SOURCE, _delete_source),
    served_for(routes.LIST_FORMS, _list_forms),
    served_for(routes.CREATE_FORM, _create_form),
    served_for(routes.GET_FORM, _form),
    served_for(routes.UPDATE_FORM, _update_form),
    served_for(routes.PAUSE_FORM, _pause_form),
    served_for(routes.RESUME_FORM, _resume_form),
    served_for(routes.DELETE_FORM, _delete_form),
)
