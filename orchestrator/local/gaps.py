"""Closes gaps of the emulator that need a few lines each. Every function patches the emulator in this process."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

QUOTA = 1000
"""The quota of concurrent functions that AWS gives to accounts by default."""


def add_stage_variables() -> None:
    """Add the stage's variables to the events of HTTP APIs. The emulator leaves them out."""
    from ministack.services import apigateway  # type: ignore[import-untyped]

    run: Callable[..., Awaitable[Any]] = apigateway.run_reentrant

    async def with_stage_variables(function: object, *given: Any, **options: object) -> Any:
        for event in given:
            context = event.get("requestContext") if isinstance(event, dict) else None
            if context and "http" in context:
                variables = apigateway._get_stage_variables(context["apiId"], context["stage"])
                # On AWS, the events of a stage without variables have no such field.
                event |= {"stageVariables": variables} if variables else {}
        return await run(function, *given, **options)

    apigateway.run_reentrant = with_stage_variables


def begin_streams_anew() -> None:
    """Let functions read the streams of tables after a restart. Call it before the emulator restores its state.

    The emulator saves how far each function has read a stream, but not the records of the stream. After a restart, a
    function would not see a record until there are as many new ones as it had read before.
    """
    from ministack.services import lambda_svc

    restore = lambda_svc._restore_esm_positions

    def restore_and_begin_anew(store: Any, positions: Any) -> None:
        restore(store, positions)
        if store is lambda_svc._dynamodb_stream_positions:
            for key in list(store._data):
                store._data[key] = 0

    lambda_svc._restore_esm_positions = restore_and_begin_anew


def fail_with_their_functions() -> None:
    """Fail a state that waits with a task token as soon as its function has failed, as AWS does.

    The emulator ignores the failure, and the state waits until its timeout.
    """
    from ministack.services import stepfunctions

    call = stepfunctions._call_lambda

    def call_and_fail_the_wait(function: str, payload: Any) -> Any:
        try:
            return call(function, payload)
        except stepfunctions._ExecutionError as error:
            token = payload.get("taskToken") if isinstance(payload, dict) else None
            waiting = stepfunctions._task_tokens.get(token)
            if waiting is not None:
                waiting["error"] = {"Error": error.error, "Cause": error.cause}
                waiting["event"].set()
            raise

    stepfunctions._call_lambda = call_and_fail_the_wait


def report_the_quota_of_aws() -> None:
    """Report the quota of concurrent functions that AWS gives by default.

    The emulator throttles calls beyond a limit of its own, which protects the memory of this machine
    (:mod:`orchestrator.local.emulator`), and reports that limit as the account's quota. `berth doctor` would advise to
    have the quota raised, which nobody can do here.
    """
    from ministack.services import lambda_svc

    get_account_settings: Callable[[], tuple[int, dict[str, str], bytes]] = lambda_svc._get_account_settings

    def with_the_quota_of_aws() -> tuple[int, dict[str, str], bytes]:
        status, headers, body = get_account_settings()
        settings: dict[str, Any] = json.loads(body)
        settings["AccountLimit"] |= {"ConcurrentExecutions": QUOTA}
        return status, headers, json.dumps(settings).encode()

    lambda_svc._get_account_settings = with_the_quota_of_aws
