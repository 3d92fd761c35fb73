"""Clock, executions, queues and templates, in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from orchestrator.common.errors import QueueOutOfReach
from orchestrator.common.tenant_ids import TenantId
from orchestrator.releases.records import RecordedReleaseChange, Release, ReleaseState
from orchestrator.releases.service_permissions import Permissions
from orchestrator.tenants.execution_input import is_input_of, machine_input
from orchestrator.tenants.limits import TenantCount
from orchestrator.tenants.messages import Messages
from orchestrator.tenants.recent import ExecutionStatus, RecentExecution
from orchestrator.tenants.records import Attempt, Operation, Queue, Request, Run
from orchestrator.tenants.reviews import Review
from tests.fakes.examples import NOON, execution_arn


class FakeClock:
    def __init__(self, now: datetime = NOON) -> None:
        self._now = now

    def now(self) -> datetime:
        return self._now

    def advance(self, by: timedelta) -> None:
        self._now += by


class FakeExecutions:
    """Executions by name, as Step Functions starts them: a name is used once.

    With a clock it knows when each was started. Otherwise it believes the runs.
    """

    def __init__(self, clock: FakeClock | None = None, *, linger: timedelta = timedelta()) -> None:
        self._clock = clock or FakeClock()
        self._linger = linger
        self.starts: dict[str, datetime] = {}
        self._keeps_time = clock is not None
        self._cut_short: dict[str, datetime] = {}
        self.inputs: dict[str, dict[str, object]] = {}
        """The input of every execution that was ever started."""
        self.started: list[tuple[Attempt, Request]] = []
        self.running: set[str] = set()
        self.asked_about: list[str] = []
        self.looked_for: list[Attempt] = []
        self.waiting: set[str] = set()
        """Task tokens that are being waited on."""
        self.woken: list[str] = []
        self.results: dict[str, Mapping[str, object]] = {}
        """The results that were sent with task tokens that were being waited on."""
        self.made_up_run = True
        self.ends: dict[str, datetime] = {}
        """When executions have ended, if a test says so."""
        self.failed: set[str] = set()
        """Executions that have failed, if a test says so."""
        self.endings: dict[str, str] = {}
        """How those ended that were not aborted."""

    def start(self, attempt: Attempt, request: Request) -> str | None:
        execution = execution_arn(attempt.name)
        if execution in self.inputs:
            return execution if execution in self.running else None
        self.inputs[execution] = machine_input(attempt, request)
        self.started.append((attempt, request))
        if self._keeps_time:
            self.starts[execution] = self._clock.now()
        self.running.add(execution)
        return execution

    def execution_of(self, attempt: Attempt) -> str:
        return execution_arn(attempt.name)

    def find_running(self, attempt: Attempt) -> str | None:
        self.looked_for.append(attempt)
        execution = execution_arn(attempt.name)
        return execution if execution in self.running else None

    def is_running(self, execution: str) -> bool:
        self.asked_about.append(execution)
        return execution in self.running

    def is_berths(self, execution: str) -> bool:
        return execution.startswith(execution_arn(""))

    def confirmed(self, run: Run) -> Run | None:
        """Executions that a test has made up, and that nobody has started, are running."""
        if run.execution not in self.inputs:
            return run if self.made_up_run else None
        given = self.inputs[run.execution]
        if run.execution not in self.running or not is_input_of(given, run.attempt, run.request):
            return None
        return replace(run, started_at=self.starts.get(run.execution, run.started_at))

    def is_over(self, execution: str) -> bool:
        stopped_at = self._cut_short.get(execution)
        if stopped_at is not None and self._linger:
            return self._clock.now() - stopped_at > self._linger
        return not self.is_running(execution)

    def how_it_ended(self, execution: str) -> str:
        return self.endings.get(execution, "was aborted")

    def recent(self, operation: Operation, *, limit: int) -> list[RecentExecution]:
        """An execution that a clock has not seen starts with the clock, and one that has ended took no time."""
        newest_first = [attempt for attempt, _ in reversed(self.started) if attempt.operation is operation]
        return [self._recent(attempt) for attempt in newest_first[:limit]]

    def _recent(self, attempt: Attempt) -> RecentExecution:
        execution = execution_arn(attempt.name)
        started = self.starts.get(execution, self._clock.now())
        if execution in self.running:
            return RecentExecution(attempt.name, execution, ExecutionStatus.RUNNING, started, None)
        ended = self.ends.get(execution, started)
        status = ExecutionStatus.FAILED if execution in self.failed else ExecutionStatus.SUCCEEDED
        return RecentExecution(attempt.name, execution, status, started, ended)

    def is_waiting(self, task_token: str) -> bool:
        return task_token in self.waiting

    def wake(self, task_token: str, result: Mapping[str, object] | None = None) -> bool:
        self.woken.append(task_token)
        was_waiting = task_token in self.waiting
        self.waiting.discard(task_token)
        if was_waiting:
            self.results[task_token] = result or {}
        return was_waiting

    def end(self, execution: str) -> None:
        """End the execution, in any way."""
        self.running.remove(execution)

    def cut_short(self, execution: str, how: str) -> None:
        """Abort the execution, or let it time out. One of its functions may run on for as long as ``linger``."""
        self.end(execution)
        self.endings[execution] = how
        self._cut_short[execution] = self._clock.now()


class FakeUnfinishedWork:
    """The unfinished work of tenants outside their queues."""

    def __init__(self) -> None:
        self.held: dict[TenantId, dict[str, int]] = {}
        self.asked = 0

    def unfinished(self, tenant: TenantId) -> dict[str, int]:
        self.asked += 1
        return self.held.get(tenant, {})


class InMemoryCreateCounts:
    """How many creates each caller has started. ``tests/adapters`` holds it and DynamoDB's to one contract."""

    def __init__(self) -> None:
        self.windows: dict[str, tuple[datetime, set[TenantId]]] = {}

    def count(self, caller: str, tenant: TenantId, *, window: datetime, limit: int) -> datetime | None:
        began, tenants = self.windows.get(caller, (window, set()))
        if began < window:
            began, tenants = window, set()
        if tenant not in tenants and len(tenants) >= limit:
            return began
        self.windows[caller] = began, tenants | {tenant}
        return None

    def is_counted(self, caller: str, tenant: TenantId, *, since: datetime) -> bool:
        began, tenants = self.windows.get(caller, (since, set()))
        return began >= since and tenant in tenants


class InMemoryTenantCounts:
    """The kept number of tenants. ``tests/adapters`` holds it and DynamoDB's to one contract."""

    def __init__(self) -> None:
        self.count = TenantCount(started=0)

    def start(self, creates: int) -> TenantCount:
        self.count = replace(self.count, started=self.count.started + creates)
        return self.count

    def keep(self, tenants: int, at: datetime, *, seen: TenantCount) -> None:
        if seen.at == self.count.at:
            self.count = TenantCount(self.count.started - seen.started, tenants, at)


class FakeQueues:
    """Queues that answer at once, or only after they were asked some times."""

    def __init__(self, *, silent_for: int = 0) -> None:
        self.silent_for = silent_for
        self.asked: list[Queue] = []
        self.held: dict[str, Messages] = {}
        """The messages in each queue, by URL. All other queues are empty."""
        self.dead_letter_queues: dict[str, str] = {}
        self.gone: set[str] = set()
        self.out_of_reach: set[str] = set()
        """The queues that nobody has permission for."""

    def answers(self, queue: Queue) -> bool:
        self.asked.append(queue)
        return len(self.asked) > self.silent_for and queue.url not in self.gone

    def messages(self, url: str) -> Messages | None:
        if url in self.out_of_reach:
            raise QueueOutOfReach(f"Berth has no permission to read queue {url}: AccessDenied")
        return None if url in self.gone else self.held.get(url, Messages(0, 0, 0))

    def exist(self, urls: Sequence[str]) -> dict[str, bool | QueueOutOfReach]:
        found: dict[str, bool | QueueOutOfReach] = {}
        for url in urls:
            try:
                found[url] = self.messages(url) is not None
            except QueueOutOfReach as out_of_reach:
                found[url] = out_of_reach
        return found

    def dead_letter_queue(self, url: str) -> str | None:
        dead_letters = self.dead_letter_queues.get(url)
        return None if self.gone & {url, dead_letters} else dead_letters


class InMemoryReviews:
    """The reviews that are kept. ``tests/adapters`` holds it and DynamoDB's to one contract."""

    def __init__(self) -> None:
        self.kept: dict[str, Review] = {}

    def review(self, move: str) -> Review | None:
        return self.kept.get(move)

    def keep_review(self, review: Review) -> None:
        self.kept.setdefault(review.move, review)


class InMemoryReleaseStates:
    """The state of releases. ``tests/adapters`` holds it and DynamoDB's to one contract."""

    def __init__(self) -> None:
        self.now = ReleaseState()
        self.history: list[RecordedReleaseChange] = []
        self.reads = 0

    def state(self) -> ReleaseState:
        self.reads += 1
        return self.now

    def change(self, state: ReleaseState, change: RecordedReleaseChange) -> bool:
        if state.revision != self.now.revision:
            return False
        self.now = replace(state, revision=state.revision + 1)
        self.history.append(change)
        return True

    def changes(self, *, limit: int) -> Sequence[RecordedReleaseChange]:
        return self.history[::-1][:limit]


class FakePublishedTemplates:
    """Published templates without any queue, unless a test says otherwise."""

    def __init__(self) -> None:
        self.templates: dict[str, str | None] = {}
        """By version; ``None`` if somebody has changed the template since."""

    def published(self, release: Release) -> str | None:
        return self.templates.get(release.version, '{"Resources": {}}')


class FakeStackPolicies:
    """The policies that the operator has named for tenants' stacks: none, unless a test says otherwise."""

    def __init__(self) -> None:
        self.actions: frozenset[str] = frozenset()

    def permissions(self) -> Permissions:
        return Permissions(self.actions)


class FakeTemplates:
    def __init__(self, uploads: dict[str, bytes] | None = None) -> None:
        self.uploads = uploads or {}
        self.published: dict[tuple[str, str], bytes] = {}

    def read(self, key: str) -> bytes:
        return self.uploads[key]

    def publish(self, version: str, digest: str, template: bytes) -> str:
        self.published[version, digest] = template
        return f"https://s3.eu-west-1.amazonaws.com/releases/{version}/{digest}.json"
