"""Fails a state that waits with a task token as soon as its function has failed, as AWS does.

The emulator ignores the failure, and the state waits until its timeout.
"""

from typing import Any


def fail_with_their_functions() -> None:
    """Patch the emulator in this process."""
    from ministack.services import stepfunctions  # type: ignore[import-untyped]

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
