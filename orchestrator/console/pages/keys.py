"""The API keys of a tenant: made, replaced and revoked. A key itself is shown once, when it is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from starlette.responses import Response
from starlette.routing import Route

from orchestrator.api.event_configuration_routes import CREATE_KEY, LIST_KEYS, REVOKE_KEY, ROTATE_KEY
from orchestrator.cli.api import Document
from orchestrator.cli.event_next import key_steps, warning_about
from orchestrator.cli.keys import curl
from orchestrator.cli.next_step import NextStep
from orchestrator.cli.render import moment
from orchestrator.console.actions import Action, Field, Issued, checked
from orchestrator.console.actions import routes as action_routes
from orchestrator.console.event_plane import Order, Subject, ask, base_of, step_for, tenant_of
from orchestrator.console.page import page
from orchestrator.console.visit import Console, NotThere, Visit, number
from orchestrator.events.configuring_keys import DEFAULT_OVERLAP, MAX_LIFETIME, MAX_OVERLAP
from orchestrator.events.records import Scope

_HOUR = 3600
_DAY = 24 * _HOUR
_SCOPES: Mapping[Scope, str] = {
    Scope.WRITE: "write: send and acknowledge events",
    Scope.READ: "read: read events",
    Scope.ADMIN: "admin: everything",
}


def keys(visit: Visit) -> Response:
    tenant = tenant_of(visit)
    found = ask(visit, LIST_KEYS)["keys"]
    return visit.show(
        "keys.html",
        tenant=tenant,
        base=base_of(tenant),
        keys=[(key, key_steps(key)) for key in found],
        steps=[_create_step(tenant)],
    )


def _page(tenant: str) -> str:
    return f"{base_of(tenant)}/keys"


def _create_step(tenant: str) -> NextStep:
    return NextStep("create", "Make an API key", f"berth keys create {tenant} --name TEXT --scope write")


def _create(visit: Visit) -> Action:
    tenant = tenant_of(visit)

    def send(visit: Visit, fields: Mapping[str, str]) -> Issued:
        scopes = [scope for scope in _SCOPES if checked(fields, scope)]
        if not scopes:
            raise ValueError("Choose what the key is for.")
        expires = fields.get("expires", "")
        lifetime = number(expires, least=1, most=MAX_LIFETIME.days, name="Works for") * _DAY if expires else None
        made = ask(visit, CREATE_KEY, name=fields.get("name", ""), scopes=scopes, expires_in_seconds=lifetime)
        return _issued(visit, made, f"The API key {made['name']} of {tenant} is made")

    return Action(
        f"Make an API key of {tenant}",
        _create_step(tenant),
        f"Anyone with the key can use the events of tenant {tenant}. It is shown once: Berth keeps only its digest.",
        send,
        _page(tenant),
        [f"the events of tenant {tenant}"],
        (
            Field("name", "Name", required=True, longest=100, hint="What uses the key."),
            *(Field(scope, text, "check") for scope, text in _SCOPES.items()),
            Field("expires", "Works for, in days", "number", hint="Empty: until it is revoked."),
        ),
    )


def _issued(visit: Visit, made: Document, title: str) -> Issued:
    notes = ["Store the key where the program that uses it finds it."]
    if replaced := made["replaced"]:
        notes.append(f"The old key {replaced['key_id']} works until {moment(replaced['expires_at'])}.")
    return Issued(
        title,
        "API key",
        made["key"],
        {
            "Tenant": made["tenant_id"],
            "Key id": made["key_id"],
            "Scopes": ", ".join(made["scopes"]),
            "Expires": moment(made["expires_at"]) if made["expires_at"] else "never",
        },
        [*notes, "Try it, with the key in the variable BERTH_KEY:"],
        [curl(made["scopes"], visit.console.control_plane.events_api_url.rstrip("/"))],
        _page(made["tenant_id"]),
    )


def _find(visit: Visit) -> Document:
    """There is no route for one key."""
    tenant, key_id = tenant_of(visit), visit.name("key")
    for key in ask(visit, LIST_KEYS)["keys"]:
        if key["key_id"] == key_id:
            found: Document = key
            return found
    raise NotThere(f"Tenant {tenant} has no API key {key_id}")


def _rotate(found: Document, step: NextStep) -> Action:
    subject, usual = _subject(found), int(DEFAULT_OVERLAP.total_seconds()) // _HOUR
    most = int(MAX_OVERLAP.total_seconds()) // _HOUR

    def send(visit: Visit, fields: Mapping[str, str]) -> Issued:
        hours = number(fields.get("overlap", ""), least=0, most=most, name="The old key works for")
        made = ask(visit, ROTATE_KEY, keyId=subject.resource_id, overlap_seconds=hours * _HOUR)
        return _issued(visit, made, f"The API key {made['name']} of {subject.tenant} is replaced")

    return Action(
        f"Replace the API key {subject.name}",
        step,
        f"The {subject} is replaced by a new one with the same name, scopes and lifetime, which is shown once.",
        send,
        subject.page,
        [str(subject)],
        (Field("overlap", "The old key works for, in hours", "number", value=str(usual), hint=f"At most {most}."),),
    )


def _revoke(found: Document, step: NextStep) -> Action:
    subject = _subject(found)
    effect = f"{warning_about('key', subject.resource_id, subject.tenant)} It takes up to 10 seconds."
    return Order(REVOKE_KEY, "Revoke the API key {}", effect, "is revoked", destroys=True).action(subject, step)


def _subject(found: Document) -> Subject:
    tenant = found["tenant_id"]
    return Subject(tenant, "API key", "keyId", found["key_id"], found["name"], _page(tenant))


ACTIONS: Mapping[str, Callable[[Document, NextStep], Action]] = {"rotate": _rotate, "revoke": _revoke}


def _plan(visit: Visit) -> Action:
    verb, found = visit.name("verb"), _find(visit)
    step = step_for(verb, key_steps(found))
    return ACTIONS[verb](found, step)


def routes(console: Console) -> list[Route]:
    return [
        page(console, "/tenants/{tenant}/keys", keys),
        *action_routes(console, "/tenants/{tenant}/keys/do/create", _create),
        *action_routes(console, "/tenants/{tenant}/keys/{key}/do/{verb}", _plan),
    ]
