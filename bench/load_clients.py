"""Clients of platforms: a limited number at once, and each retries when it is told to."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from botocore.exceptions import HTTPClientError

from orchestrator.client.transport import ApiAnswer

Call = Callable[[], ApiAnswer]

RETRIED = frozenset({429, 500, 502, 503, 504})
"""The statuses with which API Gateway or Berth reports that there is no capacity now."""
NO_ANSWER = 0
"""Stands for the status if the connection broke or the request timed out."""

_MAX_TRIES = 60
_LONGEST_PAUSE = 5.0


@dataclass(frozen=True, slots=True)
class Answered:
    """One call as its caller sees it: the last answer, and the time until it arrived, retries and pauses included."""

    status: int
    seconds: float
    retries: int

    @property
    def is_error(self) -> bool:
        return not 200 <= self.status < 300


def with_retries(call: Call, *, deadline: float, pause: Callable[[float], None] = time.sleep) -> Answered:
    """Call until the answer is not a request to retry, or until the deadline or the maximum number of tries."""
    began = time.perf_counter()
    for retries in range(_MAX_TRIES):
        status, retry_after = _tried(call)
        seconds = _pause_before(retries) if retry_after is None else retry_after
        if status not in RETRIED | {NO_ANSWER} or time.monotonic() + seconds > deadline:
            break
        if retries + 1 < _MAX_TRIES:
            pause(seconds)
    return Answered(status, time.perf_counter() - began, retries)


def at_once(calls: Iterable[Call], *, clients: int, deadline: float) -> Sequence[Answered]:
    """Make all calls, in this order, with this number of concurrent clients."""
    with ThreadPoolExecutor(clients) as pool:
        return list(pool.map(lambda call: with_retries(call, deadline=deadline), calls))


def _tried(call: Call) -> tuple[int, float | None]:
    try:
        answer = call()
    except HTTPClientError:
        return NO_ANSWER, None
    return answer.status, answer.retry_after


def _pause_before(retry: int) -> float:
    """Exponential backoff with jitter."""
    return float(min(0.25 * 2**retry, _LONGEST_PAUSE) * random.uniform(0.5, 1.0))
