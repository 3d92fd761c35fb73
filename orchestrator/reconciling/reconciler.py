"""Runs a reconciliation of all tenants: settles dead operations, finds differences, and repairs them if requested.

Two reconciliations at once do no harm: every write is fenced or conditional, and the names of executions are
deterministic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from orchestrator.common.errors import (
    InvalidRequest,
    InvalidTenantId,
    QueueOutOfReach,
    Throttled,
    UnreadableRows,
)
from orchestrator.common.stack_arns import name_of
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import Clock
from orchestrator.reconciling.adopting import Adopting, KnownStacks, is_unlisted, not_adopted
from orchestrator.reconciling.classifying import (
    STANDS,
    Observation,
    classify,
    drifted,
    foreign_stack,
    queue_out_of_reach,
    stack_out_of_reach,
    unreadable_rows,
)
from orchestrator.reconciling.fleet_counts import FleetCounter
from orchestrator.reconciling.ports import (
    ReconciliationLedger,
    StackSurvey,
    SurveyedStack,
    UnlistedPage,
    UnlistedTenants,
)
from orchestrator.reconciling.records import (
    LATEST_SCAN,
    MAX_FINDINGS,
    SETTLING,
    SURVEY,
    Coverage,
    Finding,
    Kind,
    Reconciliation,
    ReconciliationStatus,
    Remedy,
    counted,
)
from orchestrator.reconciling.repairing import Repairing
from orchestrator.reconciling.settling import Settled, Settling, StillOpen, run_of
from orchestrator.releases.ports import Releases
from orchestrator.releases.published import is_known, same_content
from orchestrator.releases.records import Release
from orchestrator.rollouts.ports import RolloutExecutions, RolloutLedger
from orchestrator.tenants.deadlines import DEADLINE
from orchestrator.tenants.fleet import LISTED_STATES
from orchestrator.tenants.operations import CHECK_HOLDER_AFTER
from orchestrator.tenants.own_stack import find_stack, has_unknown_stack, is_ours, why_out_of_reach
from orchestrator.tenants.ports import FleetReader, ListedTenant, Queues, Stack, Stacks, TenantReader
from orchestrator.tenants.records import Audit, Metadata, Queue, Request, TenantState
from orchestrator.tenants.stack_status import condition

STUCK_AFTER = DEADLINE + timedelta(minutes=10)
"""An operation that has been Started for longer than this has exceeded its deadline."""

DRIFT_AT_ONCE = 10
"""The maximum number of drift detections at the same time, so that CloudFormation does not throttle others."""

SCAN_EVERY = timedelta(days=7)
"""How often the scheduled survey scans the whole table."""

READ_UNITS_PER_SECOND = 1_000.0
"""The maximum speed of a scan: a third of the capacity of one partition, which has to serve other reads as well."""

_ROWS_SCANNED = 1_000
_ROWS_ADOPTED_FROM = 100
"""The page size of an adoption. It is smaller, because every tenant of a page may become a finding."""
_PAGE = 200
_DRIFT_PAUSE_SECONDS = 2.0
_SERVED = frozenset({TenantState.READY, TenantState.UPDATE_FAILED})
_BUSY = frozenset({TenantState.PROVISIONING, TenantState.UPDATING, TenantState.DELETING})
_STALLED_AFTER = timedelta(minutes=10)
_MAX_REASON = 1_000
"""The maximum length of an error that is recorded as the reason of an incomplete reconciliation."""


class OutOfTime(Exception):
    """The remaining time is just enough to record the findings so far."""


@dataclass
class Reconciler:
    """Runs one reconciliation. ``has_time`` returns False when the time has run out; ``pause`` sleeps."""

    tenants: TenantReader
    fleet: FleetReader
    releases: Releases
    stacks: Stacks
    survey: StackSurvey
    queues: Queues
    settling: Settling
    repairing: Repairing
    ledger: ReconciliationLedger
    counter: FleetCounter
    rollouts: RolloutLedger
    rollout_executions: RolloutExecutions
    unlisted: UnlistedTenants
    clock: Clock
    has_time: Callable[[], bool] = lambda: True
    pause: Callable[[float], None] = lambda _seconds: None
    _findings: list[Finding] = field(default_factory=list)
    _coverage: Coverage = field(default_factory=Coverage)
    _stuck: int = 0
    _cursor: str | None = None
    _scanned_at: datetime | None = None

    def run(self, requested: Reconciliation) -> Reconciliation:
        """Run the requested reconciliation and record its result, also when the time runs out."""
        running = replace(requested, status=ReconciliationStatus.RUNNING)
        self._progress(running)
        try:
            if requested.spec.adopt:
                return self._adopt(requested, running)
            self._settle_unfinished(requested)
            self._check_rollouts()
            self.counter.renew()
            if requested.spec.survey:
                self._survey(requested, running)
        except OutOfTime:
            return self._end(
                requested, ReconciliationStatus.INCOMPLETE, "The time ran out before everything was checked."
            )
        except Throttled as throttled:
            return self._end(requested, ReconciliationStatus.INCOMPLETE, f"AWS throttled the requests: {throttled}")
        except InvalidRequest as invalid:
            return self._end(requested, ReconciliationStatus.INCOMPLETE, str(invalid))
        except Exception as error:
            # The end is recorded, because the requester waits for it. The function fails all the same, so that the
            # error is logged and raises the alarm.
            self._end(requested, ReconciliationStatus.INCOMPLETE, f"{type(error).__name__}: {error}"[:_MAX_REASON])
            raise
        return self._end(requested, ReconciliationStatus.DONE)

    def _end(self, requested: Reconciliation, status: ReconciliationStatus, reason: str = "") -> Reconciliation:
        ended = self._record(replace(requested, status=status, reason=reason))
        scanned_all = status is ReconciliationStatus.DONE and requested.spec.cursor is None
        scanned_all = scanned_all and (requested.spec.adopt or requested.spec.survey)
        if requested.id not in (SETTLING, SURVEY) and (ended.unlisted or scanned_all):
            self.ledger.record_reconciliation(replace(ended, id=LATEST_SCAN, findings=()))
        return ended

    def _progress(self, running: Reconciliation) -> None:
        """Record the progress of a requested reconciliation. Scheduled ones record only their end."""
        if running.id not in (SETTLING, SURVEY):
            self._record(running)

    def _record(self, reconciliation: Reconciliation) -> Reconciliation:
        recorded = replace(
            reconciliation,
            updated_at=self.clock.now(),
            coverage=self._coverage,
            counts=counted(self._findings),
            findings=tuple(self._findings[:MAX_FINDINGS]),
            repaired=sum(finding.repaired for finding in self._findings),
            ordered=sum(finding.ordered for finding in self._findings),
            stuck=self._stuck,
            cursor=self._cursor,
            scanned_at=self._scanned_at,
        )
        self.ledger.record_reconciliation(recorded)
        return recorded

    def _found(self, finding: Finding) -> None:
        self._findings.append(finding)

    # Dead operations and rollouts

    def _settle_unfinished(self, requested: Reconciliation) -> None:
        """Settle old unfinished operations. The index may lag, so settling reads the rows themselves."""
        now = self.clock.now()
        for audit in self.fleet.unfinished_operations():
            if now - audit.updated_at < CHECK_HOLDER_AFTER:
                return  # The oldest come first.
            self._check_time()
            self._coverage = replace(self._coverage, operations=self._coverage.operations + 1)
            self._settle(audit, requested)

    def _settle(self, audit: Audit, requested: Reconciliation) -> None:
        run = run_of(audit)
        operation = f"{audit.operation} {audit.version or ''}, attempt {audit.attempt}"
        try:
            settlement = self.settling.settle(run, dry_run=requested.spec.dry_run)
        except (Throttled, UnreadableRows) as error:
            settlement = StillOpen(str(error))
        match settlement:
            case Settled(status, reason):
                self._found(
                    Finding(
                        Kind.UNFINISHED,
                        audit.tenant.value,
                        f"{operation} never ended: {audit.execution}",
                        Remedy.SETTLE,
                        result="" if requested.spec.dry_run else f"{status}: {reason}",
                        repaired=not requested.spec.dry_run,
                    )
                )
            case StillOpen(reason) if self.clock.now() - audit.updated_at > STUCK_AFTER:
                self._stuck += 1
                self._found(
                    Finding(
                        Kind.UNFINISHED,
                        audit.tenant.value,
                        f"{operation} is past its deadline: {reason}",
                        Remedy.NONE,
                        f"Check the execution {audit.execution}. If it hangs, stop it: then the operation is settled.",
                    )
                )
            case _:
                pass

    def _check_rollouts(self) -> None:
        for name in sorted(self.rollouts.registry().active):
            rollout = self.rollouts.rollout(name)
            if rollout is None or not rollout.status.active:
                continue
            if self.clock.now() - rollout.created_at < _STALLED_AFTER:
                continue
            if rollout.execution and self.rollout_executions.is_running(rollout.execution):
                continue
            self._found(
                Finding(
                    Kind.STALLED_ROLLOUT,
                    name,
                    f"it is {rollout.status}, but its execution is not running",
                    Remedy.NONE,
                    f"Resume it: berth rollout resume {name}, or abort it: berth rollout abort {name}",
                )
            )

    # Tenants from before Berth

    def _adopt(self, requested: Reconciliation, running: Reconciliation) -> Reconciliation:
        """Adopt tenants up to the maximum number of findings. Another adoption continues from the cursor."""
        adopting = Adopting(self.unlisted, self.tenants, self.stacks, self.queues, self.clock)
        request = Request(by=requested.by, reason=requested.spec.reason)
        self._cursor = requested.spec.cursor
        known = KnownStacks(self._every_stack(), of_unlisted=self._metadata_of_unlisted)
        self._note_listed(known)
        for page in self._pages(requested.spec.cursor, limit=_ROWS_ADOPTED_FROM):
            for tenant_id in page.tenants:
                self._check_time()
                finding = adopting.adopt(tenant_id, known, request=request, dry_run=requested.spec.dry_run)
                if finding is not None:
                    self._coverage = replace(self._coverage, tenants=self._coverage.tenants + 1)
                    self._found(finding)
            self._cursor = page.cursor
            self._progress(running)
            if page.cursor and len(self._findings) + _ROWS_ADOPTED_FROM > MAX_FINDINGS:
                return self._end(requested, ReconciliationStatus.INCOMPLETE, "There are more rows to scan.")
        return self._end(requested, ReconciliationStatus.DONE)

    def _note_listed(self, known: KnownStacks) -> None:
        """Remember the stacks and queues of all tenants in the index."""
        for listed in self._listed():
            self._check_time()
            if listed.stack_id is not None:
                known.given.setdefault(listed.stack_id, listed.tenant)
            if listed.queue is not None:
                known.queues.setdefault(listed.queue.arn, listed.tenant)

    def _metadata_of_unlisted(self) -> Iterator[Metadata]:
        for page in self._pages(None, limit=_ROWS_SCANNED, is_counted=False):
            for tenant_id in page.tenants:
                self._check_time()
                # Unreadable rows become findings when the adoption reaches them.
                with suppress(InvalidTenantId, UnreadableRows):
                    seen = self.unlisted.unlisted(TenantId.parse(tenant_id))
                    if seen is not None and seen.metadata is not None:
                        yield seen.metadata

    def _find_unlisted(self, requested: Reconciliation) -> None:
        """Find tenants that are not in the index, by a scan of the whole table.

        There are new ones only if somebody other than Berth writes to the table, so the scheduled survey scans rarely.
        """
        recently = self._scanned_at is not None and self.clock.now() - self._scanned_at < SCAN_EVERY
        if requested.id == SURVEY and recently:
            return
        found = {finding.subject for finding in self._findings if finding.kind is Kind.UNLISTED}
        for page in self._pages(None, limit=_ROWS_SCANNED):
            for tenant_id in page.tenants:
                self._check_time()
                if tenant_id not in found and is_unlisted(tenant_id, self.unlisted, self.stacks.names):
                    found.add(tenant_id)
                    self._found(not_adopted(tenant_id))
        self._scanned_at = None if found else self.clock.now()

    def _pages(self, cursor: str | None, *, limit: int, is_counted: bool = True) -> Iterator[UnlistedPage]:
        """The pages of the table from the cursor on, slowly enough not to disturb other reads."""
        while True:
            self._check_time()
            page = self.unlisted.page(cursor, limit=limit)
            if is_counted:
                self._coverage = replace(self._coverage, rows=self._coverage.rows + page.rows)
            yield page
            cursor = page.cursor
            if cursor is None:
                return
            self.pause(page.read_units / READ_UNITS_PER_SECOND)

    # Differences between rows and stacks

    def _survey(self, requested: Reconciliation, running: Reconciliation) -> None:
        before = self.ledger.reconciliation(SURVEY)
        self._scanned_at = before.scanned_at if before else None
        releases = {release.version: release for release in self.releases.releases()}
        named, others = self._all_stacks()
        seen: set[str] = set()
        of_listed: dict[str, Stack] = {}
        for listed in self._listed():
            self._check_time()
            name = self.stacks.names.stack_of(listed.tenant)
            if name in seen:
                continue  # The tenant was listed in another state before: a repair has changed its state.
            seen.add(name)
            adopted = others.get(listed.stack_id or "")
            if adopted:
                self._coverage = replace(self._coverage, stacks=self._coverage.stacks + 1)
            stack = adopted or named.get(name)
            if stack:
                of_listed[stack.stack_id] = stack
            self._check_listed(listed, stack, releases, requested)
            if self._coverage.tenants % _PAGE == 0:
                self._progress(running)
        for name, stack in named.items():
            if name not in seen:
                self._check_time()
                self._check_stack(name, stack, releases, requested)
        if requested.spec.detect_drift:
            self._detect_drift([of_listed[stack_id] for stack_id in sorted(of_listed)], running)
        self._find_unlisted(requested)

    def _all_stacks(self) -> tuple[dict[str, Stack], dict[str, Stack]]:
        """The stacks with the prefix of tenants' stack names, by name, and all others, by id, which may be adopted."""
        every_stack, names = self._every_stack(), self.stacks.names
        named = {
            each.name: each.stack
            for each in every_stack
            if each.name.startswith(names.tenant_prefix) and not names.is_legacy(each.name)
        }
        others = {each.stack.stack_id: each.stack for each in every_stack if each.name not in named}
        # All stacks are counted, because they share the quota.
        self._coverage = replace(self._coverage, all_stacks=len(every_stack), stacks=len(named))
        return named, others

    def _every_stack(self) -> list[SurveyedStack]:
        stacks = []
        for surveyed in self.survey.all():
            self._check_time()
            stacks.append(surveyed)
        return stacks

    def _listed(self) -> Iterator[ListedTenant]:
        for state in LISTED_STATES:
            after: str | None = None
            while page := self.fleet.tenants_in(state, after=after, limit=_PAGE):
                yield from page
                after = page[-1].position

    def _check_listed(
        self, listed: ListedTenant, stack: Stack | None, releases: Mapping[str, Release], requested: Reconciliation
    ) -> None:
        self._coverage = replace(self._coverage, tenants=self._coverage.tenants + 1)
        if not listed.readable:
            self._found(unreadable_rows(listed.tenant, listed.root_cause.reason if listed.root_cause else ""))
            return
        if listed.state in _BUSY:
            return
        try:
            if not self._is_as_expected(listed, stack, releases):
                self._check_tenant(listed.tenant, releases, requested)
        except QueueOutOfReach as denied:
            self._found(queue_out_of_reach(listed.tenant, str(denied)))
        except UnreadableRows as unreadable:
            self._found(unreadable_rows(listed.tenant, str(unreadable)))

    def _is_as_expected(self, listed: ListedTenant, stack: Stack | None, releases: Mapping[str, Release]) -> bool:
        """True if the index and the list of stacks show no difference, which is enough for most tenants."""
        if listed.stack_id is not None and not self.stacks.names.reaches(name_of(listed.stack_id)):
            return False
        if listed.state not in _SERVED or listed.queue is None or stack is None or stack.queue != listed.queue:
            return False
        # Stacks of an earlier system do not name their version.
        at_version = stack.version in (None, listed.version) or same_content(
            stack.version, listed.version, releases.get
        )
        known = is_known(listed.version, releases)
        return at_version and known and self.queues.messages(listed.queue.url) is not None

    def _check_stack(self, name: str, stack: Stack, releases: Mapping[str, Release], requested: Reconciliation) -> None:
        """Check a stack that no listed tenant has. Its tenant may be deleted, be from before Berth, or not exist."""
        try:
            tenant = TenantId.parse(stack.tenant_id)
        except InvalidTenantId:
            self._found(foreign_stack(name, stack))
            return
        if self.stacks.names.stack_of(tenant) != name:
            self._found(foreign_stack(name, stack))
            return
        if is_unlisted(tenant.value, self.unlisted, self.stacks.names):
            self._found(not_adopted(tenant.value))
            return
        try:
            self._check_tenant(tenant, releases, requested)
        except QueueOutOfReach as denied:
            self._found(queue_out_of_reach(tenant, str(denied)))
        except UnreadableRows as unreadable:
            self._found(unreadable_rows(tenant, str(unreadable)))

    def _check_tenant(self, tenant: TenantId, releases: Mapping[str, Release], requested: Reconciliation) -> None:
        """Check one tenant, and repair it if requested. The index and the list of stacks lag, so all is read again."""
        if reason := why_out_of_reach(self.tenants.metadata(tenant), self.stacks.names):
            self._found(stack_out_of_reach(tenant, reason))
            return
        observation = self._observe(tenant)
        if observation.live_stack is None and has_unknown_stack(observation.metadata, self.stacks.names):
            self._found(not_adopted(tenant.value))
            return
        finding = classify(observation, releases)
        if finding is None:
            return
        if requested.spec.repair and not requested.spec.dry_run:
            finding = self.repairing.repair(finding, observation, requested.by, reason=requested.spec.reason)
        self._found(finding)

    def _observe(self, tenant: TenantId) -> Observation:
        metadata, audits = self.tenants.metadata(tenant), self.tenants.audits(tenant)
        stack = find_stack(tenant, metadata, self.stacks)
        name = name_of(stack.stack_id) if stack else self.stacks.names.stack_of(tenant)
        queue = metadata.queue if metadata and metadata.published else None
        queue_is_gone = queue is not None and self.queues.messages(queue.url) is None
        ours = stack is None or is_ours(stack, metadata, self.stacks)
        own_queue = self._own_queue(metadata, stack) if stack and ours and _differs(metadata, stack) else None
        # The lock is read last, so that an operation that has begun since is not disturbed.
        return Observation(
            tenant, name, metadata, audits, self.tenants.lock(tenant), stack, queue_is_gone, ours, own_queue
        )

    def _own_queue(self, metadata: Metadata | None, stack: Stack) -> Queue | None:
        """The tenant's queue among the stack's resources. An earlier system's template may give it any logical id."""
        own_queue = self.stacks.queue(stack.stack_id)
        if own_queue is None and metadata and metadata.queue in self.stacks.queues(stack.stack_id).values():
            return metadata.queue
        return own_queue

    def _detect_drift(self, stacks: list[Stack], running: Reconciliation) -> None:
        """Detect the drift of healthy stacks, a few at a time, because each detection takes a while."""
        waiting = [stack for stack in stacks if condition(stack.status) in STANDS]
        detections: dict[str, Stack] = {}
        while waiting or detections:
            self._check_time()
            while waiting and len(detections) < DRIFT_AT_ONCE:
                stack = waiting.pop()
                if detection := self.survey.start_drift_detection(stack.stack_id):
                    detections[detection] = stack
            for detection, stack in list(detections.items()):
                drift = self.survey.drift(detection)
                if drift.done:
                    del detections[detection]
                    self._coverage = replace(self._coverage, drift=self._coverage.drift + 1)
                    if drift.drifted:
                        self._found(drifted(stack, drift.detail))
            self._progress(running)
            if detections:
                self.pause(_DRIFT_PAUSE_SECONDS)

    def _check_time(self) -> None:
        if not self.has_time():
            raise OutOfTime


def _differs(metadata: Metadata | None, stack: Stack) -> bool:
    """True if a served tenant's metadata differs from its stack's outputs."""
    served = metadata is not None and metadata.published
    recorded = (metadata.queue, metadata.stack_id, metadata.version) if metadata else ()
    return served and recorded != (stack.queue, stack.stack_id, stack.version)
