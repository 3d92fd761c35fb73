"""Logs and metrics of all functions."""

from __future__ import annotations

import json
from functools import partial

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import MetricUnit, single_metric

# Non-ASCII characters are escaped, so that no control character reaches the terminal of a person who reads the log.
logger = Logger(json_serializer=partial(json.dumps, default=str, separators=(",", ":")))


def count(metric: str, value: int = 1) -> None:
    """Count an event in a metric. CloudWatch reads the metric from the log."""
    with single_metric(name=metric, unit=MetricUnit.Count, value=value) as single:
        single.add_dimension(name="service", value=logger.service)
