"""The logger and the metrics of all functions, by Powertools for AWS Lambda: lines of JSON on the standard output."""

from __future__ import annotations

import json
import logging
import os
import sys
from functools import partial

from aws_lambda_powertools.logging import Logger
from aws_lambda_powertools.metrics import MetricUnit, single_metric

_SERVICE = os.environ.get("BERTH_SERVICE", "berth")
_NAMESPACE = os.environ.get("BERTH_METRICS_NAMESPACE", "Berth")


class _StandardOutput(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        # The stream is looked up at every line, because tests and measurements replace it.
        try:
            sys.stdout.write(f"{self.format(record)}\n")
            sys.stdout.flush()
        except Exception:  # noqa: BLE001 - a function does its work, also if a field cannot be written
            self.handleError(record)


logger = Logger(
    _SERVICE,
    # Lambda filters lines by level only if they have a timestamp of this form.
    datefmt="%Y-%m-%dT%H:%M:%S.%FZ",
    utc=True,
    # Powertools does not escape non-ASCII characters. Here they are escaped, so that no control character reaches the
    # terminal of a person who reads the log.
    json_serializer=partial(json.dumps, default=str, separators=(",", ":")),
    # Of most lines the location is that of a frame, and `exception` has the text of the stack trace.
    location=None,
    serialize_stacktrace=False,
    logger_handler=_StandardOutput(),
)


def count(metric: str, value: int = 1, *, by_service: bool = True) -> None:
    """Count an event in a metric. CloudWatch reads the metric from the log (embedded metric format).

    A metric costs something in every hour in which it has a value, so nothing is counted as long as nothing happens.
    Without ``by_service``, all functions count in the same metric, and one alarm watches them all.
    """
    with single_metric(metric, MetricUnit.Count, value, namespace=_NAMESPACE) as counted:
        if by_service:
            counted.add_dimension("service", _SERVICE)
        else:
            counted.add_metadata("service", _SERVICE)
