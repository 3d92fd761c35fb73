"""The whole fleet, reconciled: what died is settled, what differs is found, and repaired if that was asked for.

Two of them at once do no harm: every write is fenced or conditional, and every order has a deterministic name.
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
from orchestrator.reconciling.ports import (
    ReconciliationLedger,
    StackSurvey,
    SurveyedStack,
    UnlistedPage,
    UnlistedTenants,
)
from orchestrator.reconciling.records import (
    LATEST_LOOK,
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
"""An operation that says Started for longer than this has not kept its own deadline."""

DRIFT_AT_ONCE = 10
"""As many stacks are compared with their resources at once: CloudFormation has other things to do."""

SCAN_EVERY = timedelta(days=7)
"""How often surveys that run by themselves look at every row of the table."""

READ_UNITS_PER_SECOND = 1_000.0
"""How fast the table is looked at: a third of what one of its partitions bears, which has to serve others as well."""

_ROWS_SCANNED = 1_000
_ROWS_ADOPTED_FROM = 100
"""Fewer rows at once where something is done about each tenant in them: all of them have to be told."""
_PAGE = 200
_DRIFT_PAUSE_SECONDS = 2.0
_SERVED = frozenset({TenantState.READY, TenantState.UPDATE_FAILED})
_BUSY = frozenset({TenantState.PROVISIONING, TenantState.UPDATING, TenantState.DELETING})
_STALLED_AFTER = timedelta(minutes=10)
_MAX_REASON = 1_000
"""Characters of an error that are recorded with the reconciliation that it ended."""


class OutOfTime(Exception):
    """There is just enough left to say how far it came."""


@dataclass
class Reconciler:
    """One that is run. ``has_time`` says whether there is any left; ``pause`` lets some of it pass."""

    tenants: TenantReader
    fleet: FleetReader
    releases: Releases
    stacks: Stacks
    survey: StackSurvey
    queues: Queues
    settling: Settling
    repairing: Repairing
    ledger: ReconciliationLedger
    rollouts: RolloutLedger
    rollout_executions: RolloutExecutions
    unlisted: UnlistedTenants
    clock: Clock
    has_time: Callable[[], bool] = lambda: True
    pause: Callable[[float], None] = lambda _seconds: None
    _findings: list[Finding] = field(default_factory=list)
    _looked_at: Coverage = field(default_factory=Coverage)
    _stuck: int = 0
    _cursor: str | None = None
    _scanned_at: datetime | None = None

    def run(self, asked: Reconciliation) -> Reconciliation:
        """Do what is asked for, and record what came of it, also when time runs out."""
        going_on = replace(asked, status=ReconciliationStatus.RUNNING)
        self._progress(going_on)
        try:
            if asked.spec.adopt:
                return self._adopt(asked, going_on)
            self._settle_unfinished(asked)
            self._look_at_rollouts()
            if asked.spec.survey:
                self._survey(asked, going_on)
        except OutOfTime:
            return self._end(asked, ReconciliationStatus.INCOMPLETE, "There was not enough time to look at everything.")
        except Throttled as throttled:
            return self._end(asked, ReconciliationStatus.INCOMPLETE, f"AWS asked to slow down: {throttled}")
        except InvalidRequest as invalid:
            return self._end(asked, ReconciliationStatus.INCOMPLETE, str(invalid))
        except Exception as error:
            # Whoever asked must not wait for an end that never comes. The function fails all the same: its log has the
            # error, and its alarm rings.
            self._end(asked, ReconciliationStatus.INCOMPLETE, f"{type(error).__name__}: {error}"[:_MAX_REASON])
            raise
        return self._end(asked, ReconciliationStatus.DONE)

    def _end(self, asked: Reconciliation, status: ReconciliationStatus, reason: str = "") -> Reconciliation:
        ended = self._record(replace(asked, status=status, reason=reason))
        looked_at_all = status is ReconciliationStatus.DONE and asked.spec.cursor is None
        looked_at_all = looked_at_all and (asked.spec.adopt or asked.spec.survey)
        if asked.id not in (SETTLING, SURVEY) and (ended.unlisted or looked_at_all):
            self.ledger.record_reconciliation(replace(ended, id=LATEST_LOOK, findings=()))
        return ended

    def _progress(self, going_on: Reconciliation) -> None:
        """How far it is, for whoever asked for it. Of those on the schedule the latest that came to an end counts."""
        if going_on.id not in (SETTLING, SURVEY):
            self._record(going_on)

    def _record(self, reconciliation: Reconciliation) -> Reconciliation:
        recorded = replace(
            reconciliation,
            updated_at=self.clock.now(),
            looked_at=self._looked_at,
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

    # What died

    def _settle_unfinished(self, asked: Reconciliation) -> None:
        """The index lags, so what it says is looked up before anything is done about it."""
        now = self.clock.now()
        for audit in self.fleet.unfinished_operations():
            if now - audit.updated_at < CHECK_HOLDER_AFTER:
                return  # The oldest come first.
            self._check_time()
            self._looked_at = replace(self._looked_at, operations=self._looked_at.operations + 1)
            self._settle(audit, asked)

    def _settle(self, audit: Audit, asked: Reconciliation) -> None:
        run = run_of(audit)
        what = f"{audit.operation} {audit.version or ''}, attempt {audit.attempt}"
        try:
            settlement = self.settling.settle(run, dry_run=asked.spec.dry_run)
        except (Throttled, UnreadableRows) as error:
            settlement = StillOpen(str(error))
        match settlement:
            case Settled(status, reason):
                self._found(
                    Finding(
                        Kind.UNFINISHED,
                        audit.tenant.value,
                        f"{what} never ended: {audit.execution}",
                        Remedy.SETTLE,
                        result="" if asked.spec.dry_run else f"{status}: {reason}",
                        repaired=not asked.spec.dry_run,
                    )
                )
            case StillOpen(reason) if self.clock.now() - audit.updated_at > STUCK_AFTER:
                self._stuck += 1
                self._found(
                    Finding(
                        Kind.UNFINISHED,
                        audit.tenant.value,
                        f"{what} is past its deadline: {reason}",
                        Remedy.NONE,
                        f"Look at the execution {audit.execution}; stopping it lets the operation be settled.",
                    )
                )
            case _:
                pass

    def _look_at_rollouts(self) -> None:
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
                    f"it is {rollout.status}, but no execution moves it on",
                    Remedy.NONE,
                    f"Let it go on: berth rollout resume {name}, or end it: berth rollout abort {name}",
                )
            )

    # Tenants from before Berth

    def _adopt(self, asked: Reconciliation, going_on: Reconciliation) -> Reconciliation:
        """Adopt as many as can be told of. Whoever asks again with the cursor gets the rest."""
        adopting = Adopting(self.unlisted, self.tenants, self.stacks, self.queues, self.clock)
        request = Request(by=asked.by, reason=asked.spec.reason)
        self._cursor = asked.spec.cursor
        known = KnownStacks(self._every_stack(), of_unlisted=self._metadata_of_unlisted)
        self._note_listed(known)
        for page in self._pages(asked.spec.cursor, limit=_ROWS_ADOPTED_FROM):
            for tenant_id in page.tenants:
                self._check_time()
                finding = adopting.adopt(tenant_id, known, request=request, dry_run=asked.spec.dry_run)
                if finding is not None:
                    self._looked_at = replace(self._looked_at, tenants=self._looked_at.tenants + 1)
                    self._found(finding)
            self._cursor = page.cursor
            self._progress(going_on)
            if page.cursor and len(self._findings) + _ROWS_ADOPTED_FROM > MAX_FINDINGS:
                return self._end(asked, ReconciliationStatus.INCOMPLETE, "There are more rows to look at.")
        return self._end(asked, ReconciliationStatus.DONE)

    def _note_listed(self, known: KnownStacks) -> None:
        """Whose each stack and each queue is: of tenants that Berth has provisioned, and of those it has adopted."""
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
                # What cannot be read is told when its turn comes.
                with suppress(InvalidTenantId, UnreadableRows):
                    seen = self.unlisted.unlisted(TenantId.parse(tenant_id))
                    if seen is not None and seen.metadata is not None:
                        yield seen.metadata

    def _find_unlisted(self, asked: Reconciliation) -> None:
        """Tenants that the index does not have. To find all of them takes a look at every row of the table.

        Only somebody who writes into the table past Berth makes more of them, so what runs by itself looks rarely.
        """
        recently = self._scanned_at is not None and self.clock.now() - self._scanned_at < SCAN_EVERY
        if asked.id == SURVEY and recently:
            return
        told = {finding.subject for finding in self._findings if finding.kind is Kind.UNLISTED}
        for page in self._pages(None, limit=_ROWS_SCANNED):
            for tenant_id in page.tenants:
                self._check_time()
                if tenant_id not in told and is_unlisted(tenant_id, self.unlisted, self.stacks.names):
                    told.add(tenant_id)
                    self._found(not_adopted(tenant_id))
        self._scanned_at = None if told else self.clock.now()

    def _pages(self, cursor: str | None, *, limit: int, is_counted: bool = True) -> Iterator[UnlistedPage]:
        """The table from there on, slowly enough for those who are served from it."""
        while True:
            self._check_time()
            page = self.unlisted.page(cursor, limit=limit)
            if is_counted:
                self._looked_at = replace(self._looked_at, rows=self._looked_at.rows + page.rows)
            yield page
            cursor = page.cursor
            if cursor is None:
                return
            self.pause(page.read_units / READ_UNITS_PER_SECOND)

    # What differs

    def _survey(self, asked: Reconciliation, going_on: Reconciliation) -> None:
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
                continue  # It was listed in another state before: what was ordered for it has moved it.
            seen.add(name)
            adopted = others.get(listed.stack_id or "")
            if adopted:
                self._looked_at = replace(self._looked_at, stacks=self._looked_at.stacks + 1)
            stack = adopted or named.get(name)
            if stack:
                of_listed[stack.stack_id] = stack
            self._look_at_listed(listed, stack, releases, asked)
            if self._looked_at.tenants % _PAGE == 0:
                self._progress(going_on)
        for name, stack in named.items():
            if name not in seen:
                self._check_time()
                self._look_at_unlisted(name, stack, releases, asked)
        if asked.spec.detect_drift:
            self._detect_drift([of_listed[stack_id] for stack_id in sorted(of_listed)], going_on)
        self._find_unlisted(asked)

    def _all_stacks(self) -> tuple[dict[str, Stack], dict[str, Stack]]:
        """Stacks with a tenant's name, by name; and all others, by id: some of those may have been adopted."""
        everybodys, names = self._every_stack(), self.stacks.names
        named = {
            each.name: each.stack
            for each in everybodys
            if each.name.startswith(names.tenant_prefix) and not names.is_legacy(each.name)
        }
        others = {each.stack.stack_id: each.stack for each in everybodys if each.name not in named}
        # All count: they use up the same quota.
        self._looked_at = replace(self._looked_at, all_stacks=len(everybodys), stacks=len(named))
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

    def _look_at_listed(
        self, listed: ListedTenant, stack: Stack | None, releases: Mapping[str, Release], asked: Reconciliation
    ) -> None:
        self._looked_at = replace(self._looked_at, tenants=self._looked_at.tenants + 1)
        if not listed.readable:
            self._found(unreadable_rows(listed.tenant, listed.root_cause.reason if listed.root_cause else ""))
            return
        if listed.state in _BUSY:
            return
        try:
            if not self._is_as_it_should_be(listed, stack, releases):
                self._look_closer(listed.tenant, releases, asked)
        except QueueOutOfReach as denied:
            self._found(queue_out_of_reach(listed.tenant, str(denied)))
        except UnreadableRows as unreadable:
            self._found(unreadable_rows(listed.tenant, str(unreadable)))

    def _is_as_it_should_be(self, listed: ListedTenant, stack: Stack | None, releases: Mapping[str, Release]) -> bool:
        """Most tenants are, and the index and the list of stacks are enough to see that."""
        if listed.stack_id is not None and not self.stacks.names.reaches(name_of(listed.stack_id)):
            return False
        if listed.state not in _SERVED or listed.queue is None or stack is None or stack.queue != listed.queue:
            return False
        # Stacks of an earlier system do not say at which version they are.
        at_version = stack.version in (None, listed.version) or same_content(
            stack.version, listed.version, releases.get
        )
        known = is_known(listed.version, releases)
        return at_version and known and self.queues.messages(listed.queue.url) is not None

    def _look_at_unlisted(
        self, name: str, stack: Stack, releases: Mapping[str, Release], asked: Reconciliation
    ) -> None:
        """A stack that no listed tenant has: of a deleted tenant, of one from before there was a list, or of nobody."""
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
            self._look_closer(tenant, releases, asked)
        except QueueOutOfReach as denied:
            self._found(queue_out_of_reach(tenant, str(denied)))
        except UnreadableRows as unreadable:
            self._found(unreadable_rows(tenant, str(unreadable)))

    def _look_closer(self, tenant: TenantId, releases: Mapping[str, Release], asked: Reconciliation) -> None:
        """The index and the list of stacks lag: whatever is found is found in what is asked for now."""
        if reason := why_out_of_reach(self.tenants.metadata(tenant), self.stacks.names):
            self._found(stack_out_of_reach(tenant, reason))
            return
        looked = self._looked(tenant)
        if looked.live_stack is None and has_unknown_stack(looked.metadata, self.stacks.names):
            self._found(not_adopted(tenant.value))
            return
        finding = classify(looked, releases)
        if finding is None:
            return
        if asked.spec.repair and not asked.spec.dry_run:
            finding = self.repairing.repair(finding, looked, asked.by, reason=asked.spec.reason)
        self._found(finding)

    def _looked(self, tenant: TenantId) -> Observation:
        metadata, audits = self.tenants.metadata(tenant), self.tenants.audits(tenant)
        stack = find_stack(tenant, metadata, self.stacks)
        name = name_of(stack.stack_id) if stack else self.stacks.names.stack_of(tenant)
        queue = metadata.queue if metadata and metadata.published else None
        queue_is_gone = queue is not None and self.queues.messages(queue.url) is None
        ours = stack is None or is_ours(stack, metadata, self.stacks)
        own_queue = self._own_queue(metadata, stack) if stack and ours and _differs(metadata, stack) else None
        # The lock last: whoever took it since is seen, and not disturbed.
        return Observation(
            tenant, name, metadata, audits, self.tenants.lock(tenant), stack, queue_is_gone, ours, own_queue
        )

    def _own_queue(self, metadata: Metadata | None, stack: Stack) -> Queue | None:
        """The tenant's queue among the stack's resources. A template of an earlier system may call it as it likes."""
        own_queue = self.stacks.queue(stack.stack_id)
        if own_queue is None and metadata and metadata.queue in self.stacks.queues(stack.stack_id).values():
            return metadata.queue
        return own_queue

    def _detect_drift(self, stacks: list[Stack], going_on: Reconciliation) -> None:
        """A few at a time: CloudFormation takes a while over each."""
        to_come = [stack for stack in stacks if condition(stack.status) in STANDS]
        under_way: dict[str, Stack] = {}
        while to_come or under_way:
            self._check_time()
            while to_come and len(under_way) < DRIFT_AT_ONCE:
                stack = to_come.pop()
                if detection := self.survey.start_drift_detection(stack.stack_id):
                    under_way[detection] = stack
            for detection, stack in list(under_way.items()):
                drift = self.survey.drift(detection)
                if drift.done:
                    del under_way[detection]
                    self._looked_at = replace(self._looked_at, drift=self._looked_at.drift + 1)
                    if drift.drifted:
                        self._found(drifted(stack, drift.detail))
            self._progress(going_on)
            if under_way:
                self.pause(_DRIFT_PAUSE_SECONDS)

    def _check_time(self) -> None:
        if not self.has_time():
            raise OutOfTime


def _differs(metadata: Metadata | None, stack: Stack) -> bool:
    """Whether a tenant is served otherwise than its stack's outputs say."""
    served = metadata is not None and metadata.published
    said = (metadata.queue, metadata.stack_id, metadata.version) if metadata else ()
    return served and said != (stack.queue, stack.stack_id, stack.version)
