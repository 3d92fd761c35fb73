"""A fleet in memory, in all states: what the tests of the console look at, and what the screenshots show."""

from __future__ import annotations

import threading
from datetime import timedelta

from orchestrator.api.requesting import HttpRequest
from orchestrator.client.transport import ApiAnswer
from orchestrator.common.tenant_ids import TenantId
from orchestrator.reconciling.records import SURVEY, Finding, Kind, Reconciliation, ReconciliationStatus, Remedy, Spec
from orchestrator.rollouts.records import Result, RolloutStatus, StageStatus
from orchestrator.tenants.records import Operation, Queue, RootCause, Run
from orchestrator.tenants.stack_ports import Stack
from tests.fakes import NEXT_VERSION, VERSION
from tests.fakes.examples import execution_arn, stack_arn
from tests.fakes.others import FakeExecutions
from tests.fakes.reconciling import counted
from tests.unit.cli.fake_api import InMemoryApi

READY_AT_NEXT = ("acme", "globex", "initech", "umbrella", "hooli", "stark", "wayne", "wonka", "tyrell", "cyberdyne")
READY_AT_FIRST = ("aperture", "blackmesa", "dunder", "gringotts", "monarch", "oscorp", "soylent", "vandelay")
FAILED = ("duff", "krusty")
UPDATE_FAILED = ("nakatomi",)
PROVISIONING = ("pawnee",)
UPDATING = ("massive",)
DELETING = ("prestige",)
DELETED = ("enron",)
QUEUE_LIMIT = RootCause(
    "InboundQueue",
    "AWS::SQS::Queue",
    "Resource handler returned message: Access to the resource https://sqs.eu-west-1.amazonaws.com/ is denied.",
)


class FleetApi(InMemoryApi):
    """The API in memory, for the several threads of a console."""

    def __init__(self) -> None:
        super().__init__()
        self.executions = self.world.executions = FakeExecutions(self.clock)
        self._turn = threading.Lock()
        self.away: ApiAnswer | Exception | None = None
        """The answer to every request, or why there is none, instead of the API's own."""

    def send(self, request: HttpRequest) -> ApiAnswer:
        with self._turn:
            if isinstance(self.away, Exception):
                raise self.away
            return self.away or super().send(request)

    # Steps in which a fleet is made

    def begin(self) -> None:
        run = self.run
        self.table.begin(run, at=self.clock.now(), release=self.table.release(run.attempt.version))

    def succeed(self, queue: Queue | None = None) -> None:
        run = self.run
        self.clock.advance(timedelta(seconds=3 + len(run.tenant.value) % 5))
        super().succeed(queue or queue_of(run.tenant))
        self.executions.ends[run.execution] = self.clock.now()
        self._let_stand(run, queue or queue_of(run.tenant))

    def _let_stand(self, run: Run, queue: Queue) -> None:
        """The tenant's stack, as its operation has left it."""
        stacks, stack_id = self.world.stacks, stack_arn(run.tenant)
        stacks.now = self.clock.now()
        if run.attempt.operation is Operation.DELETE:
            stacks.change(stack_id, "DELETE_COMPLETE")
            return
        status = "CREATE_COMPLETE" if run.attempt.operation is Operation.CREATE else "UPDATE_COMPLETE"
        stacks.plant(
            Stack(
                *(stack_id, status, "", run.tenant.value, queue, run.attempt.version),
                ours=True,
                changed_at=stacks.now,
            )
        )

    def somebody_deletes_the_stack_of(self, name: str) -> None:
        self.world.stacks.change(stack_arn(TenantId.parse(name)), "DELETE_COMPLETE")

    def _fail(self, cause: RootCause, *, restore: bool) -> None:
        execution = self.run.execution
        super()._fail(cause, restore=restore)
        self.executions.ends[execution] = self.clock.now()
        self.executions.failed.add(execution)

    def has(self, name: str, version: str = VERSION, **labels: str) -> TenantId:
        """A tenant that is ready at this release."""
        tenant = TenantId.parse(name)
        assert self.create(tenant, pin=version, labels=labels, reason="signed up").status == 202
        self.begin()
        self.succeed()
        self.create(tenant, unpin=True)
        self.clock.advance(timedelta(seconds=1))
        return tenant

    def surveyed(self, *findings: Finding) -> None:
        """What the scheduled survey has found."""
        now = self.clock.now()
        self.reconciliations.record_reconciliation(
            Reconciliation(
                SURVEY,
                "berth reconcile",
                Spec(repair=False),
                ReconciliationStatus.DONE,
                now,
                now,
                counts=counted(findings),
                findings=findings,
            )
        )

    def start_rollout(self, **body: object) -> str:
        """A rollout to the current release, whose execution has begun."""
        answer = self.request("POST", "/rollouts", body=body)
        assert answer.status == 202, answer.body
        self.is_now(status=RolloutStatus.RUNNING, execution=execution_arn(self.newest.name))
        return str(answer.body["rolloutId"])


def under_way(api: FleetApi) -> str:
    """A rollout whose second stage is running: a tenant was moved, one failed, two are being moved."""
    stages = [{"size": "1"}, {"size": "5", "tolerated": "2"}, {"size": "rest", "tolerated": "10%", "approval": True}]
    rollout = api.start_rollout(stages=stages, reason="the new dead-letter settings")
    moved, failed, *_ = (TenantId.parse(name) for name in READY_AT_FIRST)
    now = api.clock.now()
    api.came_to(moved, Result.SUCCEEDED, stage=1)
    api.stage_is_now(1, status=StageStatus.DONE, started_at=now, ended_at=now + timedelta(seconds=40))
    api.is_now(current_stage=2)
    api.clock.advance(timedelta(minutes=2))
    api.came_to(failed, Result.FAILED, stage=2, cause=QUEUE_LIMIT)
    api.stage_is_now(2, status=StageStatus.RUNNING, in_flight=2, started_at=now + timedelta(minutes=1))
    api.asked.clear()
    return rollout


TEMPLATE = '{"Resources": {"InboundQueue": {"Type": "AWS::SQS::Queue", "Properties": {"VisibilityTimeout": %d}}}}'
"""The template of a release, with the time that a message is hidden for."""


def queue_of(tenant: TenantId) -> Queue:
    name = f"BerthTenant-{tenant}-InboundQueue"
    return Queue(
        f"arn:aws:sqs:eu-west-1:000000000000:{name}", f"https://sqs.eu-west-1.amazonaws.com/000000000000/{name}"
    )


def a_fleet() -> FleetApi:
    """Tenants in every state."""
    api = FleetApi()
    for number, name in enumerate(READY_AT_NEXT):
        api.has(name, NEXT_VERSION, plan="gold" if number % 3 == 0 else "free")
        api.clock.advance(timedelta(minutes=7))
    for number, name in enumerate(READY_AT_FIRST):
        api.has(name, VERSION, plan="free" if number % 2 else "gold")
        api.clock.advance(timedelta(minutes=5))
    for name in FAILED:
        assert api.create(TenantId.parse(name), labels={"plan": "free"}).status == 202
        api.begin()
        api.fail(QUEUE_LIMIT)
    for name in UPDATE_FAILED:
        tenant = api.has(name, VERSION, plan="gold")
        assert api.upgrade(tenant).status == 202
        api.begin()
        api.fail(QUEUE_LIMIT)
    for name in DELETED:
        tenant = api.has(name)
        assert api.delete(tenant, reason="the contract has ended").status == 202
        api.begin()
        api.succeed()
    for name in DELETING:
        assert api.delete(api.has(name)).status == 202
        api.begin()
    for name in UPDATING:
        assert api.upgrade(api.has(name)).status == 202
        api.begin()
    for name in PROVISIONING:
        assert api.create(TenantId.parse(name), labels={"plan": "free"}).status == 202
        api.begin()
    api.pin(TenantId.parse("vandelay"), VERSION)
    api.clock.advance(timedelta(seconds=40))
    survey = Finding(Kind.MISSING_STACK, "dunder", "The tenant is served, but its stack does not exist.", Remedy.CREATE)
    foreign = Finding(
        Kind.FOREIGN_STACK,
        "BerthTenant-oldco",
        "It has the name of a tenant's stack, but was made for something else.",
        Remedy.NONE,
        advice="CloudTrail shows who made the stack. If nobody needs it, delete it by hand.",
    )
    api.surveyed(survey, foreign)
    api.somebody_deletes_the_stack_of("dunder")
    api.world.published_templates.templates = {VERSION: TEMPLATE % 30, NEXT_VERSION: TEMPLATE % 120}
    api.asked.clear()
    return api
