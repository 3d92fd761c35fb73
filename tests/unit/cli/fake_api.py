"""An in-memory API: the client's requests go straight to the functions, and their responses straight back."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest

from lambdas.api import operators
from orchestrator.api.event_plane_routes import EVENT_ROUTES
from orchestrator.api.openapi import EVENT_PLANE
from orchestrator.api.reading import read
from orchestrator.api.requesting import HttpRequest
from orchestrator.api.responses import Response, refuse, try_again_later
from orchestrator.api.route import AnyRoute
from orchestrator.api.routes import ROUTES
from orchestrator.client.transport import ApiAnswer
from orchestrator.common.errors import InvalidRequest, Throttled
from orchestrator.common.tenant_ids import TenantId
from orchestrator.reconciling.records import Reconciliation
from orchestrator.rollouts.counting import settlement
from orchestrator.rollouts.records import Item, Result, Rollout, TenantOutcome
from orchestrator.tenants.ports import Publication
from orchestrator.tenants.records import Operation, Queue, RootCause, Run
from tests.by_hand import ClientByHand
from tests.fakes import (
    NEXT_VERSION,
    QUEUE,
    QUEUE_TABOO,
    VERSION,
    FakeSettings,
    InMemoryTable,
    World,
    stack_arn,
)

ADA = "arn:aws:sts::000000000000:assumed-role/operator/ada"
EVENT_EXAMPLES = json.loads(EVENT_PLANE.examples.read_text(encoding="utf-8"))
MAX_CONCURRENCY = 50
DEAD_LETTERS = "https://sqs.eu-west-1.amazonaws.com/000000000000/dead-letters"


def heard(response: Response) -> ApiAnswer:
    """A function's response, as a client of the API gets it."""
    retry_after = response.headers.get("Retry-After")
    return ApiAnswer(response.status, response.body, float(retry_after) if retry_after else None)


def _route_of(request: HttpRequest, routes: Sequence[AnyRoute] = ROUTES) -> tuple[AnyRoute, dict[str, str]]:
    for route in routes:
        pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", route.path)
        if route.method == request.method and (found := re.fullmatch(pattern, request.path)):
            return route, found.groupdict()
    raise AssertionError(f"There is no route for {request.method} {request.path}.")


class ScriptedEventsApi(ClientByHand):
    """An Events API that reads each request as its function does, and answers with the documented example.

    ``tests/adapters/events`` runs the commands against the functions themselves.
    """

    def __init__(self) -> None:
        super().__init__(transport=self)
        self.asked: list[str] = []
        self.changes: list[str] = []
        """The requests that would have changed something."""

    def send(self, request: HttpRequest) -> ApiAnswer:
        self.asked.append(f"{request.method} {request.path}")
        route, parameters = _route_of(request, EVENT_ROUTES)
        body = None if request.body is None else json.dumps(request.body)
        event = {"pathParameters": parameters, "queryStringParameters": dict(request.query), "body": body}
        try:
            read(route, event)
        except InvalidRequest as error:
            return heard(refuse(error))
        if request.method != "GET":
            self.changes.append(self.asked[-1])
        status, model = route.answers[0].status, route.answers[0].model.__name__
        answer = dict(EVENT_EXAMPLES["models"][model])
        if "cursor" in request.query:
            answer["cursor"] = None
        if request.query.get("payload_as") == "base64":
            answer["payload_base64"] = "e30="
        return ApiAnswer(status, answer)


class InMemoryApi(ClientByHand):
    """The operators' API over the use cases; getQueue by script. Releases 0.1.0 and 0.2.0 are published."""

    def __init__(self) -> None:
        super().__init__(transport=self)
        settings = FakeSettings(
            rollout_concurrency=MAX_CONCURRENCY, dead_letter_queues={"reconciliations": DEAD_LETTERS}
        )
        self.world = World(version=NEXT_VERSION, settings=settings)
        self.executions, self.queues = self.world.executions, self.world.queues
        self.unfinished_work = self.world.unfinished_work
        self.clock, self.alarms = self.world.clock, self.world.alarms
        self.ledger, self.manifests = self.world.rollout_table, self.world.manifests
        self.rollout_executions = self.world.rollout_executions
        self.reconciliations = self.world.reconciliation_table
        self.asked: list[str] = []
        self.sent: list[Mapping[str, object] | None] = []
        """The body of each request."""
        self.interjections: list[ApiAnswer] = []
        """Responses to the first requests, whatever they are."""
        self.queue_answers: list[ApiAnswer] = []
        """The responses of getQueue, one after the other. The last one is repeated."""

    @property
    def table(self) -> InMemoryTable:
        return self.world.table

    def send(self, request: HttpRequest) -> ApiAnswer:
        """In place of HTTP."""
        query = f"?{urlencode(request.query)}" if request.query else ""
        self.asked.append(f"{request.method} {request.path}{query}")
        self.sent.append(request.body)
        if self.interjections:
            return self.interjections.pop(0)
        if request.path.endswith("/queue") or "/queue/credentials/" in request.path:
            return self.queue_answers.pop(0) if len(self.queue_answers) > 1 else self.queue_answers[0]
        route, parameters = _route_of(request)
        event = {
            "routeKey": route.key,
            "pathParameters": parameters,
            "queryStringParameters": dict(request.query),
            "requestContext": {"authorizer": {"iam": {"userArn": ADA}}},
            "body": None if request.body is None else json.dumps(request.body),
        }
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(operators, "use_cases", self.world)
            try:
                return heard(operators.ROUTES[route.key](event))
            except InvalidRequest as error:
                return heard(refuse(error))
            except Throttled as error:
                return heard(try_again_later(str(error)))

    # The work of the reconciling function, on the latest reconciliation

    def reconciliation_is_now(self, **changes: Any) -> None:
        asked = self.last_reconciliation
        self.reconciliations.record_reconciliation(replace(asked, updated_at=self.clock.now(), **changes))

    @property
    def last_reconciliation(self) -> Reconciliation:
        return self.reconciliations.recorded[self.reconciliations.started[-1]]

    # The work of the rollout's machine, on the newest rollout

    @property
    def newest(self) -> Rollout:
        return self.ledger.rollouts(limit=1)[0]

    def is_now(self, **changes: Any) -> None:
        """Change the newest rollout."""
        assert self.ledger.change(replace(self.newest, **changes))

    def stage_is_now(self, number: int, **changes: Any) -> None:
        stage = self.ledger.stage(self.newest.id, number)
        assert stage is not None
        assert self.ledger.change_stage(replace(stage, **changes))

    def came_to(
        self,
        tenant: TenantId,
        result: Result,
        *,
        stage: int = 1,
        cause: RootCause | None = None,
        changes: Sequence[str] = (),
        from_version: str | None = None,
    ) -> None:
        """Record the outcome of one tenant in the newest rollout, and count it as the machine does."""
        rollout = self.newest
        before = self.ledger.stage(rollout.id, stage)
        assert before is not None
        item = Item(tenant, rollout.spec.version or VERSION)
        outcome = TenantOutcome(
            rollout.id,
            stage,
            item,
            result,
            self.clock.now(),
            from_version=from_version,
            root_cause=cause,
            changes=tuple(changes),
        )
        assert self.ledger.record(
            settlement(before, outcome, in_flight=False, dry_run=rollout.spec.dry_run), outcome, before=None
        )

    # The work of the machines, on the latest operation

    @property
    def run(self) -> Run:
        attempt, request = self.executions.started[-1]
        execution = next(arn for arn in self.executions.inputs if arn.endswith(f":{attempt.name}"))
        return Run(attempt, execution, self.clock.now(), request)

    def begin(self) -> None:
        self.table.begin(self.run, at=self.clock.now())

    def succeed(self, queue: Queue = QUEUE) -> None:
        run = self.run
        self.clock.advance(timedelta(seconds=10))
        if run.attempt.operation is Operation.DELETE:
            self.table.remove(run, at=self.clock.now())
        else:
            self.table.publish(
                run, Publication(stack_arn(run.tenant), queue, run.attempt.version, None), at=self.clock.now()
            )
        self.executions.end(run.execution)

    def fail(self, cause: RootCause = QUEUE_TABOO) -> None:
        """A delete fails before it has touched the stack, and the tenant is served again."""
        self._fail(cause, restore=self.run.attempt.operation is Operation.DELETE)

    def fail_half_way(self) -> None:
        """A delete fails after it has begun to take the stack down."""
        self._fail(QUEUE_TABOO, restore=False)

    def _fail(self, cause: RootCause, *, restore: bool) -> None:
        run = self.run
        self.clock.advance(timedelta(seconds=10))
        self.table.fail(run, cause, self.clock.now(), restore=restore)
        self.executions.end(run.execution)
