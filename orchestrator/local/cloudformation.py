"""Adds facts to the responses of the emulator's CloudFormation. Berth needs them to decide which queue it serves.

- The emulator's DescribeStacks has no ``RoleARN``. Here it has the role of the stack's creation or last update.
- While the emulator rolls an update back, it describes replaced resources as the update left them, until all other
  resources are rolled back. AWS rolls back in the order of dependencies.
- The emulator's DescribeStackResources does not find a stack by the physical id of one of its resources.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from xml.sax.saxutils import escape

Answer = tuple[int, dict[str, str], bytes]
Parameters = dict[str, Any]
Handler = Callable[[Parameters], Answer]

ROLE = "RoleARN"
_BEFORE = "_before_the_update"


def complete() -> None:
    """Patch the emulator in this process."""
    _add_roles()
    _describe_rollbacks()


def _add_roles() -> None:
    from ministack.services.cloudformation import (  # type: ignore[import-untyped]
        _ACTION_HANDLERS,
        _change_sets,
        _stacks,
        changesets,
        handlers,
    )

    actions: dict[str, Handler] = _ACTION_HANDLERS

    def for_the_stack(handler: Handler) -> Handler:
        def handle(parameters: Parameters) -> Answer:
            answer = handler(parameters)
            _keep_role(handlers._resolve_stack(_one(parameters, "StackName")), _one(parameters, ROLE), answer)
            return answer

        return handle

    def create_change_set(parameters: Parameters, handler: Handler = actions["CreateChangeSet"]) -> Answer:
        before = set(_change_sets)
        answer = handler(parameters)
        for created in set(_change_sets) - before:
            _keep_role(_change_sets[created], _one(parameters, ROLE), answer)
        return answer

    def execute_change_set(parameters: Parameters, handler: Handler = actions["ExecuteChangeSet"]) -> Answer:
        names = _one(parameters, "ChangeSetName"), _one(parameters, "StackName")
        _, change_set = changesets._find_change_set(*names)
        answer = handler(parameters)
        if change_set:
            _keep_role(_stacks.get(change_set["StackName"]), change_set.get(ROLE, ""), answer)
        return answer

    def describe_stacks(parameters: Parameters, handler: Handler = actions["DescribeStacks"]) -> Answer:
        status, headers, body = handler(parameters)
        roles = {stack["StackId"]: stack.get(ROLE, "") for stack in _stacks.values()}
        return status, headers, with_roles(body, roles)

    actions |= {
        "CreateStack": for_the_stack(actions["CreateStack"]),
        "UpdateStack": for_the_stack(actions["UpdateStack"]),
        "CreateChangeSet": create_change_set,
        "ExecuteChangeSet": execute_change_set,
        "DescribeStacks": describe_stacks,
    }


def with_roles(body: bytes, roles: dict[str, str]) -> bytes:
    """The response of DescribeStacks, with the role of each stack after the stack's id."""

    def add(match: re.Match[str]) -> str:
        role = roles.get(match[1], "")
        return f"{match[0]}<{ROLE}>{escape(role)}</{ROLE}>" if role else match[0]

    return re.sub(r"<StackId>([^<]*)</StackId>", add, body.decode()).encode()


def _describe_rollbacks() -> None:
    from ministack.services.cloudformation import _ACTION_HANDLERS, _stacks, handlers, stacks

    actions: dict[str, Handler] = _ACTION_HANDLERS
    roll_back: Callable[..., Awaitable[None]] = stacks._roll_back_operation

    async def roll_back_operation(
        stack_name: str, stack_id: str, stack: dict[str, Any], operation: dict[str, Any], *more: Any, **named: Any
    ) -> None:
        before = (operation.get("previous_stack") or {}).get("_resources")
        if operation.get("is_update") and before:
            stack[_BEFORE] = before
        try:
            await roll_back(stack_name, stack_id, stack, operation, *more, **named)
        finally:
            stack.pop(_BEFORE, None)

    def describe_stack_resources(
        parameters: Parameters, handler: Handler = actions["DescribeStackResources"]
    ) -> Answer:
        if physical_id := _one(parameters, "PhysicalResourceId"):
            parameters = {**parameters, "StackName": _stack_with(physical_id, _stacks)}
        stack = handlers._resolve_stack(_one(parameters, "StackName"))
        if not stack or _BEFORE not in stack:
            return handler(parameters)
        updated = stack["_resources"]
        stack["_resources"] = stack[_BEFORE]
        try:
            return handler(parameters)
        finally:
            stack["_resources"] = updated

    actions["DescribeStackResources"] = describe_stack_resources
    stacks._roll_back_operation = handlers._roll_back_operation = roll_back_operation


def _stack_with(physical_id: str, stacks: Mapping[str, dict[str, Any]]) -> str:
    """The name of the stack with this resource. Without one, it is the id itself, which no stack has as its name."""
    for name, stack in stacks.items():
        if any(each.get("PhysicalResourceId") == physical_id for each in stack.get("_resources", {}).values()):
            return name
    return physical_id


def _keep_role(record: dict[str, Any] | None, role: str, answer: Answer) -> None:
    if record is not None and role and answer[0] == 200:
        record[ROLE] = role


def _one(parameters: Parameters, name: str) -> str:
    value = parameters.get(name, "")
    return str(value[0] if isinstance(value, list) else value)
