"""How many functions the account may run at once here, and how many it did."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from orchestrator.adapters.aws import CANNOT_BE_ASKED, error_code, throttling
from orchestrator.common.times import Clock
from orchestrator.reconciling.health import Concurrency

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient

_LOOKED_BACK = timedelta(days=1)
_PERIOD = timedelta(hours=1)


class AccountFunctions:
    def __init__(self, functions: LambdaClient, metrics: Any, clock: Clock) -> None:
        self._functions, self._metrics, self._clock = functions, metrics, clock

    def concurrency(self) -> Concurrency | None:
        """``None`` when AWS does not say, or may not be asked."""
        now = self._clock.now()
        try:
            with throttling():
                limit = self._functions.get_account_settings()["AccountLimit"]["ConcurrentExecutions"]
                # Without dimensions: of all functions of the account in this region together.
                used = self._metrics.get_metric_statistics(
                    Namespace="AWS/Lambda",
                    MetricName="ConcurrentExecutions",
                    StartTime=now - _LOOKED_BACK,
                    EndTime=now,
                    Period=int(_PERIOD.total_seconds()),
                    Statistics=["Maximum"],
                )["Datapoints"]
        except ClientError as error:
            if error_code(error) in CANNOT_BE_ASKED:
                return None
            raise
        return Concurrency(limit, max((int(point["Maximum"]) for point in used), default=0))
