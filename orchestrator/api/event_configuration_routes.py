"""The routes for event settings, API keys, sources and forms.

Tenants call them with an API key, for themselves. Operators call them for any tenant, and change settings, which cost
money: a tenant can only read its own.
"""

from __future__ import annotations

from orchestrator.api.event_configuration_models import (
    ChangeSettings,
    CreatedSource,
    CreateForm,
    CreateKey,
    CreateSource,
    DeletedForm,
    DeletedSource,
    Form,
    Forms,
    IssuedKey,
    Key,
    Keys,
    NoParameters,
    OfForm,
    OfKey,
    OfSource,
    RotateKey,
    Settings,
    Source,
    Sources,
    UpdateForm,
)
from orchestrator.api.event_problems import (
    HAS_CONNECTIONS,
    KEY_NOT_ACTIVE,
    LIMIT_REACHED,
    NO_SUCH_FORM,
    NO_SUCH_KEY,
    NO_SUCH_SOURCE,
    NO_SUCH_TENANT,
    UNSUPPORTED_TYPE,
)
from orchestrator.api.event_routes import BY_KEY
from orchestrator.api.for_operators import for_operators
from orchestrator.api.problems import INVALID_REQUEST, NOT_THROUGH_THE_API, TRY_AGAIN
from orchestrator.api.route import NO_STORE, Answer, AnyRoute, Audience, Rate, Route
from orchestrator.events import records
from orchestrator.events.configuring_forms import MAX_FORMS
from orchestrator.events.configuring_keys import MAX_KEYS
from orchestrator.events.configuring_sources import MAX_SOURCES

_WITH_BODY = (*BY_KEY, UNSUPPORTED_TYPE)

GET_SETTINGS: Route[NoParameters, Settings] = Route(
    name="getSettings",
    method="GET",
    path="/settings",
    audience=Audience.TENANT,
    scope=records.Scope.READ,
    rate=Rate.EVENT_READS,
    summary="Get the event settings, and the limits of the plan",
    request=NoParameters,
    answers=(Answer(200, Settings, "The settings."),),
    problems=BY_KEY,
)
PUT_SETTINGS: Route[ChangeSettings, Settings] = Route(
    name="putSettings",
    method="PUT",
    path="/tenants/{tenantId}/settings",
    audience=Audience.OPERATOR,
    rate=Rate.ORDERS,
    summary="Make or change the event settings of a tenant",
    description="A tenant accepts events once it has settings. Another plan takes effect within 10 seconds. Settings "
    "end with the tenant: a tenant that is deleted and created again needs new ones.",
    request=ChangeSettings,
    answers=(Answer(200, Settings, "The settings as they are now."),),
    problems=(INVALID_REQUEST, NOT_THROUGH_THE_API, TRY_AGAIN, NO_SUCH_TENANT, UNSUPPORTED_TYPE),
)

LIST_KEYS: Route[NoParameters, Keys] = Route(
    name="listKeys",
    method="GET",
    path="/keys",
    audience=Audience.TENANT,
    scope=records.Scope.ADMIN,
    rate=Rate.EVENT_READS,
    summary="List the API keys",
    request=NoParameters,
    answers=(Answer(200, Keys, "The keys."),),
    problems=BY_KEY,
)
CREATE_KEY: Route[CreateKey, IssuedKey] = Route(
    name="createKey",
    method="POST",
    path="/keys",
    audience=Audience.TENANT,
    scope=records.Scope.ADMIN,
    rate=Rate.EVENT_READS,
    summary="Create an API key",
    description="The key is in this answer only. Berth keeps nothing but its SHA-256 digest. A tenant has at most "
    f"{MAX_KEYS} keys. Revoked and expired keys are removed to make room for new ones.",
    request=CreateKey,
    answers=(Answer(201, IssuedKey, "The new key.", (NO_STORE,)),),
    problems=(*_WITH_BODY, LIMIT_REACHED),
)
ROTATE_KEY: Route[RotateKey, IssuedKey] = Route(
    name="rotateKey",
    method="POST",
    path="/keys/{keyId}/rotate",
    audience=Audience.TENANT,
    scope=records.Scope.ADMIN,
    rate=Rate.EVENT_READS,
    summary="Replace an API key by a new one",
    description="The new key has the same name, scopes and lifetime. The old key works until the overlap is over.",
    request=RotateKey,
    answers=(Answer(201, IssuedKey, "The new key.", (NO_STORE,)),),
    problems=(*_WITH_BODY, NO_SUCH_KEY, KEY_NOT_ACTIVE, LIMIT_REACHED),
)
REVOKE_KEY: Route[OfKey, Key] = Route(
    name="revokeKey",
    method="DELETE",
    path="/keys/{keyId}",
    audience=Audience.TENANT,
    scope=records.Scope.ADMIN,
    rate=Rate.EVENT_READS,
    summary="Revoke an API key",
    description="The key stops working within 10 seconds.",
    request=OfKey,
    answers=(Answer(200, Key, "The key is revoked."),),
    problems=(*BY_KEY, NO_SUCH_KEY),
)

LIST_SOURCES: Route[NoParameters, Sources] = Route(
    name="listSources",
    method="GET",
    path="/sources",
    audience=Audience.TENANT,
    scope=records.Scope.ADMIN,
    rate=Rate.EVENT_READS,
    summary="List the sources of webhooks",
    request=NoParameters,
    answers=(Answer(200, Sources, "The sources."),),
    problems=BY_KEY,
)
CREATE_SOURCE: Route[CreateSource, CreatedSource] = Route(
    name="createSource",
    method="POST",
    path="/sources",
    audience=Audience.TENANT,
    scope=records.Scope.ADMIN,
    rate=Rate.EVENT_READS,
    summary="Create a source of webhooks",
    description=f"A tenant has at most {MAX_SOURCES} sources.",
    request=CreateSource,
    answers=(Answer(201, CreatedSource, "The new source.", (NO_STORE,)),),
    problems=(*_WITH_BODY, LIMIT_REACHED),
)
GET_SOURCE: Route[OfSource, Source] = Route(
    name="getSource",
    method="GET",
    path="/sources/{sourceId}",
    audience=Audience.TENANT,
    scope=records.Scope.ADMIN,
    rate=Rate.EVENT_READS,
    summary="Get one source",
    request=OfSource,
    answers=(Answer(200, Source, "The source."),),
    problems=(*BY_KEY, NO_SUCH_SOURCE),
)
PAUSE_SOURCE: Route[OfSource, Source] = Route(
    name="pauseSource",
    method="POST",
    path="/sources/{sourceId}/pause",
    audience=Audience.TENANT,
    scope=records.Scope.ADMIN,
    rate=Rate.EVENT_READS,
    summary="Pause a source",
    description="Within 10 seconds, webhooks to its address are refused with a 409. Most providers send them again.",
    request=OfSource,
    answers=(Answer(200, Source, "The source is paused."),),
    problems=(*_WITH_BODY, NO_SUCH_SOURCE),
)
RESUME_SOURCE: Route[OfSource, Source] = Route(
    name="resumeSource",
    method="POST",
    path="/sources/{sourceId}/resume",
    audience=Audience.TENANT,
    scope=records.Scope.ADMIN,
    rate=Rate.EVENT_READS,
    summary="Resume a source",
    request=OfSource,
    answers=(Answer(200, Source, "The source accepts webhooks."),),
    problems=(*_WITH_BODY, NO_SUCH_SOURCE),
)
DELETE_SOURCE: Route[OfSource, DeletedSource] = Route(
    name="deleteSource",
    method="DELETE",
    path="/sources/{sourceId}",
    audience=Audience.TENANT,
    scope=records.Scope.ADMIN,
    rate=Rate.EVENT_READS,
    summary="Delete a source",
    request=OfSource,
    answers=(Answer(200, DeletedSource, "The source is deleted."),),
    problems=(*BY_KEY, NO_SUCH_SOURCE, HAS_CONNECTIONS),
)

LIST_FORMS: Route[NoParameters, Forms] = Route(
    name="listForms",
    method="GET",
    path="/forms",
    audience=Audience.TENANT,
    scope=records.Scope.ADMIN,
    rate=Rate.EVENT_READS,
    summary="List the forms",
    request=NoParameters,
    answers=(Answer(200, Forms, "The forms."),),
    problems=BY_KEY,
)
CREATE_FORM: Route[CreateForm, Form] = Route(
    name="createForm",
    method="POST",
    path="/forms",
    audience=Audience.TENANT,
    scope=records.Scope.ADMIN,
    rate=Rate.EVENT_READS,
    summary="Create a form",
    description=f"A tenant has at most {MAX_FORMS} forms.",
    request=CreateForm,
    answers=(Answer(201, Form, "The new form."),),
    problems=(*_WITH_BODY, LIMIT_REACHED),
)
GET_FORM: Route[OfForm, Form] = Route(
    name="getForm",
    method="GET",
    path="/forms/{formId}",
    audience=Audience.TENANT,
    scope=records.Scope.ADMIN,
    rate=Rate.EVENT_READS,
    summary="Get one form",
    request=OfForm,
    answers=(Answer(200, Form, "The form."),),
    problems=(*BY_KEY, NO_SUCH_FORM),
)
UPDATE_FORM: Route[UpdateForm, Form] = Route(
    name="updateForm",
    method="PUT",
    path="/forms/{formId}",
    audience=Audience.TENANT,
    scope=records.Scope.ADMIN,
    rate=Rate.EVENT_READS,
    summary="Change a form",
    request=UpdateForm,
    answers=(Answer(200, Form, "The form as it is now."),),
    problems=(*_WITH_BODY, NO_SUCH_FORM),
)
PAUSE_FORM: Route[OfForm, Form] = Route(
    name="pauseForm",
    method="POST",
    path="/forms/{formId}/pause",
    audience=Audience.TENANT,
    scope=records.Scope.ADMIN,
    rate=Rate.EVENT_READS,
    summary="Pause a form",
    description="Within 10 seconds, submissions are refused with a 409.",
    request=OfForm,
    answers=(Answer(200, Form, "The form is paused."),),
    problems=(*_WITH_BODY, NO_SUCH_FORM),
)
RESUME_FORM: Route[OfForm, Form] = Route(
    name="resumeForm",
    method="POST",
    path="/forms/{formId}/resume",
    audience=Audience.TENANT,
    scope=records.Scope.ADMIN,
    rate=Rate.EVENT_READS,
    summary="Resume a form",
    request=OfForm,
    answers=(Answer(200, Form, "The form accepts submissions."),),
    problems=(*_WITH_BODY, NO_SUCH_FORM),
)
DELETE_FORM: Route[OfForm, DeletedForm] = Route(
    name="deleteForm",
    method="DELETE",
    path="/forms/{formId}",
    audience=Audience.TENANT,
    scope=records.Scope.ADMIN,
    rate=Rate.EVENT_READS,
    summary="Delete a form",
    request=OfForm,
    answers=(Answer(200, DeletedForm, "The form is deleted."),),
    problems=(*BY_KEY, NO_SUCH_FORM, HAS_CONNECTIONS),
)

TENANT_ROUTES: tuple[AnyRoute, ...] = (
    GET_SETTINGS,
    LIST_KEYS,
    CREATE_KEY,
    ROTATE_KEY,
    REVOKE_KEY,
    LIST_SOURCES,
    CREATE_SOURCE,
    GET_SOURCE,
    PAUSE_SOURCE,
    RESUME_SOURCE,
    DELETE_SOURCE,
    LIST_FORMS,
    CREATE_FORM,
    GET_FORM,
    UPDATE_FORM,
    PAUSE_FORM,
    RESUME_FORM,
    DELETE_FORM,
)
"""The routes of tenants. Each has a route for operators."""

ROUTES: tuple[AnyRoute, ...] = (*TENANT_ROUTES, *map(for_operators, TENANT_ROUTES), PUT_SETTINGS)
