"""The emulator leaves the variables of a stage out of the events of HTTP APIs. Here they are put in, as on AWS."""

from collections.abc import Awaitable, Callable
from typing import Any


def add_stage_variables() -> None:
    """From now on, in this process, which is the emulator's own."""
    from ministack.services import apigateway  # type: ignore[import-untyped]

    run: Callable[..., Awaitable[Any]] = apigateway.run_reentrant

    async def with_stage_variables(function: object, *given: Any, **options: object) -> Any:
        for event in given:
            context = event.get("requestContext") if isinstance(event, dict) else None
            if context and "http" in context:
                variables = apigateway._get_stage_variables(context["apiId"], context["stage"])
                # An event of a stage without variables has no such field on AWS.
                event |= {"stageVariables": variables} if variables else {}
        return await run(function, *given, **options)

    apigateway.run_reentrant = with_stage_variables
