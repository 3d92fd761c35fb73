"""What the emulator's CloudFormation does not say, and AWS does. Both decide which queue a tenant is served.

- DescribeStacks has no ``RoleARN``: here it has the role that the stack was made or last changed with.
- While an update is undone, resources that it had replaced are described as the update left them, until all the others
  were told that they are undone. AWS goes back in the order in which the resources depend on each other.
"""

import re
from collections.abc import Awaitable, Callable
from typing import Any
from xml.sax.saxutils import escape

Answer = tuple[int, dict[str, str], bytes]
Parameters = dict[str, Any]
Handler = Callable[[Parameters], Answer]

ROLE = "RoleARN"
_BEFORE = "_before_the_update"


def complete() -> None:
    """Have the emulator, in this process, say it as well."""
    _tell_roles()
    _tell_what_is_undone()


def _tell_roles() -> None:
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
        for made in set(_change_sets) - before:
            _keep_role(_change_sets[made], _one(parameters, ROLE), answer)
        return answer

    def execute_change_set(parameters: Parameters, handler: Handler = actions["ExecuteChangeSet"]) -> Answer:
        named = _one(parameters, "ChangeSetName"), _one(parameters, "StackName")
        _, change_set = changesets._find_change_set(*named)
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
    """DescribeStacks' answer, with the role of each stack after the stack's id."""

    def add(match: re.Match[str]) -> str:
        role = roles.get(match[1], "")
        return f"{match[0]}<{ROLE}>{escape(role)}</{ROLE}>" if role else match[0]

    return re.sub(r"<StackId>([^<]*)</StackId>", add, body.decode()).encode()


def _tell_what_is_undone() -> None:
    from ministack.services.cloudformation import _ACTION_HANDLERS, handlers, stacks

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
        stack = handlers._resolve_stack(_one(parameters, "StackName"))
        if not stack or _BEFORE not in stack:
            return handler(parameters)
        left = stack["_resources"]
        stack["_resources"] = stack[_BEFORE]
        try:
            return handler(parameters)
        finally:
            stack["_resources"] = left

    actions["DescribeStackResources"] = describe_stack_resources
    stacks._roll_back_operation = handlers._roll_back_operation = roll_back_operation


def _keep_role(record: dict[str, Any] | None, role: str, answer: Answer) -> None:
    if record is not None and role and answer[0] == 200:
        record[ROLE] = role


def _one(parameters: Parameters, name: str) -> str:
    given = parameters.get(name, "")
    return str(given[0] if isinstance(given, list) else given)
