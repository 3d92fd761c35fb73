"""The machines that create, update and delete a tenant's stack."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from aws_cdk import Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from stacks.common.alarms import PERIOD, Alarm
from stacks.common.capability import Capability, Output
from stacks.common.functions import BerthFunction, FunctionKit
from stacks.common.graphs import executions_graph
from stacks.common.log_groups import count_dead_executions, log_group
from stacks.common.permissions import acknowledge_wildcard, allow, allow_on_tenant_queues, statement
from stacks.common.table import TENANT_ROWS, TenantTable
from stacks.project import ROOT
from stacks.releases.publisher import ReleasePublisher
from stacks.settings import Settings
from stacks.tenants.functions import STACK_SECONDS, TenantFunctions
from stacks.tenants.stack_role import TenantStackRole

STATEMACHINES = ROOT / "statemachines"

_EVERY_OPERATION: Final[Mapping[str, str]] = {
    "BeginFunctionArn": "begin",
    "StartStackFunctionArn": "start_stack",
    "AwaitStackFunctionArn": "await_stack",
    "InspectStackFunctionArn": "inspect_stack",
    "FinishFunctionArn": "finish",
    "RecordFailureFunctionArn": "record_failure",
}

FUNCTIONS_OF: Final[Mapping[str, Mapping[str, str]]] = {
    "create_tenant": {**_EVERY_OPERATION, "AwaitAdmissionFunctionArn": "await_admission"},
    "update_tenant": _EVERY_OPERATION,
    "delete_tenant": _EVERY_OPERATION,
    "tenant_queue": {"SettleTenantQueueFunctionArn": "settle_tenant_queue"},
    "rollout": {
        "AdvanceRolloutFunctionArn": "advance_rollout",
        "AwaitOperatorFunctionArn": "await_operator",
        "AdmitTenantFunctionArn": "admit_tenant",
        "RecordOutcomeFunctionArn": "record_outcome",
        "ReviewTenantFunctionArn": "review_tenant",
    },
    "purge_events": {"PurgeEventsFunctionArn": "purge_events"},
}
"""For each workflow's file: the placeholders of function ARNs, and the name of each function."""

MIN_START_SECONDS = 2 * STACK_SECONDS
"""StartStack must not time out while its function may still change the stack."""

EXECUTIONS_ARE_MANY = "Every operation is an execution of its own. The machine is named."


def definition(stem: str, settings: Settings) -> str:
    """A workflow's file with its numbers filled in. CloudFormation fills in ARNs and names.

    CloudFormation cannot fill in numbers: a placeholder must be quoted for the file to be JSON, so a number would
    become a string.
    """
    text = (STATEMACHINES / f"{stem}.asl.json").read_text(encoding="utf-8")
    numbers = {
        "StartStackSeconds": max(settings.await_stack_seconds, MIN_START_SECONDS),
        "AwaitStackSeconds": settings.await_stack_seconds,
        "AwaitReviewSeconds": settings.await_review_seconds,
        "RetryAfterSeconds": settings.retry_after_seconds,
    }
    for placeholder, number in numbers.items():
        text = text.replace(f'"${{{placeholder}}}"', str(number))
    return text


def machine(
    scope: Construct,
    construct_id: str,
    *,
    stem: str,
    functions: Mapping[str, BerthFunction],
    kit: FunctionKit,
    settings: Settings,
    others: Mapping[str, str] | None = None,
) -> sfn.StateMachine:
    """The machine that runs a workflow's file. It may call only the functions that the file names.

    ``others`` are the values of the placeholders that are not functions.
    """
    arns = {placeholder: functions[name].arn for placeholder, name in FUNCTIONS_OF[stem].items()}
    role = iam.Role(scope, f"{construct_id}Role", assumed_by=_step_functions(scope))
    allow(role, ["lambda:InvokeFunction"], *arns.values())
    acknowledge_wildcard(
        role, "*", "The CDK lets a machine write to log delivery and X-Ray, whose actions take no resource but `*`."
    )
    # Log delivery adds every group to one policy of limited size, except groups with this prefix.
    group_name = f"/aws/vendedlogs/states/{Stack.of(scope).stack_name}-{stem.replace('_', '-')}"
    logs = log_group(
        scope, f"{construct_id}Logs", days=kit.log_retention_days, encryption=kit.encryption, name=group_name
    )
    count_dead_executions(logs)
    return sfn.StateMachine(
        scope,
        construct_id,
        definition_body=sfn.DefinitionBody.from_string(definition(stem, settings)),
        definition_substitutions={**arns, **(others or {})},
        role=role,
        tracing_enabled=True,
        logs=sfn.LogOptions(
            destination=logs,
            level=sfn.LogLevel.ALL,
            # The data includes task tokens. With a token, a reader of the logs could respond instead of CloudFormation.
            include_execution_data=False,
        ),
    )


def _step_functions(scope: Construct) -> iam.ServicePrincipal:
    """Step Functions, for any machine of this account: the role is created before the machine's name is known."""
    stack = Stack.of(scope)
    return iam.ServicePrincipal(
        "states.amazonaws.com",
        conditions={
            "StringEquals": {"aws:SourceAccount": stack.account},
            "ArnLike": {"aws:SourceArn": stack.format_arn(service="states", resource="stateMachine:*")},
        },
    )


def executions_of(machine: sfn.StateMachine, *, label: str | None = None) -> str:
    """All executions of a machine; with a label, the executions that its map state with that label starts."""
    name = f"{machine.state_machine_name}/{label}" if label else machine.state_machine_name
    return Stack.of(machine).format_arn(service="states", resource=f"execution:{name}:*")


class TenantMachines(Capability):
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        kit: FunctionKit,
        settings: Settings,
        stack_role: TenantStackRole,
        releases: ReleasePublisher,
    ) -> None:
        super().__init__(scope, construct_id)
        self._releases = releases
        functions = TenantFunctions(self, kit=kit, settings=settings, stack_role=stack_role, releases=releases.bucket)
        self._functions = tuple(functions.by_name.values())

        def build(name: str, stem: str) -> sfn.StateMachine:
            return machine(self, name, stem=stem, functions=functions.by_name, kit=kit, settings=settings)

        self.create = build("Create", "create_tenant")
        self.update = build("Update", "update_tenant")
        self.delete = build("Delete", "delete_tenant")

        # The machines refer to these functions, so the functions cannot depend on permissions on the machines. These
        # permissions are separate policies, attached after both exist.
        for function in (functions.begin, functions.record_failure):
            policy = self._attach(function, statement(["states:DescribeExecution"], self.executions))
            for executions in self.executions:
                acknowledge_wildcard(policy, executions, EXECUTIONS_ARE_MANY)
        for function in (functions.start_stack, functions.await_stack):
            self._attach(function, statement(["states:SendTaskSuccess"], self.arns))
        self._attach(
            functions.await_admission,
            statement(["states:SendTaskHeartbeat"], [self.create.state_machine_arn]),
            "SeesWaitingCreates",
        )
        # Giving the turn of a create back wakes the next.
        for function in (functions.begin, functions.await_admission, functions.finish, functions.record_failure):
            self._attach(
                function, statement(["states:SendTaskSuccess"], [self.create.state_machine_arn]), "WakesCreates"
            )

    @property
    def functions(self) -> Sequence[BerthFunction]:
        return self._functions

    @property
    def alarms(self) -> Sequence[Alarm]:
        return (
            _failed("Create", self.create, done="provisioned"),
            _failed("Update", self.update, done="updated"),
            _failed("Delete", self.delete, done="deleted"),
        )

    @property
    def widgets(self) -> Sequence[cloudwatch.IWidget]:
        return (
            executions_graph("Creates", self.create),
            executions_graph("Updates", self.update),
            executions_graph("Deletes", self.delete),
        )

    @property
    def outputs(self) -> Sequence[Output]:
        return (
            Output("CreateTenantMachineArn", self.create.state_machine_arn),
            Output("UpdateTenantMachineArn", self.update.state_machine_arn),
            Output("DeleteTenantMachineArn", self.delete.state_machine_arn),
        )

    @property
    def arns(self) -> list[str]:
        return [each.state_machine_arn for each in (self.create, self.update, self.delete)]

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables of a function that starts every kind of operation."""
        return {
            "BERTH_CREATE_MACHINE": self.create.state_machine_arn,
            "BERTH_UPDATE_MACHINE": self.update.state_machine_arn,
            "BERTH_DELETE_MACHINE": self.delete.state_machine_arn,
        }

    @property
    def executions(self) -> list[str]:
        return [executions_of(each) for each in (self.create, self.update, self.delete)]

    def allow_describing(self, role: iam.Role) -> None:
        """Let a role see whether the execution of an operation is still running."""
        allow(role, ["states:DescribeExecution"], *self.executions, wildcard_because=EXECUTIONS_ARE_MANY)

    def allow_waking_creates(self, role: iam.Role) -> None:
        """Let a role give back the turns of creates that died, and wake the creates that are next."""
        allow(role, ["states:SendTaskSuccess"], self.create.state_machine_arn)

    def publish_releases_before(self, function: BerthFunction) -> None:
        """For every function that starts creates: a tenant may be created at any release."""
        self._releases.publish_before(function)

    def allow_operations(
        self, role: iam.Role, table: TenantTable, machines: Iterable[sfn.StateMachine], *, listing: bool = False
    ) -> None:
        """Let a role request operations as ``orchestrator.tenants.lifecycle`` does: read the tenant, then start a
        machine. With ``listing``, also list the newest executions, in the same statement: the length of a role's
        policies is limited.
        """
        table.allow(role, "GetItem", "Query", "UpdateItem", rows=TENANT_ROWS)
        table.allow_appending(role)
        table.allow_choosing_releases(role)
        allow_on_tenant_queues(role, "GetQueueAttributes", "GetQueueUrl")
        actions = ["states:StartExecution", *(["states:ListExecutions"] if listing else [])]
        allow(role, actions, *(each.state_machine_arn for each in machines))
        self.allow_describing(role)

    def _attach(self, function: BerthFunction, permission: iam.PolicyStatement, name: str = "OnMachine") -> iam.Policy:
        return iam.Policy(self, f"{function.node.id}{name}", statements=[permission], roles=[function.role])


def _failed(name: str, machine: sfn.StateMachine, *, done: str) -> Alarm:
    return Alarm(
        f"{name}Failed",
        machine.metric_failed(period=PERIOD),
        f"A tenant could not be {done}. `berth tenant ID` shows the cause: the resource that failed with "
        "CloudFormation's reason, or why Berth refused. Fix the cause, then run `berth retry ID`.",
    )
