"""One tenant: its state and the reason for it, its queue and stack, its history, and what can be done with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from starlette.responses import Response
from starlette.routing import Route

from orchestrator.api.reconciliation_routes import LIST_RECONCILIATIONS
from orchestrator.api.release_routes import LIST_RELEASES
from orchestrator.api.route import AnyRoute
from orchestrator.api.tenant_models import UpgradeTenant
from orchestrator.api.tenant_routes import (
    CREATE_TENANT,
    DELETE_TENANT,
    GET_TENANT,
    LABEL_TENANT,
    MOVE_TENANT,
    PIN_TENANT,
    RETRY_TENANT,
    UNPIN_TENANT,
    UPGRADE_TENANT,
)
from orchestrator.cli import live_stack
from orchestrator.cli.api import Document
from orchestrator.cli.next_step import NextStep
from orchestrator.cli.tenant import changes_in, options_in
from orchestrator.cli.tenant_next import tenant_steps
from orchestrator.common.tenant_ids import WARM_PREFIX
from orchestrator.common.times import parse_timestamp
from orchestrator.console.actions import (
    REASON,
    Action,
    Done,
    Field,
    checked,
    outcome,
    reason_in,
)
from orchestrator.console.actions import (
    routes as action_routes,
)
from orchestrator.console.page import page
from orchestrator.console.view import segment
from orchestrator.console.visit import Console, NotThere, Visit, number
from orchestrator.reconciling.comparing import Agreement
from orchestrator.reconciling.records import ReconciliationStatus
from orchestrator.tenants.deadlines import MAX_DRAIN_SECONDS
from orchestrator.tenants.records import Status, TenantState


def tenant(visit: Visit) -> Response:
    found = _find(visit, history_before=visit.parameter("before"))
    look = visit.console.stacks.of(visit, found)
    return visit.show(
        "tenant.html",
        tenant=found,
        steps=_steps(visit, found),
        base=_base(found["tenantId"]),
        history=_timeline(found["history"]),
        advice=_advice(found),
        was_kept_ready=WARM_PREFIX in (found["stackId"] or ""),
        why_not=look.why_not,
        compared=_compared(found, look.compared) if look.compared else None,
        surveyed=_surveyed(found["tenantId"], visit) if not look.compared else None,
    )


@dataclass(frozen=True, slots=True)
class Compared:
    """The tenant's records, compared with its stack as it is now."""

    agreement: Agreement
    at: str
    stack: Document | None
    verdict: str
    differences: Sequence[live_stack.Value]
    advice: str | None
    repair: str | None
    """The command that repairs the difference."""


def _compared(tenant: Document, compared: Document) -> Compared:
    finding = compared["finding"]
    return Compared(
        Agreement(compared["agreement"]),
        compared["comparedAt"],
        compared["stack"],
        live_stack.verdict(compared),
        [each for each in live_stack.values(tenant, compared) if each.differs] if compared["stack"] else [],
        finding["advice"] if finding else None,
        live_stack.repair(compared),
    )


@dataclass(frozen=True, slots=True)
class Surveyed:
    """The findings of the latest survey about the tenant, if its stack cannot be asked for now."""

    at: str
    finding: Document | None
    agrees: bool


def _surveyed(tenant_id: str, visit: Visit) -> Surveyed | None:
    survey = visit.ask(LIST_RECONCILIATIONS)["survey"]
    if survey is None:
        return None
    finding = next((each for each in survey["findings"] if each["subject"] == tenant_id), None)
    # The survey keeps its first findings only, and one that has not ended has not seen all tenants.
    saw_all = survey["status"] == ReconciliationStatus.DONE and survey["total"] == len(survey["findings"])
    return Surveyed(survey["updatedAt"], finding, finding is None and saw_all)


def _steps(visit: Visit, tenant: Document) -> list[NextStep]:
    """The next steps with the tenant. Releases are asked for only if a retry depends on them."""
    steps = tenant_steps(tenant)
    if not any(step.verb == "retry" and step.valid for step in steps):
        return steps
    return tenant_steps(tenant, withdrawn={each["version"] for each in _releases(visit) if each["withdrawn"]})


def _releases(visit: Visit) -> list[Document]:
    found: list[Document] = visit.ask(LIST_RELEASES)["releases"]
    return found


def _versions(visit: Visit, tenant: Document) -> list[str]:
    """The releases that the tenant can be moved or pinned to: those of its tier that were not withdrawn."""
    return [each["version"] for each in _releases(visit) if not each["withdrawn"] and each["tier"] == tenant["tier"]]


def _find(visit: Visit, *, history_before: str | None = None) -> Document:
    return visit.ask(GET_TENANT, tenantId=visit.name("tenant"), historyBefore=history_before)


def _base(tenant_id: str) -> str:
    return f"/tenants/{segment(tenant_id)}"


def _timeline(history: Sequence[Document]) -> list[dict[str, object]]:
    """The entries of the history, the newest first, with the time that each finished operation took."""
    started: dict[str, str] = {}
    entries: list[dict[str, object]] = []
    for entry in history:
        execution = entry["execution"]
        if entry["status"] == Status.STARTED and execution:
            started[execution] = entry["at"]
        began = started.get(execution) if entry["status"] in (Status.SUCCESS, Status.FAILURE) else None
        took = (parse_timestamp(entry["at"]) - parse_timestamp(began)).total_seconds() if began else None
        changes = changes_in(entry) if entry["after"] else options_in(entry["request"] or {})
        entries.append({**entry, "took": took, "changes": changes})
    return entries[::-1]


def _advice(tenant: Document) -> list[str]:
    """Advice for a person about the tenant's state."""
    name = tenant["tenantId"]
    match TenantState(tenant["state"]):
        case TenantState.FAILED if tenant["audits"] and tenant["audits"][-1]["operation"] == "DELETE":
            return ["The delete stopped half-way. Remove its cause, then retry."]
        case TenantState.FAILED:
            return ["The tenant has no queue in service. Remove the cause, then retry."]
        case TenantState.UPDATE_FAILED:
            return ["The tenant is served as before, at its earlier release. Remove the cause, then retry."]
        case TenantState.UNKNOWN:
            return [
                f"The records of {name} contradict each other. A reconciliation compares them with AWS, and repairs "
                "what it can."
            ]
        case _:
            return []


# Actions


def _upgrade(visit: Visit, tenant: Document, step: NextStep) -> Action:
    versions = _versions(visit, tenant)
    name = tenant["tenantId"]

    def send(visit: Visit, fields: Mapping[str, str]) -> Done:
        answer = visit.ask(
            UPGRADE_TENANT,
            tenantId=name,
            version=fields.get("version") or None,
            allowDowngrade=checked(fields, "allowDowngrade") or None,
            allowReplacement=_replacement(fields, name) or None,
            reason=reason_in(fields),
        )
        return Done(f"{name}: {outcome(answer)}", _base(name))

    return Action(
        f"Move {name} to a release",
        step,
        f"Tenant {name} is at {tenant['version'] or 'no version'}. Its queue stays in service during the upgrade.",
        send,
        _base(name),
        [name],
        (
            Field(
                "version",
                "Release",
                "choice",
                choices=("", *versions),
                names={"": "its pin, or the current release"},
            ),
            Field("allowDowngrade", "Allow a release that is older than the tenant's", "check"),
            Field("allowReplacement", "Allow a change that replaces or removes a queue or other data", "check"),
            Field(
                "losing",
                "The tenant's id, if you allow that",
                hint="Typed, because messages and other data may be lost.",
            ),
            REASON,
        ),
    )


def _replacement(fields: Mapping[str, str], name: str) -> bool:
    """True if the upgrade may lose messages. The command line asks for a confirmation of that, too."""
    if not checked(fields, "allowReplacement"):
        return False
    if fields.get("losing") != name:
        warning = UPGRADE_TENANT.warning(UpgradeTenant(tenant_id=name, allow_replacement=True))
        raise ValueError(f"{warning} Type the tenant's id to allow it. Nothing was done.")
    return True


def _move(visit: Visit, tenant: Document, step: NextStep) -> Action:
    name, own = tenant["tenantId"], tenant["tier"]
    tiers = sorted({each["tier"] for each in _releases(visit) if not each["withdrawn"]} - {own})

    def send(visit: Visit, fields: Mapping[str, str]) -> Done:
        answer = visit.ask(MOVE_TENANT, tenantId=name, tier=fields.get("tier", ""), reason=reason_in(fields))
        return Done(f"{name}: {outcome(answer)}", _base(name))

    if not tiers:
        step = replace(step, refusal=step.refusal or "There is no other tier with a release. See Releases.")
    return Action(
        f"Move {name} to another tier",
        step,
        f"Tenant {name} is of the tier {own}. It moves to the current release of another tier, and its queue stays in "
        f"service meanwhile. A move that would replace or remove a queue fails.",
        send,
        _base(name),
        [name],
        (Field("tier", "Tier", "choice", choices=tiers, required=True), REASON),
    )


def _pin(visit: Visit, tenant: Document, step: NextStep) -> Action:
    name = tenant["tenantId"]
    versions = _versions(visit, tenant)

    def send(visit: Visit, fields: Mapping[str, str]) -> Done:
        answer = visit.ask(PIN_TENANT, tenantId=name, version=fields.get("version", ""), reason=reason_in(fields))
        return Done(f"{name}: {outcome(answer)}", _base(name))

    pinned = tenant["pinnedVersion"] or tenant["version"] or ""
    return Action(
        f"Pin {name}",
        step,
        f"Upgrades and rollouts will move tenant {name} only to the release of its pin. The pin itself moves nothing.",
        send,
        _base(name),
        [name],
        (Field("version", "Release", "choice", value=pinned, choices=versions, required=True), REASON),
    )


def _label(_visit: Visit, tenant: Document, step: NextStep) -> Action:
    name = tenant["tenantId"]

    def send(visit: Visit, fields: Mapping[str, str]) -> Done:
        set_labels, removed = _label_changes(fields.get("labels", ""))
        answer = visit.ask(
            LABEL_TENANT, tenantId=name, set=set_labels or None, remove=removed or None, reason=reason_in(fields)
        )
        return Done(f"{name}: {outcome(answer)}", _base(name))

    return Action(
        f"Change the labels of {name}",
        step,
        "NAME=VALUE sets a label, NAME- removes one. Separate several by commas. The other labels stay.",
        send,
        _base(name),
        [name],
        (Field("labels", "Changes", required=True, longest=2_000), REASON),
    )


def _label_changes(text: str) -> tuple[dict[str, str], list[str]]:
    set_labels: dict[str, str] = {}
    removed: list[str] = []
    for each in filter(None, (part.strip() for part in text.split(","))):
        label, equals, value = each.partition("=")
        if equals:
            set_labels[label] = value
        elif each.endswith("-"):
            removed.append(each.removesuffix("-"))
        else:
            raise ValueError(f"{each!a} neither sets a label ({each}=VALUE) nor removes one ({each}-).")
    return set_labels, removed


def _delete(_visit: Visit, tenant: Document, step: NextStep) -> Action:
    name = tenant["tenantId"]

    def send(visit: Visit, fields: Mapping[str, str]) -> Done:
        drain = fields.get("drain", "")
        seconds = number(drain, least=0, most=MAX_DRAIN_SECONDS, name="Wait for receivers") if drain else 0
        answer = visit.ask(
            DELETE_TENANT,
            tenantId=name,
            force=checked(fields, "force") or None,
            drainSeconds=seconds or None,
            reason=reason_in(fields),
        )
        return Done(f"{name}: {outcome(answer)}", _base(name))

    return Action(
        f"Delete {name}",
        step,
        f"Tenant {name} loses its queue and its stack. If the queue has messages, nothing is deleted, unless you force "
        "it. The history is kept, and only a create brings the tenant back.",
        send,
        _base(name),
        [name],
        (
            Field("drain", "Wait for receivers, in seconds", "number", hint=f"At most {MAX_DRAIN_SECONDS}."),
            Field("force", "Delete the messages in the queue, and all events, too", "check"),
            REASON,
        ),
        typed=name,
        typed_is="the tenant's id",
    )


def _simple(route: AnyRoute, title: str, effect: str) -> Callable[[Visit, Document, NextStep], Action]:
    """An action whose request has only a reason."""

    def make(_visit: Visit, tenant: Document, step: NextStep) -> Action:
        name = tenant["tenantId"]

        def send(visit: Visit, fields: Mapping[str, str]) -> Done:
            answer = visit.ask(route, tenantId=name, reason=reason_in(fields))
            return Done(f"{name}: {outcome(answer)}", _base(name))

        return Action(title.format(name), step, effect.format(name), send, _base(name), [name])

    return make


def _retry(visit: Visit, tenant: Document, step: NextStep) -> Action:
    latest = tenant["audits"][-1] if tenant["audits"] else {"operation": "none", "version": None}
    what = f"{latest['operation']} {latest['version'] or ''}".strip()
    effect = f"The latest operation of tenant {{}} is repeated with the same options: {what}."
    return _simple(RETRY_TENANT, "Retry {}", effect)(visit, tenant, step)


ACTIONS: Mapping[str, Callable[[Visit, Document, NextStep], Action]] = {
    "retry": _retry,
    "upgrade": _upgrade,
    "move": _move,
    "pin": _pin,
    "unpin": _simple(UNPIN_TENANT, "Remove the pin of {}", "Tenant {} stays at its release until it is moved."),
    "label": _label,
    "create": _simple(CREATE_TENANT, "Create {} again", "Tenant {} gets a new, empty queue at the current release."),
    "delete": _delete,
}


def _plan(visit: Visit) -> Action:
    verb = visit.name("verb")
    if verb not in ACTIONS:
        raise NotThere("There is no such action")
    found = _find(visit)
    step = next(step for step in _steps(visit, found) if step.verb == verb)
    return ACTIONS[verb](visit, found, step)


def routes(console: Console) -> list[Route]:
    return [
        page(console, "/tenants/{tenant}", tenant),
        *action_routes(console, "/tenants/{tenant}/do/{verb}", _plan),
    ]
