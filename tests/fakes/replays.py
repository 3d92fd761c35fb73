"""The rows of replays, in memory. ``tests/adapters/events`` holds them and DynamoDB's to one contract."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from orchestrator.events.delivery.replays import Replay, ReplayStatus
from orchestrator.events.records import TenantEpoch, UnreadableRow


@dataclass
class InMemoryReplays:
    """Implements :class:`orchestrator.events.delivery.replays.Replays`."""

    all: dict[str, Replay] = field(default_factory=dict)
    """By id."""

    def replay(self, life: TenantEpoch, replay_id: str) -> Replay | None:
        found = self.all.get(replay_id)
        return found if found is not None and found.life == life else None

    def of_tenant(self, life: TenantEpoch, *, after: str | None, limit: int) -> tuple[Sequence[Replay], str | None]:
        mine = sorted(self._of(life), key=lambda each: each.replay_id, reverse=True)
        left = [each for each in mine if after is None or each.replay_id < after]
        return left[:limit], left[limit - 1].replay_id if len(left) >= limit else None

    def running(self) -> Iterator[Replay | UnreadableRow]:
        yield from [each for each in self.all.values() if each.status is ReplayStatus.RUNNING]

    def count_running(self, life: TenantEpoch) -> int:
        return len([each for each in self._of(life) if each.status is ReplayStatus.RUNNING])

    def count_since(self, life: TenantEpoch, first_id: str) -> int:
        return len([each for each in self._of(life) if each.replay_id >= first_id])

    def write(self, before: Replay | None, after: Replay) -> bool:
        there = self.all.get(after.replay_id)
        if (there.revision if there else None) != (before.revision if before else None):
            return False
        self.all[after.replay_id] = after
        return True

    def _of(self, life: TenantEpoch) -> list[Replay]:
        return [each for each in self.all.values() if each.life == life]
