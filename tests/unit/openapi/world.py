"""A control plane in memory with tenants, rollouts and reconciliations in every state, asked in process over HTTP."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from types import ModuleType
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
import requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPResponse

from orchestrator.api.rollout_models import MAX_CONCURRENCY
from orchestrator.common.callers import digest_of
from orchestrator.common.tenant_ids import TenantId
from orchestrator.reconciling.records import Coverage, Finding, Kind, Reconciliation, ReconciliationStatus, Remedy
from orchestrator.reconciling.records import Spec as SpecToReconcile
from orchestrator.rollouts.counting import Count
from orchestrator.rollouts.pacing import Pace
from orchestrator.rollouts.records import (
    Item,
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
from orchestrator.tenants.credentials import CREDENTIAL_ROUTES
from orchestrator.tenants.messages import Messages
from orchestrator.tenants.records import Operation, Status
from tests.fakes import (
    EXPLICIT,
    NEXT_VERSION,
    NOON,
    OTHER_QUEUE,
    QUEUE,
    QUEUE_TABOO,
    VERSION,
    FakeAlarms,
    FakeSettings,
    World,
    a_run,
    an_audit,
    execution_arn,
    some_metadata,
    take,
)
from tests.openapi import DOCUMENT, operations

BASE_URL = "https://berth.test"
QUEUE_ROUTES = ("GET /tenants/{tenantId}/queue", *CREDENTIAL_ROUTES)
PROOF = "what only API Gateway knows"
PROBLEM = "application/problem+json"
OPERATIONS = operations(DOCUMENT)
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

    def plant_rollout(self, rollout_id: str, state: RolloutState) -> None:
        ledger, item = self.rollout_table, Item(TenantId.parse(state.tenant), NEXT_VERSION)
        stage_spec = StageSpec(None, 1, Share(0), alarm=state.alarm)
        over = not state.status.active
        rollout = Rollout(
            rollout_id,
            Spec(NEXT_VERSION, (stage_spec,), dry_run=state.dry_run),
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
            stage_spec,
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


def schema(name: str) -> dict[str, Any]:
    found: dict[str, Any] = DOCUMENT["components"]["schemas"][name]
    return found
