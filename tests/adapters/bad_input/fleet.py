"""The fleet that forged events are about: tenants in every state, and what attackers have made beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from typing import Any

from orchestrator.common.stack_arns import StackArn
from orchestrator.common.tenant_ids import TenantId
from orchestrator.reconciling.records import Reconciliation, ReconciliationStatus
from orchestrator.reconciling.records import Spec as ReconciliationSpec
from orchestrator.rollouts.pacing import Pace
from orchestrator.rollouts.records import (
    Item,
    Rollout,
    RolloutStatus,
    Share,
    Spec,
    Stage,
    StageSpec,
    StageStatus,
)
from orchestrator.tenants.execution_input import machine_input
from orchestrator.tenants.messages import Messages
from orchestrator.tenants.ports import Publication
from orchestrator.tenants.records import Metadata, Operation, Queue, Request, RootCause, Run, Status
from orchestrator.tenants.stack_ports import ChangeSetState, ResourceState, Stack
from orchestrator.tenants.stack_resources import StackResource
from tests.adapters.bad_input.world import (
    HERE,
    OWN_STACK,
    RECONCILIATION,
    RUNNING,
    TEMPLATE,
    AccountFunctions,
    Executions,
    Rollouts,
    Stacks,
    Survey,
    Table,
    plant_rollout,
)
from tests.fakes import (
    ACME,
    EXPLICIT,
    NAMES,
    NEXT_VERSION,
    NOON,
    VERSION,
    FakeAlarms,
    FakeQueues,
    FakeResources,
    FakeRolloutExecutions,
    FakeTemplates,
    FakeUnfinishedWork,
    InMemoryCreateCounts,
    InMemoryCreateTurns,
    InMemoryManifests,
    InMemoryTenantCounts,
    a_release,
    a_resource,
    a_run,
    an_audit,
    parameters_of,
    stack_arn,
    take,
)
from tests.fakes.others import FakePublishedTemplates, InMemoryReleaseStates, InMemoryReviews
from tests.fakes.pool import InMemoryPool
from tests.fakes.reconciling import InMemoryReconciliations

# Tenants, each named after its state

PINNED = TenantId.parse("pinned")
LEGACY = TenantId.parse("from-before")
"""Served since before rows named the tenant's stack, and from a stack of an earlier deployment's role."""
OWNED = TenantId.parse("owned")
"""Brought into being by a resource of another team, which is not being changed."""
CHANGING = TenantId.parse("changing")
"""The same, and CloudFormation is updating that resource now."""
UPDATING = TenantId.parse("updating")
LOST = TenantId.parse("lost")
"""Served; an update of it says Started, though its execution has lost the lock and ended."""
DRAINING = TenantId.parse("draining")
"""Its delete waits for messages to be received."""
DELETING = TenantId.parse("deleting")
DELETED = TenantId.parse("deleted")
FAILED = TenantId.parse("failed")
SQUATTED = TenantId.parse("squatted")
"""Nothing is recorded of it, and an attacker has made a stack under its name."""
UNKNOWN = TenantId.parse("nobody")

SQUATTERS = (SQUATTED, DELETED)
"""The tenants under whose stack names attackers have made stacks."""

SERVED = (ACME, PINNED, LEGACY, OWNED, CHANGING, UPDATING, LOST)
TENANTS = (*SERVED, RUNNING, DRAINING, DELETING, DELETED, FAILED, SQUATTED, UNKNOWN)

# Teams' resources

BILLING = a_resource("Queue", stack="billing")
AT_WORK = a_resource("Queue", stack="at-work")
NEIGHBOUR = a_resource("Topic", stack="at-work")
"""Another resource of the stack that is at work. It is no tenant's queue."""

DEPLOYED = {"Release": "Custom::Release", "Rollout": "Custom::Rollout", "Proof": "Custom::ApiProof"}
"""The resources of the control plane's own stack, which is not being deployed."""

# Secrets, none of which may be in an answer or a log

TASK_TOKEN = "the-task-token-that-nobody-may-read"
ROLLOUT_TOKEN = "the-rollout-token-that-nobody-may-read"

AWAITING = "20261116-110000-0a0a"
"""A rollout that waits for an operator."""
RECONCILED = "20261116-110000-0b0b"
"""A reconciliation that is over."""

YESTERDAY = NOON - timedelta(days=1)
A_WHILE_AGO = NOON - timedelta(hours=1)


@cache
def own_queue(tenant: TenantId) -> Queue:
    """The queue among the resources of the tenant's own stack, as CloudFormation names it."""
    name = f"{NAMES.stack_of(tenant)}-Inbound-8ZRRJLB7LZ8T"
    return Queue(
        f"arn:aws:sqs:{HERE.region}:{HERE.account}:{name}",
        f"https://sqs.{HERE.region}.amazonaws.com/{HERE.account}/{name}",
    )


def squatters_queue(tenant: TenantId) -> Queue:
    """One that an attacker has made in this account, in a stack that bears the tenant's stack name."""
    name = f"{NAMES.stack_of(tenant)}-Mine-0OO0O0OO0OO0"
    return Queue(
        f"arn:aws:sqs:{HERE.region}:{HERE.account}:{name}",
        f"https://sqs.{HERE.region}.amazonaws.com/{HERE.account}/{name}",
    )


@dataclass(frozen=True, slots=True)
class Owners:
    """Which runs hold a tenant's lock, and which wait for their turn."""

    holders: Mapping[TenantId, Run]
    waiting: Run
    ended: tuple[Run, ...]


class Resources(FakeResources):
    def resource(self, resource: StackResource) -> ResourceState | None:
        assert resource.stack.location == HERE, "another account's"
        return super().resource(resource)

    def stack_status(self, stack: StackArn) -> str | None:
        assert stack.location == HERE, "another account's"
        return super().stack_status(stack)


class HandingOver(Executions):
    """Notes what is handed over to the machine that answers other teams' stacks. It runs what was started, only."""

    def __init__(self) -> None:
        super().__init__()
        self.made_up_run = False
        self.handed_over: list[str] = []

    def start_by_name(self, machine: str, name: str, given: dict[str, object]) -> str:
        self.handed_over.append(name)
        return super().start_by_name(machine, name, given)


class Fleet:
    """The fakes with the whole fleet in them. Whatever happened to a tenant has happened by the code that does it."""

    def __init__(self) -> None:
        self.table, self.executions, self.stacks, self.queues = Table(), HandingOver(), Stacks(), FakeQueues()
        self.resources = Resources()
        self.rollouts, self.manifests = Rollouts(), InMemoryManifests()
        self.rollout_executions = FakeRolloutExecutions()
        self.reconciliations = InMemoryReconciliations()
        for version in (VERSION, NEXT_VERSION):
            self.table.record_release(a_release(version))
        self._serve_tenants()
        self._begin_operations()
        self._leave_remains()
        self._show_resources()
        self._plant_rollouts()
        self._ask_for_reconciliations()

    def as_fakes(self) -> dict[str, Any]:
        return {
            "table": self.table,
            "create_turns": InMemoryCreateTurns(),
            "warm_stacks": InMemoryPool(),
            "create_counts": InMemoryCreateCounts(),
            "tenant_counts": InMemoryTenantCounts(),
            "executions": self.executions,
            "stacks": self.stacks,
            "observed_stacks": self.stacks,
            "writable_stacks": self.stacks,
            "stack_resources": self.resources,
            "queues": self.queues,
            "published_templates": FakePublishedTemplates(),
            "reviews": InMemoryReviews(),
            "release_states": InMemoryReleaseStates(),
            "unfinished_work": FakeUnfinishedWork(),
            "templates": FakeTemplates({"template.json": TEMPLATE}),
            "survey": Survey(self.stacks),
            "account_functions": AccountFunctions(),
            "reconciliation_table": self.reconciliations,
            "rollout_table": self.rollouts,
            "manifests": self.manifests,
            "alarms": FakeAlarms(errors=None),
            "rollout_executions": self.rollout_executions,
        }

    # Those that are served

    def _serve_tenants(self) -> None:
        self._serve(ACME, replace(EXPLICIT, labels={"plan": "gold"}))
        self._serve(PINNED, replace(EXPLICIT, pin=VERSION))
        for tenant, resource in ((OWNED, BILLING), (CHANGING, AT_WORK)):
            self._serve(tenant, Request(by=str(resource), resource=resource, explicit=True, labels={"team": "billing"}))
            self._label(tenant, {"team": "billing"})
        for tenant in (UPDATING, LOST):
            self._serve(tenant, Request(by="arn:aws:iam::000000000000:role/platform"))
        self._serve_one_from_before()
        lost = a_run(tenant=LOST, operation=Operation.UPDATE, version=NEXT_VERSION, started_at=A_WHILE_AGO)
        self.table.plant_audit(
            an_audit(
                Status.STARTED,
                Operation.UPDATE,
                tenant=LOST,
                version=NEXT_VERSION,
                at=A_WHILE_AGO,
                execution=lost.execution,
                request=lost.request,
            )
        )
        self._ran(lost)

    def _serve(self, tenant: TenantId, request: Request, *, at: Any = YESTERDAY) -> Stack:
        stack = self.stacks.plant_done(tenant, template_url=a_release().template_url, queue=own_queue(tenant))
        run = a_run(tenant=tenant, request=request, started_at=at)
        assert take(self.table, run) is None
        published = Publication(stack.stack_id, own_queue(tenant), VERSION, "a fingerprint", run.request.requester)
        self.table.publish(run, published, at=at)
        self._ran(run)
        return stack

    def _label(self, tenant: TenantId, labels: Mapping[str, str]) -> None:
        metadata = self.table.metadata(tenant)
        assert metadata
        self.table.plant_metadata(replace(metadata, labels=labels))

    def _serve_one_from_before(self) -> None:
        self.stacks.plant_done(LEGACY, queue=own_queue(LEGACY), ours=False)
        self.table.plant_audit(an_audit(Status.SUCCESS, tenant=LEGACY, at=YESTERDAY))
        self.table.plant_metadata(Metadata(LEGACY, own_queue(LEGACY), None, VERSION, YESTERDAY, YESTERDAY))

    def _ran(self, run: Run) -> None:
        """The run's execution was started, and has ended."""
        self.executions.inputs[run.execution] = machine_input(run.attempt, run.request)

    # Those that an operation is at

    def _begin_operations(self) -> None:
        creating = self.stacks.plant(
            Stack(self.stacks.stack_id(RUNNING), "CREATE_IN_PROGRESS", "", RUNNING.value, None, None, ours=True)
        )
        self.stacks.resources[creating.stack_id] = own_queue(RUNNING)
        updated = self._stack(UPDATING)
        changes = self.stacks.add_changes(
            *(updated, "berth-a-random-name", a_release(NEXT_VERSION).template_url),
            state=ChangeSetState.EXECUTED,
            parameters=parameters_of(UPDATING),
        )
        for tenant in (DRAINING, DELETING):
            self._serve(tenant, EXPLICIT)
        self.queues.held[own_queue(DRAINING).url] = Messages(5, 0, 0)
        for run in OWNERS.holders.values():
            self.executions.start(run.attempt, run.request)
            assert take(self.table, run) is None
            self.table.remember_token(run, f"{TASK_TOKEN} of {run.tenant}")
            self.executions.waiting.add(f"{TASK_TOKEN} of {run.tenant}")
        self.table.remember_change_set(OWNERS.holders[UPDATING], changes)
        self.stacks.change(updated, "UPDATE_IN_PROGRESS")
        self.stacks.change(self._stack(DELETING), "DELETE_IN_PROGRESS")
        self.executions.start(OWNERS.waiting.attempt, OWNERS.waiting.request)

    def _stack(self, tenant: TenantId) -> str:
        found = self.stacks.find(NAMES.stack_of(tenant))
        assert found
        return found.stack_id

    # Those that are not there, any more or yet

    def _leave_remains(self) -> None:
        stack = self._serve(DELETED, EXPLICIT)
        delete = a_run(tenant=DELETED, operation=Operation.DELETE, started_at=A_WHILE_AGO)
        assert take(self.table, delete) is None
        self.stacks.change(stack.stack_id, "DELETE_COMPLETE")
        self.table.remove(delete, at=A_WHILE_AGO)
        self._ran(delete)
        failed = a_run(tenant=FAILED, started_at=A_WHILE_AGO)
        assert take(self.table, failed) is None
        self.table.fail(failed, RootCause("InboundQueue", "AWS::SQS::Queue", "Access denied."), A_WHILE_AGO)
        self._ran(failed)
        for tenant in SQUATTERS:
            self.stacks.plant_done(tenant, queue=squatters_queue(tenant), ours=False)

    def _show_resources(self) -> None:
        self.resources.put(BILLING, "CREATE_COMPLETE", OWNED.value, stack="CREATE_COMPLETE")
        self.resources.put(AT_WORK, "UPDATE_IN_PROGRESS", CHANGING.value, stack="UPDATE_IN_PROGRESS")
        for name, kind in DEPLOYED.items():
            deployed = StackResource(StackArn.parse(OWN_STACK), name)
            self.resources.put(deployed, "UPDATE_COMPLETE", "known", stack="UPDATE_COMPLETE", kind=kind)
        self.resources.put(
            NEIGHBOUR, "UPDATE_IN_PROGRESS", "a-topic", stack="UPDATE_IN_PROGRESS", kind="AWS::SNS::Topic"
        )

    def _plant_rollouts(self) -> None:
        plant_rollout(self.rollouts, self.manifests, self.rollout_executions)
        stage_spec, item = StageSpec(None, 1, Share(0), approval=True), Item(PINNED, NEXT_VERSION)
        rollout = Rollout(
            *(AWAITING, Spec(NEXT_VERSION, (stage_spec,)), EXPLICIT.by, A_WHILE_AGO),
            planned=(1,),
            total=1,
            skipped={},
            status=RolloutStatus.RUNNING,
        )
        manifest = self.manifests.write(AWAITING, [item])
        stage = Stage(AWAITING, 1, stage_spec, 1, 0, manifest, Pace.initial(1), StageStatus.AWAITING_APPROVAL)
        assert self.rollouts.register(rollout, [stage], revision=1)
        execution = self.rollout_executions.start_rollout(rollout)
        self.rollout_executions.waiting.add(ROLLOUT_TOKEN)
        assert self.rollouts.change(replace(rollout, execution=execution, task_token=ROLLOUT_TOKEN))

    def _ask_for_reconciliations(self) -> None:
        for name, status in ((RECONCILIATION, ReconciliationStatus.PENDING), (RECONCILED, ReconciliationStatus.DONE)):
            spec = ReconciliationSpec(repair=False)
            self.reconciliations.recorded[name] = Reconciliation(name, EXPLICIT.by, spec, status, NOON, NOON)


def the_fleet() -> dict[str, Any]:
    return Fleet().as_fakes()


def _owners() -> Owners:
    """Operations that were begun a minute ago, and one whose execution waits for its turn."""
    since = NOON - timedelta(minutes=1)
    patient = replace(EXPLICIT, drain_seconds=600)
    holders = (
        a_run(tenant=RUNNING, started_at=since, request=replace(EXPLICIT, labels={"plan": "silver"})),
        a_run(tenant=UPDATING, operation=Operation.UPDATE, version=NEXT_VERSION, started_at=since),
        a_run(tenant=DRAINING, operation=Operation.DELETE, started_at=since, request=patient),
        a_run(tenant=DELETING, operation=Operation.DELETE, started_at=since),
    )
    ended = (
        *(a_run(tenant=tenant, started_at=YESTERDAY) for tenant in (ACME, PINNED, OWNED, UPDATING, DELETED)),
        a_run(tenant=DELETED, operation=Operation.DELETE, started_at=A_WHILE_AGO),
        a_run(tenant=FAILED, started_at=A_WHILE_AGO),
        a_run(tenant=LOST, operation=Operation.UPDATE, version=NEXT_VERSION, started_at=A_WHILE_AGO),
    )
    waiting = a_run(tenant=UPDATING, operation=Operation.DELETE, started_at=since)
    return Owners({run.tenant: run for run in holders}, waiting, ended)


OWNERS = _owners()


def _stacks_by_tenant() -> dict[TenantId, list[str]]:
    everywhere = Fleet().stacks.all
    return {
        tenant: [stack for stack in everywhere if stack.split("/")[1] == NAMES.stack_of(tenant)] or [stack_arn(tenant)]
        for tenant in TENANTS
    }


STACKS = _stacks_by_tenant()
"""Every stack that bears a tenant's stack name, whoever made it, deleted ones included. Who is served has one."""
