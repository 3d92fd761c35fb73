"""The first getQueue of a new tenant that takes a stack from the pool, against one of a tenant in service, and against
a create.

First the handler alone is measured, over the emulator's table: nearly all of its time are its requests to DynamoDB, of
which a first call has four, one of them a transaction, and a call of a tenant in service one. Then the calls are
measured as a platform makes them, through the API of a control plane on the emulator.
"""

from __future__ import annotations

import importlib
import itertools
import os
import statistics
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

from bench.deployed import Deployed, deployed
from bench.get_queue import MODULE, TABLE, a_table, publish
from bench.measure import Result, interleaved, silence
from orchestrator.adapters.dynamodb.pool import PoolTable
from orchestrator.adapters.dynamodb.tenants import DynamoTable
from orchestrator.api.fields import TenantIdRequest
from orchestrator.api.queue_routes import GET_QUEUE
from orchestrator.client.client import Client
from orchestrator.common.tenant_ids import WARM_PREFIX, TenantId
from orchestrator.common.tiers import STANDARD
from orchestrator.local.home import polls
from orchestrator.pool.records import Member, Pool
from orchestrator.tenants.ledger import Ledger

_ROUNDS = 60
_WARM_UP = 5
_CREATES = 5
_CREATE_SECONDS = 120
_SETTINGS = {"BERTH_WARM_POOL": f"{STANDARD}=100", "BERTH_MAX_TENANTS": "100000", "BERTH_CREATES_PER_MINUTE": "60000"}
_VERSION = "0.1.0"


def warm_pool() -> list[Result]:
    return [*_handler(), *_api()]


def _handler() -> list[Result]:
    os.environ |= _SETTINGS
    with a_table() as client, silence():
        publish(Ledger(DynamoTable(client, TABLE)), TenantId("acme"))
        _fill(client, TABLE, _VERSION)
        handler = importlib.import_module(MODULE).handler
        use_cases = importlib.import_module("lambdas.runtime").use_cases
        new = _new_tenants()

        def ask(tenant: str) -> None:
            status = handler({"version": "2.0", "pathParameters": {"tenantId": tenant}}, None)["statusCode"]
            if status != 200:
                raise RuntimeError(f"Tenant {tenant} was answered with {status}.")

        def ask_first_of_a_process() -> None:
            vars(use_cases).pop("_seen_stacks", None)
            ask(next(new))

        first, ready = _medians(lambda: ask(next(new)), lambda: ask("acme"))
        unseen, ready_then = _medians(ask_first_of_a_process, lambda: ask("acme"))
    what = "first getQueue from the warm pool"
    return [
        Result(f"{what} / getQueue ready path, p50", round(first / ready, 2), "x", "<= 3"),
        Result(f"{what}, p50", round(first, 2), "ms", ""),
        Result(f"{what}, of a process that has not seen the pool / ready, p50", round(unseen / ready_then, 2), "x", ""),
    ]


def _api() -> list[Result]:
    with deployed() as control_plane:
        api, new = control_plane.api(), _new_tenants()
        created = [_seconds_until_served(api, next(new)) for _ in range(_CREATES)]
        _configure(control_plane)
        _fill(
            control_plane.client("dynamodb"),
            control_plane.outputs["TableName"],
            control_plane.outputs["TemplateVersion"],
        )
        served = next(new)
        first, ready = _medians(lambda: _ask(api, next(new)), lambda: _ask(api, served))
    create = statistics.median(created) * 1000
    what = "through the API: first getQueue from the warm pool"
    return [
        Result(f"{what} / of a tenant in service, p50", round(first / ready, 2), "x", "<= 3"),
        Result(f"{what}, p50", round(first, 1), "ms", ""),
        Result("a create until getQueue answers with the queue / the same, p50", round(create / first, 1), "x", ""),
        Result("a create until getQueue answers with the queue, p50", round(create / 1000, 2), "s", ""),
    ]


def _new_tenants() -> Iterator[str]:
    return (f"tenant-{number}" for number in itertools.count())


def _medians(first: Callable[[], None], ready: Callable[[], None]) -> tuple[float, float]:
    interleaved(first, ready, _WARM_UP)
    return interleaved(first, ready, _ROUNDS)


def _fill(client: Any, table: str, version: str) -> None:
    """Stacks that are kept ready, as the table has them."""
    ledger = Ledger(DynamoTable(client, table))
    warm = [TenantId(f"{WARM_PREFIX}{number:016x}") for number in range(2 * (_ROUNDS + _WARM_UP) + 1)]
    for each in warm:
        publish(ledger, each, version)
    PoolTable(client, table).store(Pool({each.value: Member(datetime.now(UTC), version) for each in warm}))


def _configure(control_plane: Deployed) -> None:
    """getQueue takes stacks from a pool that nobody refills, and logs a line: without one, the emulator would wait
    50 ms for it after every call."""
    functions, name = control_plane.client("lambda"), control_plane.outputs["GetQueueFunctionName"]
    variables = functions.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
    variables |= {**_SETTINGS, "AWS_LAMBDA_LOG_LEVEL": "DEBUG"}
    functions.update_function_configuration(FunctionName=name, Environment={"Variables": variables})


def _ask(api: Client, tenant: str) -> None:
    if not _is_served(api, tenant):
        raise RuntimeError(f"Tenant {tenant} was not answered with its queue.")


def _is_served(api: Client, tenant: str) -> bool:
    return api.send_request(GET_QUEUE, TenantIdRequest(tenant_id=tenant)).status == 200


def _seconds_until_served(api: Client, tenant: str) -> float:
    started = time.monotonic()
    for _ in polls(_CREATE_SECONDS):
        if _is_served(api, tenant):
            return time.monotonic() - started
    raise RuntimeError(f"Tenant {tenant} had no queue after {_CREATE_SECONDS} s.")
