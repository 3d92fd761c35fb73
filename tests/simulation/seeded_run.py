"""A seeded run: actions and faults for a while, then neither, and every operation has to end.

A seed decides the tenants, their initial states, the faults and the actions. Once those are over, the rule on ended
executions and the scheduled reconciler alone have to end every operation in bounded time.
"""

from __future__ import annotations

import random
from collections import Counter
from datetime import timedelta

from orchestrator.common.tenant_ids import TenantId
from tests.simulation.actions import ACTION_SETS, Action
from tests.simulation.checks.final_state import check_operations_end, check_repair
from tests.simulation.environment import VERSIONS, Environment
from tests.simulation.faults import Faults, draw_faults
from tests.simulation.initial_states import INITIAL_STATES

TENANTS = tuple(map(TenantId.parse, ("acme", "acme-1", "ACME")))
"""Ids that are easily mistaken for one another."""
MAX_ACTIONS = 12
REPLAY = "python -m tests.simulation --seed {seed}"


class Broken(AssertionError):
    """A promise was broken. The message names the seed and the command that replays it."""


class SeededRun:
    def __init__(
        self,
        seed: int,
        faults: Faults | None = None,
        actions: tuple[Action, ...] | None = None,
        *,
        replay: str = REPLAY,
    ) -> None:
        """``faults`` and ``actions`` replace those that the seed would draw. ``replay`` is the command that plays the
        same again."""
        self.seed = seed
        self._replay = replay
        self._rng = random.Random(seed)
        self.tenants = TENANTS[: self._rng.choice((1, 1, 2, 3))]
        self.env = Environment(self.tenants, self._rng)
        for tenant in self.tenants:
            self._rng.choice(INITIAL_STATES)(self.env, tenant)
        self.env.faults = faults or draw_faults(self._rng)
        self._actions = actions or self._rng.choice(ACTION_SETS)

    @property
    def seen(self) -> Counter[str]:
        return self.env.checks.seen

    def play(self) -> None:
        try:
            self._act()
            check_operations_end(self.env)
            check_repair(self.env)
        except AssertionError as broken:
            replay = self._replay.format(seed=self.seed)
            raise Broken(f"seed {self.seed}: {broken}\nTo replay: {replay}") from broken
        finally:
            self.env.close()

    def _act(self) -> None:
        """Have actions happen at random moments, some of them almost at once."""
        rng, env = self._rng, self.env
        lasts = rng.choice((60.0, 300.0, 1_800.0))
        for _ in range(rng.randint(5, MAX_ACTIONS)):
            moment = rng.uniform(0, lasts)
            for _ in range(rng.choice((1, 2, 3))):
                env.later(moment, self._take_action)
        env.pass_time(env.clock.now() + timedelta(seconds=lasts))

    def _take_action(self) -> None:
        tenant, version = self._rng.choice(self.tenants), self._rng.choice(VERSIONS)
        action = self._rng.choice(self._actions)
        self.seen[action.__name__] += 1
        action(self.env, tenant, version)
