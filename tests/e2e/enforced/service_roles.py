"""Check the requests that Step Functions and CloudFormation make with their roles. Ministack does not."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from ministack.core import iam_evaluator
from ministack.services import cloudformation, iam, stepfunctions
from ministack.services.cloudformation import custom_resource, stacks

from orchestrator.local.emulator import ACCOUNT, REGION
from tests.e2e.enforced.decisions import Decision, DecisionLog
from tests.registry import HANDLER_PERMISSIONS, OPERATORS_HANDLER_PERMISSIONS

Permission = tuple[str, str]
"""An action and its resource."""

EXECUTION_RULE = f"arn:aws:events:{REGION}:{ACCOUNT}:rule/StepFunctionsGetEventsForStepFunctionsExecutionRule"


@dataclass(frozen=True)
class Principal:
    """A principal with policies: a role that a service assumed, or the caller that created a stack."""

    arn: str
    policies: Any
    limits: Any
    keys: Mapping[str, Any]

    @classmethod
    def with_role(cls, role_arn: str, session: str) -> Principal:
        role = role_arn.rsplit("/", 1)[-1]
        arn = f"arn:aws:sts::{ACCOUNT}:assumed-role/{role}/{session}"
        policies = iam_evaluator._gather_role_policies(role, ACCOUNT)
        return cls(arn, policies, iam_evaluator._permissions_boundary(iam._roles, role, ACCOUNT), {})

    @classmethod
    def with_key(cls, key: str) -> Principal | None:
        """The principal of an access key; None for the account's root, to which nothing is denied."""
        found = iam_evaluator.resolve_principal(key, ACCOUNT)
        return None if found.policies is None else cls(found.arn, found.policies, found.limits, found.keys)

    def may(self, action: str, resource: str, context: Mapping[str, Any], log: DecisionLog) -> bool:
        asked = iam_evaluator.EvalContext(
            principal_arn=self.arn,
            principal_type="AssumedRole",
            principal_account=ACCOUNT,
            action=action,
            resource_arn=resource,
            region=REGION,
            secure_transport=True,
            service_context={key.lower(): value for key, value in context.items()},
            principal_keys=dict(self.keys),
        )
        result = iam_evaluator.evaluate(asked, self.policies, *self.limits)
        allowed = result.decision == "Allow"
        log.add(Decision(allowed, self.arn, action, resource, "" if allowed else f"{result.decision} {result.reason}"))
        return allowed


def trusts(role_arn: str, service: str, source_arn: str, log: DecisionLog) -> bool:
    """Whether the service may assume the role for the resource."""
    role = iam._roles.get_scoped(ACCOUNT, None, role_arn.rsplit("/", 1)[-1])
    document = role["AssumeRolePolicyDocument"] if role else {"Statement": []}
    document = json.loads(document) if isinstance(document, str) else document
    asked = iam_evaluator.EvalContext(
        principal_arn="*",
        principal_type="Service",
        principal_account="",
        action="sts:AssumeRole",
        resource_arn=role_arn,
        region=REGION,
        service_context={"aws:sourcearn": source_arn, "aws:sourceaccount": ACCOUNT},
    )
    # A trust policy names no resource, because the resource is the role itself.
    statements = [{**statement, "Resource": "*"} for statement in document["Statement"]]
    result = iam_evaluator.evaluate_resource_policy({"Statement": statements}, asked, service=service)
    allowed = result.decision == "Allow"
    log.add(Decision(allowed, service, "sts:AssumeRole", role_arn, "" if allowed else f"for {source_arn}"))
    return allowed


class Tokens:
    """The machine that waits for each task token."""

    def __init__(self) -> None:
        self._machines: dict[str, str] = {}

    def add(self, token: str, machine: str) -> None:
        self._machines[token] = machine

    def machine_of(self, token: str | None) -> str | None:
        return self._machines.get(token or "")


class Operators:
    """The principal with whose permissions CloudFormation changes a stack: its role if it has one, else the last
    caller.
    """

    def __init__(self) -> None:
        self._roles: dict[str, str] = {}
        self._keys: dict[str, str] = {}

    def note(self, stack_arn: str, role_arn: str | None, key: str) -> None:
        if stack_arn == "*":
            return
        stack = stack_arn.split("/")[1]
        self._keys[stack] = key
        if role_arn:
            self._roles[stack] = role_arn

    def are_checked(self, stack: str) -> bool:
        """The control plane's own stack is not checked: the CDK deploys it with a role that may do everything."""
        return not self._roles.get(stack, "").rpartition("/")[2].startswith("cdk-")

    def role_of(self, stack: str) -> str | None:
        return self._roles.get(stack)

    def of(self, stack: str) -> Principal | None:
        role = self.role_of(stack)
        return Principal.with_role(role, "AWSCloudFormation") if role else Principal.with_key(self._keys.get(stack, ""))


def install(log: DecisionLog, operators: Operators, tokens: Tokens) -> None:
    _check_machines(log, tokens)
    _check_stacks(log, operators)


# Step Functions

_machine: ContextVar[str] = ContextVar("machine")


def _check_machines(log: DecisionLog, tokens: Tokens) -> None:
    execute_task, run_map = stepfunctions._execute_task, stepfunctions._run_distributed_map
    invoke_with_callback = stepfunctions._invoke_with_callback

    def require(execution: Mapping[str, Any], needs: Iterator[Permission]) -> None:
        machine = _machine_of(execution)
        role = stepfunctions._state_machines[machine]["roleArn"]
        principal = Principal.with_role(role, machine.rsplit(":", 1)[-1][:64])
        trusted = trusts(role, "states.amazonaws.com", machine, log)
        missing = [action for action, resource in needs if not principal.may(action, resource, {}, log)]
        if missing or not trusted:
            raise stepfunctions._ExecutionError("States.Permissions", f"{role} may not: {missing or 'be assumed'}")

    def checked_task(state: Any, given: Any, execution: Any, context: Any) -> Any:
        require(execution, _task_needs(state))
        _machine.set(_machine_of(execution))
        return execute_task(state, given, execution, context)

    def checked_map(state: Any, given: Any, effective: Any, iterator: Any, execution: Any, context: Any) -> Any:
        reader = stepfunctions._resolve_params_obj(state["ItemReader"]["Parameters"], effective, context)
        require(execution, _map_needs(_machine_of(execution), reader, state["ResultWriter"]["Parameters"]))
        return run_map(state, given, effective, iterator, execution, context)

    def with_callback(resource: Any, given: Any, token: str, state: Any) -> Any:
        tokens.add(token, _machine.get())
        return invoke_with_callback(resource, given, token, state)

    stepfunctions._execute_task = checked_task
    stepfunctions._run_distributed_map = checked_map
    stepfunctions._invoke_with_callback = with_callback


def _machine_of(execution: Mapping[str, Any]) -> str:
    """A map's children are executions of a machine that is called after the map, too."""
    return str(execution["stateMachineArn"]).split("/")[0]


def _task_needs(state: Mapping[str, Any]) -> Iterator[Permission]:
    resource, arguments = state["Resource"], state["Arguments"]
    if ":lambda:invoke" in resource:
        yield "lambda:InvokeFunction", arguments["FunctionName"]
    elif ":states:startExecution.sync" in resource:
        machine = arguments["StateMachineArn"]
        yield "states:StartExecution", machine
        for action in ("DescribeExecution", "StopExecution"):
            yield f"states:{action}", f"{machine.replace(':stateMachine:', ':execution:')}:any"
        for action in ("PutTargets", "PutRule", "DescribeRule"):
            yield f"events:{action}", EXECUTION_RULE
    else:
        raise NotImplementedError(f"The permissions that a task needs for {resource} are not known.")


def _map_needs(machine: str, reader: Mapping[str, str], writer: Mapping[str, str]) -> Iterator[Permission]:
    yield "states:StartExecution", machine
    yield "s3:GetObject", f"arn:aws:s3:::{reader['Bucket']}/{reader['Key']}"
    for action in ("PutObject", "ListMultipartUploadParts", "AbortMultipartUpload"):
        yield f"s3:{action}", f"arn:aws:s3:::{writer['Bucket']}/{writer['Prefix']}/any"


# CloudFormation


def _check_stacks(log: DecisionLog, operators: Operators) -> None:
    def require(stack: str, needs: Iterator[Permission]) -> None:
        principal = operators.of(stack) if operators.are_checked(stack) else None
        if principal is None:
            return
        role = operators.role_of(stack)
        stack_id = cloudformation._stacks[stack]["StackId"]
        trusted = role is None or trusts(role, "cloudformation.amazonaws.com", stack_id, log)
        via = dict.fromkeys(
            ("aws:CalledVia", "aws:CalledViaFirst", "aws:CalledViaLast"), "cloudformation.amazonaws.com"
        )
        missing = [action for action, resource in needs if not principal.may(action, resource, via, log)]
        if missing or not trusted:
            raise ValueError(f"{principal.arn} is not authorized to perform: {missing or 'sts:AssumeRole'}")

    create, update, delete = stacks._provision_resource, stacks._update_resource, stacks._delete_resource
    invoke = custom_resource.invoke_custom_resource

    def checked_create(kind: str, logical_id: str, properties: Any, stack: str) -> Any:
        require(stack, _resource_needs(kind, "create", stack, logical_id))
        return create(kind, logical_id, properties, stack)

    def checked_update(kind: str, physical_id: str, old: Any, new: Any, stack: str, *rest: Any, **more: Any) -> Any:
        if old != new:
            require(stack, _resource_needs(kind, "update", stack, rest[0] if rest else physical_id))
        return update(kind, physical_id, old, new, stack, *rest, **more)

    def checked_delete(kind: str, physical_id: str, properties: Any, stack: str, logical_id: str) -> Any:
        require(stack, _resource_needs(kind, "delete", stack, logical_id))
        return delete(kind, physical_id, properties, stack, logical_id)

    def checked_invoke(request: str, logical_id: str, properties: Any, stack: str, *rest: Any, **more: Any) -> Any:
        require(stack, iter([("lambda:InvokeFunction", properties["ServiceToken"])]))
        return invoke(request, logical_id, properties, stack, *rest, **more)

    stacks._provision_resource, stacks._update_resource = checked_create, checked_update
    stacks._delete_resource = checked_delete
    custom_resource.invoke_custom_resource = checked_invoke


_ARNS = {
    "AWS::SSM::Parameter": "arn:aws:ssm:{region}:{account}:parameter/{stack}/{logical_id}",
}
"""The names of resources that CloudFormation does not name like queues: the templates of the tests name them so."""
_NAMED_BY_CLOUDFORMATION = "arn:aws:sqs:{region}:{account}:{stack}-{logical_id}-any"


def _resource_needs(kind: str, verb: str, stack: str, logical_id: str) -> Iterator[Permission]:
    """The permissions for the resource types in tenants' stacks. CloudFormation names the queues after the stack."""
    known = HANDLER_PERMISSIONS | OPERATORS_HANDLER_PERMISSIONS
    arn = _ARNS.get(kind, _NAMED_BY_CLOUDFORMATION)
    for action in known.get(kind, {}).get(verb, ()):
        yield action, arn.format(region=REGION, account=ACCOUNT, stack=stack, logical_id=logical_id)
