"""The functions over fakes that note every write: the control plane that bad input comes to."""

from __future__ import annotations

import http.client
import importlib
import io
import json
import logging
import re
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, is_dataclass, replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator.adapters.ports import AwsPorts
from orchestrator.adapters.settings import Settings
from orchestrator.common.callers import digest_of
from orchestrator.common.stack_arns import Location, StackArn
from orchestrator.common.tenant_ids import TenantId
from orchestrator.composition import UseCases
from orchestrator.rollouts.counting import admission
from orchestrator.rollouts.pacing import Pace
from orchestrator.rollouts.records import (
    Item,
    Result,
    Rollout,
    RolloutStatus,
    Share,
    Spec,
    Stage,
    StageSpec,
    StageStatus,
    TenantOutcome,
)
from orchestrator.tenants.listings import ListedTenant
from orchestrator.tenants.records import Status, TenantState
from orchestrator.tenants.stack_ports import ResourceEvent, ResourceState
from orchestrator.tenants.stack_resources import StackResource
from stacks.common.function_code import module_of
from tests.fakes import (
    ACME,
    EXPLICIT,
    NEXT_VERSION,
    NOON,
    VERSION,
    FakeAlarms,
    FakeClock,
    FakeExecutions,
    FakeIssuer,
    FakeQueues,
    FakeRolloutExecutions,
    FakeStacks,
    FakeTemplates,
    FakeUnfinishedWork,
    InMemoryCreateCounts,
    InMemoryCreateTurns,
    InMemoryManifests,
    InMemoryRollouts,
    InMemoryTable,
    InMemoryTenantCounts,
    a_release,
    a_run,
    an_audit,
    execution_arn,
    some_metadata,
    take,
)
from tests.fakes.others import FakePublishedTemplates, InMemoryReleaseStates, InMemoryReviews
from tests.fakes.pool import InMemoryPool
from tests.fakes.reconciling import FakeSurvey, InMemoryReconciliations
from tests.functions import forget_functions

RESPONSE_URL = (
    "https://cloudformation-custom-resource-response-euwest1.s3.eu-west-1.amazonaws.com/answer?Signature=a%2Fb"
)
TEMPLATE = b'{\n  "Resources": {}\n}\n'
RUNNING = TenantId.parse("running")
"""A tenant whose create is under way."""
RUN = a_run(tenant=RUNNING)
ROLLOUT = "20261116-120000-abcd"
RECONCILIATION = "20261116-120000-0123"

PROOF = "what only API Gateway knows"
HERE = Location.parse("aws:eu-west-1:000000000000")
AT_WORK = "a-team-at-work"
"""The stack that CloudFormation is creating."""
OWN_STACK = "arn:aws:cloudformation:eu-west-1:000000000000:stack/Berth/1"
DEPLOYING = {
    f"{kind.split('::')[1]}{request}": ResourceState(kind, f"{request.upper()}_IN_PROGRESS", "known", NOON)
    for kind in ("Custom::Release", "Custom::Rollout", "Custom::ApiProof")
    for request in ("Create", "Update", "Delete")
}
"""The resources that CloudFormation is at in the control plane's own stack."""
ENVIRONMENT = {
    "BERTH_STACK_ID": OWN_STACK,
    "BERTH_API": "api-1",
    "BERTH_API_STAGE": "$default",
    "BERTH_API_PROOF_DIGEST": digest_of(PROOF),
    "BERTH_NAME": "Berth",
    "BERTH_VERSION": "0.10.0",
    "BERTH_TEMPLATE_VERSION": NEXT_VERSION,
    "BERTH_LOCATION": "aws:eu-west-1:000000000000",
    "BERTH_TENANT_QUEUE_MACHINE": "arn:aws:states:eu-west-1:000000000000:stateMachine:tenant-queue",
    "BERTH_ROLLOUT_CONCURRENCY": "8",
    "BERTH_EMPTY_FOR_SECONDS": "60",
    "BERTH_STACK_EVENTS": "true",
    "BERTH_MAX_TENANTS": "1900",
    "BERTH_CREATES_PER_MINUTE": "60",
    "BERTH_CREATE_ON_GET_QUEUE": "true",
    "BERTH_RETRY_AFTER_SECONDS": "5",
    "BERTH_METADATA_SERVICE_TOKEN": "arn:aws:lambda:eu-west-1:000000000000:function:metadata",
    "BERTH_DEAD_LETTER_QUEUES": '{"events": "https://sqs.eu-west-1.amazonaws.com/0/dead"}',
}

READS = frozenset(
    {
        *("metadata", "audits", "history", "lock", "tenants_in", "versions_in_use", "unfinished_operations"),
        *("tenants_in_brief", "relistings"),
        *("count_tenants", "review", "published", "turns", "first_ticket", "is_waiting", "pool"),
        *(
            "release",
            "releases",
            "state",
            "changes",
            "stack_output",
            "is_running",
            "is_over",
            "how_it_ended",
            "find_running",
            "execution_of",
        ),
        *(
            "resource",
            "stack_status",
            "find",
            "queue",
            "changes",
            "template_digest",
            "events",
            "answers",
            "messages",
            "unfinished",
            "dead_letter_queue",
            "read",
            "issue",
        ),
        *("all", "drift", "stack_limit", "concurrency", "unknown", "went_off", "reconciliation"),
        *(
            "orders",
            "rollout",
            "stages",
            "stage",
            "rollouts",
            "registry",
            "tenant_outcome",
            "outcomes",
            "failures",
            "throttles",
        ),
    }
)
"""Every other call has an effect."""


class Watched:
    """A fake whose effects are noted. The one behind it can be replaced without anybody noticing."""

    def __init__(self, effects: list[str]) -> None:
        self.effects = effects
        self.fake: Any = None

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.fake, name)
        if name in READS or not callable(found):
            return found

        def noted(*given: Any, **named: Any) -> Any:
            _check_storable(name, given, named)
            came = found(*given, **named)
            # A condition that does not hold lets nothing through; a tenant's lock that another has, neither.
            if came is not False and not (name == "begin" and came is not None):
                self.effects.append(name)
            return came

        return noted


def _check_storable(name: str, *given: object) -> None:
    """Refuse texts that cannot be sent to AWS, which takes UTF-8."""
    text = json.dumps(given, default=lambda value: asdict(value) if is_dataclass(value) else str(value))  # type: ignore[call-overload]
    try:
        json.dumps(json.loads(text), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise AssertionError(f"{name} was given half a character, which no AWS service takes") from None


class Table(InMemoryTable):
    """DynamoDB refuses to go on from where the query would never have come by."""

    def tenants_in(
        self, state: TenantState, *, version: str | None = None, prefix: str = "", after: str | None = None, limit: int
    ) -> list[ListedTenant]:
        begins = "" if version is None else f"{version}#{prefix}"
        assert after is None or after.startswith(begins), "outside of the query's boundaries"
        return list(super().tenants_in(state, version=version, prefix=prefix, after=after, limit=limit))


class Executions(FakeExecutions):
    """Step Functions is particular about names, and about how much it is given."""

    def start_by_name(self, _machine: str, name: str, given: dict[str, object]) -> str:
        assert re.fullmatch("[A-Za-z0-9_.-]{1,80}", name), f"{name!a} is no execution's name"
        assert len(json.dumps(given)) <= 262_144, "the input is too large"
        return execution_arn(name)


class Rollouts(InMemoryRollouts):
    def throttles(self) -> int:
        return 0


class Stacks(FakeStacks):
    def events(self, stack_id: str) -> Iterable[ResourceEvent]:
        return super().events(stack_id) if stack_id in self.all else ()


class Resources:
    """One stack is at its resource, whatever that is, and the control plane's at some; all others rest."""

    def resource(self, resource: StackResource) -> ResourceState | None:
        assert resource.stack.location == HERE, "another account's"
        if str(resource.stack) == OWN_STACK:
            return DEPLOYING.get(resource.logical_id)
        status = "CREATE_IN_PROGRESS" if resource.stack.name == AT_WORK else "CREATE_COMPLETE"
        return ResourceState("Custom::TenantQueue", status, "acme", NOON - timedelta(days=1))

    def stack_status(self, stack: StackArn) -> str:
        assert stack.location == HERE, "another account's"
        return "CREATE_IN_PROGRESS"


class AccountFunctions:
    """Functions of an account for which AWS returns no concurrency limit."""

    def concurrency(self) -> None:
        return None


class Survey(FakeSurvey):
    def stack_limit(self) -> int:
        return 2_000


class Nowhere(http.client.HTTPConnection):
    def connect(self) -> None:
        raise ConnectionRefusedError("There is nobody at that address.")


class NobodyAnswers(urllib.request.HTTPHandler, urllib.request.HTTPSHandler):
    """Checks an address as the real one does, and then finds nobody there."""

    def http_open(self, request: urllib.request.Request) -> Any:
        return self.do_open(Nowhere, request)

    def https_open(self, request: urllib.request.Request) -> Any:
        return self.do_open(Nowhere, request)


class LogSink(io.TextIOBase):
    """A standard output like Lambda's, which is UTF-8."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.keeps = False

    def write(self, text: str) -> int:
        text.encode()
        if self.keeps:
            self.lines.append(text)
        return len(text)


class ControlPlane:
    """The functions as Lambda calls them, with everything that they bring about."""

    def __init__(self, fakes: Callable[[], dict[str, Any]] | None = None) -> None:
        """``fakes`` are what the functions work on, made anew whenever all is to be as before."""
        self._fakes = fakes or _fakes
        self.effects: list[str] = []
        self.answers: list[dict[str, Any]] = []
        """The responses to CloudFormation."""
        self.addresses: list[str] = []
        """Wherever something was sent to, whether or not somebody is there."""
        self.logs = LogSink()
        ports = AwsPorts(Settings(ENVIRONMENT))
        self.use_cases = UseCases(ports)
        self._watched = {name: Watched(self.effects) for name in self._fakes()}
        fixed = {"clock": FakeClock(), "credentials": FakeIssuer(), "pause": lambda _seconds: None}
        vars(ports).update(self._watched, reconciliation_starter=self._watched["reconciliation_table"], **fixed)
        self._opener = urllib.request.OpenerDirector()
        self._opener.add_handler(NobodyAnswers())
        self._opener.add_handler(urllib.request.UnknownHandler())
        self._handlers: dict[str, Any] = {}
        self.as_before()

    def as_before(self) -> None:
        """Restore the initial state."""
        for name, fake in self._fakes().items():
            self._watched[name].fake = fake
        self.forget()

    def forget(self) -> None:
        self.effects.clear()
        self.answers.clear()
        self.addresses.clear()

    def fake(self, name: str) -> Any:
        """The fake that the functions use under that name now."""
        return self._watched[name].fake

    def load(self, name: str) -> Any:
        if name not in self._handlers:
            self._handlers[name] = importlib.import_module(module_of(name)).handler
        return self._handlers[name]

    def call(self, name: str, event: object) -> Any:
        context = SimpleNamespace(get_remaining_time_in_millis=lambda: 900_000)
        return self.load(name)(event, context)

    def urlopen(self, request: urllib.request.Request, timeout: float) -> Any:
        self.addresses.append(request.full_url)
        if request.full_url != RESPONSE_URL:
            return self._opener.open(request, timeout=timeout)
        assert isinstance(request.data, bytes)
        self.answers.append(json.loads(request.data))
        return nullcontext()


def _fakes() -> dict[str, Any]:
    table, executions, stacks = Table(), Executions(), Stacks()
    rollouts, manifests, rollout_executions = Rollouts(), InMemoryManifests(), FakeRolloutExecutions()
    for version in (VERSION, NEXT_VERSION):
        table.record_release(a_release(version))
    planted = stacks.plant_done(ACME, template_url=a_release().template_url)
    metadata = some_metadata(labels={"plan": "gold"})
    table.plant_audit(an_audit(Status.SUCCESS))
    table.plant_metadata(metadata)
    take(table, RUN)
    executions.start(RUN.attempt, RUN.request)
    plant_rollout(rollouts, manifests, rollout_executions)
    assert metadata.stack_id == planted.stack_id
    return {
        "table": table,
        "create_turns": InMemoryCreateTurns(),
        "warm_stacks": InMemoryPool(),
        "create_counts": InMemoryCreateCounts(),
        "tenant_counts": InMemoryTenantCounts(),
        "executions": executions,
        "stacks": stacks,
        "observed_stacks": stacks,
        "writable_stacks": stacks,
        "stack_resources": Resources(),
        "queues": FakeQueues(),
        "templates": FakeTemplates({"template.json": TEMPLATE}),
        "published_templates": FakePublishedTemplates(),
        "reviews": InMemoryReviews(),
        "release_states": InMemoryReleaseStates(),
        "unfinished_work": FakeUnfinishedWork(),
        "survey": Survey(stacks),
        "account_functions": AccountFunctions(),
        "reconciliation_table": InMemoryReconciliations(),
        "rollout_table": rollouts,
        "manifests": manifests,
        "alarms": FakeAlarms(errors=None),
        "rollout_executions": rollout_executions,
    }


def plant_rollout(rollouts: InMemoryRollouts, manifests: InMemoryManifests, executions: FakeRolloutExecutions) -> None:
    stage_spec, item = StageSpec(None, 1, Share(0)), Item(ACME, NEXT_VERSION)
    rollout = Rollout(
        ROLLOUT,
        Spec(NEXT_VERSION, (stage_spec,)),
        EXPLICIT.by,
        NOON,
        planned=(1,),
        total=1,
        skipped={},
        status=RolloutStatus.RUNNING,
    )
    stage = Stage(
        ROLLOUT,
        1,
        stage_spec,
        total=1,
        tolerated=0,
        manifest=manifests.write(ROLLOUT, [item]),
        pace=Pace.initial(1),
        status=StageStatus.RUNNING,
    )
    rollouts.register(rollout, [stage], revision=0)
    running = TenantOutcome(ROLLOUT, 1, item, Result.RUNNING, NOON, execution="child")
    rollouts.admit(admission(stage, NOON), running, before=None)
    execution = executions.start_rollout(rollout)
    rollouts.change(replace(rollout, execution=execution))


@contextmanager
def a_control_plane(fakes: Callable[[], dict[str, Any]] | None = None) -> Iterator[ControlPlane]:
    """The functions, loaded anew over fakes. They find their use cases as they are loaded."""
    plane = ControlPlane(fakes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_LAMBDA_LOG_LEVEL", "FATAL")
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        patch.setattr(urllib.request, "urlopen", plane.urlopen)
        forget_functions()
        # Before the functions are loaded, which import it from here.
        patch.setattr(importlib.import_module("lambdas.observing"), "count", lambda *_: None)
        patch.setattr(importlib.import_module("lambdas.runtime"), "use_cases", plane.use_cases)
        _log_into(plane.logs, patch)
        yield plane
    forget_functions()


def _log_into(sink: LogSink, patch: pytest.MonkeyPatch) -> None:
    handler = importlib.import_module("lambdas.observing").logger.registered_handler
    # A field that cannot be written fails the test.
    patch.setattr(handler, "emit", lambda record: sink.write(f"{handler.format(record)}\n"))


def switch_log(*, on: bool) -> None:
    """Switch the functions' log on or off."""
    name = importlib.import_module("lambdas.observing").logger.name
    logging.getLogger(name).setLevel(logging.DEBUG if on else logging.CRITICAL)
