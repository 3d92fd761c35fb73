"""Seeded rollouts whose release is withdrawn in the middle, each of them."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

from orchestrator.tenants.history import HistoryEntry
from orchestrator.tenants.records import Operation, Status
from tests.fakes import NEXT_VERSION
from tests.simulation.rollouts.seeded_rollout import SeededRollout

BOUND = timedelta(seconds=15)
"""The timeout of the function that begins operations: it may have read the state just before the withdrawal."""


class WithdrawnRollout(SeededRollout):
    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._steps_until_withdrawal = random.Random(f"withdrawal {seed}").randint(1, 120)
        self.withdrawn_at: datetime | None = None

    def _withdraw(self) -> None:
        super()._withdraw()
        self.withdrawn_at = self.fleet.clock.now()

    def play(self) -> None:
        super().play()
        self.seen["began too late"] += sum(map(self._is_too_late, self._begun_updates))

    @property
    def _begun_updates(self) -> list[datetime]:
        """When the updates to the release began that were not refused: CloudFormation was asked to change the stack."""
        found: list[datetime] = []
        for tenant in self.fleet.tenants:
            began: dict[str, datetime] = {}
            for entry in self.fleet.table.history(tenant):
                if not isinstance(entry, HistoryEntry) or entry.operation is not Operation.UPDATE:
                    continue
                if entry.version != NEXT_VERSION:
                    continue
                if entry.status is Status.STARTED:
                    began[entry.execution] = entry.at
                elif entry.status is Status.SUCCESS and entry.execution in began:
                    found.append(began[entry.execution])
        return found

    def _is_too_late(self, began: datetime) -> bool:
        return self.withdrawn_at is not None and began > self.withdrawn_at + BOUND


def play_withdrawals(seeds: range) -> dict[str, int]:
    seen: dict[str, int] = {}
    for seed in seeds:
        run = WithdrawnRollout(seed)
        run.play()
        for what, number in run.seen.items():
            seen[what] = seen.get(what, 0) + number
    return seen
