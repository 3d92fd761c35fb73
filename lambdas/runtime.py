"""What every function shares: its wiring, its logs and metrics, and how a step's outcome is told."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import MetricUnit, single_metric

from orchestrator.common.errors import Throttled
from orchestrator.common.times import timestamp
from orchestrator.composition import Wiring
from orchestrator.tenants.deadlines import overdue
from orchestrator.tenants.records import Run

if TYPE_CHECKING:
    from orchestrator.rollouts.records import Turn

# Everything but ASCII is spelled out: a control character must not reach the terminal of whoever reads the log.
logger = Logger(json_serializer=partial(json.dumps, default=str, separators=(",", ":")))
wiring = Wiring()


class Outcome(Protocol):
    """What a use case has to say, as one of the values that the next Choice reads."""

    @property
    def outcome(self) -> str: ...


def step(run: Run, work: Callable[[], Outcome]) -> dict[str, Any]:
    """Do one state's work for a run.

    Being throttled is an outcome, until the run's deadline: the machine waits and comes back.
    """

    def patiently() -> dict[str, Any]:
        try:
            return tell(work())
        except Throttled as throttled:
            if overdue(run, wiring.clock):
                raise
            return _tell_throttled(throttled)

    return _logged(_names(run), patiently)


def last_step(run: Run, work: Callable[[], Outcome]) -> dict[str, Any]:
    """Do the last state's work for a run. No Choice comes after it: being throttled is left to the state's Retry."""
    return _logged(_names(run), lambda: tell(work()))


def turn_step(turn: Turn, work: Callable[[], Outcome]) -> dict[str, Any]:
    """Do one state's work for a tenant's turn in a rollout. Being throttled is an outcome: turns have no deadline."""

    def patiently() -> dict[str, Any]:
        try:
            return tell(work())
        except Throttled as throttled:
            return _tell_throttled(throttled)

    names = {"rollout_id": turn.rollout, "tenant_id": turn.item.tenant.value, "execution": turn.execution}
    return _logged(names, patiently)


def rollout_step(rollout: str, execution: str, work: Callable[[], Outcome]) -> dict[str, Any]:
    """Do one state's work for a rollout as a whole. Being throttled is left to the state's Retry."""
    return _logged({"rollout_id": rollout, "execution": execution}, lambda: tell(work()))


def _names(run: Run) -> dict[str, str]:
    return {"tenant_id": run.tenant.value, "execution": run.execution, "attempt": run.attempt.name}


def _tell_throttled(throttled: Throttled) -> dict[str, Any]:
    count("Throttled")
    return {"outcome": "again", "reason": str(throttled), "throttled": True}


def _logged(names: dict[str, str], work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """``names`` are those of what is worked on, as its log lines have them."""
    with logger.append_context_keys(**names):
        started = time.perf_counter()
        try:
            told = work()
        except Exception:
            logger.exception("Step failed")
            raise
        # Under a name of its own: some of what is told has the names of what a log record has already.
        logger.info("Step done", extra={"told": told, "milliseconds": round((time.perf_counter() - started) * 1000)})
    return told


def tell(outcome: Outcome) -> dict[str, Any]:
    """An outcome as the machine's JSON."""
    fields = asdict(outcome)  # type: ignore[call-overload]  # every outcome is a dataclass
    return {"outcome": outcome.outcome, **{_camel(name): _json(value) for name, value in fields.items()}}


def count(metric: str, value: int = 1) -> None:
    """Count something that happened, by way of the log."""
    with single_metric(name=metric, unit=MetricUnit.Count, value=value) as single:
        single.add_dimension(name="service", value=logger.service)


def _json(value: object) -> object:
    return timestamp(value) if isinstance(value, datetime) else value


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
