"""The first getQueue of a new tenant that takes a stack from the pool, against one of a tenant in service.

The whole handler is measured, over the emulator's table. What a create takes instead is in the part ``operations``.
"""

from __future__ import annotations

import importlib
import itertools
import os
import statistics
import time
from datetime import UTC, datetime
from typing import Any

from bench.get_queue import MODULE, TABLE, a_table, publish
from bench.measure import Result, silence
from orchestrator.adapters.dynamodb.pool import PoolTable
from orchestrator.adapters.dynamodb.tenants import DynamoTable
from orchestrator.common.tenant_ids import WARM_PREFIX, TenantId
from orchestrator.common.tiers import STANDARD
from orchestrator.pool.records import Member, Pool
from orchestrator.tenants.ledger import Ledger

_SIZE = 100
_ROUNDS = 40
_WARM_UP = 5


def warm_pool() -> list[Result]:
    os.environ |= {
        "BERTH_WARM_POOL": f"{STANDARD}={_SIZE}",
        "BERTH_MAX_TENANTS": "100000",
        "BERTH_CREATES_PER_MINUTE": "60000",
    }
    with a_table() as client, silence():
        ledger = Ledger(DynamoTable(client, TABLE))
        publish(ledger, TenantId("acme"))
        warm = [TenantId(f"{WARM_PREFIX}{number:016x}") for number in range(_SIZE)]
        for each in warm:
            publish(ledger, each)
        members = {each.value: Member(datetime.now(UTC), "0.1.0") for each in warm}
        PoolTable(client, TABLE).store(Pool(members))
        handler = importlib.import_module(MODULE).handler
        numbers = itertools.count()
        taken, ready = [], []
        for _ in range(_WARM_UP + _ROUNDS):
            taken.append(_milliseconds(handler, f"tenant-{next(numbers)}"))
            ready.append(_milliseconds(handler, "acme"))
    first, served = (statistics.median(times[_WARM_UP:]) for times in (taken, ready))
    return [
        Result("first getQueue from the warm pool / getQueue ready path, p50", round(first / served, 2), "x", "<= 3"),
        Result("first getQueue from the warm pool, p50", round(first, 2), "ms", ""),
    ]


def _milliseconds(handler: Any, tenant: str) -> float:
    started = time.perf_counter()
    status = handler({"version": "2.0", "pathParameters": {"tenantId": tenant}}, None)["statusCode"]
    if status != 200:
        raise RuntimeError(f"Tenant {tenant} was answered with {status}.")
    return (time.perf_counter() - started) * 1000
