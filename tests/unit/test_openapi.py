"""docs/openapi.json says what the API takes and what it answers: no less, and no more."""

from __future__ import annotations

import base64
import copy
import importlib
import io
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import jsonschema_rs
import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st
from requests.adapters import HTTPAdapter
from schemathesis import GenerationMode
from schemathesis.core.failures import FailureGroup
from schemathesis.core.transport import Response
from urllib3 import HTTPResponse

from orchestrator.api import (
    operator_answers,
    rollout_answers,
)
from orchestrator.api.reading import decode, read
from orchestrator.api.reconciliation_routes import CURSOR_PATTERN
from orchestrator.api.rollout_models import MAX_CONCURRENCY
from orchestrator.api.rollout_routes import START_ROLLOUT
from orchestrator.api.route import AnyRoute
from orchestrator.api.routes import ROUTES
from orchestrator.api.tenant_models import MAX_PAGE_SIZE
from orchestrator.common import validation
from orchestrator.common.callers import digest_of
from orchestrator.common.errors import InvalidRequest, Throttled
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import ID_PATTERN
from orchestrator.reconciling.health import Verdict
from orchestrator.reconciling.records import (
    MAX_FINDINGS,
    Coverage,
    Finding,
    Kind,
    Reconciliation,
    ReconciliationStatus,
    Remedy,
)
from orchestrator.reconciling.records import Spec as SpecToReconcile
from orchestrator.rollouts.counting import Count
from orchestrator.rollouts.documents import spec_document, spec_from
from orchestrator.rollouts.pacing import Pace
from orchestrator.rollouts.records import (
    Item,
    Order,
    Result,
    Rollout,
    RolloutStatus,
    Share,
    Skip,
    Skipped,
    Spec,
    Stage,
    StageSpec,
    StageStatus,
    TenantOutcome,
)
from orchestrator.tenants import deadlines
from orchestrator.tenants.admission import Refusal
from orchestrator.tenants.credentials import CREDENTIAL_ROUTES, Access
from orchestrator.tenants.fleet import PAGE_SIZE
from orchestrator.tenants.history import ChangeKind, UnreadableEntry
from orchestrator.tenants.messages import Messages
from orchestrator.tenants.ports import Publication
from orchestrator.tenants.records import Attempt, Operation, Request, Status, TenantState
from stacks.common.function_code import module_of
from tests.documents import CONTROL_PLANE
from tests.fakes import (
    EXPLICIT,
    NEXT_VERSION,
    NOON,
    OTHER_QUEUE,
    QUEUE,
    QUEUE_TABOO,
    VERSION,
    FakeAlarms,
    FakeExecutions,
    FakeSettings,
    InMemoryCreateCounts,
    InMemoryTable,
    World,
    a_release,
    a_run,
    an_audit,
    execution_arn,
    some_metadata,
    stack_arn,
    take,
)
from tests.fakes.templates import example_template, queue_template
from tests.openapi import CHECKS, DOCUMENT, AtHand, cover, drive, load, operations

ROOT = Path(__file__).parents[2]
BASE_URL = "https://berth.test"
QUEUE_ROUTES = ("GET /tenants/{tenantId}/queue", *CREDENTIAL_ROUTES)
PROOF = "what only API Gateway knows"
PROBLEM = "application/problem+json"
OPERATIONS = operations(DOCUMENT)
BY_NAME = {route.name: route for route in ROUTES}
LATER = NOON + timedelta(minutes=1)
LATEST = LATER + timedelta(minutes=1)


# A control plane with a tenant in every state


@dataclass(frozen=True)
class State:
    """The records of a tenant."""

    at: str | None = None
    """The version of its queue."""
    withdrawn: bool = False
    """Its queue is not served any more."""
    pinned: str | None = None
    full: bool = False
    """There are messages in its queue."""
    deleted: bool = False
    failed: tuple[Operation, str | None] | None = None
    """The latest operation that ended, and the version that it was to bring about."""
    running: Operation | None = None
    adopted: bool = True
    """Whether its stack is on record."""


STATES = {
    "never-heard-of": State(),
    "ready": State(at=NEXT_VERSION),
    "outdated": State(at=VERSION),
    "pinned": State(at=VERSION, pinned=VERSION),
    "full": State(at=NEXT_VERSION, full=True),
    "provisioning": State(running=Operation.CREATE),
    "updating": State(at=VERSION, running=Operation.UPDATE),
    "deleting": State(at=VERSION, running=Operation.DELETE),
    "deleted": State(deleted=True),
    "create-failed": State(failed=(Operation.CREATE, NEXT_VERSION)),
    "create-failed-as-update-began": State(failed=(Operation.CREATE, NEXT_VERSION), running=Operation.UPDATE),
    "create-at-unknown-release-failed": State(failed=(Operation.CREATE, "0.0.9")),
    "update-failed": State(at=VERSION, failed=(Operation.UPDATE, NEXT_VERSION)),
    "update-of-pinned-failed": State(at=VERSION, pinned=VERSION, failed=(Operation.UPDATE, NEXT_VERSION)),
    "update-to-older-failed": State(at=NEXT_VERSION, failed=(Operation.UPDATE, VERSION)),
    "update-of-nothing-failed": State(failed=(Operation.UPDATE, NEXT_VERSION)),
    "update-of-deleted-failed": State(deleted=True, failed=(Operation.UPDATE, NEXT_VERSION)),
    "delete-failed": State(failed=(Operation.DELETE, NEXT_VERSION)),
    "delete-of-full-failed": State(at=NEXT_VERSION, withdrawn=True, full=True, failed=(Operation.DELETE, NEXT_VERSION)),
    "delete-before-versions-failed": State(failed=(Operation.DELETE, None)),
    "from-before-berth": State(at=VERSION, adopted=False),
    "delete-from-before-berth-failed": State(
        at=VERSION, withdrawn=True, adopted=False, failed=(Operation.DELETE, NEXT_VERSION)
    ),
}


# And a rollout in every state


@dataclass(frozen=True)
class RolloutState:
    """The records of a rollout of one tenant, in one stage."""

    status: RolloutStatus
    tenant: str = "somebody-else"
    stage: StageStatus = StageStatus.RUNNING
    result: Result | None = None
    """The result of its tenant."""
    executed: bool = True
    approved_by: str | None = None
    alarm: str | None = None
    dry_run: bool = False


ROLLOUT_STATES = {
    "pending": RolloutState(RolloutStatus.PENDING, stage=StageStatus.WAITING, executed=False),
    "running": RolloutState(RolloutStatus.RUNNING, tenant="update-failed"),
    "paused": RolloutState(RolloutStatus.PAUSED),
    "aborting": RolloutState(RolloutStatus.ABORTING),
    "awaiting-approval": RolloutState(RolloutStatus.RUNNING, stage=StageStatus.AWAITING_APPROVAL),
    "approved": RolloutState(RolloutStatus.RUNNING, stage=StageStatus.AWAITING_APPROVAL, approved_by=EXPLICIT.by),
    "succeeded": RolloutState(RolloutStatus.SUCCEEDED, tenant="ready", stage=StageStatus.DONE, result=Result.SUCCEEDED),
    "failed": RolloutState(RolloutStatus.FAILED, tenant="outdated", stage=StageStatus.DONE, result=Result.FAILED),
    "failed-with-an-alarm-that-is-gone": RolloutState(
        RolloutStatus.FAILED, tenant="outdated", result=Result.FAILED, alarm="gone"
    ),
    "halted": RolloutState(RolloutStatus.HALTED, tenant="outdated", result=Result.FAILED),
    "halted-at-what-another-is-at": RolloutState(RolloutStatus.HALTED, tenant="update-failed", result=Result.FAILED),
    "aborted": RolloutState(RolloutStatus.ABORTED),
    "dry": RolloutState(
        RolloutStatus.SUCCEEDED, tenant="outdated", stage=StageStatus.DONE, result=Result.SUCCEEDED, dry_run=True
    ),
}
ROLLOUTS = {name: f"20261116-120000-{number:04x}" for number, name in enumerate(ROLLOUT_STATES, 1)}
NO_ROLLOUT = "20261116-120000-0000"


# And a reconciliation


FINDING = Finding(Kind.FOREIGN_STACK, "berth-tenant-by-hand", "it was made for something else", Remedy.NONE, "Look.")
RECONCILIATION_STATES: dict[ReconciliationStatus, dict[str, Any]] = {
    ReconciliationStatus.PENDING: {},
    ReconciliationStatus.RUNNING: {"coverage": Coverage(tenants=200)},
    ReconciliationStatus.DONE: {
        "coverage": Coverage(1, 25, 24, 31, 24),
        "counts": {Kind.FOREIGN_STACK: 1, Kind.ORPHAN_STACK: 1},
        "findings": (
            FINDING,
            replace(
                FINDING, kind=Kind.ORPHAN_STACK, remedy=Remedy.DELETE, advice="", result="DELETE: arn", ordered=True
            ),
        ),
        "ordered": 1,
    },
    ReconciliationStatus.INCOMPLETE: {"reason": "There was not enough time.", "stuck": 1},
}
RECONCILIATIONS = {status: f"20261116-130000-{number:04x}" for number, status in enumerate(RECONCILIATION_STATES, 1)}
NO_RECONCILIATION = "20261116-130000-0000"
UNLISTED = Finding(Kind.UNLISTED, "032400-000000-0000-0002", "READY at version 0.1.12", Remedy.ADOPT)
ADOPTION_STATES: dict[ReconciliationStatus, dict[str, Any]] = {
    ReconciliationStatus.PENDING: {},
    ReconciliationStatus.RUNNING: {"coverage": Coverage(rows=200)},
    ReconciliationStatus.DONE: {
        "counts": {Kind.UNLISTED: 2},
        "findings": (
            replace(UNLISTED, result="listed as READY", repaired=True),
            replace(UNLISTED, subject="?", remedy=Remedy.NONE, advice="Look."),
        ),
        "repaired": 1,
    },
    ReconciliationStatus.INCOMPLETE: {"reason": "There are more rows.", "cursor": "WyJhIiwiYiJd"},
}
ADOPTIONS = {status: f"20261116-140000-{number:04x}" for number, status in enumerate(ADOPTION_STATES, 1)}


class Api(World):
    """The fakes that the functions use in place of AWS."""

    def __init__(self, **fakes: Any) -> None:
        settings = FakeSettings(
            rollout_concurrency=MAX_CONCURRENCY,
            api_proof_digest=digest_of(PROOF),
            dead_letter_queues={"events": "https://sqs.eu-west-1.amazonaws.com/0/events"},
        )
        super().__init__(version=NEXT_VERSION, settings=settings, alarms=FakeAlarms(quiet=None), **fakes)

    def plant_reconciliation(self, status: ReconciliationStatus) -> None:
        self.reconciliation_table.record_reconciliation(
            Reconciliation(
                RECONCILIATIONS[status],
                EXPLICIT.by,
                SpecToReconcile(),
                status,
                NOON,
                LATER,
                **RECONCILIATION_STATES[status],
            )
        )

    def plant_adoption(self, status: ReconciliationStatus) -> None:
        spec, came = SpecToReconcile(survey=False, adopt=True), ADOPTION_STATES[status]
        adoption = Reconciliation(ADOPTIONS[status], EXPLICIT.by, spec, status, NOON, LATER, **came)
        self.reconciliation_table.record_reconciliation(adoption)

    def plant_rollout(self, rollout_id: str, state: RolloutState) -> None:
        ledger, item = self.rollout_table, Item(TenantId.parse(state.tenant), NEXT_VERSION)
        wished = StageSpec(None, 1, Share(0), alarm=state.alarm)
        over = not state.status.active
        rollout = Rollout(
            rollout_id,
            Spec(NEXT_VERSION, (wished,), dry_run=state.dry_run),
            EXPLICIT.by,
            NOON,
            planned=(1,),
            total=1,
            skipped={Skip.CURRENT: Skipped(1, ("ready",))},
            status=state.status,
            reason="Because." if over else "",
            ended_at=LATER if over else None,
        )
        if state.executed:
            execution = execution_arn(rollout.name)
            rollout = replace(rollout, execution=execution)
            self.rollout_executions.started.append(execution)
            self.rollout_executions.running |= set() if over else {execution}
        stage = Stage(
            rollout_id,
            1,
            wished,
            total=1,
            tolerated=0,
            manifest=self.manifests.write(rollout_id, [item]),
            pace=Pace.initial(1),
            status=state.stage,
            failed=int(state.result is Result.FAILED),
            approved_by=state.approved_by,
        )
        ledger.register(replace(rollout, status=RolloutStatus.PENDING), [stage], revision=ledger.registry().revision)
        ledger.change(rollout)
        if state.result:
            failed = state.result is Result.FAILED
            outcome = TenantOutcome(
                rollout_id,
                1,
                item,
                state.result,
                LATER,
                from_version=VERSION,
                root_cause=QUEUE_TABOO if failed else None,
                changes=("changes InboundQueue (AWS::SQS::Queue)",) if state.dry_run else (),
            )
            ledger.record(Count(rollout_id, 1, LATER), outcome, before=None)

    def plant(self, tenant: TenantId, state: State) -> None:
        if state.at:
            planted = some_metadata(
                tenant=tenant,
                version=state.at,
                queue=OTHER_QUEUE if state.full else QUEUE,
                withdrawn_by="a delete" if state.withdrawn else None,
                pinned_version=state.pinned,
                labels={"plan": "gold"},
            )
            self.table.plant_metadata(planted if state.adopted else replace(planted, stack_id=None))
            self.table.plant_audit(an_audit(Status.SUCCESS, tenant=tenant, version=state.at))
        if state.full:
            self.queues.held[OTHER_QUEUE.url] = Messages(3, 1, 0)
        if state.deleted:
            self.table.plant_audit(an_audit(Status.SUCCESS, Operation.DELETE, tenant=tenant, version=NEXT_VERSION))
        if state.running:
            run = a_run(tenant=tenant, operation=state.running, version=NEXT_VERSION, started_at=LATER)
            take(self.table, run)
            self.executions.running.add(run.execution)
        if state.failed:
            what, version = state.failed
            cause = QUEUE_TABOO if version else None
            self.table.plant_audit(
                an_audit(Status.FAILURE, what, tenant=tenant, version=version, at=LATEST, root_cause=cause)
            )


def world(only: str | None = None, **parts: Any) -> Api:
    """With everything in it, or only that tenant: what is answered about one does not depend on the others."""
    made = Api(**parts)
    for name, state in STATES.items():
        if only in (None, name):
            made.plant(TenantId.parse(name), state)
    if only is None:
        for name, rollout in ROLLOUT_STATES.items():
            made.plant_rollout(ROLLOUTS[name], rollout)
        for status in RECONCILIATION_STATES:
            made.plant_reconciliation(status)
            made.plant_adoption(status)
    return made


class InProcess(HTTPAdapter):
    """API Gateway, as far as the functions can tell. Every request finds a world in which nothing happened yet."""

    def __init__(self, functions: Mapping[str, ModuleType], monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self._world: Callable[[str | None], Api] = world
        self.functions = functions
        self.monkeypatch = monkeypatch
        self._untouched: Api | None = None
        """The last one with everything in it, if still nothing has happened there: making one takes time."""

    def use(self, world: Callable[[str | None], Api]) -> None:
        self._world, self._untouched = world, None

    def send(self, request: requests.PreparedRequest, *_: object, **__: object) -> requests.Response:
        status, headers, body = self._answer(request)
        raw = HTTPResponse(io.BytesIO(body), headers, status, preload_content=False)
        return self.build_response(request, raw)

    def _answer(self, request: requests.PreparedRequest) -> tuple[int, dict[str, str], bytes]:
        url = urlsplit(str(request.url))
        for route, function in self.routes().items():
            method, _, template = route.partition(" ")
            pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", template)
            match = re.fullmatch(pattern, unquote(url.path))
            if match and method == request.method:
                answered = self._invoke(function, self._event(request, route, match.groupdict(), url.query))
                return answered["statusCode"], answered["headers"], answered["body"].encode()
        return 404, {"Content-Type": "application/json"}, b'{"message":"Not Found"}'

    def routes(self) -> dict[str, str]:
        return dict.fromkeys(QUEUE_ROUTES, "get_queue") | dict.fromkeys(self.functions["operators"].ROUTES, "operators")

    def _invoke(self, name: str, event: dict[str, Any]) -> Any:
        function, tenant = self.functions[name], event["pathParameters"].get("tenantId")
        made = self._world(tenant) if tenant or not self._untouched else self._untouched
        self.monkeypatch.setattr(function, "use_cases", made)
        if name == "get_queue":
            self.monkeypatch.setattr(function, "get_queue", made.get_queue)
        answer = function.handler(event, None)
        if not tenant:
            only_looked = event["routeKey"].startswith("GET ") or answer["statusCode"] == 400
            self._untouched = made if only_looked else None
        return answer

    @staticmethod
    def _event(
        request: requests.PreparedRequest, route: str, path_parameters: Mapping[str, str], query: str
    ) -> dict[str, Any]:
        body: Any = request.body.encode() if isinstance(request.body, str) else request.body
        event = {
            "version": "2.0",
            "routeKey": route,
            "pathParameters": path_parameters,
            "requestContext": {"authorizer": {"iam": {"userArn": EXPLICIT.by}}},
            "isBase64Encoded": bool(body),
            "stageVariables": {"proof": PROOF},
        }
        if body:
            event["body"] = base64.b64encode(body).decode()
        if query:
            values = parse_qs(query, keep_blank_values=True)
            event["queryStringParameters"] = {name: ",".join(given) for name, given in values.items()}
        return event


@pytest.fixture(scope="module")
def functions() -> Iterator[Mapping[str, ModuleType]]:
    """The functions, loaded anew: they read their settings and find their use cases as they are loaded."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("BERTH_SERVICE", "berth")
        monkeypatch.setenv("AWS_LAMBDA_LOG_LEVEL", "FATAL")
        forget_functions()
        runtime = importlib.import_module("lambdas.runtime")
        monkeypatch.setattr(runtime, "use_cases", world())
        monkeypatch.setattr(importlib.import_module("lambdas.logs"), "count", lambda _metric: None)
        yield {name: importlib.import_module(module_of(name)) for name in ("get_queue", "operators")}
        forget_functions()


@pytest.fixture
def gateway(functions: Mapping[str, ModuleType], monkeypatch: pytest.MonkeyPatch) -> InProcess:
    return InProcess(functions, monkeypatch)


def forget_functions() -> None:
    for name in [name for name in sys.modules if name == "lambdas" or name.startswith("lambdas.")]:
        del sys.modules[name]


@pytest.fixture
def session(gateway: InProcess) -> Iterator[requests.Session]:
    with requests.Session() as session:
        session.trust_env = False
        session.mount(BASE_URL, gateway)
        yield session


# The document itself


def test_the_check_finds_an_invalid_openapi_document() -> None:
    broken = copy.deepcopy(DOCUMENT)
    del broken["paths"]["/releases"]["get"]["responses"]["200"]["description"]
    with pytest.raises(jsonschema_rs.ValidationError):
        load(broken).validate()


def test_the_document_has_the_current_version() -> None:
    assert DOCUMENT["info"]["version"] == (ROOT / "version.txt").read_text(encoding="utf-8").strip()


def test_the_document_has_the_routes_of_the_functions(gateway: InProcess) -> None:
    assert {operation.label for operation in OPERATIONS.values()} == set(gateway.routes())


def test_every_request_is_signed() -> None:
    assert DOCUMENT["security"] == [{"sigv4": []}]
    assert DOCUMENT["components"]["securitySchemes"]["sigv4"]["x-amazon-apigateway-authtype"] == "awsSigv4"
    assert not [name for name, operation in OPERATIONS.items() if "security" in operation.definition.raw]


@pytest.mark.parametrize("at", [None, NOON])
def test_the_schema_allows_an_unreadable_row_of_history(at: datetime | None) -> None:
    unreadable = UnreadableEntry(at)
    entry, order = operator_answers._history_document(unreadable), rollout_answers._order_document(unreadable)
    CONTROL_PLANE.validator(schema("Tenant")["properties"]["history"]).validate([entry])
    CONTROL_PLANE.validator(schema("Rollout")["properties"]["history"]).validate([order])


# Requests in the document


def schema(name: str) -> dict[str, Any]:
    found: dict[str, Any] = DOCUMENT["components"]["schemas"][name]
    return found


def rules(name: str) -> dict[str, Any]:
    """A schema without what it tells people."""
    return {key: value for key, value in schema(name).items() if key not in ("description", "examples")}


def parameter(operation_id: str, name: str) -> dict[str, Any]:
    parameters = OPERATIONS[operation_id].definition.raw["parameters"]
    (found,) = (each for each in parameters if each.get("name") == name)
    return dict(found["schema"])


def test_ids_versions_and_labels_are_those_that_requests_are_checked_for() -> None:
    assert rules("TenantId") == validation.TENANT_ID
    assert rules("Version") == validation.VERSION
    assert rules("Labels") == validation.LABELS
    assert rules("Reason") == validation.REASON
    for name in ("RolloutId", "ReconciliationId", "AdoptionId"):
        assert rules(name) == {"type": "string", "pattern": ID_PATTERN}
    assert schema("Reconciliation")["properties"]["findings"]["maxItems"] == MAX_FINDINGS
    assert schema("Adoption")["properties"]["tenants"]["maxItems"] == MAX_FINDINGS
    assert rules("AdoptionCursor") == {"type": "string", "pattern": CURSOR_PATTERN}
    assert parameter("deleteTenant", "drainSeconds") == {**deadlines.DRAIN_SECONDS, "default": 0}
    for operation_id in ("listTenants", "listRollouts"):
        assert parameter(operation_id, "limit") == {
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_PAGE_SIZE,
            "default": PAGE_SIZE,
        }


def test_states_operations_and_accesses_are_all_there() -> None:
    assert schema("TenantState")["enum"] == list(TenantState)
    assert schema("Operation")["enum"] == list(Operation)
    assert schema("OperationStatus")["enum"] == list(Status)
    assert schema("Access")["enum"] == list(Access)
    assert schema("RolloutStatus")["enum"] == list(RolloutStatus)
    assert schema("StageStatus")["enum"] == list(StageStatus)
    assert schema("SkipReason")["enum"] == list(Skip)
    assert schema("TenantResult")["enum"] == list(Result)
    assert schema("ReconciliationStatus")["enum"] == list(ReconciliationStatus)
    assert schema("FindingKind")["enum"] == list(Kind)
    assert schema("Remedy")["enum"] == list(Remedy)
    assert schema("Verdict")["enum"] == list(Verdict)
    assert schema("Order")["enum"] == list(Order)
    of_operations, of_changes, _ = (entry["properties"]["operation"] for entry in schema("HistoryEntry")["oneOf"])
    assert of_operations == {"enum": list(Operation)}
    assert of_changes == {"enum": list(ChangeKind)}


def understood(route: AnyRoute, **event: Any) -> bool:
    try:
        asked = read(route, {"pathParameters": {"tenantId": "acme"}, **event})
        if route is START_ROLLOUT:
            asked.spec(max_concurrency=MAX_CONCURRENCY)
    except InvalidRequest:
        return False
    return True


RUN_ID = ROLLOUTS["running"]


@pytest.mark.parametrize(
    "body",
    [
        {"sample": "1"},
        {"sample": "1", "dryRun": False},
        {"sample": "1", "dryRun": True},
        {"undo": RUN_ID, "version": "0.1.0"},
        {"undo": RUN_ID, "tenants": ["acme"]},
        {"retry": RUN_ID},
        {"stages": [{}]},
        {"stages": [{"size": "rest", "more": 1}]},
        {"stages": [{"size": "0"}, {"size": "rest"}]},
        {"stages": [*[{"size": "1"}] * 9, {"size": "rest"}]},
        {"stages": [*[{"size": "1"}] * 10, {"size": "rest"}]},
    ],
    ids=lambda body: json.dumps(body)[:60],
)
def test_the_schema_allows_a_combination_of_fields_if_and_only_if_the_function_accepts_it(body: object) -> None:
    allowed = CONTROL_PLANE.validator({"$ref": "#/components/schemas/StartRollout"}).is_valid(body)
    assert allowed == understood(START_ROLLOUT, body=json.dumps(body))


@pytest.mark.parametrize("sizes", [["1"], ["rest", "rest"], ["rest", "1"]])
def test_only_the_description_says_that_the_last_stage_takes_the_rest(sizes: list[str]) -> None:
    body = {"stages": [{"size": size} for size in sizes]}
    assert CONTROL_PLANE.validator({"$ref": "#/components/schemas/StartRollout"}).is_valid(body)
    with pytest.raises(InvalidRequest, match="rest"):
        read(START_ROLLOUT, {"body": json.dumps(body)}).spec(max_concurrency=MAX_CONCURRENCY)
    description = schema("StageSpec")["properties"]["size"]["description"]
    assert "The last stage, and only the last, must be" in description


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"version": VERSION, "tenants": ["acme"], "labels": {"plan": "gold"}, "share": "10%"},
        {"allowDowngrade": True, "allowReplacement": True, "dryRun": True, "sample": "1%"},
        {"undo": RUN_ID, "retry": NO_ROLLOUT, "stages": [{"size": "rest", "alarm": "quiet", "approval": True}]},
    ],
    ids=json.dumps,
)
def test_the_spec_in_an_answer_equals_the_request(body: dict[str, Any]) -> None:
    answered = spec_document(spec_from(body, max_concurrency=5))
    CONTROL_PLANE.validator({"$ref": "#/components/schemas/RolloutSpec"}).validate(answered)
    for name in body.keys() - {"stages"}:
        assert answered[name] == body[name]


# Answers in the document


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
    "promoteRollout": {"stage": 1},
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
    for spec in WISHES:
        yield Asked("startRollout", body=spec)
    for rollout in ROLLOUTS.values():
        yield Asked("startRollout", body={"undo": rollout})


WISHES: Sequence[Mapping[str, object]] = [
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
    for adoption in (*ADOPTIONS.values(), *RECONCILIATIONS.values(), "settling"):
        yield Asked("getAdoption", adoption)
    yield Asked("startAdoption")
    yield Asked("startAdoption", body={"dryRun": True, "cursor": "WyJhIiwiYiJd", "reason": "Ticket 4711"})
    yield Asked("startAdoption", body={"cursor": "not one"})
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
    made.settings.pooled_queues = [QUEUE]
    made.table.record_release(a_release(GOLD_VERSION, tier="gold"))
    if only == "pooled":
        made.lifecycle.create(TenantId.parse(only), Request(tier="pooled"))
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
    yield Asked("moveTenant", "ready", body={"tier": "bronze"})
    yield Asked("moveTenant", "ready", body={"tier": "pooled"})
    yield Asked("getQueue", "pooled")
    yield Asked("getTenant", "pooled")
    yield Asked("getSendCredentials", "pooled")
    yield Asked("getReceiveCredentials", "pooled")
    yield Asked("deleteTenant", "pooled", query={"drainSeconds": 60})
    yield Asked("moveTenant", "pooled", body={"tier": "gold"})
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


# Whatever is asked


MADE_UP = [
    name
    for name, operation in OPERATIONS.items()
    # All that is asked of one tenant, rollout or reconciliation, with no word more, is parsed by one function each.
    if name in ("getTenant", "getRollout", "getReconciliation", "getAdoption") or operation.query or operation.body
]
AT_HAND = AtHand(
    tenants=list(STATES),
    rollouts=[*ROLLOUTS.values(), NO_ROLLOUT],
    reconciliations=[*RECONCILIATIONS.values(), *ADOPTIONS.values(), NO_RECONCILIATION],
)


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("operation_id", MADE_UP)
def test_requests_made_from_the_document_are_answered_as_it_says(
    session: requests.Session, operation_id: str, mode: GenerationMode
) -> None:
    seen = drive(OPERATIONS[operation_id], mode, session, BASE_URL, at_hand=AT_HAND, max_examples=20)
    assert seen.total() >= 10


def test_where_only_dry_runs_may_be_started_nothing_else_is(gateway: InProcess, session: requests.Session) -> None:
    """As the end-to-end tests ask: on the deployed API other tests have tenants, too."""
    worlds: list[Api] = []

    def remembered(only: str | None) -> Api:
        worlds.append(world(only))
        return worlds[-1]

    gateway.use(remembered)
    at_hand = AtHand(["outdated", "ready"], [NO_ROLLOUT], [NO_RECONCILIATION], most_at_once=8, only_dry_runs=True)
    start = OPERATIONS["startRollout"]
    for mode in GenerationMode:
        drive(start, mode, session, BASE_URL, at_hand=at_hand, max_examples=8)
    cover(start, session, BASE_URL, at_hand=at_hand)

    before = set(ROLLOUTS.values())
    started = [
        (rollout, made.manifests.read(stage.manifest))
        for made in worlds
        for rollout in made.rollout_table.rollouts(limit=MAX_PAGE_SIZE)
        for stage in made.rollout_table.stages(rollout.id)
        if rollout.id not in before
    ]
    assert started
    assert all(rollout.spec.dry_run for rollout, _ in started)
    assert {item.tenant.value for _, items in started for item in items} == {"outdated"}


@pytest.mark.parametrize("operation_id", OPERATIONS)
def test_requests_at_the_documents_boundaries_are_answered_as_it_says(
    session: requests.Session, operation_id: str
) -> None:
    seen = cover(OPERATIONS[operation_id], session, BASE_URL, at_hand=AT_HAND)
    assert seen.total() > 1


def responses_of_get_queue(document: dict[str, Any]) -> dict[str, Any]:
    responses: dict[str, Any] = document["paths"]["/tenants/{tenantId}/queue"]["get"]["responses"]
    return responses


def drain_seconds(document: dict[str, Any]) -> dict[str, Any]:
    schemas: list[dict[str, Any]] = [
        each["schema"]
        for each in document["paths"]["/tenants/{tenantId}"]["delete"]["parameters"]
        if each.get("name") == "drainSeconds"
    ]
    (found,) = schemas
    return found


def _a_status_is_left_out(document: dict[str, Any]) -> None:
    del responses_of_get_queue(document)["424"]


def _errors_are_plain_json(document: dict[str, Any]) -> None:
    content = document["components"]["responses"]["InvalidRequest"]["content"]
    content["application/json"] = content.pop(PROBLEM)


def _a_header_is_promised(document: dict[str, Any]) -> None:
    headers = document["components"]["responses"]["Provisioning"]["headers"]
    headers["Location"] = {"required": True, "schema": {"type": "string"}}


def _a_field_is_promised(document: dict[str, Any]) -> None:
    document["components"]["schemas"]["Queue"]["required"].append("region")


def _a_field_is_left_out(document: dict[str, Any]) -> None:
    document["components"]["schemas"]["Provisioning"]["required"].remove("execution")
    del document["components"]["schemas"]["Provisioning"]["properties"]["execution"]


def _a_field_deep_inside_is_left_out(document: dict[str, Any]) -> None:
    for name in ("Stage", "RolloutInBrief"):
        document["components"]["schemas"][name]["required"].remove("endedAt")
        del document["components"]["schemas"][name]["properties"]["endedAt"]


def _a_problem_is_left_out(document: dict[str, Any]) -> None:
    document["components"]["schemas"]["TenantDeleted"]["properties"]["type"]["const"] += "-for-ever"


def _more_is_taken(document: dict[str, Any]) -> None:
    drain_seconds(document)["maximum"] += 1


def _less_is_taken(document: dict[str, Any]) -> None:
    drain_seconds(document)["maximum"] -= 1


@pytest.mark.parametrize(
    ("lie", "operation_id", "tenant", "found_by"),
    [
        (_a_status_is_left_out, "getQueue", "create-failed", "status_code_conformance"),
        (_errors_are_plain_json, "getQueue", "ready", "content_type_conformance"),
        (_a_header_is_promised, "getQueue", "provisioning", "response_headers_conformance"),
        (_a_field_is_promised, "getQueue", "ready", "response_schema_conformance"),
        (_a_field_is_left_out, "getQueue", "provisioning", "response_schema_conformance"),
        (_a_field_deep_inside_is_left_out, "getRollout", "ready", "response_schema_conformance"),
        (_a_field_deep_inside_is_left_out, "listRollouts", "ready", "response_schema_conformance"),
        (_a_problem_is_left_out, "getQueue", "deleted", "response_schema_conformance"),
        (_more_is_taken, "deleteTenant", "ready", "positive_data_acceptance"),
        (_less_is_taken, "deleteTenant", "ready", "negative_data_rejection"),
    ],
)
def test_the_check_finds_a_document_that_differs_from_the_answers(
    session: requests.Session, lie: Callable[[dict[str, Any]], None], operation_id: str, tenant: str, found_by: str
) -> None:
    document = copy.deepcopy(DOCUMENT)
    lie(document)
    asked = operations(document)[operation_id]
    (check,) = (check for check in CHECKS if check.__name__ == found_by)
    with pytest.raises(FailureGroup):
        cover(asked, session, BASE_URL, at_hand=replace(AT_HAND, tenants=[tenant]), checks=[check])


def test_property_tests_still_show_the_failing_example() -> None:
    @given(number=st.integers())
    def fails(number: int) -> None:
        assert number < 5

    with pytest.raises(AssertionError) as failure:
        fails()
    assert "number=5" in "".join(failure.value.__notes__)
