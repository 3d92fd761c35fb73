"""Compares Berth with a loop of ``cdk deploy``, one per tenant, which a platform would write without it.

Both run on the same emulator. It deploys a stack within a second, so nearly all of the loop's time is the CDK's own: it
starts the app, synthesises, and waits for the stack. On AWS, CloudFormation's time comes on top: for the loop once per
tenant, for Berth once for all of them, and for tenants that take a stack that is kept ready not at all.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

from bench import queue_app
from bench.deployed import Deployed, deployed
from bench.load_clients import Call, at_once
from bench.measure import Result
from orchestrator.adapters.dynamodb.pool import PoolTable
from orchestrator.api.fields import TenantIdRequest
from orchestrator.api.queue_routes import GET_QUEUE
from orchestrator.api.responses import RETRY_AFTER_SECONDS
from orchestrator.client.transport import ApiAnswer
from orchestrator.local.deployment import deploy, deploy_app
from orchestrator.local.home import polls
from orchestrator.pool.records import MemberState
from orchestrator.reconciling.records import POOL

TENANTS = 20
LOOPED = 3
"""The number of tenants that the loop deploys. Each takes as long as the one before, so the time of all is computed."""
CALLERS = 4
"""Clients that ask for queues at once. They do not exceed the function's concurrency on the emulator."""
SERVE_SECONDS = 300


def cdk_loop() -> list[Result]:
    with deployed(events="false") as control_plane:
        # Makes the emulator start the processes of the functions, which AWS would have warm or start all at once.
        _serve(control_plane, [f"first-{number}" for number in range(TENANTS)])
        served = _serve(control_plane, [f"served-{number}" for number in range(TENANTS)])
        each = _loop(control_plane, [f"looped-{number}" for number in range(LOOPED)]) / LOOPED
        _keep_ready(control_plane)
        taken = _serve(control_plane, [f"taken-{number}" for number in range(TENANTS)])
    looped = each * TENANTS
    compared = f"{TENANTS} tenants: loop of cdk deploy ({LOOPED} measured, times {TENANTS} / {LOOPED}) / getQueue"
    return [
        Result(compared, round(looped / served, 1), "x", ">= 20"),
        Result("cdk deploy of one tenant's stack", round(each, 2), "s", ""),
        Result(f"{TENANTS} new tenants: until getQueue answers with every queue", round(served, 2), "s", ""),
        Result(
            f"{TENANTS} tenants: loop of cdk deploy / getQueue with {TENANTS} stacks kept ready",
            round(looped / taken, 1),
            "x",
            ">= 20",
        ),
        Result(
            f"{TENANTS} new tenants with {TENANTS} stacks kept ready: until all have their queues",
            round(taken, 2),
            "s",
            "",
        ),
    ]


def _serve(control_plane: Deployed, tenants: Sequence[str]) -> float:
    """Ask for the queues of new tenants, as often as getQueue allows, until all are there. Returns the seconds."""
    began = time.monotonic()
    waiting = list(tenants)
    while time.monotonic() - began < SERVE_SECONDS:
        calls = [_get_queue(control_plane, tenant) for tenant in waiting]
        answers = at_once(calls, clients=CALLERS, deadline=began + SERVE_SECONDS)
        waiting = [tenant for tenant, answer in zip(waiting, answers, strict=True) if answer.status != 200]
        if not waiting:
            return time.monotonic() - began
        time.sleep(RETRY_AFTER_SECONDS)
    raise RuntimeError(f"{len(waiting)} of {len(tenants)} tenants had no queue within {SERVE_SECONDS} s.")


def _keep_ready(control_plane: Deployed) -> None:
    """Deploy Berth with as many stacks kept ready as there will be new tenants, and wait until all are ready."""
    outputs = deploy(control_plane.emulator, lambda _step: None, events="false", warmPool=str(TENANTS))
    rows = PoolTable(control_plane.client("dynamodb"), outputs["TableName"])
    functions = control_plane.client("lambda")
    pages = functions.get_paginator("list_functions").paginate()
    (reconcile,) = (
        each["FunctionName"]
        for page in pages
        for each in page["Functions"]
        if each["Handler"].split(".")[-2] == "reconcile"
    )
    for _ in polls(SERVE_SECONDS):
        # The schedule does this every minute.
        functions.invoke(FunctionName=reconcile, Payload=json.dumps({"reconciliationId": POOL}))
        ready = [each for each in rows.pool().members.values() if each.state is MemberState.READY]
        if len(ready) == TENANTS:
            return
    raise RuntimeError(f"{len(ready)} of {TENANTS} stacks were ready after {SERVE_SECONDS} s.")


def _get_queue(control_plane: Deployed, tenant: str) -> Call:
    # Every call has its own connection, because real clients are separate programs.
    def call() -> ApiAnswer:
        return control_plane.api().send_request(GET_QUEUE, TenantIdRequest(tenant_id=tenant))

    return call


def _loop(control_plane: Deployed, tenants: Sequence[str]) -> float:
    """Deploy a stack for each tenant, one after the other. Returns the seconds that it took."""
    began = time.monotonic()
    for tenant in tenants:
        deploy_app(control_plane.emulator, queue_app.MODULE, queue_app.stack_name(tenant), {"tenant": tenant})
    took = time.monotonic() - began
    stacks = control_plane.client("cloudformation")
    for tenant in tenants:
        (stack,) = stacks.describe_stacks(StackName=queue_app.stack_name(tenant))["Stacks"]
        if stack["StackStatus"] != "CREATE_COMPLETE":
            raise RuntimeError(f"The stack of {tenant} is {stack['StackStatus']}.")
    return took
