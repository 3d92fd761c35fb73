"""The counters of a stage, which many tenants' turns change at the same time.

A turn adds to the counters, and does not replace the stage. So two turns that have read the same stage can both be
written, and neither has to read again. What a turn adds is data: the table and the fake only apply it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from orchestrator.rollouts.records import Result, Rollout, Stage, TenantOutcome

if TYPE_CHECKING:
    from orchestrator.rollouts.ports import RolloutLedger


@dataclass(frozen=True, slots=True)
class Count:
    """The numbers that one tenant's turn adds to its stage, and the conditions under which it may."""

    rollout: str
    stage: int
    at: datetime
    in_flight: int = 0
    """1 for a tenant that is admitted, -1 for a tenant whose turn has ended. Tenants are only taken off a stage that
    has one in flight, so the counter never falls below zero."""
    succeeded: int = 0
    failed: int = 0
    skipped: int = 0
    limit: float = 0.0
    """The growth of the stage's limit. Two turns at once may exceed the ceiling, so readers of the limit respect it."""
    reviewed: TenantOutcome | None = None
    """Only in a dry run: the outcome whose result and changes are counted for the rollout as a whole."""
    max_in_flight: int | None = None
    """The admission is refused unless fewer tenants than this are in flight."""
    max_failed: int | None = None
    """The admission is refused if more tenants than this have failed."""

    def is_allowed(self, stage: Stage) -> bool:
        return (
            stage.in_flight + self.in_flight >= 0
            and (self.max_in_flight is None or stage.in_flight < self.max_in_flight)
            and (self.max_failed is None or stage.failed <= self.max_failed)
        )

    def added_to(self, stage: Stage) -> Stage:
        """The stage after the turn. Its revision changes, so a write of the whole stage cannot undo the count."""
        return replace(
            stage,
            in_flight=stage.in_flight + self.in_flight,
            succeeded=stage.succeeded + self.succeeded,
            failed=stage.failed + self.failed,
            skipped=stage.skipped + self.skipped,
            pace=stage.pace.grown_by(self.limit),
            moved_at=self.at,
            revision=stage.revision + 1,
        )


@dataclass(frozen=True, slots=True)
class Reviews:
    """The counted results of a dry run so far, so that watching it need not read the outcomes of all tenants."""

    results: Mapping[Result, int]
    changes: Mapping[str, int]
    """The number of tenants that would have each change."""
    moves: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """The number of tenants that would change by a move from one release to another."""


def move_of(outcome: TenantOutcome) -> list[tuple[str, str]]:
    """The move by which the tenant would change; empty if it would not, or stays at its release."""
    origin, target = outcome.from_version, outcome.item.version
    return [(origin, target)] if outcome.changes and origin and origin != target else []


def reviews_of(rollout: Rollout, ledger: RolloutLedger) -> Reviews:
    """The counted results of the dry run so far."""
    reviews = ledger.reviews(rollout.id) if rollout.spec.dry_run else None
    return reviews or Reviews({}, {})


def admission(stage: Stage, at: datetime) -> Count:
    """One more tenant in flight, if the stage has room for it and not too many tenants have failed."""
    return Count(
        stage.rollout,
        stage.number,
        at,
        in_flight=1,
        max_in_flight=stage.pace.at_once,
        max_failed=stage.tolerated + stage.forgiven,
    )


def settlement(stage: Stage, outcome: TenantOutcome, *, in_flight: bool, dry_run: bool = False) -> Count:
    """The count of the outcome. ``in_flight`` is true if the tenant was in flight until now."""
    succeeded = outcome.result in (Result.SUCCEEDED, Result.UNCHANGED)
    return Count(
        stage.rollout,
        stage.number,
        outcome.updated_at,
        # The stage's slots may have been freed since the tenant was admitted.
        in_flight=-1 if in_flight and stage.in_flight else 0,
        succeeded=int(succeeded),
        failed=int(outcome.result is Result.FAILED),
        skipped=int(outcome.result is Result.SKIPPED),
        limit=stage.pace.growth(stage.in_flight) if in_flight and succeeded else 0.0,
        reviewed=outcome if dry_run and outcome.result.settled else None,
    )
