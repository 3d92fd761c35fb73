"""Hands records of a stream from one function to another."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from orchestrator.adapters.aws import throttling

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient

_RECORDS_PER_CALL = 20
"""An asynchronous call has at most 256 KB, and the record of a delivery a few."""


class LambdaHandover:
    """Implements :class:`orchestrator.own_events.ports.Handover`. The client is made when it is first needed.

    Lambda keeps an asynchronous call in a queue of its own, repeats it if the function fails, and then sends it to the
    function's dead-letter queue.
    """

    def __init__(self, make_client: Callable[[], LambdaClient], function: str) -> None:
        self._make_client = make_client
        self._function = function

    @cached_property
    def _client(self) -> LambdaClient:
        return self._make_client()

    def hand_over(self, records: Sequence[Mapping[str, Any]]) -> None:
        for start in range(0, len(records), _RECORDS_PER_CALL):
            payload = json.dumps({"Records": list(records[start : start + _RECORDS_PER_CALL])}).encode()
            with throttling():
                self._client.invoke(FunctionName=self._function, InvocationType="Event", Payload=payload)
