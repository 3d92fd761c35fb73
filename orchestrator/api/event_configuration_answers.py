"""HTTP answers about event settings, API keys, sources and forms. The command line shows the same documents."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from orchestrator.api.event_problems import (
    CONNECTION_DISABLED,
    EXPIRES_SOON,
    HAS_CONNECTIONS,
    KEY_NOT_ACTIVE,
    LIMIT_REACHED,
    NO_SETTINGS,
    NO_SUCH_CONNECTION,
    NO_SUCH_FORM,
    NO_SUCH_KEY,
    NO_SUCH_REPLAY,
    NO_SUCH_SOURCE,
    NO_SUCH_TENANT,
    NOT_SIGNED,
    NOTHING_TO_RESEND,
    REPLAY_ENDED,
    UNKNOWN_EVENT,
)
from orchestrator.api.responses import Response, json_response, problem
from orchestrator.common.times import timestamp
from orchestrator.events.configuring_keys import IssuedKey
from orchestrator.events.configuring_sources import CreatedSource
from orchestrator.events.records import ApiKey, EventSettings, Form, KeyStatus, Source
from orchestrator.events.refusals import Refused

_PROBLEMS = {
    each.kind: each
    for each in (
        NO_SUCH_TENANT,
        NO_SETTINGS,
        NO_SUCH_KEY,
        KEY_NOT_ACTIVE,
        NO_SUCH_SOURCE,
        NO_SUCH_FORM,
        NO_SUCH_CONNECTION,
        NOT_SIGNED,
        HAS_CONNECTIONS,
        LIMIT_REACHED,
        UNKNOWN_EVENT,
        EXPIRES_SOON,
        NOTHING_TO_RESEND,
        CONNECTION_DISABLED,
        NO_SUCH_REPLAY,
        REPLAY_ENDED,
    )
}


def refusal_response(refused: Refused) -> Response:
    return problem(_PROBLEMS[refused.kind], refused.reason, tenantId=refused.tenant.value)


def settings_response(settings: EventSettings | Refused) -> Response:
    if isinstance(settings, Refused):
        return refusal_response(settings)
    limits = settings.limits
    return json_response(
        200,
        {
            "tenant_id": settings.life.tenant.value,
            "tenant_name": settings.tenant_name,
            "plan": settings.plan.value,
            "retention_hours": limits.retention // timedelta(hours=1),
            "events_per_month": limits.events_per_month,
            "events_per_second": limits.events_per_second,
            "shards": settings.shards,
            "inbox": settings.inbox,
            "type_index": settings.type_index,
            "created_at": timestamp(settings.created_at),
            "updated_at": timestamp(settings.updated_at),
        },
    )


# Keys


def keys_response(keys: Sequence[ApiKey], now: datetime) -> Response:
    return json_response(200, {"keys": [_key(key, now) for key in keys]})


def key_response(key: ApiKey | Refused, now: datetime) -> Response:
    return refusal_response(key) if isinstance(key, Refused) else json_response(200, _key(key, now))


def issued_key_response(issued: IssuedKey | Refused, now: datetime) -> Response:
    if isinstance(issued, Refused):
        return refusal_response(issued)
    replaced = _key(issued.replaced, now) if issued.replaced else None
    return secret_response({**_key(issued.key, now), "key": issued.text, "replaced": replaced})


def _key(key: ApiKey, now: datetime) -> dict[str, object]:
    expired = key.status is KeyStatus.ACTIVE and not key.is_valid(now)
    return {
        "tenant_id": key.life.tenant.value,
        "key_id": key.key_id,
        "name": key.name,
        "prefix": key.prefix,
        "scopes": sorted(key.scopes),
        "status": "expired" if expired else key.status.value,
        "created_at": timestamp(key.created_at),
        "expires_at": timestamp(key.expires_at) if key.expires_at else None,
        "last_used_at": timestamp(key.last_used_at) if key.last_used_at else None,
    }


# Sources


def sources_response(sources: Sequence[Source]) -> Response:
    return json_response(200, {"sources": [_source(source) for source in sources]})


def source_response(source: Source | Refused) -> Response:
    return refusal_response(source) if isinstance(source, Refused) else json_response(200, _source(source))


def created_source_response(created: CreatedSource | Refused) -> Response:
    if isinstance(created, Refused):
        return refusal_response(created)
    return secret_response({**_source(created.source), "secret": created.made_secret})


def deleted_source_response(source: Source | Refused) -> Response:
    if isinstance(source, Refused):
        return refusal_response(source)
    return json_response(200, {"tenant_id": source.life.tenant.value, "source_id": source.source_id})


def _source(source: Source) -> dict[str, object]:
    return {
        "tenant_id": source.life.tenant.value,
        "source_id": source.source_id,
        "name": source.name,
        "provider": source.provider.value,
        "verification": dict(source.verification),
        "status": source.status.value,
        "path": f"/hooks/{source.source_id}",
        "created_at": timestamp(source.created_at),
    }


# Forms


def forms_response(forms: Sequence[Form]) -> Response:
    return json_response(200, {"forms": [_form(form) for form in forms]})


def form_response(form: Form | Refused, status: int = 200) -> Response:
    return refusal_response(form) if isinstance(form, Refused) else json_response(status, _form(form))


def deleted_form_response(form: Form | Refused) -> Response:
    if isinstance(form, Refused):
        return refusal_response(form)
    return json_response(200, {"tenant_id": form.life.tenant.value, "form_id": form.form_id})


def _form(form: Form) -> dict[str, object]:
    return {
        "tenant_id": form.life.tenant.value,
        "form_id": form.form_id,
        "name": form.name,
        "origins": list(form.origins),
        "redirect_url": form.redirect_url,
        "honeypot": form.honeypot,
        "submissions_per_minute": form.submissions_per_minute,
        "status": form.status.value,
        "path": f"/forms/{form.form_id}",
        "created_at": timestamp(form.created_at),
    }


def secret_response(body: dict[str, object]) -> Response:
    """The only answer that ever has this key or secret: no cache may keep it."""
    response = json_response(201, body)
    response.headers["Cache-Control"] = "no-store"
    return response
