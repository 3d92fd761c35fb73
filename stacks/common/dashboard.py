"""How the control plane is doing, on one page."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from stacks.api.gateway import Api
from stacks.common.alarms import PERIOD
from stacks.common.functions import BerthFunction
from stacks.common.permissions import names_of
from stacks.reconciling.reconciliation import Reconciliation
from stacks.tenants.machines import TenantMachines

_WIDTH = 24
"""Of a dashboard, in CloudWatch's units."""


class Dashboard(Construct):
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        api: Api,
        machines: TenantMachines,
        rollout_machine: sfn.StateMachine,
        reconciliation: Reconciliation,
        dead_letters: Mapping[str, sqs.Queue],
    ) -> None:
        super().__init__(scope, construct_id)
        cloudwatch.Dashboard(
            self,
            "Dashboard",
            dashboard_name=Stack.of(self).stack_name,
            widgets=[
                _get_queue(api.get_queue),
                [_answers(api.get_queue), _answers(api.operators), _server_errors(api)],
                [
                    _executions("Creates", machines.create),
                    _executions("Updates", machines.update),
                    _executions("Deletes", machines.delete),
                ],
                [_executions("Rollouts", rollout_machine), _throttles(self), _dead_letters(dead_letters)],
                _reconciliation(reconciliation),
            ],
        )


def _graph(title: str, *metrics: cloudwatch.IMetric) -> cloudwatch.GraphWidget:
    return cloudwatch.GraphWidget(title=title, left=list(metrics), width=_WIDTH // 3, period=PERIOD)


def _get_queue(function: BerthFunction) -> list[cloudwatch.IWidget]:
    made = function.function
    return [
        _graph("getQueue: calls", made.metric_invocations(label="calls")),
        _graph(
            "getQueue: latency",
            *(made.metric_duration(statistic=statistic, label=statistic) for statistic in ("p50", "p90", "p99")),
        ),
        _graph(
            "getQueue: errors and throttles",
            made.metric_errors(label="errors"),
            made.metric_throttles(label="throttles"),
        ),
    ]


def _answers(function: BerthFunction) -> cloudwatch.GraphWidget:
    """Those of 400 and above, each status by itself: they are all that these functions count."""
    return _graph(f"{function.name}: answers other than success", _search(function, f'service="{function.name}"'))


def _server_errors(api: Api) -> cloudwatch.GraphWidget:
    return _graph("API: 5xx", api.metric_server_errors(period=PERIOD, label="5xx"))


def _executions(title: str, machine: sfn.StateMachine) -> cloudwatch.GraphWidget:
    return _graph(
        title,
        machine.metric_started(label="started"),
        machine.metric_failed(label="failed"),
        machine.metric_timed_out(label="timed out"),
        machine.metric_aborted(label="aborted"),
    )


def _throttles(scope: Construct) -> cloudwatch.GraphWidget:
    return _graph("Throttled by AWS, by function", _search(scope, 'MetricName="Throttled"'))


def _dead_letters(queues: Mapping[str, sqs.Queue]) -> cloudwatch.GraphWidget:
    return _graph(
        "Dead letters",
        *(
            queue.metric_approximate_number_of_messages_visible(statistic="Maximum", label=holds)
            for holds, queue in queues.items()
        ),
    )


def _reconciliation(reconciliation: Reconciliation) -> list[cloudwatch.IWidget]:
    reconcile, close_execution = reconciliation.reconcile, reconciliation.close_execution
    return [
        _graph("Operations past their deadline", reconcile.counted("OperationsStuck", statistic="Maximum")),
        _graph(
            "Put right",
            close_execution.counted("OperationSettled", statistic="Sum", label="settled when its execution died"),
            reconcile.counted("Repairs", statistic="Sum", label="by reconciliations"),
        ),
        _graph("Findings left", reconcile.counted("FindingsLeft", statistic="Maximum")),
    ]


def _search(scope: Construct, what: str) -> cloudwatch.SearchExpression:
    """Whatever of that kind is counted, without having to be named here."""
    # A namespace with a hyphen has to be quoted.
    return cloudwatch.SearchExpression(
        expression=f"""SEARCH('{{"{names_of(scope).metrics}",service}} {what}', 'Sum')""", label="", period=PERIOD
    )
