"""How `make console` makes its fleet, over an API in memory whose operations end at once."""

from __future__ import annotations

import threading
from collections import Counter

from orchestrator.api.requesting import HttpRequest
from orchestrator.client.transport import ApiAnswer
from orchestrator.local.fleet import Fleet, FleetMaker
from orchestrator.rollouts.records import RolloutStatus
from orchestrator.tenants.records import TenantState
from tests.browser.fleet import QUEUE_LIMIT, FleetApi
from tests.fakes import a_release

BETTER, WORSE = "0.3.0", "0.4.0"
_STARTED = 202


class SelfDriving(FleetApi):
    """Operations begin and end as soon as they are requested, unless they wait for receivers to empty a queue."""

    def __init__(self) -> None:
        super().__init__()
        self._driving = threading.Lock()

    def send(self, request: HttpRequest) -> ApiAnswer:
        with self._driving:
            answer = super().send(request)
            if answer.status == _STARTED and "operation" in answer.body:
                self.begin()
                if answer.body["version"] == WORSE:
                    self.fail(QUEUE_LIMIT)
                elif "drainSeconds" not in request.query:
                    self.succeed()
            return answer


def test_there_are_tenants_in_all_states_that_last_and_a_rollout_under_way() -> None:
    api = SelfDriving()
    for version in (BETTER, WORSE):
        api.table.record_release(a_release(version))
    fleet, sent, said = Fleet.of(15), [], []
    maker = FleetMaker(api, lambda url, message: sent.append((url, message)), said.append)
    rollout = maker.make(fleet, better=BETTER, worse=WORSE)
    maker.keep_busy(fleet)
    states = Counter(each["state"] for each in api.request("GET", "/tenants", {"limit": 500}).body["tenants"])
    assert states[TenantState.FAILED] == len(fleet.failed)
    assert states[TenantState.UPDATE_FAILED] == len(fleet.update_failed)
    assert states[TenantState.DELETING] == len(fleet.deleting) == len(sent)
    assert states[TenantState.READY] == len(fleet.ready) + len(fleet.upgraded) + len(fleet.busy)
    deleted = api.request("GET", "/tenants", {"state": "DELETED"}).body["tenants"]
    assert [each["tenantId"] for each in deleted] == list(fleet.deleted)
    assert api.newest.id == rollout
    assert api.newest.status is RolloutStatus.PENDING
    skipped = {name for each in api.newest.skipped.values() for name in each.tenants}
    assert skipped >= {fleet.ready[-1], *fleet.failed, *fleet.upgraded}, "pinned, without a queue, and moved already"
    assert skipped >= set(fleet.update_failed), "A rollout that moved them would mend them."
