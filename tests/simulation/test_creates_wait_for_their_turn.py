"""Creates that wait for their turn: whatever dies at whatever call, the others have their turn, and none is lost."""

from __future__ import annotations

from datetime import timedelta

import pytest

from orchestrator.common.tenant_ids import TenantId
from orchestrator.rollouts.create_turns import CreateTurns
from orchestrator.rollouts.pacing import Pace
from orchestrator.tenants.deadlines import DEADLINE
from orchestrator.tenants.records import Attempt, Operation, Request, Status
from orchestrator.tenants.state import run_of
from tests.fakes import VERSION
from tests.present import present
from tests.simulation.aws.executions import Crash, Execution, FaultInjector, Killed, Moment
from tests.simulation.world import World

TENANTS = [TenantId(f"tenant-{number}") for number in range(3)]
MAX_STEPS = 2_000
A_LONG_TIME = DEADLINE + timedelta(minutes=10)


class Storm:
    """Three creates at once, of which CloudFormation allows one at a time. A fault strikes one of them."""

    def __init__(self, struck: int, faults: FaultInjector) -> None:
        self.world = World()
        self.world.create_turns.store(CreateTurns(Pace(1.0, 1)))
        self.runs: list[Execution] = []
        for number, tenant in enumerate(TENANTS):
            attempt = Attempt(tenant, Operation.CREATE, VERSION, 1)
            execution = present(self.world.executions.start(attempt, Request()))
            self.runs.append(
                Execution(self.world, execution, faults.around)
                if number == struck
                else Execution(self.world, execution)
            )

    def play(self) -> None:
        """Play all of them, a state of each at a time."""
        for _ in range(MAX_STEPS):
            going = [run for run in self.runs if run.running]
            if not going:
                return
            for run in going:
                try:
                    run.step()
                except Killed:
                    self.close(run)
                assert self.with_lock() <= 1, "Two creates have begun, though one may have its turn."
        pytest.fail(f"These go on for ever: {[(run.name, run.at) for run in self.runs if run.running]}")

    def close(self, run: Execution) -> None:
        """The rule on ended executions closes the operation of one that was aborted, some time later."""
        self.world.clock.advance(A_LONG_TIME)
        use_cases = self.world.use_cases()
        tenant = next(tenant for tenant in TENANTS if tenant.slug in run.name)
        for audit in self.world.table.audits(tenant):
            if audit.status is Status.STARTED:
                use_cases.settling.settle(run_of(audit))
        use_cases.turns.settle()

    def with_lock(self) -> int:
        return sum(self.world.table.lock(tenant) is not None for tenant in TENANTS)


CALLS = 120
"""More calls than the create makes."""


@pytest.mark.parametrize("struck", [0, 1], ids=["the first", "one that waits"])
@pytest.mark.parametrize("moment", Moment)
@pytest.mark.parametrize("kind", [Crash, Killed])
def test_other_creates_get_their_turn_after_any_fault_in_one(
    struck: int, moment: Moment, kind: type[Exception]
) -> None:
    for call in range(1, CALLS):
        faults = FaultInjector(call, moment, kind)
        storm = Storm(struck, faults)
        storm.play()
        storm.world.clock.advance(A_LONG_TIME)
        storm.world.use_cases().turns.settle()
        turns = present(storm.world.create_turns.turns())
        assert turns.holders == {}, f"A turn is lost after {kind.__name__} {moment.value} call {call}."
        assert storm.world.create_turns.tickets == {}
        for number, tenant in enumerate(TENANTS):
            metadata = storm.world.table.metadata(tenant)
            is_served = metadata is not None and metadata.published
            assert is_served or (kind is Killed and number == struck), f"{tenant} is not served, call {call}"
        if faults.calls < call:
            return
    pytest.fail(f"A create makes more than {CALLS} calls.")
