"""The requests to AWS that each request of an operator costs, which docs/costs.json has."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from orchestrator.common.tenant_ids import TenantId
from orchestrator.reconciling.fleet_counts import SMALL_FLEET, FleetCounts
from orchestrator.rollouts.releasing import ReleaseOrdered
from orchestrator.tenants.records import TenantState
from tests.adapters.conftest import REGION, client
from tests.adapters.handlers.functions import RELEASES, TEMPLATE, Functions, publish_template
from tests.costs import COUNTS
from tests.fakes import ACME, NEXT_VERSION, VERSION, a_release, a_run, stack_arn
from tests.fakes.templates import queue_template
from tests.functions import forget_functions

READS = {"GetItem", "Query", "BatchGetItem"}
WRITES = {"PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems"}
LIST_RELEASES, LIST_ROLLOUTS, DIAGNOSIS = "GET /releases", "GET /rollouts", "GET /diagnosis"
LIST_RECONCILIATIONS = "GET /reconciliations"
CREATE = "PUT /tenants/{tenantId}"
EARLIER, OWN = "0.0.1", "2.0.0"
LARGE = ", more than 1,000 tenants"


def columns(requests: list[str]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for request in requests:
        service, _, operation = request.partition(".")
        if service == "dynamodb":
            assert operation in READS | WRITES, operation
            found["reads" if operation in READS else "writes"] += 1
        else:
            found["S3" if service == "s3" else "others"] += 1
    return dict(found)


class Fleet:
    """So many tenants, and what requests about them cost."""

    def __init__(self, functions: Functions, tenants: int) -> None:
        self.functions = functions
        self.costs: dict[str, dict[str, int]] = {}
        client("s3").create_bucket(Bucket=RELEASES, CreateBucketConfiguration={"LocationConstraint": REGION})
        publish_template(functions, VERSION, TEMPLATE)
        for version in (EARLIER, NEXT_VERSION):
            functions.table.record_release(a_release(version))
        for number in range(tenants):
            tenant = ACME if number == 0 else TenantId.parse(f"tenant-{number:03}")
            functions.serve(a_run(tenant=tenant), stack_id=stack_arn(tenant))
        # The settling of every five minutes keeps the counts of the fleet.
        self.use_cases.fleet_counter.renew()

    def call(self, name: str, *routes: str, **more: Any) -> dict[str, Any]:
        """Note the cost of these requests together, and return the last answer."""
        before, body = len(self.functions.requests), {}
        for route in routes:
            query = more.get("query") if route == LIST_ROLLOUTS else None
            status, _, body = self.functions.operate(route, **{**more, "query": query})
            assert status in (200, 202), body
        self.costs[name] = columns(self.functions.requests[before:])
        return body

    def seems_large(self) -> None:
        counts = FleetCounts(self.functions.clock.now(), {VERSION: {TenantState.READY: SMALL_FLEET + 1}})
        self.use_cases.fleet_counter.ledger.keep_fleet_counts(counts)

    @property
    def use_cases(self) -> Any:
        return self.functions.load("runtime").use_cases


def count(functions: Functions, tenants: int) -> dict[str, dict[str, int]]:
    fleet = Fleet(functions, tenants)
    fleet.call("berth tenants, a page of 100", "GET /tenants")
    fleet.call("berth tenant", "GET /tenants/{tenantId}")
    fleet.call("berth tenant --live", "GET /tenants/{tenantId}", "GET /tenants/{tenantId}/stack")
    fleet.call("berth label", "POST /tenants/{tenantId}/labels", body={"set": {"plan": "gold"}})
    fleet.call("berth releases", LIST_RELEASES)
    fleet.call("berth status", LIST_RELEASES, LIST_ROLLOUTS, LIST_RECONCILIATIONS, query={"open": "true"})
    fleet.call("berth doctor", DIAGNOSIS)
    fleet.call("berth rollout plan", "POST /rollouts", body={"version": NEXT_VERSION, "dryRun": True})
    rollout = fleet.call("berth rollout start", "POST /rollouts", body={"version": NEXT_VERSION})["rolloutId"]
    fleet.call("berth rollout status", "GET /rollouts/{rolloutId}", rollout=rollout)
    fleet.call("berth rollout list, two rollouts", LIST_ROLLOUTS)
    fleet.call("berth rollout abort", "POST /rollouts/{rolloutId}/abort", rollout=rollout)
    fleet.seems_large()
    fleet.call(f"berth releases{LARGE}", LIST_RELEASES)
    fleet.call(f"berth doctor{LARGE}", DIAGNOSIS)
    fleet.call("the first create of a function process", CREATE, tenant="new-1")
    fleet.call("berth create", CREATE, tenant="new-2")
    assert isinstance(fleet.use_cases.releasing.withdraw(VERSION, "ada"), ReleaseOrdered)
    forget_functions()
    fleet.call("the first create of a function process, current release withdrawn", CREATE, tenant="new-3")
    fleet.call("berth create, current release withdrawn", CREATE, tenant="new-4")
    fleet.call("berth upgrade", "POST /tenants/{tenantId}/upgrade", body={"version": NEXT_VERSION})
    assert isinstance(fleet.use_cases.releasing.reinstate(VERSION, "ada"), ReleaseOrdered)
    release = {"version": OWN, "body": {"template": queue_template(OWN), "tier": "gold"}}
    fleet.call("berth release check", "POST /releases/{version}/check", **release)
    fleet.call("berth release publish", "PUT /releases/{version}", **release)
    for tenant in ("new-5", "new-6"):  # The first create of a process reads the release, too.
        fleet.call("berth create, another tier than standard", CREATE, tenant=tenant, body={"tier": "gold"})
    return fleet.costs


@pytest.mark.usefixtures("stack_limit")
@pytest.mark.parametrize("tenants", [5, 40])
def test_the_requests_of_every_command_however_many_tenants_there_are(functions: Functions, tenants: int) -> None:
    assert count(functions, tenants) == COUNTS["commands"]
