"""Code that the control plane's functions share: the use cases, the steps of machines, and the JSON of outcomes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from lambdas.observing import count, logger
from orchestrator.adapters.ports import AwsPorts
from orchestrator.adapters.settings import Settings
from orchestrator.common.errors import Throttled
from orchestrator.common.times import timestamp
from orchestrator.composition import UseCases
from orchestrator.tenants.deadlines import is_past_any_deadline
from orchestrator.tenants.records import Run

if TYPE_CHECKING:
    from orchestrator.rollouts.records import Turn

ports = AwsPorts(Settings())
use_cases = UseCases(ports)


class Outcome(Protocol):
    """The result of a use case. ``outcome`` is the value that the state machine's next Choice reads."""

    @property
    def outcome(self) -> str: ...


def step(run: Run, work: Callable[[], Outcome]) -> dict[str, Any]:
    """Do one state's work for a run.

    Throttling is returned as an outcome until the run's deadline: the machine waits and calls the function again.
    """

    def attempt() -> dict[str, Any]:
        try:
            return outcome_json(work())
        except Throttled as throttled:
            if is_past_any_deadline(run, use_cases.ports.clock):
                raise
            return _throttled_outcome(throttled)

    return _logged(_names(run), attempt)


def waiting_step(run: Run, task_token: str, work: Callable[[], Outcome]) -> dict[str, Any]:
    """Do the work of a state that waits with a task token. Every outcome but ``waiting`` ends the wait at once."""
    # Imported here, because getQueue uses this module, too, and must start fast.
    from orchestrator.tenants.outcomes import Waiting

    result = step(run, work)
    if result["outcome"] != Waiting.outcome:
        use_cases.ports.executions.wake(task_token, result)
    return result


def last_step(run: Run, work: Callable[[], Outcome]) -> dict[str, Any]:
    """Do the last state's work for a run. No Choice follows it, so the state's Retry handles throttling."""
    return _logged(_names(run), lambda: outcome_json(work()))


def turn_step(turn: Turn, work: Callable[[], Outcome]) -> dict[str, Any]:
    """Do one state's work for a tenant's turn in a rollout.

    Throttling is always returned as an outcome, because turns have no deadline.
    """

    def attempt() -> dict[str, Any]:
        try:
            return outcome_json(work())
        except Throttled as throttled:
            return _throttled_outcome(throttled)

    names = {"rollout_id": turn.rollout, "tenant_id": turn.item.tenant.value, "execution": turn.execution}
    return _logged(names, attempt)


def rollout_step(rollout: str, execution: str, work: Callable[[], Outcome]) -> dict[str, Any]:
    """Do one state's work for a rollout as a whole. The state's Retry handles throttling."""
    return _logged({"rollout_id": rollout, "execution": execution}, lambda: outcome_json(work()))


def _names(run: Run) -> dict[str, str]:
    return {"tenant_id": run.tenant.value, "execution": run.execution, "attempt": run.attempt.name}


def _throttled_outcome(throttled: Throttled) -> dict[str, Any]:
    count("Throttled")
    return {"outcome": "again", "reason": str(throttled), "throttled": True}


def _logged(names: dict[str, str], work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Log the work and its result. ``names`` identify the tenant or the rollout in the log lines."""
    with logger.append_context_keys(**names):
        started = time.perf_counter()
        try:
            result = work()
        except Exception:
            logger.exception("Step failed")
            raise
        # The result has a key of its own, because some of its fields have the same names as fields of a log record.
        logger.info(
            "Step done", extra={"response": result, "milliseconds": round((time.perf_counter() - started) * 1000)}
        )
    return result


def outcome_json(outcome: Outcome) -> dict[str, Any]:
    """An outcome as JSON for the state machine."""
    fields = asdict(outcome)  # type: ignore[call-overload]  # every outcome is a dataclass
    return {"outcome": outcome.outcome, **{_camel(name): _json(value) for name, value in fields.items()}}


def _json(value: object) -> object:
    return timestamp(value) if isinstance(value, datetime) else value


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
