"""The OpenAPI document has every answer of the control plane in every state, and every answer that it has occurs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import pytest
import requests
from schemathesis.core.transport import Response

from orchestrator.api.reading import decode
from orchestrator.api.routes import ROUTES
from orchestrator.common.callers import digest_of
from orchestrator.common.errors import Throttled
from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.admission import Refusal
from orchestrator.tenants.ports import Publication
from orchestrator.tenants.records import Attempt, Request, Status
from tests.documents import CONTROL_PLANE
from tests.fakes import (
    EXPLICIT,
    NEXT_VERSION,
    QUEUE,
    VERSION,
    FakeExecutions,
    InMemoryCreateCounts,
    InMemoryTable,
    a_release,
    a_run,
    an_audit,
    some_metadata,
    stack_arn,
    take,
)
from tests.fakes.templates import example_template, queue_template
from tests.openapi import CHECKS
from tests.unit.openapi.world import (
    BASE_URL,
    LATEST,
    NO_RECONCILIATION,
    NO_ROLLOUT,
    OPERATIONS,
    PROBLEM,
    RECONCILIATIONS,
    ROLLOUTS,
    STATES,
    Api,
    InProcess,
    world,
)

BY_NAME = {route.name: route for route in ROUTES}


@dataclass(frozen=True)
class Asked:
    operation_id: str
    named: str | None = None
    """The tenant, the release, the rollout or the reconciliation."""
    query: Mapping[str, object] = field(default_factory=dict)
    body: Mapping[str, object] | None = None


def ask(session: requests.Session, asked: Asked) -> Response:
    """The answer, if it is one that the document allows."""
    more: dict[str, Any] = {} if asked.body is None else {"body": asked.body, "media_type": "application/json"}
    operation = OPERATIONS[asked.operation_id]
    case = operation.Case(
        path_parameters=dict.fromkeys(re.findall(r"{(\w+)}", operation.path), asked.named),
        query=dict(asked.query),
        **more,
    )
    # No check of whether it is a server's error: those are documented, too, and some are provoked here.
    response = case.call_and_validate(base_url=BASE_URL, session=session, checks=list(CHECKS[1:]))
    answered = CONTROL_PLANE.resolved(operation.definition.raw["responses"][str(response.status_code)])
    models = {answer.status: answer.model for answer in BY_NAME[asked.operation_id].answers}
    if response.status_code in models:
        decode(models[response.status_code], response.json())
    known = {name.lower() for name in answered.get("headers", {})} | {"content-type"}
    assert set(response.headers) <= known, f"{asked}: not every header is documented"
    return response


def of_every_tenant() -> Iterator[Asked]:
    for name in STATES:
        yield Asked("getQueue", name)
        yield Asked("getSendCredentials", name)
        yield Asked("getReceiveCredentials", name)
        yield Asked("getTenant", name)
        yield Asked("compareTenant", name)
        yield Asked("createTenant", name)
        yield Asked("createTenant", name, body={"version": VERSION, "labels": {"plan": "gold"}})
        yield Asked("createTenant", name, body={"version": "9.9.9"})
        yield Asked("upgradeTenant", name)
        yield Asked("upgradeTenant", name, body={"version": VERSION})
        yield Asked("upgradeTenant", name, body={"version": NEXT_VERSION})
        yield Asked("upgradeTenant", name, body={"version": "9.9.9"})
        yield Asked("retryTenant", name)
        yield Asked("deleteTenant", name)
        yield Asked("deleteTenant", name, {"force": "true"})
        yield Asked("labelTenant", name, body={"set": {"plan": "gold"}, "remove": ["team"]})
        yield Asked("pinTenant", name, body={"version": VERSION})
        yield Asked("pinTenant", name, body={"version": "9.9.9"})
        yield Asked("unpinTenant", name)
    for operation_id, operation in OPERATIONS.items():
        if "{tenantId}" in operation.path:
            yield Asked(operation_id, "-")
    yield Asked("listTenants")
    yield Asked("listTenants", query={"limit": 3})
    yield Asked("listTenants", query={"status": "DELETED"})
    yield Asked("listTenants", query={"cursor": "made up"})
    yield Asked("listTenants", query={"label": "plan=gold,team=", "pinned": "true"})
    yield Asked("listTenants", query={"label": "plan"})
    yield Asked("listTenants", query={"prefix": "re"})
    yield Asked("listOperations")
    yield Asked("listOperations", query={"limit": 0})
    yield Asked("listReleases")
    yield Asked("listReleases", query={"page": 2})
    for release in (VERSION, NEXT_VERSION, "9.9.9", "newest"):
        for operation_id in ("promoteRelease", "withdrawRelease", "reinstateRelease"):
            yield Asked(operation_id, release)
            yield Asked(operation_id, release, body={"reason": "queues lose messages"})
    for version in (VERSION, NEXT_VERSION, "9.9.9", "made up"):
        yield Asked("getReleaseChanges", version, query={"fromVersion": VERSION})
    yield Asked("getReleaseChanges", VERSION)
    for operation_id in ("publishRelease", "checkRelease"):
        for template in (queue_template(), example_template(), {"Resources": []}):
            yield Asked(operation_id, "2.1.0", body={"template": template, "notes": "Files."})
        yield Asked(operation_id, VERSION, body={"template": queue_template()})
        yield Asked(operation_id, "2.1.0", body={"template": []})


NEEDED: Mapping[str, Mapping[str, object]] = {
    "pinTenant": {"version": VERSION},
    "moveTenant": {"tier": "gold"},
    "approveRollout": {"stage": 1},
    "promoteRollout": {"stage": 1, "approve": True},
    "publishRelease": {"template": {}},
    "checkRelease": {"template": {}},
}
"""A body of each operation that cannot be asked for without one."""


def of_every_rollout() -> Iterator[Asked]:
    for operation_id, operation in OPERATIONS.items():
        if "{rolloutId}" in operation.path:
            for rollout in (*ROLLOUTS.values(), NO_ROLLOUT, "no-id"):
                yield Asked(operation_id, rollout, body=NEEDED.get(operation_id))
                if operation_id == "changeRollout":
                    yield Asked(operation_id, rollout, body={"maxConcurrency": 1, "tolerated": "3", "bakeSeconds": 9})
    yield Asked("listRollouts")
    yield Asked("listRollouts", query={"open": "true"})
    yield Asked("listRollouts", query={"limit": 3})
    yield Asked("listRollouts", query={"limit": 3, "cursor": ROLLOUTS["dry"]})
    yield Asked("listRollouts", query={"limit": 0})
    for spec in SPECS:
        yield Asked("startRollout", body=spec)
    for rollout in ROLLOUTS.values():
        yield Asked("startRollout", body={"undo": rollout})


SPECS: Sequence[Mapping[str, object]] = [
    {},
    {"dryRun": True},
    {"dryRun": True, "sample": "1", "labels": {"plan": "gold"}},
    {"tenants": ["outdated"], "stages": [{"size": "rest", "alarm": "quiet", "approval": True}]},
    {"tenants": list(STATES), "share": "1"},
    {"tenants": ["ready", "nobody"]},
    {"tenants": ["ready"], "version": VERSION},
    {"tenants": ["ready"], "version": VERSION, "allowDowngrade": True, "allowReplacement": True},
    {"undo": NO_ROLLOUT},
    {"version": "9.9.9"},
    {"stages": [{"size": "rest", "alarm": "no such alarm"}]},
    {"sample": "1"},
]


def of_every_reconciliation() -> Iterator[Asked]:
    for reconciliation in (*RECONCILIATIONS.values(), NO_RECONCILIATION, "settling"):
        yield Asked("getReconciliation", reconciliation)
    yield Asked("startReconciliation")
    yield Asked("startReconciliation", body={"dryRun": True, "detectDrift": True})
    yield Asked("startReconciliation", body={"repair": False})
    yield Asked("listReconciliations")
    yield Asked("listReconciliations", query={"verbose": "true"})
    yield Asked("getDiagnosis")
    yield Asked("getDiagnosis", query={"verbose": "true"})


def everything() -> Iterator[Asked]:
    yield from of_every_tenant()
    yield from of_every_rollout()
    yield from of_every_reconciliation()


AnswerKind = tuple[str, int, str | None]
"""An answer's operation, its status and, of a problem, its type."""


def status_and_type(response: Response) -> tuple[int, str | None]:
    (content_type,) = response.headers["content-type"]
    return response.status_code, response.json()["type"] if content_type == PROBLEM else None


def _documented() -> Iterator[tuple[AnswerKind, dict[str, Any]]]:
    """Every kind of answer of Berth's own, with its schema. What API Gateway itself says is not Berth's to give."""
    for name, operation in OPERATIONS.items():
        for status, response in operation.definition.raw["responses"].items():
            for media in CONTROL_PLANE.resolved(response)["content"].values():
                for found in media["schema"].get("oneOf", [media["schema"]]):
                    if found != {"$ref": "#/components/schemas/GatewayMessage"}:
                        answered = CONTROL_PLANE.resolved(found)
                        yield (name, int(status), answered["properties"].get("type", {}).get("const")), answered


DOCUMENTED = dict(_documented())


class Throttling:
    """A table that can only ask to be left alone."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def refuse(*_: object, **__: object) -> None:
            raise Throttled(f"{name}: Rate exceeded")

        return refuse


class Overtaken(FakeExecutions):
    """Whatever is to be started has been started by another caller, and has succeeded in the meantime."""

    def __init__(self, table: InMemoryTable) -> None:
        super().__init__()
        self.table = table

    def start(self, attempt: Attempt, request: Request) -> str | None:  # noqa: ARG002 - the port's
        run = replace(a_run(started_at=LATEST), attempt=attempt)
        take(self.table, run)
        self.table.publish(run, Publication(stack_arn(), QUEUE, attempt.version, None), at=LATEST)
        return None


def overtaken(only: str | None) -> Api:
    table = InMemoryTable()
    return world(only, table=table, executions=Overtaken(table))


class FullWindows(InMemoryCreateCounts):
    """Every caller has started as many creates as it may."""

    def count(self, caller: str, tenant: TenantId, *, window: datetime, limit: int) -> datetime | None:  # noqa: ARG002
        return window


def full(only: str | None) -> Api:
    made = world(only)
    made.settings.max_tenants = 1
    made.table.plant_metadata(some_metadata())
    if only == "deleted":
        # It was to come back, and could not.
        failed = an_audit(
            Status.FAILURE, tenant=TenantId.parse(only), version=NEXT_VERSION, at=LATEST, request=EXPLICIT
        )
        made.table.plant_audit(failed)
    return made


def too_fast(only: str | None) -> Api:
    made = world(only, create_counts=FullWindows())
    made.settings.creates_per_minute = 60
    return made


def only_looking(only: str | None) -> Api:
    made = world(only)
    made.settings.create_on_get_queue = False
    if only == "vanished":
        made.table.plant_audit(an_audit(Status.SUCCESS, tenant=TenantId.parse(only)))
    return made


def withdrawn(only: str | None) -> Api:
    made = world(only)
    made.releasing.withdraw(NEXT_VERSION, "ada", reason="queues lose messages")
    return made


def of_a_withdrawn_release() -> Iterator[Asked]:
    yield Asked("listReleases")
    yield Asked("createTenant", "never-heard-of", body={"version": NEXT_VERSION})
    yield Asked("upgradeTenant", "outdated", body={"version": NEXT_VERSION})
    yield Asked("retryTenant", "update-failed")
    yield Asked("pinTenant", "outdated", body={"version": NEXT_VERSION})
    yield Asked("startRollout", body={"version": NEXT_VERSION})
    yield Asked("resumeRollout", ROLLOUTS["halted"])
    yield Asked("retryRollout", ROLLOUTS["halted"])
    yield Asked("promoteRelease", NEXT_VERSION)
    yield Asked("withdrawRelease", NEXT_VERSION)
    yield Asked("withdrawRelease", VERSION)
    yield Asked("reinstateRelease", NEXT_VERSION)


GOLD_VERSION = "9.1.0"


def with_tiers(only: str | None) -> Api:
    """There is a release of the tier gold. The default tier and the tier of two tenants have none."""
    made = world(only)
    made.settings.default_tier = "silver"
    made.table.record_release(a_release(GOLD_VERSION, tier="gold"))
    for each in ("outdated", "update-failed"):
        if (metadata := made.table.metadata(TenantId.parse(each))) is not None:
            made.table.plant_metadata(replace(metadata, recorded_tier="silver"))
    return made


def of_tiers() -> Iterator[Asked]:
    yield Asked("getQueue", "never-heard-of")
    yield Asked("createTenant", "never-heard-of")
    yield Asked("createTenant", "ready", body={"tier": "gold"})
    yield Asked("upgradeTenant", "outdated")
    yield Asked("upgradeTenant", "ready", body={"version": GOLD_VERSION})
    yield Asked("retryTenant", "update-failed")
    yield Asked("pinTenant", "ready", body={"version": GOLD_VERSION})
    yield Asked("startRollout", body={"tier": "silver"})
    yield Asked("startRollout", body={"version": GOLD_VERSION, "tier": "silver"})
    yield Asked("listReleases")
    yield Asked("listTenants", query={"tier": "silver"})
    yield Asked("moveTenant", "ready", body={"tier": "standard"})
    yield Asked("moveTenant", "create-failed", body={"tier": "gold"})
    yield Asked("moveTenant", "ready", body={"tier": "gold"})
    yield Asked("moveTenant", "ready", body={"tier": "bronze"})
    for tenant in ("never-heard-of", "deleted", "provisioning", "pinned", "from-before-berth", "updating"):
        yield Asked("moveTenant", tenant, body={"tier": "gold"})


def _named_in(path: str, tenant: str) -> str:
    """Something that the path may name."""
    return tenant if "{tenantId}" in path else VERSION if "{version}" in path else NO_ROLLOUT


def unproven(only: str | None) -> Api:
    made = world(only)
    made.settings.api_proof_digest = digest_of("another proof")
    return made


def throttled(_only: str | None) -> Api:
    tables = {name: Throttling() for name in ("table", "rollout_table", "reconciliation_table", "executions")}
    return Api(published=(), **tables)


def test_every_answer_is_documented_and_every_documented_answer_is_given(
    gateway: InProcess, session: requests.Session
) -> None:
    given: set[AnswerKind] = set()

    def note(asked: Asked) -> None:
        given.add((asked.operation_id, *status_and_type(ask(session, asked))))

    for asked in everything():
        note(asked)
    gateway.use(lambda only: world(only, credentials=None))
    note(Asked("getSendCredentials", "ready"))
    note(Asked("getReceiveCredentials", "ready"))
    gateway.use(full)
    note(Asked("getQueue", "never-heard-of"))
    note(Asked("createTenant", "never-heard-of"))
    note(Asked("retryTenant", "deleted"))
    gateway.use(too_fast)
    note(Asked("getQueue", "never-heard-of"))
    gateway.use(only_looking)
    for name in ("getQueue", "getSendCredentials", "getReceiveCredentials"):
        note(Asked(name, "never-heard-of"))
        note(Asked(name, "vanished"))
    gateway.use(overtaken)
    note(Asked("retryTenant", "update-failed"))
    gateway.use(withdrawn)
    for asked in of_a_withdrawn_release():
        note(asked)
    gateway.use(with_tiers)
    for asked in of_tiers():
        note(asked)
    gateway.use(throttled)
    for name, operation in OPERATIONS.items():
        note(Asked(name, _named_in(operation.path, "acme"), body=NEEDED.get(name)))
    note(Asked("getReleaseChanges", VERSION, query={"fromVersion": VERSION}))
    gateway.use(unproven)
    for name, operation in OPERATIONS.items():
        note(Asked(name, _named_in(operation.path, "ready"), body=NEEDED.get(name)))

    assert given == set(DOCUMENTED)


def test_every_reason_to_refuse_is_documented() -> None:
    types = {kind for _, _, kind in DOCUMENTED}
    assert {f"urn:berth:problem:{refusal}" for refusal in Refusal} <= types


def test_the_status_in_a_problem_is_the_http_status() -> None:
    problems = {(status, kind): answered for (_, status, kind), answered in DOCUMENTED.items() if kind}
    assert len(problems) == len({kind for _, kind in problems})
    assert all(answered["properties"]["status"] == {"const": status} for (status, _), answered in problems.items())


@pytest.mark.parametrize("operation_id", OPERATIONS)
def test_the_answers_of_api_gateway_itself_are_documented(operation_id: str) -> None:
    asked = OPERATIONS[operation_id]
    statuses = {"403", "429", "500", "503"} | ({"404"} if "{" in asked.path else set())
    message = {"$ref": "#/components/schemas/GatewayMessage"}
    responses = asked.definition.raw["responses"]
    assert {
        status
        for status, response in responses.items()
        if CONTROL_PLANE.resolved(response)["content"].get("application/json", {}).get("schema") == message
    } == statuses


@pytest.mark.parametrize(
    ("operation_id", "access"), [("getSendCredentials", "send"), ("getReceiveCredentials", "receive")]
)
def test_credentials_are_given_by_the_route_of_their_access(
    session: requests.Session, operation_id: str, access: str
) -> None:
    response = ask(session, Asked(operation_id, "ready"))
    assert response.json()["credentials"]["access"] == access
    assert response.headers["cache-control"] == ["no-store"]


def test_only_a_dry_run_has_changes(session: requests.Session) -> None:
    answered = {name: ask(session, Asked("getRollout", rollout)).json() for name, rollout in ROLLOUTS.items()}
    assert [name for name, document in answered.items() if "changes" in document] == ["dry"]
    assert answered["failed"]["failures"][0]["tenants"] == ["outdated"]
