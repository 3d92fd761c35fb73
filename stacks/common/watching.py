"""What an operator is woken for, each with what it means and what to do."""

from __future__ import annotations

from collections.abc import Iterable

from aws_cdk import Duration
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as sfn

from orchestrator.reconciling.health import SURVEY_EVERY
from stacks.api.gateway import Api
from stacks.common.alarms import PERIOD, Alarms
from stacks.common.functions import BerthFunction
from stacks.common.permissions import names_of
from stacks.reconciling.reconciliation import Reconciliation
from stacks.tenants.machines import TenantMachines
from stacks.tenants.tenant_queue_provider import TenantQueueProvider

_SLOW_MILLISECONDS = 1000
"""Of a call that is one read of a row, and usually takes a hundredth of this."""
_SLOW_PERIODS = 3
_SERVER_ERRORS = 5
"""In one period. Single ones are told to come back, and do."""
# Longer than the time between two of them, so that the alarm lasts for as long as there is something to tell.
_UNTIL_THE_NEXT_SETTLING = Duration.minutes(10)
_UNTIL_THE_NEXT_SURVEY = Duration.seconds(int(SURVEY_EVERY.total_seconds()))


def watch_operations(alarms: Alarms, machines: TenantMachines) -> None:
    _watch_operation(alarms, "Create", machines.create, "create", "provisioned")
    _watch_operation(alarms, "Update", machines.update, "update", "updated")
    _watch_operation(alarms, "Delete", machines.delete, "delete", "deleted")


def _watch_operation(alarms: Alarms, name: str, machine: sfn.StateMachine, verb: str, done: str) -> None:
    alarms.add(
        f"{name}Failed",
        machine.metric_failed(period=PERIOD),
        f"A tenant could not be {done}. Its audit row names the resource that failed and CloudFormation's "
        "reason, or what else was in the way: mend the cause, then retry the tenant.",
    )
    alarms.add(
        f"{name}TimedOut",
        machine.metric_timed_out(period=PERIOD),
        f"An operation to {verb} a tenant took longer than the workflow allows. It is settled by itself: its audit row "
        "says within minutes how it ended. Find out what hung; if it says Failure, retry the tenant.",
        runbook="...TimedOut",
    )
    alarms.add(
        f"{name}Aborted",
        machine.metric_aborted(period=PERIOD),
        f"Somebody stopped an operation to {verb} a tenant. It is settled by itself: its audit row says within minutes "
        "how it ended. Find out who and why in CloudTrail; if it says Failure, retry the tenant.",
        runbook="...Aborted",
    )


def watch_tenant_queues(alarms: Alarms, provider: TenantQueueProvider) -> None:
    """The machine fails whenever another team's stack asks for what cannot be: that team is told, by CloudFormation."""
    machine = provider.machine
    for name, metric in (
        ("TenantQueueTimedOut", machine.metric_timed_out(period=PERIOD)),
        ("TenantQueueAborted", machine.metric_aborted(period=PERIOD)),
    ):
        alarms.add(
            name,
            metric,
            "A request for a tenant's queue by another team's stack ended without an answer, so that stack waits "
            "for an hour. The execution's input names the stack: tell that team, and have its operation repeated.",
        )
    alarms.add(
        "TenantQueueNotConfirmed",
        provider.settle_tenant_queue.counted("RequestNotConfirmed", period=PERIOD, statistic="Sum"),
        "Somebody asked for a tenant's queue in the name of a stack, and CloudFormation does not confirm it. Nothing "
        "was done. The log of settle_tenant_queue names the stack, CloudTrail who invoked "
        f"{names_of(provider).tenant_queue_function}: take that permission from them, and give them the managed policy "
        "for teams instead.",
    )


def watch_rollouts(alarms: Alarms, machine: sfn.StateMachine) -> None:
    alarms.add(
        "RolloutFailed",
        machine.metric_failed(period=PERIOD),
        "A rollout halted, was aborted, or ended with tenants that failed. `berth rollout list` says which one, "
        "`berth rollout status` why, with the failed tenants by cause: mend the cause, then resume or retry it.",
    )
    alarms.add(
        "RolloutTimedOut",
        machine.metric_timed_out(period=PERIOD),
        "A rollout took longer than an execution may. No further tenant is started, and it still keeps others off "
        "its tenants. `berth rollout status` says how far it came: resume it, which goes on from there, or abort "
        "it.",
    )
    alarms.add(
        "RolloutAborted",
        machine.metric_aborted(period=PERIOD),
        "Somebody stopped a rollout's execution in Step Functions, so the rollout did not end. Find out who and "
        "why in CloudTrail, then `berth rollout resume` or `berth rollout abort` it.",
    )


def watch_functions(alarms: Alarms, functions: Iterable[BerthFunction]) -> None:
    for function in functions:
        alarms.add(
            f"{function.node.id}Errors",
            function.function.metric_errors(period=PERIOD),
            f"The function {function.name} raised an error, which no expected outcome does. "
            "Its log group has the error with the tenant and the execution: look for the level ERROR.",
            runbook="...Errors",
        )
        alarms.add(
            f"{function.node.id}Throttles",
            function.function.metric_throttles(period=PERIOD),
            f"Lambda turned calls of {function.name} away: the account's concurrency is used up. "
            "Find what uses it, or have the account's limit raised.",
            runbook="...Throttles",
        )


def watch_api(alarms: Alarms, api: Api) -> None:
    alarms.add(
        "GetQueueSlow",
        api.get_queue.function.metric_duration(period=PERIOD, statistic="p99"),
        f"For a quarter of an hour one call of getQueue in a hundred took {_SLOW_MILLISECONDS} ms or more. Most calls "
        "only read one row: look at DynamoDB's latency and throttles, and whether many tenants are new.",
        threshold=_SLOW_MILLISECONDS,
        periods=_SLOW_PERIODS,
    )
    alarms.add(
        "ApiServerErrors",
        api.metric_server_errors(period=PERIOD),
        "The API answered 5xx to several calls: AWS throttles the functions' calls, so callers were told to come back, "
        "or a function failed, which has an alarm of its own. The access log has the routes and the callers.",
        threshold=_SERVER_ERRORS,
    )


def watch_reconciliation(alarms: Alarms, reconciliation: Reconciliation) -> None:
    reconcile, close_execution = reconciliation.reconcile, reconciliation.close_execution
    alarms.add(
        "OperationsStuck",
        reconcile.counted("OperationsStuck", period=_UNTIL_THE_NEXT_SETTLING, statistic="Maximum"),
        "An operation is past its deadline, and cannot be settled while its execution runs or AWS cannot be asked. "
        "`berth doctor` names the tenants: stop the execution in Step Functions, and the operation is settled.",
    )
    alarms.add(
        "OperationsSettled",
        close_execution.counted("OperationSettled", period=PERIOD, statistic="Sum"),
        "An execution died without saying how its operation ended, and the operation was given its end. Nothing is "
        "stuck. The log of close_execution says which tenant: find out what stopped it, retry the tenant if it failed.",
    )
    alarms.add(
        "Repairs",
        reconcile.counted("Repairs", period=PERIOD, statistic="Sum"),
        "A reconciliation put something right: an operation whose end nobody had told, or rows that differed from a "
        "stack. The log of reconcile has what it found and did. Find out why it was so, or it will be so again.",
    )
    alarms.add(
        "FindingsLeft",
        reconcile.counted("FindingsLeft", period=_UNTIL_THE_NEXT_SURVEY, statistic="Maximum"),
        "What is recorded of some tenants differs from their stacks, or a rollout stands still. Nothing was changed. "
        "`berth reconcile --dry-run` says what and where: have it repaired by `berth reconcile`, or do as it advises.",
    )


def watch_dead_letters(alarms: Alarms, *, stack_events: sqs.Queue, reconciliation: Reconciliation) -> None:
    for name, queue, description in (
        (
            "EventsUndelivered",
            stack_events,
            "CloudFormation's events did not reach the function stack_event. Operations still end, a little later: "
            "each looks for itself in time. Mend the cause named in the messages' attributes, then purge the queue.",
        ),
        (
            "EndedExecutionsUndelivered",
            reconciliation.not_closed,
            "Events about executions that ended did not reach the function close_execution, or it failed on them. "
            "Their operations are settled by the schedule, some minutes later. Mend the cause, then purge the queue.",
        ),
        (
            "ReconciliationsUndelivered",
            reconciliation.not_run,
            "A reconciliation was not run, or failed each time. The next one on the schedule makes up for it; one that "
            "an operator asked for has to be asked for again. Look at reconcile's log, then purge the queue.",
        ),
    ):
        held = queue.metric_approximate_number_of_messages_visible(period=PERIOD, statistic="Maximum")
        alarms.add(name, held, description)
