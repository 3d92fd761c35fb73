"""Makes the emulator describe custom resources while they are in progress, as AWS does.

By itself the emulator describes a resource only once it is done. AWS describes a custom resource as in progress while
its function runs. After an update that replaced or removed a resource, AWS describes the stack as cleaning up while it
deletes the old resource.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

_DESCRIBE = ("DescribeStackResource", "DescribeStackResources", "DescribeStacks")
_UPDATING, _CLEANING_UP = "UPDATE_IN_PROGRESS", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"

Record = dict[str, Any]
Handler = Callable[[Record], Any]


@dataclass(frozen=True)
class Call:
    """A call of a custom resource's function that has no response yet."""

    stack_id: str
    request_type: str
    logical_id: str
    resource_type: str
    physical_id: str


def describe_custom_resources() -> None:
    """Patch the emulator in this process."""
    from ministack.services.cloudformation import (  # type: ignore[import-untyped]
        _ACTION_HANDLERS,
        custom_resource,
        handlers,
    )

    calls: set[Call] = set()
    invoke: Callable[..., Any] = custom_resource.invoke_custom_resource

    def invoke_and_track(
        request_type: str,
        logical_id: str,
        props: Record,
        stack_name: str,
        stack_id: str,
        resource_type: str,
        physical_id: str | None = None,
        old_props: Record | None = None,
    ) -> Any:
        call = Call(stack_id, request_type, logical_id, resource_type, physical_id or "")
        calls.add(call)
        try:
            return invoke(request_type, logical_id, props, stack_name, stack_id, resource_type, physical_id, old_props)
        finally:
            calls.discard(call)

    def describing(handler: Handler) -> Handler:
        def describe(parameters: Record) -> Any:
            name = parameters.get("StackName", "")
            stack = handlers._resolve_stack(name[0] if isinstance(name, list) else name)
            with as_on_aws(stack or {}, tuple(calls)):
                return handler(parameters)

        return describe

    custom_resource.invoke_custom_resource = invoke_and_track
    for action in _DESCRIBE:
        _ACTION_HANDLERS[action] = describing(_ACTION_HANDLERS[action])


@contextmanager
def as_on_aws(stack: Record, calls: Collection[Call]) -> Iterator[None]:
    """Within this block, the emulator's record of the stack shows the calls of custom resources in progress."""
    own_calls = [call for call in calls if call.stack_id == stack.get("StackId")]
    before: Record = {name: stack[name] for name in ("StackStatus", "_resources") if name in stack}
    for call in own_calls:
        _show(stack, call)
    try:
        yield
    finally:
        stack.update(before)


def _show(stack: Record, call: Call) -> None:
    known: dict[str, Record] = stack.get("_resources", {})
    present = known.get(call.logical_id, {})
    deletes = call.request_type == "Delete"
    if deletes and stack["StackStatus"] == _UPDATING:
        stack["StackStatus"] = _CLEANING_UP
    if deletes and present and present.get("PhysicalResourceId") != call.physical_id:
        return  # The call deletes the old resource of a replacement, and AWS describes the new one.
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.000Z}"
    in_progress = {
        "Timestamp": now,
        "LogicalResourceId": call.logical_id,
        "ResourceType": call.resource_type,
        "PhysicalResourceId": call.physical_id,
        "ResourceStatus": f"{call.request_type.upper()}_IN_PROGRESS",
    }
    stack["_resources"] = {**known, call.logical_id: {**present, **in_progress}}
