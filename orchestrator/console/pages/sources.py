"""The addresses at which events of a tenant come in: sources of webhooks, and forms of web pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from starlette.responses import Response
from starlette.routing import Route

from orchestrator.api.event_configuration_models import MAX_ORIGINS
from orchestrator.api.event_configuration_routes import (
    CREATE_FORM,
    CREATE_SOURCE,
    DELETE_FORM,
    DELETE_SOURCE,
    GET_FORM,
    GET_SOURCE,
    LIST_FORMS,
    LIST_SOURCES,
    PAUSE_FORM,
    PAUSE_SOURCE,
    RESUME_FORM,
    RESUME_SOURCE,
)
from orchestrator.cli.api import Document
from orchestrator.cli.event_next import form_steps, source_steps, warning_about
from orchestrator.cli.events_api import with_url
from orchestrator.cli.next_step import NextStep
from orchestrator.console.actions import Action, Done, Field, Issued
from orchestrator.console.actions import routes as action_routes
from orchestrator.console.event_plane import Order, Subject, ask, base_of, step_for, tenant_of, texts_in
from orchestrator.console.page import page
from orchestrator.console.visit import Console, Visit
from orchestrator.events.records import Provider
from orchestrator.events.signatures import ALGORITHMS, ENCODINGS, MAX_SECRET_CHARACTERS

_PAUSES = "Within 10 seconds the {} refuses what comes in."
_RESUMES = "The {} accepts what comes in again, within 10 seconds."


def sources(visit: Visit) -> Response:
    tenant = tenant_of(visit)
    return visit.show(
        "sources.html",
        tenant=tenant,
        base=base_of(tenant),
        sources=[(_with_url(visit, each), source_steps(each)) for each in ask(visit, LIST_SOURCES)["sources"]],
        forms=[(_with_url(visit, each), form_steps(each)) for each in ask(visit, LIST_FORMS)["forms"]],
        source_steps=[_create_source_step(tenant)],
        form_steps=[_create_form_step(tenant)],
    )


def _with_url(visit: Visit, found: Document) -> Document:
    return with_url(found, visit.console.control_plane)


def _page(tenant: str) -> str:
    return f"{base_of(tenant)}/sources"


# Sources


def _create_source_step(tenant: str) -> NextStep:
    return NextStep("create", "Make a source", f"berth sources create {tenant} --name TEXT --provider github")


def _create_source(visit: Visit) -> Action:
    tenant = tenant_of(visit)

    def send(visit: Visit, fields: Mapping[str, str]) -> Done | Issued:
        given = {name: fields.get(name, "") for name in ("header", "algorithm", "encoding", "prefix")}
        made = _with_url(
            visit,
            ask(
                visit,
                CREATE_SOURCE,
                name=fields.get("name", ""),
                provider=fields.get("provider", ""),
                secret=fields.get("secret") or None,
                verification={name: value for name, value in given.items() if value} or None,
            ),
        )
        if not made["secret"]:
            return Done(f"The {_source(made)} is made. Enter its URL at the sender: {made['url']}", _page(tenant))
        return Issued(
            f"The source {made['name']} of {tenant} is made",
            "Secret",
            made["secret"],
            {"Tenant": tenant, "Source id": made["source_id"], "Provider": made["provider"], "URL": made["url"]},
            ["Enter the URL and the secret at the sender."],
            [f"berth sources list {tenant}"],
            _page(tenant),
        )

    of_hmac = "For hmac and shared-secret."
    return Action(
        f"Make a source of {tenant}",
        _create_source_step(tenant),
        f"Webhooks that come in at the source's own URL become events of tenant {tenant}. Stripe, Shopify and Slack "
        "make the secret themselves; for the others Berth makes one, if you give none.",
        send,
        _page(tenant),
        [f"the events of tenant {tenant}"],
        (
            Field("name", "Name", required=True, longest=100),
            Field("provider", "Who sends the webhooks", "choice", value=Provider.GITHUB, choices=list(Provider)),
            Field("secret", "The sender's secret", "secret", longest=MAX_SECRET_CHARACTERS, hint="Never shown again."),
            Field("header", "Header with the signature or the secret", hint=of_hmac),
            Field(
                "algorithm",
                "Algorithm",
                "choice",
                choices=("", *ALGORITHMS),
                names={"": "the usual one, sha256"},
                hint="For hmac.",
            ),
            Field(
                "encoding",
                "Encoding",
                "choice",
                choices=("", *ENCODINGS),
                names={"": "the usual one, hex"},
                hint="For hmac.",
            ),
            Field("prefix", "Text before the signature or the secret", hint=f"{of_hmac} Such as sha256="),
        ),
    )


def _source(found: Document) -> Subject:
    tenant = found["tenant_id"]
    return Subject(tenant, "source", "sourceId", found["source_id"], found["name"], _page(tenant))


# Forms


def _create_form_step(tenant: str) -> NextStep:
    return NextStep("create", "Make a form", f"berth forms create {tenant} --name TEXT --allow-origin URL")


def _create_form(visit: Visit) -> Action:
    tenant = tenant_of(visit)

    def send(visit: Visit, fields: Mapping[str, str]) -> Done:
        made = ask(
            visit,
            CREATE_FORM,
            name=fields.get("name", ""),
            origins=texts_in(fields.get("origins", "")) or None,
            redirect_url=fields.get("redirect") or None,
            honeypot=fields.get("honeypot") or None,
        )
        url = _with_url(visit, made)["url"]
        return Done(f"The {_form(made)} is made. Use its URL as the form's action: {url}", _page(tenant))

    return Action(
        f"Make a form of {tenant}",
        _create_form_step(tenant),
        f"What people send from a web page to the form's own URL becomes an event of tenant {tenant}.",
        send,
        _page(tenant),
        [f"the events of tenant {tenant}"],
        (
            Field("name", "Name", required=True, longest=100),
            Field(
                "origins",
                "Origins of the pages that may send it",
                hint=f"Such as https://www.example.com; at most {MAX_ORIGINS}, separated by commas. Empty: any page.",
                longest=5_000,
            ),
            Field("redirect", "Page to show after a submission", longest=1_000),
            Field("honeypot", "Field that people do not see", hint="A submission that fills it in is dropped."),
        ),
    )


def _form(found: Document) -> Subject:
    tenant = found["tenant_id"]
    return Subject(tenant, "form", "formId", found["form_id"], found["name"], _page(tenant))


# Pausing, resuming, deleting


def _action(subject: Subject, steps: Sequence[NextStep], verb: str, orders: Mapping[str, Order]) -> Action:
    step = step_for(verb, steps)
    return orders[verb].action(subject, step)


def _plan_source(visit: Visit) -> Action:
    found = ask(visit, GET_SOURCE, sourceId=visit.name("source"))
    deletes = warning_about("source", found["source_id"], found["tenant_id"])
    orders = {
        "pause": Order(PAUSE_SOURCE, "Pause {}", f"{_PAUSES} Most providers send it again later.", "is paused"),
        "resume": Order(RESUME_SOURCE, "Let {} accept again", _RESUMES, "accepts webhooks"),
        "delete": Order(
            DELETE_SOURCE,
            "Delete {}",
            f"{deletes} Events that came in stay until they expire.",
            "is deleted",
            destroys=True,
        ),
    }
    return _action(_source(found), source_steps(found), visit.name("verb"), orders)


def _plan_form(visit: Visit) -> Action:
    found = ask(visit, GET_FORM, formId=visit.name("form"))
    deletes = warning_about("form", found["form_id"], found["tenant_id"])
    orders = {
        "pause": Order(PAUSE_FORM, "Pause {}", _PAUSES, "is paused"),
        "resume": Order(RESUME_FORM, "Let {} accept again", _RESUMES, "accepts submissions"),
        "delete": Order(
            DELETE_FORM,
            "Delete {}",
            f"{deletes} Submissions that came in stay until they expire.",
            "is deleted",
            destroys=True,
        ),
    }
    return _action(_form(found), form_steps(found), visit.name("verb"), orders)


PLANS: Mapping[str, Callable[[Visit], Action]] = {
    "/tenants/{tenant}/sources/do/create": _create_source,
    "/tenants/{tenant}/sources/{source}/do/{verb}": _plan_source,
    "/tenants/{tenant}/forms/do/create": _create_form,
    "/tenants/{tenant}/forms/{form}/do/{verb}": _plan_form,
}


def routes(console: Console) -> list[Route]:
    actions = [route for path, plan in PLANS.items() for route in action_routes(console, path, plan)]
    return [page(console, "/tenants/{tenant}/sources", sources), *actions]
