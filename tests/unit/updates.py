"""An update of one tenant in tests, and its outcomes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from orchestrator.tenants.outcomes import Again, GaveUp
from orchestrator.tenants.records import Operation, Request
from orchestrator.tenants.stack_ports import ChangeSetState
from tests.fakes import NEXT_VERSION, OwnedTenant, a_run, some_metadata

RUN = a_run(operation=Operation.UPDATE, version=NEXT_VERSION)


class Updating(OwnedTenant):
    """One tenant at the old version, owned by a run that is to update it."""

    def __init__(self, *, request: Request = RUN.request, **fakes: Any) -> None:
        super().__init__(replace(RUN, request=request), metadata=some_metadata(), **fakes)

    def draw_up(self, state: ChangeSetState, reason: str = "") -> None:
        """Create the change set, and put it into this state."""
        (fake,) = self.stacks.all.values()
        self.review()
        ((change_set, (drawn_up, url)),) = fake.change_sets.items()
        fake.change_sets[change_set] = (replace(drawn_up, state=state, reason=reason), url)

    @property
    def change_sets(self) -> list[str]:
        """The names of what was drawn up."""
        (fake,) = self.stacks.all.values()
        return [each.split("/")[1] for each in fake.change_sets]

    @property
    def touched(self) -> bool:
        return bool(
            {"execute_change_set", "roll_back", "continue_rollback", "delete", "create"} & set(self.stacks.calls)
        )


def why(outcome: object) -> str:
    assert isinstance(outcome, Again)
    return outcome.reason


def failure(outcome: object) -> GaveUp:
    assert isinstance(outcome, GaveUp)
    return outcome
