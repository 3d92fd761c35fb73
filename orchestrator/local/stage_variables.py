"""Adds the stage's variables to the events of HTTP APIs, as AWS does. The emulator leaves them out."""

from collections.abc import Awaitable, Callable
from typing import Any


def add_stage_variables() -> None:
    """Patch the emulator in this process."""
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
