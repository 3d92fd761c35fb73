"""The concurrency limit of the account's functions in this region, and the concurrency that they reached."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from orchestrator.adapters.aws import DENIED_OR_UNSUPPORTED, error_code, throttling
from orchestrator.common.times import Clock
from orchestrator.reconciling.health import Concurrency

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient

_WINDOW = timedelta(days=1)
_PERIOD = timedelta(hours=1)


class AccountFunctions:
    def __init__(self, functions: LambdaClient, metrics: Any, clock: Clock) -> None:
        self._functions, self._metrics, self._clock = functions, metrics, clock

    def concurrency(self) -> Concurrency | None:
        """``None`` if AWS does not return it, or denies the call."""
        now = self._clock.now()
        try:
            with throttling():
                limit = self._functions.get_account_settings()["AccountLimit"]["ConcurrentExecutions"]
                # Without dimensions, the metric is the sum over all functions of the account in this region.
                used = self._metrics.get_metric_statistics(
                    Namespace="AWS/Lambda",
                    MetricName="ConcurrentExecutions",
                    StartTime=now - _WINDOW,
                    EndTime=now,
                    Period=int(_PERIOD.total_seconds()),
                    Statistics=["Maximum"],
                )["Datapoints"]
        except ClientError as error:
            if error_code(error) in DENIED_OR_UNSUPPORTED:
                return None
            raise
        return Concurrency(limit, max((int(point["Maximum"]) for point in used), default=0))
