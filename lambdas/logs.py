"""Logs and metrics of all functions: lines of JSON on the standard output."""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

DEBUG, INFO, WARNING, ERROR, NOTHING = 10, 20, 30, 40, 50
_LEVELS = {"TRACE": DEBUG, "DEBUG": DEBUG, "INFO": INFO, "WARN": WARNING, "ERROR": ERROR, "FATAL": NOTHING}
"""The application log levels of Lambda."""


class Logger:
    """Writes a line per call. ``extra`` are further fields; those without a value are left out."""

    def __init__(self, service: str, level: int) -> None:
        self.service = service
        self.level = level
        self._context: ContextVar[Mapping[str, object]] = ContextVar("context", default=MappingProxyType({}))

    def debug(self, message: str, *, extra: Mapping[str, object] | None = None) -> None:
        self._log(DEBUG, "DEBUG", message, extra)

    def info(self, message: str, *, extra: Mapping[str, object] | None = None) -> None:
        self._log(INFO, "INFO", message, extra)

    def warning(self, message: str, *, extra: Mapping[str, object] | None = None) -> None:
        self._log(WARNING, "WARNING", message, extra)

    def error(
        self, message: str, *, extra: Mapping[str, object] | None = None, exc_info: BaseException | None = None
    ) -> None:
        self._log(ERROR, "ERROR", message, extra, exc_info)

    def exception(self, message: str, *, extra: Mapping[str, object] | None = None) -> None:
        """Log an error with the exception that is being handled."""
        self._log(ERROR, "ERROR", message, extra, sys.exception())

    @contextmanager
    def append_context_keys(self, **fields: object) -> Iterator[None]:
        """Add these fields to every line within the block."""
        before = self._context.set({**self._context.get(), **fields})
        try:
            yield
        finally:
            self._context.reset(before)

    def _log(
        self,
        level: int,
        name: str,
        message: str,
        extra: Mapping[str, object] | None,
        error: BaseException | None = None,
    ) -> None:
        if level < self.level:
            return
        # Lambda filters lines by level only if they have a timestamp of this form.
        fields: dict[str, object] = {
            "level": name,
            "message": message,
            "timestamp": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "service": self.service,
        }
        others = {**self._context.get(), **(extra or {}), **_described(error), **_trace()}
        described = {**fields, **others, **fields}
        try:
            line = _json({key: value for key, value in described.items() if value is not None})
        except (TypeError, ValueError, RecursionError) as fault:
            # A function does its work, also if a field cannot be written.
            line = _json({**fields, NOT_SERIALIZABLE: type(fault).__name__})
        write_line(line)


NOT_SERIALIZABLE = "not_serializable"
"""The field of a line whose other fields could not be written."""


def write_line(line: str) -> None:
    # The stream is looked up at every line, because tests and measurements replace it.
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _json(fields: Mapping[str, object]) -> str:
    # Non-ASCII characters are escaped, so that no control character reaches the terminal of a person who reads the log.
    return json.dumps(fields, default=str, separators=(",", ":"))


def _described(error: BaseException | None) -> dict[str, str]:
    if error is None:
        return {}
    return {
        "exception": "".join(traceback.format_exception(error)).rstrip("\n"),
        "exception_name": type(error).__name__,
    }


def _trace() -> dict[str, str]:
    """The X-Ray trace of the current call, which Lambda keeps in this variable."""
    root = os.environ.get("_X_AMZN_TRACE_ID", "").partition(";")[0]
    return {"xray_trace_id": root.removeprefix("Root=")} if root else {}


logger = Logger(
    os.environ.get("BERTH_SERVICE", "berth"),
    # Lambda sets the variable from the function's logging settings.
    _LEVELS.get(os.environ.get("AWS_LAMBDA_LOG_LEVEL", ""), INFO),
)
_namespace = os.environ.get("BERTH_METRICS_NAMESPACE", "Berth")


def count(metric: str, value: int = 1, *, by_service: bool = True) -> None:
    """Count an event in a metric. CloudWatch reads the metric from the log (embedded metric format).

    A metric costs something in every hour in which it has a value, so nothing is counted as long as nothing happens.
    Without ``by_service``, all functions count in the same metric, and one alarm watches them all.
    """
    definition: dict[str, Any] = {
        "Namespace": _namespace,
        "Dimensions": [["service"] if by_service else []],
        "Metrics": [{"Name": metric, "Unit": "Count"}],
    }
    described = {"Timestamp": int(time.time() * 1000), "CloudWatchMetrics": [definition]}
    write_line(_json({"_aws": described, "service": logger.service, metric: [float(value)]}))
