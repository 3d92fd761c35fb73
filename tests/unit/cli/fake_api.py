"""The API, in memory: requests as the client sends them, answers as the functions give them, nothing in between."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from urllib.parse import urlencode

from botocore.credentials import Credentials

from orchestrator.adapters.berth_api import ApiAnswer, BerthApi
from orchestrator.answers import Response, refuse
from orchestrator.errors import InvalidRequest
from orchestrator.fleet import list_tenants, tenant_detail
from orchestrator.lifecycle import Lifecycle
from orchestrator.operator_answers import tell_order, tell_releases, tell_tenant, tell_tenants
from orchestrator.operator_requests import (
    parse_create,
    parse_delete,
    parse_list,
    parse_releases,
    parse_retry,
    parse_tenant,
    parse_upgrade,
)
from orchestrator.records import Operation, Queue, RootCause, Run
from tests.fakes import (
    NEXT_VERSION,
    QUEUE,
    QUEUE_TABOO,
    VERSION,
    FakeClock,
    FakeExecutions,
    FakeQueues,
    InMemoryTable,
    a_release,
    stack_arn,
)

ADA = "arn:aws:sts::000000000000:assumed-role/operator/ada"


def heard(response: Response) -> ApiAnswer:
    """A response of a function, as it is heard through the API."""
    retry_after = response.headers.get("Retry-After")
    return ApiAnswer(response.status, response.body, float(retry_after) if retry_after else None)


class InMemoryApi(BerthApi):
    """The operators' API over the use cases; getQueue by script. Releases 0.1.0 and 0.2.0 are published."""

    def __init__(self) -> None:
        super().__init__("https://api.invalid", Credentials("AKIDEXAMPLE", "secret"), "eu-west-1")
        self.table = InMemoryTable()
        self.executions = FakeExecutions()
        self.queues = FakeQueues()
        self.clock = FakeClock()
        for version in (VERSION, NEXT_VERSION):
            self.table.record_release(a_release(version))
        self.asked: list[str] = []
        self.interjections: list[ApiAnswer] = []
        """What is answered first, whatever is asked."""
        self.queue_answers: list[ApiAnswer] = []
        """What getQueue answers, one after the other, and the last one for ever."""

    @property
    def lifecycle(self) -> Lifecycle:
        table = self.table
        return Lifecycle(table, table, table, self.executions, self.queues, self.clock, NEXT_VERSION)

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, object] | None = None,
        body: Mapping[str, object] | None = None,
    ) -> ApiAnswer:
        self.asked.append(f"{method} {path}" + (f"?{urlencode(query)}" if query else ""))
        if self.interjections:
            return self.interjections.pop(0)
        if path.endswith("/queue"):
            return self.queue_answers.pop(0) if len(self.queue_answers) > 1 else self.queue_answers[0]
        _, *parts = path.split("/")
        event = {
            "pathParameters": {"tenantId": parts[1]} if len(parts) > 1 else None,
            # As in any URL, all values are text.
            "queryStringParameters": {name: str(value) for name, value in (query or {}).items()},
            "requestContext": {"authorizer": {"iam": {"userArn": ADA}}},
            "body": None if body is None else json.dumps(body),
        }
        try:
            return heard(self._route(" ".join([method, *parts[:1], *parts[2:]]), event))
        except InvalidRequest as error:
            return heard(refuse(error))

    def _route(self, route: str, event: Mapping[str, object]) -> Response:
        match route:
            case "PUT tenants":
                create = parse_create(event)
                ordered = self.lifecycle.create(create.tenant, create.request, unpin=create.unpin)
                return tell_order(create.tenant, ordered)
            case "POST tenants upgrade":
                upgrade = parse_upgrade(event)
                return tell_order(
                    upgrade.tenant, self.lifecycle.upgrade(upgrade.tenant, upgrade.version, upgrade.request)
                )
            case "POST tenants retry":
                order = parse_retry(event)
                return tell_order(order.tenant, self.lifecycle.retry(order.tenant, order.request.by))
            case "DELETE tenants":
                order = parse_delete(event)
                return tell_order(order.tenant, self.lifecycle.delete(order.tenant, order.request))
            case "GET tenants" if event["pathParameters"]:
                return tell_tenant(tenant_detail(parse_tenant(event), self.table))
            case "GET tenants":
                asked = parse_list(event)
                page = list_tenants(
                    self.table, state=asked.state, version=asked.version, cursor=asked.cursor, limit=asked.limit
                )
                return tell_tenants(page)
            case "GET releases":
                parse_releases(event)
                return tell_releases(self.table.releases(), NEXT_VERSION)
        raise AssertionError(f"There is no route for {route}.")

    # What the machines do with what was started last

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
                run,
                stack_id=stack_arn(run.tenant),
                queue=queue,
                version=run.attempt.version,
                at=self.clock.now(),
            )
        self.executions.end(run.execution)

    def fail(self, cause: RootCause = QUEUE_TABOO) -> None:
        run = self.run
        self.clock.advance(timedelta(seconds=10))
        self.table.fail(run, cause, self.clock.now(), restore=run.attempt.operation is Operation.DELETE)
        self.executions.end(run.execution)
