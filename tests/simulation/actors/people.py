"""Platforms that ask for queues, and operators that ask for tenants."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.tiers import STANDARD
from orchestrator.tenants.lifecycle import Lifecycle
from orchestrator.tenants.order_results import Accepted, Unchanged
from orchestrator.tenants.provisioning import Answer
from orchestrator.tenants.ready import Ready
from orchestrator.tenants.records import Attempt, Request
from tests.simulation.actors.callers import Caller, Role
from tests.simulation.checks.request_log import Description
from tests.simulation.world import OPERATOR

if TYPE_CHECKING:
    from tests.simulation.environment import Environment

Order = Callable[[Lifecycle], Any]


class People:
    def __init__(self, env: Environment) -> None:
        self._env = env

    def ask(self, tenant: TenantId, version: str) -> None:
        """getQueue, by a platform that talks to that version of the code."""
        env = self._env
        caller = Caller(Role.PERSON, tenant)
        get_queue = env.use_cases_of(caller, version=version).get_queue
        asked_in = env.turn

        def over(answer: Answer | None, _error: Exception | None) -> None:
            if answer is not None and env.turn == asked_in:
                env.checks.of[tenant].check_answer(answer)
            if isinstance(answer, Ready):
                env.platforms.is_given(tenant, answer.queue.url)

        env.call(caller, lambda: get_queue(tenant), over)

    def create(self, tenant: TenantId, version: str, request: Request = OPERATOR) -> None:
        asked = self._env.checks.of[tenant].requests
        says = request.labels is not None or request.pin is not None
        number = asked.says() if says else None

        def over(ordered: object) -> None:
            if says:
                asked.has_said()
            if isinstance(ordered, Accepted) and number is not None and asked.sayings == number:
                asked.described[ordered.execution] = Description(request.labels, request.pin, number)

        self._order(tenant, version, lambda lifecycle: lifecycle.create(tenant, request), over, wants_it=True)

    def pin(self, tenant: TenantId, version: str) -> None:
        asked = self._env.checks.of[tenant].requests
        asked.says()
        self._order(
            tenant, version, lambda lifecycle: lifecycle.pin(tenant, version, OPERATOR), lambda _: asked.has_said()
        )

    def unpin(self, tenant: TenantId, version: str) -> None:
        asked = self._env.checks.of[tenant].requests
        asked.says()
        self._order(tenant, version, lambda lifecycle: lifecycle.unpin(tenant, OPERATOR), lambda _: asked.has_said())

    def upgrade(self, tenant: TenantId, version: str, request: Request) -> None:
        self._order(tenant, version, lambda lifecycle: lifecycle.upgrade(tenant, version, request))

    def create_in(self, tenant: TenantId, version: str, tier: str) -> None:
        request = replace(OPERATOR, tier=tier)
        over = self._expecting(tier)
        self._order(tenant, version, lambda lifecycle: lifecycle.create(tenant, request), over, wants_it=True)

    def move(self, tenant: TenantId, version: str, tier: str) -> None:
        self._order(tenant, version, lambda lifecycle: lifecycle.move(tenant, tier, OPERATOR), self._expecting(tier))

    def _expecting(self, tier: str) -> Callable[[object], None]:
        """Check that an operation was accepted at a release of the tier that was asked for."""

        def over(ordered: object) -> None:
            if isinstance(ordered, Accepted):
                release = self._env.table.release(ordered.attempt.version)
                chosen = release.tier if release else None
                assert chosen == tier, f"{ordered.attempt.name} was accepted for the tier {tier}, but is for {chosen}"
                self._env.checks.seen[f"{ordered.attempt.operation} in another tier"] += tier != STANDARD

        return over

    def retry(self, tenant: TenantId, version: str) -> None:
        """Retry the latest operation. Nobody who was to be deleted comes back, unless somebody asked for it since."""
        asked_at = self._env.checks.of[tenant].requests.latest
        self._order(
            tenant,
            version,
            lambda lifecycle: lifecycle.retry(tenant, OPERATOR.by),
            wants_it=asked_at is not None,
            asked_at=asked_at,
        )

    def delete(self, tenant: TenantId, version: str, request: Request) -> None:
        checks, asked_at = self._env.checks.of[tenant], self._env.clock.now()
        to_come = [execution for execution in checks.requests.not_deleted_since() if self._is_to_create(execution)]

        def over(ordered: object) -> None:
            if isinstance(ordered, Accepted):
                checks.requests.answered_deletes[ordered.execution] = asked_at
            if isinstance(ordered, Unchanged):
                still = [execution for execution in checks.requests.not_deleted_since() if execution in to_come]
                still = [execution for execution in still if self._is_to_create(execution)]
                assert not still, f"{ordered.reason} But {still[0]} had been accepted before."

        self._order(tenant, version, lambda lifecycle: lifecycle.delete(tenant, request), over)

    def _is_to_create(self, execution: str) -> bool:
        run = self._env.runs[execution]
        return run.running and run.explicit

    def start_late(self, attempt: Attempt, request: Request) -> None:
        """Somebody was admitted when the tenant was different, and only now has the execution started."""
        caller = Caller(Role.PERSON, attempt.tenant)
        executions = self._env.use_cases_of(caller).ports.executions
        self._env.call(caller, lambda: executions.start(attempt, request), lambda _result, _error: None)

    def _order(
        self,
        tenant: TenantId,
        version: str,
        order: Order,
        then: Callable[[object], None] = lambda _ordered: None,
        *,
        wants_it: bool = False,
        asked_at: datetime | None = None,
    ) -> None:
        """Have an operator give an order, to that version of the code."""
        env = self._env
        caller = Caller(Role.PERSON, tenant, wants_it=wants_it, asked_at=asked_at)
        lifecycle = env.use_cases_of(caller, version=version).lifecycle

        def over(ordered: object, error: Exception | None) -> None:
            env.checks.seen[type(error or ordered).__name__] += 1
            then(ordered)

        env.call(caller, lambda: order(lifecycle), over)


def with_labels(labels: dict[str, str], pin: str | None = None) -> Request:
    return replace(OPERATOR, labels=labels, pin=pin)
