"""The concurrency limit of functions, read from AWS."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.stub import ANY, Stubber

from orchestrator.adapters.functions import AccountFunctions
from orchestrator.common.errors import Throttled
from orchestrator.reconciling.health import Concurrency
from tests.adapters.conftest import client
from tests.fakes import NOON, FakeClock

ASKED = {
    "Namespace": "AWS/Lambda",
    "MetricName": "ConcurrentExecutions",
    "StartTime": NOON - timedelta(days=1),
    "EndTime": NOON,
    "Period": 3600,
    "Statistics": ["Maximum"],
}


@pytest.fixture
def aws() -> Any:
    functions, metrics = client("lambda"), client("cloudwatch")
    with Stubber(functions) as of_functions, Stubber(metrics) as of_metrics:
        yield AccountFunctions(functions, metrics, FakeClock()), of_functions, of_metrics


@pytest.mark.parametrize(("points", "most"), [([], 0), ([3.0, 41.0, 7.0], 41)])
def test_the_limit_and_the_maximum_of_the_last_day_are_read(aws: Any, points: list[float], most: int) -> None:
    account, functions, metrics = aws
    functions.add_response("get_account_settings", {"AccountLimit": {"ConcurrentExecutions": 1000}})
    datapoints = [{"Timestamp": NOON, "Maximum": point, "Unit": "Count"} for point in points]
    metrics.add_response("get_metric_statistics", {"Label": "it", "Datapoints": datapoints}, ASKED)
    assert account.concurrency() == Concurrency(1000, most)


def test_without_the_permission_it_is_unknown(aws: Any) -> None:
    account, functions, _ = aws
    functions.add_client_error("get_account_settings", "AccessDeniedException")
    assert account.concurrency() is None


def test_other_errors_are_errors(aws: Any) -> None:
    account, functions, metrics = aws
    functions.add_client_error("get_account_settings", "TooManyRequestsException")
    with pytest.raises(Throttled):
        account.concurrency()
    functions.add_response("get_account_settings", {"AccountLimit": {"ConcurrentExecutions": 1000}})
    metrics.add_client_error("get_metric_statistics", "InternalServiceFault", expected_params=dict.fromkeys(ASKED, ANY))
    with pytest.raises(ClientError):
        account.concurrency()
